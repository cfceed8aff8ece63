#include "node_install/cri_probe.h"

#include "base/result.h"
#include "node_install/files.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::node_install {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// RFC 9113, 4.1: 24 bits of length, type, flags, 31 bits of stream.
constexpr std::size_t kFrameHeaderBytes = 9;
constexpr std::uint8_t kData = 0x0;
constexpr std::uint8_t kHeaders = 0x1;
constexpr std::uint8_t kResetStream = 0x3;
constexpr std::uint8_t kSettings = 0x4;
constexpr std::uint8_t kGoAway = 0x7;
constexpr std::uint8_t kEndStream = 0x1;
constexpr std::uint8_t kEndHeaders = 0x4;
constexpr std::uint8_t kPadded = 0x8;
// The answer is a few dozen bytes.
constexpr std::size_t kAnswerBytesMax = std::size_t{64} * 1024;

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream,
                  std::string_view payload) {
  std::string bytes = {static_cast<char>(payload.size() >> 16),
                       static_cast<char>(payload.size() >> 8),
                       static_cast<char>(payload.size()),
                       static_cast<char>(type),
                       static_cast<char>(flags),
                       '\0',
                       '\0',
                       '\0',
                       static_cast<char>(stream)};
  return bytes.append(payload);
}

// RFC 7541, 6.2.2: a literal that is not added to the table, its name written out; both below
// 127 bytes.
std::string header(std::string_view name, std::string_view value) {
  std::string bytes(1, '\0');
  bytes += static_cast<char>(name.size());
  bytes += name;
  bytes += static_cast<char>(value.size());
  return bytes.append(value);
}

std::unexpected<Error> unavailable(std::string_view what, int code) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", what, std::generic_category().message(code)));
}

Result<> ask(int socket, std::string_view service, steady_clock::time_point deadline) {
  const std::string request = version_request(service);
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return unavailable("send to the container runtime", errno);
  }
  std::string received;
  while (received.size() < kAnswerBytesMax) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    const int count = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(ErrorKind::Unavailable, "the container runtime does not answer");
    std::array<char, 4096> piece{};
    const ssize_t size = ::recv(socket, piece.data(), piece.size(), 0);
    if (size < 0) return unavailable("receive from the container runtime", errno);
    if (size == 0) break;
    received.append(piece.data(), static_cast<std::size_t>(size));
    const CriAnswer answer = read_answer(received);
    if (answer == CriAnswer::Yes) return {};
    if (answer == CriAnswer::No) {
      return fail(
          ErrorKind::NotFound,
          "containerd answers, but not as a container runtime: its CRI plugin is not loaded");
    }
  }
  return fail(ErrorKind::Unavailable, "the container runtime hung up");
}

}  // namespace

std::string version_request(std::string_view service) {
  std::string headers = header(":method", "POST") + header(":scheme", "http") +
                        header(":path", fmt::format("/{}.RuntimeService/Version", service)) +
                        header(":authority", "localhost") +
                        header("content-type", "application/grpc") + header("te", "trailers");
  // An empty message: not compressed, length 0.
  const std::string message(5, '\0');
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "") +
         frame(kHeaders, kEndHeaders, 1, headers) + frame(kData, kEndStream, 1, message);
}

CriAnswer read_answer(std::string_view received) {
  while (received.size() >= kFrameHeaderBytes) {
    const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(received[at]); };
    const std::size_t size = (std::size_t{byte(0)} << 16) | (std::size_t{byte(1)} << 8) | byte(2);
    const std::uint8_t type = byte(3);
    const std::uint8_t flags = byte(4);
    const bool is_ours = (byte(5) & 0x7f) == 0 && byte(6) == 0 && byte(7) == 0 && byte(8) == 1;
    // A gRPC message begins with a prefix of five bytes.
    if (is_ours && type == kData && (flags & kPadded) == 0 && size >= 5) return CriAnswer::Yes;
    if (type == kGoAway || (is_ours && type == kResetStream)) return CriAnswer::No;
    if (is_ours && (flags & kEndStream) != 0 && (type == kHeaders || type == kData))
      return CriAnswer::No;
    if (received.size() < kFrameHeaderBytes + size) return CriAnswer::Incomplete;
    received.remove_prefix(kFrameHeaderBytes + size);
  }
  return CriAnswer::Incomplete;
}

Result<> probe_cri(const std::string& path, milliseconds at_most) {
  const auto deadline = steady_clock::now() + at_most;
  Result<> answer;
  for (const std::string_view service : {"runtime.v1", "runtime.v1alpha2"}) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (path.size() >= sizeof address.sun_path)
      return fail(ErrorKind::InvalidInput, fmt::format("{}: too long for a socket", path));
    std::memcpy(&address.sun_path[0], path.data(), path.size());
    const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // A Unix socket connects at once or not at all.
    if (!socket.is_open() || ::connect(socket.value(), reinterpret_cast<const sockaddr*>(&address),
                                       sizeof address) != 0) {
      return unavailable("connect to containerd's socket", errno);
    }
    answer = ask(socket.value(), service, deadline);
    if (answer || answer.error().kind() != ErrorKind::NotFound) return answer;
  }
  return answer;
}

}  // namespace hangar::node_install
