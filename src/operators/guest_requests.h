// What one guest has asked for and not been handed yet: its requests at the gateway, its delays,
// and what has arrived of both.
//
// Requests begin as fast as the operator's rate allows. Answers are collected while the guest is in
// a turn or asleep, and handed over together in its next turn. Of one that sleeps nothing is kept
// but the watches and delays that will wake it.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/slots.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "gateway/gateway.h"
#include "io/loop.h"
#include "operators/mailbox.h"
#include "operators/operator.h"
#include "operators/operator_ledger.h"
#include "operators/recording.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hangar::operators {

// Loop thread only.
class GuestRequests {
 public:
  // All of it outlives the requests.
  struct Parts {
    io::Loop& loop;
    gateway::Gateway& gateway;
  };
  // Whose they are. Called from within the gateway and timers; never destroys the requests there.
  class Owner {
   public:
    // As whom they are asked.
    [[nodiscard]] virtual kube::Identity identity() const = 0;
    // A bookmark is no reason to wake one that is not.
    [[nodiscard]] virtual bool is_resident() const = 0;
    // Something that the guest can use has arrived.
    virtual void on_arrival() = 0;
    // The guest does not take what it asked for. All of it is gone, and nothing arrives any more
    // until reopen().
    virtual void on_overflow() = 0;

   protected:
    ~Owner() = default;
  };
  // Both outlive it.
  GuestRequests(const Parts& parts, Owner& owner, OperatorLedger& ledger,
                const OperatorLimits& limits);
  GuestRequests(const GuestRequests&) = delete;
  GuestRequests& operator=(const GuestRequests&) = delete;
  ~GuestRequests();

  // What the guest asked for in the turn of that number, and what it does not wait for any more.
  // Requests begin with begin_due().
  void take_up(abi::kube_runtime::TurnOutcome& outcome, std::uint64_t turn);
  void begin_due();
  // All that has arrived, in order. What has ended is forgotten here.
  [[nodiscard]] std::vector<abi::kube_runtime::Wakeup> take_arrivals(Woken& woken);

  // Drops all that was meant for the guest.
  void clear();
  // For a guest that begins anew.
  void reopen();
  // The guest is not in memory: what only one at work needs is not kept.
  void rest();

  // Nothing has arrived or will: the guest would never be woken.
  [[nodiscard]] bool is_empty() const;
  // An answer that ends by itself is on its way.
  [[nodiscard]] bool awaits_answer() const { return plain_calls_ > 0; }
  // Events and answers that wait for the guest's next turn, and since when the oldest does.
  [[nodiscard]] std::size_t waiting_count() const { return inbox_ ? inbox_->mailbox.size() : 0; }
  [[nodiscard]] std::optional<Instant> first_arrival() const {
    return inbox_ ? inbox_->mailbox.first_arrival() : std::nullopt;
  }

 private:
  class Call;
  struct Delay {
    std::uint64_t id = 0;
    io::Loop::Timer timer;
  };
  using Calls = std::vector<std::unique_ptr<Call>, slots::Allocator<std::unique_ptr<Call>>>;

  // Mostly null in one that sleeps: there are thousands.
  struct Inbox {
    Mailbox mailbox;
    // Held back by the rate limit.
    struct HeldBack {
      abi::kube_runtime::HttpCall call;
      std::uint64_t turn = 0;  // That asked for it.
    };
    std::vector<HeldBack> held_back;
    io::Loop::Timer next;
  };
  [[nodiscard]] Inbox& inbox() {
    if (!inbox_) inbox_ = std::make_unique<Inbox>();
    return *inbox_;
  }

  [[nodiscard]] Calls::iterator find_call(std::uint64_t id);
  void cancel(std::span<const std::uint64_t> ids);
  void arrive(Mailbox::Arrival arrival);
  void overflow();

  const Parts& parts_;
  Owner& owner_;
  OperatorLedger& ledger_;
  // Both by their ids, which ascend.
  Calls calls_;
  std::vector<Delay, slots::Allocator<Delay>> delays_;
  std::uint32_t plain_calls_ = 0;    // Of the calls, those that are no streams: answered soon.
  std::optional<TokenBucket> rate_;  // Nothing: as many as it likes.
  std::unique_ptr<Inbox> inbox_;
};

}  // namespace hangar::operators
