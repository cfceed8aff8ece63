// Reads how much anonymous memory a process has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangar::guest {

// Anonymous and shared-memory pages, including swapped pages and page tables, from the text of
// /proc/PID/status. Zero if the text has none of these.
[[nodiscard]] std::uint64_t memory_in(std::string_view status);

// Opens /proc/PID/status to be read again and again. Negative, with errno, if that fails. Works
// also for a process that hides its memory.
[[nodiscard]] int open_status(pid_t pid);

// The clock of a process's processor time, while it exists or is not reaped.
class ProcessClock {
 public:
  ProcessClock() = default;
  explicit ProcessClock(pid_t pid);
  // True if the process has not run since the last call: it has no more memory than before. False
  // when that is not known.
  [[nodiscard]] bool stood_still();

 private:
  std::optional<clockid_t> clock_;
  std::int64_t nanoseconds_ = -1;
};

// From such a file; zero once the process has exited.
[[nodiscard]] std::uint64_t memory_of(int status_file);

}  // namespace hangar::guest
