#include "sigstore/identity.h"

#include "base/invalid.h"
#include "base/number.h"
#include "base/result.h"
#include "base/utf8.h"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::sigstore {

namespace {

constexpr std::string_view kAnchors =
    "must begin with ^ and end with $: without them it fits longer names, too";

// Compiles the expression for one match. A compiled expression keeps state about the texts that it
// has seen in memory, and strangers choose these texts.
class Matcher {
 public:
  explicit Matcher(const std::string& pattern)
      : status_(::regcomp(&compiled_, pattern.c_str(), REG_EXTENDED | REG_NOSUB)) {}
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  ~Matcher() {
    if (status_ == 0) ::regfree(&compiled_);
  }

  [[nodiscard]] std::string error() const {
    if (status_ == 0) return {};
    std::array<char, 128> text{};
    ::regerror(status_, &compiled_, text.data(), text.size());
    return text.data();
  }
  [[nodiscard]] bool fits(const std::string& text) const {
    return status_ == 0 && ::regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_{};
  int status_;
};

// The index of the closing bracket of the bracket expression at `at`.
std::size_t end_of_brackets(std::string_view text, std::size_t at) {
  ++at;
  if (at < text.size() && text[at] == '^') ++at;
  // A bracket in first place is a character of the set.
  if (at < text.size() && text[at] == ']') ++at;
  while (at < text.size() && text[at] != ']') {
    if (text.substr(at, 2) == "[:") {
      const std::size_t end = text.find(":]", at + 2);
      if (end == std::string_view::npos) return text.size();
      at = end + 1;
    }
    ++at;
  }
  return at;
}

// "{3}", "{1,}" or "{1,20}". Larger numbers take memory.
bool is_number_of_times(std::string_view text) {
  constexpr unsigned kTimesMax = 255;
  constexpr std::size_t kDigitsMax = 3;
  const auto is_number = [](std::string_view digits) {
    const auto number = parse_number<unsigned>(digits);
    return number && digits.size() <= kDigitsMax && *number <= kTimesMax;
  };
  if (text.size() < 3 || !text.starts_with('{') || !text.ends_with('}')) return false;
  text = text.substr(1, text.size() - 2);
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return is_number(text);
  const std::string_view most = text.substr(comma + 1);
  return is_number(text.substr(0, comma)) && (most.empty() || is_number(most));
}

// Why the expression, which ends with a dollar sign, may have another meaning for cosign; empty:
// the same meaning. Refuses extensions of the C library, such as \< or an unmatched parenthesis.
std::string_view difference_in(std::string_view text) {
  constexpr std::string_view kAlternatives =
      "has | outside of parentheses: write ^(one|another)$, so that ^ and $ are for both";
  constexpr std::string_view kParentheses = "has a parenthesis without its other one";
  // The kind of the preceding token, which decides whether a repetition may follow.
  enum class Before : std::uint8_t { Nothing, Something, Group, Repetition };
  Before before = Before::Nothing;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    Before next = Before::Something;
    switch (letter) {
      case '\\': {
        // The last character is a dollar sign.
        if (++at + 1 == text.size()) return kAnchors;
        const char escaped = text[at];
        if ((escaped | 0x20) >= 'a' && (escaped | 0x20) <= 'z') {
          return "has a backslash before a letter: write [0-9] instead of \\d, [0-9A-Za-z_] "
                 "instead of \\w";
        }
        if (escaped >= '0' && escaped <= '9') return "has a backslash before a digit";
        if (std::string_view("<>'`").contains(escaped)) {
          return "has a backslash before <, >, ' or `: write these without one";
        }
        break;
      }
      case '[': {
        const std::size_t end = end_of_brackets(text, at);
        const std::string_view set = text.substr(at, end - at);
        if (set.contains('\\')) {
          return "has a backslash in brackets: write [.] instead of [\\.], [0-9] instead of [\\d]";
        }
        if (set.contains("[.") || set.contains("[=")) return "has [. or [= in brackets";
        at = end;
        break;
      }
      case '(':
        if (text.substr(at, 2) == "(?") return "has (?...): write plain parentheses";
        ++depth;
        next = Before::Nothing;
        break;
      case ')':
        if (--depth < 0) return kParentheses;
        next = Before::Group;
        break;
      case '*':
      case '+':
      case '?':
      case '{':
        if (before == Before::Nothing) return "has a repetition of nothing";
        if (before == Before::Repetition) {
          return "has two repetitions in a row, such as *? or ++";
        }
        if (letter == '{') {
          const std::size_t end = std::min(text.find('}', at), text.size() - 1);
          if (before == Before::Group || !is_number_of_times(text.substr(at, end + 1 - at))) {
            return "has a { that is not a repetition of one character up to {255}: write \\{ for "
                   "the character";
          }
          at = end;
        }
        next = Before::Repetition;
        break;
      case '|':
        if (depth == 0) return kAlternatives;
        next = Before::Nothing;
        break;
      case '^':
        next = Before::Nothing;
        break;
      default:
        if (letter < ' ' || letter > '~') return "has characters that are not ASCII";
        break;
    }
    before = next;
  }
  return depth == 0 ? std::string_view() : kParentheses;
}

}  // namespace

bool is_identity(std::string_view text) {
  return !text.empty() && text.size() <= kIdentityBytesMax &&
         valid_utf8_prefix(text) == text.size() && std::ranges::none_of(text, [](char letter) {
           const auto code = static_cast<unsigned char>(letter);
           return code < 0x20 || code == 0x7f;
         });
}

Result<IdentityPattern> IdentityPattern::exact(std::string text) {
  if (!is_identity(text)) {
    return invalid(
        fmt::format("must have 1 to {} bytes, without control characters", kIdentityBytesMax));
  }
  return IdentityPattern(std::move(text), false);
}

Result<IdentityPattern> IdentityPattern::regexp(std::string text) {
  if (!is_identity(text)) {
    return invalid(
        fmt::format("must have 1 to {} bytes, without control characters", kIdentityBytesMax));
  }
  if (text.size() < 2 || !text.starts_with('^') || !text.ends_with('$')) {
    return invalid(std::string(kAnchors));
  }
  if (const std::string_view why = difference_in(text); !why.empty()) {
    return invalid(std::string(why));
  }
  if (const std::string why = Matcher(text).error(); !why.empty()) {
    return invalid(fmt::format("is not a regular expression: {}", why));
  }
  return IdentityPattern(std::move(text), true);
}

bool IdentityPattern::fits(std::string_view text) const {
  if (!is_regexp_) return text == text_;
  return is_identity(text) && Matcher(text_).fits(std::string(text));
}

}  // namespace hangar::sigstore
