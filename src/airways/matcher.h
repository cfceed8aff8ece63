// resourceAccessMatchers: what a flight may look up besides its own release.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hangar::airways {

// `[namespace/]Kind.group[:name]`: a part that is missing or `*` matches everything; any other is
// compared as a whole and case-sensitively. `*` alone matches every resource. A cluster-scoped
// resource has the namespace "" (`/Namespace:foo`), a core kind has no dot (`Secret`).
class Matcher {
 public:
  // InvalidInput for text that could never match: empty parts, wildcards within a part.
  [[nodiscard]] static Result<Matcher> parse(std::string_view text);

  [[nodiscard]] bool matches(const ResourceRef& ref) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  bool operator==(const Matcher&) const = default;

 private:
  Matcher() = default;

  std::string text_;
  // std::nullopt: any.
  std::optional<std::string> namespace_;
  std::optional<std::string> kind_;
  std::optional<std::string> name_;
};

[[nodiscard]] bool any_matches(std::span<const Matcher> matchers, const ResourceRef& ref);

}  // namespace hangar::airways
