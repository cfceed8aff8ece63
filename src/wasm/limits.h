// Bounds of modules, guests and their memory, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// A flight's stderr ends up in an error message; the rest is dropped with a note.
inline constexpr std::uint64_t kFlightErrorBytesMax = 64 * kKiB;

// What one guest may allocate when its Airway does not say.
inline constexpr std::uint64_t kGuestMemoryBytesMax = 512 * kMiB;

// yoke's default for one evaluation.
inline constexpr std::chrono::seconds kGuestCallMax{10};

// Imports, exports, types or custom sections of one module. The largest published flight
// (Helm-embedding) has fewer than a hundred of each.
inline constexpr std::uint32_t kModuleItemsMax = 10'000;

// The browsers' limit; a Go program of 80 MB has 120,000.
inline constexpr std::uint32_t kModuleFunctionsMax = 1'000'000;

// Of an import or export; the browsers' limit.
inline constexpr std::uint32_t kModuleNameBytesMax = 100'000;

// Segments of data of one module; wasmtime's own bound. A Go program of 4 MB has 37,000.
inline constexpr std::uint32_t kModuleDataSegmentsMax = 100'000;

// What the data segments of one module may take on disk once they lie in pages. More than the
// largest module has as bytes is an attack: a segment of one byte makes a page of 4 KiB.
inline constexpr std::uint64_t kImageBytesMax = 512 * kMiB;

// One compilation. A Go controller of 67 MB takes 16 s on two quiet cores and 1.1 GB; the room is
// for modules of 256 MB, and for the address space that is reserved without being used. Processor
// time is what a module is judged by: a busy machine makes it no larger. The clock only ends a
// compiler that waits for ever; until then a third of a core will do.
inline constexpr std::chrono::seconds kCompileProcessorMax{600};
inline constexpr std::chrono::seconds kCompileMax{1800};
inline constexpr std::uint64_t kCompileMemoryBytesMax = 6 * 1024 * kMiB;

// One look at a signature: hashing the largest module takes a second of an old processor. What it
// holds is a key, and the module as a file that is mapped.
inline constexpr std::chrono::seconds kVerifyProcessorMax{20};
inline constexpr std::uint64_t kVerifyMemoryBytes = 64 * kMiB;

// What a compiler may take of memory: these bytes, and so many for each byte of the module.
// Measured: 27 MiB for the smallest; 118, 358 and 1050 MiB for Go programs of 5, 17 and 42 MiB.
inline constexpr std::uint64_t kCompileMemoryBytesMin = 48 * kMiB;
inline constexpr std::uint64_t kCompileMemoryPerByte = 32;

// Modules that wait for a compiler, as files: of all namespaces, and of one.
inline constexpr std::uint64_t kCompilationsWaitingBytesMax = 2048 * kMiB;
inline constexpr std::uint64_t kCompilationsOfOneWaitingBytesMax = 512 * kMiB;

// Native code is about 2.3 times the module.
inline constexpr std::uint64_t kCompiledBytesMax = 2048 * kMiB;

// What the cache of native code may take on disk: 100 flights of 16 MB.
inline constexpr std::uint64_t kCodeCacheBytesMax = 4096 * kMiB;

// Guests that have begun and not ended. Those that run are as many as workers; the rest wait for an
// answer of the host, each with its memory (10 MB for a Go flight).
inline constexpr std::uint32_t kGuestRunsMax = 64;

// Of WebAssembly frames on one stack. Go and Rust programs that parse deep documents recurse.
inline constexpr std::uint64_t kGuestStackBytesMax = kMiB;

// Pages of files that may be resident when a guest has run: the program and its libraries (16 MiB),
// and code of the modules that ran last (for a Go flight of 16 MB, 12 MiB, or 28 in large pages).
// Code of whoever has not run for longest leaves beyond it, and is back within 0.3 ms when it comes
// in large pages, 2 ms otherwise. What runs at this moment comes on top: some 80 MiB on two cores.
inline constexpr std::uint64_t kFilePagesBytesMax = 48 * kMiB;

// Code of guests that can sleep is unloaded when all of them have slept for so long: it is loaded
// again, unless the disk has to be asked, within 0.2 ms.
inline constexpr std::chrono::seconds kSleepingCodeKept{2};

// Instances that have gone back to a checkpoint, kept for the next turn from there: as many as a
// few machines have turns at a time. A step of a JavaScript machine writes to half a MiB; going
// back copies that, which beyond some MiB is no cheaper than a new instance.
inline constexpr std::size_t kWarmInstancesMax = 16;
inline constexpr std::uint64_t kWarmInstanceBytesMax = 4 * kMiB;
inline constexpr std::chrono::seconds kWarmInstanceKept{5};

// Functions that a module can call indirectly: a Go program of 80 MB has 110,000.
inline constexpr std::uint32_t kGuestTableElementsMax = 500'000;

// A trap's backtrace in an error message.
inline constexpr std::uint32_t kBacktraceFramesMax = 20;

// What sleeping guests may take on disk together: a million of the usual ones.
inline constexpr std::uint64_t kSnapshotBytesMax = 16384 * kMiB;
// And those of one namespace: a quarter, so that one that fills its part leaves room for others.
inline constexpr std::uint64_t kSnapshotBytesPerTenantMax = kSnapshotBytesMax / 4;

// Files and directories that one guest has open; a libc's usual bound.
inline constexpr std::uint32_t kGuestDescriptorsMax = 256;

static_assert(kGuestMemoryBytesMax >= 2 * kFlightOutputBytesMax,
              "a flight holds its output twice: as objects and as the encoded text");

}  // namespace hangar::limits
