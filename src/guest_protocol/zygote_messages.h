// What the host and the zygote say to each other: the process that forks guest processes, and that
// never reads a byte of a guest. One message a packet, so that there are no frames.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::guest_protocol {

// To the zygote. With a socket, which becomes the process's only way to the host.
struct ForkProcess {
  std::uint64_t process = 0;
  std::uint32_t thread_count = 0;
  std::uint64_t memory_bytes_max = 0;  // Of its guests together.
  friend bool operator==(const ForkProcess&, const ForkProcess&) = default;
};
// By SIGKILL, at once.
struct EndProcess {
  std::uint64_t process = 0;
  friend bool operator==(const EndProcess&, const EndProcess&) = default;
};
using ToZygote = std::variant<ForkProcess, EndProcess>;

// From it. The first, once: it stands, and this is what it has.
struct Standing {
  std::uint32_t landlock_version = 0;  // Zero: none.
  bool has_system_call_filter = false;
  friend bool operator==(const Standing&, const Standing&) = default;
};
struct ProcessEnded {
  std::uint64_t process = 0;
  std::int32_t status = 0;         // As waitpid has it.
  std::uint64_t memory_bytes = 0;  // What it had when it was ended for that; zero: it was not.
  friend bool operator==(const ProcessEnded&, const ProcessEnded&) = default;
};
struct ForkFailed {
  std::uint64_t process = 0;
  std::int32_t error_number = 0;
  friend bool operator==(const ForkFailed&, const ForkFailed&) = default;
};
using FromZygote = std::variant<Standing, ProcessEnded, ForkFailed>;

inline constexpr std::size_t kZygotePacketBytesMax = 64;

// How a guest process ends by itself. One of its walls could not be put up; or the host, which it
// believes otherwise, sent what it does not know: two versions of one program.
inline constexpr int kExitWithoutWalls = 3;
inline constexpr int kExitOtherProtocol = 4;

// Where both have their socket.
inline constexpr int kSocket = 0;

[[nodiscard]] std::string encode(const ToZygote& message);
[[nodiscard]] std::string encode(const FromZygote& message);
// InvalidInput for whatever encode() does not make.
[[nodiscard]] Result<ToZygote> decode_to_zygote(std::string_view packet);
[[nodiscard]] Result<FromZygote> decode_from_zygote(std::string_view packet);

}  // namespace hangar::guest_protocol
