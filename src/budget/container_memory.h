// What the system lets this process have of memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hangar::budget {

// The least limit of its cgroup and of those above it, of version 2 or 1. Nothing: there is none
// that can be seen. Below `root` lie proc and sys. Blocking, like all of this header.
[[nodiscard]] std::optional<std::uint64_t> container_memory_max(
    const std::filesystem::path& root = "/");

// Of the machine; nothing where it cannot be read.
[[nodiscard]] std::optional<std::uint64_t> machine_memory(const std::filesystem::path& root = "/");

// What guests may have together when no setting says it: of the less of both, a part for the host
// itself (caches, connections, modules that are fetched) is left out.
[[nodiscard]] std::uint64_t guest_memory_max(const std::filesystem::path& root = "/");

}  // namespace hangar::budget
