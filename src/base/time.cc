#include "base/time.h"

#include "base/result.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar {

namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::nanoseconds;
using std::chrono::seconds;

std::string to_seconds_text(WallTime time) {
  const auto day = floor<days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{floor<seconds>(time - day)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::int64_t nanoseconds_within_second(WallTime time) {
  return std::chrono::duration_cast<nanoseconds>(time - floor<seconds>(time)).count();
}

// Reads exactly `digits` digits at `position` and moves past them.
Result<int> read_digits(std::string_view text, std::size_t& position, std::size_t digits) {
  int value = 0;
  const char* const begin = text.data() + position;
  if (position + digits > text.size() ||
      std::from_chars(begin, begin + digits, value).ptr != begin + digits || *begin == '-') {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not an RFC 3339 time", text));
  }
  position += digits;
  return value;
}

Result<> read_character(std::string_view text, std::size_t& position, std::string_view accepted) {
  if (position >= text.size() || !accepted.contains(text[position])) {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not an RFC 3339 time", text));
  }
  ++position;
  return {};
}

struct Unit {
  std::string_view name;
  double nanoseconds;
};
// The longest spelling comes first where one is the beginning of another ("ms" before "m").
constexpr std::array kUnits{Unit{"ns", 1},        Unit{"us", 1e3},  Unit{"\u00b5s", 1e3},
                            Unit{"\u03bcs", 1e3}, Unit{"ms", 1e6},  Unit{"s", 1e9},
                            Unit{"m", 60e9},      Unit{"h", 3600e9}};

}  // namespace

std::string to_rfc3339(WallTime time) {
  return to_seconds_text(time) + "Z";
}

std::string to_rfc3339_micro(WallTime time) {
  return fmt::format("{}.{:06}Z", to_seconds_text(time), nanoseconds_within_second(time) / 1000);
}

std::string to_rfc3339_nano(WallTime time) {
  const std::int64_t fraction = nanoseconds_within_second(time);
  if (fraction == 0) return to_rfc3339(time);
  std::string digits = fmt::format("{:09}", fraction);
  digits.erase(digits.find_last_not_of('0') + 1);
  return fmt::format("{}.{}Z", to_seconds_text(time), digits);
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  std::size_t at = 0;
  const int year = HANGAR_TRY(read_digits(text, at, 4));
  HANGAR_TRY(read_character(text, at, "-"));
  const int month = HANGAR_TRY(read_digits(text, at, 2));
  HANGAR_TRY(read_character(text, at, "-"));
  const int day = HANGAR_TRY(read_digits(text, at, 2));
  HANGAR_TRY(read_character(text, at, "Tt "));
  const int hour = HANGAR_TRY(read_digits(text, at, 2));
  HANGAR_TRY(read_character(text, at, ":"));
  const int minute = HANGAR_TRY(read_digits(text, at, 2));
  HANGAR_TRY(read_character(text, at, ":"));
  const int second = HANGAR_TRY(read_digits(text, at, 2));
  std::int64_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    std::int64_t scale = 1'000'000'000;
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      scale /= 10;
      fraction += scale * (text[at] - '0');
      ++at;
    }
    if (at == first) {
      return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not an RFC 3339 time", text));
    }
  }
  seconds offset{0};
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    const int sign = text[at] == '-' ? -1 : 1;
    ++at;
    const int hours = HANGAR_TRY(read_digits(text, at, 2));
    HANGAR_TRY(read_character(text, at, ":"));
    const int minutes = HANGAR_TRY(read_digits(text, at, 2));
    offset = seconds(sign * (hours * 3600 + minutes * 60));
  } else {
    HANGAR_TRY(read_character(text, at, "Zz"));
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (at != text.size() || !date.ok() || hour > 23 || minute > 59 || second > 60) {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not an RFC 3339 time", text));
  }
  // The years that 64 bits of nanoseconds hold, less a year on each side for the offset.
  if (year < 1678 || year > 2261) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is outside of the years 1678 to 2261", text));
  }
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + seconds(second) + nanoseconds(fraction) - offset;
}

Result<Duration> parse_go_duration(std::string_view text) {
  const auto invalid = [text] {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("\"{}\" is not a duration: write for example 90s, 1h30m or 500ms", text));
  };
  std::string_view rest = text;
  double sign = 1;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    sign = rest.front() == '-' ? -1 : 1;
    rest.remove_prefix(1);
  }
  if (rest == "0") return Duration{0};
  if (rest.empty()) return invalid();
  double total = 0;
  while (!rest.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc() || rest.front() == '-') return invalid();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    bool found = false;
    for (const Unit& unit : kUnits) {
      if (!rest.starts_with(unit.name)) continue;
      total += number * unit.nanoseconds;
      rest.remove_prefix(unit.name.size());
      found = true;
      break;
    }
    if (!found) return invalid();
  }
  // 2^63 ns, 292 years: what Go's own type can hold.
  if (!(total < 9.2e18)) return invalid();
  return Duration(static_cast<std::int64_t>(std::llround(sign * total)));
}

std::string to_go_duration(Duration duration) {
  if (std::chrono::abs(duration) < std::chrono::milliseconds(1)) {
    if (duration == Duration::zero()) return "0s";
    const std::int64_t nanoseconds = duration.count();
    if (std::abs(nanoseconds) < 1000) return fmt::format("{}ns", nanoseconds);
    return fmt::format("{}us", nanoseconds / 1000);
  }
  std::int64_t milliseconds = std::chrono::round<std::chrono::milliseconds>(duration).count();
  std::string text = milliseconds < 0 ? "-" : "";
  milliseconds = std::abs(milliseconds);
  if (milliseconds < 1000) return text + fmt::format("{}ms", milliseconds);
  const std::int64_t whole_seconds = milliseconds / 1000;
  if (whole_seconds >= 3600) text += fmt::format("{}h", whole_seconds / 3600);
  if (whole_seconds % 3600 >= 60) text += fmt::format("{}m", whole_seconds % 3600 / 60);
  const std::int64_t fraction = milliseconds % 1000;
  if (fraction != 0) {
    text += fmt::format("{}.{:03}s", whole_seconds % 60, fraction);
  } else if (whole_seconds % 60 != 0) {
    text += fmt::format("{}s", whole_seconds % 60);
  }
  return text;
}

}  // namespace hangar
