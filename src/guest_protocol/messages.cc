#include "guest_protocol/messages.h"

#include "base/result.h"
#include "guest_protocol/internal/fields.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::guest_protocol {

using internal::Is;

// For lists of parts.
static constexpr auto kVisitPart = [](auto& fields, auto& part) { visit_fields(fields, part); };

template <class Fields, Is<Pages> Part>
static void visit_fields(Fields& fields, Part& pages) {
  fields.number(pages.first);
  fields.number(pages.count);
}

template <class Fields, Is<LoadModule> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.module);
}

template <class Fields, Is<DropModule> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.module);
}

template <class Fields, Is<BeginRun> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.module);
  fields.choice(message.contract, Contract::Converter);
  fields.text(message.tenant, kNameBytesMax);
  fields.text(message.consumer, kNameBytesMax);
  fields.texts(message.arguments, kTextsMax, kTextBytesMax);
  fields.texts(message.environment, kTextsMax, kTextBytesMax);
  fields.text(message.stdin_bytes, kStdinBytesMax);
  fields.number(message.timeout_nanoseconds);
  fields.number(message.memory_bytes_max);
  fields.number(message.memory_bytes);
}

template <class Fields, Is<Found> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.state);
  fields.text(message.body, kAnswerBytesMax);
}

template <class Fields, Is<MemoryAnswer> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.text(message.refusal, kReasonBytesMax);
}

template <class Fields, Is<CancelRun> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
}

template <class Fields, Is<Ping> Message>
static void visit_fields(Fields& /*fields*/, Message& /*message*/) {}

template <class Fields, Is<LookUp> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.text(message.name, kNameBytesMax);
  fields.text(message.namespace_, kNameBytesMax);
  fields.text(message.kind, kNameBytesMax);
  fields.text(message.api_version, kNameBytesMax);
}

template <class Fields, Is<MapKind> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.text(message.group_or_api_version, kNameBytesMax);
  fields.text(message.kind, kNameBytesMax);
}

template <class Fields, Is<AskMemory> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.bytes);
}

template <class Fields, Is<EndRun> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.flag(message.is_error);
  fields.choice(message.kind, ErrorKind::Corrupt);
  fields.text(message.reason, kReasonBytesMax);
  fields.number(message.exit_code);
  fields.text(message.stdout_bytes, kOutputBytesMax);
  fields.text(message.stderr_bytes, kErrorOutputBytesMax);
  fields.number(message.cpu_nanoseconds);
  fields.number(message.memory_bytes);
}

template <class Fields, Is<Pong> Message>
static void visit_fields(Fields& /*fields*/, Message& /*message*/) {}

template <class Fields, Is<LoadSleepable> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.module);
  fields.text(message.digest, kDigestBytes);
  fields.text(message.obstacle, kReasonBytesMax);
  fields.number(message.global_count);
  fields.flag(message.has_start);
  fields.number(message.image_number);
  fields.list(message.image_pages, kImageRangesMax, kVisitPart);
}

template <class Fields, Is<Bounds> Part>
static void visit_fields(Fields& fields, Part& bounds) {
  fields.number(bounds.memory_bytes_max);
  fields.number(bounds.cpu_nanoseconds_max);
  fields.number(bounds.output_bytes_max);
}

template <class Fields, Is<File> Part>
static void visit_fields(Fields& fields, Part& file) {
  fields.text(file.path, kPathBytesMax);
  fields.text(file.content, kFileBytesMax);
}

template <class Fields, Is<MakeGuest> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.guest);
  fields.number(message.module);
  fields.text(message.tenant, kNameBytesMax);
  fields.text(message.consumer, kNameBytesMax);
  visit_fields(fields, message.bounds);
  fields.texts(message.arguments, kTextsMax, kTextBytesMax);
  fields.texts(message.environment, kTextsMax, kTextBytesMax);
  fields.list(message.files, kFilesMax, kVisitPart);
  fields.texts(message.pod_environment, kTextsMax, kTextBytesMax);
  fields.list(message.pod_files, kFilesMax, kVisitPart);
}

template <class Fields, Is<ResumeGuest> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.guest);
  fields.number(message.module);
  fields.text(message.tenant, kNameBytesMax);
  fields.text(message.consumer, kNameBytesMax);
  visit_fields(fields, message.bounds);
  fields.number(message.snapshot_bytes);
  fields.number(message.slept_nanoseconds);
  fields.list(message.layer, kLayerPiecesMax, kVisitPart);
}

template <class Fields, Is<HandWakeup> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.guest);
  fields.number(message.id);
  fields.flag(message.finished);
  fields.flag(message.is_null);
  fields.flag(message.is_event);
  fields.text(message.bytes, kWakeupBytesMax);
}

