#include "io/cpu_time.h"

#include "base/time.h"

#include <chrono>
#include <ctime>

namespace hangar::io {

Duration thread_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace hangar::io
