#include "json/go_text.h"

#include "json/internal/parse.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::json {

namespace {

using Member = std::pair<std::string_view, const Value*>;

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

// client-go reads an integer that an int64 cannot hold as a double.
std::optional<double> as_large(const Value& value) {
  const std::uint64_t* const number = value.if_uint64();
  if (number == nullptr || std::in_range<std::int64_t>(*number)) return std::nullopt;
  return static_cast<double>(*number);
}

// --- JSON ---

void append_json_text(std::string& out, std::string_view text) {
  std::string quoted;
  internal::append_quoted(quoted, text);
  for (std::size_t at = 0; at < quoted.size();) {
    const std::string_view rest = std::string_view(quoted).substr(at);
    const char c = rest.front();
    if (c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(out), "\\u00{:02x}", static_cast<unsigned>(c));
      ++at;
    } else if (rest.starts_with("\u2028") || rest.starts_with("\u2029")) {
      out += rest.starts_with("\u2028") ? "\\u2028" : "\\u2029";
      at += 3;
    } else if (rest.starts_with("\\u0008") || rest.starts_with("\\u000c")) {
      out += rest.starts_with("\\u0008") ? "\\b" : "\\f";
      at += 6;
    } else if (c == '\\') {
      out += rest.substr(0, 2);  // An escaped character is skipped.
      at += 2;
    } else {
      out += c;
      ++at;
    }
  }
}

void append_json(std::string& out, const Value& value) {
  if (const Object* const object = value.if_object()) {
    std::vector<Member> members;
    for (const auto& member : *object)
      members.emplace_back(member.key(), &member.value());
    std::ranges::sort(members, {}, &Member::first);
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ',';
      append_json_text(out, members[i].first);
      out += ':';
      append_json(out, *members[i].second);
    }
    out += '}';
  } else if (const Array* const array = value.if_array()) {
    out += '[';
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (i > 0) out += ',';
      append_json(out, (*array)[i]);
    }
    out += ']';
  } else if (const String* const text = value.if_string()) {
    append_json_text(out, *text);
  } else if (const std::optional<double> large = as_large(value)) {
    internal::append_number(out, *large);
  } else {
    out += dump(value);
  }
}

// --- YAML: how a reader would resolve a scalar ---

// As strconv.ParseInt(text, 0, 64) and ParseUint, after underscores were removed: digits of the
// base that the prefix gives, within the range of either.
bool is_go_integer(std::string_view text) {
  const bool is_signed = text.starts_with('+') || text.starts_with('-');
  const bool is_negative = text.starts_with('-');
  if (is_signed) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    switch (text[1]) {
      case 'x':
      case 'X':
        base = 16;
        break;
      case 'b':
      case 'B':
        base = 2;
        break;
      case 'o':
      case 'O':
        base = 8;
        break;
      default:
        base = 0;
    }
    text.remove_prefix(base == 0 ? 1 : 2);
    if (base == 0) base = 8;
  }
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return false;
  constexpr std::uint64_t kNegativeMax = std::uint64_t{1} << 63;
  if (is_negative) return number <= kNegativeMax;
  return !is_signed || number < kNegativeMax;
}

// ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$, within the range of a double.
bool is_go_float(std::string_view text) {
  const std::string_view whole = text.starts_with('+') ? text.substr(1) : text;
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const auto take_digits = [&text] {
    const auto end = std::ranges::find_if_not(text, is_decimal);
    const auto count = static_cast<std::size_t>(end - text.begin());
    text.remove_prefix(count);
    return count;
  };
  const std::size_t before = take_digits();
  std::size_t after = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    after = take_digits();
  }
  if (before + after == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (take_digits() == 0) return false;
  }
  if (!text.empty()) return false;
  double number = 0;
  const auto read = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  // To Go a number that is too small is zero, one that is too large an error.
  return read.ec != std::errc::result_out_of_range || whole.contains("e-") || whole.contains("E-");
}

// Numbers of base 60: ^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$
bool is_base_60(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || !is_decimal(text.front())) return false;
  const auto drop = [&text](auto&& is_one) {
    text.remove_prefix(
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_one) - text.begin()));
  };
  const auto is_digit_or_bar = [](char c) { return is_decimal(c) || c == '_'; };
  drop(is_digit_or_bar);
  if (!text.starts_with(':')) return false;
  while (text.starts_with(':')) {
    text.remove_prefix(1);
    const std::size_t digits =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_decimal) - text.begin());
    if (digits == 0 || digits > 2 || (digits == 2 && text.front() > '5')) return false;
    text.remove_prefix(digits);
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    drop(is_digit_or_bar);
  }
  return text.empty();
}

