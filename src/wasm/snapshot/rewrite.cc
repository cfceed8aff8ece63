#include "wasm/snapshot/rewrite.h"

#include "base/result.h"
#include "wasm/internal/module_answer.h"
#include "wasm/module_preamble.h"

#include <fmt/format.h>
#include <hangar_wasmparser.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::wasm {

std::string global_export(std::size_t index) {
  return fmt::format("{}global:{}", kReservedPrefix, index);
}

namespace {

struct Output {
  const WriteModule& write;
  std::uint64_t size_bytes = 0;
};

// A hangar_wasm_write to an Output.
void write_piece(void* to, const std::uint8_t* data, std::size_t size) noexcept {
  auto& output = *static_cast<Output*>(to);
  output.size_bytes += size;
  output.write(std::as_bytes(std::span(data, size)));
}

}  // namespace

Result<RewrittenModule> rewrite(std::span<const std::byte> module, const WriteModule& write) {
  HANGAR_TRY(check_size_and_preamble(module));
  Output output{.write = write};
  const internal::ModuleAnswer answer = HANGAR_TRY(internal::checked(hangar_wasm_rewrite(
      internal::data_of(module), module.size(), &internal::kBounds, write_piece, &output)));
  RewrittenModule result;
  if (answer->status == HANGAR_WASM_OBSTACLE) {
    result.obstacle = std::string(internal::text_of(answer->message));
    return result;
  }
  if (output.size_bytes > limits::kModuleBytesMax) {
    result.obstacle = "is too large to be rewritten";
    return result;
  }
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

Result<std::optional<std::string>> rewritten_form(std::string_view module) {
  std::string form;
  const RewrittenModule rewritten = HANGAR_TRY(
      rewrite(std::as_bytes(std::span(module)), [&form](std::span<const std::byte> piece) {
        form.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      }));
  if (rewritten.obstacle) return std::nullopt;
  return form;
}

}  // namespace hangar::wasm
