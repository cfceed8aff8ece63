// Writes log lines to standard error, as JSON for programs or aligned for people.
#pragma once

#include "base/log.h"

#include <cstdint>
#include <memory>

namespace hangar::ops {

enum class LogFormat : std::uint8_t {
  Json,     // {"ts":"2026-04-08T12:00:00.123Z","level":"info","logger":"kube","msg":"...",...}
  Console,  // 12:00:00.123 INFO  kube       message  key=value
};

struct LogOptions {
  LogFormat format = LogFormat::Json;
  LogLevel level = LogLevel::Info;  // Lines below are dropped.
};

// The keys are those of zap as controller-runtime sets it up, so that log pipelines work unchanged.
// Any thread. A standard error that is closed or full loses lines but blocks no thread: for that
// reason the process ignores SIGPIPE from here on.
[[nodiscard]] std::unique_ptr<LogSink> make_log_sink(LogOptions options);

}  // namespace hangar::ops
