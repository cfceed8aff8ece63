// Guesses the kind of a module from its imports and exports, so that a module for another contract
// is refused with the name of its kind instead of running into a time limit.
//
// The guess is for people, from lists that the compiler has checked. It decides nothing about
// trust: each contract still checks what it needs.
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
  Operator,        // Calls http-proxy-abi or delay-abi, or can be woken.
  Machine,         // Exports handle_event, or is linked to Javy's engine.
  SocketProgram,   // Opens connections itself, which WASIX and WasmEdge allow.
  Program,         // A WASI program: a flight without lookups, a machine, or neither.
  Reactor,         // WASI, with _initialize and no _start.
  Wasi02,          // The core module of a component.
  WasiUnstable,    // WASI before preview 1.
  JavaScriptHost,  // Needs a browser or Node around it.
  Library,         // Exports nothing that a host could call first.
};

[[nodiscard]] ModuleKind kind_of(std::span<const wasm::Import> imports,
                                 std::span<const wasm::Export> exports);

// The advice for such a module, as the end of a sentence: "it seems to be a flight: name it in an
// Airway (spec.wasmUrls.flight)".
[[nodiscard]] std::string_view advice(ModuleKind kind);

// InvalidInput with `why`, and with the kind that the module seems to be if that is not the
// expected one. An ordinary program may be meant as a flight or a machine, so no other kind is
// named for it.
[[nodiscard]] std::unexpected<Error> refuse(std::string why, ModuleKind expected,
                                            std::span<const wasm::Import> imports,
                                            std::span<const wasm::Export> exports);

}  // namespace hangar::abi
