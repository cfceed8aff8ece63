// How much memory of its own a process has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace hangar::guest {

// Pages that are no file's, those that were swapped out and tables of pages included, as
// /proc/PID/status has them. Zero where it does not say.
[[nodiscard]] std::uint64_t memory_in(std::string_view status);

// Of a process that hides its memory, too. Zero when there is none of that id.
[[nodiscard]] std::uint64_t memory_of(pid_t pid);

}  // namespace hangar::guest
