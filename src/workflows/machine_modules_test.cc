#include "workflows/machine_modules.h"

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/base64.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "io/file.h"
#include "io/task.h"
#include "modules/allow_list.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/code_cache.h"
#include "wasm/test_guests.h"
#include "workflows/limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::workflows {
namespace {

using testing::HasSubstr;

// The only ConfigMap that exists.
class OneConfigMap final : public modules::ConfigMapReader {
 public:
  [[nodiscard]] io::Task<Result<modules::ConfigMapContent>> read(
      modules::ConfigMapAccess /*access*/, std::string /*name*/,
      std::stop_token /*stop*/) override {
    ++reads;
    if (!exists) co_return fail(ErrorKind::NotFound, "no such configmap");
    co_return content;
  }

  // Modules by their keys.
  void set_binary(const std::map<std::string, std::string>& modules) {
    exists = true;
    content = {.revision = fmt::format("1/{}", ++revision_)};
    for (const auto& [key, bytes] : modules)
      content.binary_data[key] = base64_encode(bytes);
  }

  void set(const std::string& text) {
    exists = true;
    content = {.data = {{"machine.js", text}}, .revision = fmt::format("1/{}", ++revision_)};
  }

  modules::ConfigMapContent content;
  bool exists = false;
  int reads = 0;

 private:
  int revision_ = 0;
};

// A machine whose states are all called `name`.
std::string named(const std::string& name) {
  return "export const handle_event = () => JSON.stringify({newState: '" + name + "'});";
}

class MachineModulesTest : public testing::Test {
 public:
  static void SetUpTestSuite() { rig = std::make_unique<wasm::GuestRig>(); }
  static void TearDownTestSuite() { rig.reset(); }

  ~MachineModulesTest() override {
    stop(modules_);
    for (const auto& [number, other] : others_)
      stop(*other);
  }

  static Result<MachineModule> get(
      MachineModules& modules,
      MachineSource source = {.module = {.reference = "configmap://team/machine"}},
      const std::string& pinned_sha256 = "", const std::string& namespace_name = "team") {
    return rig->await(
        modules.get(MachineModules::wish_for(modules::Requester::in_namespace(namespace_name),
                                             std::move(source), pinned_sha256),
                    {}));
  }
  Result<MachineModule> prepare(MachineSource source = {
                                    .module = {.reference = "configmap://team/machine"}}) {
    return get(modules_, std::move(source));
  }
  // On the same directory: after a restart, with nothing in memory.
  MachineModules& restarted() {
    return *(others_[others_.size()] = std::make_unique<MachineModules>(parts_));
  }
  static void stop(MachineModules& modules) {
    EXPECT_TRUE(rig->await([](modules::Supply& supply) -> io::Task<bool> {
      co_await supply.stop();
      co_return true;
    }(modules.supply())));
  }
  static std::string name_of_state(const MachineModule& module) {
    const auto step = rig->await(module.machine->start("{}", {}));
    return step ? step->state : step.error().message();
  }

