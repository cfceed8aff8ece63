// A bound on how many reconciles run at once over all controllers, shared fairly: a controller with
// ten thousand keys takes its turn like one with a single key, and a namespace holds no more slots
// than Places permits, over all controllers.
//
// Each controller has a Lane. When slots are free the turnstile calls the lanes in turn to start a
// reconcile, each up to its weight (default: once) before the next. Loop thread only.
#pragma once

#include "budget/consumer.h"
#include "io/loop.h"
#include "reconcile/places.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
    Slot(std::shared_ptr<State> state, Places::Place place);
    std::shared_ptr<State> state_;  // Null once moved from.
    std::optional<Places::Place> place_;
  };

  // The free slots, offered to a lane that may start a reconcile. It takes at most one.
  class Offer {
   public:
    Offer(const Offer&) = delete;
    Offer& operator=(const Offer&) = delete;

    [[nodiscard]] bool may_take(const budget::Tenant& tenant, bool is_deletion) const;
    [[nodiscard]] Slot take(budget::Tenant tenant, bool is_deletion);

   private:
    friend class Turnstile;
    friend struct Slot::State;
    Offer(Slot::State& state, bool only_deletions)
        : state_(state), only_deletions_(only_deletions) {}
    Slot::State& state_;
    const bool only_deletions_;
  };

  // The result of an offer.
  enum class Started : std::uint8_t {
    One,
    Nothing,  // It has nothing to do until it is woken.
    Blocked,  // All its work belongs to namespaces that may take no slot now.
  };

  // Destroying it removes it from the turnstile.
  class Lane {
   public:
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane();
    // The lane may have work to start; `has_deletion`: including a deletion. `start` is called in
    // later turns of the loop.
    void wake(bool has_deletion = false);

   private:
    friend class Turnstile;
    explicit Lane(std::shared_ptr<Slot::State> state) : state_(std::move(state)) {}
    std::shared_ptr<Slot::State> state_;
  };

  // `slots`: the number of ordinary ones. `on_end`, if any, is called whenever a slot has become
  // free, until the turnstile is destroyed.
  Turnstile(io::Loop& loop, std::size_t slots, std::function<void()> on_end = {});
  Turnstile(const Turnstile&) = delete;
  Turnstile& operator=(const Turnstile&) = delete;
  ~Turnstile();

  // Starts one piece of work in a slot of the offer, or says why it has not.
  using Start = std::function<Started(Offer& offer)>;
  [[nodiscard]] std::unique_ptr<Lane> lane(Start start, std::uint32_t weight = 1);

  // Without the slots for deletions alone.
  [[nodiscard]] std::size_t slots_free() const;

 private:
  std::shared_ptr<Slot::State> state_;
};

}  // namespace hangar::reconcile
