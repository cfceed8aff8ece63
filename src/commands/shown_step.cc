#include "commands/shown_step.h"

#include "base/time.h"
#include "commands/streams.h"
#include "io/loop.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::commands {

namespace {

std::string_view stage_of(std::string_view step) {
  return step.substr(0, step.find(','));
}

}  // namespace

std::string step_text(std::string_view step, Duration since) {
  constexpr std::chrono::seconds kShort{2};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  if (seconds < kShort) return std::string(step);
  return fmt::format("{} ({} s)", step, seconds.count());
}

ShownStep::ShownStep(io::Loop& loop, Say show, Duration quiet, Duration every)
    : loop_(loop), show_(std::move(show)), every_(every), began_(io::Loop::now()) {
  if (show_) show_later(quiet);
}

ShownStep::~ShownStep() {
  if (is_shown_) show_({});
}

void ShownStep::is(std::string step) {
  if (stage_of(step) != stage_of(step_)) began_ = io::Loop::now();
  step_ = std::move(step);
  if (is_shown_) tell();
}

void ShownStep::show_later(Duration delay) {
  timer_ = loop_.after(delay, [this] {
    if (!step_.empty()) {
      is_shown_ = true;
      tell();
    }
    show_later(every_);
  });
}

void ShownStep::tell() const {
  show_(step_text(step_, io::Loop::now() - began_));
}

}  // namespace hangar::commands
