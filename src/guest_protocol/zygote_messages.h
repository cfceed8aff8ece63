// The messages between the host and the zygote, the process that forks guest processes and never
// reads a byte of a guest. Each packet is one message, so there are no frames.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::guest_protocol {

// To the zygote. Comes with a socket, which becomes the new process's only connection to the host.
struct ForkProcess {
  std::uint64_t process = 0;
  std::uint32_t thread_count = 0;
  std::uint64_t memory_bytes_max = 0;  // For all its guests together.
  friend bool operator==(const ForkProcess&, const ForkProcess&) = default;
};
// The zygote sends SIGKILL to the process at once.
struct EndProcess {
  std::uint64_t process = 0;
  friend bool operator==(const EndProcess&, const EndProcess&) = default;
};
using ToZygote = std::variant<ForkProcess, EndProcess>;

// From the zygote: its first message, sent once. It is ready, and the kernel supports these walls.
struct Standing {
  std::uint32_t landlock_version = 0;  // Zero: none.
  bool has_system_call_filter = false;
  friend bool operator==(const Standing&, const Standing&) = default;
};
struct ProcessEnded {
  std::uint64_t process = 0;
  std::int32_t status = 0;         // As waitpid(2) returns it.
  std::uint64_t memory_bytes = 0;  // Its memory when the zygote ended it for exceeding its bound;
                                   // zero: it did not.
  friend bool operator==(const ProcessEnded&, const ProcessEnded&) = default;
};
struct ForkFailed {
  std::uint64_t process = 0;
  std::int32_t error_number = 0;
  friend bool operator==(const ForkFailed&, const ForkFailed&) = default;
};
// The memory of a process as the kernel counts it, its guests' included: at least once a second,
// and at once after a large change.
struct ProcessMemory {
  std::uint64_t process = 0;
  std::uint64_t memory_bytes = 0;
  friend bool operator==(const ProcessMemory&, const ProcessMemory&) = default;
};
using FromZygote = std::variant<Standing, ProcessEnded, ForkFailed, ProcessMemory>;

inline constexpr std::size_t kZygotePacketBytesMax = 64;

// Exit statuses of a guest process. Either it could not put up one of its walls; or the host, which
// it otherwise trusts, sent an unknown message, because the two have different versions.
inline constexpr int kExitWithoutWalls = 3;
inline constexpr int kExitOtherProtocol = 4;

// The descriptor of the socket in both processes.
inline constexpr int kSocket = 0;

[[nodiscard]] std::string encode(const ToZygote& message);
[[nodiscard]] std::string encode(const FromZygote& message);
// InvalidInput for everything that encode() does not produce.
[[nodiscard]] Result<ToZygote> decode_to_zygote(std::string_view packet);
[[nodiscard]] Result<FromZygote> decode_from_zygote(std::string_view packet);

}  // namespace hangar::guest_protocol
