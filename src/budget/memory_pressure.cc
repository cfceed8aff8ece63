#include "budget/memory_pressure.h"

#include "base/number.h"
#include "base/time.h"
#include "budget/internal/cgroup.h"
#include "budget/stalls.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::budget {

namespace {

// Shares of the limit: above the first, memory is released down to the second. The kernel reclaims
// only at the limit, and kills the process if it reclaims too little.
constexpr double kHighShare = 0.90;
constexpr double kLowShare = 0.80;
// Share of the time since the last reading: if tasks wait longer than this for memory, the delay
// costs more than a resume of a guest.
constexpr double kStalledShare = 0.05;
// The memory that is released for a stall: an eighth of the guests' memory, and twice as much with
// each further reading that shows a stall.
constexpr std::uint64_t kStallPart = 8;
constexpr std::uint32_t kStallsMax = 4;
// How long after the last sign of pressure nothing is loaded ahead; and the least time between two
// drops of the page cache, whose files have to be read again when they are needed.
constexpr std::chrono::seconds kPressedFor{10};
constexpr std::chrono::seconds kDropInterval{30};

std::optional<std::uint64_t> whole_number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.remove_suffix(1);
  return parse_number<std::uint64_t>(text);
}

// A line "name 123" of memory.stat.
std::uint64_t field_of(const std::filesystem::path& file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const std::string_view text(line);
    if (text.size() <= name.size() || !text.starts_with(name) || text[name.size()] != ' ') continue;
    return whole_number(text.substr(name.size() + 1)).value_or(0);
  }
  return 0;
}

}  // namespace

MemoryGauge::MemoryGauge(const std::filesystem::path& root) : stalls_("memory", root) {
  std::error_code ignored;
  for (const MemoryCgroup& group : memory_cgroups(root)) {
    const std::filesystem::path own = visible_directory(group.mount, group.path);
    if (!group.is_version_2) {
      // Where both versions are mounted, version 1 controls the memory.
      directory_ = own;
      is_version_2_ = false;
      return;
    }
    if (std::filesystem::exists(own / "memory.current", ignored)) {
      directory_ = own;
      is_version_2_ = true;
    }
  }
}

MemoryReading MemoryGauge::read() const {
  MemoryReading reading;
  if (!directory_.empty()) {
    reading.used_bytes =
        cgroup_number(directory_ / (is_version_2_ ? "memory.current" : "memory.usage_in_bytes"));
    const std::uint64_t droppable = field_of(
        directory_ / "memory.stat", is_version_2_ ? "inactive_file" : "total_inactive_file");
    if (reading.used_bytes) *reading.used_bytes -= std::min(*reading.used_bytes, droppable);
    reading.limit_bytes =
        cgroup_number(directory_ / (is_version_2_ ? "memory.max" : "memory.limit_in_bytes"));
    if (is_version_2_) {
      const std::optional<std::uint64_t> high = cgroup_number(directory_ / "memory.high");
      if (high) reading.limit_bytes = std::min(reading.limit_bytes.value_or(*high), *high);
    }
  }
  // Version 1 has memory.pressure_level only, which is an event and cannot be read.
  reading.stall = stalls_.of_cgroup();
  if (!reading.stall) reading.stall = stalls_.of_machine();
  return reading;
}

bool PressureGuard::is_stalled(const MemoryReading& reading, Instant now) {
  const std::optional<Stall> before = std::exchange(last_stall_, reading.stall);
  const Duration passed = now - std::exchange(last_read_, now);
  if (!before || !reading.stall || passed <= Duration::zero()) return false;
  const Duration stalled = reading.stall->some - before->some;
  return std::chrono::duration<double>(stalled) >
         kStalledShare * std::chrono::duration<double>(passed);
}

PressureGuard::Advice PressureGuard::on_reading(const MemoryReading& reading,
                                                std::uint64_t guest_bytes, Instant now) {
  Advice advice;
  const bool stalled = is_stalled(reading, now);
  stalls_ = stalled ? std::min(stalls_ + 1, kStallsMax) : 0;
  if (stalled) advice.give_back_bytes = (guest_bytes << (stalls_ - 1)) / kStallPart;
  bool is_high = false;
  if (reading.used_bytes && reading.limit_bytes) {
    const auto used = static_cast<double>(*reading.used_bytes);
    const auto limit = static_cast<double>(*reading.limit_bytes);
    is_high = used > kHighShare * limit;
    if (is_high) {
      advice.give_back_bytes =
          std::max(advice.give_back_bytes, static_cast<std::uint64_t>(used - kLowShare * limit));
    }
  }
  advice.give_back_bytes = std::min(advice.give_back_bytes, guest_bytes);
  advice.is_short = stalled || is_high;
  if (advice.is_short) {
    pressed_ = now;
    if (!dropped_ || now - *dropped_ >= kDropInterval) {
      dropped_ = now;
      advice.drop_page_cache = true;
    }
  }
  advice.is_pressed = pressed_ && now - *pressed_ < kPressedFor;
  return advice;
}

}  // namespace hangar::budget
