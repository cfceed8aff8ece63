#include "airways/recording.h"

#include "airways/limits.h"
#include "airways/reasons.h"
#include "io/loop.h"
#include "kube/object.h"
#include "recorder/limits.h"
#include "recorder/record.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

// The status code that the API server would have answered with.
std::uint64_t status_of(abi::flight::LookupState state) {
  switch (state) {
    case abi::flight::LookupState::Ok:
      return 200;
    case abi::flight::LookupState::NotFound:
      return 404;
    case abi::flight::LookupState::Unauthenticated:
      return 401;
    case abi::flight::LookupState::FeatureNotGranted:
    case abi::flight::LookupState::Forbidden:
      return 403;
    case abi::flight::LookupState::Error:
      break;
  }
  return 500;
}

}  // namespace

void FlightRecording::looked_up(const kube::Resource& resource, kube::ObjectKey key,
                                Instant asked_at, const abi::flight::LookupAnswer& answer) {
  if (!is_on() || lookups_.size() >= limits::kRecordedLookupsMax) return;
  const bool is_shown = answer.state == abi::flight::LookupState::Ok;
  const auto object =
      is_shown
          ? kube::identify(std::string_view(answer.body).substr(0, recorder::kAnswerReadBytesMax))
          : std::nullopt;
  lookups_.push_back(
      {.resource = resource,
       .key = std::move(key),
       .asked_at = asked_at,
       .answered_at = io::Loop::now(),
       .status = status_of(answer.state),
       .bytes = is_shown ? answer.body.size() : 0,
       .version = object ? kube::parse_version(object->resource_version).value_or(0) : 0});
}

void FlightRecording::ran(Instant began, std::string_view user, std::string_view module_sha256,
                          const Result<abi::flight::Output>& output, const Reasons& reasons) {
  if (!is_on()) return;
  recorder::Turn turn{.user = user,
                      .module = module_sha256,
                      .began = began,
                      .ended = io::Loop::now(),
                      .outcome = recorder::Turn::Outcome::Failed,
                      .wakings = reasons.wakings(),
                      .wakings_left_out = reasons.left_out()};
  if (turn.wakings.empty()) {
    turn.wakings.push_back(woken_by_object(recorder::Waking::Cause::Modified));
  }
  if (output) {
    turn.cpu = output->cpu_time;
    turn.memory_bytes = output->memory_bytes;
    turn.printed_bytes = output->stdout_bytes.size() + output->stderr_bytes.size();
    if (output->exit_code == 0) turn.outcome = recorder::Turn::Outcome::Completed;
  }
  record(std::move(turn));
  for (const Lookup& lookup : std::exchange(lookups_, {})) {
    has_read({.resource = lookup.resource,
              .key = lookup.key,
              .asked_at = lookup.asked_at,
              .answered_at = lookup.answered_at,
              .status = lookup.status,
              .bytes = lookup.bytes,
              .version = lookup.version});
  }
}

void FlightRecording::taken_down(std::string_view user, const Reasons& reasons) {
  if (!is_on()) return;
  std::vector<recorder::Waking> wakings = reasons.wakings();
  const recorder::Object self = object();
  for (recorder::Waking& waking : wakings) {
    const recorder::Object& one = waking.object;
    const bool is_self = one.group == self.group && one.kind == self.kind &&
                         one.namespace_ == self.namespace_ && one.name == self.name;
    if (is_self) waking.cause = recorder::Waking::Cause::Deleted;
  }
  if (wakings.empty()) wakings.push_back(woken_by_object(recorder::Waking::Cause::Deleted));
  const Instant now = io::Loop::now();
  record({.user = user,
          .began = now,
          .ended = now,
          .outcome = recorder::Turn::Outcome::Completed,
          .wakings = std::move(wakings),
          .wakings_left_out = reasons.left_out()});
}

}  // namespace hangar::airways
