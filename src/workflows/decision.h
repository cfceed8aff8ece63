// Decides what to do next for one workflow, and how the results change its ledger: pure, without
// I/O and clock.
//
// A Decision starts from the ledger as the API server stores it. Its caller repeatedly calls
// next(), carries out the step, and reports the result. Guarantees, whatever stops the process in
// between:
// - An action is handed out only once it is in a written ledger, and stays there until a write
//   removes it together with its resulting event. So it is handed out again after a crash, and
//   never after it was acknowledged; the executor recognises by its id what was already done.
// - An event leaves the inbox in the write that stores its consequences.
// - A signal's id is remembered in the write that stores the signal.
// Anything not yet written is lost with the process, and worked out again.
#pragma once

#include "abi/statemachine/delays.h"
#include "abi/statemachine/machine.h"
#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "workflows/actions.h"
#include "workflows/ledger.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::workflows {

// The parts of the workflow's spec that decisions depend on.
struct Rules {
  kube::ObjectKey key = {};
  std::string uid = {};
  std::size_t history_max = 20;
  std::optional<Duration> timeout = {};
  std::map<std::string, Duration, std::less<>> state_timeouts = {};
};

class Decision {
 public:
  Decision(Ledger written, Rules rules);

  // The next step. Exactly one is open at any time; the caller reports its result.
  struct Start {};  // The machine's initial state: on_started(), on_stuck().
  struct Ask {};    // The machine's answer to event(): on_decided(), on_stuck().
  struct Write {};  // The ledger: on_written().
  struct Execute {  // on_done(), on_waiting(), on_pinned(), on_failed().
    std::int64_t id = 0;
    // This is the first attempt ever: no part of it can have been done.
    bool is_fresh = false;
  };
  struct Wait {  // Nothing to do until then, or until a change arrives.
    std::optional<WallTime> until;
  };
  using Next = std::variant<Start, Ask, Write, Execute, Wait>;
  [[nodiscard]] Next next(WallTime now);

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] Owner owner() const;
  // The event to decide about, while the next step is Ask.
  [[nodiscard]] const QueuedEvent& event() const {
    HANGAR_ASSERT(!ledger_.inbox.empty(), "a machine is asked about an event");
    return ledger_.inbox.front();
  }

  struct Revision {
    std::string sha256;
    std::string resolved;
  };
  // `run`: a word that no earlier run of this object had. LimitExceeded or InvalidInput when the
  // step requests more than a ledger holds; then nothing has changed.
  [[nodiscard]] Result<> on_started(const abi::statemachine::Step& step, Revision revision,
                                    std::string run, WallTime now);
  [[nodiscard]] Result<> on_decided(const abi::statemachine::Step& step, WallTime now);
  // The machine could not answer: its events wait, and earlier actions continue.
  void on_stuck() { is_stuck_ = true; }
  void on_written();

  // The action has succeeded; its event is `event`.
  void on_done(std::int64_t id, json::Value event);
  // The action waits for the cluster. `what`, for people, names the thing it waits for, and
  // `problem` why that may take longer than necessary. False: the action has timed out, and failed.
  bool on_waiting(std::int64_t id, std::string_view what, WallTime now,
                  std::string_view problem = {});
  // The object that the action is about has this uid, which has to be written before the action
  // continues.
  void on_pinned(std::int64_t id, std::string target);
  struct Failure {
    std::string reason;     // A word, the API server's where it has one: "AlreadyExists".
    std::string kind = {};  // Of the error: "Denied".
    std::string message;
    bool is_final = false;  // Final even if the policy allows retries.
  };
  // `jitter` between 0 and 1. True: it will be retried; false: FAILURE has been sent.
  bool on_failed(std::int64_t id, const Failure& failure, const RetryPolicy& policy, double jitter,
                 WallTime now);
  // This host does not know the type: the action waits for a host that does.
  void on_unknown(std::int64_t id) { parked_.insert(id); }

  // An event for the machine from outside. False: the signal was already accepted, or the inbox has
  // no room for it or for an earlier one. `version`: the version of the workflow that the signal
  // came with, if known.
  bool on_signal(std::string id, json::Value event, std::uint64_t version = 0);
  // A signal that is not valid: its id is remembered, so that it is looked at only once.
  void refuse_signal(std::string id);
  // `seen`: the version of the resource that is remembered from now on.
  void on_change(std::size_t resource, std::string seen, json::Value event);
  // `event` contains everything there is to report about an object in that version, or about its
  // deletion.
  void on_made(const json::Value& event, std::string seen);

  // Drops the resources that are no longer needed after DELETE_RESOURCES.
  void drop_resources();
  // Cancels the actions that were requested before that one and have not finished.
  void abandon_before(std::int64_t id);

  void on_migrated(Migration migration, std::optional<Revision> revision);
  // The machine knows the state that another client wrote: `value` (unless empty), with these
  // actors.
  void adopt(Revision revision, std::string_view value,
             const std::vector<abi::statemachine::Actor>& actors, std::string run, WallTime now);
  // The present delays of the machine that were not started when its states were entered: another
  // machine, or none, entered them.
  [[nodiscard]] std::vector<abi::statemachine::Delay> missing_delays(
      const std::vector<abi::statemachine::Delay>& delays) const;
  // Starts the missing delays, as of `since`, if their length is known; drops running ones that the
  // machine does not have.
  void take_delays(const std::vector<abi::statemachine::Delay>& delays, WallTime since);

  // The transitions since the decision began, for people.
  struct Transition {
    std::string from;
    std::string to;
    std::string event;
    std::optional<Duration> stayed;  // In `from`.
  };
  [[nodiscard]] std::vector<Transition> take_transitions() {
    return std::exchange(transitions_, {});
  }
  // Signals that the machine did not know in the state in which they arrived.
  [[nodiscard]] std::vector<std::string> take_ignored() { return std::exchange(ignored_, {}); }

 private:
  void enter(const abi::statemachine::Step& step, const QueuedEvent* event, WallTime now);
  void ask_for(const abi::statemachine::Step& step, HistoryEntry& entry, WallTime now);
  // Returns what changed, for people.
  std::vector<std::string> take_actors(const std::vector<abi::statemachine::Actor>& actors,
                                       WallTime now);
  // Cancels the actions whose results these actors waited for, if requested before that action.
  void stop_actors(const std::vector<std::string>& actors, std::int64_t first_action);
  void set_timers(const abi::statemachine::Step& step, WallTime now);
  void set_timeouts(std::string_view before, WallTime now);
  void finish(const abi::statemachine::Step& step, const QueuedEvent* event, WallTime now);
  void on_ignored(QueuedEvent event);
  void receive(Origin origin, json::Value event, std::uint64_t source = 0);
  // Whether the inbox has room for the event.
  [[nodiscard]] bool has_room_for(const json::Value& event) const;
  void take_due_timers(WallTime now);
  void acknowledge(std::int64_t id, json::Value event);
  // The object that the action creates, if the ledger does not have it.
  [[nodiscard]] std::optional<OwnedResource> new_resource(const PendingAction& action) const;
  [[nodiscard]] Result<> check_resources(const abi::statemachine::Step& step) const;
  void add_resource(const PendingAction& action);
  // Whether the machine has requested its deletion, or another Job in its place.
  [[nodiscard]] bool is_being_deleted(const OwnedResource& resource);
  [[nodiscard]] QueuedEvent take_event();
  [[nodiscard]] std::optional<WallTime> next_due(WallTime now) const;
  void trim();

  Ledger ledger_;
  const Rules rules_;
  bool is_dirty_ = false;
  bool is_stuck_ = false;
  // A signal or a change found no room in the inbox: the host looks again once there is room.
  bool has_left_out_ = false;
  std::size_t steps_ = 0;           // Of the machine.
  std::size_t written_events_ = 0;  // How many of the inbox are in the written ledger.
  std::set<std::int64_t> fresh_;
  std::set<std::int64_t> parked_;
  // By id: the objects of actions that delete them or run a Job in their place. Empty if the
  // action's params are invalid.
  std::map<std::int64_t, std::optional<OwnedResource>> deleting_;
  std::vector<Transition> transitions_;
  std::vector<std::string> ignored_;
};

}  // namespace hangar::workflows
