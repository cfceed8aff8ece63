// What the recorder is told of workflows: each step of a machine, and what is asked for because of
// it.
//
// A step is a turn of its workflow (reconcile/recording.h). An action that no step of this
// reconcile has asked for, since it waited or is tried again, is a turn without a step; so is a
// status that no step has changed. Copies of modules and Events about the workflow are not
// recorded.
#pragma once

#include "abi/statemachine/machine.h"
#include "base/time.h"
#include "json/value.h"
#include "reconcile/recording.h"
#include "recorder/record.h"
#include "workflows/ledger.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hangar::workflows {

// Of one reconcile of one workflow.
class StepRecording final : public reconcile::GuestRecording {
 public:
  // `user`: as whom its actions are carried out.
  StepRecording(reconcile::GuestRecorder& recorder, const json::Value& workflow, std::string user);

  // What a step begins with; told before it, because the event is gone afterwards.
  struct Woken {
    recorder::Waking waking;  // Without its texts.
    std::string event = {};
    std::string group = {};
    std::string kind = {};
    std::string namespace_ = {};
    std::string name = {};
  };
  // The workflow begins.
  [[nodiscard]] Woken by_beginning() const;
  [[nodiscard]] Woken by_event(const QueuedEvent& event, const Ledger& ledger) const;
  // The host asks whether the machine knows a state.
  [[nodiscard]] static Woken by_question();

  struct Stepped {
    Instant began;
    std::string_view module_sha256;
    abi::statemachine::Cost cost;
    const abi::statemachine::Step* step = nullptr;  // Null: it failed, or was refused.
    std::int64_t actions_from = 0;                  // Those of the outbox from here on are its own.
  };
  void stepped(const Woken& woken, const Stepped& stepped, const Ledger& ledger);

  // The requests that follow are this action's, up to action_ended().
  void action_begins(const PendingAction& action, std::string_view module_sha256);
  void action_ended(const PendingAction& action);
  // The status is about to be written.
  void status_begins(std::string_view module_sha256);

 private:
  void without_step(const recorder::Waking& waking, std::string_view module_sha256);

  const std::string user_;
  std::map<std::int64_t, std::uint64_t> turns_;  // Of actions.
  std::map<std::int64_t, std::uint64_t> ends_;   // Requests that actions have ended with.
};

}  // namespace hangar::workflows
