// The cgroups of this process, as /proc and /sys show them. Blocks, but not on a disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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

// The deepest directory of a cgroup's path that this process can see.
[[nodiscard]] std::filesystem::path visible_directory(std::filesystem::path mount,
                                                      std::string_view path);

// The directory of this process's cgroup of version 2, which may be mounted beside those of version
// 1. std::nullopt: none is mounted.
[[nodiscard]] std::optional<std::filesystem::path> version_2_directory(
    const std::filesystem::path& root);

// The number in a file of a cgroup. std::nullopt: the file does not exist, or says that there is
// no limit.
[[nodiscard]] std::optional<std::uint64_t> cgroup_number(const std::filesystem::path& file);

}  // namespace hangar::budget
