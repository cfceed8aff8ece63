#include "console/cluster_paths.h"

#include "base/text.h"
#include "console/limits.h"
#include "kube/object.h"
#include "kube/urls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace hangar::console {

namespace {

struct Listed {
  std::string_view group;
  std::string_view version;
  std::string_view plural;
};
// Objects of hangar, and the others that the page shows. Of kinds in core, apps and batch the page
// shows only the readiness; their content is left out (projection.h).
constexpr std::array kListed = {
    Listed{"hangar.dev", "v1alpha1", "operators"},
    Listed{"hangar.dev", "v1alpha1", "tenantpolicies"},
    Listed{"hangar.dev", "v1alpha1", "tenantusages"},
    Listed{"yoke.cd", "v1alpha1", "airways"},
    Listed{"yoke.cd", "v1alpha1", "flights"},
    Listed{"yoke.cd", "v1alpha1", "clusterflights"},
    Listed{"workflows.example.com", "v1", "statefulworkflows"},
    Listed{"", "v1", "events"},
    Listed{"", "v1", "configmaps"},
    Listed{"", "v1", "persistentvolumeclaims"},
    Listed{"", "v1", "pods"},
    Listed{"", "v1", "services"},
    Listed{"apps", "v1", "daemonsets"},
    Listed{"apps", "v1", "deployments"},
    Listed{"apps", "v1", "statefulsets"},
    Listed{"batch", "v1", "cronjobs"},
    Listed{"batch", "v1", "jobs"},
};

bool is_listed(const gateway::RequestTarget& target) {
  return std::ranges::any_of(kListed, [&](const Listed& one) {
    return one.group == target.group && one.version == target.version &&
           one.plural == target.plural;
  });
}

// Groups of Kubernetes and of the list. Even an Airway with a name in such a group does not turn
// its resources into instances.
bool has_no_instances(std::string_view group) {
  return group.find('.') == std::string_view::npos || group.ends_with(".k8s.io") ||
         group.ends_with(".kubernetes.io") ||
         std::ranges::any_of(kListed, [&](const Listed& one) { return one.group == group; });
}

// The parameters that are forwarded.
Result<std::string> query_of(const gateway::RequestTarget& target) {
  kube::Query query;
  std::uint32_t limit = limits::kConsolePageItemsMax;
  for (const auto& [name, value] : target.query) {
    if (name == "limit") {
      if (target.options.is_malformed || target.options.limit < 1 ||
          target.options.limit > limits::kConsolePageItemsMax) {
        return fail(ErrorKind::InvalidInput,
                    fmt::format("limit must be 1 to {}", limits::kConsolePageItemsMax));
      }
      limit = static_cast<std::uint32_t>(target.options.limit);
    } else if (name == "continue") {
      query.add("continue", value);
    } else if (name == "fieldSelector" && target.plural == "events" &&
               value.starts_with("involvedObject.uid=") && value.find(',') == std::string::npos) {
      query.add("fieldSelector", value);
    } else {
      return fail(
          ErrorKind::Denied,
          fmt::format("the console does not pass on the parameter \"{}\"", printable(name)));
    }
  }
  if (target.name.empty()) query.add("limit", std::to_string(limit));
  return query.text();
}

}  // namespace

Result<ClusterGet> cluster_get(const gateway::RequestTarget& target) {
  const bool is_read = target.verb == gateway::Verb::Get || target.verb == gateway::Verb::List;
  const bool is_instance = !is_listed(target) && !has_no_instances(target.group);
  if (!is_read || !target.is_resource() || !target.subresource.empty() || target.ends_with_slash ||
      target.is_namespace_itself || (!is_listed(target) && !is_instance)) {
    return fail(ErrorKind::Denied, "the console does not pass on this path");
  }
  const kube::Resource resource{.group = target.group,
                                .version = target.version,
                                .plural = target.plural,
                                .kind = {},
                                .namespaced = !target.namespace_.empty()};
  const std::string path =
      target.name.empty()
          ? HANGAR_TRY(kube::collection_path(resource, target.namespace_))
          : HANGAR_TRY(kube::object_path(
                resource, {.namespace_ = target.namespace_, .name = target.name}, {}));
  return ClusterGet{
      .target = path + HANGAR_TRY(query_of(target)),
      .airway = is_instance ? fmt::format("{}.{}", target.plural, target.group) : std::string()};
}

}  // namespace hangar::console
