// Guests that can go on, and which of them a free worker takes.
#pragma once

#include "io/workers.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace hangar::wasm::internal {

// Those that have begun go first, so that few are half done at a time: each of them holds its
// memory. Among the others those of the module that was taken last go first, a few in a row: its
// code is mapped and in the processor's caches, where each of twenty modules that take turns finds
// another one's. Otherwise first come, first served. Any thread.
class ReadyQueue {
 public:
  enum class Place : std::uint8_t { Begun, New, Yielded };
  using Step = std::move_only_function<void()>;
  // Whose code runs. Only compared.
  using Key = const void*;

  // How often a module comes before others that have waited for longer.
  static constexpr std::size_t kInARowMax = 8;

  explicit ReadyQueue(io::Workers& workers) : workers_(workers) {}

  void push(Place place, Key module, Step step);
  // Whether somebody waits for a worker.
  [[nodiscard]] bool is_contended() const;

 private:
  struct Waiting {
    Key module;
    Step step;
  };

  void run_next();
  [[nodiscard]] Step take();

  io::Workers& workers_;
  mutable std::mutex mutex_;
  std::deque<Waiting> begun_;
  std::deque<Waiting> others_;  // New ones and those whose slice is over, in order.
  Key last_ = nullptr;          // Of `others_`.
  std::size_t in_a_row_ = 0;    // Of `last_`, the first one included.
};

}  // namespace hangar::wasm::internal
