// Sends spans to an OpenTelemetry collector by OTLP over HTTP, behind everything else.
//
// Guarantees: spans wait in memory, kQueueMax at most; further ones are dropped and counted. There
// is one request at a time, of kSendMax at most. A collector that hangs, is slow or refuses costs
// spans, and nothing else: what it did not take is dropped, counted and logged once, until it takes
// some again. Loop thread.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "tracing/limits.h"
#include "tracing/otlp.h"
#include "tracing/span.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::tracing {

class Exporter {
 public:
  struct Options {
    std::string url;  // Of the collector, without the path.
    Origin origin;
    Duration batch_every = kBatchEvery;
    Duration again = kAgain;
    std::chrono::milliseconds send_max = kSendMax;
  };
  Exporter(io::Loop& loop, http::Client& http, Options options, Metrics& metrics, Log log);
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;
  // Requires that it is stopped.
  ~Exporter();

  void add(Span span);

  // Tries to send what waits, with one request of a second at most.
  [[nodiscard]] io::Task<void> stop();

 private:
  void send_later(Duration after);
  [[nodiscard]] io::Task<void> send();
  [[nodiscard]] io::Task<Result<>> post(std::string body, std::chrono::milliseconds limit);
  void lose(std::uint64_t count);

  io::Loop& loop_;
  http::Client& http_;
  const Options options_;
  const std::shared_ptr<const http::Transport> transport_;
  Counter& sent_;
  Counter& lost_;
  const Log log_;
  std::deque<Span> queue_;
  io::Loop::Timer timer_;
  bool is_waiting_ = false;  // For the timer.
  bool is_sending_ = false;
  bool is_failing_ = false;  // And the log says so.
  bool is_ending_ = false;
  io::Event sent_one_;
  std::stop_source stop_;
};

}  // namespace hangar::tracing
