// Bounds of fetched modules, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstdint>

namespace hangar::limits {

// The API server's bound on the data of one Secret, which holds a revision of a release's history.
inline constexpr std::uint64_t kSecretBytesMax = kMiB;

// A module, as it is fetched and uncompressed: as large as the engine takes (wasm/limits.h).
inline constexpr std::uint64_t kFetchedBytesMax = 256 * kMiB;

// The time to fetch one module: 82 MB over a slow line of 3 Mbit/s. A source that sends nothing for
// the idle time is treated as unreachable.
inline constexpr std::chrono::seconds kModuleDownloadMax{240};
inline constexpr std::chrono::seconds kModuleDownloadIdleMax{30};

// Docker configs, and answers of registries that are not read.
inline constexpr std::uint64_t kRegistryAnswerBytesMax = 4 * kMiB;

// Manifests: that of a module has some KiB, one with 32 keyless signatures some hundred. As JSON,
// each byte can take tens of bytes of memory.
inline constexpr std::uint64_t kManifestBytesMax = kMiB;

// Responses of token servers. A token becomes a header of each request.
inline constexpr std::uint64_t kTokenAnswerBytesMax = 64 * kKiB;

// Fetched modules on disk, gzipped: some 250 Go flights of 4 MB.
inline constexpr std::uint64_t kModuleStoreBytesMax = 1024 * kMiB;

// How long a source's answer proves that the requester may have the module. A revoked credential
// stops counting within this time. Registries count requests (Docker Hub allows a hundred in six
// hours without an account), and mutable references are requested more often anyway.
inline constexpr std::chrono::hours kProofKept{1};

// How long one requester waits for another's download of the same reference. Most downloads take
// less; one that waits for threads of its namespace may take much more.
inline constexpr std::chrono::seconds kFetchPatience{30};

// The number of references whose last known digest is remembered; an entry has some 400 bytes.
inline constexpr std::uint32_t kModuleReferencesMax = 4096;

}  // namespace hangar::limits
