#include "io/clock.h"

#include "base/time.h"
#include "io/virtual_time.h"

#include <chrono>
#include <ctime>

namespace hangar::io {

namespace {

Duration read(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Instant read_boot_clock() {
  if (VirtualTime* const simulated = VirtualTime::current()) return simulated->now();
  // CLOCK_MONOTONIC, which std::chrono::steady_clock reads, stops while the machine is suspended.
  return Instant(read(CLOCK_BOOTTIME));
}

WallTime read_wall_clock() {
  if (VirtualTime* const simulated = VirtualTime::current()) return simulated->wall_now();
  return WallTime(read(CLOCK_REALTIME));
}

Duration read_thread_clock() {
  if (VirtualTime* const simulated = VirtualTime::current()) return simulated->processor_time();
  return read(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace hangar::io