// Reads `digits_min` to `digits_max` digits from the front of the text.
std::optional<int> take_number(std::string_view& text, std::size_t digits_min,
                               std::size_t digits_max) {
  std::size_t count = 0;
  int number = 0;
  while (count < digits_max && count < text.size() && is_decimal(text[count])) {
    number = number * 10 + (text[count] - '0');
    ++count;
  }
  if (count < digits_min) return std::nullopt;
  text.remove_prefix(count);
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// 2006-1-2, optionally with a time of day after a blank or, then with a zone, after a T.
bool is_go_time(std::string_view text) {
  const std::optional<int> year = take_number(text, 4, 4);
  if (!year || !take(text, '-')) return false;
  const std::optional<int> month = take_number(text, 1, 2);
  if (!month || !take(text, '-')) return false;
  const std::optional<int> day = take_number(text, 1, 2);
  if (!day) return false;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return false;
  if (text.empty()) return true;
  const bool has_zone = text.starts_with('T') || text.starts_with('t');
  if (!has_zone && !text.starts_with(' ')) return false;
  text.remove_prefix(1);
  const std::optional<int> hour = take_number(text, 1, 2);
  if (!hour || *hour > 23 || !take(text, ':')) return false;
  const std::optional<int> minute = take_number(text, 1, 2);
  if (!minute || *minute > 59 || !take(text, ':')) return false;
  const std::optional<int> second = take_number(text, 1, 2);
  if (!second || *second > 59) return false;
  if (text.size() > 1 && (text.front() == '.' || text.front() == ',') && is_decimal(text[1])) {
    text.remove_prefix(1);
    text.remove_prefix(
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_decimal) - text.begin()));
  }
  if (!has_zone || take(text, 'Z')) return text.empty();
  if (!take(text, '+') && !take(text, '-')) return false;
  const std::optional<int> zone_hour = take_number(text, 2, 2);
  if (!zone_hour || !take(text, ':')) return false;
  return take_number(text, 2, 2).has_value() && text.empty();
}

// True when yaml.v3, or a reader of YAML 1.1, would read it as something other than text.
bool reads_as_other(std::string_view text) {
  constexpr std::array<std::string_view, 36> kWords = {
      "",      "~",     "null",  "Null",  "NULL",  "true", "True", "TRUE", "false",
      "False", "FALSE", ".nan",  ".NaN",  ".NAN",  ".inf", ".Inf", ".INF", "+.inf",
      "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", "y",    "Y",    "yes",  "Yes",
      "YES",   "on",    "On",    "ON",    "n",     "N",    "no",   "No",   "NO"};
  if (std::ranges::find(kWords, text) != kWords.end()) return true;
  if (text == "off" || text == "Off" || text == "OFF") return true;
  const char first = text.front();
  if (first == '.') return is_go_float(text);
  if (!is_decimal(first) && first != '+' && first != '-') return false;
  if (is_go_time(text) || is_base_60(text)) return true;
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != '_'; });
  return is_go_integer(plain) || is_go_float(plain);
}

// --- YAML: how a scalar is written ---

struct Forms {
  bool has_line_end = false;
  bool plain = true;   // May be written without quotes.
  bool single = true;  // May be written in single quotes.
  bool block = true;   // May be written as a block of lines.
};

// One character at the front of `text` that the emitter prints unescaped, and its size.
struct Character {
  std::size_t size = 1;
  bool is_printable = true;
  bool is_break = false;
};
Character character_at(std::string_view text) {
  const auto byte = [text](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return {.size = 1,
            .is_printable = lead == '\n' || (lead >= 0x20 && lead <= 0x7e),
            .is_break = lead == '\n' || lead == '\r'};
  }
  if (lead < 0xe0) {
    return {.size = 2,
            .is_printable = lead != 0xc2 || byte(1) >= 0xa0,
            .is_break = lead == 0xc2 && byte(1) == 0x85};
  }
  if (lead < 0xf0) {
    const bool is_surrogate = lead == 0xed && byte(1) >= 0xa0;
    const bool is_mark = lead == 0xef && byte(1) == 0xbb && byte(2) == 0xbf;
    const bool is_none = lead == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe;
    return {.size = 3,
            .is_printable = !is_surrogate && !is_mark && !is_none,
            .is_break = lead == 0xe2 && byte(1) == 0x80 && (byte(2) == 0xa8 || byte(2) == 0xa9)};
  }
  return {.size = 4, .is_printable = false};
}

