// The messages between the host and a guest process, and their encoding.
//
// The host sends a run with its input, and the process answers with the result. In between the
// process may ask for what only the host has. docs/formats/guest-messages.md describes the bytes.
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

// A name, namespace, kind or API version.
inline constexpr std::size_t kNameBytesMax = 4096;
// The number of arguments or environment variables, and the bytes of each list.
inline constexpr std::size_t kTextsMax = 1024;
inline constexpr std::size_t kTextBytesMax = 128 * limits::kKiB;
// The reason why a run failed.
inline constexpr std::size_t kReasonBytesMax = 16 * limits::kKiB;
// The largest input that a guest reads is a conversion review of a list of instances.
inline constexpr std::size_t kStdinBytesMax = 64 * limits::kMiB;
inline constexpr std::size_t kAnswerBytesMax = 8 * limits::kMiB;
// The part of stderr that is kept, and a note about what was cut.
inline constexpr std::size_t kErrorOutputBytesMax = 65 * limits::kKiB;

// How many modules a process holds at a time: those that ran last. A mapping costs it a few KiB and
// a descriptor.
inline constexpr std::size_t kModulesMax = 32;

enum class Contract : std::uint8_t { Flight, Converter };

// To the guest process ---------------------------------------------------------------------------

// Comes with a read-only descriptor of the native code.
struct LoadModule {
  std::uint64_t module = 0;
  friend bool operator==(const LoadModule&, const LoadModule&) = default;
};
// No further run of it begins.
struct DropModule {
  std::uint64_t module = 0;
  friend bool operator==(const DropModule&, const DropModule&) = default;
};
struct BeginRun {
  std::uint64_t run = 0;
  std::uint64_t module = 0;
  Contract contract = Contract::Flight;
  // The tenant that the run works for: it takes its share of the process's threads.
  std::string tenant;
  std::string consumer;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string stdin_bytes;
  std::int64_t timeout_nanoseconds = 0;  // Negative: none.
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t memory_bytes = 0;  // Reserved for the run already; it asks for more.
  friend bool operator==(const BeginRun&, const BeginRun&) = default;
};
// Answers LookUp and MapKind.
struct Found {
  std::uint64_t run = 0;
  std::uint32_t state = 0;
  std::string body;
  friend bool operator==(const Found&, const Found&) = default;
};
// Answers AskMemory: the reason for a refusal, or empty when granted.
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

// From the guest process -------------------------------------------------------------------------

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
// The memory of the run in all: linear memory, tables, and the fixed cost of each run.
struct AskMemory {
  std::uint64_t run = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const AskMemory&, const AskMemory&) = default;
};
struct EndRun {
  std::uint64_t run = 0;
  bool is_error = false;
  ErrorKind kind = ErrorKind::GuestFault;  // Only for an error, as the reason.
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

// The header of a message: four bytes for the length of its payload, one for its type.
inline constexpr std::size_t kFrameHeaderBytes = 5;
// The largest payload in each direction.
inline constexpr std::size_t kToGuestBytesMax = kStdinBytesMax + 2 * kTextBytesMax + limits::kMiB;
inline constexpr std::size_t kFromGuestBytesMax =
    limits::kFlightOutputBytesMax + kErrorOutputBytesMax + kReasonBytesMax + limits::kKiB;

// Includes the header. Whoever makes a message keeps its texts within their bounds.
[[nodiscard]] std::string encode(const ToGuest& message);
[[nodiscard]] std::string encode(const FromGuest& message);

// InvalidInput for everything that encode() does not produce: an unknown type, a text beyond its
// bound, missing or surplus bytes.
[[nodiscard]] Result<ToGuest> decode_to_guest(std::uint8_t type, std::string_view payload);
[[nodiscard]] Result<FromGuest> decode_from_guest(std::uint8_t type, std::string_view payload);

// Cuts a reason to kReasonBytesMax, so that it may be sent.
[[nodiscard]] std::string cut_reason(std::string reason);

}  // namespace hangar::guest_protocol
