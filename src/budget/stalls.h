// For how long tasks have waited for a resource, as the kernel's PSI tells it.
#pragma once

#include "base/time.h"

#include <filesystem>
#include <optional>
#include <string_view>

namespace hangar::budget {

// Since the system or the cgroup was started.
struct Stall {
  Duration some{};  // At least one task waited,
  Duration full{};  // or all of them at the same time.

  friend bool operator==(const Stall&, const Stall&) = default;
};
// Parses the text of /proc/pressure/memory or cpu.pressure; std::nullopt for any other text.
[[nodiscard]] std::optional<Stall> parse_stall(std::string_view text);

// The two files about one resource. Any thread.
class StallFiles {
 public:
  // `resource`: "memory" or "cpu". Finds the cgroup of this process; `root` contains proc and sys.
  StallFiles(std::string_view resource, const std::filesystem::path& root);

  // Both block, but not on a disk. std::nullopt: the kernel does not tell.
  [[nodiscard]] std::optional<Stall> of_machine() const;
  // Of the tasks in this process's cgroup. Version 1 has no such file, but version 2 may be mounted
  // beside it.
  [[nodiscard]] std::optional<Stall> of_cgroup() const;

 private:
  std::filesystem::path machine_;
  std::filesystem::path cgroup_;  // Empty: none.
};

}  // namespace hangar::budget
