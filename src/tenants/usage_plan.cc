#include "tenants/usage_plan.h"

#include "base/time.h"
#include "json/value.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::tenants {

std::vector<UsagePlan::Due> UsagePlan::look(std::map<std::string, json::Value> documents,
                                            Instant now) {
  for (const auto& [name, document] : documents)
    objects_.try_emplace(name);
  std::vector<std::pair<Instant, Due>> waiting;
  for (auto& [name, object] : objects_) {
    const auto wanted = documents.find(name);
    const bool is_wanted = wanted != documents.end();
    const bool is_due =
        object.not_before <= now && (!is_wanted || json::dump(wanted->second) != object.text);
    if (!is_due) {
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
  object.text = json::dump(due.document);
  object.not_before = now + kUsageInterval;
}

void UsagePlan::failed(const Due& due, Instant now) {
  objects_[due.namespace_name].not_before = now + kUsageRetry;
}

}  // namespace hangar::tenants
