// Every bound in the host, in one place, each with the reason for its number.
#pragma once

#include <chrono>
#include <cstdint>

namespace hangar::limits {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// etcd refuses requests over 1.5 MiB, so a larger object can never have been stored.
inline constexpr std::uint64_t kObjectBytesMax = 3 * kMiB / 2;

// A response body that is not a stream: a list page of 500 objects of the size above would not fit,
// but the API server itself refuses to build much more than this for one page in practice.
inline constexpr std::uint64_t kResponseBytesMax = 256 * kMiB;

// Nesting of JSON and YAML documents. Deeper input is an attack on the parser's stack; the deepest
// CRD schemas in the wild stay below 60.
inline constexpr std::uint32_t kDocumentDepthMax = 128;

// A flight's stdout: what one module may ask us to apply. The largest published flight (the ArgoCD
// chart) prints 635 kB.
inline constexpr std::uint64_t kFlightOutputBytesMax = 16 * kMiB;

// A flight's stderr ends up in an error message; the rest is dropped with a note.
inline constexpr std::uint64_t kFlightErrorBytesMax = 64 * kKiB;

// Uncompressed module. The largest published flight (Helm-embedding PostgreSQL) has 81.8 MB.
inline constexpr std::uint64_t kModuleBytesMax = 256 * kMiB;

// What one guest may allocate when its Airway does not say.
inline constexpr std::uint64_t kGuestMemoryBytesMax = 512 * kMiB;

// yoke's default for one evaluation.
inline constexpr std::chrono::seconds kGuestCallMax{10};

// client-go's defaults for leader election: lease 15 s, renew deadline 10 s, retry 2 s.
inline constexpr std::chrono::seconds kLeaseDuration{15};
inline constexpr std::chrono::seconds kLeaseRenewDeadline{10};
inline constexpr std::chrono::seconds kLeaseRetryPeriod{2};

// Graceful shutdown: what has not ended by then is abandoned; the next leader repeats it.
inline constexpr std::chrono::seconds kShutdownMax{10};

static_assert(kGuestMemoryBytesMax >= 2 * kFlightOutputBytesMax,
              "a flight holds its output twice: as objects and as the encoded text");
static_assert(kGuestCallMax < kLeaseDuration,
              "a stuck guest is stopped before the leader can lose its lease over it");
static_assert(kLeaseRenewDeadline < kLeaseDuration,
              "a leader that cannot renew stops acting before another may start");

}  // namespace hangar::limits
