// A snapshot as it may come back from a disk. The fuzzer corrects the checksum, so that the input
// reaches the code behind it: zstd and the lists have to be safe by themselves.

#include "base/assert.h"
#include "wasm/digest.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshot.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hangar::wasm;           // NOLINT(google-build-using-namespace): one function.
  constexpr std::size_t kHeadBytes = 48;  // Magic, version, size and module: corrected, too.
  constexpr std::size_t kDigestBytes = 32;
  constexpr std::uint64_t kMemoryBytesMax = 1 << 24;
  static const Digest module = Digest::of("module");

  std::vector<std::byte> bytes(kHeadBytes);
  std::memcpy(bytes.data(), "hangarsn", 8);
  const std::array<std::uint32_t, 2> numbers = {
      1, static_cast<std::uint32_t>(kHeadBytes + size + kDigestBytes)};
  std::memcpy(bytes.data() + 8, numbers.data(), sizeof numbers);
  std::ranges::copy(module.bytes(), bytes.begin() + 16);
  const auto rest = std::as_bytes(std::span(data, size));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  const Digest checksum = Digest::of(bytes);
  bytes.insert(bytes.end(), checksum.bytes().begin(), checksum.bytes().end());

  // The image's number and the number of globals come from the input.
  SnapshotExpectation expected{.module = module, .memory_bytes_max = kMemoryBytesMax};
  if (size >= 20) {
    std::uint32_t globals = 0;
    std::memcpy(&expected.base_number, data, sizeof expected.base_number);
    std::memcpy(&globals, data + 16, sizeof globals);
    expected.global_count = globals;
  }
  const auto reader = SnapshotReader::open(std::move(bytes), expected);
  if (!reader) {
    HANGAR_ASSERT(!reader.error().message().empty(), "a refusal has a reason");
    return 0;
  }
  const Snapshot& snapshot = reader->snapshot();
  HANGAR_ASSERT(snapshot.memory_bytes <= kMemoryBytesMax, "bounded");
  std::uint64_t pages = 0;
  const auto read =
      reader->read_pages([&](std::uint32_t page, std::span<const std::byte> difference) {
        HANGAR_ASSERT(difference.size() == kPageBytes, "whole pages");
        HANGAR_ASSERT((page + std::uint64_t{1}) * kPageBytes <= snapshot.memory_bytes, "inside");
        ++pages;
      });
  if (read) HANGAR_ASSERT(pages == page_count(snapshot.pages), "all of them");
  return 0;
}
