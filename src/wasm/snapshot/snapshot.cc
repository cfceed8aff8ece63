#include "wasm/snapshot/snapshot.h"

#include "base/destroyed_by.h"
#include "base/limits.h"
#include "base/result.h"
#include "wasm/digest.h"
#include "wasm/snapshot/page_range.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they are");

constexpr std::array<char, 8> kMagic = {'h', 'a', 'n', 'g', 'a', 'r', 's', 'n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kDigestBytes = 32;
constexpr std::uint64_t kWasmPageBytes = 64 * limits::kKiB;

// The fastest useful level: pages are mostly zeros, and guests wait.
constexpr int kLevel = 1;

// How many pages are compressed in one step.
constexpr std::size_t kPagesAtOnce = 64;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t total_bytes;
  std::array<std::byte, kDigestBytes> module;
  std::uint64_t base_number;
  std::uint64_t memory_bytes;
  std::uint32_t global_count;
  std::uint32_t range_count;
  std::uint32_t page_count;
  std::uint32_t reserved;
};
static_assert(sizeof(Header) == 80 && std::has_unique_object_representations_v<Header>);
static_assert(sizeof(PageRange) == 8 && std::has_unique_object_representations_v<PageRange>);

// Contexts between two uses: making one costs more than using it, and each takes a third of a
// megabyte. There are as many as workers have used at the same time.
template <class Context, auto kMake, auto kFree>
class Spares {
 public:
  using Handle = std::unique_ptr<Context, DestroyedBy<kFree>>;

  // A kept context or a new one, for as long as this object lives. Null when there is no memory
  // for one.
  class Loan {
   public:
    explicit Loan(Spares& spares) : spares_(spares), context_(spares.take()) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      if (context_ != nullptr) spares_.give(std::move(context_));
    }
    [[nodiscard]] Context* get() const { return context_.get(); }

   private:
    Spares& spares_;
    Handle context_;
  };

  void clear() {
    std::vector<Handle> dropped;
    const std::scoped_lock lock(mutex_);
    dropped.swap(spares_);
  }

 private:
  Handle take() {
    const std::scoped_lock lock(mutex_);
    if (spares_.empty()) return Handle(kMake());
    Handle context = std::move(spares_.back());
    spares_.pop_back();
    return context;
  }
  void give(Handle context) {
    const std::scoped_lock lock(mutex_);
    spares_.push_back(std::move(context));
  }

  std::mutex mutex_;
  std::vector<Handle> spares_;
};

using Compressors = Spares<ZSTD_CCtx, ZSTD_createCCtx, ZSTD_freeCCtx>;
using Decompressors = Spares<ZSTD_DCtx, ZSTD_createDCtx, ZSTD_freeDCtx>;
Compressors& compressors() {
  static Compressors spares;
  return spares;
}
Decompressors& decompressors() {
  static Decompressors spares;
  return spares;
}

std::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorKind::Unavailable, fmt::format("the snapshot is broken: {}", what));
}

std::unexpected<Error> compressor_failed(std::size_t code) {
  return fail(ErrorKind::Unavailable,
              fmt::format("compress a snapshot: {}", ZSTD_getErrorName(code)));
}

template <class T>
void append(std::vector<std::byte>& bytes, std::span<const T> values) {
  const auto added = std::as_bytes(values);
  bytes.insert(bytes.end(), added.begin(), added.end());
}

std::array<std::byte, kDigestBytes> bytes_of(const Digest& digest) {
  std::array<std::byte, kDigestBytes> bytes{};
  std::ranges::copy(digest.bytes(), bytes.begin());
  return bytes;
}

