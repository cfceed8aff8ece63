// The guests that can continue, and the choice of the next one for a free worker.
#pragma once

#include "base/fair_queue.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
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
// that few are unfinished at a time: each of them holds its memory. Among the others, those of the
// module that ran last continue, a few in a row: its code is mapped and in the processor's caches,
// whereas twenty modules that take turns evict each other's code. Any thread.
class ReadyQueue {
 public:
  enum class Place : std::uint8_t { Begun, New, Yielded };
  // Runs the guest for a while, and returns how long that took, in nanoseconds of processor time.
  using Step = std::move_only_function<std::uint64_t()>;
  // The module whose code runs. Only compared.
  using Key = const void*;

  // How often a module may continue before others that have waited longer.
  static constexpr std::size_t kInARowMax = 8;

  // `rates` is charged with the time of each step; null: there are none. Both outlive this.
  explicit ReadyQueue(io::Workers& workers, budget::Rates* rates = nullptr)
      : workers_(workers), rates_(rates) {}
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;
  // Must be called when no guest waits. Waits for workers that are still recording what the last
  // guests took.
  ~ReadyQueue();

  void push(const budget::Consumer& consumer, Place place, Key module, Step step);
  // How much processor time a guest of `tenant` may use before it yields to those that wait for a
  // worker. std::nullopt when none waits, and no other work of the workers, whosever it is: that is
  // short, and may be what a deletion or a review waits for.
  [[nodiscard]] std::optional<Duration> slice(const budget::Tenant& tenant) const;

 private:
  struct Waiting {
    Place place;
    Key module;
    Step step;
  };
  using Queue = FairQueue<Waiting>;
  // Calls of run_next() for one tenant: those that wait for a worker, and those that have one.
  // Together at most as many as workers. Never more wait than guests of the tenant do.
  struct Calls {
    std::size_t submitted = 0;
    std::size_t running = 0;
  };

  void submit(const budget::Tenant& tenant);
  void run_next(const budget::Tenant& tenant);
  [[nodiscard]] Queue::Taken take(const budget::Tenant& tenant);
  // Those below require that the mutex is held.
  [[nodiscard]] Queue::Taken take_any(const budget::Tenant& tenant);
  [[nodiscard]] std::optional<Queue::Taken> take_same_module(const budget::Tenant& tenant);

  io::Workers& workers_;
  budget::Rates* const rates_;
  mutable std::mutex mutex_;
  std::condition_variable nobody_runs_;
  Queue queue_;
  std::map<budget::Tenant, Calls> calls_;                // Only tenants with any.
  Key last_ = nullptr;                                   // The module of the last new guest taken,
  budget::Tenant last_tenant_ = budget::Tenant::host();  // and its tenant.
  std::size_t in_a_row_ = 0;                             // How many of `last_`, in a row.
};

}  // namespace hangar::wasm::internal
