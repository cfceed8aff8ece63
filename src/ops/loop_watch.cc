#include "ops/loop_watch.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "io/loop.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::ops {

namespace {

// Turns should take 2 ms at most. A turn of this length is logged: it is a bug, or the machine is
// out of processor time.
constexpr std::chrono::milliseconds kLongTurn{500};

constexpr std::chrono::seconds kLookPeriod{1};

// A turn that continues is logged once, after this many checks. How long it took is logged at its
// end.
constexpr std::int64_t kLooksUntilReport = 2;

std::vector<double> turn_buckets() {
  return {0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

std::int64_t in_milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

LoopWatch::LoopWatch(io::Loop& main, Metrics& metrics, Log log)
    : main_(main),
      log_(std::move(log)),
      delay_(metrics.histogram("hangar_loop_delay_seconds",
                               "How long work that another thread posts to the main loop waits "
                               "before it starts.",
                               turn_buckets())) {
  Histogram& turns = metrics.histogram(
      "hangar_loop_turn_seconds",
      "Duration of one turn of the main loop; a long turn delays all tenants.", turn_buckets());
  Counter& exceptions = metrics.counter("hangar_loop_exceptions_total",
                                        "Tasks that failed with an unexpected exception.");
  main.observe({.on_turn =
                    [this, &turns](Duration took, std::string_view activity) {
                      turns.observe(in_seconds(took));
                      if (took < kLongTurn) return;
                      log_.warning("a turn of the main loop took long",
                                   {{"for", activity}, {"took_ms", in_milliseconds(took)}});
                    },
                .on_exception =
                    [this, &exceptions](const Error& error, std::string_view activity) {
                      exceptions.add();
                      log_.error("a task failed with an exception",
                                 {{"for", activity}, {"error", error.message()}});
                    }});
}

void LoopWatch::start(io::Loop& watching, Duration dead_after,
                      std::function<void(std::string why)> on_dead) {
  watching_ = &watching;
  looks_until_dead_ = dead_after / kLookPeriod;
  on_dead_ = std::move(on_dead);
  look_later();
}

Result<> LoopWatch::check() const {
  if (why_dead_.empty()) return {};
  return fail(ErrorKind::Unavailable, why_dead_);
}

void LoopWatch::look_later() {
  timer_ = watching_->after(kLookPeriod, [this] {
    look();
    look_later();
  });
}

void LoopWatch::look() {
  const std::optional<io::Loop::RunningTurn> turn = main_.running_turn();
  const Instant began = turn ? turn->began : Instant();
  const bool has_answered = answered_ == asked_;
  // A new turn counts as a sign of life even if the answer waits behind other tasks.
  if (has_answered || began != turn_began_) {
    turn_began_ = began;
    looks_ = 0;
    if (!has_answered) return;
    ++asked_;
    main_.post([this, asked_at = io::Loop::now()] {
      delay_.observe(in_seconds(io::Loop::now() - asked_at));
      ++answered_;
    });
    return;
  }
  ++looks_;
  const std::string activity = turn ? turn->activity : "";
  if (looks_ == kLooksUntilReport) {
    log_.warning("the main loop is held up",
                 {{"for", activity}, {"held_ms", in_milliseconds(looks_ * kLookPeriod)}});
  }
  if (looks_ < looks_until_dead_ || !why_dead_.empty()) return;
  why_dead_ =
      fmt::format("the main loop has not come back for {}{}{}",
                  to_go_duration(looks_ * kLookPeriod), activity.empty() ? "" : " from ", activity);
  on_dead_(why_dead_);
}

}  // namespace hangar::ops
