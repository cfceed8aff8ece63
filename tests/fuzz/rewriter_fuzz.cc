// Bytes that claim to be a WebAssembly module, about to be rewritten so that its instances
// can sleep.

#include "base/assert.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/rewrite.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hangar::wasm;  // NOLINT(google-build-using-namespace): one function.
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto header = read_module_header(bytes);
  std::vector<std::byte> written;
  const auto module = rewrite(bytes, [&written](std::span<const std::byte> piece) {
    written.insert(written.end(), piece.begin(), piece.end());
  });
  HANGAR_ASSERT(header.has_value() == module.has_value(), "what is refused is refused before");
  if (!module) {
    HANGAR_ASSERT(!module.error().message().empty(), "a refusal has a reason");
    return 0;
  }
  if (module->obstacle) {
    HANGAR_ASSERT(module->data.empty(), "an obstacle is all there is");
    return 0;
  }
  const auto rewritten = read_module_header(written);
  HANGAR_ASSERT(rewritten.has_value(), "what is made of a module is one");
  HANGAR_ASSERT(!rewritten->has_start, "nothing runs by itself");
  HANGAR_ASSERT(rewritten->imports == header->imports, "imports stay");
  HANGAR_ASSERT(rewritten->memory_bytes_min == header->memory_bytes_min, "the memory stays");
  HANGAR_ASSERT(rewritten->exports.size() == header->exports.size() + module->global_count +
                                                 (module->has_memory ? 1 : 0) +
                                                 (module->has_start ? 1 : 0),
                "exports are added");
  std::uint64_t end = 0;
  for (const DataPiece& piece : module->data) {
    HANGAR_ASSERT(piece.address >= end && !piece.bytes.empty(), "ascending and apart");
    end = piece.address + piece.bytes.size();
    HANGAR_ASSERT(end <= module->memory_bytes_min, "inside the memory");
    HANGAR_ASSERT(piece.bytes.data() >= bytes.data() &&
                      piece.bytes.data() + piece.bytes.size() <= bytes.data() + bytes.size(),
                  "inside the module");
  }
  const auto again = rewrite(written, [](auto) {});
  HANGAR_ASSERT(again.has_value(), "what is made can be read again");
  return 0;
}
