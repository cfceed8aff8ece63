// Checks periodically whether an activity may continue, and stops it when it may not.
#pragma once

#include "io/loop.h"

#include <chrono>
#include <functional>
#include <utility>

namespace hangar::wasm::internal {

// Loop thread. Stops checking when it is destroyed, or has stopped the activity.
class Overseer {
 public:
  // Without `may_go_on` it never checks.
  Overseer(io::Loop& loop, std::chrono::nanoseconds every, std::function<bool()> may_go_on,
           std::function<void()> end)
      : loop_(loop), every_(every), may_go_on_(std::move(may_go_on)), end_(std::move(end)) {
    if (may_go_on_) wait();
  }
  Overseer(const Overseer&) = delete;
  Overseer& operator=(const Overseer&) = delete;
  ~Overseer() = default;

  [[nodiscard]] bool has_ended_it() const { return has_ended_it_; }

 private:
  void wait() {
    timer_ = loop_.after(every_, [this] { ask(); });
  }
  void ask() {
    if (may_go_on_()) {
      wait();
      return;
    }
    has_ended_it_ = true;
    end_();
  }

  io::Loop& loop_;
  const std::chrono::nanoseconds every_;
  const std::function<bool()> may_go_on_;
  const std::function<void()> end_;
  bool has_ended_it_ = false;
  io::Loop::Timer timer_;
};

}  // namespace hangar::wasm::internal
