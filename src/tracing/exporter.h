// Sends spans to an OpenTelemetry collector by OTLP over HTTP, in the background.
//
// Guarantees: at most kQueueMax spans wait in memory; further ones are dropped and counted. There
// is one request at a time, which takes at most kSendMax. A collector that hangs, is slow or
// refuses costs only spans: those that it did not accept are dropped and counted, which is logged
// once until it accepts spans again. Loop thread.
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
    std::string url;  // URL of the collector, without the path.
    Origin origin;
    Duration batch_every = kBatchEvery;
    Duration again = kAgain;
    std::chrono::milliseconds send_max = kSendMax;
  };
  Exporter(io::Loop& loop, http::Client& http, Options options, Metrics& metrics, Log log);
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;
  // Requires that stop() has finished.
  ~Exporter();

  void add(Span span);

  // Tries to send the waiting spans, with one request of a second at most.
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
  bool is_waiting_ = false;  // The timer runs.
  bool is_sending_ = false;
  bool is_failing_ = false;  // True once the failure was logged.
  bool is_ending_ = false;
  io::Event sent_one_;
  std::stop_source stop_;
};

}  // namespace hangar::tracing
