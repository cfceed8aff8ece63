// Shows a person the present step of a slow command: "compiling (12 s)". A step of less than half a
// second is not shown, so that a command that finds everything in its cache prints nothing.
#pragma once

#include "base/time.h"
#include "commands/streams.h"
#include "io/loop.h"

#include <chrono>
#include <string>
#include <string_view>

namespace hangar::commands {

// The step with its duration, from two seconds on.
[[nodiscard]] std::string step_text(std::string_view step, Duration since);

// Loop thread only, for steps that let the loop run.
class ShownStep {
 public:
  static constexpr std::chrono::milliseconds kQuiet{500};
  static constexpr std::chrono::seconds kEvery{1};

  // `show`: receives the text to show, and an empty one at the end if there was any; null: shows
  // nothing. `loop` outlives this object.
  ShownStep(io::Loop& loop, Say show, Duration quiet = kQuiet, Duration every = kEvery);
  ShownStep(const ShownStep&) = delete;
  ShownStep& operator=(const ShownStep&) = delete;
  ~ShownStep();

  // Sets the present step. The text after a comma is its progress: the duration is that of the text
  // before.
  void is(std::string step);

 private:
  void show_later(Duration delay);
  void tell() const;

  io::Loop& loop_;
  const Say show_;
  const Duration every_;
  std::string step_;
  Instant began_;
  bool is_shown_ = false;
  io::Loop::Timer timer_;
};

}  // namespace hangar::commands
