#include "foresight/day_times.h"

#include "foresight/spread.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

namespace hangar::foresight {

namespace {

constexpr std::int64_t kDay = 24LL * 3600 * 100;
// Wakes within this distance belong to one time of the day.
constexpr std::int64_t kNear = 60LL * 100;
constexpr std::uint8_t kDaysMin = 2;
constexpr std::uint8_t kDaysMax = 30;
// A time that was not seen for more days is not expected: it survives a weekend, but not a holiday.
constexpr std::uint8_t kAbsentMax = 4;
constexpr float kWeight = 0.3F;
// Two seconds: jobs start at a fixed time of the day, but their effects come later.
constexpr std::uint16_t kErrorUnknown = 200;

struct TimeOfDay {
  std::int64_t centiseconds;
  std::uint8_t day;
};

TimeOfDay time_of_day(WallTime wall) {
  using Centiseconds = std::chrono::duration<std::int64_t, std::centi>;
  const std::int64_t all = std::chrono::floor<Centiseconds>(wall.time_since_epoch()).count();
  const std::int64_t within = ((all % kDay) + kDay) % kDay;
  return {.centiseconds = within, .day = static_cast<std::uint8_t>((all - within) / kDay)};
}

// The distance from `from` to the nearest `to`: between minus half a day and half a day.
std::int64_t signed_distance(std::int64_t from, std::int64_t to) {
  const std::int64_t ahead = ((to - from) % kDay + kDay) % kDay;
  return ahead > kDay / 2 ? ahead - kDay : ahead;
}

}  // namespace

void DayTimes::learn(WallTime wall) {
  const auto [centiseconds, day] = time_of_day(wall);
  Entry* weakest = entries_.data();
  for (Entry& entry : entries_) {
    if (entry.days < weakest->days) weakest = &entry;
    if (entry.days == 0) continue;
    const std::int64_t off = signed_distance(entry.centiseconds, centiseconds);
    if (std::abs(off) > kNear) continue;
    // The first wake of a day counts; those right after it are the same activity.
    if (entry.last_day == day) return;
    const auto moved = static_cast<std::int64_t>(kWeight * static_cast<float>(off));
    entry.centiseconds = static_cast<std::uint32_t>((entry.centiseconds + moved + kDay) % kDay);
    const auto distance = static_cast<float>(std::abs(off));
    entry.error = static_cast<std::uint16_t>(smoothed_error(entry.error, distance));
    entry.days = std::min<std::uint8_t>(static_cast<std::uint8_t>(entry.days + 1U), kDaysMax);
    entry.last_day = day;
    return;
  }
  // A new time of the day must occur often to replace one that was seen often.
  if (weakest->days > 0) --weakest->days;
  if (weakest->days > 0) return;
  *weakest = {.centiseconds = static_cast<std::uint32_t>(centiseconds),
              .error = kErrorUnknown,
              .days = 1,
              .last_day = day};
}

std::optional<Guess> DayTimes::guess(WallTime idle_since) const {
  const auto [centiseconds, day] = time_of_day(idle_since);
  std::optional<Guess> next;
  for (const Entry& entry : entries_) {
    if (entry.days < kDaysMin) continue;
    // A clock that was set back makes this large, too.
    if (static_cast<std::uint8_t>(day - entry.last_day) > kAbsentMax) continue;
    std::int64_t ahead = ((entry.centiseconds - centiseconds) % kDay + kDay) % kDay;
    // Today's wake has already come, earlier than expected.
    if (ahead == 0 || (ahead <= kNear && entry.last_day == day)) ahead += kDay;
    const float at = static_cast<float>(ahead) / 100;
    if (!next || at < next->at) {
      next = Guess{.at = at, .spread = spread_of(static_cast<float>(entry.error) / 100)};
    }
  }
  return next;
}

}  // namespace hangar::foresight
