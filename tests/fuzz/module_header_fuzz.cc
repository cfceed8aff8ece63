// Bytes that claim to be a WebAssembly module: the first code in host and compiler that reads them.

#include "base/assert.h"
#include "wasm/limits.h"
#include "wasm/module_header.h"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto header = hangar::wasm::read_module_header(bytes);
  if (!header) {
    HANGAR_ASSERT(!header.error().message().empty(), "a refusal has a reason");
    return 0;
  }
  HANGAR_ASSERT(header->imports.size() <= hangar::limits::kModuleItemsMax, "bounded");
  HANGAR_ASSERT(header->exports.size() <= hangar::limits::kModuleItemsMax, "bounded");
  HANGAR_ASSERT(header->function_count <= size, "each function takes a byte");
  for (const hangar::wasm::CustomSection& section : header->custom_sections) {
    HANGAR_ASSERT(section.bytes.data() >= bytes.data() &&
                      section.bytes.data() + section.bytes.size() <= bytes.data() + bytes.size(),
                  "sections lie in the module");
  }
  return 0;
}
