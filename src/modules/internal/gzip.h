// gzip in memory, with bounds: the input is untrusted.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hangar::modules {

[[nodiscard]] bool is_gzip(std::string_view bytes);

// The size that a gzip of `packed_bytes` claims for its content. The claim is untrusted, so it is
// capped at `bytes_max` and at gzip's best ratio. With several members it is that of the last one.
// `end` contains at least the last kTrailerBytes.
inline constexpr std::size_t kTrailerBytes = 4;
[[nodiscard]] std::uint64_t claimed_size(std::string_view end, std::uint64_t packed_bytes,
                                         std::uint64_t bytes_max);
// The same for a file; zero when there is none.
[[nodiscard]] std::uint64_t claimed_size_of_file(const std::filesystem::path& path,
                                                 std::uint64_t bytes_max);

// Decompresses all members in order. Blocking (82 MB take some 300 ms): for worker threads. Errors:
// LimitExceeded as soon as more than `bytes_max` come out, so a bomb costs no more than that;
// InvalidInput when the end is missing or a checksum is wrong.
[[nodiscard]] Result<std::string> gunzip(std::string_view bytes, std::uint64_t bytes_max);

// The same for a file, which is never in memory as a whole. Also NotFound, Denied and Unavailable,
// for errors of the file system.
[[nodiscard]] Result<std::string> gunzip_file(const std::filesystem::path& path,
                                              std::uint64_t bytes_max);

// Optimised for speed, not size. Blocking.
[[nodiscard]] std::string gzip(std::string_view bytes);

// Compresses a file into another one in pieces. Equal input gives equal output. Blocking. Errors:
// NotFound; Unavailable for any other error of the file system.
[[nodiscard]] Result<> gzip_file(const std::filesystem::path& from,
                                 const std::filesystem::path& to);

}  // namespace hangar::modules
