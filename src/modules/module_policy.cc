#include "modules/module_policy.h"

#include "base/result.h"
#include "base/text.h"
#include "http/authority.h"
#include "modules/internal/percent.h"
#include "modules/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::modules {

namespace {

constexpr std::string_view kSchemeEnd = "://";
constexpr std::array<std::string_view, 5> kSchemes = {"oci", "https", "http", "configmap", "file"};

std::string_view without_slashes_at_end(std::string_view text) {
  while (text.ends_with('/'))
    text.remove_suffix(1);
  return text;
}

// One spelling for one server: as http::Authority has it, without the dot that ends a full name and
// without the port that the scheme means anyway.
Result<std::string> plain_host(std::string_view scheme, std::string_view host) {
  http::Authority server = HANGAR_TRY(http::parse_authority(host));
  if (server.port == (scheme == "http" ? 80 : 443)) server.port.reset();
  if (server.host.ends_with('.')) server.host.pop_back();
  const std::string text = server.to_string();
  return text == "index.docker.io" ? "docker.io" : text;
}

// The form of a reference that is compared with prefixes.
struct Subject {
  std::string scheme;
  std::optional<std::string> text;  // Nothing: a URL that servers may read in two ways.
};

Subject subject_of(const Reference& reference) {
  if (const auto* const oci = std::get_if<OciSource>(&reference.source())) {
    const Result<std::string> host = plain_host("oci", oci->registry);
    if (!host) return {.scheme = "oci", .text = std::nullopt};
    return {.scheme = "oci", .text = fmt::format("oci://{}/{}", *host, oci->repository)};
  }
  if (const auto* const map = std::get_if<ConfigMapSource>(&reference.source())) {
    std::string text = fmt::format("configmap://{}/{}", map->namespace_name, map->name);
    if (!map->key.empty()) text += "/" + map->key;
    return {.scheme = "configmap", .text = std::move(text)};
  }
  if (const auto* const file = std::get_if<FileSource>(&reference.source())) {
    const std::string path = file->path.starts_with('/') ? file->path : "/./" + file->path;
    std::optional<std::string> plain = internal::plain_path(path);
    if (plain) plain->insert(0, "file://");
    return {.scheme = "file", .text = std::move(plain)};
  }
  const std::string_view url = std::get<HttpSource>(reference.source()).url;
  const std::size_t scheme_end = url.find(kSchemeEnd);
  const std::string scheme(url.substr(0, scheme_end));
  const std::string_view rest = url.substr(scheme_end + kSchemeEnd.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const Result<std::string> host = plain_host(scheme, rest.substr(0, slash));
  const std::string_view path_and_query = rest.substr(slash);
  const std::optional<std::string> path =
      internal::plain_path(path_and_query.substr(0, path_and_query.find('?')));
  if (!host || !path) return {.scheme = scheme, .text = std::nullopt};
  return {.scheme = scheme, .text = fmt::format("{}://{}{}", scheme, *host, *path)};
}

bool fits(std::string_view prefix, std::string_view subject) {
  if (!subject.starts_with(prefix)) return false;
  return prefix.ends_with(kSchemeEnd) || subject.size() == prefix.size() ||
         subject[prefix.size()] == '/';
}

std::unexpected<Error> wrong_prefix(std::string_view why) {
  return fail(ErrorKind::InvalidInput, std::string(why));
}

}  // namespace

Result<std::string> policy_prefix(std::string_view text) {
  const std::size_t end = text.find(kSchemeEnd);
  const std::string scheme = to_lower(text.substr(0, std::min(end, text.size())));
  if (end == std::string_view::npos || std::ranges::find(kSchemes, scheme) == kSchemes.end()) {
    return wrong_prefix("must begin with oci://, https://, http://, configmap:// or file://");
  }
  if (std::ranges::any_of(text, [](char letter) { return letter <= ' ' || letter > '~'; })) {
    return wrong_prefix("must be printable ASCII without spaces");
  }
  const std::string_view rest = text.substr(end + kSchemeEnd.size());
  if (rest.empty()) return scheme + std::string(kSchemeEnd);
  if (rest.find_first_of("*?#@") != std::string_view::npos) {
    return wrong_prefix(
        "is a beginning of module URLs, without *, ?, #, a user, a tag or a digest");
  }
  if (scheme == "file") {
    if (!rest.starts_with('/')) return wrong_prefix("must be file:///absolute/path");
    const std::optional<std::string> path = internal::plain_path(without_slashes_at_end(rest));
    if (!path) return wrong_prefix("must have a plain path, without . or .. or doubled slashes");
    return "file://" + *path;
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view first = rest.substr(0, slash);
  if (first.empty()) return wrong_prefix("has no host");
  const std::optional<std::string> path =
      internal::plain_path(without_slashes_at_end(rest.substr(slash)));
  if (!path) return wrong_prefix("must have a plain path, without . or .. or doubled slashes");
  if (scheme == "configmap") return fmt::format("configmap://{}{}", first, *path);
  if (scheme == "oci") {
    const bool names_host =
        first.find_first_of(".:[") != std::string_view::npos || to_lower(first) == "localhost";
    if (!names_host) {
      return wrong_prefix("must name the registry: oci://docker.io/... for Docker Hub");
    }
    if (path->contains(':')) {
      return wrong_prefix("is a beginning of module URLs, without a tag or a digest");
    }
  }
  const Result<std::string> host = plain_host(scheme, first);
  if (!host) return wrong_prefix(host.error().message());
  return fmt::format("{}://{}{}", scheme, *host, *path);
}

ModulePolicy::ModulePolicy(std::vector<PolicyRule> rules, PolicyRule otherwise)
    : rules_(std::move(rules)) {
  std::ranges::sort(rules_, std::ranges::greater(),
                    [](const PolicyRule& rule) { return rule.prefix.size(); });
  rules_.push_back(std::move(otherwise));
}

Result<std::size_t> ModulePolicy::find(const Reference& reference) const {
  const Subject subject = subject_of(reference);
  for (std::size_t at = 0; at + 1 < rules_.size(); ++at) {
    const std::string& prefix = rules_[at].prefix;
    if (subject.text && fits(prefix, *subject.text)) return at;
    if (!subject.text && prefix.starts_with(subject.scheme + std::string(kSchemeEnd))) {
      return fail(ErrorKind::Denied,
                  "the module policy has rules for such URLs, and this one can be read in two "
                  "ways: write its path without escaped slashes, backslashes, . or .. and doubled "
                  "slashes");
    }
  }
  return rules_.size() - 1;
}

std::string describe(const PolicyRule& rule) {
  std::string name = rule.prefix.empty() ? std::string("the default rule")
                                         : fmt::format("the rule for {}", rule.prefix);
  switch (rule.requirement) {
    case Requirement::Nothing:
      return name + " requires no signature";
    case Requirement::Cosign:
      return name + " requires a signature by cosign";
    case Requirement::Yoke:
      return name + " requires a signature by yoke (`hangar sign`)";
    case Requirement::Deny:
      return name + " denies these modules";
  }
  return name;
}

}  // namespace hangar::modules
