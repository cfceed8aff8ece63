// Bounds of modules, guests and their memory, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Uncompressed module. The largest published flight (Helm-embedding PostgreSQL) has 81.8 MB.
inline constexpr std::uint64_t kModuleBytesMax = 256 * kMiB;

// A flight's stdout: the resources that one module may ask us to apply. The largest published
// flight (the ArgoCD chart) prints 635 kB.
inline constexpr std::uint64_t kFlightOutputBytesMax = 16 * kMiB;

// A flight's stderr ends up in an error message; the rest is dropped with a note.
inline constexpr std::uint64_t kFlightErrorBytesMax = 64 * kKiB;

// The memory of one guest when its Airway sets no limit.
inline constexpr std::uint64_t kGuestMemoryBytesMax = 512 * kMiB;

// yoke's default for one evaluation.
inline constexpr std::chrono::seconds kGuestCallMax{10};

// Imports, exports, types or custom sections of one module. The largest published flight
// (Helm-embedding) has fewer than a hundred of each.
inline constexpr std::uint32_t kModuleItemsMax = 10'000;

// The browsers' limit; a Go program of 80 MB has 120,000.
inline constexpr std::uint32_t kModuleFunctionsMax = 1'000'000;

// The name of an import or export; the browsers' limit.
inline constexpr std::uint32_t kModuleNameBytesMax = 100'000;

// Data segments of one module; wasmtime's own bound. A Go program of 4 MB has 37,000.
inline constexpr std::uint32_t kModuleDataSegmentsMax = 100'000;

// The disk space for the data segments of one module once they lie in pages. More than the largest
// module has as bytes is an attack: a segment of one byte makes a page of 4 KiB.
inline constexpr std::uint64_t kImageBytesMax = 512 * kMiB;

// One compilation. A Go controller of 67 MB takes 16 s on two idle cores and 1.1 GB; the rest is a
// reserve for modules of 256 MB, and for address space that is reserved and not used. Processor
// time bounds the work, because it does not depend on how busy the machine is. The wall-clock limit
// only stops a compiler that hangs; a third of a core suffices to stay within it.
inline constexpr std::chrono::seconds kCompileProcessorMax{600};
inline constexpr std::chrono::seconds kCompileMax{1800};
inline constexpr std::uint64_t kCompileMemoryBytesMax = 6 * 1024 * kMiB;

// The same while a module of another namespace waits that has had less processor time: this much,
// and more for each MiB of the module. That is seven times the measured time for a module of 8 MiB,
// twice for one of 64 MiB, and 1.7 times for the largest: a reserve for slow processors. So a
// namespace with its first module waits no longer than this, whatever the modules of other
// namespaces contain.
inline constexpr std::chrono::seconds kCompileTurnMin{30};
inline constexpr std::chrono::milliseconds kCompileTurnPerMiB{750};
static_assert(kCompileTurnMin + kModuleBytesMax / kMiB * kCompileTurnPerMiB <
                  kCompileProcessorMax / 2,
              "a turn is well below what a module may take while nobody waits");

// How long a compilation whose turn it is may wait for memory while other namespaces wait. Guests
// that are suspended make room within seconds.
inline constexpr std::chrono::seconds kCompileMemoryWaitMax{30};

// One verification of a signature: hashing the largest module takes a second on an old processor.
// The memory is for a key, and for the module as a mapped file.
inline constexpr std::chrono::seconds kVerifyProcessorMax{20};
inline constexpr std::uint64_t kVerifyMemoryBytes = 64 * kMiB;

// The memory of a compiler: this minimum, and this much for each byte of the module. Measured: 27
// MiB for the smallest; 118, 358 and 1050 MiB for Go programs of 5, 17 and 42 MiB.
inline constexpr std::uint64_t kCompileMemoryBytesMin = 48 * kMiB;
inline constexpr std::uint64_t kCompileMemoryPerByte = 32;

