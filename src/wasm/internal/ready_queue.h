// The guests that can continue, and the choice of the next one for a free worker.
#pragma once

#include "base/fair_queue.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/workers.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

namespace hangar::wasm::internal {

// The guests of a tenant are one of its consumers at the workers (io::Workers), so tenants take
// turns by the processor time of their guests and of all their other work. This queue decides which
// guest of the tenant is next: its consumers take turns, too. Guests that have started go first, so
// that few are unfinished at a time, because each of them holds its memory. Among the others, those
// of the module that ran last go first, a few in a row: its code is mapped and in the processor's
// caches, whereas twenty modules that take turns evict each other's code. Any thread.
class ReadyQueue {
 public:
  enum class Place : std::uint8_t { Begun, New, Yielded };
  // Runs the guest for a while, and returns how long that took, in nanoseconds of processor time.
  using Step = std::move_only_function<std::uint64_t()>;
  // Identifies the module whose code runs; only compared.
  using Key = const void*;

  // How many guests of one module may run in a row while others have waited longer.
  static constexpr std::size_t kInARowMax = 8;

  // `workers` outlives this object.
  explicit ReadyQueue(io::Workers& workers) : workers_(workers) {}
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;
  // No guest may wait. Waits for workers that still record the time of the last guests.
  ~ReadyQueue();

  void push(const budget::Consumer& consumer, Place place, Key module, Step step);
  // How much processor time a guest of `tenant` may use before it yields to others that wait for a
  // worker. std::nullopt when nothing waits, neither guests nor other work of the workers, of any
  // tenant: such work is short, and a deletion or a review may wait for it.
  [[nodiscard]] std::optional<Duration> slice(const budget::Tenant& tenant) const;

 private:
  struct Waiting {
    Place place;
    Key module;
    Step step;
  };
  using Queue = FairQueue<Waiting>;
  // Calls of run_next() for one tenant: waiting for a worker, and running on one. Together they are
  // at most as many as workers; never more wait than the tenant has waiting guests.
  struct Calls {
    std::size_t submitted = 0;
    std::size_t running = 0;
  };

  void submit(const budget::Tenant& tenant);
  void run_next(const budget::Tenant& tenant);
  [[nodiscard]] Queue::Taken take(const budget::Tenant& tenant);
  // The next two functions require the mutex.
  [[nodiscard]] Queue::Taken take_any(const budget::Tenant& tenant);
  [[nodiscard]] std::optional<Queue::Taken> take_same_module(const budget::Tenant& tenant);

  io::Workers& workers_;
  mutable std::mutex mutex_;
  std::condition_variable nobody_runs_;
  Queue queue_;
  std::map<budget::Tenant, Calls> calls_;                // Only tenants with any.
  Key last_ = nullptr;                                   // The module of the last new guest taken,
  budget::Tenant last_tenant_ = budget::Tenant::host();  // and its tenant.
  std::size_t in_a_row_ = 0;                             // How many of `last_` ran in a row.
};

}  // namespace hangar::wasm::internal
