#include "budget/container_memory.h"

#include "base/limits.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace hangar::budget {

namespace fs = std::filesystem;

namespace {

// The host takes 22 MiB idle, and several times that with caches of a busy cluster, fetched modules
// (each twice) and answers under way. It keeps a quarter of the memory, within these bounds.
constexpr std::uint64_t kHostBytesMin = 64 * limits::kMiB;
constexpr std::uint64_t kHostBytesMax = 1024 * limits::kMiB;
// Enough for one small guest on the smallest machine.
constexpr std::uint64_t kGuestBytesMin = 32 * limits::kMiB;
// Version 1 has no value for "no limit": it shows the greatest multiple of the page size.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string text;
  if (!(stream >> text)) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;  // "max".
  return value >= kNoLimit ? std::nullopt : std::optional(value);
}

// The least limit of the cgroup `path`, of its ancestors, and of the root. The root is the
// container's own cgroup if the container sees no other.
std::optional<std::uint64_t> least_above(const fs::path& mount, std::string_view path,
                                         std::string_view file) {
  std::optional<std::uint64_t> least = number_in(mount / file);
  fs::path below = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") break;  // Outside of what the container sees.
    below /= part;
    const std::optional<std::uint64_t> value = number_in(below / file);
    if (value && (!least || *value < *least)) least = value;
  }
  return least;
}

bool has_controller(std::string_view controllers, std::string_view name) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == name) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::optional<std::uint64_t> container_memory_max(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::optional<std::uint64_t> least;
  const auto consider = [&least](std::optional<std::uint64_t> value) {
    if (value && (!least || *value < *least)) least = value;
  };
  // "0::/kubepods/pod1" of version 2, "4:memory:/kubepods/pod1" of version 1; there may be both.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::string_view text(line);
    const std::size_t first = text.find(':');
    const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = text.substr(first + 1, second - first - 1);
    const std::string_view path = text.substr(second + 1);
    if (controllers.empty()) consider(least_above(mount, path, "memory.max"));
    if (has_controller(controllers, "memory")) {
      consider(least_above(mount / "memory", path, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::optional<std::uint64_t> machine_memory(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemTotal:") return kibibytes * limits::kKiB;
  }
  return std::nullopt;
}

namespace {

// Of this process; the largest number where nothing can be read.
std::uint64_t memory_max(const fs::path& root) {
  const std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  return std::min(container_memory_max(root).value_or(none), machine_memory(root).value_or(none));
}

}  // namespace

std::uint64_t host_memory_max(const fs::path& root) {
  return std::clamp(memory_max(root) / 4, kHostBytesMin, kHostBytesMax);
}

std::uint64_t guest_memory_max(const fs::path& root) {
  const std::uint64_t all = memory_max(root);
  return std::max(all - std::min(all, host_memory_max(root)), kGuestBytesMin);
}

}  // namespace hangar::budget
