#include "host/log.h"

#include "base/log.h"
#include "host/config.h"
#include "ops/log_sink.h"

#include <memory>

namespace hangar::host {

std::unique_ptr<LogSink> make_log_sink(const Config& config) {
  return ops::make_log_sink({.format = config.log_format == LogFormat::Json
                                           ? ops::LogFormat::Json
                                           : ops::LogFormat::Console,
                             .level = config.log_level});
}

}  // namespace hangar::host
