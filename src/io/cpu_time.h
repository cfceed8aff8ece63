// How much processor time work took, for reports. Like every clock, read only in io/.
#pragma once

#include "base/time.h"

namespace hangar::io {

// Of the calling thread since it began.
[[nodiscard]] Duration thread_cpu_time();

}  // namespace hangar::io
