// Makes the state of a module's instances reachable from outside, without running or compiling it.
//
// What is left of an instance between two calls is its memory, its mutable globals, and its tables
// and dropped segments. The rewritten module exports the first two under reserved names. Its active
// data segments are taken out, so that the memory's first content is an image of ours, and its
// start function is an export, so that an instance can be made again without it. A module that
// changes the rest has an obstacle: its instances cannot be snapshots.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {

// Names of what is exported in addition. No module of a published contract has a colon in a name.
inline constexpr std::string_view kReservedPrefix = "hangar:";
inline constexpr std::string_view kMemoryExport = "hangar:memory";
inline constexpr std::string_view kStartExport = "hangar:start";
// The `index`th mutable global, in the module's order.
[[nodiscard]] std::string global_export(std::size_t index);

// Bytes that lie in memory before anything has run.
struct DataPiece {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;  // Into the module that was rewritten.
};

struct RewrittenModule {
  // Why instances cannot be snapshots: "writes to a table (table.set)". All else is empty then.
  std::optional<std::string> obstacle;
  std::string bytes;
  std::vector<DataPiece> data;   // Ascending, not overlapping, all inside `memory_bytes_min`.
  std::size_t global_count = 0;  // Mutable ones.
  bool has_memory = false;
  bool has_start = false;
  std::uint64_t memory_bytes_min = 0;
};

// Errors as read_module_header(). A module that is not valid in a way that only the compiler sees
// is rewritten into one that is not valid either, or has an obstacle. Work and memory are bounded
// by the module's size. Any thread.
[[nodiscard]] Result<RewrittenModule> rewrite(std::span<const std::byte> module);

}  // namespace hangar::wasm
