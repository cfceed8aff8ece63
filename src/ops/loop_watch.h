// Detects that the main loop is blocked, names the activity that blocks it, and decides when the
// loop counts as dead.
//
// While a turn of the main loop does not end, no watch, guest or deletion is served. The duration
// and exceptions of turns are observed on the main loop's own thread. A blocked loop cannot report
// itself, so another thread posts a question to the main loop every second.
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

namespace hangar::ops {

class LoopWatch {
 public:
  // Construct it before `main` runs; `main` and `metrics` must outlive it.
  LoopWatch(io::Loop& main, Metrics& metrics, Log log);
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;

  // Checks from `watching`, which is another thread's loop, until it is destroyed. `on_dead` is
  // called there, once, after `dead_after` without an answer or a new turn.
  void start(io::Loop& watching, Duration dead_after, std::function<void(std::string why)> on_dead);

  // For /healthz: fails when the main loop counts as dead. On the thread of `watching`.
  [[nodiscard]] Result<> check() const;

 private:
  void look_later();
  void look();

  io::Loop& main_;
  const Log log_;
  Histogram& delay_;
  std::atomic<std::uint64_t> answered_ = 0;  // Number of answers, up to asked_.

  // Used by the thread of `watching`.
  io::Loop* watching_ = nullptr;
  std::int64_t looks_until_dead_ = 0;
  std::function<void(std::string why)> on_dead_;
  std::uint64_t asked_ = 0;
  Instant turn_began_;
  // Consecutive checks without an answer or a new turn. Checks are counted instead of time: if the
  // whole process was paused (SIGSTOP, a suspended machine), the loop did not hang.
  std::int64_t looks_ = 0;
  std::string why_dead_;
  io::Loop::Timer timer_;
};

}  // namespace hangar::ops
