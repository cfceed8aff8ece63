#include "io/priority.h"

#include <sys/resource.h>

namespace hangar::io {

void give_way() {
  constexpr int kNice = 15;
  // On Linux this is about one thread. It lowers only, which is always allowed.
  (void)::setpriority(PRIO_PROCESS, 0, kNice);
}

}  // namespace hangar::io
