// Measures memory pressure on this process's cgroup (version 2 or 1) and on the machine, and
// decides what to release before the kernel reclaims it.
#pragma once

#include "base/time.h"
#include "budget/stalls.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hangar::budget {

struct MemoryReading {
  // Memory in use in the cgroup, without files that the kernel can drop at once. std::nullopt: no
  // cgroup can be read.
  std::optional<std::uint64_t> used_bytes;
  // Where the kernel starts to reclaim memory: the lesser of memory.high and memory.max, or
  // memory.limit_in_bytes. std::nullopt: no limit.
  std::optional<std::uint64_t> limit_bytes;
  // Of the cgroup if it can be read (version 2), else of the machine. std::nullopt: no PSI.
  std::optional<Stall> stall;
};

// Reads the files that concern this process. Any thread.
class MemoryGauge {
 public:
  // Finds the cgroup of this process. `root` contains proc and sys.
  explicit MemoryGauge(const std::filesystem::path& root = "/");

  // Blocks, but not on a disk. Values that cannot be read are missing.
  [[nodiscard]] MemoryReading read() const;

 private:
  StallFiles stalls_;
  std::filesystem::path directory_;  // Directory of the cgroup; empty: none.
  bool is_version_2_ = false;
};

// Decides how much memory to release. No I/O.
class PressureGuard {
 public:
  struct Advice {
    // How much memory of idle guests to release.
    std::uint64_t give_back_bytes = 0;
    // Drop the page cache of images, code and snapshots that no guest in memory uses.
    bool drop_page_cache = false;
    // Load nothing ahead of its use.
    bool is_pressed = false;
    // Memory is short at this moment: keep nothing only because it may be useful.
    bool is_short = false;

    friend bool operator==(const Advice&, const Advice&) = default;
  };
  // Call it about once a second. `guest_bytes`: the memory of all guests that are not suspended.
  [[nodiscard]] Advice on_reading(const MemoryReading& reading, std::uint64_t guest_bytes,
                                  Instant now);

 private:
  [[nodiscard]] bool is_stalled(const MemoryReading& reading, Instant now);

  std::optional<Stall> last_stall_;
  Instant last_read_;
  std::optional<Instant> pressed_;  // When the last sign of pressure was seen.
  std::optional<Instant> dropped_;  // When the page cache was last dropped.
  std::uint32_t stalls_ = 0;        // Consecutive readings with stalls, up to a bound.
};

}  // namespace hangar::budget
