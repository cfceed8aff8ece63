#include "io/priority.h"

#include <sys/resource.h>

namespace hangar::io {

namespace {

// On Linux this applies to one thread. It only lowers the priority, which is always allowed.
void set_nice(int nice) {
  (void)::setpriority(PRIO_PROCESS, 0, nice);
}

}  // namespace

void give_way() {
  set_nice(10);
}

void give_some_way() {
  set_nice(5);
}

}  // namespace hangar::io
