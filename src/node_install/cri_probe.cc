#include "node_install/cri_probe.h"

#include "base/assert.h"
#include "base/destroyed_by.h"
#include "base/result.h"
#include "node_install/files.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::node_install {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// gRPC's prefix of a message: whether it is compressed, and its length in four bytes.
constexpr std::size_t kPrefixBytes = 5;
// The request is an empty message.
constexpr std::array<std::uint8_t, kPrefixBytes> kEmptyMessage{};

using Callbacks =
    std::unique_ptr<nghttp2_session_callbacks, DestroyedBy<nghttp2_session_callbacks_del>>;

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    // nghttp2 copies them, and has no pointer to const for them.
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {.name = bytes(name),
          .value = bytes(value),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

std::unexpected<Error> unavailable(std::string_view what, int code) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", what, std::generic_category().message(code)));
}

// A few hundred bytes: they fit into the socket's buffer.
Result<> send_all(int socket, const std::string& bytes) {
  if (bytes.empty() || ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                           static_cast<ssize_t>(bytes.size())) {
    return {};
  }
  return unavailable("send to the container runtime", errno);
}

Result<> ask(int socket, std::string_view service, steady_clock::time_point deadline) {
  CriCall call(service);
  while (call.answer() == CriAnswer::Incomplete) {
    HANGAR_TRY(send_all(socket, call.take_output()));
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    const int count = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(ErrorKind::Unavailable, "the container runtime does not answer");
    std::array<char, 4096> piece{};
    const ssize_t size = ::recv(socket, piece.data(), piece.size(), 0);
    if (size < 0) return unavailable("receive from the container runtime", errno);
    if (size == 0) return fail(ErrorKind::Unavailable, "the container runtime hung up");
    if (auto taken = call.receive({piece.data(), static_cast<std::size_t>(size)}); !taken) {
      return fail(ErrorKind::Unavailable,
                  "the container runtime does not speak HTTP/2: " + taken.error().message());
    }
  }
  if (call.answer() == CriAnswer::Yes) return {};
  return fail(ErrorKind::NotFound,
              "containerd answers, but not as a container runtime: its CRI plugin is not loaded");
}

}  // namespace

CriCall::CriCall(std::string_view service) {
  nghttp2_session_callbacks* made = nullptr;
  HANGAR_ASSERT(nghttp2_session_callbacks_new(&made) == 0, "out of memory");
  const Callbacks callbacks(made);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      made, [](nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t*,
               std::size_t size, void* self) {
        auto* const call = static_cast<CriCall*>(self);
        if (stream == call->stream_) call->received_bytes_ += size;
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      made, [](nghttp2_session*, std::int32_t stream, std::uint32_t, void* self) {
        auto* const call = static_cast<CriCall*>(self);
        if (stream == call->stream_) call->is_over_ = true;
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      made, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        if (frame->hd.type == NGHTTP2_GOAWAY) static_cast<CriCall*>(self)->is_over_ = true;
        return 0;
      });
  // nghttp2 ends a connection whose other end breaks the protocol; this end never does.
  nghttp2_session_callbacks_set_on_frame_send_callback(
      made, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        if (frame->hd.type == NGHTTP2_GOAWAY) static_cast<CriCall*>(self)->is_broken_ = true;
        return 0;
      });
  nghttp2_session* session = nullptr;
  HANGAR_ASSERT(nghttp2_session_client_new(&session, made, this) == 0, "out of memory");
  session_.reset(session);

  const std::string path = fmt::format("/{}.RuntimeService/Version", service);
  const std::array headers = {header(":method", "POST"),
                              header(":scheme", "http"),
                              header(":path", path),
                              header(":authority", "localhost"),
                              header("content-type", "application/grpc"),
                              header("te", "trailers")};
  nghttp2_data_provider message{};
  message.source.ptr = this;
  message.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* out, std::size_t room,
                             std::uint32_t* flags, nghttp2_data_source* source, void*) -> ssize_t {
    auto* const call = static_cast<CriCall*>(source->ptr);
    const std::size_t size = std::min(room, kEmptyMessage.size() - call->sent_);
    std::copy_n(kEmptyMessage.begin() + call->sent_, size, out);
    call->sent_ += size;
    if (call->sent_ == kEmptyMessage.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  };
  HANGAR_ASSERT(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0) == 0,
                "out of memory");
  stream_ =
      nghttp2_submit_request(session, nullptr, headers.data(), headers.size(), &message, nullptr);
  HANGAR_ASSERT(stream_ > 0, nghttp2_strerror(stream_));
}

void CriCall::write() {
  const std::uint8_t* bytes = nullptr;
  while (true) {
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
    HANGAR_ASSERT(size >= 0, nghttp2_strerror(static_cast<int>(size)));
    if (size == 0) return;
    output_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

std::string CriCall::take_output() {
  write();
  return std::exchange(output_, {});
}

Result<> CriCall::receive(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken < 0) {
    return fail(ErrorKind::InvalidInput, nghttp2_strerror(static_cast<int>(taken)));
  }
  write();
  if (is_broken_) return fail(ErrorKind::InvalidInput, "a frame is invalid");
  return {};
}

CriAnswer CriCall::answer() const {
  if (received_bytes_ >= kPrefixBytes) return CriAnswer::Yes;
  return is_over_ ? CriAnswer::No : CriAnswer::Incomplete;
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
