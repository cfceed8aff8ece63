// Lets one task at a time work on a key, so that the next task that wants the same result finds
// it done.
#pragma once

#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <map>
#include <stop_token>
#include <utility>

namespace hangar::io {

// First come, first served, for each key separately. A key that no task works on or waits for takes
// no memory. Loop thread; outlives its turns.
template <class Key>
class Turns {
  struct Place {
    explicit Place(Loop& loop) : semaphore(loop, 1) {}

    Semaphore semaphore;
    int user_count = 0;
  };
  using Places = std::map<Key, Place>;

  // One of the tasks that work or wait.
  class Use {
   public:
    Use(Places& places, Places::iterator at) : places_(&places), at_(at) {
      ++at_->second.user_count;
    }
    Use(Use&& other) noexcept : places_(std::exchange(other.places_, nullptr)), at_(other.at_) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (places_ != nullptr && --at_->second.user_count == 0) places_->erase(at_);
    }

    [[nodiscard]] Semaphore& semaphore() const { return at_->second.semaphore; }

   private:
    Places* places_;
    Places::iterator at_;
  };

 public:
  // The turn lasts until this object is destroyed.
  class Turn {
   private:
    friend class Turns;
    Turn(Use use, Semaphore::Slot slot) : use_(std::move(use)), slot_(std::move(slot)) {}

    Use use_;
    Semaphore::Slot slot_;  // Destroyed before the semaphore that it belongs to.
  };

  explicit Turns(Loop& loop) : loop_(loop) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  [[nodiscard]] Task<Turn> take(Key key) {
    Use use(places_, places_.try_emplace(std::move(key), loop_).first);
    Semaphore::Slot slot = co_await use.semaphore().acquire();
    co_return Turn(std::move(use), std::move(slot));
  }

  // Cancelled when a stop is requested first.
  [[nodiscard]] Task<Result<Turn>> take(Key key, std::stop_token stop) {
    Use use(places_, places_.try_emplace(std::move(key), loop_).first);
    Semaphore::Slot slot = HANGAR_CO_TRY(co_await use.semaphore().acquire(std::move(stop)));
    co_return Turn(std::move(use), std::move(slot));
  }

  // True when no task works or waits.
  [[nodiscard]] bool is_empty() const { return places_.empty(); }

 private:
  Loop& loop_;
  Places places_;
};

}  // namespace hangar::io
