// How short memory is: what the kernel says of this process's cgroup (version 2 or 1) and of the
// machine, and what should be given back before the kernel takes it.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace hangar::budget {

// PSI: for how long tasks have waited for memory since the system started.
struct MemoryStall {
  Duration some{};  // At least one of them,
  Duration full{};  // or all of them at the same time.

  friend bool operator==(const MemoryStall&, const MemoryStall&) = default;
};
// Of the text of /proc/pressure/memory or memory.pressure; nothing: it is something else.
[[nodiscard]] std::optional<MemoryStall> parse_memory_stall(std::string_view text);

struct MemoryReading {
  // In use in the cgroup, without files that the kernel can drop at once. Nothing: no cgroup can be
  // read.
  std::optional<std::uint64_t> used_bytes;
  // Where the kernel begins to take memory: the least of memory.high and memory.max, or
  // memory.limit_in_bytes. Nothing: no limit.
  std::optional<std::uint64_t> limit_bytes;
  // Of the cgroup if it can be read (version 2), else of the machine. Nothing: no PSI.
  std::optional<MemoryStall> stall;
};

// Reads the files of one process. Any thread.
class MemoryGauge {
 public:
  // Finds the cgroup of this process. `root` contains proc and sys.
  explicit MemoryGauge(const std::filesystem::path& root = "/");

  // Blocks, but on no disk. What can't be read is missing.
  [[nodiscard]] MemoryReading read() const;

 private:
  std::filesystem::path machine_stall_;
  std::filesystem::path directory_;  // Of the cgroup; empty: none.
  bool is_version_2_ = false;
};

// Decides how much memory to give back. No I/O.
class PressureGuard {
 public:
  struct Advice {
    // Of guests that are idle.
    std::uint64_t give_back_bytes = 0;
    // Of images, code and snapshots that no guest in memory uses.
    bool drop_page_cache = false;
    // Nothing should be loaded that is not needed now.
    bool is_pressed = false;

    friend bool operator==(const Advice&, const Advice&) = default;
  };
  // To be called about once a second. `guest_bytes`: of guests in memory.
  [[nodiscard]] Advice on_reading(const MemoryReading& reading, std::uint64_t guest_bytes,
                                  Instant now);

 private:
  [[nodiscard]] bool is_stalled(const MemoryReading& reading, Instant now);

  std::optional<MemoryStall> last_stall_;
  Instant last_read_;
  std::optional<Instant> pressed_;  // When it was last pressed.
  std::optional<Instant> dropped_;  // When the page cache was last dropped.
  std::uint32_t stalls_ = 0;        // Readings in a row with stalls, up to a bound.
};

}  // namespace hangar::budget
