// What the JSON and the YAML side of this folder share.
#pragma once

#include "json/value.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::json::internal {

// A document at the beginning of a text, and how many bytes it took (with space around it).
struct ParsedPrefix {
  Value value;
  std::size_t size = 0;
};
struct ParseFailure {
  std::size_t offset = 0;
  std::string message;
};
[[nodiscard]] std::variant<ParsedPrefix, ParseFailure> parse_prefix(std::string_view text);

// `text` as a JSON string. Bytes from 0x20 up are copied, whatever they are.
void append_quoted(std::string& out, std::string_view text);

// As Go's encoding/json writes them: the shortest digits that read back the same, with an exponent
// only where plain digits get long. JSON has no NaN or infinity, and parse() lets none in; one that
// was computed becomes null.
void append_number(std::string& out, double number);

}  // namespace hangar::json::internal