// Appends all pages to `bytes` as one zstd frame.
class PageCompressor {
 public:
  explicit PageCompressor(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  Result<> begin(std::uint64_t pages) {
    ZSTD_CCtx* const context = compressor_.get();
    if (context == nullptr) return fail(ErrorKind::Unavailable, "no memory to compress with");
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
    const std::size_t code = ZSTD_CCtx_setPledgedSrcSize(context, pages * kPageBytes);
    if (ZSTD_isError(code) != 0) return compressor_failed(code);
    return {};
  }

  // The last part ends the frame.
  Result<> add(std::span<const std::byte> part, bool is_last) {
    ZSTD_inBuffer in{.src = part.data(), .size = part.size(), .pos = 0};
    while (true) {
      const std::size_t room = ZSTD_compressBound(in.size - in.pos);
      const std::size_t used = bytes_.size();
      bytes_.resize(used + room);
      ZSTD_outBuffer out{.dst = bytes_.data() + used, .size = room, .pos = 0};
      const std::size_t left = ZSTD_compressStream2(compressor_.get(), &out, &in,
                                                    is_last ? ZSTD_e_end : ZSTD_e_continue);
      bytes_.resize(used + out.pos);
      if (ZSTD_isError(left) != 0) return compressor_failed(left);
      if (is_last ? left == 0 : in.pos == in.size) return {};
    }
  }

 private:
  std::vector<std::byte>& bytes_;
  const Compressors::Loan compressor_{compressors()};
};

// Reads forwards; the caller has checked the sizes.
class Parts {
 public:
  explicit Parts(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  std::vector<T> take(std::size_t count) {
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + position_, count * sizeof(T));
    position_ += count * sizeof(T);
    return values;
  }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

Result<> check_pages(const PageRanges& ranges, const Header& header) {
  std::uint64_t end = 0;
  std::uint64_t total = 0;
  for (const PageRange& range : ranges) {
    if (range.count == 0 || range.first < end) return broken("its pages are not in order");
    end = std::uint64_t{range.first} + range.count;
    total += range.count;
  }
  if (end * kPageBytes > header.memory_bytes) return broken("it has pages beyond its memory");
  if (total != header.page_count) return broken("it does not count its pages right");
  return {};
}

}  // namespace

// docs/formats/snapshot.md describes the parts: header, globals, page ranges, one zstd frame,
// checksum. Pages are compressed in parts of kPagesAtOnce, so that this needs little memory besides
// the result. The header is written a second time at the end, when the total size is known; the
// checksum covers it.
Result<std::vector<std::byte>> encode(const Snapshot& snapshot, const FillPage& fill) {
  const std::uint64_t pages = page_count(snapshot.pages);
  Header header{.magic = kMagic,
                .version = kVersion,
                .total_bytes = 0,
                .module = bytes_of(snapshot.module),
                .base_number = snapshot.base_number,
                .memory_bytes = snapshot.memory_bytes,
                .global_count = static_cast<std::uint32_t>(snapshot.globals.size()),
                .range_count = static_cast<std::uint32_t>(snapshot.pages.size()),
                .page_count = static_cast<std::uint32_t>(pages),
                .reserved = 0};
  std::vector<std::byte> bytes;
  append(bytes, std::span<const Header>(&header, 1));
  append(bytes, std::span(snapshot.globals));
  append(bytes, std::span(snapshot.pages));

  PageCompressor frame(bytes);
  HANGAR_TRY(frame.begin(pages));
  std::vector<std::byte> part(std::min<std::uint64_t>(pages, kPagesAtOnce) * kPageBytes);
  std::uint64_t done = 0;
  std::size_t used = 0;
  for (const PageRange& range : snapshot.pages) {
    for (std::uint32_t page = range.first; page < range.end(); ++page) {
      fill(page, std::span(part).subspan(used, kPageBytes));
      used += kPageBytes;
      ++done;
      if (used < part.size() && done < pages) continue;
      HANGAR_TRY(frame.add(std::span(part).first(used), done == pages));
      used = 0;
    }
  }
  if (pages == 0) HANGAR_TRY(frame.add({}, true));

  if (bytes.size() + kDigestBytes > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::LimitExceeded, "the snapshot is larger than 4 GiB");
  }
  header.total_bytes = static_cast<std::uint32_t>(bytes.size() + kDigestBytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto checksum = bytes_of(Digest::of(bytes));
  append(bytes, std::span<const std::byte>(checksum));
  return bytes;
}

Result<SnapshotReader> SnapshotReader::open(std::vector<std::byte> bytes,
                                            const SnapshotExpectation& expectation) {
  Header header{};
  if (bytes.size() < sizeof header + kDigestBytes) return broken("it is too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return broken("it is none");
  if (header.version != kVersion) {
    return broken(fmt::format("it has version {} of the format, this hangar reads version {}",
                              header.version, kVersion));
  }
  if (header.total_bytes != bytes.size()) return broken("it has another size than it says");
  const auto content = std::span(bytes).first(bytes.size() - kDigestBytes);
  const auto checksum = std::span(bytes).last(kDigestBytes);
  if (!std::ranges::equal(bytes_of(Digest::of(content)), checksum)) {
    return broken("it fails its checksum");
  }

  if (header.module != bytes_of(expectation.module)) return broken("it is of another module");
  if (header.base_number != expectation.base_number) return broken("it is for another image");
  if (header.global_count != expectation.global_count) return broken("it has other globals");
  if (header.memory_bytes % kWasmPageBytes != 0 ||
      header.memory_bytes > expectation.memory_bytes_max) {
    return broken("its memory has a size that cannot be");
  }
  const std::uint64_t lists_bytes = std::uint64_t{header.global_count} * sizeof(GlobalValue) +
                                    std::uint64_t{header.range_count} * sizeof(PageRange);
  if (lists_bytes > content.size() - sizeof header) return broken("it is too short for its lists");

  Parts parts(content.subspan(sizeof header));
  Snapshot snapshot{.module = expectation.module,
                    .base_number = header.base_number,
                    .memory_bytes = header.memory_bytes,
                    .globals = parts.take<GlobalValue>(header.global_count),
                    .pages = parts.take<PageRange>(header.range_count)};
  HANGAR_TRY(check_pages(snapshot.pages, header));
  const std::size_t frame_offset = sizeof header + parts.position();
  return SnapshotReader(std::move(bytes), std::move(snapshot), frame_offset);
}

Result<> SnapshotReader::read_pages(const ApplyPage& apply) const {
  const Decompressors::Loan decompressor(decompressors());
  ZSTD_DCtx* const context = decompressor.get();
  if (context == nullptr) return fail(ErrorKind::Unavailable, "no memory to decompress with");
  ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
  const auto frame =
      std::span(bytes_).subspan(frame_offset_, bytes_.size() - kDigestBytes - frame_offset_);
  ZSTD_inBuffer in{.src = frame.data(), .size = frame.size(), .pos = 0};
  std::vector<std::byte> part(std::min<std::uint64_t>(page_count(snapshot_.pages), kPagesAtOnce) *
                              kPageBytes);
  std::size_t filled = 0;
  std::size_t taken = 0;
  std::size_t hint = 1;
  // Decompresses whole parts: afterwards `part` is full, or the frame is at its end.
  const auto refill = [&]() -> Result<> {
    ZSTD_outBuffer out{.dst = part.data(), .size = part.size(), .pos = 0};
    while (hint != 0 && out.pos < out.size) {
      const std::size_t before = out.pos + in.pos;
      hint = ZSTD_decompressStream(context, &out, &in);
      if (ZSTD_isError(hint) != 0) return broken(ZSTD_getErrorName(hint));
      if (hint != 0 && out.pos + in.pos == before) return broken("its pages end early");
    }
    filled = out.pos;
    taken = 0;
    return {};
  };
  for (const PageRange& range : snapshot_.pages) {
    for (std::uint32_t page = range.first; page < range.end(); ++page) {
      if (taken == filled) HANGAR_TRY(refill());
      if (filled - taken < kPageBytes) return broken("its pages end early");
      apply(page, std::span(part).subspan(taken, kPageBytes));
      taken += kPageBytes;
    }
  }
  if (taken == filled && hint != 0) {  // Reads the frame's end, which holds no page.
    std::byte extra{};
    ZSTD_outBuffer out{.dst = &extra, .size = 1, .pos = 0};
    while (hint != 0 && out.pos == 0) {
      const std::size_t before = in.pos;
      hint = ZSTD_decompressStream(context, &out, &in);
      if (ZSTD_isError(hint) != 0) return broken(ZSTD_getErrorName(hint));
      if (hint != 0 && in.pos == before) break;
    }
    if (out.pos != 0) return broken("it has more pages than it lists");
  }
  if (hint != 0 || taken != filled || in.pos != in.size) return broken("its pages do not end");
  return {};
}

void drop_snapshot_spares() {
  compressors().clear();
  decompressors().clear();
}

}  // namespace hangar::wasm
