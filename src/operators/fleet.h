// All operators of this host: which ones run, and which ones leave memory when it is short.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/equal_parts.h"
#include "budget/fair_slots.h"
#include "budget/memory_pressure.h"
#include "budget/pressure_watch.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"
#include "operators/carried_operator.h"
#include "operators/limits.h"
#include "operators/operator_series.h"
#include "operators/outbound.h"
#include "operators/running_operator.h"
#include "operators/sleep_planner.h"
#include "recorder/recorder.h"
#include "wasm/snapshot/snapshot_store.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {

// A resident operator that is idle.
struct Resident {
  std::uint64_t bytes = 0;  // Freed by suspending it.
  Instant idle_since;
  Duration cost{};  // Of its last wake, as an estimate of the next.
  // When it probably wakes; nothing: as far in the future as its last activity is in the past.
  std::optional<Instant> next_wake = {};
};
// Which operators to suspend so that at least `excess_bytes` are freed, least valuable first: those
// with the highest product of bytes held and time until they wake, divided by the cost of that.
// Returns indices into `residents`; all of them if even that is not enough.
[[nodiscard]] std::vector<std::size_t> least_valuable(std::span<const Resident> residents,
                                                      std::uint64_t excess_bytes, Instant now);

// Which operators leave memory early while large guests wait to start, as indices: least valuable
// first, of those that have been idle for a moment.
[[nodiscard]] std::vector<std::size_t> to_leave_early(std::span<const Resident> residents,
                                                      Instant now);

// A guest that could leave memory although it has work, or never sleeps.
struct Evictable {
  budget::Tenant tenant;
  std::uint64_t bytes = 0;
  bool is_leaving = false;  // It will sleep soon, whatever happens here.
};
// Which guests have to make room for others: the largest ones of tenants that hold more than an
// equal part, for claims that budget::EqualParts allow. While such a claim is not met, some tenant
// holds more than the part, since the parts are all there is. So it waits for the end of a turn at
// most, however many tenants have guests that never rest. Returns indices into `guests`.
[[nodiscard]] std::vector<std::size_t> guests_to_evict(const budget::Contest& contest,
                                                       std::span<const Evictable> guests);

// Loop thread only.
class Fleet {
 public:
  // All of it outlives this.
  struct Parts {
    io::Loop& loop;
    wasm::Engine& engine;  // See RunningOperator::Parts.
    budget::PressureWatch& pressure;
    abi::kube_runtime::Guests& guests;
    // Where they sleep; null: nothing is given back of it when memory is short.
    wasm::SnapshotStore* snapshots = nullptr;
    gateway::Gateway& gateway;
    Outbound& outbound;
    Metrics& metrics;
    output::LogWriter& output;
    recorder::Recorder* recorder = nullptr;                          // Null: nothing is recorded.
    std::function<bool(const std::string&)> may_record_bodies = {};  // See OperatorLedger::Parts.
    ReadInputs read_inputs;
    Log log;
    // For the memory of all guests, including those that cannot sleep; zero: no budget.
    std::uint64_t memory_budget_bytes = 0;
    // For the answers that wait for guests or that they have in a turn.
    budget::Accounts::Limits answers = {};
  };
  struct Listener {
    std::function<void(const RunningOperator&)> on_change;
    std::function<void(const RunningOperator&, const Error&)> on_failure;
    std::function<void(const RunningOperator&, const std::string& message)> on_bound;
  };
  Fleet(const Parts& parts, Listener listener);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet();  // Stopped.

  // Starts an operator. One that already has its key is replaced: it has ended before the new one
  // begins, so that the two never act at once.
  [[nodiscard]] io::Task<void> run(Operator spec, OperatorModule module);
  // The same for an operator that slept in the host before this one. On an error it has to start
  // anew, and has been started.
  [[nodiscard]] io::Task<Result<>> take_over(Operator spec, OperatorModule module,
                                             CarriedOperator carried);
  // Stops all operators. Those that sleep within the time are given to the process that replaces
  // this one, except for their snapshots' file; the others have to start anew there.
  [[nodiscard]] io::Task<CarriedFleet> carry(Duration within);
  // Frees what an operator holds that nobody takes over.
  void discard(CarriedOperator carried);
  // Ends the operator and frees what it held. Does nothing if there is none.
  [[nodiscard]] io::Task<void> remove(kube::ObjectKey key);
  [[nodiscard]] io::Task<void> stop();

