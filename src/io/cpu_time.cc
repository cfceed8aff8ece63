#include "io/cpu_time.h"

#include "base/time.h"
#include "io/clock.h"

namespace hangar::io {

Duration thread_cpu_time() {
  return read_thread_clock();
}

}  // namespace hangar::io
