// Walks over the instructions of a module for those that change what a snapshot does not hold.
#pragma once

#include "wasm/internal/byte_cursor.h"

#include <cstdint>
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

// Moves past one instruction. False for one that is not understood.
[[nodiscard]] bool skip_instruction(internal::ByteCursor& code);

// Whether a value of that type is a number, a vector, or a reference without a type of its own.
[[nodiscard]] bool is_plain_value_type(std::uint8_t code);

// Moves past a constant expression and its end. False for one that is not understood.
[[nodiscard]] bool skip_constant_expression(internal::ByteCursor& cursor);

}  // namespace hangar::wasm
