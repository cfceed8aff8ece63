#include "commands/held_rights.h"

#include "base/result.h"
#include "commands/rbac.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

// A ServiceAccount usually has a few bindings; each costs a request.
constexpr std::size_t kBindingsMax = 100;
constexpr std::size_t kNamespacesMax = 50;

// The bindings of one list that apply to the identity.
io::Task<Result<std::vector<HeldBinding>>> list_bindings(const kube::Client& client,
                                                         kube::Resource resource,
                                                         std::string namespace_,
                                                         kube::Identity identity) {
  std::vector<HeldBinding> held;
  const auto take = [&held, &identity](const kube::ObjectPtr& object) {
    if (std::optional<HeldBinding> one = held_binding(object->to_value(), identity)) {
      held.push_back(*std::move(one));
    }
    return kube::ObjectPtr();  // `held` already has everything that is needed.
  };
  (void)HANGAR_CO_TRY(co_await client.list(
      std::move(resource), {.namespace_ = std::move(namespace_), .holds = take}, {}));
  co_return held;
}

void note(HeldRights& held, std::string_view what, const Error& error) {
  held.unread.push_back(fmt::format("{}: {}", what, error.message()));
}

}  // namespace

std::optional<HeldBinding> held_binding(const json::Value& binding,
                                        const kube::Identity& identity) {
  const json::Array* const subjects = json::array_at(binding, {"subjects"});
  if (subjects == nullptr) return std::nullopt;
  const auto is_meant = [&identity](const json::Value& subject) {
    const std::string_view kind = json::string_at(subject, {"kind"});
    const std::string_view name = json::string_at(subject, {"name"});
    if (kind == "User") return name == identity.user;
    if (kind == "ServiceAccount") {
      const std::string_view namespace_ = json::string_at(subject, {"namespace"});
      return kube::service_account(namespace_, name).user == identity.user;
    }
    return kind == "Group" && name != "system:authenticated" &&
           std::ranges::find(identity.groups, name) != identity.groups.end();
  };
  const auto found = std::ranges::find_if(*subjects, is_meant);
  if (found == subjects->end()) return std::nullopt;
  return HeldBinding{.namespace_ = std::string(json::string_at(binding, {"metadata", "namespace"})),
                     .name = std::string(json::string_at(binding, {"metadata", "name"})),
                     .subject = fmt::format("{} {}", json::string_at(*found, {"kind"}),
                                            json::string_at(*found, {"name"})),
                     .role_kind = std::string(json::string_at(binding, {"roleRef", "kind"})),
                     .role_name = std::string(json::string_at(binding, {"roleRef", "name"})),
                     .rules = {},
                     .problem = {}};
}

io::Task<HeldRights> read_held_rights(const kube::Client& client, kube::Identity identity,
                                      std::set<std::string> namespaces) {
  HeldRights held;
  Result<std::vector<HeldBinding>> found =
      co_await list_bindings(client, cluster_role_binding_resource(), {}, identity);
  if (found) {
    held.bindings = *std::move(found);
  } else {
    note(held, "ClusterRoleBindings", found.error());
  }
  found = co_await list_bindings(client, role_binding_resource(), {}, identity);
  if (found) {
    std::ranges::move(*found, std::back_inserter(held.bindings));
    namespaces.clear();
  }
  std::size_t asked = 0;
  for (const std::string& namespace_ : namespaces) {
    if (asked++ == kNamespacesMax) {
      held.unread.push_back(
          fmt::format("RoleBindings of {} namespaces more", namespaces.size() - kNamespacesMax));
      break;
    }
    found = co_await list_bindings(client, role_binding_resource(), namespace_, identity);
    if (found) {
      std::ranges::move(*found, std::back_inserter(held.bindings));
    } else {
      note(held, fmt::format("RoleBindings of namespace {}", namespace_), found.error());
    }
  }
  if (held.bindings.size() > kBindingsMax) {
    held.unread.push_back(fmt::format("{} bindings more", held.bindings.size() - kBindingsMax));
    held.bindings.resize(kBindingsMax);
  }
  for (HeldBinding& binding : held.bindings) {
    const bool is_clusters = binding.role_kind == "ClusterRole";
    const Result<json::Value> role = co_await client.get(
        is_clusters ? kube::cluster_role_resource() : role_resource(),
        {.namespace_ = is_clusters ? std::string() : binding.namespace_, .name = binding.role_name},
        {});
    if (!role) {
      binding.problem = role.error().message();
      continue;
    }
    const json::Array* const rules = json::array_at(*role, {"rules"});
    binding.rules = rules != nullptr ? *rules : json::Array();
  }
  co_return held;
}

}  // namespace hangar::commands
