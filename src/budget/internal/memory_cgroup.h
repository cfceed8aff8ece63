// The memory cgroups of this process, as /proc and /sys show them. Blocks, but not on a disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hangar::budget {

struct MemoryCgroup {
  std::filesystem::path mount;
  std::string path;  // Below the mount. The container may be unable to see it.
  bool is_version_2 = false;
};

// The cgroups of version 1 and 2, in the order in which the kernel lists them; a process may have
// both. `root` contains proc and sys.
[[nodiscard]] std::vector<MemoryCgroup> memory_cgroups(const std::filesystem::path& root);

// The number in a file of a cgroup. std::nullopt: the file does not exist, or says that there is
// no limit.
[[nodiscard]] std::optional<std::uint64_t> cgroup_number(const std::filesystem::path& file);

}  // namespace hangar::budget