  inline static std::unique_ptr<wasm::GuestRig> rig;
  wasm::TemporaryDirectory directory_;
  OneConfigMap config_map_;
  http::Client client_{rig->loop()};
  std::unique_ptr<modules::ModuleStore> store_ =
      modules::ModuleStore::open(directory_.path() / "modules").value();
  modules::Fetcher fetcher_{{.loop = rig->loop(),
                             .workers = rig->workers(),
                             .client = client_,
                             .store = *store_,
                             .config_maps = &config_map_}};
  abi::statemachine::Runtime runtime_{rig->cache(), directory_.path() / "images"};
  MachineModules::Parts parts_{.sources = {.loop = rig->loop(),
                                           .workers = rig->workers(),
                                           .fetcher = fetcher_,
                                           .store = *store_},
                               .runtime = runtime_};
  MachineModules modules_{parts_};
  std::map<std::size_t, std::unique_ptr<MachineModules>> others_;
};

TEST_F(MachineModulesTest, LoadsTheSameBytesOnce) {
  config_map_.set(named("a"));
  const auto first = prepare();
  ASSERT_TRUE(first.has_value()) << first.error().message();
  EXPECT_EQ(first->resolved, "configmap://team/machine");
  EXPECT_EQ(name_of_state(*first), R"("a")");

  const auto again = prepare();
  const auto other_name = prepare({.module = {.reference = "configmap://team/another"}});
  const auto by_digest =
      get(modules_, {.module = {.reference = "configmap://team/another"}}, first->sha256);

  EXPECT_EQ(again->machine, first->machine);
  EXPECT_EQ(other_name->machine, first->machine);
  EXPECT_EQ(by_digest->machine, first->machine);
  EXPECT_EQ(modules_.kept_count(), 1U);
}

TEST_F(MachineModulesTest, GoesOnWithTheBytesThatWerePinned) {
  config_map_.set(named("a"));
  const std::string pinned = prepare()->sha256;
  config_map_.set(named("b"));

  const auto now = prepare();
  ASSERT_TRUE(now.has_value());
  EXPECT_EQ(name_of_state(*now), R"("b")");
  EXPECT_NE(now->sha256, pinned);
  config_map_.exists = false;
  EXPECT_EQ(prepare().error().kind(), ErrorKind::NotFound);
  // The absence of its ConfigMap says nothing about the namespace's right to the module.
  const auto old = get(restarted(), {.module = {.reference = "configmap://team/machine"}}, pinned);
  ASSERT_TRUE(old.has_value()) << old.error().message();
  EXPECT_EQ(name_of_state(*old), R"("a")");
}

// A tenant can write any status, and digests are not secret: the statuses of others show them.
TEST_F(MachineModulesTest, GivesNobodyAMachineForKnowingItsDigest) {
  config_map_.set(named("a"));
  const std::string digest = prepare()->sha256;
  config_map_.set(named("b"));
  const MachineSource strangers{.module = {.reference = "configmap://stranger/machine"}};

  for (MachineModules* const host : {&modules_, &restarted()}) {
    const auto refused = get(*host, strangers, digest, "stranger");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput) << refused.error().message();
    EXPECT_TRUE(
        get(*host, {.module = {.reference = "configmap://team/machine"}}, digest).has_value());
  }
}

TEST_F(MachineModulesTest, FindsAPinnedMachineAtItsSourceWhileThatHasIt) {
  config_map_.set(named("a"));
  const std::string pinned = prepare()->sha256;
  const MachineSource source{.module = {.reference = "configmap://team/machine"}};
  const auto lose = [&] {
    std::filesystem::remove(directory_.path() / "modules" / (pinned + ".wasm.gz"));
  };

  lose();
  const auto found = get(restarted(), source, pinned);
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(found->sha256, pinned);
  config_map_.set(named("b"));
  lose();
  EXPECT_EQ(get(restarted(), source, pinned).error().kind(), ErrorKind::InvalidInput);
  config_map_.exists = false;
  EXPECT_EQ(get(restarted(), source, pinned).error().kind(), ErrorKind::NotFound);
}

TEST_F(MachineModulesTest, LoadsOnlyWhatIsAllowed) {
  config_map_.set(named("a"));
  parts_.sources.allow_list = modules::AllowList({"configmap://team/*"});
  MachineModules& restricted = restarted();

  const auto allowed = get(restricted);
  const auto refused = get(restricted, {.module = {.reference = "configmap://others/machine"}});

  EXPECT_TRUE(allowed.has_value()) << allowed.error().message();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(refused.error().message(), "module \"configmap://others/machine\" not allowed");
  EXPECT_EQ(config_map_.reads, 1);
}

