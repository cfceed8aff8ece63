#include "airways/recording.h"

#include "io/loop.h"
#include "recorder/record.h"

#include <utility>

namespace hangar::airways {

void FlightRecording::ran(Instant began, std::string_view user, std::string_view module_sha256,
                          const Result<abi::flight::Output>& output) {
  if (!is_on()) return;
  recorder::Turn turn{
      .user = user,
      .module = module_sha256,
      .arrived = began,
      .began = began,
      .ended = io::Loop::now(),
      .outcome = recorder::Turn::Outcome::Failed,
      .wakings = {{.cause = recorder::Waking::Cause::Modified, .object = object()}}};
  if (output) {
    turn.cpu = output->cpu_time;
    turn.memory_bytes = output->memory_bytes;
    turn.printed_bytes = output->stdout_bytes.size() + output->stderr_bytes.size();
    if (output->exit_code == 0) turn.outcome = recorder::Turn::Outcome::Completed;
  }
  record(std::move(turn));
}

void FlightRecording::taken_down(std::string_view user) {
  if (!is_on()) return;
  const Instant now = io::Loop::now();
  record({.user = user,
          .arrived = now,
          .began = now,
          .ended = now,
          .outcome = recorder::Turn::Outcome::Completed,
          .wakings = {{.cause = recorder::Waking::Cause::Deleted, .object = object()}}});
}

}  // namespace hangar::airways
