// What to do next for one workflow, and what its ledger becomes of what was done: pure, without I/O
// and clock.
//
// A Decision begins with the ledger as the API server has it and is asked again and again what is
// next. Whoever carries that out says how it ended. Guarantees, whatever ends the process in
// between:
//   - An action is handed out only once it is in a written ledger, and stays there until a write
//     takes it out together with the event that it came to. So it is handed out again after a
//     crash, and never after it was acknowledged; who carries it out recognises by its id what was
//     done already.
//   - An event leaves the inbox in the write that holds what it led to.
//   - A signal's id is remembered in the write that takes the signal in.
// What is not written is lost with the process, and found out again.
#pragma once

#include "abi/statemachine/delays.h"
#include "abi/statemachine/machine.h"
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

// What the workflow's spec says about deciding.
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

  // What is next. Exactly one of them at a time; then tell how it ended.
  struct Start {};  // The machine's initial state: on_started(), on_stuck().
  struct Ask {};    // The machine's answer to event(): on_decided(), on_stuck().
  struct Write {};  // The ledger: on_written().
  struct Execute {  // on_done(), on_waiting(), on_pinned(), on_failed().
    std::int64_t id = 0;
    // Nobody has tried it before: nothing of it can have been done.
    bool is_fresh = false;
  };
  struct Wait {  // Nothing until then, or until something happens.
    std::optional<WallTime> until;
  };
  using Next = std::variant<Start, Ask, Write, Execute, Wait>;
  [[nodiscard]] Next next(WallTime now);

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] Owner owner() const;
  // With Ask.
  [[nodiscard]] const QueuedEvent& event() const { return ledger_.inbox.front(); }

  struct Revision {
    std::string sha256;
    std::string resolved;
  };
  // `run`: a word that no earlier run of this object had. LimitExceeded or InvalidInput when the
  // step asks for more than a ledger holds; nothing has changed then.
  [[nodiscard]] Result<> on_started(const abi::statemachine::Step& step, Revision revision,
                                    std::string run, WallTime now);
  [[nodiscard]] Result<> on_decided(const abi::statemachine::Step& step, WallTime now);
  // The machine could not say: its events wait, and what it asked for earlier goes on.
  void on_stuck() { is_stuck_ = true; }
  void on_written();

  // The action has ended well; its event is `event`.
  void on_done(std::int64_t id, json::Value event);
  // It waits for the cluster; `what`, for people, is what for, and `problem` why that may take
  // longer than it has to. False: it has waited for too long, and failed.
  bool on_waiting(std::int64_t id, std::string_view what, WallTime now,
                  std::string_view problem = {});
  // The object that it is about is the one with this uid: to be written before it goes on.
  void on_pinned(std::int64_t id, std::string target);
  struct Failure {
    std::string reason;     // A word, the API server's where it has one: "AlreadyExists".
    std::string kind = {};  // Of the error: "Denied".
    std::string message;
    bool is_final = false;  // No repetition helps, whatever the policy says.
  };
  // `jitter` between 0 and 1. True: it is tried again later; false: FAILURE has been sent.
  bool on_failed(std::int64_t id, const Failure& failure, const RetryPolicy& policy, double jitter,
                 WallTime now);
  // Nobody knows how to carry it out: it waits for a host that does.
  void on_unknown(std::int64_t id) { parked_.insert(id); }

  // Something for the machine from outside. False: that signal was taken before.
  // `version`: of the workflow that it came with, if that is known.
  bool on_signal(std::string id, json::Value event, std::uint64_t version = 0);
  // A signal that is none: remembered, so that it is looked at once.
  void refuse_signal(std::string id);
  // `seen`: what the resource is remembered by from now on.
  void on_change(std::size_t resource, std::string seen, json::Value event);
  // What `event` says of an object is all there is to say of it in that version, or of its end.
  void on_made(const json::Value& event, std::string seen);

  // Those that are not wanted any more, after DELETE_RESOURCES.
  void drop_resources();
  // Gives up what was asked for before that action and has not ended.
  void abandon_before(std::int64_t id);

  void on_migrated(Migration migration, std::optional<Revision> revision);
  // The state that somebody else wrote is one that the machine knows: it is in `value`, unless that
  // is empty, and has these actors.
  void adopt(Revision revision, std::string_view value,
             const std::vector<abi::statemachine::Actor>& actors, std::string run, WallTime now);
  // Of the delays that the machine has where it is now, those that entering its states there has
  // not started: it is another machine than the one that entered them, or nobody did.
  [[nodiscard]] std::vector<abi::statemachine::Delay> missing_delays(
      const std::vector<abi::statemachine::Delay>& delays) const;
  // Starts those that are missing, as of `since`, where it is known how long they are; drops those
  // that run and are none of the machine's.
  void take_delays(const std::vector<abi::statemachine::Delay>& delays, WallTime since);

  // What happened since the decision began, for people.
  struct Transition {
    std::string from;
    std::string to;
    std::string event;
    std::optional<Duration> stayed;  // In `from`.
  };
  [[nodiscard]] std::vector<Transition> take_transitions() {
    return std::exchange(transitions_, {});
  }
  // Signals that the state they came in did not know.
  [[nodiscard]] std::vector<std::string> take_ignored() { return std::exchange(ignored_, {}); }

 private:
  void enter(const abi::statemachine::Step& step, const QueuedEvent* event, WallTime now);
  void ask_for(const abi::statemachine::Step& step, HistoryEntry& entry, WallTime now);
  // What changed, for people.
  std::vector<std::string> take_actors(const std::vector<abi::statemachine::Actor>& actors,
                                       WallTime now);
  // Gives up what they waited for, if it was asked for before that action.
  void stop_actors(const std::vector<std::string>& actors, std::int64_t first_action);
  void set_timers(const abi::statemachine::Step& step, WallTime now);
  void set_timeouts(std::string_view before, WallTime now);
  void finish(const abi::statemachine::Step& step, const QueuedEvent* event, WallTime now);
  void on_ignored(QueuedEvent event);
  void receive(Origin origin, json::Value event, std::uint64_t source = 0);
  // Whether the inbox may grow by it.
  [[nodiscard]] bool has_room_for(const json::Value& event) const;
  void take_due_timers(WallTime now);
  void acknowledge(std::int64_t id, json::Value event);
  // The object that the action makes, if the ledger does not know it.
  [[nodiscard]] std::optional<OwnedResource> new_resource(const PendingAction& action) const;
  [[nodiscard]] Result<> check_resources(const abi::statemachine::Step& step) const;
  void add_resource(const PendingAction& action);
  // Whether the machine has asked for its end, or for another Job in its place.
  [[nodiscard]] bool is_being_deleted(const OwnedResource& resource) const;
  [[nodiscard]] QueuedEvent take_event();
  [[nodiscard]] std::optional<WallTime> next_due(WallTime now) const;
  void trim();

  Ledger ledger_;
  const Rules rules_;
  bool is_dirty_ = false;
  bool is_stuck_ = false;
  std::size_t steps_ = 0;           // Of the machine.
  std::size_t written_events_ = 0;  // So many of the inbox are in the written ledger.
  std::set<std::int64_t> fresh_;
  std::set<std::int64_t> parked_;
  std::vector<Transition> transitions_;
  std::vector<std::string> ignored_;
};

}  // namespace hangar::workflows