// A compiler that never finishes, and notes that it was started.
TEST_F(MachineModulesTest, MachinesOfOneNamespaceHoldUpNoOther) {
  const std::filesystem::path program = directory_.path() / "compile";
  const std::filesystem::path begun = directory_.path() / "begun";
  ASSERT_TRUE(io::write_file(
      program, "#!/bin/sh\necho >> " + begun.string() + "\nwhile :; do /bin/sleep 1; done\n"));
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  wasm::CodeCache cache(rig->engine(),
                        {.directory = directory_.path() / "code", .compile_program = program});
  ASSERT_TRUE(cache.open());
  abi::statemachine::Runtime runtime(cache, directory_.path() / "images");
  MachineModules modules({.sources = parts_.sources, .runtime = runtime});
  const auto begin = [&](const std::string& namespace_name, const std::string& guest_name) {
    config_map_.set_binary({{"module.wasm", *wasm::GuestRig::bytes_of(guest_name)}});
    (void)modules.supply().ask(
        MachineModules::wish_for(
            modules::Requester::in_namespace(namespace_name),
            {.module = {.reference = fmt::format("configmap://{}/machine", namespace_name)}}, ""),
        Instant::min(), {.name = namespace_name, .changed = [] {}});
  };
  const auto wait_for = [&](std::uintmax_t count) {
    return rig->await([](std::filesystem::path file, std::uintmax_t bytes) -> io::Task<bool> {
      std::error_code missing;
      while (std::filesystem::file_size(file, missing) != bytes)
        EXPECT_TRUE(co_await rig->loop().sleep(std::chrono::milliseconds(5), {}));
      co_return true;
    }(begun, count));
  };
  begin("greedy", "exit_0");
  EXPECT_TRUE(wait_for(1));

  begin("team", "exit_3");

  EXPECT_TRUE(wait_for(2));
  stop(modules);
  EXPECT_TRUE(rig->await([](wasm::CodeCache& stopped) -> io::Task<bool> {
    co_await stopped.stop();
    co_return true;
  }(cache)));
}

// --- Modules with a plugin ---

std::string guest(const std::string& name) {
  return *wasm::GuestRig::bytes_of(name);
}

const MachineSource kPlugged = {
    .module = {.reference = "configmap://team/machine"},
    .plugin = modules::Source{.reference = "configmap://team/machine/plugin.wasm"}};

TEST_F(MachineModulesTest, PutsAModuleAndItsPluginTogetherOnce) {
  config_map_.set_binary({{"module.wasm", guest("plugged")}, {"plugin.wasm", guest("plugin")}});

  const auto first = prepare(kPlugged);
  ASSERT_TRUE(first.has_value()) << first.error().message();
  EXPECT_EQ(name_of_state(*first), R"("started")");
  const auto again = prepare(kPlugged);
  const auto by_digest =
      get(modules_, {.module = {.reference = "configmap://team/another"}}, first->sha256);

  EXPECT_EQ(again->machine, first->machine);
  EXPECT_EQ(again->sha256, first->sha256);
  EXPECT_EQ(by_digest->machine, first->machine);
  EXPECT_EQ(modules_.kept_count(), 1U);
}

TEST_F(MachineModulesTest, PinsModuleAndPluginByOneDigest) {
  config_map_.set_binary({{"module.wasm", guest("plugged")}, {"plugin.wasm", guest("plugin")}});
  const std::string pinned = prepare(kPlugged)->sha256;
  const auto lose = [&] {
    std::filesystem::remove(directory_.path() / "modules" / (pinned + ".wasm.gz"));
  };

  EXPECT_TRUE(get(restarted(), kPlugged, pinned).has_value());
  lose();
  MachineModules& last = restarted();
  const auto found = get(last, kPlugged, pinned);
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(found->sha256, pinned);

  // A module with another plugin is another machine.
  config_map_.set_binary({{"module.wasm", guest("plugged")},
                          {"plugin.wasm", guest("plugin") + std::string("\0\3\2ab", 5)}});
  lose();
  EXPECT_EQ(get(restarted(), kPlugged, pinned).error().kind(), ErrorKind::InvalidInput);
  const auto changed = prepare(kPlugged);
  ASSERT_TRUE(changed.has_value()) << changed.error().message();
  EXPECT_NE(changed->sha256, pinned);
}

