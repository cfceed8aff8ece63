// Time is a parameter. Nothing outside base/ and io/ reads a clock.
#pragma once

#include "base/result.h"

#include <chrono>
#include <string>
#include <string_view>

namespace hangar {

// For deciding when to act next; never jumps.
using Instant = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

// What people and the API server read; may jump.
using WallTime = std::chrono::system_clock::time_point;

// "2026-04-08T12:00:00Z", as metav1.Time is written.
[[nodiscard]] std::string to_rfc3339(WallTime time);

// "2026-04-08T12:00:00.123456Z", as metav1.MicroTime (Leases, Events) is written.
[[nodiscard]] std::string to_rfc3339_micro(WallTime time);

// "2026-04-08T12:00:00.123456789Z" without trailing zeros, as Go's RFC3339Nano.
[[nodiscard]] std::string to_rfc3339_nano(WallTime time);

// Accepts all three forms above and offsets ("+02:00"). InvalidInput otherwise.
[[nodiscard]] Result<WallTime> parse_rfc3339(std::string_view text);

// Go's time.ParseDuration: "1h30m", "500ms", "-1.5h", "0". InvalidInput otherwise.
[[nodiscard]] Result<Duration> parse_go_duration(std::string_view text);

// The shortest form parse_go_duration reads back: "1m30s", "250ms", "1ns". Rounded to milliseconds,
// shorter ones to whole microseconds.
[[nodiscard]] std::string to_go_duration(Duration duration);

}  // namespace hangar
