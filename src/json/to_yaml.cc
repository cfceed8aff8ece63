#include "json/internal/parse.h"
#include "json/internal/scalar.h"
#include "json/value.h"
#include "json/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::json {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Dates (1.1's timestamps) and 1:30 (1.1's numbers of base 60), which other readers resolve.
bool looks_like_time(std::string_view text) {
  if (!is_digit(text.front()) && text.front() != '-' && text.front() != '+') return false;
  if (text.contains(':')) return true;
  return text.size() >= 8 && std::ranges::all_of(text.substr(0, 4), is_digit) && text[4] == '-' &&
         is_digit(text[5]);
}

// Stricter than YAML: unnecessary quotes do no harm, a string that is read as another type does.
bool is_plain(std::string_view text) {
  if (text.empty()) return false;
  constexpr std::string_view kFirst = "_/.$(^+-";
  constexpr std::string_view kInside = "_/.$()^+-=:#@,;%*&!?<>|~'[]{} ";
  const char first = text.front();
  if (!is_letter(first) && !is_digit(first) && !kFirst.contains(first)) return false;
  const bool known = std::ranges::all_of(
      text, [kInside](char c) { return is_letter(c) || is_digit(c) || kInside.contains(c); });
  if (!known || text.starts_with("- ") || text == "-" || text.starts_with("---") ||
      text.starts_with("...") || text.contains(": ") || text.contains(" #") ||
      text.ends_with(':') || text.ends_with(' ')) {
    return false;
  }
  return !looks_like_time(text) && internal::resolve_plain(text).kind == internal::ScalarKind::Text;
}

// A literal block shows scripts and configuration as people wrote them. It cannot contain control
// characters, nor can a reader find its indentation when the text begins with white space.
bool is_block(std::string_view text) {
  if (!text.contains('\n') || text.front() == ' ' || text.front() == '\n') return false;
  if (text.contains(" \n") || text.ends_with(' '))
    return false;  // Trailing blanks would be
                   // invisible.
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\n' || (byte >= 0x20 && byte < 0x7f);
  });
}

void append_indent(std::string& out, std::size_t indent) {
  out.append(indent, ' ');
}

void append_block(std::string& out, std::string_view text, std::size_t indent) {
  out += text.ends_with("\n\n") ? "|+" : text.ends_with('\n') ? "|" : "|-";
  if (text.ends_with('\n')) text.remove_suffix(1);
  while (true) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    out += '\n';
    if (!line.empty()) append_indent(out, indent);
    out += line;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

// These need more than two hexadecimal digits: DEL, C1 controls, NEL, line and paragraph separators
// and the byte order mark, which readers may drop or take for line ends.
std::string escape_unprintable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    std::size_t size = 1;
    if (byte == 0x7f) {
      out += "\\u007f";
    } else if (byte == 0xc2 && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xa0) {
      out += fmt::format("\\u00{:02x}", static_cast<unsigned char>(text[1]));
      size = 2;
    } else if (text.starts_with("\u2028") || text.starts_with("\u2029")) {
      out += text.starts_with("\u2028") ? "\\u2028" : "\\u2029";
      size = 3;
    } else if (text.starts_with("\ufeff")) {
      out += "\\ufeff";
      size = 3;
    } else {
      out += text.front();
    }
    text.remove_prefix(size);
  }
  return out;
}

void append_string(std::string& out, std::string_view text, std::size_t indent) {
  if (is_plain(text)) {
    out += text;
  } else if (is_block(text)) {
    append_block(out, text, indent);
  } else {
    std::string quoted;
    internal::append_quoted(quoted, text);
    out += escape_unprintable(quoted);
  }
}

// Appends the key with its colon. A key longer than YAML's bound for simple keys takes the form "?
// key" above ":".
void append_key(std::string& out, std::string_view key, std::size_t indent) {
  constexpr std::size_t kSimpleKeyMax = 1000;
  std::string text;
  if (is_plain(key)) {
    text = key;
  } else {
    std::string quoted;
    internal::append_quoted(quoted, key);
    text = escape_unprintable(quoted);
  }
  if (text.size() <= kSimpleKeyMax) {
    out += text;
  } else {
    out += "? " + text + '\n';
    append_indent(out, indent);
  }
  out += ':';
}

// `indent`: the column of the members of a container that begins here. `after` says whether the
// cursor is behind "key:" or "-", or at the beginning of the text.
enum class After : std::uint8_t { Nothing, Key, Dash };

void append(std::string& out, const Value& value, std::size_t indent, After after) {
  const auto* object = value.if_object();
  const auto* array = value.if_array();
  if (object != nullptr && !object->empty()) {
    bool inline_first = after == After::Dash;
    if (inline_first) out += ' ';
    if (after == After::Key) out += '\n';
    for (const auto& member : *object) {
      if (!inline_first) append_indent(out, indent);
      inline_first = false;
      append_key(out, member.key(), indent);
      // Items of an array stand below their key without a further indent, as kubectl writes them.
      append(out, member.value(), member.value().is_array() ? indent : indent + 2, After::Key);
    }
    return;
  }
  if (array != nullptr && !array->empty()) {
    bool inline_first = after == After::Dash;
    if (inline_first) out += ' ';
    if (after == After::Key) out += '\n';
    for (const Value& item : *array) {
      if (!inline_first) append_indent(out, indent);
      inline_first = false;
      out += '-';
      append(out, item, indent + 2, After::Dash);
    }
    return;
  }
  if (after != After::Nothing) out += ' ';
  if (const String* text = value.if_string()) {
    append_string(out, *text, indent == 0 ? 2 : indent);
  } else {
    out += dump(value);  // Both formats write numbers, booleans, null, {} and [] alike.
  }
  out += '\n';
}

}  // namespace

std::string to_yaml(const Value& value) {
  std::string out;
  append(out, value, 0, After::Nothing);
  return out;
}

}  // namespace hangar::json
