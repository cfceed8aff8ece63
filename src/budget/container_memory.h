// How much memory the system allows this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hangar::budget {

// The least limit of its cgroup and of those above it, of version 2 or 1. None: no limit is
// visible. `root` contains proc and sys. Blocks, like all of this header.
[[nodiscard]] std::optional<std::uint64_t> container_memory_max(
    const std::filesystem::path& root = "/");

// The machine's memory; none if it cannot be read.
[[nodiscard]] std::optional<std::uint64_t> machine_memory(const std::filesystem::path& root = "/");

// The share of the host itself (caches, connections, answers under way, modules being fetched) of
// the lesser of both.
[[nodiscard]] std::uint64_t host_memory_max(const std::filesystem::path& root = "/");

// What guests may have together when no setting says it: the rest.
[[nodiscard]] std::uint64_t guest_memory_max(const std::filesystem::path& root = "/");

}  // namespace hangar::budget
