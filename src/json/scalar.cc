#include "json/internal/scalar.h"

#include "json/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::json::internal {

namespace {

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

constexpr std::array<std::string_view, 5> kNulls = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 11> kTrue = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                                    "on",   "On",   "ON",   "y",   "Y"};
constexpr std::array<std::string_view, 11> kFalse = {"false", "False", "FALSE", "no", "No", "NO",
                                                     "off",   "Off",   "OFF",   "n",  "N"};
constexpr std::array<std::string_view, 6> kInfinite = {".inf", ".Inf", ".INF",
                                                       ".nan", ".NaN", ".NAN"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

// Digits after an optional sign; a prefix gives the base.
std::optional<Value> to_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && !is_digit(text[1])) {
    switch (text[1]) {
      case 'x':
      case 'X':
        base = 16;
        break;
      case 'o':
      case 'O':
        base = 8;
        break;
      case 'b':
      case 'B':
        base = 2;
        break;
      default:
        return std::nullopt;
    }
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  std::uint64_t magnitude = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (negative) {
    if (magnitude > kMax + 1) return std::nullopt;
    // Two's complement, so that the smallest integer works, too.
    return Value(static_cast<std::int64_t>(std::uint64_t{0} - magnitude));
  }
  if (magnitude > kMax) return Value(magnitude);
  return Value(static_cast<std::int64_t>(magnitude));
}

// [-+]? ( . digits | digits ( . digits? )? ) ( [eE] [-+]? digits )?
bool is_float(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t whole = count_digits(text);
  text.remove_prefix(whole);
  std::size_t fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = count_digits(text);
    text.remove_prefix(fraction);
  }
  if (whole + fraction == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const std::size_t exponent = count_digits(text);
    if (exponent == 0) return false;
    text.remove_prefix(exponent);
  }
  return text.empty();
}

std::optional<Value> to_float(std::string_view text) {
  if (!is_float(text)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);  // from_chars does not accept a plus sign.
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  return Value(number);
}

}  // namespace

Scalar resolve_plain(std::string_view text) {
  using enum ScalarKind;
  if (is_one_of(text, kNulls)) return {.kind = Null};
  if (is_one_of(text, kTrue)) return {.kind = Bool, .value = true};
  if (is_one_of(text, kFalse)) return {.kind = Bool, .value = false};
  const char first = text.front();
  const bool has_sign = first == '-' || first == '+';
  if (is_one_of(has_sign ? text.substr(1) : text, kInfinite)) return {.kind = NotFinite};
  if (has_sign || is_digit(first) || first == '.') {
    std::string plain(text);
    if (first != '.') std::erase(plain, '_');
    if (auto integer = to_integer(plain)) return {.kind = Integer, .value = *std::move(integer)};
    if (auto number = to_float(plain)) return {.kind = Float, .value = *std::move(number)};
  }
  return {.kind = Text, .value = Value(text)};
}

}  // namespace hangar::json::internal
