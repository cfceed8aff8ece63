// Finds out when the main loop is held up, by what, and when it is as good as dead.
//
// A main loop that does not come back from a turn answers nobody: no watch, no guest, no deletion.
// Its turns are observed on its own thread (how long they took, what threw). Whether it comes back
// at all is seen from another, because a loop that hangs cannot say so itself: it is asked for an
// answer each second.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace hangar::host {

class LoopWatch {
 public:
  // Before `main` runs; `main` and `metrics` outlive it.
  LoopWatch(io::Loop& main, Metrics& metrics, Log log);
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;

  // Looks from `watching`, which is another thread's loop, until it is destroyed. `on_dead` is
  // called there, once, when there is neither an answer nor another turn for `dead_after`.
  void start(io::Loop& watching, Duration dead_after, std::function<void(std::string why)> on_dead);

  // For /healthz: fails when the main loop is as good as dead. On the thread that watches.
  [[nodiscard]] Result<> check() const;

 private:
  void look_later();
  void look();

  io::Loop& main_;
  const Log log_;
  std::atomic<std::uint64_t> answered_ = 0;  // By the main loop, of asked_.

  // Of the thread that watches.
  io::Loop* watching_ = nullptr;
  std::int64_t looks_until_dead_ = 0;
  std::function<void(std::string why)> on_dead_;
  std::uint64_t asked_ = 0;
  Instant turn_began_;
  // In a row that found neither an answer nor another turn. Counted, not measured: a process that
  // was stopped as a whole (SIGSTOP, a suspended machine) does not hang.
  std::int64_t looks_ = 0;
  std::string why_dead_;
  io::Loop::Timer timer_;
};

}  // namespace hangar::host
