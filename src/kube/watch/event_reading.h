// Parses the lines of one watch in order. Workers parse long lines, since tenants decide how large
// objects are, and the loop has other work to do. Each change carries the processor time that
// reading it took (Change::read_time). Loop thread only.
#pragma once

#include "base/consumer.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/watch/watch_event.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {

class EventReading {
 public:
  struct Handler {
    // An error ends the reading.
    std::function<Result<>(Result<WatchEvent> event)> on_event;
    // An event failed after its take() had returned: take nothing more.
    std::function<void()> on_late_failure;
  };
  // `workers` outlives this object and reads for the consumer `whose`; null: all lines are parsed
  // at once.
  EventReading(io::Loop& loop, io::Workers* workers, Consumer whose, Handler handler);
  EventReading(const EventReading&) = delete;
  EventReading& operator=(const EventReading&) = delete;
  // Requires that finish() has returned, or that nothing was taken.
  ~EventReading();

  // Handles the line at once, or after the long ones before it. Returns the error of the first
  // event that failed. When more than limits::kWatchLinesWaitingBytesMax wait, the loop parses them
  // all now.
  [[nodiscard]] Result<> take(std::string_view line);
  // Drops the lines that wait.
  void drop();
  // Waits until everything that was taken has been handled. Errors as for take().
  [[nodiscard]] io::Task<Result<>> finish();

 private:
  using Line = std::shared_ptr<const std::string>;

  [[nodiscard]] io::Task<void> read_later();
  [[nodiscard]] io::Task<void> read_in_order();
  void read_now();
  // The lines that a worker reads in one go.
  [[nodiscard]] std::vector<Line> first_waiting() const;
  [[nodiscard]] Line next();
  void handle(Result<WatchEvent> event);
  [[nodiscard]] bool has_failed() const { return failure_.has_value() || is_handling_; }
  [[nodiscard]] Result<> status() const;

  io::Loop& loop_;
  io::Workers* const workers_;
  const Consumer whose_;
  const Handler handler_;
  std::deque<Line> waiting_;  // The first ones may be at a worker.
  std::size_t waiting_bytes_ = 0;
  bool is_reading_ = false;  // read_later() runs.
  // Changes when read_now() or drop() empties `waiting_`: what read_later()'s worker returns then
  // is stale.
  std::uint64_t round_ = 0;
  std::optional<Error> failure_;
  // Stays set when the handler throws: no later event may be handled then, since this one is lost.
  bool is_handling_ = false;
  io::Event read_;  // read_later() has ended.
};

}  // namespace hangar::kube
