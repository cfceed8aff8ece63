#include "reconcile/recording.h"

#include "io/loop.h"
#include "recorder/trace_ids.h"

#include <algorithm>
#include <utility>

namespace hangar::reconcile {

namespace {

// The HTTP status that is recorded for an error without one: the request was not answered.
std::uint64_t status_of(const Error& error) {
  constexpr std::pair<ErrorKind, std::uint64_t> kStatuses[] = {
      {ErrorKind::InvalidInput, 422}, {ErrorKind::Denied, 403},  {ErrorKind::NotFound, 404},
      {ErrorKind::Conflict, 409},     {ErrorKind::Expired, 410}, {ErrorKind::LimitExceeded, 413},
      {ErrorKind::Cancelled, 0}};
  for (const auto& [kind, status] : kStatuses) {
    if (kind == error.kind()) return status;
  }
  return 503;
}

}  // namespace

std::uint64_t version_of(const json::Value& object) {
  return kube::parse_version(json::string_at(object, {"metadata", "resourceVersion"})).value_or(0);
}

GuestRecording::GuestRecording(GuestRecorder& recorder, const kube::Resource& resource,
                               const json::Value& object)
    : recorder_(recorder),
      resource_(resource),
      key_(kube::key_of(object)),
      name_(resource.qualified_plural() + "/" + key_.name),
      uid_(json::string_at(object, {"metadata", "uid"})),
      version_(version_of(object)),
      traceparent_(recorder.is_tracing() ? kube::annotation_of(object, recorder::kTraceAnnotation)
                                         : std::string_view()) {}

recorder::Guest GuestRecording::guest() const {
  return {.contract = recorder_.contract_, .namespace_ = key_.namespace_, .name = name_};
}

recorder::Object GuestRecording::object() const {
  return {.group = resource_.group,
          .kind = resource_.kind,
          .namespace_ = key_.namespace_,
          .name = key_.name,
          .version = version_};
}

std::uint64_t GuestRecording::record(recorder::Turn turn) {
  turn_ = ++recorder_.last_turn_;
  turn.guest = guest();
  turn.uid = uid_;
  turn.number = turn_;
  turn.arrived = std::min(std::exchange(queued_at_, {}).value_or(turn.began), turn.began);
  recorder_.recorder_->record(turn);
  return turn_;
}

std::uint64_t GuestRecording::asked(const Request& request, Instant at, std::uint64_t bytes) {
  if (turn_ == 0) return 0;
  last_request_ = ++recorder_.last_request_;
  recorder_.recorder_->record(recorder::Asked{.guest = guest(),
                                              .turn = turn_,
                                              .id = last_request_,
                                              .at = at,
                                              .verb = request.verb,
                                              .group = request.resource.group,
                                              .resource = request.resource.plural,
                                              .namespace_ = request.key.namespace_,
                                              .name = request.key.name,
                                              .subresource = request.subresource,
                                              .field_manager = request.field_manager,
                                              .is_dry_run = request.is_dry_run,
                                              .version = request.version,
                                              .bytes = bytes});
  return last_request_;
}

std::string GuestRecording::Exchange::on_request(std::uint64_t body_bytes) {
  // The one before was answered, and another attempt follows.
  if (id_ != 0) recording_.recorder_.recorder_->record(answered());
  status_ = 0;
  bytes_ = 0;
  id_ = recording_.asked(request_, io::Loop::now(), body_bytes);
  if (id_ == 0 || !recording_.recorder_.is_tracing()) return {};
  return recording_.recorder_.recorder_->trace_ids()->traceparent(recording_.guest(),
                                                                  recording_.turn(), id_);
}

void GuestRecording::Exchange::on_response(int status, std::uint64_t body_bytes) {
  status_ = static_cast<std::uint64_t>(status);
  bytes_ = body_bytes;
}

recorder::Answered GuestRecording::Exchange::answered() const {
  return {.guest = recording_.guest(),
          .id = id_,
          .at = io::Loop::now(),
          .status = status_,
          .bytes = bytes_};
}

void GuestRecording::Exchange::end(const Result<json::Value>& result) {
  if (id_ == 0) return;
  recorder::Recorder& recorder = *recording_.recorder_.recorder_;
  recorder::Answered answer = answered();
  if (status_ == 0 && !result) answer.status = status_of(result.error());
  if (!result) return recorder.record(answer);
  const Result<kube::GroupVersionKind> kind = kube::gvk_of(*result);
  // The server may answer a deletion with a Status.
  if (!kind || kind->kind == "Status") return recorder.record(answer);
  const kube::ObjectKey key = kube::key_of(*result);
  answer.has_object = true;
  answer.object = {.group = kind->group,
                   .kind = kind->kind,
                   .namespace_ = key.namespace_,
                   .name = key.name,
                   .version = version_of(*result)};
  recorder.record(answer);
}

void GuestRecording::has_read(const Read& read) {
  const std::uint64_t id =
      asked({.verb = recorder::Verb::Get, .resource = read.resource, .key = read.key},
            read.asked_at, /*bytes=*/0);
  if (id == 0) return;
  recorder_.recorder_->record(recorder::Answered{.guest = guest(),
                                                 .id = id,
                                                 .at = read.answered_at,
                                                 .status = read.status,
                                                 .bytes = read.bytes,
                                                 .has_object = read.version > 0,
                                                 .object = {.group = read.resource.group,
                                                            .kind = read.resource.kind,
                                                            .namespace_ = read.key.namespace_,
                                                            .name = read.key.name,
                                                            .version = read.version}});
}

kube::Client::ValueTask GuestRecording::recorded(Request request, Send send) {
  Exchange exchange(*this, request);
  Result<json::Value> answer = co_await send(&exchange);
  exchange.end(answer);
  co_return answer;
}

}  // namespace hangar::reconcile
