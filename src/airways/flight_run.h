// One run of an instance's flight: its input, its limits, whose rights its lookups have. For a
// reconcile and for a review of what is only proposed.
#pragma once

#include "abi/flight/evaluation.h"
#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/recording.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "json/value.h"

#include <memory>
#include <stop_token>
#include <string>

namespace hangar::airways {

struct FlightRun {
  const Platform& platform;
  std::shared_ptr<const Binding> binding;
  const Release& release;
  // As which instance lookups are remembered, in `tracker` and by the view.
  ResourceRef lookups_for;
  Tracker& tracker;
  const Actor& actor;
  std::string consumer;                  // For whom: within the instance's namespace.
  Duration time_max = Duration::max();   // Whatever the Airway says.
  FlightRecording* recording = nullptr;  // Is told of lookups. Null: nobody is.
};
// Everything it is given lives until the task ends. Errors as of abi::flight::evaluate.
[[nodiscard]] io::Task<Result<abi::flight::Output>> run_flight(FlightRun run,
                                                               const json::Value& instance,
                                                               std::stop_token stop);

// Of a run whose exit code is not 0: what it printed on standard error.
[[nodiscard]] std::string evaluation_failure(const abi::flight::Output& output);

// What a flight printed; off the loop where that takes long.
[[nodiscard]] io::Task<Result<Output>> parse_printed(const Platform& platform, std::string text);

}  // namespace hangar::airways
