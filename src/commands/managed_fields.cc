#include "commands/managed_fields.h"

#include "base/number.h"
#include "base/text.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace hangar::commands {

namespace {

// Whether a member of fieldsV1 stands for that item of a list: "k:" and some of its members, or
// "v:" and its value.
bool is_of_item(std::string_view member, const json::Value& item) {
  const bool has_keys = member.starts_with("k:");
  if (!has_keys && !member.starts_with("v:")) return false;
  const Result<json::Value> named = json::parse(member.substr(2));
  if (!named) return false;
  if (!has_keys) return json::equal(*named, item);
  const json::Object* const keys = named->if_object();
  const json::Object* const members = item.if_object();
  return keys != nullptr && members != nullptr &&
         std::ranges::all_of(*keys, [members](const auto& key) {
           const json::Value* const value = members->if_contains(key.key());
           return value != nullptr && json::equal(*value, key.value());
         });
}

const json::Value* next_fields(const json::Value& fields,
                               const std::variant<std::string, FieldItem>& step) {
  const json::Object* const members = fields.if_object();
  if (members == nullptr) return nullptr;
  if (const auto* const member = std::get_if<std::string>(&step)) {
    return members->if_contains("f:" + *member);
  }
  const json::Value& item = std::get<FieldItem>(step).value;
  const auto* const found = std::ranges::find_if(
      *members, [&item](const auto& member) { return is_of_item(member.key(), item); });
  return found == members->end() ? nullptr : &found->value();
}

// How far an entry of managedFields follows a path: the number of steps, and whether the entry is
// a leaf there.
struct Reach {
  std::size_t depth = 0;
  bool is_leaf = false;
};

Reach reach_of(const json::Value& fields, const FieldPath& path) {
  Reach reach;
  const json::Value* at = &fields;
  for (const auto& step : path) {
    const json::Value* const next = next_fields(*at, step);
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

// Reads the steps of a path. False: the text is not one.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : text_(text) {}

  bool read(std::vector<FieldStep>& steps) {
    if (!text_.starts_with('.')) return false;
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      FieldStep step;
      if (!(take('.') ? read_member(step) : take('[') && read_item(step))) return false;
      step.text = text_.substr(begin, at_ - begin);
      steps.push_back(std::move(step));
    }
    return true;
  }

 private:
  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::string read_until(std::string_view ends) {
    std::string word;
    while (at_ < text_.size() && !ends.contains(text_[at_])) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word += text_[at_++];
    }
    return word;
  }

  bool read_member(FieldStep& step) {
    std::string name = read_until(".[");
    const bool is_named = !name.empty();
    step.what = std::move(name);
    return is_named;
  }

  // Conflicts of the API server have a text in quotes: [name="web"].
  std::optional<std::string> read_value() {
    if (at_ == text_.size() || text_[at_] != '"') return read_until(",]");
    const std::size_t begin = at_++;
    (void)read_until("\"");
    if (!take('"')) return std::nullopt;
    const Result<json::Value> value = json::parse(text_.substr(begin, at_ - begin));
    if (!value) return std::nullopt;
    return std::string(value->get_string());
  }

