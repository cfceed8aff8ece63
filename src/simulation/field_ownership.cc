#include "simulation/field_ownership.h"

#include "json/value.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::simulation {

namespace {

constexpr char kSeparator = '\x1f';
// Before the value of a set's item and the uid of an owner.
constexpr std::string_view kItem = "\x1ei";

FieldPath below(const FieldPath& path, std::string_view name) {
  FieldPath out = path;
  out += kSeparator;
  out += name;
  return out;
}

const FieldPath& finalizers_path() {
  static const FieldPath path = below(below("", "metadata"), "finalizers");
  return path;
}
const FieldPath& owners_path() {
  static const FieldPath path = below(below("", "metadata"), "ownerReferences");
  return path;
}

const FieldPath& metadata_path() {
  static const FieldPath path = below("", "metadata");
  return path;
}

// Fields that nobody owns.
const FieldSet& system_fields() {
  static const FieldSet system = [] {
    FieldSet out = {below("", "apiVersion"), below("", "kind"), metadata_path()};
    for (const char* name :
         {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
          "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"}) {
      out.insert(below(metadata_path(), name));
    }
    return out;
  }();
  return system;
}

bool is_named(const FieldPath& path, Schema schema) {
  return schema == Schema::Everywhere || path == metadata_path() ||
         path.starts_with(metadata_path() + kSeparator);
}

// The items of a list that is merged item by item, by their keys.
std::vector<std::pair<FieldPath, json::Value>> items_of(const json::Array& list,
                                                        const FieldPath& path) {
  std::vector<std::pair<FieldPath, json::Value>> out;
  for (const json::Value& item : list) {
    const std::string key =
        path == owners_path() ? std::string(json::string_at(item, {"uid"})) : json::dump(item);
    out.emplace_back(below(path, std::string(kItem) + key), item);
  }
  return out;
}

bool is_merged_list(const json::Value& value, const FieldPath& path) {
  return value.is_array() && (path == finalizers_path() || path == owners_path());
}

// The fields of a change: each container, and all that is in it.
void collect(const json::Value& value, const FieldPath& path, FieldSet& out) {
  if (!path.empty()) out.insert(path);
  if (value.is_object()) {
    for (const auto& [name, member] : value.as_object())
      collect(member, below(path, name), out);
  } else if (is_merged_list(value, path)) {
    for (const auto& [key, item] : items_of(value.as_array(), path))
      out.insert(key);
  }
}

// The fields of an object: without the containers that a schema names, unless they are empty.
void collect_fields(const json::Value& value, const FieldPath& path, Schema schema, FieldSet& out) {
  if (value.is_object()) {
    const json::Object& members = value.as_object();
    if (!path.empty() && (members.empty() || !is_named(path, schema))) out.insert(path);
    for (const auto& [name, member] : members)
      collect_fields(member, below(path, name), schema, out);
  } else if (is_merged_list(value, path)) {
    for (const auto& [key, item] : items_of(value.as_array(), path))
      out.insert(key);
  } else {
    out.insert(path);
  }
}

FieldSet fields_of(const json::Value& value, Schema schema) {
  FieldSet out;
  collect_fields(value, {}, schema, out);
  return out;
}

// With the containers of the fields that a schema names.
FieldSet with_containers(FieldSet set, Schema schema) {
  FieldSet containers;
  for (const FieldPath& path : set) {
    for (std::size_t end = path.find(kSeparator, 1); end != FieldPath::npos;
         end = path.find(kSeparator, end + 1)) {
      FieldPath container = path.substr(0, end);
      if (is_named(container, schema)) containers.insert(std::move(container));
    }
  }
  set.merge(containers);
  return set;
}

bool has_members(const json::Value& value, const FieldPath& path) {
  return (value.is_object() && !value.as_object().empty()) ||
         (is_merged_list(value, path) && !value.as_array().empty());
}

const json::Value& empty_object() {
  static const json::Value empty = json::Object{};
  return empty;
}
const json::Value& empty_array() {
  static const json::Value empty = json::Array{};
  return empty;
}

struct Difference {
  FieldSet set;  // Added or modified.
  FieldSet removed;
};

void compare(const json::Value* before, const json::Value* after, const FieldPath& path,
             Difference& out) {
  if (before == nullptr && after == nullptr) return;
  if (before == nullptr) return collect(*after, path, out.set);
  if (after == nullptr) return collect(*before, path, out.removed);
  // Null stands for a container that has nothing left.
  if (after->is_null() && has_members(*before, path)) {
    return compare(before, before->is_object() ? &empty_object() : &empty_array(), path, out);
  }
  if (before->is_null() && has_members(*after, path)) {
    return compare(after->is_object() ? &empty_object() : &empty_array(), after, path, out);
  }
  if (before->is_object() && after->is_object()) {
    for (const auto& [name, member] : before->as_object())
      compare(&member, after->as_object().if_contains(name), below(path, name), out);
    for (const auto& [name, member] : after->as_object()) {
      if (!before->as_object().contains(name)) compare(nullptr, &member, below(path, name), out);
    }
    return;
  }
  if (is_merged_list(*before, path) && is_merged_list(*after, path)) {
    const auto old_items = items_of(before->as_array(), path);
    const auto new_items = items_of(after->as_array(), path);
    const auto find = [](const auto& items, const FieldPath& key) {
      return std::ranges::find(items, key, [](const auto& item) { return item.first; });
    };
    for (const auto& [key, item] : new_items) {
      const auto old = find(old_items, key);
      if (old == old_items.end() || !json::equal(old->second, item)) out.set.insert(key);
    }
    for (const auto& [key, item] : old_items) {
      if (find(new_items, key) == new_items.end()) out.removed.insert(key);
    }
    return;
  }
  if (json::equal(*before, *after)) return;
  FieldSet old_fields;
  FieldSet new_fields;
  collect(*before, path, old_fields);
  collect(*after, path, new_fields);
  std::ranges::set_difference(old_fields, new_fields,
                              std::inserter(out.removed, out.removed.end()));
  out.set.merge(new_fields);
}

void take(FieldSet& from, const FieldSet& what) {
  for (const FieldPath& path : what)
    from.erase(path);
}

Difference difference_of(const json::Value& before, const json::Value& after) {
  Difference out;
  compare(&before, &after, {}, out);
  take(out.set, system_fields());
  take(out.removed, system_fields());
  return out;
}

void drop_empty(FieldOwners& owners) {
  std::erase_if(owners, [](const auto& entry) { return entry.second.empty(); });
}

json::Value merged(const json::Value& live, const json::Value& applied, const FieldPath& path) {
  if (live.is_object() && applied.is_object()) {
    json::Object out = live.as_object();
    for (const auto& [name, member] : applied.as_object()) {
      const json::Value* const old = out.if_contains(name);
      if (old == nullptr) {
        out[name] = member;
      } else {
        json::Value both = merged(*old, member, below(path, name));
        out[name] = std::move(both);
      }
    }
    return out;
  }
  if (is_merged_list(live, path) && applied.is_array()) {
    json::Array out = live.as_array();
    const auto live_items = items_of(live.as_array(), path);
    for (const auto& [key, item] : items_of(applied.as_array(), path)) {
      const auto old =
          std::ranges::find(live_items, key, [](const auto& one) { return one.first; });
      if (old == live_items.end()) {
        out.push_back(item);
      } else {
        out[static_cast<std::size_t>(old - live_items.begin())] = item;
      }
    }
    return out;
  }
  return applied;
}

bool has_below(const FieldSet& set, const FieldPath& path) {
  const auto found = set.upper_bound(path + kSeparator);
  return found != set.end() && found->starts_with(path + kSeparator);
}

// The value without these fields. A container that has nothing left becomes null.
json::Value without(const json::Value& value, const FieldPath& path, const FieldSet& fields) {
  if (is_merged_list(value, path)) {
    json::Array kept;
    for (auto& [key, item] : items_of(value.as_array(), path)) {
      if (!fields.contains(key)) kept.push_back(std::move(item));
    }
    return kept.empty() ? json::Value() : json::Value(std::move(kept));
  }
  if (value.is_array()) return {};
  if (!value.is_object()) return value;
  json::Object kept;
  for (const auto& [name, member] : value.as_object()) {
    const FieldPath at = below(path, name);
    if (fields.contains(at)) continue;
    kept[name] = has_below(fields, at) ? without(member, at, fields) : member;
  }
  return kept.empty() ? json::Value() : json::Value(std::move(kept));
}

FieldSet minus(const FieldSet& from, const FieldSet& what) {
  FieldSet out;
  std::ranges::set_difference(from, what, std::inserter(out, out.end()));
  return out;
}

// Removes what `last` has and nobody owns any more, in the steps of the real server.
json::Value pruned(const json::Value& merged, const FieldSet& last, const FieldOwners& owners,
                   Schema schema) {
  if (last.empty()) return merged;
  const FieldSet all = with_containers(fields_of(merged, schema), schema);
  const FieldSet last_fields = with_containers(last, schema);
  FieldSet stay;
  for (const auto& [manager, set] : owners)
    stay.insert(set.begin(), set.end());
  stay = with_containers(std::move(stay), schema);
  stay.merge(with_containers(fields_of(without(merged, {}, last_fields), schema), schema));
  const json::Value owned = without(merged, {}, minus(all, stay));
  // What nobody ever owned stays, unless it is in a container that goes.
  const FieldSet gone = minus(all, with_containers(fields_of(owned, schema), schema));
  FieldSet removed;
  std::ranges::set_intersection(gone, last_fields, std::inserter(removed, removed.end()));
  return without(merged, {}, removed);
}

}  // namespace

