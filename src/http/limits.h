// Bounds of the HTTP client and server, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// A response body that is not a stream. A list page of 500 objects of the largest size would not
// fit, but in practice the API server refuses to build much larger pages.
inline constexpr std::uint64_t kResponseBytesMax = 256 * kMiB;

// Headers of one response, and of one request to our own server. Larger ones are an attack or a
// loop of cookies.
inline constexpr std::uint64_t kHeaderBytesMax = 256 * kKiB;
inline constexpr std::uint64_t kServerHeaderBytesMax = 64 * kKiB;

// A server that does not acknowledge bytes, or answers no probe, for this long counts as dead.
// Longer than the failover of a load balancer, short enough not to act on old state for long.
inline constexpr std::chrono::seconds kDeadPeerMax{30};

// Our bound; the server has its own (kube-apiserver: 100 to 1000), beyond which the client opens
// another connection.
inline constexpr long kStreamsPerConnectionMax = 10'000;

// Connections to one HTTP/2 server, as long as they carry all open requests: a thousand requests at
// once do not cause as many handshakes.
inline constexpr long kHttp2ConnectionsMax = 16;

// With more open requests, there is one connection for this many of them: fewer than a server
// allows (RFC 9113 recommends no fewer than 100, the default of kube-apiserver), so that there is
// room before the last connection is full. The second number bounds these connections: each takes a
// descriptor here and some 100 KiB at the server.
inline constexpr std::size_t kStreamsExpectedPerConnection = 80;
inline constexpr long kHttp2ConnectionsEver = 256;

// Idle connections kept per Transport: a burst of HTTP/1.1 requests leaves many.
inline constexpr long kIdleConnectionsMax = 32;

// Connections to our own server: kubelet's probes, a few Prometheus, the API server's webhooks.
inline constexpr std::size_t kServerConnectionsMax = 512;

// The time that a slow client of our own server has to send its request, to take the response, and
// between two requests.
inline constexpr std::chrono::seconds kServerReadMax{10};
inline constexpr std::chrono::seconds kServerWriteMax{30};
inline constexpr std::chrono::seconds kServerIdleMax{90};

}  // namespace hangar::limits
