#include "modules/internal/gzip.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/file.h"

#include <fmt/core.h>
#include <zconf.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace hangar::modules {

namespace {

// Large enough to make the cost of zlib's calls negligible, small enough for the CPU's cache.
constexpr std::size_t kStepBytes = 256 * limits::kKiB;
// A window of 15 bits, with a gzip header and trailer instead of zlib's.
constexpr int kGzipWindow = 15 + 16;

// zlib counts input in unsigned ints; longer input is fed in pieces.
uInt next_piece(std::size_t left) {
  return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

// zlib's interface lacks const for input.
Bytef* readable(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

class Inflater {
 public:
  Inflater() {
    HANGAR_ASSERT(inflateInit2(&stream_, kGzipWindow) == Z_OK, "zlib has memory for its window");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

std::uint64_t claimed_size(std::string_view end, std::uint64_t packed_bytes,
                           std::uint64_t bytes_max) {
  constexpr std::uint64_t kRatioMax = 1032;  // Deflate's best ratio.
  if (end.size() < kTrailerBytes) return 0;
  end.remove_prefix(end.size() - kTrailerBytes);
  std::uint64_t size = 0;
  for (std::size_t index = 0; index < kTrailerBytes; ++index)
    size |= std::uint64_t{static_cast<unsigned char>(end[index])} << (8 * index);
  return std::min({size, bytes_max, packed_bytes * kRatioMax});
}

std::uint64_t claimed_size_of_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff packed_bytes = file.tellg();
  constexpr auto kEnd = static_cast<std::streamoff>(kTrailerBytes);
  if (packed_bytes < kEnd) return 0;
  std::string end(kTrailerBytes, '\0');
  file.seekg(packed_bytes - kEnd);
  file.read(end.data(), kEnd);
  return claimed_size(end, static_cast<std::uint64_t>(packed_bytes), bytes_max);
}

namespace {

// Decompresses the pieces that `next` returns, until it returns an empty one; a piece stays valid
// until the next call. `size_hint`: how much probably comes out.
template <class Next>
Result<std::string> inflate_pieces(Next next, std::uint64_t size_hint, std::uint64_t bytes_max) {
  std::string inflated;
  inflated.reserve(size_hint);
  std::vector<char> step(kStepBytes);
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::uint64_t total = 0;
  bool is_last = false;  // There are no more pieces.
  const auto refill = [&]() -> Result<> {
    if (stream.avail_in > 0 || is_last) return {};
    const std::string_view piece = HANGAR_TRY(next());
    stream.next_in = readable(piece);
    stream.avail_in = static_cast<uInt>(piece.size());
    total += piece.size();
    is_last = piece.empty();
    return {};
  };
  HANGAR_TRY(refill());
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(step.data());
    stream.avail_out = static_cast<uInt>(step.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    const std::size_t count = step.size() - stream.avail_out;
    if (inflated.size() + count > bytes_max) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("inflates to more than {} bytes", bytes_max));
    }
    inflated.append(step.data(), count);
    HANGAR_TRY(refill());
    const bool at_end = stream.avail_in == 0 && is_last;
    if (code == Z_STREAM_END) {
      if (at_end) return inflated;
      if (inflateReset(&stream) != Z_OK) break;
      continue;
    }
    if (code == Z_BUF_ERROR || (code == Z_OK && at_end && stream.avail_out > 0)) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("gzip is cut off after {} bytes: download or push it again", total));
    }
    if (code != Z_OK) break;
  }
  return fail(ErrorKind::InvalidInput,
              fmt::format("gzip is damaged: {}",
                          stream.msg != nullptr ? stream.msg : "data after its end"));
}

}  // namespace

Result<std::string> gunzip(std::string_view bytes, std::uint64_t bytes_max) {
  const auto next = [left = bytes]() mutable -> Result<std::string_view> {
    const std::string_view piece = left.substr(0, next_piece(left.size()));
    left.remove_prefix(piece.size());
    return piece;
  };
  return inflate_pieces(next, claimed_size(bytes, bytes.size(), bytes_max), bytes_max);
}

Result<std::string> gunzip_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  io::FilePieces pieces = HANGAR_TRY(io::FilePieces::open(path));
  return inflate_pieces([&pieces] { return pieces.next(); }, claimed_size_of_file(path, bytes_max),
                        bytes_max);
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kMemoryLevel = 8;
  HANGAR_ASSERT(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK,
                "zlib has memory for its window");
  std::string deflated;
  std::vector<char> step(kStepBytes);
  stream.next_in = readable(bytes);
  std::size_t left = bytes.size();
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (stream.avail_in == 0 && left > 0) {
      stream.avail_in = next_piece(left);
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(step.data());
    stream.avail_out = static_cast<uInt>(step.size());
    code = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    HANGAR_ASSERT(code == Z_OK || code == Z_STREAM_END, "deflate makes progress");
    deflated.append(step.data(), step.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return deflated;
}

Result<> gzip_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  const auto failed = [](const std::filesystem::path& path) {
    const ErrorKind kind = errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable;
    return fail(kind, fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::fopen(from.c_str(), "rbe"),
                                                              &std::fclose);
  if (!input) return failed(from);
  // The header that zlib writes has neither a time nor a name.
  std::unique_ptr<std::remove_pointer_t<gzFile>, int (*)(gzFile)> output(gzopen(to.c_str(), "wbe6"),
                                                                         &gzclose);
  if (!output) return failed(to);
  std::vector<char> step(kStepBytes);
  while (true) {
    const std::size_t count = std::fread(step.data(), 1, step.size(), input.get());
    if (count == 0) break;
    const auto size = static_cast<unsigned>(count);
    if (gzwrite(output.get(), step.data(), size) != static_cast<int>(count)) return failed(to);
  }
  if (std::ferror(input.get()) != 0) return failed(from);
  if (gzclose(output.release()) != Z_OK) return failed(to);
  return {};
}

}  // namespace hangar::modules
