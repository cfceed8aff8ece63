#include "kube/watch/event_reading.h"

#include "base/assert.h"
#include "base/consumer.h"
#include "base/result.h"
#include "base/time.h"
#include "io/cpu_time.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/slice.h"
#include "io/task.h"
#include "kube/limits.h"
#include "kube/watch/watch_event.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {

namespace {

// The cost of handling an event that has been parsed, in bytes of parsing.
constexpr std::size_t kHandlingCost = 8 * limits::kKiB;

Result<WatchEvent> read_event_of(std::string_view line) {
  const Duration begin = io::thread_cpu_time();
  Result<WatchEvent> event = parse_watch_event(line);
  if (event) {
    if (auto* const change = std::get_if<Change>(&*event)) {
      change->read_time = io::thread_cpu_time() - begin;
    }
  }
  return event;
}

}  // namespace

EventReading::EventReading(io::Loop& loop, io::Workers* workers, Consumer whose, Handler handler)
    : loop_(loop),
      workers_(workers),
      whose_(std::move(whose)),
      handler_(std::move(handler)),
      read_(loop) {}

EventReading::~EventReading() {
  HANGAR_ASSERT(!is_reading_, "no worker is reading its lines");
}

Result<> EventReading::take(std::string_view line) {
  HANGAR_TRY(status());
  const bool is_short = line.size() <= limits::kWatchLineAtOnceBytesMax;
  if (workers_ == nullptr || (is_short && !is_reading_)) {
    handle(read_event_of(line));
    return status();
  }
  waiting_.push_back(std::make_shared<const std::string>(line));
  waiting_bytes_ += line.size();
  if (!std::exchange(is_reading_, true)) {
    loop_.spawn(read_later());
  } else if (waiting_bytes_ > limits::kWatchLinesWaitingBytesMax) {
    read_now();
  }
  return status();
}

void EventReading::drop() {
  waiting_.clear();
  waiting_bytes_ = 0;
  ++round_;
}

io::Task<Result<>> EventReading::finish() {
  while (is_reading_)
    (void)co_await read_.wait({});
  co_return status();
}

io::Task<void> EventReading::read_later() {
  const Result<> read = co_await io::contained(read_in_order());
  if (!read && !failure_) failure_ = read.error();
  if (has_failed()) {
    drop();
    handler_.on_late_failure();
  }
  is_reading_ = false;
  read_.notify_all();
}

io::Task<void> EventReading::read_in_order() {
  io::Slice slice(loop_, limits::kWatchLineAtOnceBytesMax);
  while (!waiting_.empty() && !has_failed()) {
    const bool is_long = waiting_.front()->size() > limits::kWatchLineAtOnceBytesMax;
    std::vector<Result<WatchEvent>> events;
    const std::uint64_t round = round_;
    if (is_long) {
      // Many at a time: on a busy machine the round trip to the worker takes longer than the
      // reading.
      events = co_await workers_->run(whose_, [lines = first_waiting()] {
        std::vector<Result<WatchEvent>> read;
        for (const Line& line : lines)
          read.push_back(read_event_of(*line));
        return read;
      });
      slice.renew();
    } else {
      events.push_back(read_event_of(*waiting_.front()));
    }
    for (Result<WatchEvent>& event : events) {
      if (round != round_ || has_failed()) break;
      const std::size_t size_bytes = next()->size();
      handle(std::move(event));
      // A line that a worker has read costs the loop as much as a short one, however long it was.
      if (slice.is_used_up_by(is_long ? std::min(size_bytes, kHandlingCost) : size_bytes)) {
        HANGAR_ASSERT((co_await slice.rest({})).has_value(),
                      "a sleep without a stop token is not cancelled");
      }
    }
  }
}

std::vector<EventReading::Line> EventReading::first_waiting() const {
  std::vector<Line> lines;
  std::size_t bytes = 0;
  for (const Line& line : waiting_) {
    bytes += line->size();
    if (!lines.empty() && bytes > limits::kWatchLinesReadTogetherBytesMax) break;
    lines.push_back(line);
  }
  return lines;
}

void EventReading::read_now() {
  ++round_;
  while (!waiting_.empty() && !has_failed())
    handle(read_event_of(*next()));
}

EventReading::Line EventReading::next() {
  Line line = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= line->size();
  return line;
}

void EventReading::handle(Result<WatchEvent> event) {
  is_handling_ = true;
  const Result<> handled = handler_.on_event(std::move(event));
  is_handling_ = false;
  if (!handled) failure_ = handled.error();
}

Result<> EventReading::status() const {
  if (failure_) return std::unexpected(*failure_);
  if (is_handling_) return fail(ErrorKind::Unavailable, "an event ended with an exception");
  return {};
}

}  // namespace hangar::kube
