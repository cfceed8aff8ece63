// The smallest roles that cover what a guest has used, beside what it has. Pure.
//
// What a guest has asked for is its own choice: only plain names get into a role, never a wildcard.
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
  // Of all objects of a resource.
  All,
  // Of those alone that were touched, where it neither lists, watches nor makes such objects.
  Touched,
};

struct RoleOptions {
  RoleNames names = RoleNames::All;
  std::string role;  // Of roles and bindings; empty: "hangar:used:<namespace>:<name>".
};

struct UsedRights {
  std::vector<json::Value> manifests;  // Roles with their bindings. Empty: nothing was used.
  std::vector<std::string> remarks;    // Lines; printable.
};

// The namespaces in which it has used something, and its ServiceAccount's own.
[[nodiscard]] std::set<std::string> namespaces_of(const seeing::FoundUses& found);

[[nodiscard]] UsedRights used_rights(const seeing::UsesQuestion& question,
                                     const seeing::FoundUses& found, const HeldRights& held,
                                     const RoleOptions& options);

}  // namespace hangar::commands