Forms analyse(std::string_view text) {
  constexpr std::string_view kIndicators = "#,[]{}&*!|>'\"%@`";
  Forms scalar;
  if (text.starts_with("---") || text.starts_with("...")) scalar.plain = false;
  bool after_blank = true;
  bool after_space = false;
  bool after_break = false;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text.substr(at));
    const char c = text[at];
    const std::size_t next = at + character.size;
    const bool before_blank = next >= text.size() || text[next] == ' ' || text[next] == '\t';
    if (at == 0 && kIndicators.contains(c)) scalar.plain = false;
    if (at == 0 && (c == '?' || c == '-') && before_blank) scalar.plain = false;
    if (c == ':' && before_blank) scalar.plain = false;
    if (c == '#' && after_blank) scalar.plain = false;
    if (c == '\t') {
      scalar.plain = scalar.single = false;
    } else if (!character.is_printable) {
      scalar.plain = scalar.single = scalar.block = false;
    }
    if (c == ' ') {
      if (at == 0) scalar.plain = false;
      if (next == text.size()) scalar.plain = scalar.block = false;
      if (after_break) scalar.plain = scalar.single = false;
    } else if (character.is_break) {
      scalar.has_line_end = true;
      scalar.plain = false;
      if (after_space) scalar.single = scalar.block = false;
    }
    after_space = c == ' ';
    after_break = character.is_break;
    after_blank = c == ' ' || c == '\t' || character.is_break;
    at = next;
  }
  return scalar;
}

std::uint32_t code_point_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  std::uint32_t code = text.size() == 1   ? lead
                       : text.size() == 2 ? lead & 0x1fU
                       : text.size() == 3 ? lead & 0x0fU
                                          : lead & 0x07U;
  for (const char c : text.substr(1))
    code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
  return code;
}

void append_double_quoted(std::string& out, std::string_view text) {
  constexpr std::array<std::pair<std::uint32_t, char>, 13> kNamed = {{{0x00, '0'},
                                                                      {0x07, 'a'},
                                                                      {0x08, 'b'},
                                                                      {0x09, 't'},
                                                                      {0x0a, 'n'},
                                                                      {0x0b, 'v'},
                                                                      {0x0c, 'f'},
                                                                      {0x0d, 'r'},
                                                                      {0x1b, 'e'},
                                                                      {0x22, '"'},
                                                                      {0x5c, '\\'},
                                                                      {0x85, 'N'},
                                                                      {0x2028, 'L'}}};
  out += '"';
  while (!text.empty()) {
    const Character character = character_at(text);
    const std::string_view one = text.substr(0, character.size);
    text.remove_prefix(one.size());
    if (character.is_printable && !character.is_break && one != "\"" && one != "\\") {
      out += one;
      continue;
    }
    const std::uint32_t code = code_point_of(one);
    const auto* const named =
        std::ranges::find(kNamed, code, &std::pair<std::uint32_t, char>::first);
    out += '\\';
    if (named != kNamed.end()) {
      out += named->second;
    } else if (code == 0x2029) {
      out += 'P';
    } else if (code <= 0xff) {
      fmt::format_to(std::back_inserter(out), "x{:02X}", code);
    } else if (code <= 0xffff) {
      fmt::format_to(std::back_inserter(out), "u{:04X}", code);
    } else {
      fmt::format_to(std::back_inserter(out), "U{:08X}", code);
    }
  }
  out += '"';
}

void append_single_quoted(std::string& out, std::string_view text) {
  out += '\'';
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  out += '\'';
}

void append_literal(std::string& out, std::string_view text, std::size_t indent) {
  out += '|';
  // Where the text itself begins with white space, the block must state its indent.
  if (text.front() == ' ' || text.front() == '\n') out += '2';
  if (!text.ends_with('\n')) {
    out += '-';
  } else if (text.size() == 1 || text.ends_with("\n\n")) {
    out += '+';
  }
  if (text.ends_with('\n')) text.remove_suffix(1);
  while (true) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    out += '\n';
    if (!line.empty()) out.append(indent, ' ');
    out += line;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

enum class Place : std::uint8_t { Key, Value };

void append_text(std::string& out, std::string_view text, std::size_t indent, Place place) {
  const Forms scalar = analyse(text);
  const bool is_other = reads_as_other(text);
  if (text.contains('\n') && scalar.block && place == Place::Value) {
    append_literal(out, text, indent);
  } else if (scalar.plain && !is_other) {
    out += text;
  } else if (scalar.single && !is_other && !scalar.has_line_end) {
    append_single_quoted(out, text);
  } else {
    append_double_quoted(out, text);
  }
}

// As strconv.FormatFloat(number, 'g', -1, 64).
void append_yaml_number(std::string& out, double number) {
  constexpr int kExponentMin = -4;
  constexpr int kExponentEnd = 6;
  std::array<char, 64> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                     std::chars_format::scientific);
  const std::string_view digits(buffer.data(), written.ptr);
  const std::size_t mark = digits.find('e');
  int exponent = 0;
  const char* const first = digits.data() + mark + (digits[mark + 1] == '+' ? 2 : 1);
  std::from_chars(first, written.ptr, exponent);
  if (exponent < kExponentMin || exponent >= kExponentEnd) {
    out += digits;
  } else {
    internal::append_number(out, number);
  }
}

