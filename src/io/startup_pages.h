// Unmaps pages of the program and its libraries that are used only while the process starts: by
// relocations, constructors, OpenSSL's tables, the initialisation of all parts. Such pages stay in
// the process until the system is short of memory. On an idle host they are two thirds of its
// memory.
#pragma once

#include "io/loop.h"

namespace hangar::io {

// Unmaps the pages of code and constants once, some seconds after construction. They stay in the
// page cache; the next use of a page maps it again with a minor fault, 64 KiB at a time. Loop
// thread; other threads of the process may run meanwhile.
class StartupPages {
 public:
  explicit StartupPages(Loop& loop);

 private:
  Loop::Timer timer_;
};

}  // namespace hangar::io
