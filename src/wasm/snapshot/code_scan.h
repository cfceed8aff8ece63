// Scans the instructions of a module for those that change state outside of a snapshot.
#pragma once

#include "wasm/internal/byte_cursor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hangar::wasm {

struct CodeFindings {
  // The first instruction that rules out snapshots, or that is not known.
  std::optional<std::string> obstacle;
  bool drops_data = false;  // Matters when the module has passive data segments.
};

// `code`: the contents of a code section. Linear in its size.
[[nodiscard]] CodeFindings scan_code(internal::ByteCursor code);

// Moves past one instruction. False for an unknown one.
[[nodiscard]] bool skip_instruction(internal::ByteCursor& code);

// True for numbers, vectors, and references without a type of their own.
[[nodiscard]] bool is_plain_value_type(std::uint8_t code);

// Moves past a constant expression and its end. False for an unknown one.
[[nodiscard]] bool skip_constant_expression(internal::ByteCursor& cursor);

}  // namespace hangar::wasm
