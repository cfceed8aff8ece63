// What the recorder receives about workflows: each step of a machine, and the requests that
// it causes.
//
// A step is a turn of its workflow (reconcile/recording.h). An action that waited or is retried,
// and was not requested by a step of this reconcile, is a turn without a step; so is a write of the
// status without a step. Copies of modules and Events about the workflow are not recorded.
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

// Records one reconcile of one workflow.
class StepRecording final : public reconcile::GuestRecording {
 public:
  // `user`: the identity under which its actions are carried out.
  StepRecording(reconcile::GuestRecorder& recorder, const json::Value& workflow, std::string user);

  // The cause of a step; captured before the step, because the event is gone afterwards.
  struct Woken {
    recorder::Waking waking;  // Without its texts.
    std::string event = {};
    std::string group = {};
    std::string kind = {};
    std::string namespace_ = {};
    std::string name = {};
    std::string traceparent = {};
  };
  // The start of the workflow.
  [[nodiscard]] Woken by_beginning() const;
  [[nodiscard]] Woken by_event(const QueuedEvent& event, const Ledger& ledger) const;
  // A question of the host: does the machine know a state?
  [[nodiscard]] static Woken by_question();

  struct Stepped {
    Instant began;
    std::string_view module_sha256;
    abi::statemachine::Cost cost;
    const abi::statemachine::Step* step = nullptr;  // Null: it failed, or was refused.
    std::int64_t actions_from = 0;                  // Actions from this id on are its own.
  };
  void stepped(const Woken& woken, const Stepped& stepped, const Ledger& ledger);

  // Requests belong to this action until action_ended().
  void action_begins(const PendingAction& action, std::string_view module_sha256);
  void action_ended(const PendingAction& action);
  // The status is about to be written.
  void status_begins(std::string_view module_sha256);

 private:
  void without_step(const recorder::Waking& waking, std::string_view module_sha256);

  const std::string user_;
  std::map<std::int64_t, std::uint64_t> turns_;  // Of actions.
  std::map<std::int64_t, std::uint64_t> ends_;   // The last requests of finished actions.
};

}  // namespace hangar::workflows
