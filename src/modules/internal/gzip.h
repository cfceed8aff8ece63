// gzip in memory, bounded: what is inflated comes from strangers.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hangar::modules {

[[nodiscard]] bool is_gzip(std::string_view bytes);

// What a gzip of `packed_bytes` inflates to by its own account, which is a stranger's: at most
// `bytes_max`, and no more than gzip can hold. Of several members it is the last one's. `end` has
// at least its last kTrailerBytes.
inline constexpr std::size_t kTrailerBytes = 4;
[[nodiscard]] std::uint64_t claimed_size(std::string_view end, std::uint64_t packed_bytes,
                                         std::uint64_t bytes_max);

// All members, one after the other. Blocking (82 MB take some 300 ms): for worker threads.
// Errors: LimitExceeded as soon as more than `bytes_max` come out, so a bomb costs no more than
// that; InvalidInput when the end is missing or a checksum is wrong.
[[nodiscard]] Result<std::string> gunzip(std::string_view bytes, std::uint64_t bytes_max);

// Fast rather than small. Blocking.
[[nodiscard]] std::string gzip(std::string_view bytes);

// Compresses a file into another one, piece by piece. Equal input gives equal output. Blocking.
// Errors: NotFound; Unavailable for any other refusal of the file system.
[[nodiscard]] Result<> gzip_file(const std::filesystem::path& from,
                                 const std::filesystem::path& to);

}  // namespace hangar::modules
