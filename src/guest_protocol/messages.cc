#include "guest_protocol/messages.h"

#include "base/limits.h"
#include "base/result.h"
#include "guest_protocol/internal/fields.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::guest_protocol {

using internal::Is;

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
  fields.text(message.stdout_bytes, limits::kFlightOutputBytesMax);
  fields.text(message.stderr_bytes, kErrorOutputBytesMax);
  fields.number(message.cpu_nanoseconds);
  fields.number(message.memory_bytes);
}

template <class Fields, Is<Pong> Message>
static void visit_fields(Fields& /*fields*/, Message& /*message*/) {}

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
