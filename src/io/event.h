// Ways for one task to wait for another. Loop thread only, like everything around io::Task.
#pragma once

#include "base/assert.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"

#include <coroutine>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace hangar::io {

// One value, set once, awaited once, in either order. Copies share it, so that the setter needs no
// reference to the task that waits. The setter must set it on every path (with an error if need
// be): otherwise the waiting task never resumes.
template <class T>
class OneShot {
 public:
  explicit OneShot(Loop& loop) : state_(std::make_shared<State>(loop)) {}

  // The first value counts; later ones are dropped. The waiting task resumes in a later turn of
  // the loop.
  void set(T value) const {
    if (state_->value) return;
    state_->value.emplace(std::move(value));
    if (state_->awaiting) state_->resume();
  }
  [[nodiscard]] bool is_set() const { return state_->value.has_value(); }

  [[nodiscard]] Task<T> wait() const {
    const auto state = state_;  // The OneShot itself may be gone by the time it is set.
    co_await Awaiter{*state};
    co_return *std::move(state->value);
  }

 private:
  struct State {
    explicit State(Loop& loop_in) : loop(loop_in) {}
    void resume() {
      loop.post([handle = std::exchange(awaiting, nullptr)] { handle.resume(); });
    }

    Loop& loop;
    std::optional<T> value;
    std::coroutine_handle<> awaiting;
  };
  struct Awaiter {
    State& state;
    Loop::DoingPtr activity = nullptr;
    [[nodiscard]] bool await_ready() const noexcept { return state.value.has_value(); }
    void await_suspend(std::coroutine_handle<> handle) {
      HANGAR_ASSERT(!state.awaiting, "a OneShot has one waiter");
      state.awaiting = handle;
      activity = state.loop.activity();
    }
    void await_resume() noexcept {
      if (activity) state.loop.set_activity(std::move(activity));
    }
  };

  std::shared_ptr<State> state_;
};

// "Something changed": notify_all() resumes every task that waits at that moment. A notification is
// not remembered: check the condition, then wait, without a co_await in between.
class Event {
 public:
  explicit Event(Loop& loop) : loop_(loop) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { HANGAR_ASSERT(waiting_->empty(), "a task would wait for ever"); }

  void notify_all();

  // Cancelled when a stop is requested first.
  [[nodiscard]] Task<Result<>> wait(std::stop_token stop);

 private:
  using Waiting = std::list<OneShot<bool>>;  // The value: whether it was notified.

  Loop& loop_;
  // Shared with the tasks that wait: a task whose stop was requested before the notification
  // resumes only when the Event may already be gone.
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
};

// Lets at most `slots` tasks at a time hold a Slot, from acquire() to its destruction. First come,
// first served.
class Semaphore {
 public:
  class Slot {
   public:
    Slot(Slot&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (semaphore_ != nullptr) semaphore_->release();
    }

   private:
    friend class Semaphore;
    explicit Slot(Semaphore& semaphore) : semaphore_(&semaphore) {}
    Semaphore* semaphore_;  // Outlives its slots.
  };

  Semaphore(Loop& loop, std::size_t slots) : loop_(loop), free_(slots) {}

  [[nodiscard]] Task<Slot> acquire();
  // Cancelled when a stop is requested first.
  [[nodiscard]] Task<Result<Slot>> acquire(std::stop_token stop);

 private:
  void release();

  Loop& loop_;
  std::size_t free_;
  std::list<OneShot<bool>> waiting_;
};

}  // namespace hangar::io
