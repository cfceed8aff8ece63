// Reads how much anonymous memory a process has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace hangar::guest {

// Anonymous and shared-memory pages, including swapped pages and page tables, from the text of
// /proc/PID/status. Zero if the text has none of these.
[[nodiscard]] std::uint64_t memory_in(std::string_view status);

// Works also for a process that hides its memory. Zero when there is no process with that id.
[[nodiscard]] std::uint64_t memory_of(pid_t pid);

}  // namespace hangar::guest
