// A bound on how many reconciles run at once over all controllers, shared fairly: a controller with
// ten thousand keys waits its turn as the one with a single key does.
//
// Each controller has a Lane. When slots are free the turnstile asks the lanes in turn to start
// something, each up to its weight (default: once) before the next. Loop thread only.
#pragma once

#include "io/loop.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace hangar::reconcile {

class Turnstile {
 public:
  // One running reconcile. May outlive the turnstile.
  class Slot {
   public:
    Slot(Slot&& other) noexcept = default;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    Slot& operator=(Slot&&) = delete;
    ~Slot();

   private:
    friend class Turnstile;
    struct State;
    explicit Slot(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;  // Null once moved from.
  };

  // Takes no further part once destroyed.
  class Lane {
   public:
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane();
    // The lane may have work to start. `start` is called in later turns of the loop.
    void wake();

   private:
    friend class Turnstile;
    explicit Lane(std::shared_ptr<Slot::State> state) : state_(std::move(state)) {}
    std::shared_ptr<Slot::State> state_;
  };

  // `on_end`, if any, is called whenever a slot has become free, until the turnstile is gone.
  Turnstile(io::Loop& loop, std::size_t slots, std::function<void()> on_end = {});
  Turnstile(const Turnstile&) = delete;
  Turnstile& operator=(const Turnstile&) = delete;
  ~Turnstile();

  // `start` takes the slot and begins one piece of work, or gives the slot back unused by
  // destroying it and returns false.
  using Start = std::function<bool(Slot slot)>;
  [[nodiscard]] std::unique_ptr<Lane> lane(Start start, std::uint32_t weight = 1);

  [[nodiscard]] std::size_t slots_free() const;

 private:
  std::shared_ptr<Slot::State> state_;
};

}  // namespace hangar::reconcile
