// Bounds of what is recorded, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::recorder {

// On disk, of all files together. A turn takes some 150 bytes with its requests: a million of them
// and more.
inline constexpr std::uint64_t kBytesMax = 256 * limits::kMiB;
inline constexpr std::chrono::hours kAgeMax{24};
// A file goes as a whole, so what is held varies by one of them: of so many.
inline constexpr std::uint64_t kFilesMin = 16;
// Whoever reads has one file in memory.
inline constexpr std::uint64_t kFileBytesMax = 16 * limits::kMiB;
inline constexpr std::uint64_t kFileBytesMin = 64 * limits::kKiB;
inline constexpr std::uint64_t kBytesMin = kFilesMin * kFileBytesMin;

// Until a record is handed to the file: a host that is killed loses no more than a second's.
inline constexpr std::chrono::milliseconds kWriteAfter{500};
// What is handed over at once, if that is reached before.
inline constexpr std::size_t kBlockBytes = 64 * limits::kKiB;
// What waits for the disk. Beyond it records are lost, and counted.
inline constexpr std::size_t kWaitingBytesMax = 2 * limits::kMiB;
// After a write that failed, until the next try.
inline constexpr std::chrono::seconds kRetryAfter{10};
// How often old files are looked for where nothing is recorded.
inline constexpr std::chrono::minutes kCarePeriod{30};

// Of one turn, what woke it and which timers it set: beyond that they are counted only.
inline constexpr std::size_t kWakingsMax = 128;
inline constexpr std::size_t kTimersMax = 16;
// Of one text: names have 253 bytes. Guests choose some of them, so they are cut.
inline constexpr std::size_t kTextBytesMax = 512;

// For the reader: more than the largest block that is ever written.
inline constexpr std::size_t kBlockBytesMax = 2 * limits::kMiB;
static_assert(kBlockBytes + (kWakingsMax + 8) * 5 * kTextBytesMax < kBlockBytesMax,
              "one record more than a block's fill fits into it");
static_assert(kBlockBytesMax > kFileBytesMin, "a file may be one block");

}  // namespace hangar::recorder
