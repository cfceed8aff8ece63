// The status of an Operator: its figures and conditions, as a function of what the host knows about
// it. No I/O.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/rates.h"
#include "foresight/forecaster.h"
#include "foresight/moment.h"
#include "json/value.h"
#include "operators/life.h"
#include "operators/operator.h"
#include "operators/operator_ledger.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hangar::operators {

// What the status shows of an operator that runs.
struct ShownOperator {
  Phase phase = Phase::Starting;
  std::string last_error;               // See RunningOperator::Troubles.
  std::string sleep_problem;            // The same.
  std::optional<std::string> obstacle;  // Why its module cannot sleep; nothing: it can.
  SleepPolicy::Kind sleep = SleepPolicy::Kind::Idle;
  std::optional<Duration> restless_period;  // See Restlessness.
  std::string sha256;                       // Of the module.
  std::string resolved;                     // Where the module comes from.
  std::uint64_t resident_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t start_count = 0;
  OperatorLedger::Figures figures = {};
  std::optional<foresight::Forecaster::Expectation> expected_wake;
};

struct OperatorState {
  std::optional<ShownOperator> running = {};  // Nothing: it does not run.
  std::optional<Error> problem = {};          // Of its spec, its rights or its module.
  std::string awaited = {};                   // What its module waits for; empty: for nothing.
  std::string pod = {};                       // Where its output is; empty: in no pod.
  // What its guest waits for; null: for nothing.
  const budget::Shortage* memory_wait = nullptr;
  const budget::RateLimit* processor_wait = nullptr;
  std::optional<Error> webhook_problem = {};
  std::optional<Error> record_problem = {};  // Why the bodies of its writes are not recorded.
};

// The status of `manifest`, brought up to date at `now`. None of its conditions is removed.
[[nodiscard]] json::Value operator_status(const json::Value& manifest, const OperatorState& state,
                                          foresight::Moment now);

// Whether two statuses differ only in what is there for people to look at, such as sizes and times.
// True if they do not differ at all.
[[nodiscard]] bool differ_in_figures_only(json::Value left, json::Value right);

// What the spec says, even if the rest of it is invalid.
[[nodiscard]] Recording recording_of(const json::Value& manifest);

}  // namespace hangar::operators
