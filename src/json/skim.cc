#include "json/skim.h"

#include "base/result.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::json {

namespace {

// The API server takes JSON of 10,000 levels (sigs.k8s.io/json), and sends it within a list or an
// event. Whoever may create one object that the host cannot read would end its watches of that
// kind.
constexpr std::uint32_t kNestingMax = 10'240;

// The containers around a value, one bit each: whether it is an object.
class Levels {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] bool is_object() const { return (inner_ & 1U) != 0; }
  void push(bool is_object_in) {
    if (count_ > 0 && count_ % kBits == 0) outer_.push_back(std::exchange(inner_, 0));
    inner_ = inner_ << 1U | (is_object_in ? 1U : 0U);
    ++count_;
  }
  void pop() {
    inner_ >>= 1U;
    --count_;
    if (count_ == 0 || count_ % kBits != 0) return;
    inner_ = outer_.back();
    outer_.pop_back();
  }

 private:
  static constexpr std::uint32_t kBits = 64;

  std::uint32_t count_ = 0;
  std::uint64_t inner_ = 0;           // The innermost ones, the last one lowest.
  std::vector<std::uint64_t> outer_;  // The others, by 64. Usually none.
};

bool is_number_digit(char character) {
  return character >= '0' && character <= '9';
}

bool is_blank(char character) {
  return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

int hex_digit(char character) {
  if (is_number_digit(character)) return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

// Four hexadecimal digits, or -1.
int hex_code(const char* digits) {
  int code = 0;
  for (int index = 0; index < 4; ++index) {
    const int digit = hex_digit(digits[index]);
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

bool is_high_surrogate(int code) {
  return code >= 0xD800 && code <= 0xDBFF;
}
bool is_low_surrogate(int code) {
  return code >= 0xDC00 && code <= 0xDFFF;
}

// How many of the eight bytes, from the first, may appear in a string unescaped: ASCII, no control
// character, no quote, no backslash. Bit tricks instead of comparisons: nearly all bytes of a list
// are read here.
int plain_count(std::uint64_t bytes) {
  static_assert(std::endian::native == std::endian::little, "the first byte is the lowest");
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  const std::uint64_t quote = bytes ^ (kOnes * '"');
  const std::uint64_t backslash = bytes ^ (kOnes * '\\');
  // Borrows may mark bytes after the first special one, never before it.
  const std::uint64_t special =
      (bytes | (bytes - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes)) & kHighs;
  return std::countr_zero(special) / 8;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto add = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3F));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

}  // namespace

Skim::Skim(std::string_view text, std::uint32_t depth)
    : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), depth_(depth) {}

Skim::Members Skim::object() {
  if (!take('{')) refuse("expected an object");
  ++depth_;
  return {};
}

Skim::Members Skim::array() {
  if (!take('[')) refuse("expected an array");
  ++depth_;
  return {};
}

std::optional<std::string_view> Skim::next_key(Members& members) {
  if (take('}')) {
    --depth_;
    return std::nullopt;
  }
  if (!members.first && !take(',')) refuse("expected ',' or '}'");
  members.first = false;
  skip_blanks();
  const char* const quote = at_;
  if (!pass_string()) return std::nullopt;
  const std::string_view key(quote + 1, static_cast<std::size_t>(at_ - quote - 2));
  if (!take(':')) {
    refuse("expected ':'");
    return std::nullopt;
  }
  return key;
}

bool Skim::next_element(Members& members) {
  if (take(']')) {
    --depth_;
    return false;
  }
  if (!members.first && !take(',')) refuse("expected ',' or ']'");
  members.first = false;
  return !is_failed();
}

std::string_view Skim::value() {
  skip_blanks();
  const char* const start = at_;
  if (!pass_value()) return {};
  return {start, static_cast<std::size_t>(at_ - start)};
}

std::string_view Skim::raw_string() {
  if (skip_null()) return {};
  const char* const quote = at_;
  if (!pass_string()) return {};
  return {quote + 1, static_cast<std::size_t>(at_ - quote - 2)};
}

std::string Skim::string() {
  return unescape(raw_string());
}

char Skim::peek() {
  skip_blanks();
  return is_failed() || at_ == end_ ? '\0' : *at_;
}

bool Skim::skip_null() {
  return peek() == 'n' && pass_word("null");
}

Result<> Skim::finish() {
  // The newline that Go's encoder appends does not make the text less compact.
  const bool saw_blanks = saw_blanks_;
  skip_blanks();
  saw_blanks_ = saw_blanks;
  if (at_ != end_) refuse("expected the end");
  return status();
}

Result<> Skim::status() const {
  if (!is_failed()) return {};
  return fail(ErrorKind::InvalidInput, fmt::format("json: {} at byte {}", mistake_, offset()));
}

void Skim::refuse(const char* mistake) {
  if (mistake_ == nullptr) mistake_ = mistake;
}

void Skim::skip_blanks() {
  while (at_ != end_ && is_blank(*at_)) {
    ++at_;
    saw_blanks_ = true;
  }
}

bool Skim::take(char wanted) {
  if (is_failed()) return false;
  skip_blanks();
  if (at_ == end_ || *at_ != wanted) return false;
  ++at_;
  return true;
}

bool Skim::pass_value() {
  if (is_failed()) return false;
  skip_blanks();
  if (at_ == end_) {
    refuse("expected a value");
    return false;
  }
  switch (*at_) {
    case '{':
      return pass_container('}');
    case '[':
      return pass_container(']');
    case '"':
      return pass_string();
    case 't':
      return pass_word("true");
    case 'f':
      return pass_word("false");
    case 'n':
      return pass_word("null");
    default:
      return pass_number();
  }
}

// A loop, not a recursion: whoever writes the text decides how deep it is. Each turn is at a value,
// or (`is_closed`) behind a container that has ended.
// NOLINTNEXTLINE(misc-no-recursion): pass_value() passes no container here.
bool Skim::pass_container(char close) {
  Levels levels;
  const auto pass_key = [this] {
    skip_blanks();
    if (!pass_string()) return false;
    if (take(':')) return true;
    refuse("expected ':'");
    return false;
  };
  for (bool is_closed = false;;) {
    if (is_closed) {
      --depth_;
      levels.pop();
      if (levels.empty()) return true;
      close = levels.is_object() ? '}' : ']';
    } else if (const char first = peek(); first == '{' || first == '[') {
      ++at_;
      if (++depth_ >= kNestingMax) {
        refuse("nested too deep");
        return false;
      }
      close = first == '{' ? '}' : ']';
      levels.push(first == '{');
      is_closed = take(close);
      if (!is_closed && close == '}' && !pass_key()) return false;
      continue;
    } else if (!pass_value()) {
      return false;
    }
    if (take(',')) {
      is_closed = false;
      if (close == '}' && !pass_key()) return false;
    } else if (take(close)) {
      is_closed = true;
    } else {
      refuse(close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
      return false;
    }
  }
}

bool Skim::pass_string() {
  if (is_failed()) return false;
  if (at_ == end_ || *at_ != '"') {
    refuse("expected a string");
    return false;
  }
  ++at_;
  while (true) {
    std::uint64_t word = 0;
    while (end_ - at_ >= 8) {
      std::memcpy(&word, at_, sizeof word);
      const int count = plain_count(word);
      at_ += count;
      if (count < 8) break;
    }
    if (at_ == end_) {
      refuse("a string does not end");
      return false;
    }
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte == '"') {
      ++at_;
      return true;
    }
    if (byte == '\\') {
      if (!pass_escape()) return false;
    } else if (byte < 0x20) {
      refuse("a control character in a string");
      return false;
    } else if (byte >= 0x80) {
      if (!pass_utf8()) return false;
    } else {
      ++at_;
    }
  }
}

bool Skim::pass_escape() {
  const auto code_at = [this](std::ptrdiff_t offset) {
    return end_ - at_ >= offset + 6 && at_[offset] == '\\' && at_[offset + 1] == 'u'
               ? hex_code(at_ + offset + 2)
               : -1;
  };
  if (end_ - at_ >= 2 && at_[1] != 'u') {
    if (std::string_view("\"\\/bfnrt").find(at_[1]) != std::string_view::npos) {
      at_ += 2;
      return true;
    }
  } else if (const int code = code_at(0); code >= 0) {
    if (!is_high_surrogate(code) && !is_low_surrogate(code)) {
      at_ += 6;
      return true;
    }
    if (is_high_surrogate(code) && is_low_surrogate(code_at(6))) {
      at_ += 12;
      return true;
    }
  }
  refuse("a bad escape in a string");
  return false;
}

bool Skim::pass_utf8() {
  const auto byte = [this](std::ptrdiff_t offset) {
    return end_ - at_ > offset ? static_cast<unsigned char>(at_[offset]) : 0U;
  };
  const auto is_tail = [&byte](std::ptrdiff_t offset) { return (byte(offset) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  // Overlong forms, surrogates and code points past U+10FFFF show in the first two bytes.
  if (first >= 0xC2 && first <= 0xDF && is_tail(1)) {
    at_ += 2;
    return true;
  }
  if (first >= 0xE0 && first <= 0xEF && is_tail(1) && is_tail(2) &&
      !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F)) {
    at_ += 3;
    return true;
  }
  if (first >= 0xF0 && first <= 0xF4 && is_tail(1) && is_tail(2) && is_tail(3) &&
      !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F)) {
    at_ += 4;
    return true;
  }
  refuse("a string is not UTF-8");
  return false;
}

bool Skim::pass_number() {
  const char* const start = at_;
  std::ptrdiff_t exponent = 0;
  const auto digits = [this] {
    const char* const first = at_;
    while (at_ != end_ && is_number_digit(*at_))
      ++at_;
    return at_ - first;
  };
  if (at_ != end_ && *at_ == '-') ++at_;
  const bool leading_zero = at_ != end_ && *at_ == '0';
  const std::ptrdiff_t whole = digits();
  bool good = whole == 1 || (whole > 1 && !leading_zero);
  std::ptrdiff_t magnitude = whole;  // About so many digits before the point.
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    good = digits() > 0 && good;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    const bool is_small = at_ != end_ && *at_ == '-';
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    // No number that a computer stores has a longer exponent, and parsers disagree about such.
    const std::ptrdiff_t size = digits();
    good = size > 0 && size <= 3 && good;
    for (const char* digit = at_ - size; good && digit != at_; ++digit)
      exponent = exponent * 10 + (*digit - '0');
    magnitude += is_small ? -exponent : exponent;
  }
  if (good && magnitude > std::numeric_limits<double>::max_exponent10) {
    double number = 0;
    good = std::from_chars(start, at_, number).ec == std::errc();
  }
  if (!good) refuse("a bad value");
  return good;
}

