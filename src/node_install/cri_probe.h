// Checks that containerd answers as a container runtime, with one call of RuntimeService/Version on
// its socket. A containerd that could not load its CRI plugin still listens, but answers that it
// does not know the service. Such a node is broken, and only this call shows it.
#pragma once

#include "base/destroyed_by.h"
#include "base/result.h"

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::node_install {

enum class CriAnswer : std::uint8_t {
  Incomplete,  // More bytes are needed.
  Yes,         // A message has arrived: the plugin works.
  No,          // The call has ended without a message.
};

// The protocol of the call, without its socket: gRPC over HTTP/2 without TLS.
class CriCall {
 public:
  // `service` is runtime.v1 or, for containerd before 1.6, runtime.v1alpha2.
  explicit CriCall(std::string_view service);
  CriCall(const CriCall&) = delete;
  CriCall& operator=(const CriCall&) = delete;

  // The bytes to send next; empty when there are none at the moment.
  [[nodiscard]] std::string take_output();
  // Bytes that were received. InvalidInput when they are not HTTP/2.
  [[nodiscard]] Result<> receive(std::string_view bytes);
  [[nodiscard]] CriAnswer answer() const;

 private:
  void write();

  std::unique_ptr<nghttp2_session, DestroyedBy<nghttp2_session_del>> session_;
  std::int32_t stream_ = 0;
  std::size_t sent_ = 0;            // Sent bytes of the request's message.
  std::size_t received_bytes_ = 0;  // Bytes of the answer's messages, with their prefixes.
  std::string output_;              // Not yet taken by take_output().
  bool is_over_ = false;
  bool is_broken_ = false;  // The received bytes are not HTTP/2.
};

// Connects to the Unix socket `path` and makes the call. Unavailable says what is wrong, NotFound
// that containerd does not know the service.
[[nodiscard]] Result<> probe_cri(const std::string& path, std::chrono::milliseconds at_most);

}  // namespace hangar::node_install
