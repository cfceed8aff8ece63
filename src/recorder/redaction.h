// Takes what looks secret out of the bodies of requests before they are written. Pure.
//
// A value looks secret by the name that leads to it: its key, the `name` beside an environment's
// `value`, the `path` of a JSON patch, or the text around it in files and command lines that are
// values themselves. A value under a name that says nothing is not recognised.
#pragma once

#include "base/random.h"
#include "recorder/record.h"

#include <string>
#include <string_view>

namespace hangar::recorder {

// Whether a value under that key is left out: the key has one of the words of a list, in any case,
// with or without separators (`API_KEY`, `apiKey`, `api-key`).
[[nodiscard]] bool looks_secret(std::string_view key);

struct RedactedBody {
  BodyState state = BodyState::Whole;
  std::string text;  // As Body::text.
};

// Any thread, one at a time.
class Redactor {
 public:
  // Equal values are replaced by the same text if they are redacted with the same key. Without the
  // key nobody can try values until one fits.
  explicit Redactor(const RandomKey& key);

  // JSON, or YAML of at most kBodyYamlBytesMax. Secret values of any type become
  // "hmac:0123456789abcdef".
  [[nodiscard]] RedactedBody redact(std::string_view body) const;

 private:
  const std::string key_;
};

}  // namespace hangar::recorder
