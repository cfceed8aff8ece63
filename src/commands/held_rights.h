// What a ServiceAccount is allowed by RBAC, as far as the user of the kubeconfig may read it.
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

// One binding that names it, with what its role allows.
struct HeldBinding {
  std::string namespace_;  // Empty: a ClusterRoleBinding.
  std::string name;
  std::string subject;  // "ServiceAccount team/default", "Group system:serviceaccounts".
  std::string role_kind;
  std::string role_name;
  // Nothing: the role may not be read, or is not there; `problem` says which.
  std::optional<json::Array> rules;
  std::string problem;
};

struct HeldRights {
  std::vector<HeldBinding> bindings;
  std::vector<std::string> unread;  // What could not be looked at, and why.
};

// By which of its subjects a binding is meant for that user; nothing: by none. What all users have
// (system:authenticated) is not looked at.
[[nodiscard]] std::optional<HeldBinding> held_binding(const json::Value& binding,
                                                      const kube::Identity& identity);

// Bindings of `namespaces` where those of all namespaces may not be listed.
[[nodiscard]] io::Task<HeldRights> read_held_rights(const kube::Client& client,
                                                    kube::Identity identity,
                                                    std::set<std::string> namespaces);

}  // namespace hangar::commands
