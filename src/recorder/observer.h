// Receives each record of a turn and of a request as it happens, whether or not it is written
// to disk.
#pragma once

#include "recorder/record.h"

namespace hangar::recorder {

// Loop thread. Called while the guest's turn waits, so it copies the data that it needs and does
// no I/O.
class Observer {
 public:
  virtual void on_turn(const Turn& turn) = 0;
  virtual void on_asked(const Asked& asked) = 0;
  virtual void on_answered(const Answered& answered) = 0;

 protected:
  Observer() = default;
  Observer(const Observer&) = default;
  Observer& operator=(const Observer&) = default;
  ~Observer() = default;
};

}  // namespace hangar::recorder
