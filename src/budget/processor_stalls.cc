#include "budget/processor_stalls.h"

#include "base/time.h"
#include "budget/memory_pressure.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace hangar::budget {

namespace {

// Share of the time in which at least one task waits: an idle machine has a hundredth or two.
constexpr double kShortShare = 0.05;

std::optional<MemoryStall> stall_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  // The kernel writes all kinds of stalls in one form.
  return parse_memory_stall(text);
}

}  // namespace

ProcessorStalls::ProcessorStalls(const std::filesystem::path& root)
    : sources_{Source{.file = root / "proc/pressure/cpu"},
               Source{.file = root / "sys/fs/cgroup/cpu.pressure"}} {}

std::optional<bool> ProcessorStalls::are_processors_short(Instant now) {
  const std::chrono::duration<double> passed = now - std::exchange(looked_, now);
  std::optional<bool> are_short;
  for (Source& source : sources_) {
    const std::optional<MemoryStall> stall = stall_in(source.file);
    const std::optional<MemoryStall> last = std::exchange(source.last, stall);
    if (!stall || !last || passed.count() <= 0) continue;
    const std::chrono::duration<double> waited = stall->some - last->some;
    are_short = are_short.value_or(false) || waited > kShortShare * passed;
  }
  return are_short;
}

}  // namespace hangar::budget
