// One operator at work: its life decides what is next, and this carries it out, with its guest, its
// requests and its ledger.
//
// A failure of any kind (a trap, a limit, a snapshot that cannot be read) ends this instance of the
// guest only: after a back-off a new one starts from nothing, lists and watches, and so misses
// nothing.
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
#include "operators/guest_requests.h"
#include "operators/life.h"
#include "operators/operator.h"
#include "operators/operator_ledger.h"
#include "operators/operator_modules.h"
#include "operators/packed_operator.h"
#include "operators/recording.h"
#include "output/log_writer.h"
#include "output/printout.h"
#include "wasm/snapshot/snapshot_store.h"

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

// What a guest is given besides its spec; read anew at each start.
struct GuestInputs {
  std::vector<std::string> environment;      // "NAME=value".
  std::map<std::string, std::string> files;  // Path to content.
  abi::kube_runtime::Surroundings in_pod;    // As GuestOptions has it.
};
// The spec lives until the task has ended.
using ReadInputs =
    std::function<io::Task<Result<GuestInputs>>(const Operator& spec, std::stop_token)>;

class RunningOperator final : public std::enable_shared_from_this<RunningOperator>,
                              private GuestRequests::Owner {
 public:
  // All of it outlives the operator.
  struct Parts {
    io::Loop& loop;
    const abi::kube_runtime::Runtime& runtime;
    wasm::SnapshotStore& snapshots;
    output::LogWriter& output;
    const ReadInputs& read_inputs;
    Log log;
    budget::FairSlots& starts;  // Of all operators that may be starting at once,
    budget::FairSlots& turns;   // and those that may be under way.
    GuestRequests::Parts requests;
    OperatorLedger::Parts ledger;
    // Called in turns of the loop of their own, never from within a call of this class: something
    // about the operator is another than before.
    std::function<void(RunningOperator&)> on_change;
    // It begins to wait for memory, so that others may be asked to leave theirs, or it no longer
    // does: `shortage()` says which.
    std::function<void(RunningOperator&)> on_shortage;
    // A guest failed; the operator goes on by itself.
    std::function<void(RunningOperator&, const Error&)> on_failure;
  };
  // Owned by a shared_ptr.
  RunningOperator(const Parts& parts, const Operator& spec, OperatorModule module);
  RunningOperator(const RunningOperator&) = delete;
  RunningOperator& operator=(const RunningOperator&) = delete;
  ~RunningOperator();  // Stopped.

  void start();
  // Ends what is under way. Nothing is called any more once it returns.
  [[nodiscard]] io::Task<void> stop();
  // It is to sleep as soon as it has nothing to do.
  void press();

  [[nodiscard]] const kube::ObjectKey& key() const { return key_; }
  // For whom its turns are.
  [[nodiscard]] budget::Consumer consumer() const {
    return {.tenant = budget::Tenant::of_namespace(key_.namespace_),
            .name = "operator/" + key_.name};
  }
  // Of its spec and where its module is, but for what only a start needs.
  [[nodiscard]] PackedOperator::Parts outline() const { return packed_.outline(key_); }
  [[nodiscard]] const wasm::SleepableModule& module() const { return *module_; }
  [[nodiscard]] const Life& life() const { return life_; }
  [[nodiscard]] std::uint64_t resident_bytes() const;
  [[nodiscard]] std::uint64_t disk_bytes() const;
  // Why it waits to be brought into memory; nothing when it does not.
  [[nodiscard]] const budget::Shortage* shortage() const {
    return work_ && work_->shortage ? &*work_->shortage : nullptr;
  }
  // Events and answers that wait for its next turn.
  [[nodiscard]] std::size_t waiting_count() const { return requests_.waiting_count(); }
  [[nodiscard]] const OperatorLedger& ledger() const { return ledger_; }
  struct Troubles {
    std::string last_error;  // Why the last instance ended; empty when none did.
    // Why it stays in memory although it is to sleep; empty once it could.
    std::string sleep_problem;
  };
  [[nodiscard]] const Troubles& troubles() const;

 private:
  [[nodiscard]] kube::Identity identity() const override;
  [[nodiscard]] bool is_resident() const override { return life_.is_resident(); }
  void on_arrival() override;
  void on_overflow() override;

  void look();
  void look_later();
  [[nodiscard]] io::Task<void> carry_out(Life::Act act);
  void give_up(Life::Act act, const Error& error);
  [[nodiscard]] io::Task<void> begin_guest();
  [[nodiscard]] io::Task<void> wake_guest();
  // Until it has its place among those that start.
  [[nodiscard]] io::Task<Result<>> wait_to_start();
  // The same among those that have a turn.
  [[nodiscard]] io::Task<Result<budget::FairSlots::Slot>> wait_for_turn();
  // Until the guest may be brought into memory, if it is not there. Before its place among those
  // that have a turn: one that waits for memory holds up nobody.
  [[nodiscard]] io::Task<Result<>> wait_for_memory();
  [[nodiscard]] std::uint64_t expected_cost() const;
  void charge_turn(budget::FairSlots::Slot& slot, const abi::kube_runtime::TurnOutcome& outcome);
  [[nodiscard]] io::Task<Result<abi::kube_runtime::TurnOutcome>> first_turn();
  [[nodiscard]] io::Task<void> fall_asleep();
  void record_turn(const abi::kube_runtime::TurnOutcome& outcome, const Woken& woken,
                   Instant arrived, Instant began) const;
  void keep_output(const abi::kube_runtime::TurnOutcome& outcome);
  void on_outcome(abi::kube_runtime::TurnOutcome outcome, Duration took);
  void fail(Error error);
  // With all that was meant for it.
  void drop_guest();

  // What it has to do, and what that needs. Mostly null in one that sleeps: there are thousands.
  struct Work {
    // From its place among those that start until it first has nothing to do.
    struct Starting {
      budget::FairSlots::Slot slot;
      io::Loop::Timer until;
    };
    std::optional<Starting> starting;

    std::optional<budget::Shortage> shortage;  // While it waits for memory.
    io::Loop::Timer look_timer;
    std::stop_source stop;
    std::optional<io::OneShot<bool>> stopped;  // Set when the act under way has ended.

    [[nodiscard]] bool is_nothing() const { return !starting && !stopped; }
  };
  [[nodiscard]] Work& work() {
    if (!work_) work_ = std::make_unique<Work>();
    return *work_;
  }
  [[nodiscard]] Troubles& troubles_to_change() {
    if (!troubles_) troubles_ = std::make_unique<Troubles>();
    return *troubles_;
  }
  // It is not in memory: what only one at work needs is not kept.
  void rest();

  const Parts& parts_;
  const kube::ObjectKey key_;
  const PackedOperator packed_;
  const std::shared_ptr<const wasm::SleepableModule> module_;
  Life life_;
  OperatorLedger ledger_;
  GuestRequests requests_;
  std::unique_ptr<Troubles> troubles_;  // Null: it has never had any.

  std::unique_ptr<abi::kube_runtime::Guest> guest_;
  bool will_look_ = false;
  bool is_stopped_ = false;
  std::unique_ptr<output::Printout> output_;  // Null: as if it had never printed.
  std::unique_ptr<Work> work_;
};

}  // namespace hangar::operators
