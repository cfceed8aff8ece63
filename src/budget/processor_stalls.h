// Measures whether tasks of this machine or container wait for processors.
#pragma once

#include "base/time.h"
#include "budget/stalls.h"

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
  // Of the machine, and of this process's cgroup: the kernel counts time that a limit of the cgroup
  // takes there only.
  StallFiles files_;
  std::optional<Stall> last_of_machine_;
  std::optional<Stall> last_of_cgroup_;
  Instant looked_;
};

}  // namespace hangar::budget
