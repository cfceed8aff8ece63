// Rewrites a module so that the host can read and restore the state of its instances, without
// running or compiling it.
//
// Between two calls, the state of an instance consists of its memory, its mutable globals, and its
// tables and dropped segments. The rewritten module exports the memory and the globals under
// reserved names. Its active data segments are removed, because the initial memory is an image of
// ours. Its start function becomes an export, so that an instance can be made again without running
// it. A module that changes its tables or drops segments has an obstacle: its instances cannot have
// snapshots.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {

// Names of the additional exports. No module of a published contract has a colon in a name.
inline constexpr std::string_view kReservedPrefix = "hangar:";
inline constexpr std::string_view kMemoryExport = "hangar:memory";
inline constexpr std::string_view kStartExport = "hangar:start";
// The name for the `index`th mutable global, in the module's order.
[[nodiscard]] std::string global_export(std::size_t index);

// Bytes that are in memory before any code has run.
struct DataPiece {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;  // A view into the module that was rewritten.
};

struct RewrittenModule {
  // Why instances cannot have snapshots: "writes to a table (table.set)". All other members are
  // then empty.
  std::optional<std::string> obstacle;
  std::vector<DataPiece> data;   // Ascending, not overlapping, all inside `memory_bytes_min`.
  std::size_t global_count = 0;  // Only mutable ones.
  bool has_memory = false;
  bool has_start = false;
  std::uint64_t memory_bytes_min = 0;
};

// Receives a rewritten module in pieces, most of which are views into the module that is rewritten.
using WriteModule = std::function<void(std::span<const std::byte>)>;

// `write` is not to throw. What it has received counts for nothing if there is an error or an
// obstacle in the end. The same module gives the same bytes. Errors as for read_module_header(). If
// a module is invalid in a way that only the compiler detects, the result is invalid, too, or has
// an obstacle. Work is bounded by the module's size, memory by its number of items. Any thread.
[[nodiscard]] Result<RewrittenModule> rewrite(std::span<const std::byte> module,
                                              const WriteModule& write);

// The same as one text; std::nullopt when there is an obstacle: hosts then compile the module as it
// is.
[[nodiscard]] Result<std::optional<std::string>> rewritten_form(std::string_view module);

}  // namespace hangar::wasm
