#include "guest/process_memory.h"

#include "base/limits.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::guest {

std::uint64_t memory_in(std::string_view status) {
  std::uint64_t kibibytes = 0;
  while (!status.empty()) {
    const std::size_t end = std::min(status.find('\n'), status.size());
    std::string_view line = status.substr(0, end);
    status.remove_prefix(std::min(end + 1, status.size()));
    for (const std::string_view name : {"RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:"}) {
      if (!line.starts_with(name)) continue;
      line.remove_prefix(name.size());
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      std::uint64_t number = 0;
      std::from_chars(line.data(), line.data() + line.size(), number);
      kibibytes += number;
      break;
    }
  }
  return kibibytes * limits::kKiB;
}

int open_status(pid_t pid) {
  // Not by fmt: under UBSan it opens descriptors, and the process may have none left.
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

ProcessClock::ProcessClock(pid_t pid) {
  clockid_t clock{};
  if (::clock_getcpuclockid(pid, &clock) == 0) clock_ = clock;
}

bool ProcessClock::stood_still() {
  timespec now{};
  if (!clock_ || ::clock_gettime(*clock_, &now) != 0) return false;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t nanoseconds = now.tv_sec * kSecond + now.tv_nsec;
  return std::exchange(nanoseconds_, nanoseconds) == nanoseconds;
}

std::uint64_t memory_of(int status_file) {
  std::array<char, 4096> text{};
  const ssize_t size = ::pread(status_file, text.data(), text.size(), 0);
  return memory_in({text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
}

}  // namespace hangar::guest
