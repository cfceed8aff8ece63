#include "budget/container_memory.h"

#include "base/limits.h"
#include "budget/accounts.h"
#include "budget/internal/cgroup.h"

#include <algorithm>
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
// (each twice) and responses in flight. It keeps a quarter of the memory, within these bounds.
constexpr std::uint64_t kHostBytesMin = 64 * limits::kMiB;
constexpr std::uint64_t kHostBytesMax = 1024 * limits::kMiB;
// Enough for one small guest on the smallest machine.
constexpr std::uint64_t kGuestBytesMin = 32 * limits::kMiB;

// Assured to each namespace: enough for the answers of modest guests, however much other
// namespaces hold.
constexpr std::uint64_t kTenantAssured = limits::kMiB;

// The least limit of the cgroup `path`, of its ancestors, and of the root. The root is the
// container's own cgroup if the container sees no other.
std::optional<std::uint64_t> least_above(const fs::path& mount, std::string_view path,
                                         std::string_view file) {
  std::optional<std::uint64_t> least = cgroup_number(mount / file);
  fs::path below = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") break;  // Outside of what the container sees.
    below /= part;
    const std::optional<std::uint64_t> value = cgroup_number(below / file);
    if (value && (!least || *value < *least)) least = value;
  }
  return least;
}

}  // namespace

std::optional<std::uint64_t> container_memory_max(const fs::path& root) {
  std::optional<std::uint64_t> least;
  for (const MemoryCgroup& group : memory_cgroups(root)) {
    const std::optional<std::uint64_t> value = least_above(
        group.mount, group.path, group.is_version_2 ? "memory.max" : "memory.limit_in_bytes");
    if (value && (!least || *value < *least)) least = value;
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

// The memory that this process may use; the largest number if nothing can be read.
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

Accounts::Limits answer_memory_limits() {
  // Answers and cached objects get three eighths of the host's share each; the rest is for its own
  // work. Two namespaces fill it, one does not.
  const std::uint64_t own = host_memory_max();
  return {.host_bytes_max = 3 * own / 8,
          .tenant_bytes_max = own / 4,
          .tenant_bytes_assured = kTenantAssured};
}

Accounts::Limits cache_memory_limits() {
  return answer_memory_limits();
}

}  // namespace hangar::budget
