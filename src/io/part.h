// The part of its work that a task is at, for reports of a blocked loop: "airway default/web: its
// release is applied".
//
// Loop::Activity names the object for which a task works. A task that does several things names
// them here, so that a report says which of them took long.
#pragma once

#include "io/loop.h"

#include <string>
#include <string_view>

namespace hangar::io {

// Until it is destroyed, the activity is that of its construction with the part behind it; who pays
// stays the same. Like an Activity, it follows its task through waits, and passes on to tasks that
// it calls and spawns. Each part costs an allocation. Loop thread.
class Part {
 public:
  Part(Loop& loop, std::string_view part);
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part();

  // The task goes on to its next part.
  void next(std::string_view part);

 private:
  Loop& loop_;
  const Loop::DoingPtr whole_;  // Null: the part is all that is known.
};

// Sets an activity that was made before, for callbacks that are called often.
class Resumed {
 public:
  Resumed(Loop& loop, Loop::DoingPtr doing);
  Resumed(const Resumed&) = delete;
  Resumed& operator=(const Resumed&) = delete;
  ~Resumed();

 private:
  Loop& loop_;
  Loop::DoingPtr before_;
};

}  // namespace hangar::io
