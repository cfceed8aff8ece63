// Questions about a module to wasmparser (third_party/wasmparser), and its answers. All reading,
// rewriting and linking of modules goes through here.
#pragma once

#include "base/destroyed_by.h"
#include "base/invalid.h"
#include "base/result.h"
#include "wasm/limits.h"

#include <hangar_wasmparser.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hangar::wasm::internal {

using ModuleAnswer = std::unique_ptr<const hangar_wasm_answer, DestroyedBy<hangar_wasm_free>>;

inline constexpr hangar_wasm_bounds kBounds = {.items = limits::kModuleItemsMax,
                                               .functions = limits::kModuleFunctionsMax,
                                               .name_bytes = limits::kModuleNameBytesMax,
                                               .data_segments = limits::kModuleDataSegmentsMax,
                                               .image_bytes = limits::kImageBytesMax};

[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
[[nodiscard]] inline std::string_view text_of(const hangar_wasm_text& text) {
  return {reinterpret_cast<const char*>(text.data), text.size};
}
[[nodiscard]] inline std::span<const std::byte> bytes_of(const hangar_wasm_text& text) {
  return std::as_bytes(std::span(text.data, text.size));
}
[[nodiscard]] inline const std::uint8_t* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// A hangar_wasm_write that appends to a std::string.
inline void append(void* to, const std::uint8_t* data, std::size_t size) noexcept {
  static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(data), size);
}

// Returns the answer, or its error: InvalidInput or LimitExceeded.
[[nodiscard]] inline Result<ModuleAnswer> checked(const hangar_wasm_answer* given) {
  ModuleAnswer answer(given);
  switch (answer->status) {
    case HANGAR_WASM_INVALID:
      return invalid(std::string(text_of(answer->message)));
    case HANGAR_WASM_LIMIT:
      return fail(ErrorKind::LimitExceeded, std::string(text_of(answer->message)));
    default:
      return answer;
  }
}

}  // namespace hangar::wasm::internal
