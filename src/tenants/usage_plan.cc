#include "tenants/usage_plan.h"

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::tenants {

namespace {

// Users create and delete these objects, so every change of their number is shown.
constexpr std::array<std::string_view, 4> kCounted = {"operators", "workflows", "flights",
                                                      "instances"};
constexpr std::int64_t kLittle = 10;  // The whole divided by this is a little change.

UsageChange change_of(std::string_view part, const json::Value& before, const json::Value& after,
                      std::string_view key) {
  const json::Value* const from = json::find(before, {key});
  const json::Value* const to = json::find(after, {key});
  if (from == nullptr || to == nullptr || !from->is_int64() || !to->is_int64()) {
    const bool is_same = from != nullptr && to != nullptr && json::equal(*from, *to);
    return is_same ? UsageChange::None : UsageChange::Much;
  }
  const auto [less, more] = std::minmax({from->get_int64(), to->get_int64()});
  if (less == more) return UsageChange::None;
  const bool is_counted = std::ranges::find(kCounted, part) != kCounted.end();
  if (key == "limit" || (is_counted && key == "used")) return UsageChange::Much;
  // The limit of counted objects applies to "used", not to the number of awake ones.
  const std::int64_t whole = is_counted ? more : std::max(more, json::int_at(after, {"limit"}));
  return more - less > whole / kLittle ? UsageChange::Some : UsageChange::Little;
}

// Whether both have the same members.
bool have_same_keys(const json::Object& left, const json::Object& right) {
  return left.size() == right.size() && std::ranges::all_of(left, [&right](const auto& member) {
           return right.contains(member.key());
         });
}

}  // namespace

UsageChange usage_change(const json::Value& before, const json::Value& after) {
  const json::Object* const from = json::object_at(before, {"status"});
  const json::Object* const to = json::object_at(after, {"status"});
  if (from == nullptr || to == nullptr || !have_same_keys(*from, *to)) return UsageChange::Much;
  UsageChange change = UsageChange::None;
  for (const auto& member : *from) {
    const json::Value& was = member.value();
    const json::Value& is = to->at(member.key());
    if (!was.is_object() || !is.is_object()) {
      if (!json::equal(was, is)) return UsageChange::Much;
      continue;
    }
    if (!have_same_keys(was.get_object(), is.get_object())) return UsageChange::Much;
    for (const auto& number : was.get_object())
      change = std::max(change, change_of(member.key(), was, is, number.key()));
  }
  return change;
}

bool UsagePlan::is_due(const Object& object, const json::Value* wanted, Instant now) {
  if (object.not_before > now) return false;
  if (wanted == nullptr) return now >= object.gone_since + kUsageGone;
  if (object.document == json::dump(*wanted)) return false;
  const Result<json::Value> written = json::parse(object.document);
  if (!written) return true;  // It has not been written.
  switch (usage_change(*written, *wanted)) {
    case UsageChange::None:
      return false;
    case UsageChange::Little:
      return now >= object.written + kUsageRefresh;
    case UsageChange::Some:
      return now >= object.written + kUsageAmountInterval;
    case UsageChange::Much:
      return true;
  }
  return true;
}

std::vector<UsagePlan::Due> UsagePlan::look(std::map<std::string, json::Value> documents,
                                            Instant now) {
  for (const auto& [name, document] : documents)
    objects_.try_emplace(name);
  std::vector<std::pair<Instant, Due>> waiting;
  for (auto& [name, object] : objects_) {
    const auto wanted = documents.find(name);
    const bool is_wanted = wanted != documents.end();
    if (is_wanted) {
      object.gone_since = {};
    } else if (object.gone_since == Instant()) {
      object.gone_since = now;
    }
    if (!is_due(object, is_wanted ? &wanted->second : nullptr, now)) {
      object.due_since = {};
      continue;
    }
    if (object.due_since == Instant()) object.due_since = now;
    waiting.emplace_back(object.due_since,
                         Due{.namespace_name = name,
                             .document = is_wanted ? std::move(wanted->second) : json::Value()});
  }
  std::ranges::sort(waiting, {},
                    [](const auto& one) { return std::tie(one.first, one.second.namespace_name); });
  if (waiting.size() > kUsageWritesMax) waiting.resize(kUsageWritesMax);
  std::vector<Due> due;
  for (auto& [since, one] : waiting) {
    objects_[one.namespace_name].due_since = {};
    due.push_back(std::move(one));
  }
  return due;
}

void UsagePlan::done(const Due& due, Instant now) {
  if (due.document.is_null()) {
    objects_.erase(due.namespace_name);
    return;
  }
  Object& object = objects_[due.namespace_name];
  object.document = json::dump(due.document);
  object.written = now;
  object.not_before = now + kUsageInterval;
}

void UsagePlan::failed(const Due& due, Instant now) {
  objects_[due.namespace_name].not_before = now + kUsageRetry;
}

}  // namespace hangar::tenants
