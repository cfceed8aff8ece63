#include "json/value.h"

#include "base/result.h"
#include "json/internal/parse.h"
#include "json/limits.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/kind.hpp>
#include <boost/json/parse_options.hpp>
#include <boost/json/value_stack.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::json {

namespace {

namespace bj = boost::json;

// Builds the DOM. We use it instead of bj::parser for one reason: Boost 1.81 reads doubles up to
// one unit in the last place off, so a number could change on its way through hangar.
struct Builder {
  static constexpr std::size_t max_object_size = bj::object::max_size();
  static constexpr std::size_t max_array_size = bj::array::max_size();
  static constexpr std::size_t max_key_size = bj::string::max_size();
  static constexpr std::size_t max_string_size = bj::string::max_size();

  using Text = bj::string_view;
  using Code = bj::error_code;

  // NOLINTBEGIN(readability-convert-member-functions-to-static)
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_number_part(Text, Code&) { return true; }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }
  // NOLINTEND(readability-convert-member-functions-to-static)
  bool on_object_end(std::size_t count, Code&) {
    stack.push_object(count);
    return true;
  }
  bool on_array_end(std::size_t count, Code&) {
    stack.push_array(count);
    return true;
  }
  bool on_key_part(Text text, std::size_t, Code&) {
    stack.push_chars(text);
    return true;
  }
  bool on_key(Text text, std::size_t, Code&) {
    stack.push_key(text);
    return true;
  }
  bool on_string_part(Text text, std::size_t, Code&) {
    stack.push_chars(text);
    return true;
  }
  bool on_string(Text text, std::size_t, Code&) {
    stack.push_string(text);
    return true;
  }
  bool on_int64(std::int64_t number, Text, Code&) {
    stack.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, Text, Code&) {
    stack.push_uint64(number);
    return true;
  }
  bool on_double(double approximate, Text text, Code& error) {
    double exact = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), exact);
    // A number too small to differ from zero is accepted, one too large is not.
    if (read.ec == std::errc::result_out_of_range && std::fabs(approximate) < 1) exact = 0;
    if ((read.ec == std::errc::result_out_of_range && std::fabs(approximate) >= 1) ||
        !std::isfinite(exact)) {
      error = bj::error::exponent_overflow;
      return false;
    }
    stack.push_double(exact);
    return true;
  }
  bool on_bool(bool flag, Code&) {
    stack.push_bool(flag);
    return true;
  }
  bool on_null(Code&) {
    stack.push_null();
    return true;
  }

  bj::value_stack stack;
};

constexpr std::string_view kSpace = " \t\r\n";

void append_indent(std::string& out, int depth) {
  out += '\n';
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
}

// A `depth` below zero writes everything on one line.
void append(std::string& out, const Value& value, int depth) {
  const bool pretty = depth >= 0;
  const int inner = pretty ? depth + 1 : depth;
  switch (value.kind()) {
    case bj::kind::null:
      out += "null";
      return;
    case bj::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case bj::kind::int64:
      fmt::format_to(std::back_inserter(out), "{}", value.get_int64());
      return;
    case bj::kind::uint64:
      fmt::format_to(std::back_inserter(out), "{}", value.get_uint64());
      return;
    case bj::kind::double_:
      internal::append_number(out, value.get_double());
      return;
    case bj::kind::string:
      internal::append_quoted(out, value.get_string());
      return;
    case bj::kind::array: {
      out += '[';
      bool first = true;
      for (const Value& item : value.get_array()) {
        if (!std::exchange(first, false)) out += ',';
        if (pretty) append_indent(out, inner);
        append(out, item, inner);
      }
      if (pretty && !first) append_indent(out, depth);
      out += ']';
      return;
    }
    case bj::kind::object: {
      out += '{';
      bool first = true;
      for (const auto& member : value.get_object()) {
        if (!std::exchange(first, false)) out += ',';
        if (pretty) append_indent(out, inner);
        internal::append_quoted(out, member.key());
        out += pretty ? ": " : ":";
        append(out, member.value(), inner);
      }
      if (pretty && !first) append_indent(out, depth);
      out += '}';
      return;
    }
  }
}

template <class V>
V* find_in(V& value, Path path) {
  V* at = &value;
  for (const std::string_view name : path) {
    auto* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(name);
    if (at == nullptr) return nullptr;
  }
  return at;
}

