// Counts, times and records what happens to one operator: in the metrics of all operators, in its
// own series, in the figures of its status, and in the recorder. Each event enters through one
// call, so that the four always agree.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/metrics.h"
#include "base/time.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "kube/object.h"
#include "operators/life.h"
#include "operators/operator_series.h"
#include "operators/recording.h"
#include "recorder/record.h"
#include "recorder/recorder.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::operators {

// The metrics of all operators together.
struct OperatorMetrics {
  explicit OperatorMetrics(Metrics& metrics);

  Counter& starts;
  Counter& failures;
  Counter& wakes;
  Counter& events;            // Answers and pieces handed over.
  Counter& events_coalesced;  // Those after the first of each wake.
  Counter& requests;
  Counter& suspends;
  Counter& suspend_failures;
  Histogram& wake_seconds;  // From the first arrival to the end of the guest's turn.
  Histogram& resume_seconds;
  Histogram& suspend_seconds;
};

// Loop thread only.
class OperatorLedger {
 public:
  // All of it outlives the ledger.
  struct Parts {
    OperatorMetrics& metrics;
    OperatorSeriesPool& series;
    recorder::Recorder* recorder;  // Null: nothing is recorded.
    // Whether the policies of a namespace allow that bodies are recorded. Asked for each body, so
    // that a change counts at once. Null: they do not.
    std::function<bool(const std::string& namespace_name)> may_record_bodies = {};
  };
  // `key` and `life` outlive it, too.
  OperatorLedger(const Parts& parts, const kube::ObjectKey& key, const Life& life)
      : parts_(parts), key_(key), life_(life), series_(parts.series.take()) {}

  struct Figures {
    std::uint64_t wakes = 0;
    Duration last_cpu_time{};     // Of the last turn; not of the first one.
    Duration last_resume_time{};  // Of the last turn that began asleep.
    std::optional<WallTime> last_wake;
    std::uint64_t requests = 0;
    std::uint64_t failures = 0;
  };
  [[nodiscard]] const Figures& figures() const { return figures_; }
  // Those of the same guest in the host before this one.
  void continue_from(const Figures& figures) { figures_ = figures; }
  [[nodiscard]] const OperatorSeriesAccount& series() const { return series_; }
  // The number of the last turn that began. It ascends, also across instances.
  [[nodiscard]] std::uint64_t turn_number() const { return life_.start_count() + figures_.wakes; }

  // A guest is about to be restarted; a guest has its first turn.
  void on_restart() { ++series_.series().restarts; }
  void on_start() { parts_.metrics.starts.add(); }
  // A turn that has delivered arrivals.
  struct Wake {
    std::size_t arrivals = 0;
    Instant arrived;  // The first of them.
    Instant began;
    Instant ended;
  };
  void on_wake(const Wake& wake, const abi::kube_runtime::TurnOutcome& outcome);
  // Each turn, including the first.
  void on_turn(Duration took, Duration cpu_time);
  void on_success() { ++series_.series().turns_succeeded; }
  void on_trap() { ++series_.series().traps; }
  void on_failure();
  void on_request();
  void on_answer(KnownMethod method, int status) { series_.series().answered(method, status); }
  // An attempt to suspend has ended now.
  void on_sleep(Instant began, bool is_asleep, std::uint64_t disk_bytes);
  // The operator rests: keeps the counts in less memory.
  void rest() { series_.rest(); }

  [[nodiscard]] bool is_recording() const { return parts_.recorder != nullptr; }
  // From now on, the bodies of its writes are recorded, too, while its policies allow that.
  void record_bodies(const Operator& spec) { bodies_ = std::make_unique<SecretsRead>(spec); }
  // The guest is given a review.
  void on_review(std::string_view body) {
    if (bodies_) bodies_->add_review(body);
  }
  // The functions below do nothing without a recorder. What the record of a turn holds besides
  // its outcome:
  struct TurnContext {
    std::string_view uid;   // Of the Operator,
    std::string_view user;  // and the ServiceAccount of its requests.
    std::string_view module;
    std::uint64_t memory_bytes = 0;
    Instant arrived;
    Instant began;
  };
  void record_turn(const TurnContext& context, const abi::kube_runtime::TurnOutcome& outcome,
                   const Woken& woken) const;
  // `turn`: the number of the turn that made it.
  void record_request(std::uint64_t id, std::uint64_t turn, const gateway::RequestTarget& target,
                      const gateway::Request& request) const;
  [[nodiscard]] bool is_tracing() const {
    return is_recording() && parts_.recorder->trace_ids() != nullptr;
  }
  // The header that makes the request part of its turn's trace; empty: there are no traces.
  [[nodiscard]] std::string traceparent(std::uint64_t id, std::uint64_t turn) const;
  // Status zero: the guest no longer waits for the answer.
  void record_answer(std::uint64_t id, int status, std::string_view body) const;

 private:
  [[nodiscard]] recorder::Guest recorded_guest() const;

  const Parts& parts_;
  const kube::ObjectKey& key_;
  const Life& life_;
  OperatorSeriesAccount series_;
  Figures figures_;
  std::unique_ptr<SecretsRead> bodies_;  // Null: bodies are not recorded.
};

}  // namespace hangar::operators
