#include "airways/reasons.h"

#include "airways/limits.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "kube/object.h"
#include "recorder/record.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace hangar::airways {

namespace {

recorder::Waking::Cause cause_of(Change change) {
  switch (change) {
    case Change::Added:
      return recorder::Waking::Cause::Added;
    case Change::Modified:
      return recorder::Waking::Cause::Modified;
    case Change::Deleted:
      return recorder::Waking::Cause::Deleted;
  }
  return recorder::Waking::Cause::Modified;
}

}  // namespace

Reasons::Reason* Reasons::find_or_make(std::string_view what, const ResourceRef& resource) {
  const auto found = std::ranges::find_if(
      reasons_, [&](const Reason& one) { return one.what == what && one.resource == resource; });
  if (found != reasons_.end()) return &*found;
  if (reasons_.size() >= limits::kRecordedReasonsMax) {
    ++left_out_;
    return nullptr;
  }
  return &reasons_.emplace_back(Reason{.what = what, .resource = resource});
}

void Reasons::add(const ResourceRef& resource, Change change, const kube::Object& object,
                  std::string_view traceparent) {
  Reason* const reason = find_or_make({}, resource);
  if (reason == nullptr) return;
  reason->change = change;
  reason->version = kube::parse_version(object.resource_version()).value_or(0);
  reason->traceparent = traceparent;
}

void Reasons::add(std::string_view what) {
  (void)find_or_make(what, {});
}

std::vector<recorder::Waking> Reasons::wakings() const {
  std::vector<recorder::Waking> wakings;
  for (const Reason& reason : reasons_) {
    if (!reason.what.empty()) {
      wakings.push_back({.cause = recorder::Waking::Cause::Event, .event = reason.what});
      continue;
    }
    wakings.push_back({.cause = cause_of(reason.change),
                       .object = {.group = reason.resource.kind.group,
                                  .kind = reason.resource.kind.kind,
                                  .namespace_ = reason.resource.namespace_,
                                  .name = reason.resource.name,
                                  .version = reason.version},
                       .traceparent = reason.traceparent});
  }
  return wakings;
}

}  // namespace hangar::airways
