// Creates the log sink of the configuration.
#pragma once

#include "base/log.h"
#include "host/config.h"

#include <memory>

namespace hangar::host {

[[nodiscard]] std::unique_ptr<LogSink> make_log_sink(const Config& config);

}  // namespace hangar::host