void append_leaf(std::string& out, const Value& value, std::size_t indent) {
  if (const String* const text = value.if_string()) {
    append_text(out, *text, indent, Place::Value);
  } else if (const std::optional<double> large = as_large(value)) {
    append_yaml_number(out, *large);
  } else if (const double* const number = value.if_double()) {
    append_yaml_number(out, *number);
  } else {
    out += dump(value);  // Both dumps write integers, booleans, null, {} and [] alike.
  }
}

// The position of the cursor: at the beginning of the text, behind "key:", or behind a mark of one
// character ("-", "?", ":") on whose line a container may begin.
enum class Cursor : std::uint8_t { Nothing, Key, Mark };

// `indent`: the column of the members of a container that begins here.
void append_yaml(std::string& out, const Value& value, std::size_t indent, Cursor after) {
  constexpr std::size_t kSimpleKeyMax = 128;
  const Object* const object = value.if_object();
  const Array* const array = value.if_array();
  const bool is_container =
      (object != nullptr && !object->empty()) || (array != nullptr && !array->empty());
  if (!is_container) {
    if (after != Cursor::Nothing) out += ' ';
    append_leaf(out, value, std::max<std::size_t>(indent, 2));
    out += '\n';
    return;
  }
  if (after == Cursor::Mark) out += ' ';
  if (after == Cursor::Key) out += '\n';
  bool is_inline = after == Cursor::Mark;
  const auto begin_line = [&] {
    if (!std::exchange(is_inline, false)) out.append(indent, ' ');
  };
  if (array != nullptr) {
    for (const Value& item : *array) {
      begin_line();
      out += '-';
      append_yaml(out, item, indent + 2, Cursor::Mark);
    }
    return;
  }
  std::vector<Member> members;
  for (const auto& member : *object)
    members.emplace_back(member.key(), &member.value());
  std::ranges::sort(members, precedes_as_go, &Member::first);
  for (const auto& [key, member] : members) {
    begin_line();
    std::string text;
    append_text(text, key, indent + 2, Place::Key);
    if (key.size() <= kSimpleKeyMax && !analyse(key).has_line_end) {
      out += text + ':';
      append_yaml(out, *member, indent + 2, Cursor::Key);
    } else {
      out += "? " + text + '\n';
      out.append(indent, ' ');
      out += ':';
      append_yaml(out, *member, indent + 2, Cursor::Mark);
    }
  }
}

// --- YAML: the order of members ---

bool is_letter(char32_t c) {
  // Every non-ASCII character counts as a letter: such names are rare in Kubernetes.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}
bool is_digit_point(char32_t c) {
  return c >= '0' && c <= '9';
}

std::u32string code_points_of(std::string_view text) {
  std::u32string points;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, character_at(text).size);
    points.push_back(code_point_of(one));
    text.remove_prefix(one.size());
  }
  return points;
}

}  // namespace

std::string dump_as_go(const Value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

std::string to_yaml_as_go(const Value& value) {
  std::string out;
  append_yaml(out, value, 0, Cursor::Nothing);
  return out;
}

// Digits compare as numbers and sort before letters; after digits, letters come first.
bool precedes_as_go(std::string_view left, std::string_view right) {
  const std::u32string a = code_points_of(left);
  const std::u32string b = code_points_of(right);
  bool after_digit = false;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) {
      after_digit = is_digit_point(a[i]);
      continue;
    }
    const bool a_is_letter = is_letter(a[i]);
    const bool b_is_letter = is_letter(b[i]);
    if (a_is_letter && b_is_letter) return a[i] < b[i];
    if (a_is_letter || b_is_letter) return after_digit ? a_is_letter : b_is_letter;

    // The common beginning may end in a number that continues here.
    bool goes_on = false;
    if (a[i] == '0' || b[i] == '0') {
      for (std::size_t j = i; j > 0 && is_digit_point(a[j - 1]) && !goes_on; --j)
        goes_on = a[j - 1] != '0';
    }
    const auto number_at = [goes_on, i](const std::u32string& text) {
      std::uint64_t number = goes_on ? 1 : 0;
      std::size_t end = i;
      for (; end < text.size() && is_digit_point(text[end]); ++end)
        number = number * 10 + (text[end] - '0');
      return std::pair(static_cast<std::int64_t>(number), end);
    };
    const auto [a_number, a_end] = number_at(a);
    const auto [b_number, b_end] = number_at(b);
    if (a_number != b_number) return a_number < b_number;
    if (a_end != b_end) return a_end < b_end;
    return a[i] < b[i];
  }
  return a.size() < b.size();
}

}  // namespace hangar::json
