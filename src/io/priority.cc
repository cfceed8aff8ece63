#include "io/priority.h"

#include <sys/resource.h>

namespace hangar::io {

void give_way() {
  constexpr int kNice = 15;
  // On Linux this applies to one thread. It only lowers the priority, which is always allowed.
  (void)::setpriority(PRIO_PROCESS, 0, kNice);
}

}  // namespace hangar::io
