// Walks over the instructions of a module for those that change what a snapshot does not hold.
#pragma once

#include "wasm/internal/byte_cursor.h"

#include <optional>
#include <string>

namespace hangar::wasm {

struct CodeFindings {
  // The first instruction that rules snapshots out, or code that is not understood.
  std::optional<std::string> obstacle;
  bool drops_data = false;  // Matters when the module has passive data segments.
};

// `code`: the contents of a code section. Linear in its size.
[[nodiscard]] CodeFindings scan_code(internal::ByteCursor code);

// Moves past a constant expression and its end. False for one that is not understood.
[[nodiscard]] bool skip_constant_expression(internal::ByteCursor& cursor);

}  // namespace hangar::wasm
