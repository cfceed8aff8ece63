#include "budget/internal/cgroup.h"

#include "base/number.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::budget {

namespace {

// Version 1 has no value for "no limit": it shows the greatest multiple of the page size.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

bool has_controller(std::string_view controllers, std::string_view name) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == name) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::vector<MemoryCgroup> memory_cgroups(const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  std::vector<MemoryCgroup> found;
  // "0::/kubepods/pod1" of version 2, "4:memory:/kubepods/pod1" of version 1.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::string_view text(line);
    const std::size_t first = text.find(':');
    const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = text.substr(first + 1, second - first - 1);
    std::string path(text.substr(second + 1));
    if (controllers.empty()) {
      found.push_back({.mount = mount, .path = std::move(path), .is_version_2 = true});
    } else if (has_controller(controllers, "memory")) {
      found.push_back({.mount = mount / "memory", .path = std::move(path), .is_version_2 = false});
    }
  }
  return found;
}

std::filesystem::path visible_directory(std::filesystem::path mount, std::string_view path) {
  std::error_code ignored;
  for (const std::filesystem::path& part : std::filesystem::path(path).relative_path()) {
    if (part == ".." || !std::filesystem::is_directory(mount / part, ignored)) break;
    mount /= part;
  }
  return mount;
}

std::optional<std::filesystem::path> version_2_directory(const std::filesystem::path& root) {
  std::error_code ignored;
  for (const MemoryCgroup& group : memory_cgroups(root)) {
    if (!group.is_version_2) continue;
    // systemd mounts it here where version 1 has the controllers.
    const std::filesystem::path beside = group.mount / "unified";
    const bool is_beside = std::filesystem::is_directory(beside, ignored) &&
                           !std::filesystem::exists(group.mount / "cgroup.controllers", ignored);
    return visible_directory(is_beside ? beside : group.mount, group.path);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> cgroup_number(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string text;
  if (!(stream >> text)) return std::nullopt;
  const auto value = parse_number<std::uint64_t>(text);
  if (!value || *value >= kNoLimit) return std::nullopt;  // Also for "max".
  return value;
}

}  // namespace hangar::budget
