#include "guest_protocol/zygote_messages.h"

#include "base/result.h"
#include "guest_protocol/internal/fields.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::guest_protocol {

using internal::Is;

template <class Fields, Is<ForkProcess> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.process);
  fields.number(message.thread_count);
  fields.number(message.memory_bytes_max);
}

template <class Fields, Is<EndProcess> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.process);
}

template <class Fields, Is<Standing> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.landlock_version);
  fields.flag(message.has_system_call_filter);
}

template <class Fields, Is<ProcessEnded> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.process);
  fields.number(message.status);
  fields.number(message.memory_bytes);
}

template <class Fields, Is<ForkFailed> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.process);
  fields.number(message.error_number);
}

template <class Fields, Is<ProcessMemory> Message>
static void visit_fields(Fields& fields, Message& message) {
  fields.number(message.process);
  fields.number(message.memory_bytes);
}

namespace {

// A packet has its length already, so the length field is left out.
constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

template <class Message>
Result<Message> decode(std::string_view packet) {
  if (packet.empty()) return fail(ErrorKind::InvalidInput, "an empty packet");
  return internal::decode_payload<Message>(static_cast<std::uint8_t>(packet.front()),
                                           packet.substr(1));
}

}  // namespace

std::string encode(const ToZygote& message) {
  return internal::encode_frame(message).substr(kLengthBytes);
}

std::string encode(const FromZygote& message) {
  return internal::encode_frame(message).substr(kLengthBytes);
}

Result<ToZygote> decode_to_zygote(std::string_view packet) {
  return decode<ToZygote>(packet);
}

Result<FromZygote> decode_from_zygote(std::string_view packet) {
  return decode<FromZygote>(packet);
}

}  // namespace hangar::guest_protocol
