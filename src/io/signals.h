// Signals as events of the loop.
#pragma once

#include "io/loop.h"

#include <csignal>
#include <functional>
#include <initializer_list>
#include <memory>

namespace hangar::io {

// From construction to destruction the loop thread calls `on_signal` for the given signals of this
// process. Construct it before threads start: they inherit the mask that blocks these signals.
class Signals {
 public:
  Signals(Loop& loop, std::initializer_list<int> signals,
          std::function<void(int signal)> on_signal);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

 private:
  sigset_t blocked_{};
  sigset_t before_{};
  int descriptor_ = -1;
  std::unique_ptr<Loop::Watch> watch_;
};

}  // namespace hangar::io
