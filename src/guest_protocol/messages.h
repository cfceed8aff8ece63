// What the host and a guest process say to each other, and its bytes.
//
// A turn of a guest is a message in and a message out: what it is to work on, and what came of it.
// In between it may ask for what only the host has. docs/formats/guest-messages.md has the bytes.
#pragma once

#include "base/limits.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::guest_protocol {

// Of a name, namespace, kind or API version.
inline constexpr std::size_t kNameBytesMax = 4096;
// Of arguments, and of the environment.
inline constexpr std::size_t kTextsMax = 1024;
inline constexpr std::size_t kTextBytesMax = 128 * limits::kKiB;
// Of a message that says why a run failed.
inline constexpr std::size_t kReasonBytesMax = 16 * limits::kKiB;
// A review of a list of instances is the largest that a guest is given to read.
inline constexpr std::size_t kStdinBytesMax = 64 * limits::kMiB;
inline constexpr std::size_t kAnswerBytesMax = 8 * limits::kMiB;
// What of stderr is kept, and a note about what was cut.
inline constexpr std::size_t kErrorOutputBytesMax = 65 * limits::kKiB;

// That a process holds at a time: those that ran last. A mapping costs it a few KiB, and a
// descriptor.
inline constexpr std::size_t kModulesMax = 32;

enum class Contract : std::uint8_t { Flight, Converter };

// To the guest process ---------------------------------------------------------------------------

// With a descriptor of the native code, which is read-only.
struct LoadModule {
  std::uint64_t module = 0;
  friend bool operator==(const LoadModule&, const LoadModule&) = default;
};
// No run of it begins any more.
struct DropModule {
  std::uint64_t module = 0;
  friend bool operator==(const DropModule&, const DropModule&) = default;
};
struct BeginRun {
  std::uint64_t run = 0;
  std::uint64_t module = 0;
  Contract contract = Contract::Flight;
  // For whom: whose share of the process's threads it uses.
  std::string tenant;
  std::string consumer;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string stdin_bytes;
  std::int64_t timeout_nanoseconds = 0;  // Negative: none.
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t memory_bytes = 0;  // Reserved for it already; for more it asks.
  friend bool operator==(const BeginRun&, const BeginRun&) = default;
};
// To LookUp and to MapKind.
struct Found {
  std::uint64_t run = 0;
  std::uint32_t state = 0;
  std::string body;
  friend bool operator==(const Found&, const Found&) = default;
};
// To AskMemory. Why not, or nothing.
struct MemoryAnswer {
  std::uint64_t run = 0;
  std::string refusal;
  friend bool operator==(const MemoryAnswer&, const MemoryAnswer&) = default;
};
struct CancelRun {
  std::uint64_t run = 0;
  friend bool operator==(const CancelRun&, const CancelRun&) = default;
};
struct Ping {
  friend bool operator==(const Ping&, const Ping&) = default;
};

using ToGuest =
    std::variant<LoadModule, DropModule, BeginRun, Found, MemoryAnswer, CancelRun, Ping>;

// From it ----------------------------------------------------------------------------------------

struct LookUp {
  std::uint64_t run = 0;
  std::string name;
  std::string namespace_;
  std::string kind;
  std::string api_version;
  friend bool operator==(const LookUp&, const LookUp&) = default;
};
struct MapKind {
  std::uint64_t run = 0;
  std::string group_or_api_version;
  std::string kind;
  friend bool operator==(const MapKind&, const MapKind&) = default;
};
// In all, for memory, tables and what every run takes.
struct AskMemory {
  std::uint64_t run = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const AskMemory&, const AskMemory&) = default;
};
struct EndRun {
  std::uint64_t run = 0;
  bool is_error = false;
  ErrorKind kind = ErrorKind::GuestFault;  // Of an error, as is the reason.
  std::string reason;
  std::uint32_t exit_code = 0;
  std::string stdout_bytes;
  std::string stderr_bytes;
  std::uint64_t cpu_nanoseconds = 0;
  std::uint64_t memory_bytes = 0;
  friend bool operator==(const EndRun&, const EndRun&) = default;
};
struct Pong {
  friend bool operator==(const Pong&, const Pong&) = default;
};

using FromGuest = std::variant<LookUp, MapKind, AskMemory, EndRun, Pong>;

// Bytes of a message before its payload: four of the payload's length, one of its type.
inline constexpr std::size_t kFrameHeaderBytes = 5;
// Of a payload, per direction.
inline constexpr std::size_t kToGuestBytesMax = kStdinBytesMax + 2 * kTextBytesMax + limits::kMiB;
inline constexpr std::size_t kFromGuestBytesMax =
    limits::kFlightOutputBytesMax + kErrorOutputBytesMax + kReasonBytesMax + limits::kKiB;

// With its header. Texts keep their bounds: the one who makes a message sees to it.
[[nodiscard]] std::string encode(const ToGuest& message);
[[nodiscard]] std::string encode(const FromGuest& message);

// InvalidInput for whatever encode() does not make: an unknown type, a text beyond its bound, bytes
// that are missing or left over.
[[nodiscard]] Result<ToGuest> decode_to_guest(std::uint8_t type, std::string_view payload);
[[nodiscard]] Result<FromGuest> decode_from_guest(std::uint8_t type, std::string_view payload);

// Reasons as they may be sent: cut to kReasonBytesMax.
[[nodiscard]] std::string cut_reason(std::string reason);

}  // namespace hangar::guest_protocol
