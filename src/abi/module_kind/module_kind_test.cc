#include "abi/module_kind/module_kind.h"

#include "base/result.h"
#include "wasm/module_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace hangar::abi {
namespace {

using testing::HasSubstr;

using Imports = std::vector<wasm::Import>;

const wasm::Import kWrite{.module = "wasi_snapshot_preview1", .name = "fd_write"};
const wasm::Import kAccept{.module = "wasi_snapshot_preview1", .name = "sock_accept"};
const wasm::Import kLookup{.module = "host", .name = "k8s_lookup"};
const wasm::Import kRequest{.module = "http-proxy-abi", .name = "request"};

wasm::Export function(std::string name) {
  return {.name = std::move(name), .kind = wasm::ExternKind::Function};
}
std::vector<wasm::Export> functions(std::initializer_list<const char*> names) {
  std::vector<wasm::Export> exports;
  for (const char* const name : names)
    exports.push_back(function(name));
  return exports;
}

struct Case {
  const char* name;
  Imports imports;
  std::vector<wasm::Export> exports;
  ModuleKind kind;
};

class KindOf : public testing::TestWithParam<Case> {};

TEST_P(KindOf, IsGuessedFromImportsAndExports) {
  EXPECT_EQ(kind_of(GetParam().imports, GetParam().exports), GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    Modules, KindOf,
    testing::Values(
        Case{"AFlight", {kWrite, kLookup}, functions({"_start", "malloc"}), ModuleKind::Flight},
        Case{"AFlightOfGo", {kAccept, kLookup}, functions({"_start"}), ModuleKind::Flight},
        Case{"AnOperator",
             {kWrite, kRequest},
             functions({"_start", "allocate", "wakeup"}),
             ModuleKind::Operator},
        Case{"AnOperatorThatAsksNothing",
             {kWrite},
             functions({"_start", "allocate", "wakeup"}),
             ModuleKind::Operator},
        Case{"AProgramThatWaits",
             {{.module = "delay-abi", .name = "delay"}},
             functions({"_start"}),
             ModuleKind::Operator},
        Case{"AMachine", {}, functions({"handle_event", "malloc"}), ModuleKind::Machine},
        Case{"AMachineOfJavy",
             {{.module = "javy-default-plugin-v4", .name = "invoke"}},
             functions({"_start"}),
             ModuleKind::Machine},
        Case{"AMachineOfJavyWithEngine",
             {kWrite},
             functions({"_start", "handle-event"}),
             ModuleKind::Machine},
        Case{"AProgram", {kWrite}, functions({"_start"}), ModuleKind::Program},
        Case{"AProgramWithoutImports", {}, functions({"_start"}), ModuleKind::Program},
        Case{"AProgramOfGo", {kWrite, kAccept}, functions({"_start"}), ModuleKind::Program},
        Case{"ANetworkProgramOfWasmEdge",
             {kAccept, {.module = "wasi_snapshot_preview1", .name = "sock_connect"}},
             functions({"_start"}),
             ModuleKind::SocketProgram},
        Case{"ANetworkProgramOfWasix",
             {{.module = "wasix_32v1", .name = "sock_open"}},
             functions({"_start"}),
             ModuleKind::SocketProgram},
        Case{"AReactor", {kWrite}, functions({"_initialize", "run"}), ModuleKind::Reactor},
        Case{"TheInsideOfAComponent",
             {{.module = "wasi:io/poll@0.2.0", .name = "poll"}},
             functions({"_start"}),
             ModuleKind::Wasi02},
        Case{"AnOldProgram",
             {{.module = "wasi_unstable", .name = "fd_write"}},
             functions({"_start"}),
             ModuleKind::WasiUnstable},
        Case{"GoForABrowser",
             {{.module = "gojs", .name = "runtime.wasmExit"}},
             functions({"run", "resume"}),
             ModuleKind::JavaScriptHost},
        Case{"Emscripten",
             {{.module = "env", .name = "emscripten_resize_heap"}},
             functions({"_start"}),
             ModuleKind::JavaScriptHost},
        Case{"ALibrary", {}, functions({"add"}), ModuleKind::Library},
        Case{"Nothing", {}, {}, ModuleKind::Library}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(KindOf, AnExportThatIsNoFunctionIsNoEntry) {
  const std::vector<wasm::Export> exports = {
      {.name = "_start", .kind = wasm::ExternKind::Global},
      {.name = "handle_event", .kind = wasm::ExternKind::Memory}};

  EXPECT_EQ(kind_of({}, exports), ModuleKind::Library);
}

TEST(Refuse, SaysWhatTheModuleSeemsToBe) {
  const Result<> refused =
      refuse("module imports env.foo", ModuleKind::Operator, Imports{kLookup}, {});

  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(refused.error().message(),
            "module imports env.foo; it seems to be a flight: name it in an Airway "
            "(spec.wasmUrls.flight)");
}

TEST(Refuse, GivesNoAdviceAboutABrokenModuleOfTheRightKind) {
  const Result<> refused =
      refuse("module exports no memory", ModuleKind::Flight, Imports{kLookup}, {});

  EXPECT_EQ(refused.error().message(), "module exports no memory");
}

TEST(Refuse, CallsAnOrdinaryProgramSomethingElseForAnOperatorOnly) {
  const auto exports = functions({"_start"});
  for (const ModuleKind expected : {ModuleKind::Flight, ModuleKind::Machine}) {
    const Result<> refused = refuse("module is too large", expected, Imports{kWrite}, exports);
    EXPECT_EQ(refused.error().message(), "module is too large");
  }

  const Result<> refused =
      refuse("module cannot be woken", ModuleKind::Operator, Imports{kWrite}, exports);
  EXPECT_THAT(refused.error().message(), HasSubstr("it seems to be an ordinary WASI program"));
}

TEST(Advice, IsThereForEachKind) {
  for (int kind = 0; kind <= static_cast<int>(ModuleKind::Library); ++kind)
    EXPECT_THAT(std::string(advice(static_cast<ModuleKind>(kind))), HasSubstr("it seems to be"));
}

}  // namespace
}  // namespace hangar::abi
