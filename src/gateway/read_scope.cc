#include "gateway/read_scope.h"

#include "base/dns_name.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selector.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::gateway {

namespace {

// Each term of a selector costs time for each object and each change. Selectors that people write
// have a few terms; a list of names is one term.
constexpr std::size_t kSelectorTermsMax = 32;

// apimachinery's IsValidPathSegmentName: only such a name in a field selector is a request's name.
bool is_path_segment(std::string_view name) {
  return name != "." && name != ".." && name.find_first_of("/%") == std::string_view::npos;
}

// In a path of all namespaces the API server reads these words as verbs, so a resource of such a
// name cannot be watched.
bool is_verb(std::string_view plural) {
  return plural == "watch" || plural == "proxy";
}

}  // namespace

Attributes attributes_of(Verb verb, const kube::Resource& resource, const View& view) {
  return {.verb = std::string(name_of(verb)),
          .group = resource.group,
          .version = resource.version,
          .resource = resource.plural,
          .namespace_ = view.requested_namespace(),
          .name = view.name(),
          .label_selector = view.label_selector(),
          .field_selector = view.field_selector()};
}

std::optional<ReadScope> ReadScope::of(const RequestTarget& target, kube::Detail detail) {
  const bool is_get = target.verb == Verb::Get;
  const bool is_list = target.verb == Verb::List || target.verb == Verb::Watch;
  if (!is_get && !is_list) return std::nullopt;
  if (is_get == target.name.empty() || !target.subresource.empty()) return std::nullopt;
  if (target.is_namespace_itself || is_verb(target.plural)) return std::nullopt;
  if (target.options.is_malformed) return std::nullopt;
  // A watch keeps these texts, so they are no longer than a name.
  const bool is_place = is_dns_subdomain(target.version) &&
                        (target.namespace_.empty() || is_dns_subdomain(target.namespace_));
  if (!is_place) return std::nullopt;

  ReadScope scope;
  scope.verb_ = target.verb;
  scope.resource_ = {.group = target.group, .version = target.version, .plural = target.plural};
  kube::ObjectKey requested{target.namespace_, target.name};
  if (is_get) {  // A get has no selectors, whatever the query says.
    scope.view_ = View(std::move(requested), {}, {}, detail);
    return scope;
  }
  auto labels = kube::LabelSelector::parse(target.options.label_selector);
  auto fields = kube::FieldSelector::parse(target.options.field_selector);
  if (!labels || !fields) return std::nullopt;
  if (labels->requirement_count() > kSelectorTermsMax) return std::nullopt;
  if (fields->term_count() > kSelectorTermsMax || fields->has_remote_terms()) return std::nullopt;
  if (!is_path_segment(fields->required_name().value_or(""))) return std::nullopt;
  // RequestInfo takes no name from the selector of a legacy watch.
  if (target.is_legacy_watch && fields->required_name()) return std::nullopt;
  scope.selects_namespace_ = fields->names_namespace();
  scope.view_ = View(std::move(requested), *std::move(labels), *std::move(fields), detail);
  return scope;
}

bool ReadScope::fits(const kube::Resource& resource) const {
  const bool is_it = resource.group == resource_.group && resource.version == resource_.version &&
                     resource.plural == resource_.plural;
  if (!is_it) return false;
  if (!resource.namespaced) return view_.namespace_().empty() && !selects_namespace_;
  return verb_ != Verb::Get || !view_.namespace_().empty();
}

}  // namespace hangar::gateway