std::string shown(const FieldPath& path) {
  std::string out;
  for (const char c : path)
    out += c == kSeparator ? '.' : c;
  return out;
}

void note_update(FieldOwners& owners, const FieldManager& writer, const json::Value& before,
                 const json::Value& after) {
  Difference difference = difference_of(before, after);
  for (auto& [manager, set] : owners) {
    take(set, difference.removed);
    if (manager != writer) take(set, difference.set);
  }
  owners[writer].merge(difference.set);
  drop_empty(owners);
}

Applied apply(const json::Value& live, FieldOwners owners, const FieldManager& applier,
              const json::Value& configuration, Schema schema) {
  Applied out;
  const FieldSet last = std::exchange(owners[applier], fields_of(configuration, schema));
  out.object = pruned(merged(live, configuration, {}), last, owners, schema);
  take(owners[applier], system_fields());
  const Difference difference = difference_of(live, out.object);
  for (auto& [manager, owned] : owners) {
    if (manager == applier) continue;
    FieldSet conflict;
    std::ranges::set_intersection(owned, difference.set, std::inserter(conflict, conflict.end()));
    take(owned, conflict);
    take(owned, difference.removed);
    if (!conflict.empty()) out.conflicts.emplace(manager, std::move(conflict));
  }
  drop_empty(owners);
  out.owners = std::move(owners);
  return out;
}

}  // namespace hangar::simulation
