// Most of what a process maps of its own program and its libraries is touched once, while it
// starts: relocations, constructors, OpenSSL's tables, the beginnings of all parts. The pages stay
// in the process until the system is short of memory, and on an idle host they are two thirds of
// what it has.
#pragma once

#include "io/loop.h"

namespace hangar::host {

// Takes the pages of code and constants out of the process once, some seconds after it was made.
// They stay in the page cache; what is used again comes back with a minor fault for each 64 KiB.
// Loop thread; the process's other threads may run meanwhile.
class StartupPages {
 public:
  explicit StartupPages(io::Loop& loop);

 private:
  io::Loop::Timer timer_;
};

}  // namespace hangar::host
