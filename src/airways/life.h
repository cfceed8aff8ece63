// Decides when the flight of one instance runs, what the instance waits for, and when to look
// again.
//
// No I/O: the caller reports events, requests the next act and carries it out. At most one act is
// in progress at a time; the caller reports its result. All of this state can be lost: an instance
// that is new here is evaluated.
#pragma once

#include "airways/resource_ref.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>

namespace hangar::airways {

class Life {
 public:
  // Events --------------------------------------------------------------------------------------

  // The instance, its Airway or its actor changed: its flight has to run.
  void on_changed() { is_to_evaluate_ = true; }
  // A resource that the last run looked up or made changed, and the mode follows it.
  void on_tracked(const ResourceRef& resource) { changed_.insert(resource); }
  // A child changed. Returns whether the instance must be looked at. A repetition of our own write
  // is no reason. Neither is a change that Ready does not follow: after a failure, which is retried
  // anyway, and if the flight sets Ready itself.
  [[nodiscard]] bool on_child(bool is_our_own_write) const;

  // The next act --------------------------------------------------------------------------------

  enum class Act : std::uint8_t {
    Nothing,
    Evaluate,  // Run the flight and carry out what it prints.
    Settle,    // See how ready the release is.
    TakeDown,
  };
  struct Facts {
    bool is_being_deleted = false;  // It has our finalizer: something may have been made.
    bool has_flight = false;        // It can be evaluated.
    // The shortest time between evaluations that tracked resources cause.
    Duration tracked_interval_min{0};
  };
  // The next act; it counts as started. Until it has finished, every change of a child must be
  // looked at. `has_news` tells whether a tracked resource differs from what our last apply left.
  [[nodiscard]] Act begin(const Facts& facts,
                          const std::function<bool(const ResourceRef&)>& has_news, Instant now);

  // What the last act was due for besides changes.
  enum class Due : std::uint8_t { Nothing, Retry, Drift, Release };
  [[nodiscard]] Due due() const { return due_; }

  // Results -------------------------------------------------------------------------------------

  struct ReleaseWait {
    // How far the release has come: greater for a later stage, and greatest for the prune.
    std::size_t step = 0;
    Duration patience{0};  // How long it may wait there in total.
  };
  // A stage is not ready, or a pruned resource is not gone: when that changes, the release
  // continues. False if the wait has taken longer than the patience.
  [[nodiscard]] bool on_release_waits(const ReleaseWait& wait, Instant now);
  // Everything is applied, and pruned.
  void on_released();
  // Reports whether the release is ready. If not, changes of children are awaited.
  void on_settled(bool is_ready);
  // Reports whether the flight sets Ready itself.
  void on_ready_owned(bool is_flights) { is_ready_flights_ = is_flights; }
  // The evaluation succeeded, or failed. After a failure, the next look runs the flight again.
  void on_evaluated(Duration drift_interval, Instant now);
  void on_failed();
  // The instance is gone, or nothing can be done for it.
  void on_ended() { waits_for_ = Waiting::Nothing; }

  // Queries -------------------------------------------------------------------------------------

  // Whether a change waits for an evaluation.
  [[nodiscard]] bool has_changes() const { return is_to_evaluate_ || !changed_.empty(); }
  // How much longer changes of tracked resources cause no evaluation.
  [[nodiscard]] Duration tracked_in(Instant now) const;
  [[nodiscard]] bool waits_for_release() const { return waits_for_ == Waiting::Release; }
  [[nodiscard]] bool is_ready_flights() const { return is_ready_flights_; }
  // How much longer a waiting release may wait.
  [[nodiscard]] Duration patience_left(Instant now) const;
  // When to look again unless an event comes first: for drift, for a tracked resource that has
  // changed, and after `look_again` if it is given.
  [[nodiscard]] std::optional<Duration> next_look(std::optional<Duration> look_again,
                                                  Instant now) const;

 private:
  // The effect of the next change of a child.
  enum class Waiting : std::uint8_t { Nothing, Readiness, Release };

  Due due_ = Due::Nothing;
  bool has_failed_ = false;     // The last evaluation, and it is to be repeated.
  bool is_to_evaluate_ = true;  // begin() resets it, and `changed_` unless that has to wait.
  std::set<ResourceRef> changed_;
  std::optional<Instant> tracked_at_;  // When `changed_` counts again.
  Waiting waits_for_ = Waiting::Nothing;
  std::optional<Instant> release_until_;  // When a release that waits fails.
  std::size_t release_step_ = 0;          // The furthest one that it has waited at since.
  std::optional<Instant> drift_at_;
  bool is_ready_flights_ = false;
};

}  // namespace hangar::airways
