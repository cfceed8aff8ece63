// Reads how much anonymous memory a process has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace hangar::guest {

// Anonymous and shared-memory pages, swapped ones and page tables included, as /proc/PID/status
// gives them. Zero where it does not.
[[nodiscard]] std::uint64_t memory_in(std::string_view status);

// Also of a process that hides its memory. Zero when there is no process with that id.
[[nodiscard]] std::uint64_t memory_of(pid_t pid);

}  // namespace hangar::guest
