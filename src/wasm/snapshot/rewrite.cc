#include "wasm/snapshot/rewrite.h"

#include "base/result.h"
#include "wasm/internal/module_answer.h"
#include "wasm/module_preamble.h"

#include <fmt/format.h>
#include <hangar_wasmparser.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace hangar::wasm {

std::string global_export(std::size_t index) {
  return fmt::format("{}global:{}", kReservedPrefix, index);
}

Result<RewrittenModule> rewrite(std::span<const std::byte> module) {
  HANGAR_TRY(check_size_and_preamble(module));
  std::string bytes;
  // Room for the additional exports, so that the module is not copied once more.
  bytes.reserve(module.size() + 4096);
  const internal::ModuleAnswer answer = HANGAR_TRY(internal::checked(hangar_wasm_rewrite(
      internal::data_of(module), module.size(), &internal::kBounds, internal::append, &bytes)));
  RewrittenModule result;
  if (answer->status == HANGAR_WASM_OBSTACLE) {
    result.obstacle = std::string(internal::text_of(answer->message));
    return result;
  }
  if (bytes.size() > limits::kModuleBytesMax) {
    result.obstacle = "is too large to be rewritten";
    return result;
  }
  result.bytes = std::move(bytes);
  result.data.reserve(answer->piece_count);
  for (const auto& piece : std::span(answer->pieces, answer->piece_count)) {
    result.data.push_back({.address = piece.address, .bytes = internal::bytes_of(piece.bytes)});
  }
  result.global_count = answer->global_count;
  result.has_memory = answer->has_memory;
  result.has_start = answer->has_start;
  result.memory_bytes_min = answer->memory_bytes;
  return result;
}

}  // namespace hangar::wasm