TEST_F(MachineModulesTest, SaysWhichPluginIsMissingAndWhereItGoes) {
  const auto expect_error = [this](const MachineSource& source, ErrorKind kind,
                                   const std::vector<std::string>& texts) {
    const auto module = prepare(source);
    ASSERT_FALSE(module.has_value());
    EXPECT_EQ(name_of(module.error().kind()), name_of(kind));
    for (const std::string& text : texts)
      EXPECT_THAT(module.error().message(), HasSubstr(text));
  };
  config_map_.set_binary({{"module.wasm", guest("plugged")}});
  expect_error(kPlugged, ErrorKind::NotFound,
               {"javy-default-plugin-v4", "the key plugin.wasm", "spec.plugin", "module.wasm)"});
  expect_error({.module = kPlugged.module}, ErrorKind::InvalidInput,
               {"cabi_realloc, invoke, memory from javy-default-plugin-v4", "spec.plugin"});
  config_map_.set_binary({{"module.wasm", guest("plugged")}, {"plugin.wasm", "no module"}});
  expect_error(kPlugged, ErrorKind::InvalidInput, {"plugin.wasm", "not a WebAssembly module"});
  config_map_.set_binary(
      {{"module.wasm", guest("plugged")}, {"plugin.wasm", guest("wrong_imports")}});
  expect_error(kPlugged, ErrorKind::InvalidInput, {"its plugin: module imports"});
  config_map_.set_binary(
      {{"module.wasm", guest("plugged")}, {"plugin.wasm", guest("machine_named")}});
  expect_error(kPlugged, ErrorKind::InvalidInput,
               {"the function javy-default-plugin-v4.cabi_realloc", "does not export"});
}

TEST_F(MachineModulesTest, TakesOnlyAPluginThatIsAllowed) {
  config_map_.set_binary({{"module.wasm", guest("plugged")}, {"plugin.wasm", guest("plugin")}});
  parts_.sources.allow_list = modules::AllowList({"configmap://team/machine"});
  const auto refused = get(restarted(), kPlugged);

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("module \"configmap://team/machine/plugin.wasm\" not allowed"));
}

TEST_F(MachineModulesTest, AsksForNoPluginThatIsNotNeeded) {
  config_map_.set(named("a"));
  MachineSource source = kPlugged;
  source.plugin->reference = "configmap://team/machine/no-such-key";

  const auto module = prepare(source);

  ASSERT_TRUE(module.has_value()) << module.error().message();
  EXPECT_EQ(name_of_state(*module), R"("a")");
}

TEST_F(MachineModulesTest, KeepsABoundedNumberOfMachines) {
  config_map_.set(named("first"));
  const std::string first = prepare()->sha256;
  for (std::size_t number = 0; number < limits::kMachinesKeptMax; ++number) {
    config_map_.set(named(fmt::format("m{}", number)));
    ASSERT_TRUE(prepare().has_value());
  }
  EXPECT_EQ(modules_.kept_count(), limits::kMachinesKeptMax);
  const auto again = get(modules_, {.module = {.reference = "configmap://team/machine"}}, first);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(name_of_state(*again), R"("first")");
  EXPECT_EQ(modules_.kept_count(), limits::kMachinesKeptMax);
}

TEST_F(MachineModulesTest, NamesTheReferenceInErrors) {
  const auto expect_error = [this](ErrorKind kind, const std::string& text) {
    const auto module = prepare();
    ASSERT_FALSE(module.has_value());
    EXPECT_EQ(name_of(module.error().kind()), name_of(kind));
    EXPECT_THAT(module.error().message(), HasSubstr("configmap://team/machine"));
    EXPECT_THAT(module.error().message(), HasSubstr(text));
  };
  expect_error(ErrorKind::NotFound, "no such configmap");
  config_map_.set("let a = ;");
  expect_error(ErrorKind::InvalidInput, "SyntaxError");
  config_map_.set("<html>Sign in</html>");
  expect_error(ErrorKind::InvalidInput, "an HTML page");
  config_map_.set("throw new Error('no')");
  expect_error(ErrorKind::GuestFault, "Error: no");
  config_map_.content.data = {{"a", "1"}, {"b", "2"}};
  config_map_.content.revision = "new";
  expect_error(ErrorKind::InvalidInput, "a, b");
  EXPECT_EQ(modules_.kept_count(), 0U);
}

}  // namespace
}  // namespace hangar::workflows
