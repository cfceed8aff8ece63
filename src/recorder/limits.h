// Limits of the recorder, each with the reason for its value.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::recorder {

// Size of all files together. A turn with its requests takes about 150 bytes, so this holds more
// than a million turns.
inline constexpr std::uint64_t kBytesMax = 256 * limits::kMiB;
inline constexpr std::chrono::hours kAgeMax{24};
// A file that is too old is deleted as a whole. With at least this many files, a deletion removes
// at most a sixteenth of the records. Of the size, one sixteenth is kept free for the copy of a
// file that is being rewritten. Namespaces start to give up records when only one further sixteenth
// is free, and then free another one.
inline constexpr std::uint64_t kFilesMin = 16;
// A reader holds one file in memory; a rewrite holds it twice.
inline constexpr std::uint64_t kFileBytesMax = 4 * limits::kMiB;
// Readers accept files of up to this size: those of former versions had 16 MiB.
inline constexpr std::uint64_t kFileBytesReadMax = 64 * limits::kMiB;
inline constexpr std::uint64_t kFileBytesMin = 64 * limits::kKiB;
inline constexpr std::uint64_t kBytesMin = kFilesMin * kFileBytesMin;

// How long a record stays in memory before it is written: a killed host loses at most about a
// second of records.
inline constexpr std::chrono::milliseconds kWriteAfter{500};
// Records of this size are written at once, before that time has passed.
inline constexpr std::size_t kBlockBytes = 64 * limits::kKiB;
// Bytes that may wait for the disk. A namespace may have no more of them than it leaves free.
// Further records are lost and counted.
inline constexpr std::size_t kWaitingBytesMax = 2 * limits::kMiB;
// Time from a failed write to the next attempt.
inline constexpr std::chrono::seconds kRetryAfter{10};
// How often old files are deleted if nothing is recorded.
inline constexpr std::chrono::minutes kCarePeriod{30};

// Wakings and timers of one turn that are recorded; further ones are only counted.
inline constexpr std::size_t kWakingsMax = 128;
inline constexpr std::size_t kTimersMax = 16;
// Size of one text; names have at most 253 bytes. Guests choose some texts, so longer ones are
// truncated.
inline constexpr std::size_t kTextBytesMax = 512;

// How far an answer is read to find which object it has, and its version: past the annotations of
// an object, which have 256 KiB at most, and not through a long list.
inline constexpr std::size_t kAnswerReadBytesMax = 320 * limits::kKiB;

// Bodies of requests. The text that is written of one: more than almost all objects have.
inline constexpr std::size_t kBodyBytesMax = 16 * limits::kKiB;
// A body is parsed to be searched for secrets, in the background. Larger ones are left out.
inline constexpr std::size_t kBodyReadBytesMax = 256 * limits::kKiB;
// YAML takes many times the time of JSON; applied manifests are short.
inline constexpr std::size_t kBodyYamlBytesMax = 32 * limits::kKiB;
// What its aliases may stand for: with them a few lines would take as long as megabytes of JSON.
inline constexpr std::size_t kBodyAliasBytesMax = kBodyReadBytesMax;
// Secrets that a body names one by one; more count as all of the cluster.
inline constexpr std::size_t kBodySecretsMax = 16;
// Once a block has this size, further bodies of it are left out. Texts that are replaced, and
// aliases of YAML, may make a body longer than it was.
inline constexpr std::size_t kBlockBytesWithBodies = 4 * kBlockBytes;

// Size of a block that a reader accepts; the largest block that is written is smaller.
inline constexpr std::size_t kBlockBytesMax = 2 * limits::kMiB;
static_assert(kBlockBytes + (kWakingsMax + 8) * 5 * kTextBytesMax < kBlockBytesMax,
              "one record more than a block's fill fits into it");
static_assert(kBlockBytesWithBodies + kBodyBytesMax + (2 * kBodySecretsMax + 3) * kTextBytesMax <
                  kBlockBytesMax,
              "one body more than a block's fill fits into it");
static_assert(kBlockBytesMax > kFileBytesMin, "a file may be one block");

}  // namespace hangar::recorder