  bool read_item(FieldStep& step) {
    if (take('=')) {
      std::optional<std::string> value = read_value();
      if (value) step.what = FieldStep::Plain{*std::move(value)};
      return value && take(']');
    }
    std::string word = read_until("=,]");
    if (take(']')) {
      const std::optional<std::size_t> index = parse_number<std::size_t>(word);
      if (index) step.what = *index;
      return index.has_value();
    }
    FieldStep::Keys keys;
    while (!word.empty() && take('=')) {
      std::optional<std::string> value = read_value();
      if (!value) return false;
      keys.emplace_back(std::move(word), *std::move(value));
      if (take(']')) {
        step.what = std::move(keys);
        return true;
      }
      if (!take(',')) return false;
      word = read_until("=,]");
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool has_text(const json::Value& value, std::string_view text) {
  return value.is_string() ? std::string_view(value.get_string()) == text
                           : json::dump(value) == text;
}

bool is_item(const json::Value& item, const FieldStep::Keys& keys) {
  const json::Object* const members = item.if_object();
  return members != nullptr && std::ranges::all_of(keys, [members](const auto& key) {
           const json::Value* const value = members->if_contains(key.first);
           return value != nullptr && has_text(*value, key.second);
         });
}

// How to write an item of that list.
std::string example_of(const json::Array& list) {
  const std::string_view name = list.empty() ? "" : json::string_at(list.front(), {"name"});
  return name.empty() ? "[0]" : fmt::format("[name={}]", printable(name));
}

std::string count_of(const json::Array& list) {
  return list.size() == 1 ? "1 item" : fmt::format("{} items", list.size());
}

// The item of a list that the step means. `path` is that of the list.
Result<const json::Value*> find_item(const json::Array& list, const FieldStep& step,
                                     std::string_view path) {
  if (const auto* const index = std::get_if<std::size_t>(&step.what)) {
    if (*index < list.size()) return &list[*index];
    return fail(ErrorKind::InvalidInput,
                fmt::format("there is no {}{}: {} has {}, and the first one is [0]", path,
                            step.text, path, count_of(list)));
  }
  const auto is_meant = [&step](const json::Value& item) {
    const auto* const keys = std::get_if<FieldStep::Keys>(&step.what);
    return keys != nullptr ? is_item(item, *keys)
                           : has_text(item, std::get<FieldStep::Plain>(step.what).value);
  };
  const auto* const found = std::ranges::find_if(list, is_meant);
  if (found == list.end()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("there is no {}{}: {} has {}{}", path, step.text, path, count_of(list),
                            list.empty() ? "" : ", such as " + example_of(list)));
  }
  if (const auto count = std::ranges::count_if(list, is_meant);
      count > 1 && std::holds_alternative<FieldStep::Keys>(step.what)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} items are {}{}: add another key of the item, such as "
                            "[port=80,protocol=TCP], or write its index, such as [{}]",
                            count, path, step.text, found - list.begin()));
  }
  return found;
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

Result<std::vector<FieldStep>> parse_field(std::string_view text) {
  std::vector<FieldStep> steps;
  if (!FieldReader(text).read(steps)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is not a field such as .spec.replicas or "
                            ".spec.containers[name=web].image; an item of a list is written [0], "
                            "[KEY=VALUE], or [=VALUE] in a list of texts, and a dot within a name "
                            "\\.",
                            text));
  }
  return steps;
}

Result<FieldPath> find_field(const json::Value& manifest, const std::vector<FieldStep>& steps) {
  FieldPath found;
  std::string path;                   // Before the step.
  const json::Value* at = &manifest;  // Null: the object does not have it.
  for (const FieldStep& step : steps) {
    const json::Array* const list = at == nullptr ? nullptr : at->if_array();
    if (const auto* const member = std::get_if<std::string>(&step.what)) {
      if (list != nullptr) {
        return fail(ErrorKind::InvalidInput,
                    fmt::format("{} is a list with {}: write one of them, such as {}{}", path,
                                count_of(*list), path, example_of(*list)));
      }
      at = at == nullptr ? nullptr : json::find(*at, {*member});
      found.emplace_back(*member);
    } else if (list == nullptr) {
      return fail(ErrorKind::InvalidInput,
                  at == nullptr
                      ? fmt::format("there is no {}{}: the object has no {}", path, step.text, path)
                      : fmt::format("there is no {}{}: {} is not a list; write a member "
                                    "of it as {}.NAME",
                                    path, step.text, path, path));
    } else {
      at = HANGAR_TRY(find_item(*list, step, path));
      found.emplace_back(FieldItem{*at});
    }
    path += step.text;
  }
  return found;
}

std::vector<const FieldManager*> managers_of(const CurrentObject& object, const FieldPath& field) {
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
