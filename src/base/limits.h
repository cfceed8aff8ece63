// Units, and the bounds that several layers share, each with the reason for its number. The
// bounds of one folder are in its own limits.h. All are in one namespace, and each is named after
// what it bounds.
#pragma once

#include <chrono>
#include <cstdint>

namespace hangar::limits {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// etcd refuses requests over 1.5 MiB, so a larger object can never have been stored.
inline constexpr std::uint64_t kObjectBytesMax = 3 * kMiB / 2;

// Headers of one response, and of one request to our own server. Larger ones are an attack or a
// loop of cookies.
inline constexpr std::uint64_t kHeaderBytesMax = 256 * kKiB;
inline constexpr std::uint64_t kServerHeaderBytesMax = 64 * kKiB;

// A flight's stdout: what one module may ask us to apply. The largest published flight (the ArgoCD
// chart) prints 635 kB.
inline constexpr std::uint64_t kFlightOutputBytesMax = 16 * kMiB;

// Uncompressed module. The largest published flight (Helm-embedding PostgreSQL) has 81.8 MB.
inline constexpr std::uint64_t kModuleBytesMax = 256 * kMiB;

// Graceful shutdown: work that has not finished by then is abandoned, and the next leader
// repeats it.
inline constexpr std::chrono::seconds kShutdownMax{10};

// What a long-running guest may print in one turn; the rest is dropped and counted.
inline constexpr std::uint64_t kOperatorOutputBytesMax = 256 * kKiB;

// One line of that output; a longer one is cut into several, as container runtimes do.
inline constexpr std::uint64_t kOperatorLineBytesMax = 16 * kKiB;

// Requests of one guest in flight, watches included; the next one waits.
inline constexpr std::uint32_t kGuestRequestsMax = 256;

// Requests of one guest that wait behind those in flight, and the bytes of their bodies. A
// controller that starts with a few thousand objects makes one request for each at once.
inline constexpr std::uint32_t kGuestRequestsWaitingMax = 16'384;
inline constexpr std::uint64_t kGuestRequestsWaitingBytesMax = 64 * kMiB;

}  // namespace hangar::limits
