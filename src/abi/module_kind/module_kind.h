// What a module seems to be, judged by what it imports and exports: for refusing it by name where
// another contract's was asked for, instead of running it into a time limit.
//
// A guess for people, made of lists that the compiler has checked. It decides nothing about trust:
// each contract still checks what it needs.
#pragma once

#include "base/result.h"
#include "wasm/module_header.h"

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace hangar::abi {

enum class ModuleKind : std::uint8_t {
  Flight,          // Looks up through host.k8s_lookup.
  Operator,        // Asks through http-proxy-abi or delay-abi, or can be woken.
  Machine,         // Exports handle_event, or is linked to Javy's engine.
  SocketProgram,   // Opens connections by itself, as WASIX and WasmEdge let programs do.
  Program,         // A WASI program: a flight that looks nothing up, say, or a machine, or neither.
  Reactor,         // WASI, with _initialize and no _start.
  Wasi02,          // The inside of a component.
  WasiUnstable,    // WASI before preview 1.
  JavaScriptHost,  // Needs a browser or Node around it.
  Library,         // Nothing that could be called first.
};

[[nodiscard]] ModuleKind kind_of(std::span<const wasm::Import> imports,
                                 std::span<const wasm::Export> exports);

// What to do with such a module, as the end of a sentence: "it seems to be a flight: name it in an
// Airway (spec.wasmUrls.flight)".
[[nodiscard]] std::string_view advice(ModuleKind kind);

// InvalidInput: `why`, and what the module seems to be if that is not what was expected of it. An
// ordinary program may be meant as a flight or a machine: it is not called something else.
[[nodiscard]] std::unexpected<Error> refuse(std::string why, ModuleKind expected,
                                            std::span<const wasm::Import> imports,
                                            std::span<const wasm::Export> exports);

}  // namespace hangar::abi
