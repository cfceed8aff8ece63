#include "commands/managed_fields.h"

#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace hangar::commands {

namespace {

// How far an entry of managedFields follows a path: the number of members, and whether the entry is
// a leaf there.
struct Reach {
  std::size_t depth = 0;
  bool is_leaf = false;
};

Reach reach_of(const json::Value& fields, const std::vector<std::string>& path) {
  Reach reach;
  const json::Value* at = &fields;
  for (const std::string& member : path) {
    const json::Object* const members = at->if_object();
    const json::Value* const next =
        members == nullptr ? nullptr : members->if_contains("f:" + member);
    if (next == nullptr) break;
    at = next;
    ++reach.depth;
  }
  const json::Object* const members = at->if_object();
  reach.is_leaf = members == nullptr || members->empty();
  return reach;
}

// Keeps the managers with the latest time. A manager without a time is older than all others.
void add(std::vector<const FieldManager*>& last, const FieldManager& manager) {
  if (!last.empty() && last.front()->time > manager.time) return;
  if (!last.empty() && last.front()->time < manager.time) last.clear();
  last.push_back(&manager);
}

}  // namespace

CurrentObject current_object(const json::Value& manifest) {
  CurrentObject current{
      .version = kube::parse_version(json::string_at(manifest, {"metadata", "resourceVersion"}))
                     .value_or(0)};
  const json::Array* const entries = json::array_at(manifest, {"metadata", "managedFields"});
  if (entries == nullptr) return current;
  for (const json::Value& entry : *entries) {
    const auto text = [&entry](std::string_view member) {
      return std::string(json::string_at(entry, {member}));
    };
    FieldManager manager{.name = text("manager"),
                         .operation = text("operation"),
                         .subresource = text("subresource")};
    if (const Result<WallTime> time = parse_rfc3339(text("time"))) manager.time = *time;
    if (const json::Object* const members = entry.if_object()) {
      if (const json::Value* const fields = members->if_contains("fieldsV1")) {
        manager.fields = *fields;
      }
    }
    current.managers.push_back(std::move(manager));
  }
  return current;
}

std::vector<const FieldManager*> last_managers(const CurrentObject& object,
                                               std::optional<WallTime> until) {
  std::vector<const FieldManager*> last;
  for (const FieldManager& manager : object.managers) {
    if (!manager.time || (until && *manager.time > *until)) continue;
    add(last, manager);
  }
  return last;
}

Result<std::vector<std::string>> parse_field(std::string_view text) {
  const auto wrong = [&text] {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not a field such as .spec.replicas; a dot within a name is "
                            "written \\.",
                            text));
  };
  if (!text.starts_with('.') || text.size() < 2) return wrong();
  std::vector<std::string> members(1);
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '.') {
      members.emplace_back();
    } else if (text[at] == '\\' && at + 1 < text.size()) {
      members.back() += text[++at];
    } else {
      members.back() += text[at];
    }
  }
  if (std::ranges::any_of(members, &std::string::empty)) return wrong();
  return members;
}

std::vector<const FieldManager*> managers_of(const CurrentObject& object,
                                             const std::vector<std::string>& field) {
  // The manager of a leaf above the field owns the field as a whole, unless entries of other
  // managers go deeper. Then the leaf is a parent whose parts other managers have taken over.
  std::size_t parts_from = 0;
  for (const FieldManager& manager : object.managers) {
    const Reach reach = reach_of(manager.fields, field);
    parts_from = std::max(parts_from, reach.is_leaf ? reach.depth : reach.depth + 1);
  }
  std::vector<const FieldManager*> found;
  for (const FieldManager& manager : object.managers) {
    const Reach reach = reach_of(manager.fields, field);
    const bool is_whole = reach.is_leaf && reach.depth > 0 && reach.depth >= parts_from;
    if (reach.depth == field.size() || is_whole) add(found, manager);
  }
  return found;
}

}  // namespace hangar::commands
