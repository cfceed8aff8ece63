// One running operator: its Life decides the next act, and this class carries it out with the
// guest, its requests and its ledger.
//
// A failure of any kind (a trap, a limit, an unreadable snapshot) ends only this instance of
// the guest: after a back-off, a new instance starts from nothing, lists and watches, and so
// misses nothing.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"
#include "operators/carried_operator.h"
#include "operators/guest_metrics.h"
#include "operators/guest_requests.h"
#include "operators/guest_reviews.h"
#include "operators/life.h"
#include "operators/operator.h"
#include "operators/operator_ledger.h"
#include "operators/operator_modules.h"
#include "operators/packed_operator.h"
#include "operators/recording.h"
#include "operators/restlessness.h"
#include "operators/sleep_planner.h"
#include "operators/start_place.h"
#include "output/log_writer.h"
#include "output/printout.h"
#include "wasm/engine.h"
#include "wasm/snapshot/sleepable_module.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::operators {

// The inputs of a guest besides its spec; read again at each start.
struct GuestInputs {
  std::vector<std::string> environment;      // "NAME=value".
  std::map<std::string, std::string> files;  // Path to content.
  abi::kube_runtime::Surroundings in_pod;    // See GuestOptions.
};
// The spec outlives the task.
using ReadInputs =
    std::function<io::Task<Result<GuestInputs>>(const Operator& spec, std::stop_token)>;

