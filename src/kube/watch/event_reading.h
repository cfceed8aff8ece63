// Parses the lines of one watch in their order: long ones on a worker, since tenants decide how
// large objects are, and the loop has others to serve meanwhile. Changes are told how much
// processor time it took to read them (Change::read_time). Loop thread only.
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
    // An event failed that was handled later than in take(): nothing more should be taken.
    std::function<void()> on_late_failure;
  };
  // `workers` outlives this object, and works in the name of `whose`; null: all lines are parsed at
  // once.
  EventReading(io::Loop& loop, io::Workers* workers, Consumer whose, Handler handler);
  EventReading(const EventReading&) = delete;
  EventReading& operator=(const EventReading&) = delete;
  // Requires that finish() has ended, or that nothing was taken.
  ~EventReading();

  // Handles the line at once, or after the long ones before it. The error of the first event that
  // failed. While more than limits::kWatchLinesWaitingBytesMax wait, nothing is left to workers.
  [[nodiscard]] Result<> take(std::string_view line);
  // Drops what waits.
  void drop();
  // Waits until everything that was taken has been handled. Error as of take().
  [[nodiscard]] io::Task<Result<>> finish();

 private:
  using Line = std::shared_ptr<const std::string>;

  [[nodiscard]] io::Task<void> read_later();
  [[nodiscard]] io::Task<void> read_in_order();
  void read_now();
  // What a worker reads in one go.
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
  // Changes when `waiting_` is emptied by others than read_later(): what its worker returns then
  // does not count any more.
  std::uint64_t round_ = 0;
  std::optional<Error> failure_;
  // Stays when the handler throws: no later event may be handled then, since this one is lost.
  bool is_handling_ = false;
  io::Event read_;  // read_later() has ended.
};

}  // namespace hangar::kube
