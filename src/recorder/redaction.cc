#include "recorder/redaction.h"

#include "base/digest.h"
#include "base/result.h"
#include "base/text.h"
#include "base/utf8.h"
#include "json/value.h"
#include "json/yaml.h"
#include "recorder/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::recorder {

namespace {

// Without separators, in lower case.
constexpr std::string_view kWords[] = {
    "password",         "passwd",    "passphrase",      "token",      "secret",
    "apikey",           "accesskey", "privatekey",      "credential", "authorization",
    "connectionstring", "dockercfg", "dockerconfigjson"};

// JSON in texts of JSON in texts; deeper ones are replaced as a whole.
constexpr int kNestedMax = 3;

constexpr bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

// Without what separates words.
std::string folded(std::string_view key) {
  std::string text;
  text.reserve(key.size());
  for (const char letter : key) {
    const char lower = to_lower(letter);
    if (is_letter_or_digit(lower)) text += lower;
  }
  return text;
}

constexpr bool is_of_name(char letter) {
  return is_letter_or_digit(to_lower(letter)) || letter == '_' || letter == '-' || letter == '.';
}

// `name` ends where `rest` begins. "--password x", "password=x", "password: x", "\"password\": x",
// "<password>x".
bool has_value(std::string_view name, std::string_view rest) {
  if (rest.empty()) return false;
  if (name.starts_with('-') && (rest.front() == ' ' || rest.front() == '\t')) return true;
  const std::size_t separator = rest.find_first_not_of("\\\"' \t]");
  return separator != std::string_view::npos &&
         (rest[separator] == '=' || rest[separator] == ':' || rest[separator] == '>');
}

// "https://user:password@host".
bool has_login(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  for (std::size_t at = text.find(kScheme); at != std::string_view::npos;
       at = text.find(kScheme, at + 1)) {
    const std::string_view rest = text.substr(at + kScheme.size());
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?# \t\r\n\"'"));
    const std::size_t end = authority.rfind('@');
    if (end != std::string_view::npos && authority.substr(0, end).contains(':')) return true;
  }
  return false;
}

// Whether a text that is no JSON has a secret: a file of properties, a command line, a URL, a key.
bool has_secret(std::string_view text) {
  if (text.contains("PRIVATE KEY-----") || has_login(text)) return true;
  // A JSON web token, and what follows a scheme of the header Authorization.
  if (text.starts_with("eyJ") && text.contains('.')) return true;
  const std::string scheme = to_lower(text.substr(0, 7));
  if (scheme.starts_with("bearer ") || scheme.starts_with("basic ")) return true;
  while (!text.empty()) {
    const auto begin = std::ranges::find_if(text, is_of_name);
    text.remove_prefix(static_cast<std::size_t>(begin - text.begin()));
    const auto end = std::ranges::find_if_not(text, is_of_name);
    const std::string_view name = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(name.size());
    if (has_value(name, text) && looks_secret(name)) return true;
  }
  return false;
}

bool is_flag(std::string_view argument) {
  return argument.starts_with('-') && !argument.contains('=') && looks_secret(argument);
}

// The texts at which an object names the value beside them: of an environment, a header or a
// parameter, and of a JSON patch.
bool names_secret(const json::Object& object) {
  for (const std::string_view key : {"name", "key"}) {
    const json::Value* const name = object.if_contains(key);
    if (name != nullptr && name->is_string() && looks_secret(name->get_string())) return true;
  }
  const json::Value* const path = object.if_contains("path");
  if (path == nullptr || !path->is_string()) return false;
  const std::string_view pointer = path->get_string();
  // The value of an entry whose name the patch does not have.
  return object.contains("op") && (looks_secret(pointer) || pointer.ends_with("/value"));
}

class Walk {
 public:
  explicit Walk(std::string_view key) : key_(key) {}

