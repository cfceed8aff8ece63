#include "airways/internal/digest.h"

#include "base/digest.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways::internal {

namespace {

void append_number(double number, std::string& text) {
  // Up to 2^53, a double that is a whole number is printed as the same int64.
  constexpr double kWholeMax = 9007199254740992.0;
  if (std::floor(number) == number && std::abs(number) <= kWholeMax) {
    fmt::format_to(std::back_inserter(text), "{}", static_cast<std::int64_t>(number));
  } else {
    fmt::format_to(std::back_inserter(text), "{}", number);
  }
}

// Quoted, so that no text looks like another value; the length makes escapes unnecessary.
void append_text(std::string_view value, std::string& text) {
  fmt::format_to(std::back_inserter(text), "\"{}:", value.size());
  text += value;
}

void append_object(const json::Object& object, std::string& text) {
  std::vector<std::string_view> keys;
  keys.reserve(object.size());
  for (const auto& member : object)
    keys.emplace_back(member.key());
  std::ranges::sort(keys);
  text += '{';
  for (const std::string_view key : keys) {
    append_text(key, text);
    append_canonical(*object.if_contains(key), text);
  }
  text += '}';
}

}  // namespace

std::array<std::uint64_t, 2> digest_of(std::string_view bytes) {
  const Sha256Bytes hash = sha256(bytes);
  std::array<std::uint64_t, 2> digest = {};
  for (std::size_t i = 0; i < 16; ++i)
    digest[i / 8] = digest[i / 8] << 8 | hash[i];
  return digest;
}

void append_canonical(const json::Value& value, std::string& text) {
  if (const json::Object* object = value.if_object()) {
    append_object(*object, text);
  } else if (const json::Array* array = value.if_array()) {
    text += '[';
    for (const json::Value& item : *array) {
      append_canonical(item, text);
      text += ',';
    }
    text += ']';
  } else if (const json::String* string = value.if_string()) {
    append_text(*string, text);
  } else if (const std::int64_t* integer = value.if_int64()) {
    fmt::format_to(std::back_inserter(text), "{}", *integer);
  } else if (const std::uint64_t* unsigned_integer = value.if_uint64()) {
    fmt::format_to(std::back_inserter(text), "{}", *unsigned_integer);
  } else if (const double* number = value.if_double()) {
    append_number(*number, text);
  } else if (const bool* flag = value.if_bool()) {
    text += *flag ? 't' : 'f';
  } else {
    text += 'n';
  }
}

}  // namespace hangar::airways::internal
