#include "airways/conversion_recording.h"

#include "airways/airway.h"
#include "airways/reasons.h"
#include "airways/recording.h"
#include "io/loop.h"
#include "recorder/limits.h"

#include <fmt/format.h>

namespace hangar::airways {

std::string conversion_event(std::string_view kind, std::string_view desired_api_version,
                             std::size_t object_count) {
  // A stranger may have sent megabytes of it.
  return fmt::format("conversion of {} to {}, objects: {}", kind,
                     desired_api_version.substr(0, recorder::kTextBytesMax), object_count);
}

void ConversionRecorder::ran(const json::Value& airway, std::string_view event, Instant began,
                             std::string_view module_sha256,
                             const Result<abi::flight::Output>& output) {
  if (!runs_.try_take(io::Loop::now())) return;
  Reasons reasons;
  reasons.add(event);
  FlightRecording(recorder_, airway_resource(), airway)
      .ran(began, /*user=*/{}, module_sha256, output, reasons);
}

}  // namespace hangar::airways
