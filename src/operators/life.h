// Decides when a guest starts, wakes, goes to sleep and is retried.
//
// No I/O: the caller reports events, asks for the next act and carries it out. At most one act is
// in progress at a time; the caller reports how it ended.
#pragma once

#include "base/time.h"
#include "operators/limits.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangar::operators {

enum class Phase : std::uint8_t {
  Starting,   // Before the end of its first turn.
  Running,    // In memory.
  Asleep,     // On disk.
  BackOff,    // It failed; a new instance starts later.
  Completed,  // It ended by itself, without an error.
};
[[nodiscard]] std::string_view name_of(Phase phase);

class Life {
 public:
  struct Options {
    // How long the guest is idle before it goes to sleep. Nothing: it never sleeps.
    std::optional<Duration> sleep_after;
    // The same while an answer is expected, if that is longer.
    Duration answer_wait = limits::kOperatorAnswerWait;
    Duration backoff_min = limits::kOperatorBackoffMin;
    Duration backoff_max = limits::kOperatorBackoffMax;
    // A guest that has run for this long starts the back-off from its minimum again.
    Duration stable_min = limits::kOperatorStableMin;
    // How long after a failed attempt to sleep the next one may start, even if memory is short.
    Duration sleep_retry = limits::kOperatorSleepRetry;
  };
  explicit Life(Options options) : options_(options) {}

  enum class Act : std::uint8_t {
    Nothing,
    Start,  // Its first turn, in a new instance.
    Wake,   // A turn with all arrivals; resumes the guest if it sleeps.
    Sleep,
    Load,  // Resumes the guest without a turn.
  };
  struct Step {
    Act act = Act::Nothing;
    // With Nothing: when to ask again unless an event comes first.
    std::optional<Instant> ask_again = {};
  };
  // A plan for the time until the guest next wakes.
  struct Nap {
    Instant sleep_at;
    std::optional<Instant> load_at = {};  // Loaded once between then
    Instant drop_at = {};                 // and then, if it sleeps.
  };
  // The next act; it counts as begun. `nap` is taken instead of Options::sleep_after, except by a
  // guest that never sleeps.
  [[nodiscard]] Step next(Instant now, const Nap* nap = nullptr);

  // Something arrived for the guest. Ignored if no instance runs: arrivals for an earlier instance
  // are not meant for the next one.
  void on_arrival();
  // All arrivals until now are part of the turn in progress.
  void on_handed_over() { has_arrivals_ = false; }
  // The turn that was to begin does not: what has arrived waits for a later one.
  void on_turn_put_off(Instant now);
  // Tells whether an answer is expected soon.
  void expect_answer(bool is_expected) { expects_answer_ = is_expected; }
  // Whether the guest shall have one more turn before it goes to sleep. It stays pressed meanwhile.
  void want_last_turn(bool is_wanted) { wants_last_turn_ = is_wanted; }
  // The turn in progress is nothing that the guest was woken for: it has been idle since the last
  // one that was.
  void stay_idle() { stays_idle_ = true; }
  enum class TurnEnd : std::uint8_t { Waits, Completed, Failed };
  void on_turn_ended(TurnEnd end, Instant now);
  enum class SleepEnd : std::uint8_t { Asleep, StaysResident };
  void on_sleep_ended(SleepEnd end, Instant now);
  enum class LoadEnd : std::uint8_t { Loaded, StaysAsleep };
  void on_load_ended(LoadEnd end, Instant now);
  // Memory is short: the guest shall sleep as soon as it is idle. Valid until it next wakes.
  void press() { is_pressed_ = true; }
  // Others have a better right to what the guest holds: it sleeps as soon as no act is in progress,
  // although something has arrived and although it would never sleep otherwise. A guest that cannot
  // sleep then starts anew. Valid until it has left memory.
  void evict() { is_evicted_ = true; }
  // The host is about to be replaced: no turn begins any more, and a guest in memory sleeps as soon
  // as no answer is expected, although something has arrived.
  void hold() { is_held_ = true; }
  // An instance of the host before this one, which sleeps. Before all else.
  struct Past {
    Instant started_at;
    Instant idle_since;
    std::uint64_t start_count = 0;
  };
  void take_over(const Past& past);
  // The guest has to start anew for a reason that is not its own; the back-off is that of a
  // failure. If an act is in progress, this takes effect when it has ended.
  void fail(Instant now);

  [[nodiscard]] Phase phase() const;
  [[nodiscard]] bool is_busy() const { return state_ == State::Busy; }
  [[nodiscard]] bool is_resident() const { return state_ == State::Resident; }
  [[nodiscard]] bool is_asleep() const { return state_ == State::Asleep; }
  // Whether hold() has still to wait for something: the end of an act, or the next one.
  [[nodiscard]] bool is_settling() const {
    return state_ == State::Busy || (state_ == State::Resident && may_sleep_now_held());
  }
  // It is in memory and does not leave it now: a turn for it costs no wake.
  [[nodiscard]] bool may_have_turn() const {
    return state_ == State::Resident ||
           (state_ == State::Busy && act_ != Act::Sleep && act_ != Act::Load);
  }
  // It waits, in memory or asleep, and nothing has arrived.
  [[nodiscard]] bool is_idle() const {
    return (state_ == State::Resident || state_ == State::Asleep) && !has_arrivals_;
  }
  // Whether press() would make sense now.
  [[nodiscard]] bool may_be_pressed() const {
    return state_ == State::Resident && options_.sleep_after && !has_arrivals_ && !is_pressed_;
  }
  // It was pressed and does not sleep yet.
  [[nodiscard]] bool is_pressed() const { return is_pressed_; }
  [[nodiscard]] bool is_held() const { return is_held_; }
  // It was evicted and is still in memory.
  [[nodiscard]] bool is_evicted() const { return is_evicted_; }
  // The end of its last activity.
  [[nodiscard]] Instant idle_since() const { return idle_since_; }
  // Start of the present instance, or of the last one.
  [[nodiscard]] Instant started_at() const { return started_at_; }
  [[nodiscard]] std::uint64_t start_count() const { return start_count_; }
  // The time of the next start, in Phase::BackOff.
  [[nodiscard]] Instant retry_at() const { return retry_at_; }

 private:
  enum class State : std::uint8_t { New, Busy, Resident, Asleep, BackOff, Completed };

  [[nodiscard]] Step begin(Act act);
  // It can sleep, and has not tried in vain since it is held.
  [[nodiscard]] bool may_sleep_now_held() const {
    return options_.sleep_after.has_value() && !has_slept_in_vain_;
  }

  const Options options_;
  State state_ = State::New;
  Act act_ = Act::Nothing;  // The act in progress while Busy.
  bool has_arrivals_ = false;
  bool expects_answer_ = false;
  bool is_pressed_ = false;
  bool is_evicted_ = false;
  bool is_held_ = false;
  bool has_slept_in_vain_ = false;  // While held.
  bool must_fail_ = false;
  bool wants_last_turn_ = false;
  bool stays_idle_ = false;
  std::optional<Instant> loaded_for_;  // Nap::load_at of the last load since it last woke.
  std::uint32_t failures_ = 0;
  std::uint64_t start_count_ = 0;
  Instant started_at_;
  Instant idle_since_;
  Instant sleep_not_before_;
  Instant retry_at_;
};

}  // namespace hangar::operators
