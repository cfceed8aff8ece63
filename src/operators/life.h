// The life of one guest, as decisions: when it starts, wakes, goes to sleep, and tries again.
//
// No I/O: it is told what happened and asked what to do next. At most one act is under way at a
// time; whoever carries it out says how it ended.
#pragma once

#include "base/time.h"
#include "operators/limits.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangar::operators {

enum class Phase : std::uint8_t {
  Starting,   // Not past its first turn yet.
  Running,    // In memory.
  Asleep,     // On disk.
  BackOff,    // It failed, and is started anew later.
  Completed,  // It ended by itself, and said that all was well.
};
[[nodiscard]] std::string_view name_of(Phase phase);

class Life {
 public:
  struct Options {
    // Without anything to do, until it goes to sleep. Nothing: never, whatever happens.
    std::optional<Duration> sleep_after;
    // The same while an answer is on its way to it, if that is longer.
    Duration answer_wait = limits::kOperatorAnswerWait;
    Duration backoff_min = limits::kOperatorBackoffMin;
    Duration backoff_max = limits::kOperatorBackoffMax;
    // A guest that ran for so long has no failures behind it.
    Duration stable_min = limits::kOperatorStableMin;
    // After an attempt to sleep that failed, until the next, whoever asks for it.
    Duration sleep_retry = limits::kOperatorSleepRetry;
  };
  explicit Life(Options options) : options_(options) {}

  enum class Act : std::uint8_t {
    Nothing,
    Start,  // Its first turn, in a new instance.
    Wake,   // A turn with all that has arrived, out of sleep if need be.
    Sleep,
  };
  struct Step {
    Act act = Act::Nothing;
    // With Nothing: when to ask again if nothing happens before.
    std::optional<Instant> ask_again = {};
  };
  // The act counts as begun.
  [[nodiscard]] Step next(Instant now);

  // Something arrived for the guest. Means nothing to one that does not run: what was for an
  // earlier instance is not for the next.
  void on_arrival();
  // All that has arrived until now is part of the turn under way.
  void on_handed_over() { has_arrivals_ = false; }
  // Whether something is to arrive soon.
  void expect_answer(bool is_expected) { expects_answer_ = is_expected; }
  enum class TurnEnd : std::uint8_t { Waits, Completed, Failed };
  void on_turn_ended(TurnEnd end, Instant now);
  enum class SleepEnd : std::uint8_t { Asleep, StaysResident };
  void on_sleep_ended(SleepEnd end, Instant now);
  // Memory is short: it is to sleep as soon as it has nothing to do. Until it next wakes.
  void press() { is_pressed_ = true; }
  // The guest is to start anew although it did nothing wrong itself; with the back-off of a
  // failure. During an act: once that has ended.
  void fail(Instant now);

  [[nodiscard]] Phase phase() const;
  [[nodiscard]] bool is_busy() const { return state_ == State::Busy; }
  [[nodiscard]] bool is_resident() const { return state_ == State::Resident; }
  // Could be asked to sleep now.
  [[nodiscard]] bool may_be_pressed() const {
    return state_ == State::Resident && options_.sleep_after && !has_arrivals_ && !is_pressed_;
  }
  // It was asked to, and has not done so yet.
  [[nodiscard]] bool is_pressed() const { return is_pressed_; }
  // Since it last did anything.
  [[nodiscard]] Instant idle_since() const { return idle_since_; }
  // The present instance, or the last one.
  [[nodiscard]] Instant started_at() const { return started_at_; }
  [[nodiscard]] std::uint64_t start_count() const { return start_count_; }
  // With Phase::BackOff.
  [[nodiscard]] Instant retry_at() const { return retry_at_; }

 private:
  enum class State : std::uint8_t { New, Busy, Resident, Asleep, BackOff, Completed };

  [[nodiscard]] Step begin(Act act);

  const Options options_;
  State state_ = State::New;
  Act act_ = Act::Nothing;  // While Busy.
  bool has_arrivals_ = false;
  bool expects_answer_ = false;
  bool is_pressed_ = false;
  bool must_fail_ = false;
  std::uint32_t failures_ = 0;
  std::uint64_t start_count_ = 0;
  Instant started_at_;
  Instant idle_since_;
  Instant sleep_not_before_;
  Instant retry_at_;
};

}  // namespace hangar::operators
