// How much memory the system allows this process.
#pragma once

#include "budget/accounts.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hangar::budget {

// The least limit of this process's cgroup and of its ancestors, of version 2 or 1. std::nullopt:
// no limit is visible. `root` contains proc and sys. Blocks, like all functions of this header.
[[nodiscard]] std::optional<std::uint64_t> container_memory_max(
    const std::filesystem::path& root = "/");

// The machine's memory; std::nullopt if it cannot be read.
[[nodiscard]] std::optional<std::uint64_t> machine_memory(const std::filesystem::path& root = "/");

// The part for the host itself (caches, connections, responses in flight, modules being fetched) of
// the lesser of both.
[[nodiscard]] std::uint64_t host_memory_max(const std::filesystem::path& root = "/");

// The default bound for all guests together: the rest.
[[nodiscard]] std::uint64_t guest_memory_max(const std::filesystem::path& root = "/");

// Limits, from the host's own part, for the answers that wait to be read by guests.
[[nodiscard]] Accounts::Limits answer_memory_limits();
// The same for the objects in the cache that tenants decide on: what guests watch, and the
// definitions and children that the host watches for itself.
[[nodiscard]] Accounts::Limits cache_memory_limits();

}  // namespace hangar::budget
