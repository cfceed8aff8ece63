// The rights that RBAC gives a ServiceAccount, as far as the kubeconfig's user may read them.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

// A binding that applies to the ServiceAccount, with the rules of its role.
struct HeldBinding {
  std::string namespace_;  // Empty: a ClusterRoleBinding.
  std::string name;
  std::string subject;  // "ServiceAccount team/default", "Group system:serviceaccounts".
  std::string role_kind;
  std::string role_name;
  // Nothing: the role cannot be read or does not exist; `problem` has the reason.
  std::optional<json::Array> rules;
  std::string problem;
};

struct HeldRights {
  std::vector<HeldBinding> bindings;
  std::vector<std::string> unread;  // The objects that could not be read, and the reasons.
};

// The binding with the subject through which it applies to that user; nothing if none does. Ignores
// system:authenticated, whose rights all users have.
[[nodiscard]] std::optional<HeldBinding> held_binding(const json::Value& binding,
                                                      const kube::Identity& identity);

// Reads RoleBindings of `namespaces` only, if those of all namespaces may not be listed.
[[nodiscard]] io::Task<HeldRights> read_held_rights(const kube::Client& client,
                                                    kube::Identity identity,
                                                    std::set<std::string> namespaces);

}  // namespace hangar::commands
