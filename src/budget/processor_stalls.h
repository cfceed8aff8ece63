// Measures whether tasks of this machine or container wait for processors.
#pragma once

#include "base/time.h"
#include "budget/memory_pressure.h"

#include <array>
#include <filesystem>
#include <optional>

namespace hangar::budget {

// One thread.
class ProcessorStalls {
 public:
  // `root` contains proc and sys.
  explicit ProcessorStalls(const std::filesystem::path& root = "/");

  // Whether tasks have waited for a considerable part of the time since the last call.
  // std::nullopt: unknown, as at the first call and where the kernel has no PSI. Blocks, but not on
  // a disk.
  [[nodiscard]] std::optional<bool> are_processors_short(Instant now);

 private:
  struct Source {
    std::filesystem::path file;
    std::optional<MemoryStall> last = {};
  };

  // Of the machine, and of the container if it has a limit of its own: the kernel counts time that
  // such a limit takes there only.
  std::array<Source, 2> sources_;
  Instant looked_;
};

}  // namespace hangar::budget