  void redact(json::Value& value, int nested) {
    if (json::Object* const object = value.if_object()) {
      const bool has_name = names_secret(*object);
      for (auto& member : *object) {
        const std::string_view key = member.key();
        const bool is_named = has_name && (key == "value" || key == "values");
        if (is_named || looks_secret(key)) {
          hide(member.value());
        } else {
          redact(member.value(), nested);
        }
      }
    } else if (json::Array* const array = value.if_array()) {
      bool is_argument = false;  // Of the flag before.
      for (json::Value& element : *array) {
        const bool is_hidden = is_argument && element.is_string();
        is_argument = element.is_string() && is_flag(element.get_string());
        if (is_hidden) {
          hide(element);
        } else {
          redact(element, nested);
        }
      }
    } else if (value.is_string()) {
      redact_text(value, nested);
    }
  }

 private:
  void redact_text(json::Value& value, int nested) {
    const std::string_view text = value.get_string();
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    const bool may_be_json =
        begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[');
    Result<json::Value> inner =
        may_be_json ? json::parse(text) : fail(ErrorKind::InvalidInput, "not an object or a list");
    if (!inner) {
      if (has_secret(text)) hide(value);
      return;
    }
    if (nested == kNestedMax) return hide(value);
    redact(*inner, nested + 1);
    value = json::dump(*inner);
  }

  // The type is part of what is hashed: the number 1 is not the text "1".
  void hide(json::Value& value) {
    constexpr std::size_t kHashBytes = 8;
    const Sha256Bytes hash = hmac_sha256(key_, {json::dump(value)});
    value = fmt::format("hmac:{}", to_hex(std::span(hash).first<kHashBytes>()));
  }

  const std::string_view key_;
};

void append_escaped(std::string& into, std::uint32_t unit) {
  fmt::format_to(std::back_inserter(into), "\\u{:04x}", unit);
}

// JSON of printable ASCII. Outside of texts a document has nothing else.
std::string in_ascii(std::string_view document) {
  std::string text;
  text.reserve(document.size());
  for (std::size_t at = 0; at < document.size();) {
    const auto lead = static_cast<unsigned char>(document[at]);
    if (lead >= 0x20 && lead < 0x7f) {
      text += document[at++];
      continue;
    }
    const std::size_t more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    std::uint32_t point = more == 0 ? lead : lead & (0x3fU >> more);
    for (std::size_t next = 1; next <= more && at + next < document.size(); ++next)
      point = point << 6U | (static_cast<unsigned char>(document[at + next]) & 0x3fU);
    if (point < 0x10000) {
      append_escaped(text, point);
    } else {
      append_escaped(text, 0xd800 + ((point - 0x10000) >> 10U));
      append_escaped(text, 0xdc00 + ((point - 0x10000) & 0x3ffU));
    }
    at += more + 1;
  }
  return text;
}

Result<json::Value> parsed(std::string_view body) {
  Result<json::Value> value = json::parse(body);
  if (value || body.size() > kBodyYamlBytesMax) return value;
  // Otherwise another format, such as Protobuf, might be read as YAML.
  if (body.contains('\0') || valid_utf8_prefix(body) != body.size()) return value;
  return json::parse_yaml(body, kBodyAliasBytesMax);
}

}  // namespace

bool looks_secret(std::string_view key) {
  const std::string text = folded(key);
  // Registries' logins.
  if (text == "auth") return true;
  return std::ranges::any_of(kWords,
                             [&text](std::string_view word) { return text.contains(word); });
}

Redactor::Redactor(const RandomKey& key)
    : key_(reinterpret_cast<const char*>(key.data()), key.size()) {}

RedactedBody Redactor::redact(std::string_view body) const {
  Result<json::Value> value = parsed(body);
  // A text alone has no key by which it could be judged.
  if (!value || !(value->is_object() || value->is_array())) return {.state = BodyState::Unreadable};
  Walk(key_).redact(*value, 0);
  RedactedBody redacted{.text = in_ascii(json::dump(*value))};
  if (redacted.text.size() > kBodyBytesMax) {
    redacted.text.resize(kBodyBytesMax);
    redacted.state = BodyState::Cut;
  }
  return redacted;
}

}  // namespace hangar::recorder
