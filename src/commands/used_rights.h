// The smallest roles that cover the rights that a guest has used, and remarks about the rights that
// it holds. Pure.
//
// A guest chooses its requests, so only plain names get into a role, never a wildcard.
#pragma once

#include "commands/held_rights.h"
#include "json/value.h"
#include "seeing/uses.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hangar::commands {

enum class RoleNames : std::uint8_t {
  // Rights for all objects of a resource.
  All,
  // Rights for the used objects only, if the guest neither lists, watches nor creates such objects.
  Touched,
};

struct RoleOptions {
  RoleNames names = RoleNames::All;
  std::string role;  // Name of the roles and bindings; empty: "hangar:used:<namespace>:<name>".
};

struct UsedRights {
  std::vector<json::Value> manifests;  // Roles with their bindings; empty: nothing was used.
  std::vector<std::string> remarks;    // Printable lines.
};

// The namespaces in which the guest has used rights, and that of its ServiceAccount.
[[nodiscard]] std::set<std::string> namespaces_of(const seeing::FoundUses& found);

[[nodiscard]] UsedRights used_rights(const seeing::UsesQuestion& question,
                                     const seeing::FoundUses& found, const HeldRights& held,
                                     const RoleOptions& options);

}  // namespace hangar::commands
