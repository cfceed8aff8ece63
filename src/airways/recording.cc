#include "airways/recording.h"

#include "abi/flight/evaluation.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/object.h"
#include "recorder/record.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

std::uint64_t version_of(const json::Value& object) {
  return kube::parse_version(json::string_at(object, {"metadata", "resourceVersion"})).value_or(0);
}

// HTTP's, of an error that kube/client.h has made of it.
std::uint64_t status_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::InvalidInput:
      return 422;
    case ErrorKind::Denied:
      return 403;
    case ErrorKind::NotFound:
      return 404;
    case ErrorKind::Conflict:
      return 409;
    case ErrorKind::Expired:
      return 410;
    case ErrorKind::LimitExceeded:
      return 413;
    case ErrorKind::Cancelled:
      return 0;
    default:
      return 503;
  }
}

}  // namespace

FlightRecording::FlightRecording(FlightRecorder& recorder, const kube::Resource& resource,
                                 const json::Value& instance)
    : recorder_(recorder),
      resource_(resource),
      key_(kube::key_of(instance)),
      name_(resource.qualified_plural() + "/" + key_.name),
      uid_(json::string_at(instance, {"metadata", "uid"})),
      version_(version_of(instance)) {}

recorder::Guest FlightRecording::guest() const {
  return {.contract = recorder::Contract::Airway, .namespace_ = key_.namespace_, .name = name_};
}

void FlightRecording::record(recorder::Turn turn) {
  turn_ = ++recorder_.last_turn_;
  turn.guest = guest();
  turn.uid = uid_;
  turn.number = turn_;
  recorder_.recorder_->record(turn);
}

void FlightRecording::ran(Instant began, std::string_view user, std::string_view module_sha256,
                          const Result<abi::flight::Output>& output) {
  if (recorder_.recorder_ == nullptr) return;
  recorder::Turn turn{.user = user,
                      .module = module_sha256,
                      .arrived = began,
                      .began = began,
                      .ended = io::Loop::now(),
                      .outcome = recorder::Turn::Outcome::Failed,
                      .wakings = {{.cause = recorder::Waking::Cause::Modified,
                                   .object = {.group = resource_.group,
                                              .kind = resource_.kind,
                                              .namespace_ = key_.namespace_,
                                              .name = key_.name,
                                              .version = version_}}}};
  if (output) {
    turn.cpu = output->cpu_time;
    turn.memory_bytes = output->memory_bytes;
    turn.printed_bytes = output->stdout_bytes.size() + output->stderr_bytes.size();
    if (output->exit_code == 0) turn.outcome = recorder::Turn::Outcome::Completed;
  }
  record(std::move(turn));
}

void FlightRecording::taken_down(std::string_view user) {
  if (recorder_.recorder_ == nullptr) return;
  const Instant now = io::Loop::now();
  record({.user = user,
          .arrived = now,
          .began = now,
          .ended = now,
          .outcome = recorder::Turn::Outcome::Completed,
          .wakings = {{.cause = recorder::Waking::Cause::Deleted,
                       .object = {.group = resource_.group,
                                  .kind = resource_.kind,
                                  .namespace_ = key_.namespace_,
                                  .name = key_.name,
                                  .version = version_}}}});
}

std::uint64_t FlightRecording::asked(const Request& request) {
  if (turn_ == 0) return 0;
  const std::uint64_t id = ++recorder_.last_request_;
  recorder_.recorder_->record(recorder::Asked{.guest = guest(),
                                              .turn = turn_,
                                              .id = id,
                                              .at = io::Loop::now(),
                                              .verb = request.verb,
                                              .group = request.resource.group,
                                              .resource = request.resource.plural,
                                              .namespace_ = request.key.namespace_,
                                              .name = request.key.name,
                                              .field_manager = request.field_manager,
                                              .is_dry_run = request.is_dry_run,
                                              .bytes = request.bytes});
  return id;
}

void FlightRecording::answered(std::uint64_t request, const Result<json::Value>& answer) {
  if (request == 0) return;
  recorder::Answered answered{.guest = guest(), .id = request, .at = io::Loop::now()};
  answered.is_write = true;
  if (!answer) {
    answered.status = status_of(answer.error());
    recorder_.recorder_->record(answered);
    return;
  }
  answered.status = 200;
  const Result<kube::GroupVersionKind> kind = kube::gvk_of(*answer);
  // A deletion may be answered by a Status.
  if (!kind || kind->kind == "Status") return recorder_.recorder_->record(answered);
  const kube::ObjectKey key = kube::key_of(*answer);
  answered.object = {.group = kind->group,
                     .kind = kind->kind,
                     .namespace_ = key.namespace_,
                     .name = key.name,
                     .version = version_of(*answer)};
  recorder_.recorder_->record(answered);
}

}  // namespace hangar::airways
