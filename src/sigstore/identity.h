// The identities whose keyless signatures a rule accepts: subjects of certificates, and the OIDC
// issuers that have vouched for them. The terms are those of cosign and of Sigstore's
// policy controller.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::sigstore {

// Size of a subject or an issuer. The longest usual ones are references of workflows.
inline constexpr std::size_t kIdentityBytesMax = 1024;

// True for a text that may be a subject or an issuer: no control characters, not empty, not longer
// than kIdentityBytesMax.
[[nodiscard]] bool is_identity(std::string_view text);

// A text, or a regular expression that must match a whole text.
class IdentityPattern {
 public:
  [[nodiscard]] static Result<IdentityPattern> exact(std::string text);
  // The subset in which the extended regular expressions of POSIX and those of Go (cosign's) mean
  // the same, between ^ and $. InvalidInput for everything else; the message says what to write.
  [[nodiscard]] static Result<IdentityPattern> regexp(std::string text);

  // `text` is_identity().
  [[nodiscard]] bool fits(std::string_view text) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_regexp() const { return is_regexp_; }

 private:
  IdentityPattern(std::string text, bool is_regexp)
      : text_(std::move(text)), is_regexp_(is_regexp) {}

  std::string text_;
  bool is_regexp_;
};

struct Identity {
  IdentityPattern issuer;
  IdentityPattern subject;
};

}  // namespace hangar::sigstore
