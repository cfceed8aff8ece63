// What native code was made for. Only code for the same target replaces other code of a module.
#pragma once

#include <string>

namespace hangar::wasm {

struct CodeTarget {
  std::string engine;     // The version of wasmtime and hangar's configuration of it.
  std::string processor;  // The architecture, and the features that code may use.

  // The processor of this machine, with all of its features.
  [[nodiscard]] static CodeTarget this_machine();
  // Every processor of this machine's architecture: no feature beyond the architecture's first.
  [[nodiscard]] static CodeTarget any_machine();

  // 16 hexadecimal digits, for names of files.
  [[nodiscard]] std::string id() const;
};

}  // namespace hangar::wasm