  // Like RunningOperator::scrape; also NotFound when there is no such operator.
  [[nodiscard]] io::Task<Result<std::string>> scrape(kube::ObjectKey key) const;

  // Like RunningOperator::review; also NotFound when there is no such operator.
  [[nodiscard]] io::Task<GuestReviews::Answer> review(kube::ObjectKey key,
                                                      abi::kube_runtime::HttpRequest request,
                                                      std::stop_token stop) const;

  // Null when there is no such operator.
  [[nodiscard]] const RunningOperator* find(const kube::ObjectKey& key) const;
  [[nodiscard]] std::size_t size() const { return operators_.size(); }
  // The answers that wait for guests or that they have in a turn.
  [[nodiscard]] const budget::Accounts& answers() const { return answers_; }
  // By their keys.
  void visit(const std::function<void(const RunningOperator&)>& visitor) const;

 private:
  // In place of the one that has its key.
  [[nodiscard]] io::Task<RunningOperator*> add(Operator spec, OperatorModule module);
  void on_change(RunningOperator& changed);
  void make_room();
  // The same while large guests wait to start.
  void make_room_for_starts();
  // Asks idle operators to sleep: those of the namespace, if only its memory is short.
  void make_room_for(const budget::Shortage& shortage, std::string_view namespace_name);
  void give_back_later();
  // Gives memory back before the kernel takes it.
  void on_pressure(const budget::PressureGuard::Advice& advice);
  void press_least_valuable(std::uint64_t bytes);
  // Evicts what guests_to_evict() returns.
  void evict();
  [[nodiscard]] io::Task<void> drop_page_cache();
  [[nodiscard]] bool may_load_ahead(const budget::Consumer& consumer, std::uint64_t bytes) const;
  void collect(Metrics::Families& families) const;
  void collect_memory(Metrics::Families& families) const;

  const Parts fleet_parts_;
  const Listener listener_;
  OperatorMetrics metrics_;
  budget::FairSlots starts_;
  budget::FairSlots large_starts_;
  budget::FairSlots turns_;
  budget::Accounts answers_;
  OperatorSeriesPool series_{limits::kOperatorSeriesMax};
  SleepPlanners planners_;
  Counter& pressure_suspends_;
  Counter& evictions_;
  Counter& page_cache_drops_;
  const RunningOperator::Parts parts_;
  // By their keys.
  struct ByKey {
    using is_transparent = void;
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): compared at once.
    static const kube::ObjectKey& key_of(const kube::ObjectKey& key) { return key; }
    static const kube::ObjectKey& key_of(const std::shared_ptr<RunningOperator>& running) {
      return running->key();
    }
    bool operator()(const auto& left, const auto& right) const {
      return key_of(left) < key_of(right);
    }
  };
  std::set<std::shared_ptr<RunningOperator>, ByKey,
           slots::Allocator<std::shared_ptr<RunningOperator>>>
      operators_;
  // Operators in memory, with the bytes that each was counted with.
  std::map<RunningOperator*, std::uint64_t> resident_;
  std::uint64_t resident_bytes_ = 0;
  bool is_pressed_ = false;  // Nothing is loaded ahead.
  bool is_dropping_ = false;
  io::Event dropped_;  // From the page cache.
  io::Loop::Timer give_back_timer_;
  bool will_give_back_ = false;
  bool has_left_ = false;  // A guest has left memory since the timer was set.
  const std::unique_ptr<budget::PressureWatch::Listening> listening_;
  const std::unique_ptr<Metrics::Collection> collection_;
};

}  // namespace hangar::operators
