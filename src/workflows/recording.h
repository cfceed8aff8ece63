// What the recorder receives about workflows: each step of a machine, and the requests that
// it causes.
//
// A step is a turn of its workflow (reconcile/recording.h). An action that waited or is retried,
// and that no step of this reconcile has requested, is a turn without a step; so is a status that
// no step has changed. Copies of modules and Events about the workflow are not recorded.
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

// For one reconcile of one workflow.
class StepRecording final : public reconcile::GuestRecording {
 public:
  // `user`: the identity under which its actions are carried out.
  StepRecording(reconcile::GuestRecorder& recorder, const json::Value& workflow, std::string user);

  // What wakes a step; captured before it, because the event is gone afterwards.
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
    std::int64_t actions_from = 0;                  // From this id on they are its own.
  };
  void stepped(const Woken& woken, const Stepped& stepped, const Ledger& ledger);

  // Until action_ended() all requests belong to this action.
  void action_begins(const PendingAction& action, std::string_view module_sha256);
  void action_ended(const PendingAction& action);
  // The status is about to be written.
  void status_begins(std::string_view module_sha256);

 private:
  void without_step(const recorder::Waking& waking, std::string_view module_sha256);

  const std::string user_;
  std::map<std::int64_t, std::uint64_t> turns_;  // Of actions.
  std::map<std::int64_t, std::uint64_t> ends_;   // The requests that actions have ended with.
};

}  // namespace hangar::workflows
