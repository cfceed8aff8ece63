#include "workflows/live_object.h"

#include "base/utf8.h"
#include "kube/object.h"
#include "reconcile/conditions.h"
#include "workflows/json_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

namespace {

// The text goes into the status and into Events, which more people may read than the object.
std::string text_of_match(const json::Value& match, const json::Value& live) {
  constexpr std::size_t kBytesMax = 256;
  const bool is_secret =
      json::string_at(live, {"kind"}) == "Secret" && json::string_at(live, {"apiVersion"}) == "v1";
  if (is_secret) return "jsonPath matches another value";
  return fmt::format("jsonPath matches {}", utf8_beginning(text_of(match), kBytesMax));
}

}  // namespace

bool is_owned(const json::Value& object, const Owner& owner) {
  return kube::label_of(object, kUidLabel) == owner.uid;
}

bool is_earlier_job(const json::Value& live, ActionKind kind, const Owner& owner,
                    std::int64_t action) {
  return kind == ActionKind::RunJob && is_owned(live, owner) && !has_been_done(live, owner, action);
}

bool belongs_to_any(const json::Value& live, const Owner& owner,
                    std::span<const std::int64_t> actions) {
  const std::string_view mark = kube::annotation_of(live, action_annotation(owner));
  return std::ranges::any_of(
      actions, [&](std::int64_t action) { return mark == action_mark(owner, action); });
}

std::string unmet(const Wish& wish, const json::Value& live) {
  if (!wish.condition.empty()) {
    if (wish.condition_status == "True") {
      if (!reconcile::meets_condition(live, wish.condition)) {
        return fmt::format("the condition {} is not True", wish.condition);
      }
    } else {
      const json::Value* const status = json::find(live, {"status"});
      const json::Value* const condition =
          status == nullptr ? nullptr : reconcile::find_condition(*status, wish.condition);
      if (condition == nullptr ||
          json::string_at(*condition, {"status"}) != wish.condition_status) {
        return fmt::format("the condition {} is not {}", wish.condition, wish.condition_status);
      }
    }
  }
  if (!wish.path) return "";
  const std::vector<const json::Value*> found = wish.path->find(live);
  if (found.empty()) return "jsonPath matches nothing";
  const bool is_met = !wish.value || std::ranges::any_of(found, [&](const json::Value* value) {
    return text_of(*value) == *wish.value;
  });
  return is_met ? "" : text_of_match(*found.front(), live);
}

}  // namespace hangar::workflows
