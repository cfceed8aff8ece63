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

// What one evaluation may ask us to apply: each is a request and a record of ours. Large charts
// have a few hundred.
inline constexpr std::uint64_t kFlightResourcesMax = 5000;

// metav1.Condition's schema allows no longer message.
inline constexpr std::uint64_t kConditionMessageBytesMax = 32 * kKiB;

// The API server's bound on the data of one Secret: a revision of a release's history.
inline constexpr std::uint64_t kSecretBytesMax = kMiB;

// A revision after decompression: a flight's output and what we add to each of its resources.
inline constexpr std::uint64_t kRevisionBytesMax = 2 * kFlightOutputBytesMax;

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

// Imports, exports, types or custom sections of one module. The largest published flight
// (Helm-embedding) has fewer than a hundred of each.
inline constexpr std::uint32_t kModuleItemsMax = 10'000;

// The browsers' limit; a Go program of 80 MB has 120,000.
inline constexpr std::uint32_t kModuleFunctionsMax = 1'000'000;

// Of an import or export; the browsers' limit.
inline constexpr std::uint32_t kModuleNameBytesMax = 100'000;

// One compilation. A Go controller of 67 MB takes 16 s on two quiet cores and 1.1 GB; the room is
// for busy ones, and for the address space that is reserved without being used.
inline constexpr std::chrono::seconds kCompileMax{300};
inline constexpr std::uint64_t kCompileMemoryBytesMax = 6 * 1024 * kMiB;

// Native code is about 2.3 times the module.
inline constexpr std::uint64_t kCompiledBytesMax = 2048 * kMiB;

// What the cache of native code may take on disk: 100 flights of 16 MB.
inline constexpr std::uint64_t kCodeCacheBytesMax = 4096 * kMiB;

// Guests that have begun and not ended. Those that run are as many as workers; the rest wait for an
// answer of the host, each with its memory (10 MB for a Go flight).
inline constexpr std::uint32_t kGuestRunsMax = 64;

// Of WebAssembly frames on one stack. Go and Rust programs that parse deep documents recurse.
inline constexpr std::uint64_t kGuestStackBytesMax = kMiB;

// Functions that a module can call indirectly: a Go program of 80 MB has 110,000.
inline constexpr std::uint32_t kGuestTableElementsMax = 500'000;

// A trap's backtrace in an error message.
inline constexpr std::uint32_t kBacktraceFramesMax = 20;

static_assert(kGuestMemoryBytesMax >= 2 * kFlightOutputBytesMax,
              "a flight holds its output twice: as objects and as the encoded text");
static_assert(kGuestCallMax < kLeaseDuration,
              "a stuck guest is stopped before the leader can lose its lease over it");
static_assert(kLeaseRenewDeadline < kLeaseDuration,
              "a leader that cannot renew stops acting before another may start");

}  // namespace hangar::limits
