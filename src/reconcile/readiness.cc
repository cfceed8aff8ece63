#include "reconcile/readiness.h"

#include "reconcile/conditions.h"

#include <fmt/format.h>

#include <utility>

namespace hangar::reconcile {

namespace {

// The controller has observed the latest spec, and these counters of the status equal the
// first one.
Readiness counters_agree(const json::Value& live,
                         std::initializer_list<std::string_view> counters) {
  const std::int64_t generation = json::int_at(live, {"metadata", "generation"});
  if (json::int_at(live, {"status", "observedGeneration"}) != generation) {
    return not_ready(fmt::format("generation {} is not observed yet", generation));
  }
  const std::string_view first = *counters.begin();
  const std::int64_t wanted = json::int_at(live, {"status", first});
  for (const std::string_view counter : counters) {
    const std::int64_t count = json::int_at(live, {"status", counter});
    if (count != wanted) {
      return not_ready(fmt::format("{} is {} but {} is {}", first, wanted, counter, count));
    }
  }
  return ready();
}

}  // namespace

Readiness ready() {
  return {};
}
Readiness not_ready(std::string why) {
  return {.state = Readiness::State::NotReady, .why = std::move(why)};
}

Readiness meets(const json::Value& live, std::span<const std::string_view> types) {
  for (const std::string_view type : types) {
    if (!meets_condition(live, type)) return not_ready(fmt::format("{} is not True", type));
  }
  return ready();
}
Readiness meets(const json::Value& live, std::initializer_list<std::string_view> types) {
  return meets(live, std::span(types.begin(), types.size()));
}

Readiness workload_readiness(std::string_view kind, const json::Value& live) {
  if (kind == "DaemonSet") {
    return counters_agree(live, {"desiredNumberScheduled", "currentNumberScheduled",
                                 "updatedNumberScheduled", "numberAvailable", "numberReady"});
  }
  if (kind != "Deployment" && kind != "ReplicaSet" && kind != "StatefulSet") return ready();
  // The status of a ReplicaSet has no updatedReplicas: yoke compares with 0, which no ReplicaSet
  // with pods ever meets. Here that counter is ignored.
  Readiness counters =
      kind == "ReplicaSet"
          ? counters_agree(live, {"replicas", "availableReplicas", "readyReplicas"})
          : counters_agree(live,
                           {"replicas", "availableReplicas", "readyReplicas", "updatedReplicas"});
  if (!counters.is_ready() || kind != "Deployment") return counters;
  return meets(live, {"Available"});
}

Readiness job_readiness(const json::Value& live) {
  if (meets_condition(live, "Failed")) {
    return {.state = Readiness::State::Failed, .why = "job has failed"};
  }
  return meets(live, {"Complete"});
}

}  // namespace hangar::reconcile
