// Bounds of the HTTP client and server, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// A response body that is not a stream: a list page of 500 objects of the size above would not fit,
// but the API server itself refuses to build much more than this for one page in practice.
inline constexpr std::uint64_t kResponseBytesMax = 256 * kMiB;

// A server that does not acknowledge what is sent, or answers no probe, for so long is gone. Longer
// than a failover of a load balancer takes, shorter than anybody wants to act on old news.
inline constexpr std::chrono::seconds kDeadPeerMax{30};

// Ours; the server has its own bound (kube-apiserver: 100 to 1000), beyond which another connection
// is opened.
inline constexpr long kStreamsPerConnectionMax = 10'000;

// Connections to one server that speaks HTTP/2: even at 100 streams each enough for every watch and
// request of a host, and no storm of handshakes when a thousand requests are made at once.
inline constexpr long kHttp2ConnectionsMax = 16;

// Idle connections kept per Transport: a burst of HTTP/1.1 requests leaves many.
inline constexpr long kIdleConnectionsMax = 32;

// Connections to our own server: kubelet's probes, a few Prometheus, the API server's webhooks.
inline constexpr std::size_t kServerConnectionsMax = 512;

// A slow client of our own server: for its request, for taking the response, and in between.
inline constexpr std::chrono::seconds kServerReadMax{10};
inline constexpr std::chrono::seconds kServerWriteMax{30};
inline constexpr std::chrono::seconds kServerIdleMax{90};

}  // namespace hangar::limits
