// The flight recorder: what each turn of each guest was woken by, asked for and cost, written to
// files behind the work.
//
// Recording is a copy into memory. A thread of the recorder's own writes that to disk half a second
// later, so that a disk which is slow, full or hangs holds up neither the loop nor guests: what
// waits for it is bounded, what is beyond is lost and counted. Where a write fails, recording
// stops; that is said once, tried again now and then, and said when it goes on.
//
// While nothing happens the recorder holds no memory for any guest.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "recorder/files.h"
#include "recorder/format.h"
#include "recorder/limits.h"
#include "recorder/record.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

namespace hangar::recorder {

// Loop thread.
class Recorder {
 public:
  struct Options {
    std::filesystem::path directory;
    FileLimits limits;
    Duration retry_after = kRetryAfter;  // After a write that failed.
  };
  Recorder(io::Loop& loop, Options options, Metrics& metrics, Log log);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  // The loop has ended.
  ~Recorder();

  void record(const Turn& turn);
  void record(const Asked& asked);
  void record(const Answered& answered);
  void record(const Slept& slept);

  // Waits until everything is written, for a second or two at most.
  [[nodiscard]] io::Task<void> flush();

 private:
  // Of the thread that writes.
  struct Written {
    std::uint64_t bytes = 0;  // Of the block.
    std::uint64_t records = 0;
    Instant first;
    bool tells = false;  // What was missing when it was begun.
    Result<> result;
    std::uint64_t files_bytes = 0;
  };

  template <class Kind>
  void put(const Kind& record);
  void write();
  void on_written(const Written& written);
  void lose(std::uint64_t count, Instant since);
  void care();

  io::Loop& loop_;
  const Log log_;
  const Duration retry_after_;
  Counter& records_;
  Counter& lost_;
  Gauge& files_bytes_;
  Gauge& is_stopped_;

  Block block_;
  Instant block_began_;
  io::Loop::Timer write_timer_;
  io::Loop::Timer care_timer_;
  std::uint64_t waiting_bytes_ = 0;
  std::optional<Instant> stopped_at_;  // Of the last write that failed; nothing: all is well.
  Lost missing_;                       // That no file says yet.
  std::optional<Lost> told_;           // Of that, what a block that is not written yet says.
  bool block_tells_ = false;           // That is the present block.

  // Of the thread alone, which ends before it.
  const std::unique_ptr<Files> files_;
  io::Workers thread_;
};

}  // namespace hangar::recorder
