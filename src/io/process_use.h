// Processor time and resident memory of this process with its descendants, for reports.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <string>

namespace hangar::io {

// Field `index` of a line of /proc/PID/stat, from 1 as proc(5) counts. Only fields from the third
// on, since the second may contain spaces. Zero if the field is missing or not a number.
[[nodiscard]] std::int64_t stat_field(const std::string& stat, int index);

// Processor time of this process, without its children.
[[nodiscard]] Duration process_cpu_time();

struct ProcessUse {
  Duration cpu{};  // Includes processes that have exited.
  // All resident pages of this process, and those pages of its descendants that no other process
  // shares: a forked process shares most of its file pages with its parent.
  std::uint64_t resident_bytes = 0;
};

// Reads /proc; blocks for about a millisecond. A process that exits meanwhile may be missing from
// the result. Any thread.
[[nodiscard]] ProcessUse process_use();

}  // namespace hangar::io
