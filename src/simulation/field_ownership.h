// Which field manager owns which fields of an object: what server-side apply decides by.
//
// The rules are those of structured-merge-diff: maps are merged member by member, lists are
// replaced as a whole, but for metadata.finalizers (a set) and metadata.ownerReferences (one entry
// a uid).
#pragma once

#include "json/value.h"

#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::simulation {

// A field's path: the names of the members, each after a separator that no name contains.
using FieldPath = std::string;
using FieldSet = std::set<FieldPath>;
// ".data.a", as messages of the API server write it.
[[nodiscard]] std::string shown(const FieldPath& path);

struct FieldManager {
  std::string name;
  bool is_apply = false;
  std::string subresource;
  auto operator<=>(const FieldManager&) const = default;
};
using FieldOwners = std::map<FieldManager, FieldSet>;

// Where a schema names the fields of an object. What applies to a map that no schema names owns the
// map itself, too, and takes it away with all that is in it.
enum class Schema {
  Everywhere,  // Types that the server has built in.
  InMetadata,  // Custom kinds without properties.
};

// Notes a change by a request that is not an apply: the writer owns what it has set.
void note_update(FieldOwners& owners, const FieldManager& writer, const json::Value& before,
                 const json::Value& after);

struct Applied {
  json::Value object;
  FieldOwners owners;
  // The fields that others own and that the apply would change: by manager. The apply fails unless
  // it is forced.
  std::map<FieldManager, FieldSet> conflicts;
};
// `live` is what an object has that nobody wrote, where the object does not exist.
[[nodiscard]] Applied apply(const json::Value& live, FieldOwners owners,
                            const FieldManager& applier, const json::Value& configuration,
                            Schema schema);

}  // namespace hangar::simulation
