// The processor time that work took, for reports. Like every clock, it is read only in io/.
#pragma once

#include "base/time.h"

namespace hangar::io {

// The CPU time of the calling thread since it started.
[[nodiscard]] Duration thread_cpu_time();

}  // namespace hangar::io
