// Creates the flight recorder of the configuration.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "host/config.h"
#include "io/loop.h"
#include "recorder/recorder.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace hangar::host {

// Rows of settings().
[[nodiscard]] std::vector<Setting> recorder_settings();

// `config` is resolved.
[[nodiscard]] std::filesystem::path recorder_directory(const Config& config);

// Null when nothing is recorded.
[[nodiscard]] std::unique_ptr<recorder::Recorder> make_recorder(const Config& config,
                                                                io::Loop& loop, Metrics& metrics,
                                                                Log log);

}  // namespace hangar::host