// Modules that wait for a compiler, as files: of all namespaces, and of one.
inline constexpr std::uint64_t kCompilationsWaitingBytesMax = 2048 * kMiB;
inline constexpr std::uint64_t kCompilationsOfOneWaitingBytesMax = 512 * kMiB;

// Native code is about 2.3 times the module.
inline constexpr std::uint64_t kCompiledBytesMax = 2048 * kMiB;

// The cache of native code on disk: 100 flights of 16 MB.
inline constexpr std::uint64_t kCodeCacheBytesMax = 4096 * kMiB;

// Modules whose code was too large for the disk share of a namespace, so that it is not compiled
// again at each retry; an entry has some 80 bytes.
inline constexpr std::size_t kRefusedCodeMax = 1024;

// Guests that have started and not finished. As many run as there are workers; the others wait for
// an answer from the host, each with its memory (10 MB for a Go flight).
inline constexpr std::uint32_t kGuestRunsMax = 64;

// WebAssembly frames on one stack. Go and Rust programs that parse deep documents recurse.
inline constexpr std::uint64_t kGuestStackBytesMax = kMiB;

// Pages of files that may be resident after a run: the program and its libraries (16 MiB), and code
// of the modules that ran last (for a Go flight of 16 MB, 12 MiB, or 28 in large pages). Beyond
// that, the code of the modules that have not run for longest is released; it is back within 0.3 ms
// in large pages, within 2 ms otherwise. Code that is running comes on top: some 80 MiB on two
// cores.
inline constexpr std::uint64_t kFilePagesBytesMax = 48 * kMiB;

// The code of guests that can sleep is unloaded when all of them have slept for this long. Loading
// it again takes 0.2 ms, unless it must be read from disk.
inline constexpr std::chrono::seconds kSleepingCodeKept{2};

// Instances that were reset to a checkpoint and wait for the next turn from there: enough for the
// concurrent turns of a few machines. A step of a JavaScript machine writes to half a MiB; a reset
// copies that, and beyond some MiB costs as much as a new instance.
inline constexpr std::size_t kWarmInstancesMax = 16;
inline constexpr std::uint64_t kWarmInstanceBytesMax = 4 * kMiB;
inline constexpr std::chrono::seconds kWarmInstanceKept{5};

// Functions that a module can call indirectly: a Go program of 80 MB has 110,000.
inline constexpr std::uint32_t kGuestTableElementsMax = 500'000;

// A trap's backtrace in an error message. Go ends a program four functions below the one that
// panicked.
inline constexpr std::uint32_t kBacktraceFramesMax = 10;

// Snapshots of all sleeping guests on disk: a million of the usual ones.
inline constexpr std::uint64_t kSnapshotBytesMax = 16384 * kMiB;
// Those of one namespace: a quarter, so that a namespace that fills its share leaves room for
// others.
inline constexpr std::uint64_t kSnapshotBytesPerTenantMax = kSnapshotBytesMax / 4;

// A guest that has slept for less than this before it woke has a layer (page_layer.h), if it
// differs from its image in as much as kLayerBytesMin: less is compressed in a quarter of a
// millisecond. A layer also takes room on disk, up to kLayerBytesMax. A guest that has written to
// more than kBesideLayerBytesMax beside its layer gets a new one, if that fits.
inline constexpr std::chrono::minutes kLayerSleepMax{10};
inline constexpr std::uint64_t kLayerBytesMin = 256 * kKiB;
inline constexpr std::uint64_t kLayerBytesMax = 8 * kMiB;
inline constexpr std::uint64_t kBesideLayerBytesMax = 128 * kKiB;
// A layer that guest processes map is a file of its own, which the host keeps open.
inline constexpr std::uint64_t kLayerFilesMax = 256;

// Open files and directories of one guest; a usual bound of libcs.
inline constexpr std::uint32_t kGuestDescriptorsMax = 256;

static_assert(kGuestMemoryBytesMax >= 2 * kFlightOutputBytesMax,
              "a flight holds its output twice: as objects and as the encoded text");

}  // namespace hangar::limits
