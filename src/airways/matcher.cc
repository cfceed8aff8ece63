#include "airways/matcher.h"

#include "airways/resource_ref.h"
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

// A part to compare with; std::nullopt matches everything.
Result<std::optional<std::string>> parse_part(std::string_view part, std::string_view name) {
  if (part == "*") return std::optional<std::string>();
  if (part.find('*') != std::string_view::npos) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} \"{}\" is neither `*` nor a whole {}", name, part, name));
  }
  return std::optional(std::string(part));
}

}  // namespace

Result<Matcher> Matcher::parse(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("expected [namespace/]Kind.group[:name], found \"{}\": {}", text, why));
  };
  if (text.empty()) return bad("it is empty");
  if (text.find_first_of(" \t\r\n") != std::string_view::npos) return bad("it has blanks");

  std::string_view namespace_ = "*";
  std::string_view kind = text;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    namespace_ = text.substr(0, slash);
    kind = text.substr(slash + 1);
  }
  std::string_view name = "*";
  if (const std::size_t colon = kind.find(':'); colon != std::string_view::npos) {
    name = kind.substr(colon + 1);
    kind = kind.substr(0, colon);
  }
  if (kind.empty()) return bad("the kind is empty");
  if (name.empty()) return bad("the name is empty");
  if (kind.find('/') != std::string_view::npos || name.find('/') != std::string_view::npos) {
    return bad("it has more than one `/`");
  }
  if (namespace_.find(':') != std::string_view::npos) return bad("the namespace has a `:`");
  if (kind.starts_with('.') || kind.ends_with('.')) return bad("the kind is incomplete");

  Matcher matcher;
  matcher.text_ = text;
  Result<std::optional<std::string>> part = parse_part(namespace_, "namespace");
  if (!part) return bad(part.error().message());
  matcher.namespace_ = *std::move(part);
  part = parse_part(kind, "kind");
  if (!part) return bad(part.error().message());
  matcher.kind_ = *std::move(part);
  part = parse_part(name, "name");
  if (!part) return bad(part.error().message());
  matcher.name_ = *std::move(part);
  return matcher;
}

bool Matcher::matches(const ResourceRef& ref) const {
  return (!namespace_ || *namespace_ == ref.namespace_) &&
         (!kind_ || *kind_ == ref.kind.to_string()) && (!name_ || *name_ == ref.name);
}

bool any_matches(std::span<const Matcher> matchers, const ResourceRef& ref) {
  return std::ranges::any_of(matchers,
                             [&](const Matcher& matcher) { return matcher.matches(ref); });
}

}  // namespace hangar::airways
