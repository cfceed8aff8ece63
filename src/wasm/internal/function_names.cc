#include "wasm/internal/function_names.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::wasm::internal {

namespace {

// A longer name is cut first: messages show less.
constexpr std::size_t kMangledBytesMax = 1024;

// Reads "3foo": a length and that many characters. Moves `text` past it.
std::optional<std::string_view> take_identifier(std::string_view& text) {
  std::size_t length = 0;
  std::size_t digits = 0;
  while (digits < text.size() && digits < 5 && text[digits] >= '0' && text[digits] <= '9') {
    length = 10 * length + static_cast<std::size_t>(text[digits] - '0');
    ++digits;
  }
  if (digits == 0 || length == 0 || length > text.size() - digits) return std::nullopt;
  const std::string_view identifier = text.substr(digits, length);
  text.remove_prefix(digits + length);
  return identifier;
}

// The hash at the end of Rust's names: h and 16 hexadecimal digits.
bool is_rust_hash(std::string_view identifier) {
  return identifier.size() == 17 && identifier[0] == 'h' &&
         identifier.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

// What Rust writes as "$LT$" or "$u7b$": `escape` is the part between the dollars.
std::optional<char> rust_character(std::string_view escape) {
  constexpr std::array<std::pair<std::string_view, char>, 8> kEscapes{{{"SP", '@'},
                                                                       {"BP", '*'},
                                                                       {"RF", '&'},
                                                                       {"LT", '<'},
                                                                       {"GT", '>'},
                                                                       {"LP", '('},
                                                                       {"RP", ')'},
                                                                       {"C", ','}}};
  for (const auto& [name, character] : kEscapes) {
    if (escape == name) return character;
  }
  if (!escape.starts_with('u')) return std::nullopt;
  unsigned value = 0;
  const char* const end = escape.data() + escape.size();
  const auto [read, error] = std::from_chars(escape.data() + 1, end, value, 16);
  if (error != std::errc() || read != end || value < 0x20 || value > 0x7e) return std::nullopt;
  return static_cast<char>(value);
}

std::string rust_identifier(std::string_view identifier) {
  constexpr std::size_t kEscapeBytesMax = 5;  // "u7e" and both dollars.
  if (identifier.starts_with("_$")) identifier.remove_prefix(1);
  std::string text;
  while (!identifier.empty()) {
    if (identifier.starts_with("..")) {
      text += "::";
      identifier.remove_prefix(2);
      continue;
    }
    if (identifier.starts_with('$')) {
      const std::size_t end = identifier.substr(0, kEscapeBytesMax).find('$', 1);
      const auto character = end == std::string_view::npos
                                 ? std::nullopt
                                 : rust_character(identifier.substr(1, end - 1));
      if (character) {
        text += *character;
        identifier.remove_prefix(end + 1);
        continue;
      }
    }
    text += identifier.front();
    identifier.remove_prefix(1);
  }
  return text;
}

// The path of C++, and of Rust with its older names, which end in a hash.
std::optional<std::string> nested_path(std::string_view name) {
  const bool is_nested = name.starts_with('N');
  if (is_nested) name.remove_prefix(1);
  while (is_nested && name.starts_with('K'))
    name.remove_prefix(1);  // Marks a const member function.
  std::string path;
  std::string in_rust;
  while (const auto identifier = take_identifier(name)) {
    if (is_rust_hash(*identifier)) {
      path = std::move(in_rust);
      break;
    }
    if (!path.empty()) {
      path += "::";
      in_rust += "::";
    }
    path += *identifier;
    in_rust += rust_identifier(*identifier);
    if (!is_nested) break;
  }
  if (path.empty()) return std::nullopt;
  return path;
}

// The path of Rust's newer names, if it has only modules and functions: methods and instances of
// generic functions repeat earlier parts by their positions.
std::optional<std::string> rust_path(std::string_view name) {
  std::size_t identifiers = 1;
  while (name.size() >= 2 && name.starts_with('N')) {
    name.remove_prefix(2);
    ++identifiers;
  }
  if (!name.starts_with('C')) return std::nullopt;
  name.remove_prefix(1);
  std::string path;
  for (; identifiers > 0; --identifiers) {
    if (name.starts_with('s')) {  // Tells parts of the same name apart.
      const std::size_t end = name.find('_');
      if (end == std::string_view::npos) return std::nullopt;
      name.remove_prefix(end + 1);
    }
    if (!path.empty()) path += "::";
    if (name.starts_with('0')) {
      path += "{closure}";
      name.remove_prefix(1);
      continue;
    }
    const auto identifier = take_identifier(name);
    if (!identifier) return std::nullopt;
    path += *identifier;
  }
  return path;
}

// Go's linker writes "Cache[go.shape.int]" as "Cache_go.shape.int_".
constexpr std::string_view kGoArguments = "_go.shape.";

std::string without_go_arguments(std::string_view name) {
  const std::size_t begin = name.find(kGoArguments);
  if (begin == std::string_view::npos) return std::string(name);
  const std::size_t end = name.rfind('_');
  if (end == begin) return std::string(name);
  return std::string(name.substr(0, begin)) + "[...]" + std::string(name.substr(end + 1));
}

// Go's linker writes "main.(*Cache).Get" as "main.__Cache_.Get".
std::string go_name(std::string_view name) {
  constexpr std::string_view kBegin = ".__";
  constexpr std::string_view kEnd = "_.";
  const std::size_t begin = name.find(kBegin);
  if (begin == std::string_view::npos || begin == 0) return without_go_arguments(name);
  const std::string_view rest = name.substr(begin + kBegin.size());
  std::size_t end = rest.find(kEnd);
  if (end == std::string_view::npos || end == 0) return without_go_arguments(name);
  if (rest.find(kGoArguments) <= end) end = rest.rfind(kEnd);
  return std::string(name.substr(0, begin)) + ".(*" + without_go_arguments(rest.substr(0, end)) +
         ")" + std::string(rest.substr(end + 1));
}

}  // namespace

std::string readable_name(std::string_view name) {
  name = name.substr(0, kMangledBytesMax);
  std::optional<std::string> path;
  if (name.starts_with("_Z")) path = nested_path(name.substr(2));
  if (name.starts_with("_R")) path = rust_path(name.substr(2));
  return path ? *std::move(path) : go_name(name);
}

}  // namespace hangar::wasm::internal
