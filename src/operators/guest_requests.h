// The outstanding requests and delays of one guest, and their arrivals until the guest
// receives them.
//
// Requests start as fast as the operator's rate limit allows. While the guest is in a turn or
// asleep, answers are collected; its next turn receives them together. For a guest that sleeps,
// only the watches and delays that will wake it are kept.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/stepped_reservation.h"
#include "gateway/gateway.h"
#include "io/loop.h"
#include "operators/carried_operator.h"
#include "operators/limits.h"
#include "operators/mailbox.h"
#include "operators/operator.h"
#include "operators/operator_ledger.h"
#include "operators/outbound.h"
#include "operators/recording.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hangar::operators {

// Loop thread only.
class GuestRequests {
 public:
  // All of it outlives the requests.
  struct Parts {
    io::Loop& loop;
    gateway::Gateway& gateway;
    budget::Accounts& answers;  // The memory of answers.
    Outbound& outbound;         // Requests to other servers.
  };
  // The owner of the requests. Called from within the gateway and timers; it never destroys the
  // requests there.
  class Owner {
   public:
    // The identity of the requests.
    [[nodiscard]] virtual kube::Identity identity() const = 0;
    // Who the answers are accounted to.
    [[nodiscard]] virtual budget::Consumer consumer() const = 0;
    // Whether the guest is in memory. A bookmark does not wake a guest that is not.
    [[nodiscard]] virtual bool is_resident() const = 0;
    // Something that the guest can use has arrived.
    virtual void on_arrival() = 0;
    // A bound of the namespace or of the host refuses a request.
    virtual void on_bound(const std::string& message) = 0;
    struct Overflow {
      // All guests of the namespace or of the host have asked for too much. Nothing: the guest does
      // not take what it asked for.
      std::optional<budget::Shortage> shortage = {};
      bool is_of_requests = false;  // The requests take more memory than the answers.
    };
    // All requests of the guest are dropped, and nothing arrives any more until reopen().
    virtual void on_overflow(const Overflow& overflow) = 0;

   protected:
    ~Owner() = default;
  };
  // Owner and ledger outlive the requests.
  GuestRequests(const Parts& parts, Owner& owner, OperatorLedger& ledger,
                const OperatorLimits& limits);
  GuestRequests(const GuestRequests&) = delete;
  GuestRequests& operator=(const GuestRequests&) = delete;
  ~GuestRequests();

  // Takes over what the guest requested in the turn of that number, and what it cancelled.
  // begin_due() starts the requests.
  void take_up(abi::kube_runtime::TurnOutcome& outcome, std::uint64_t turn);
  void begin_due();
  struct Arrivals {
    std::vector<abi::kube_runtime::Wakeup> wakeups;
    bool has_timer = false;   // A delay has ended.
    bool has_stream = false;  // Something of a stream, other than a bookmark that was held back.
  };
  // Everything that has arrived, in order. Finished requests are dropped here.
  [[nodiscard]] Arrivals take_arrivals(Woken& woken);

  // The turn is over, and what was handed over for it is not in memory any more.
  void on_turn_ended();

  // Drops everything for the guest, except what its turn in progress has.
  void clear();
  // Accepts arrivals again, for a new guest.
  void reopen();
  // The guest has left memory: frees what only a guest in memory needs.
  void rest();

  // What another host continues in place of this one, for a guest that sleeps. Unavailable, with
  // the reason, when it cannot. Nothing changes here: the caller clears it.
  [[nodiscard]] Result<CarriedRequests> carry() const;
  // Continues what carry() has returned in another process. Once, before all else. A watch that
  // cannot be continued ends.
  void take_over(CarriedRequests carried);

  // Nothing has arrived or will arrive: the guest would never wake.
  [[nodiscard]] bool is_empty() const;
  // Whether an answer that ends by itself (not a stream) is expected.
  [[nodiscard]] bool awaits_answer() const { return plain_calls_ > 0; }
  // Whether such an answer, or one that the rate limit holds back, has not arrived in full.
  [[nodiscard]] bool is_answer_under_way() const;
  // No such answer is expected or has arrived, and the rate limit holds no request back.
  [[nodiscard]] bool is_settled() const {
    return plain_calls_ == 0 && (!inbox_ || inbox_->held_back.empty());
  }
  // Events and answers that wait for the guest's next turn, and when the oldest arrived.
  [[nodiscard]] std::size_t waiting_count() const { return inbox_ ? inbox_->mailbox.size() : 0; }
  [[nodiscard]] std::optional<Instant> first_arrival() const {
    return inbox_ ? inbox_->mailbox.first_arrival() : std::nullopt;
  }

 private:
  class Call;
  struct Delay {
    std::uint64_t id = 0;
    Instant due;
    io::Loop::Timer timer;
  };
  using Calls = std::vector<std::unique_ptr<Call>, slots::Allocator<std::unique_ptr<Call>>>;

  // Usually null while the guest sleeps, since there are thousands.
  struct Inbox {
    explicit Inbox(budget::SteppedReservation memory_in) : memory(std::move(memory_in)) {}

    Mailbox mailbox;
    std::uint64_t delivered_bytes = 0;  // Handed over for the turn in progress.
    std::uint64_t asked_bytes = 0;      // Of requests whose answers have not begun.
    std::uint64_t delays_bytes = 0;     // Of delays; zero while there are few.
    budget::SteppedReservation memory;  // Of all four.
    [[nodiscard]] std::uint64_t bytes() const {
      return answers_bytes() + asked_bytes + delays_bytes;
    }
    [[nodiscard]] std::uint64_t answers_bytes() const { return mailbox.bytes() + delivered_bytes; }
    // A request that the rate limit holds back.
    struct HeldBack {
      abi::kube_runtime::HttpCall call;
      std::uint64_t turn = 0;  // The turn that requested it.
    };
    std::vector<HeldBack> held_back;
    io::Loop::Timer next;
    io::Loop::Timer due;  // What has arrived by then may wait no longer.
  };
  [[nodiscard]] Inbox& inbox() {
    if (!inbox_) {
      inbox_ = std::make_unique<Inbox>(budget::SteppedReservation(parts_.answers, owner_.consumer(),
                                                                  limits::kAnswersCountedStep));
    }
    return *inbox_;
  }

  [[nodiscard]] Calls::iterator find_call(std::uint64_t id);
  void cancel(std::span<const std::uint64_t> ids);
  void add_delay(std::uint64_t id, Instant due);
  // Whether they take more than before; then account() is due.
  [[nodiscard]] bool count_delays();
  void arrive(Mailbox::Arrival arrival);
  // Tells the owner as soon as what is in the mailbox is due.
  void announce();
  // False, after an overflow, when the namespace or the host has no memory for what has arrived.
  [[nodiscard]] bool account();
  // The same where nothing was added. Requires an inbox.
  void recount();
  void overflow(const Owner::Overflow& what);

  const Parts& parts_;
  Owner& owner_;
  OperatorLedger& ledger_;
  // Both in the order of their ids, which ascend.
  Calls calls_;
  std::vector<Delay, slots::Allocator<Delay>> delays_;
  std::uint32_t plain_calls_ = 0;    // Calls that are not streams: answered soon.
  std::optional<TokenBucket> rate_;  // Nothing: no limit.
  std::unique_ptr<Inbox> inbox_;
};

}  // namespace hangar::operators
