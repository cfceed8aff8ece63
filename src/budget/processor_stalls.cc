#include "budget/processor_stalls.h"

#include "base/time.h"
#include "budget/stalls.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

namespace hangar::budget {

namespace {

// Share of the time in which at least one task waits: an idle machine has a hundredth or two.
constexpr double kShortShare = 0.05;

}  // namespace

ProcessorStalls::ProcessorStalls(const std::filesystem::path& root) : files_("cpu", root) {}

std::optional<bool> ProcessorStalls::are_processors_short(Instant now) {
  const std::chrono::duration<double> passed = now - std::exchange(looked_, now);
  std::optional<bool> are_short;
  const auto look = [&](std::optional<Stall>& known, std::optional<Stall> stall) {
    const std::optional<Stall> last = std::exchange(known, stall);
    if (!stall || !last || passed.count() <= 0) return;
    const std::chrono::duration<double> waited = stall->some - last->some;
    are_short = are_short.value_or(false) || waited > kShortShare * passed;
  };
  look(last_of_machine_, files_.of_machine());
  look(last_of_cgroup_, files_.of_cgroup());
  return are_short;
}

}  // namespace hangar::budget