// Compares exactly: a double that is not an integer, or is out of range, equals no integer.
template <class Integer>
bool equals_integer(double number, Integer integer) {
  constexpr double kEnd = std::is_signed_v<Integer> ? 0x1p63 : 0x1p64;
  constexpr double kBegin = std::is_signed_v<Integer> ? -0x1p63 : 0.0;
  return number >= kBegin && number < kEnd && std::trunc(number) == number &&
         static_cast<Integer>(number) == integer;
}

bool equal_numbers(const Value& left, const Value& right) {
  if (right.is_double() && !left.is_double()) return equal_numbers(right, left);
  if (left.is_double()) {
    const double number = left.get_double();
    if (right.is_double()) return number == right.get_double();
    return right.is_int64() ? equals_integer(number, right.get_int64())
                            : equals_integer(number, right.get_uint64());
  }
  if (left.is_int64() && right.is_int64()) return left.get_int64() == right.get_int64();
  if (left.is_uint64() && right.is_uint64()) return left.get_uint64() == right.get_uint64();
  const std::int64_t with_sign = left.is_int64() ? left.get_int64() : right.get_int64();
  const std::uint64_t without = left.is_uint64() ? left.get_uint64() : right.get_uint64();
  return std::cmp_equal(with_sign, without);
}

}  // namespace

namespace internal {

void append_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  constexpr double kPlainMin = 1e-6;
  constexpr double kPlainEnd = 1e21;
  const double magnitude = std::fabs(number);
  const bool plain = magnitude == 0 || (magnitude >= kPlainMin && magnitude < kPlainEnd);
  std::array<char, 64> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string_view digits(buffer.data(), written.ptr);
  // "1e-07" is written "1e-7".
  if (!plain && digits.size() > 4 && digits[digits.size() - 4] == 'e' &&
      digits[digits.size() - 2] == '0') {
    out += digits.substr(0, digits.size() - 2);
    digits.remove_prefix(digits.size() - 1);
  }
  constexpr double kExactEnd = 0x1p53;
  if (!plain || magnitude < kExactEnd) {
    out += digits;
    return;
  }
  // For a large number these are all of its digits; zeros replace those beyond the shortest that
  // read back the same.
  std::array<char, 64> shortest{};
  const auto short_end = std::to_chars(shortest.data(), shortest.data() + shortest.size(), number,
                                       std::chars_format::scientific);
  std::string_view mantissa(shortest.data(), short_end.ptr);
  mantissa = mantissa.substr(0, mantissa.find('e'));
  const std::size_t begin = out.size();
  std::ranges::copy_if(mantissa, std::back_inserter(out), [](char c) { return c != '.'; });
  out.append(digits.size() - (out.size() - begin), '0');
}

std::variant<ParsedPrefix, ParseFailure> parse_prefix(std::string_view text) {
  bj::parse_options options;
  options.max_depth = limits::kDocumentDepthMax;
  bj::basic_parser<Builder> parser(options);
  parser.handler().stack.reset();
  bj::error_code error;
  const std::size_t count = parser.write_some(/*more=*/false, text.data(), text.size(), error);
  if (error == bj::error::too_deep) {
    return ParseFailure{
        .offset = count,
        .message = fmt::format("nested more than {} levels deep", limits::kDocumentDepthMax)};
  }
  if (error) return ParseFailure{.offset = count, .message = error.message()};
  return ParsedPrefix{.value = parser.handler().stack.release(), .size = count};
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') [[likely]]
      continue;
    out += text.substr(begin, at - begin);
    begin = at + 1;
    out += '\\';
    switch (text[at]) {
      case '"':
      case '\\':
        out += text[at];
        break;
      case '\n':
        out += 'n';
        break;
      case '\r':
        out += 'r';
        break;
      case '\t':
        out += 't';
        break;
      default:
        out += "u00";
        out += kHex[byte >> 4];
        out += kHex[byte & 0xf];
    }
  }
  out += text.substr(begin);
  out += '"';
}

}  // namespace internal

Result<Value> parse(std::string_view text) {
  auto parsed = internal::parse_prefix(text);
  if (const auto* failure = std::get_if<internal::ParseFailure>(&parsed)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("json: byte {}: {}", failure->offset, failure->message));
  }
  auto& [value, size] = std::get<internal::ParsedPrefix>(parsed);
  if (const std::size_t extra = text.find_first_not_of(kSpace, size);
      extra != std::string_view::npos) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("json: byte {}: something follows the document", extra));
  }
  return std::move(value);
}

