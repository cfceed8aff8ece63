#include "reconcile/election_machine.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace hangar::reconcile {

namespace {

// The content of a Lease is not trusted: a holder cannot claim it for a year.
constexpr std::chrono::minutes kForeignDurationMax{10};

// client-go's: candidates that wait for the same Lease do not retry in step.
constexpr double kRetryJitter = 1.2;
// The same for candidates that wait for the same Lease to expire.
constexpr double kTakeSpread = 0.1;

}  // namespace

ElectionMachine::ElectionMachine(Options options, std::uint64_t seed)
    : options_(std::move(options)), random_(seed) {
  HANGAR_ASSERT(!options_.identity.empty(), "an empty holder is a released Lease");
  HANGAR_ASSERT(options_.renew_deadline < options_.lease_duration,
                "a leader must stop before another may start");
  HANGAR_ASSERT(options_.retry_period < options_.renew_deadline, "a leader must get to renew");
}

ElectionMachine::Next ElectionMachine::on_read(Result<LeaseRecord> read, Instant now,
                                               WallTime wall_now) {
  if (!read && read.error().kind() != ErrorKind::NotFound) return wait_for_turn();
  is_certain_ = true;
  if (!read) {
    observed_.reset();
    // The Lease was deleted without asking us: another candidate may create it and lead at once.
    leading_until_.reset();
    return claim(now, wall_now);
  }
  observe(*std::move(read), now);
  if (observed_->holder != options_.identity) leading_until_.reset();
  if (may_take(now)) return claim(now, wall_now);
  // No later than the Lease may be free: polling every few seconds would add that time to every
  // failover.
  const Duration until_free = observed_at_ + foreign_duration() - now;
  return Wait{std::min(wait_for_turn().delay, until_free + spread(kTakeSpread))};
}

ElectionMachine::Next ElectionMachine::on_written(Result<LeaseRecord> written, Instant now) {
  if (is_releasing_) return Done{};
  if (!written) {
    // The write may have taken effect, now or later. The next read shows it.
    is_certain_ = false;
    if (written.error().kind() == ErrorKind::NotFound) {
      leading_until_.reset();  // Deleted: any candidate may create it at any moment.
      // If the Lease cannot be created either, its namespace does not exist.
      if (!observed_) return wait_for_turn();
      return Read{};
    }
    if (written.error().kind() != ErrorKind::Conflict) return wait_for_turn();
    // Another client wrote first: read again soon, at a random time, so that the losers do not read
    // in step.
    const double share = std::uniform_real_distribution<double>(0.05, 0.2)(random_);
    return Wait{std::chrono::duration_cast<Duration>(options_.retry_period * share)};
  }
  observe(*std::move(written), now);
  is_certain_ = true;
  // Counted from the start of the request: others cannot have seen the renewal earlier.
  leading_until_ = write_begun_at_ + options_.renew_deadline;
  return Wait{options_.retry_period};
}

ElectionMachine::Next ElectionMachine::on_due(Instant now, WallTime wall_now) {
  const bool holds_it = is_certain_ && observed_ && observed_->holder == options_.identity;
  // A leader that was suspended meanwhile reads first: another process may hold the Lease.
  if (holds_it && is_leading(now)) return claim(now, wall_now);
  return Read{};
}

ElectionMachine::Next ElectionMachine::release(WallTime wall_now) {
  leading_until_.reset();
  is_releasing_ = true;
  const bool holds_it = is_certain_ && observed_ && observed_->holder == options_.identity;
  if (!holds_it) return Done{};  // The Lease expires.
  LeaseRecord record = *observed_;
  record.holder.clear();
  record.lease_duration = std::chrono::seconds(1);
  record.renewed_at = wall_now;
  record.acquired_at = wall_now;
  return Write{std::move(record)};
}

ElectionMachine::Next ElectionMachine::claim(Instant now, WallTime wall_now) {
  LeaseRecord record = observed_.value_or(LeaseRecord());
  if (record.holder != options_.identity) {
    if (observed_) ++record.transitions;
    record.holder = options_.identity;
    record.acquired_at = wall_now;
  }
  record.lease_duration = options_.lease_duration;
  record.renewed_at = wall_now;
  write_begun_at_ = now;
  return Write{std::move(record)};
}

void ElectionMachine::observe(LeaseRecord record, Instant now) {
  const bool is_news = !observed_ || observed_->resource_version != record.resource_version;
  if (is_news) observed_at_ = now;
  observed_ = std::move(record);
}

bool ElectionMachine::may_take(Instant now) const {
  if (observed_->holder.empty() || observed_->holder == options_.identity) return true;
  return now - observed_at_ >= foreign_duration();
}

Duration ElectionMachine::foreign_duration() const {
  const Duration asked_for = std::min<Duration>(observed_->lease_duration, kForeignDurationMax);
  return std::max(asked_for, options_.lease_duration);
}

ElectionMachine::Wait ElectionMachine::wait_for_turn() {
  return Wait{options_.retry_period + spread(kRetryJitter)};
}

Duration ElectionMachine::spread(double periods_max) {
  const double share = std::uniform_real_distribution<double>(0.0, periods_max)(random_);
  return std::chrono::duration_cast<Duration>(options_.retry_period * share);
}

}  // namespace hangar::reconcile
