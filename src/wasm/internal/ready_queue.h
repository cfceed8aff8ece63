// Guests that can go on, and which of them a free worker takes.
#pragma once

#include "base/time.h"
#include "budget/consumer.h"
#include "budget/fair_queue.h"
#include "io/workers.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace hangar::wasm::internal {

// Tenants have their turns by the processor time that they use, and so have the consumers of each
// (budget::FairQueue). Of one tenant those that have begun go first, so that few are half done at a
// time: each of them holds its memory. Among its others those of the module that was taken last go
// on, a few in a row: its code is mapped and in the processor's caches, where each of twenty
// modules that take turns finds another one's. Any thread.
class ReadyQueue {
 public:
  enum class Place : std::uint8_t { Begun, New, Yielded };
  // Runs the guest for a while, and says how long that took: in nanoseconds of processor time.
  using Step = std::move_only_function<std::uint64_t()>;
  // Whose code runs. Only compared.
  using Key = const void*;

  // How often a module goes on before others that have waited for longer.
  static constexpr std::size_t kInARowMax = 8;

  explicit ReadyQueue(io::Workers& workers) : workers_(workers) {}
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;
  // When no guest waits. Lets workers end that are still counting what the last ones took.
  ~ReadyQueue();

  void push(const budget::Consumer& consumer, Place place, Key module, Step step);
  // Of processor time, before a guest of `tenant` makes room for those that wait for a worker.
  // Nothing when none does.
  [[nodiscard]] std::optional<Duration> slice(const budget::Tenant& tenant) const;

 private:
  struct Waiting {
    Place place;
    Key module;
    Step step;
  };
  using Queue = budget::FairQueue<Waiting>;

  void run_next();
  [[nodiscard]] Queue::Taken take();
  [[nodiscard]] std::optional<Queue::Taken> take_same_module();

  io::Workers& workers_;
  mutable std::mutex mutex_;
  std::condition_variable nobody_runs_;
  Queue queue_;
  // Calls of run_next() that wait for a worker, and those that have one. Together no more than
  // there are workers: their other work waits for a step of each, not for all that wait here.
  std::size_t submitted_count_ = 0;
  std::size_t running_count_ = 0;
  Key last_ = nullptr;  // Module of the last one taken that was new,
  budget::Tenant last_tenant_ = budget::Tenant::host();  // and whose it was.
  std::size_t in_a_row_ = 0;                             // Of `last_`, the first one included.
};

}  // namespace hangar::wasm::internal
