// Shared by the JSON and the YAML side of this folder.
#pragma once

#include "json/value.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::json::internal {

// A document at the beginning of a text, and how many bytes it took (white space around
// it included).
struct ParsedPrefix {
  Value value;
  std::size_t size = 0;
};
struct ParseFailure {
  std::size_t offset = 0;
  std::string message;
};
[[nodiscard]] std::variant<ParsedPrefix, ParseFailure> parse_prefix(std::string_view text);

// Appends `text` as a JSON string. Bytes from 0x20 up are copied unchecked.
void append_quoted(std::string& out, std::string_view text);

// Appends a number as Go's encoding/json does: the shortest digits that read back the same, with an
// exponent only where plain digits get long. JSON has no NaN or infinity, and parse() accepts none;
// a computed one becomes null.
void append_number(std::string& out, double number);

}  // namespace hangar::json::internal
