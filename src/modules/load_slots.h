// Bounds how many modules are in memory as bytes at the same time, to make something of them. A
// host that starts needs all of its modules at once, and one may have 256 MiB.
//
// Guarantees:
//   - One large module at a time, and some small ones, which never wait for a large one. The
//     smallest ones, such as scripts, wait for nothing.
//   - Namespaces take turns by the bytes that they load, and the small modules of each go first.
//   - A module that several namespaces want waits in the queue of each (Beneficiaries).
#pragma once

#include "base/limits.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

namespace hangar::modules {

// Loop thread; outlives its waiters, except for tasks that are never resumed.
class LoadSlots {
 public:
  struct Options {
    // Modules of up to this size need no slot: any number that is made at a time takes little.
    std::uint64_t free_bytes_max = limits::kMiB;
    // Most operators in Go are larger.
    std::uint64_t small_bytes_max = 16 * limits::kMiB;
    // A namespace alone may hold half of them.
    std::size_t small = 4;
  };
  // Held until it is released or destroyed. Any thread: bytes are released by whoever uses them
  // last.
  class Slot {
   public:
    Slot(std::shared_ptr<budget::FairSlots> slots, budget::FairSlots::Slot slot)
        : slots_(std::move(slots)), slot_(std::move(slot)) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { release(); }

    void release();

   private:
    std::atomic<bool> is_released_ = false;
    std::shared_ptr<budget::FairSlots> slots_;
    budget::FairSlots::Slot slot_;
  };

  LoadSlots(io::Loop& loop, Options options);
  explicit LoadSlots(io::Loop& loop) : LoadSlots(loop, Options{}) {}
  LoadSlots(const LoadSlots&) = delete;
  LoadSlots& operator=(const LoadSlots&) = delete;

  // For a module of so many bytes. A task that holds a slot waits for no other, and not for memory.
  // Null if it needs none. Cancelled when a stop is requested first. As for
  // Beneficiaries::acquire().
  [[nodiscard]] io::Task<Result<std::shared_ptr<Slot>>> acquire(budget::Beneficiaries beneficiaries,
                                                                std::uint64_t bytes,
                                                                std::stop_token stop);

 private:
  const Options options_;
  // Shared with the slots, which come back later than they are released.
  const std::shared_ptr<budget::FairSlots> small_;
  const std::shared_ptr<budget::FairSlots> large_;
};

}  // namespace hangar::modules
