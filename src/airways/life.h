// The life of one instance, as decisions: when its flight is to run, what it waits for, and when to
// look again.
//
// No I/O: it is told what happened and asked what to do. One act is under way at a time; whoever
// carries it out says how it ended. All of it can be lost: an instance that is new here is
// evaluated.
#pragma once

#include "airways/resource_ref.h"
#include "base/time.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

namespace hangar::airways {

class Life {
 public:
  // What happened -------------------------------------------------------------------------------

  // The instance, its Airway or whom it acts as: its flight is to run.
  void on_changed() { is_to_evaluate_ = true; }
  // Something that the last run looked up, or made, as far as its mode cares.
  void on_tracked(const ResourceRef& resource) { changed_.insert(resource); }
  // One of its resources. Whether that is worth a look: what only repeats our own write is not, and
  // neither is what Ready does not follow (after a failure, whose retry comes in its own time, and
  // where Ready is the flight's to say).
  [[nodiscard]] bool on_child(bool is_our_own_write) const;

  // What to do ----------------------------------------------------------------------------------

  enum class Act : std::uint8_t {
    Nothing,
    Evaluate,  // Run the flight and carry out what it prints.
    Settle,    // See how ready the release is.
    TakeDown,
  };
  struct Facts {
    bool is_being_deleted = false;  // With our finalizer on it: something may have been made.
    bool has_flight = false;        // It can be evaluated.
  };
  // The act counts as begun: until it has ended, every change of a child is worth a look.
  // `has_news` tells whether a tracked resource is another than our last apply left it.
  [[nodiscard]] Act begin(const Facts& facts,
                          const std::function<bool(const ResourceRef&)>& has_news, Instant now);

  // How it went ---------------------------------------------------------------------------------

  // A stage is not ready, or what is pruned is not gone: a change of it goes on with the release.
  // False when that has taken longer than `patience` altogether.
  [[nodiscard]] bool on_release_waits(Duration patience, Instant now);
  // Everything is applied, and pruned.
  void on_released();
  // Ready, or not: then it depends on the children.
  void on_settled(bool is_ready);
  // The flight says itself what Ready is; false: it does not (any more).
  void on_ready_owned(bool is_flights) { is_ready_flights_ = is_flights; }
  // The evaluation ended well, or not: then the next look runs the flight again.
  void on_evaluated(Duration drift_interval, Instant now);
  void on_failed();
  // It is gone, or nothing can be done for it.
  void on_ended() { waits_for_ = Waiting::Nothing; }

  // Questions -----------------------------------------------------------------------------------

  [[nodiscard]] bool waits_for_release() const { return waits_for_ == Waiting::Release; }
  [[nodiscard]] bool is_ready_flights() const { return is_ready_flights_; }
  // Of a release that waits: how long it still may.
  [[nodiscard]] Duration patience_left(Instant now) const;
  // When to look again if nothing happens: at drift, and after `look_again` where that is said.
  [[nodiscard]] std::optional<Duration> next_look(std::optional<Duration> look_again,
                                                  Instant now) const;

 private:
  // What the next change of a child means.
  enum class Waiting : std::uint8_t { Nothing, Readiness, Release };

  bool is_to_evaluate_ = true;     // A run that begins takes this,
  std::set<ResourceRef> changed_;  // and this.
  Waiting waits_for_ = Waiting::Nothing;
  std::optional<Instant> release_until_;  // Of a release that waits: then it has failed.
  std::optional<Instant> drift_at_;
  bool is_ready_flights_ = false;
};

}  // namespace hangar::airways
