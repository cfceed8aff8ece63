// Two files that claim to be a module and its plugin, about to be linked to one module. The first
// two bytes are the size of the module.

#include "base/assert.h"
#include "wasm/module_header.h"
#include "wasm/plugin.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hangar::wasm;  // NOLINT(google-build-using-namespace): one function.
  if (size < 2) return 0;
  const std::size_t module_size =
      std::min<std::size_t>(data[0] + std::size_t{256} * data[1], size - 2);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const auto module = bytes.first(module_size);
  const auto plugin = bytes.subspan(module_size);

  const auto linked = link_plugin(module, plugin);
  if (linked) {
    const auto header = read_module_header(std::as_bytes(std::span(*linked)));
    HANGAR_ASSERT(header.has_value(), "what is made of two modules is one");
    const auto of_plugin = read_module_header(plugin);
    HANGAR_ASSERT(header->imports == of_plugin->imports, "the plugin's imports stay");
    HANGAR_ASSERT(header->memory_bytes_min == of_plugin->memory_bytes_min, "the memory stays");
  } else {
    HANGAR_ASSERT(!linked.error().message().empty(), "a refusal has a reason");
  }

  const auto carrying = carry_plugin(module, plugin);
  HANGAR_ASSERT(carrying || !linked, "what can be linked can be carried");
  if (!carrying) return 0;
  const auto header = read_module_header(std::as_bytes(std::span(*carrying)));
  HANGAR_ASSERT(header.has_value(), "a module that carries another is one");
  HANGAR_ASSERT(carried_plugin(*header).has_value(), "the plugin is found");
  HANGAR_ASSERT(!missing_plugin(*header), "and not missing");
  return 0;
}