template <class Fields, Is<BeginTurn> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.guest);
  fields.list(message.forgotten, kTurnAnswersMax,
              [](auto& item_fields, auto& id) { item_fields.number(id); });
  fields.number(message.inbound_count);
  fields.number(message.memory_bytes);
}

template <class Fields, Is<SleepGuest> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.guest);
  fields.number(message.layer_pages_max);
}

template <class Fields, Is<DropGuest> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.guest);
}

template <class Fields, Is<Piece> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.text(message.bytes, kPieceBytes);
}

template <class Fields, Is<Kept> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.text(message.refusal, kReasonBytesMax);
}

template <class Fields, Is<LoadMachine> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.machine);
  fields.number(message.module);
  fields.choice(message.shape, MachineShape::Bundle);
  fields.text(message.bundle, kBundleBytesMax);
  fields.text(message.function, kNameBytesMax);
  fields.text(message.allocator, kNameBytesMax);
  fields.choice(message.returns, MachineReturns::AddressAndSize);
  fields.flag(message.has_initialize);
  fields.flag(message.has_initial_state);
  fields.choice(message.initial_state, MachineReturns::AddressAndSize);
  fields.number(message.cpu_nanoseconds_max);
  fields.number(message.memory_bytes_max);
}

template <class Fields, Is<DropMachine> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.machine);
}

template <class Fields, Is<ForgetBeginnings> Message>
static void visit_fields(Fields& /*fields*/, Message& /*message*/) {}

template <class Fields, Is<AskMachine> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.machine);
  fields.choice(message.request, MachineRequest::Begin);
  fields.text(message.first, kQuestionBytesMax);
  fields.text(message.second, kQuestionBytesMax);
  fields.text(message.tenant, kNameBytesMax);
  fields.text(message.consumer, kNameBytesMax);
  fields.number(message.memory_bytes);
}

template <class Fields, Is<TurnCall> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.id);
  fields.flag(message.is_stream);
  fields.text(message.request, kRequestBytesMax);
}

template <class Fields, Is<TurnAnswer> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.id);
  fields.text(message.answer, kRequestBytesMax);
}

template <class Fields, Is<EndTurn> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.flag(message.is_error);
  fields.choice(message.kind, ErrorKind::Corrupt);
  fields.text(message.reason, kReasonBytesMax);
  fields.flag(message.has_exited);
  fields.number(message.exit_code);
  fields.list(message.delays, kTurnDelaysMax, [](auto& item_fields, auto& delay) {
    item_fields.number(delay.id);
    item_fields.number(delay.milliseconds);
  });
  fields.list(message.cancelled, kTurnCancelledMax,
              [](auto& item_fields, auto& id) { item_fields.number(id); });
  fields.flag(message.serves_metrics);
  fields.number(message.metrics_id);
  fields.flag(message.serves_webhooks);
  fields.number(message.webhooks_id);
  fields.number(message.next_id);
  fields.list(message.output, kTurnLinesMax, [](auto& item_fields, auto& line) {
    item_fields.flag(line.is_stderr);
    item_fields.text(line.text, kLineBytesMax);
  });
  fields.number(message.output_dropped_bytes);
  fields.number(message.resume_nanoseconds);
  fields.number(message.resume_cpu_nanoseconds);
  fields.number(message.cpu_nanoseconds);
  fields.number(message.resident_bytes);
}

template <class Fields, Is<AskPiece> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
}

template <class Fields, Is<KeepPiece> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.number(message.total_bytes);
  fields.text(message.bytes, kPieceBytes);
}

template <class Fields, Is<EndSleep> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.flag(message.is_error);
  fields.text(message.reason, kReasonBytesMax);
  fields.number(message.memory_bytes);
  fields.flag(message.is_on_layer);
  fields.number(message.cpu_nanoseconds);
}

template <class Fields, Is<MakeLayer> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.list(message.pieces, kLayerPiecesMax, kVisitPart);
}

template <class Fields, Is<KeepPages> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.run);
  fields.list(message.pages, kLayerRangesMax, kVisitPart);
  fields.text(message.bytes, kLayerBytesMax);
}

std::string encode(const ToGuest& message) {
  return internal::encode_frame(message);
}

std::string encode(const FromGuest& message) {
  return internal::encode_frame(message);
}

Result<ToGuest> decode_to_guest(std::uint8_t type, std::string_view payload) {
  return internal::decode_payload<ToGuest>(type, payload);
}

Result<FromGuest> decode_from_guest(std::uint8_t type, std::string_view payload) {
  return internal::decode_payload<FromGuest>(type, payload);
}

std::string cut_reason(std::string reason) {
  constexpr std::string_view kCut = " ...";
  if (reason.size() <= kReasonBytesMax) return reason;
  reason.resize(kReasonBytesMax - kCut.size());
  return reason.append(kCut);
}

}  // namespace hangar::guest_protocol