std::uint64_t parsed_bytes_max(std::string_view text) {
  // One of these stands before each value but the first, and two before each member of an object.
  // Those inside strings are counted too, which costs less than to look for them.
  const auto separators = std::ranges::count_if(
      text, [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; });
  // A value takes 24 bytes, and twice that while its array is being built; a member takes 40 and
  // the text of its key, and the allocations of a container and of a key have their own headers.
  constexpr std::uint64_t kSeparatorBytes = 64;
  constexpr std::uint64_t kDocumentBytes = 1024;
  return kDocumentBytes + 2 * std::uint64_t{text.size()} +
         kSeparatorBytes * static_cast<std::uint64_t>(separators);
}

std::string dump(const Value& value) {
  std::string out;
  append(out, value, -1);
  return out;
}

std::string dump_pretty(const Value& value) {
  std::string out;
  append(out, value, 0);
  return out;
}

const Value* find(const Value& value, Path path) {
  return find_in(value, path);
}

Value* find(Value& value, Path path) {
  return find_in(value, path);
}

std::string_view string_at(const Value& value, Path path) {
  const Value* found = find(value, path);
  const String* text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::int64_t int_at(const Value& value, Path path, std::int64_t otherwise) {
  const Value* found = find(value, path);
  if (found == nullptr) return otherwise;
  if (const auto* number = found->if_int64()) return *number;
  if (const auto* number = found->if_uint64()) {
    return std::in_range<std::int64_t>(*number) ? static_cast<std::int64_t>(*number) : otherwise;
  }
  if (const auto* number = found->if_double()) {
    // To JSON 3.0 is an integer, and YAML tools write integers so.
    if (std::trunc(*number) == *number && *number >= -0x1p63 && *number < 0x1p63) {
      return static_cast<std::int64_t>(*number);
    }
  }
  return otherwise;
}

bool bool_at(const Value& value, Path path, bool otherwise) {
  const Value* found = find(value, path);
  const bool* flag = found == nullptr ? nullptr : found->if_bool();
  return flag == nullptr ? otherwise : *flag;
}

const Object* object_at(const Value& value, Path path) {
  const Value* found = find(value, path);
  return found == nullptr ? nullptr : found->if_object();
}

const Array* array_at(const Value& value, Path path) {
  const Value* found = find(value, path);
  return found == nullptr ? nullptr : found->if_array();
}

void set_at(Value& value, Path path, Value member) {
  Value* at = &value;
  for (const std::string_view name : path) {
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[name];
  }
  *at = std::move(member);
}

void erase_at(Value& value, Path path) {
  if (path.size() == 0) return;
  Value* at = &value;
  for (const std::string_view& name : path) {
    Object* object = at->if_object();
    if (object == nullptr) return;
    if (&name == path.end() - 1) {
      // Stable, so that the remaining members keep their order.
      if (auto* found = object->find(name); found != object->end()) object->stable_erase(found);
      return;
    }
    at = object->if_contains(name);
    if (at == nullptr) return;
  }
}

void sort_keys(Value& value) {
  if (Array* array = value.if_array()) {
    for (Value& item : *array)
      sort_keys(item);
    return;
  }
  Object* object = value.if_object();
  if (object == nullptr) return;
  std::vector<std::string_view> keys;
  keys.reserve(object->size());
  for (const auto& member : *object)
    keys.emplace_back(member.key());
  std::ranges::sort(keys);
  Object sorted;
  sorted.reserve(object->size());
  for (const std::string_view key : keys) {
    Value& member = sorted[key];
    member = std::move(object->at(key));
    sort_keys(member);
  }
  *object = std::move(sorted);
}

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return equal_numbers(left, right);
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case bj::kind::array: {
      const auto same = [](const Value& one, const Value& other) { return equal(one, other); };
      return std::ranges::equal(left.get_array(), right.get_array(), same);
    }
    case bj::kind::object: {
      const Object& other = right.get_object();
      return left.get_object().size() == other.size() &&
             std::ranges::all_of(left.get_object(), [&other](const auto& member) {
               const Value* found = other.if_contains(member.key());
               return found != nullptr && equal(member.value(), *found);
             });
    }
    case bj::kind::string:
      return left.get_string() == right.get_string();
    case bj::kind::bool_:
      return left.get_bool() == right.get_bool();
    default:
      return true;  // null; numbers are compared above.
  }
}

}  // namespace hangar::json
