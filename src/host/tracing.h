// Traces of guests' turns, as configured: spans from the recorder, sent to a collector.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "recorder/recorder.h"
#include "recorder/trace_ids.h"
#include "tracing/exporter.h"
#include "tracing/turn_spans.h"

#include <memory>
#include <vector>

namespace hangar::host {

// Rows of settings().
[[nodiscard]] std::vector<Setting> tracing_settings();
// Checks that the settings fit together. InvalidInput says which one is missing.
[[nodiscard]] Result<> check_tracing(const Config& config);

// Main loop.
class Tracing {
 public:
  // Null when tracing is off, which costs nothing. The parts outlive the result.
  [[nodiscard]] static std::unique_ptr<Tracing> make(const Config& config,
                                                     recorder::Recorder* recorder, io::Loop& loop,
                                                     http::Client& http, Metrics& metrics, Log log);
  Tracing(const Config& config, recorder::Recorder& recorder, io::Loop& loop, http::Client& http,
          Metrics& metrics, Log log);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing();

  [[nodiscard]] io::Task<void> stop() { return exporter_.stop(); }

 private:
  recorder::Recorder& recorder_;
  const recorder::TraceIds ids_;
  tracing::Exporter exporter_;
  tracing::TurnSpans spans_;
};

}  // namespace hangar::host
