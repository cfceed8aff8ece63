// Whether a workload or a Job has reached its desired state: one meaning for every feature.
#pragma once

#include "json/value.h"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace hangar::reconcile {

struct Readiness {
  enum class State : std::uint8_t { Ready, NotReady, Failed };
  State state = State::Ready;
  std::string why;  // Empty when ready: "2 of 3 replicas are available".

  [[nodiscard]] bool is_ready() const { return state == State::Ready; }
};
[[nodiscard]] Readiness ready();
[[nodiscard]] Readiness not_ready(std::string why);

// Ready when each of those conditions is True.
[[nodiscard]] Readiness meets(const json::Value& live, std::span<const std::string_view> types);
[[nodiscard]] Readiness meets(const json::Value& live,
                              std::initializer_list<std::string_view> types);

// For a Deployment, ReplicaSet, StatefulSet or DaemonSet of group apps; other kinds are
// always ready.
[[nodiscard]] Readiness workload_readiness(std::string_view kind, const json::Value& live);
// Failed when the Job has failed.
[[nodiscard]] Readiness job_readiness(const json::Value& live);

}  // namespace hangar::reconcile
