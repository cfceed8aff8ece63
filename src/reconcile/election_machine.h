// Which of several processes leads, decided on a Lease, without any I/O.
//
// The promise: of all machines with different identities on one Lease, at no moment two answer
// is_leading() with true, unless somebody deletes or rewrites the Lease. It needs no common clock,
// only clocks that run about equally fast. Only local, monotonic time counts, never a time written
// in the Lease: the leader counts from the start of a request, the others from the moment they saw
// the Lease change. The leader stops by itself `renew_deadline` after the start of its last
// successful renewal; others take over no earlier than `lease_duration` after they saw that
// renewal. Clocks may differ in speed by the ratio of the two.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "reconcile/limits.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <variant>

namespace hangar::reconcile {

// The spec of a coordination.k8s.io/v1 Lease.
struct LeaseRecord {
  std::string holder;  // Empty: released.
  Duration lease_duration{};
  WallTime acquired_at;
  WallTime renewed_at;
  std::int64_t transitions = 0;
  std::string resource_version;  // Empty: it has to be created.
};

class ElectionMachine {
 public:
  struct Options {
    // No other process that may still run has this identity: two with one identity would both lead.
    // A process may have the identity of one that has certainly exited, such as a container that is
    // restarted in its pod: it takes the Lease at once.
    std::string identity;
    Duration lease_duration = limits::kLeaseDuration;
    Duration renew_deadline = limits::kLeaseRenewDeadline;
    Duration retry_period = limits::kLeaseRetryPeriod;
  };
  ElectionMachine(Options options, std::uint64_t seed);

  // The next thing to do; the caller then reports its result. Exactly one is open at any time.
  struct Read {};  // on_read().
  struct Write {   // on_written(). Only if the Lease still has that resource_version.
    LeaseRecord record;
  };
  struct Wait {  // on_due().
    Duration delay{};
  };
  struct Done {};  // After release().
  using Next = std::variant<Read, Write, Wait, Done>;

  [[nodiscard]] Next start() { return Read{}; }
  [[nodiscard]] Next on_read(Result<LeaseRecord> read, Instant now, WallTime wall_now);
  // `written`: the Lease as the server has it now.
  [[nodiscard]] Next on_written(Result<LeaseRecord> written, Instant now);
  [[nodiscard]] Next on_due(Instant now, WallTime wall_now);

  // Replaces the next thing to do: stops leading at once, and releases the Lease if this process
  // certainly holds it.
  [[nodiscard]] Next release(WallTime wall_now);

  [[nodiscard]] bool is_leading(Instant now) const {
    return leading_until_.has_value() && now < *leading_until_;
  }
  // When is_leading() turns false unless a renewal succeeds before.
  [[nodiscard]] std::optional<Instant> leading_until() const { return leading_until_; }
  // The holder of the Lease as last seen; empty: none.
  [[nodiscard]] std::string holder() const { return observed_ ? observed_->holder : ""; }

 private:
  [[nodiscard]] Next claim(Instant now, WallTime wall_now);
  void observe(LeaseRecord record, Instant now);
  [[nodiscard]] bool may_take(Instant now) const;
  // How long the present holder keeps the Lease without renewing it. Requires that there is a
  // holder.
  [[nodiscard]] Duration foreign_duration() const;
  [[nodiscard]] Wait wait_for_turn();
  // A random time of up to `periods_max` retry periods.
  [[nodiscard]] Duration spread(double periods_max);

  const Options options_;
  std::mt19937_64 random_;

  std::optional<LeaseRecord> observed_;  // None: it does not exist, or its state is unknown.
  Instant observed_at_;                  // When observed_ was first seen as it is.
  // observed_ is the server's state, as far as we know: the outcome of each of our writes is known.
  bool is_certain_ = false;
  Instant write_begun_at_;
  std::optional<Instant> leading_until_;
  bool is_releasing_ = false;
};

}  // namespace hangar::reconcile
