#include "host/recording.h"

#include "base/quantity.h"
#include "base/time.h"
#include "recorder/limits.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

namespace hangar::host {

std::vector<Setting> recorder_settings() {
  return {
      {.name = "recorder-bytes",
       .help = "maximum size of the records of guests' turns on disk, such as 256Mi; 0 turns "
               "recording off (default 256Mi)",
       .type = "BYTES",
       .part = Part::Recorder,
       .set = [](Config& config, std::string_view text) -> Result<> {
         const std::uint64_t bytes = HANGAR_TRY(parse_bytes(text));
         if (bytes > 0 && bytes < recorder::kBytesMin) {
           return fail(ErrorKind::InvalidInput,
                       fmt::format("\"{}\" is less than 1Mi; 0 records nothing", text));
         }
         config.recorder_bytes = bytes;
         return {};
       }},
      {.name = "recorder-age",
       .help = "maximum age of the records of guests' turns (default 24h)",
       .type = "DURATION",
       .part = Part::Recorder,
       .set = [](Config& config, std::string_view text) -> Result<> {
         const Result<Duration> age = parse_go_duration(text);
         if (!age || *age < std::chrono::minutes(1)) {
           return fail(ErrorKind::InvalidInput,
                       fmt::format("\"{}\" is not a duration of at least 1m", text));
         }
         config.recorder_age = *age;
         return {};
       }},
      {.name = "recorder-directory",
       .help = "private directory for the records of guests' turns (default: recorder in "
               "module-cache-dir)",
       .type = "DIRECTORY",
       .part = Part::Records,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.recorder_directory = text;
         return {};
       }},
  };
}

std::filesystem::path recorder_directory(const Config& config) {
  if (!config.recorder_directory.empty()) return config.recorder_directory;
  return config.module_cache_dir / "recorder";
}

std::unique_ptr<recorder::Recorder> make_recorder(const Config& config, io::Loop& loop,
                                                  Metrics& metrics, Log log) {
  if (config.recorder_bytes == 0) return nullptr;
  return std::make_unique<recorder::Recorder>(
      loop,
      recorder::Recorder::Options{
          .directory = recorder_directory(config),
          .limits = {.bytes_max = config.recorder_bytes, .age_max = config.recorder_age}},
      metrics, std::move(log));
}

}  // namespace hangar::host