class RunningOperator final : public std::enable_shared_from_this<RunningOperator>,
                              private GuestRequests::Owner {
 public:
  // All of it outlives the operator.
  struct Parts {
    io::Loop& loop;
    wasm::Engine& engine;  // Its accounts bound the memory of guests, wherever they live.
    abi::kube_runtime::Guests& guests;
    output::LogWriter& output;
    const ReadInputs& read_inputs;
    Log log;
    budget::FairSlots& starts;        // Places of operators that start,
    budget::FairSlots& large_starts;  // of large ones among them,
    budget::FairSlots& turns;         // and of those that have a turn.
    GuestRequests::Parts requests;
    OperatorLedger::Parts ledger;
    SleepPlanners& planners;
    // Whether memory can be spared for a guest of so many bytes that does not need it yet.
    std::function<bool(const budget::Consumer&, std::uint64_t bytes)> may_load_ahead;
    // The state of the operator has changed. Called in loop turns of its own, never within a call
    // of this class.
    std::function<void(RunningOperator&)> on_change;
    // A guest failed; the operator restarts it by itself.
    std::function<void(RunningOperator&, const Error&)> on_failure;
    // A bound refuses a request of the guest. Not called again for limits::kOperatorBoundTold.
    std::function<void(RunningOperator&, const std::string& message)> on_bound;
  };
  // Must be owned by a shared_ptr.
  RunningOperator(const Parts& parts, const Operator& spec, OperatorModule module);
  RunningOperator(const RunningOperator&) = delete;
  RunningOperator& operator=(const RunningOperator&) = delete;
  ~RunningOperator();  // Stopped.

  void start();
  // Ends the act in progress. No callback is called after it returns.
  [[nodiscard]] io::Task<void> stop();
  // Makes it sleep as soon as it is idle.
  void press();
  // Makes it leave memory as soon as no turn of it is under way, whatever waits for it: it sleeps,
  // or starts anew if it cannot.
  void evict();
  // The host is about to be replaced in place: the guest has no more turns, and sleeps as soon as
  // it can.
  void hold();
  // Whether hold() has brought it where it goes: asleep, or where it cannot sleep.
  [[nodiscard]] bool is_settled() const { return !life_.is_settling(); }
  // Gives a guest that sleeps to the process that replaces this one. The operator has stopped then.
  // Unavailable, with the reason, when it has to start anew there; nothing has changed then.
  [[nodiscard]] Result<CarriedOperator> carry();
  // Instead of start(): continues a guest of the same object and module. On an error it is as
  // before. Errors as Guests::take_over.
  [[nodiscard]] Result<> take_over(CarriedOperator carried);
  // The metrics that the guest has registered, in Prometheus' text format. Never wakes the guest:
  // of one that sleeps, the text of its last answer, or a comment if there is none. NotFound when
  // it serves none; Unavailable, with the reason, when there is no usable answer.
  [[nodiscard]] io::Task<Result<std::string>> scrape();

  // Hands a review to the guest, waking it if it sleeps, and returns its answer. Until `stop` is
  // requested. NotFound: it takes no webhooks; Unavailable: it does not run, has too much to do, or
  // has not answered.
  [[nodiscard]] io::Task<GuestReviews::Answer> review(abi::kube_runtime::HttpRequest request,
                                                      std::stop_token stop);

  [[nodiscard]] const kube::ObjectKey& key() const { return key_; }
  // Of the names of these consumers; the operator's follows.
  static constexpr std::string_view kConsumerPrefix = "operator/";
  // The consumer that its turns are accounted to.
  [[nodiscard]] budget::Consumer consumer() const override {
    return {.tenant = budget::Tenant::of_namespace(key_.namespace_),
            .name = std::string(kConsumerPrefix) + key_.name};
  }
  // The spec and the module's source, except for the parts that only a start needs.
  [[nodiscard]] PackedOperator::Parts outline() const { return packed_.outline(key_); }
  [[nodiscard]] const wasm::SleepableModule& module() const { return *module_; }
  [[nodiscard]] const Life& life() const { return life_; }
  [[nodiscard]] std::uint64_t resident_bytes() const;
  [[nodiscard]] std::uint64_t disk_bytes() const;
  // Whether evict() would free memory: it holds some, or is about to use what it has been given.
  [[nodiscard]] bool may_be_evicted() const {
    return (life_.is_busy() || life_.is_resident()) && !waits_for_memory_ && !life_.is_evicted();
  }
  // When it probably wakes next. Nothing: nobody knows.
  [[nodiscard]] std::optional<foresight::Forecaster::Expectation> expected_wake() const;
  // It has had the answers to all of its requests.
  [[nodiscard]] bool has_all_answers() const { return requests_.is_settled(); }
  // Events and answers that wait for the next turn.
  [[nodiscard]] std::size_t waiting_count() const { return requests_.waiting_count(); }
  [[nodiscard]] const OperatorLedger& ledger() const { return ledger_; }
  [[nodiscard]] const Restlessness& restlessness() const { return restlessness_; }
  struct Troubles {
    std::string last_error;  // Why the last instance failed; empty: none has.
    // Why it could not be suspended; empty once it could.
    std::string sleep_problem;
    std::optional<Instant> bound_told;  // When on_bound was called last.
  };
  [[nodiscard]] const Troubles& troubles() const;

 private:
  [[nodiscard]] kube::Identity identity() const override;
  [[nodiscard]] kube::Identity identity_of(const PackedOperator::Origin& origin) const;
  [[nodiscard]] bool is_resident() const override { return life_.is_resident(); }
  void on_arrival() override;
  void on_bound(const std::string& message) override;
  void on_overflow(const Overflow& overflow) override;

  void look();
  void look_later();
  [[nodiscard]] io::Task<void> carry_out(Life::Act act);
  void give_up(Life::Act act, const Error& error);
  [[nodiscard]] abi::kube_runtime::GuestOptions options_of(const Operator& spec) const;
  [[nodiscard]] abi::kube_runtime::Guests::Events guest_events();
  // Why a guest that does not sleep has to start anew.
  [[nodiscard]] std::string why_awake() const;
  [[nodiscard]] io::Task<void> begin_guest();
  [[nodiscard]] io::Task<void> wake_guest();
  // Waits for a place among the operators that start.
  [[nodiscard]] io::Task<Result<>> wait_to_start();
  // Waits for a place among the operators that have a turn.
  [[nodiscard]] io::Task<Result<budget::FairSlots::Slot>> wait_for_turn();
  // Waits until the guest may be brought into memory, if it sleeps. This comes before the place for
  // a turn, so that a guest that waits for memory blocks no other.
  [[nodiscard]] io::Task<Result<>> wait_for_memory();
  [[nodiscard]] std::uint64_t expected_cost() const;
  void charge_turn(budget::FairSlots::Slot& slot, const abi::kube_runtime::TurnOutcome& outcome);
  [[nodiscard]] io::Task<Result<abi::kube_runtime::TurnOutcome>> first_turn();
  [[nodiscard]] io::Task<void> fall_asleep();
  [[nodiscard]] io::Task<void> load_guest();
  // Adds a request for its metrics to the wakeups of a turn, if that is due.
  void ask_for_metrics(std::vector<abi::kube_runtime::Wakeup>& wakeups, Woken& woken);
  // Adds reviews to the wakeups of a turn.
  void hand_over_reviews(std::vector<abi::kube_runtime::Wakeup>& wakeups, Woken& woken);
  // Something may be there for the guest's next turn.
  void look_for_reviews();
  void record_turn(const abi::kube_runtime::TurnOutcome& outcome, const Woken& woken,
                   Instant arrived, Instant began) const;
  void keep_output(const abi::kube_runtime::TurnOutcome& outcome);
  void on_outcome(abi::kube_runtime::TurnOutcome outcome, Duration took);
  void fail(Error error);
  // Destroys the guest, and everything that was meant for it.
  void drop_guest();

  // The state of an operator at work. Usually null while it sleeps, since there are thousands.
  struct Work {
    std::unique_ptr<StartPlace> starting;  // Null: it does not start, or is idle already.

    io::Loop::Timer look_timer;
    std::stop_source stop;
    std::stop_source turn_wait{std::nostopstate};  // Ends the wait for a turn.
    std::optional<io::OneShot<bool>> stopped;      // Set when the act under way has ended.

    [[nodiscard]] bool is_nothing() const {
      return !stopped && (starting == nullptr || !starting->is_held());
    }
  };
  [[nodiscard]] Work& work() {
    if (!work_) work_ = std::make_unique<Work>();
    return *work_;
  }
  [[nodiscard]] Troubles& troubles_to_change() {
    if (!troubles_) troubles_ = std::make_unique<Troubles>();
    return *troubles_;
  }
  // The guest has left memory: frees what only a guest in memory needs.
  void rest();

  const Parts& parts_;
  const kube::ObjectKey key_;
  const PackedOperator packed_;
  const std::shared_ptr<const wasm::SleepableModule> module_;
  Life life_;
  OperatorLedger ledger_;
  Restlessness restlessness_;
  GuestRequests requests_;
  std::unique_ptr<Troubles> troubles_;     // Null: there have been none.
  std::unique_ptr<SleepPlanner> planner_;  // Null with another policy than Predictive.

  std::unique_ptr<abi::kube_runtime::Guest> guest_;
  std::unique_ptr<GuestMetrics> metrics_;  // Null: nobody has scraped it lately.
  std::unique_ptr<GuestReviews> reviews_;  // Null: there are none.
  bool serves_metrics_ = false;            // As of its last turn.
  bool takes_webhooks_ = false;            // The same.
  bool will_look_ = false;
  bool is_stopped_ = false;
  bool waits_for_memory_ = false;
  std::unique_ptr<output::Printout> output_;  // Null: the same as never having printed.
  std::unique_ptr<Work> work_;
};

}  // namespace hangar::operators