bool Skim::pass_word(std::string_view word) {
  if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) {
    at_ += word.size();
    return true;
  }
  refuse("a bad value");
  return false;
}

std::string unescape(std::string_view raw) {
  std::size_t escape = raw.find('\\');
  if (escape == std::string_view::npos) return std::string(raw);
  std::string text;
  text.reserve(raw.size());
  while (escape != std::string_view::npos) {
    text += raw.substr(0, escape);
    raw.remove_prefix(escape);
    switch (raw[1]) {
      case 'b':
        text += '\b';
        break;
      case 'f':
        text += '\f';
        break;
      case 'n':
        text += '\n';
        break;
      case 'r':
        text += '\r';
        break;
      case 't':
        text += '\t';
        break;
      case 'u': {
        const int code = hex_code(raw.data() + 2);
        if (is_high_surrogate(code)) {
          const int low = hex_code(raw.data() + 8);
          append_utf8(
              text, static_cast<std::uint32_t>(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)));
          raw.remove_prefix(10);
        } else {
          append_utf8(text, static_cast<std::uint32_t>(code));
          raw.remove_prefix(4);
        }
        break;
      }
      default:
        text += raw[1];
    }
    raw.remove_prefix(2);
    escape = raw.find('\\');
  }
  text += raw;
  return text;
}

std::string compact(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    if (in_string && character == '\\') {
      out += character;
      out += text[++index];
      continue;
    }
    if (character == '"') in_string = !in_string;
    if (in_string || !is_blank(character)) out += character;
  }
  return out;
}

}  // namespace hangar::json
