// The flight recorder: writes the cause, requests and cost of each turn of each guest to files.
//
// Recording copies data into memory. The recorder's thread writes it to disk half a second later,
// so a slow, full or hanging disk delays neither the loop nor guests. The data that waits for the
// disk is bounded, in total and for each namespace; further records are lost and counted. When the
// files are full, the namespaces that hold the most give up their oldest records. When a write
// fails, recording stops; the recorder logs that once, retries after a while, and logs when
// recording continues.
//
// While nothing is recorded, the recorder holds no memory for any guest.
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
#include "recorder/observer.h"
#include "recorder/raw_body.h"
#include "recorder/record.h"
#include "recorder/trace_ids.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace hangar::recorder {

// Loop thread.
class Recorder {
 public:
  struct Options {
    std::filesystem::path directory;
    FileLimits limits;
    Duration retry_after = kRetryAfter;  // Time from a failed write to the next one.
  };
  Recorder(io::Loop& loop, Options options, Metrics& metrics, Log log);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  // Requires that the loop has stopped.
  ~Recorder();

  // The observer receives each turn and request before it is recorded, until forget().
  void observe(Observer& observer) { observers_.push_back(&observer); }
  void forget(Observer& observer) { std::erase(observers_, &observer); }

  // Requests carry ids of traces from now on; null: they carry none. `ids` outlives the recording.
  void trace_with(const TraceIds* ids) { trace_ids_ = ids; }
  [[nodiscard]] const TraceIds* trace_ids() const { return trace_ids_; }

  void record(const Turn& turn);
  void record(const Asked& asked);
  // The same with its body. The bytes are copied, since the request itself is still to be sent;
  // what looks secret is taken out in the background, before anything is written. A body is left
  // out rather than records: when half of what its namespace may have waiting does wait.
  struct BodyOfRequest {
    std::string_view bytes;
    const SecretNames& secrets;  // As Body::secrets; at most kBodySecretsMax.
  };
  void record(const Asked& asked, const BodyOfRequest& body);
  void record(const Answered& answered);
  void record(const Slept& slept);

  // Waits until all records are written, for at most two seconds.
  [[nodiscard]] io::Task<void> flush();

 private:
  // The result of writing a block.
  struct Written {
    std::uint64_t bytes = 0;  // Size of the block and its bodies.
    std::uint64_t records = 0;
    Instant first;
    bool tells = false;  // Whether the block reports lost records.
    Holdings held;
    Result<> result;
    std::uint64_t files_bytes = 0;
    std::uint64_t given_up = 0;  // Records that namespaces gave up for it.
  };

  // False: it is lost.
  template <class Kind>
  bool put(const Kind& record);
  template <class Kind>
  void put_alone(const Kind& record);
  [[nodiscard]] bool may_wait(std::string_view namespace_) const;
  [[nodiscard]] bool may_wait_with_body(std::string_view namespace_) const;
  void write_if_full();
  void write();
  void on_written(const Written& written);
  void lose(std::uint64_t count, Instant since);
  void care();

  io::Loop& loop_;
  const Log log_;
  const Duration retry_after_;
  std::vector<Observer*> observers_;
  const TraceIds* trace_ids_ = nullptr;
  Counter& records_;
  Counter& lost_;
  Counter& given_up_;
  Gauge& files_bytes_;
  Gauge& is_stopped_;

  Block block_;
  std::vector<RawBody> bodies_;  // Of requests in `block_`.
  std::uint64_t bodies_bytes_ = 0;
  Instant block_began_;
  io::Loop::Timer write_timer_;
  io::Loop::Timer care_timer_;
  std::uint64_t waiting_bytes_ = 0;
  Holdings waiting_;
  std::optional<Instant> stopped_at_;  // Time of the last failed write; unset: no failure.
  Lost missing_;                       // Lost records that no file reports yet.
  std::optional<Lost> told_;           // The part of `missing_` that a pending block reports.
  bool block_tells_ = false;           // Whether `block_` is that block.

  // Used only by `thread_`, which is destroyed first.
  const std::unique_ptr<Files> files_;
  io::Workers thread_;
};

}  // namespace hangar::recorder
