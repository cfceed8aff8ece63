// A function's name as a stranger's module has it: the readable form is bounded, has no control
// character that the name does not have, and changes only names of a known form.
#include "base/assert.h"
#include "base/text.h"
#include "wasm/internal/function_names.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  const std::string readable = hangar::wasm::internal::readable_name(name);

  // "N" and a letter, and later "0", become "::{closure}".
  HANGAR_ASSERT(readable.size() <= 4 * size, "a longer name is bounded by the name in the module");
  HANGAR_ASSERT(!hangar::has_control_character(readable) || hangar::has_control_character(name),
                "an escape became a control character");
  const bool is_known_form = name.starts_with("_Z") || name.starts_with("_R") ||
                             name.contains(".__") || name.contains("_go.shape.");
  HANGAR_ASSERT(is_known_form || name.starts_with(readable), "changed a name of another form");
  return 0;
}
