#include "abi/module_kind/module_kind.h"

#include "base/result.h"
#include "wasm/module_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::abi {

namespace {

using Imports = std::span<const wasm::Import>;
using Exports = std::span<const wasm::Export>;

constexpr std::string_view kPreview1 = "wasi_snapshot_preview1";

bool imports_from(Imports imports, std::string_view module) {
  return std::ranges::find(imports, module, &wasm::Import::module) != imports.end();
}

bool imports_from_prefix(Imports imports, std::string_view prefix) {
  return std::ranges::any_of(imports,
                             [&](const auto& import) { return import.module.starts_with(prefix); });
}

bool has_function(Exports exports, std::string_view name) {
  const wasm::Export* const found = wasm::find_export(exports, name);
  return found != nullptr && found->kind == wasm::ExternKind::Function;
}

bool looks_up(Imports imports) {
  return std::ranges::any_of(imports, [](const wasm::Import& import) {
    return import.module == "host" && import.name.starts_with("k8s_");
  });
}

// The names of Javy's module that contains its engine:
// javy_quickjs_provider_v3, javy-default-plugin-v4.
bool is_of_javy(Imports imports) {
  return imports_from_prefix(imports, "javy_") || imports_from_prefix(imports, "javy-");
}

// The functions of preview 1 need a socket that the host has opened, and say nothing about a
// module: Go's linker keeps some of them in programs that never call them.
bool opens_sockets(Imports imports) {
  constexpr std::array<std::string_view, 4> kOfPreview1 = {"sock_accept", "sock_recv", "sock_send",
                                                           "sock_shutdown"};
  return imports_from_prefix(imports, "wasix") ||
         std::ranges::any_of(imports, [&](const wasm::Import& import) {
           return import.module == kPreview1 && import.name.starts_with("sock_") &&
                  std::ranges::find(kOfPreview1, import.name) == kOfPreview1.end();
         });
}

bool needs_javascript(Imports imports) {
  constexpr std::array<std::string_view, 4> kModules = {"gojs", "go", "wbg",
                                                        "__wbindgen_placeholder__"};
  const auto is_emscripten = [](const wasm::Import& import) {
    return import.module == "env" &&
           (import.name.starts_with("emscripten_") || import.name.starts_with("__syscall_"));
  };
  return std::ranges::any_of(kModules, [&](auto name) { return imports_from(imports, name); }) ||
         std::ranges::any_of(imports, is_emscripten);
}

}  // namespace

ModuleKind kind_of(Imports imports, Exports exports) {
  // Imports and exports that only one contract has are tested first, common ones last.
  if (looks_up(imports)) return ModuleKind::Flight;
  if (imports_from(imports, "http-proxy-abi") || imports_from(imports, "delay-abi") ||
      (has_function(exports, "wakeup") && has_function(exports, "allocate"))) {
    return ModuleKind::Operator;
  }
  if (has_function(exports, "handle_event") || has_function(exports, "handle-event") ||
      is_of_javy(imports)) {
    return ModuleKind::Machine;
  }
  if (imports_from_prefix(imports, "wasi:")) return ModuleKind::Wasi02;
  if (imports_from(imports, "wasi_unstable")) return ModuleKind::WasiUnstable;
  if (needs_javascript(imports)) return ModuleKind::JavaScriptHost;
  if (opens_sockets(imports)) return ModuleKind::SocketProgram;
  if (has_function(exports, "_start")) return ModuleKind::Program;
  return has_function(exports, "_initialize") ? ModuleKind::Reactor : ModuleKind::Library;
}

std::string_view advice(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::Flight:
      return "it seems to be a flight: name it in an Airway (spec.wasmUrls.flight)";
    case ModuleKind::Operator:
      return "it seems to be a long-running controller: name it in an Operator (spec.module)";
    case ModuleKind::Machine:
      return "it seems to be a state machine: name it in a StatefulWorkflow";
    case ModuleKind::SocketProgram:
      return "it seems to be a program that opens network connections, and guests have no sockets: "
             "controllers send requests through http-proxy-abi, flights look up through "
             "host.k8s_lookup; build it with one of the SDKs";
    case ModuleKind::Program:
      return "it seems to be an ordinary WASI program: a controller sends its requests through "
             "http-proxy-abi and waits by delay-abi, as the SDKs do, and one in Go is built with "
             "`hangar build go`; a program that prints resources is a flight, to be named in an "
             "Airway (spec.wasmUrls.flight)";
    case ModuleKind::Reactor:
      return "it seems to be a WASI reactor; a controller in Go is built with `hangar build go`";
    case ModuleKind::Wasi02:
      return "it seems to be made for WASI 0.2, as components are: build it for wasm32-wasip1";
    case ModuleKind::WasiUnstable:
      return "it seems to be made for WASI before preview 1: build it with newer tools, for "
             "wasm32-wasip1";
    case ModuleKind::JavaScriptHost:
      return "it seems to be made for a browser or Node: build it for wasm32-wasip1 (Go: "
             "GOOS=wasip1)";
    case ModuleKind::Library:
      return "it seems to be a library";
  }
  return {};
}

std::unexpected<Error> refuse(std::string why, ModuleKind expected, Imports imports,
                              Exports exports) {
  const ModuleKind kind = kind_of(imports, exports);
  const bool may_be_meant = kind == ModuleKind::Program && expected != ModuleKind::Operator;
  if (kind != expected && !may_be_meant) why += fmt::format("; {}", advice(kind));
  return std::unexpected(Error(ErrorKind::InvalidInput, std::move(why)));
}

}  // namespace hangar::abi
