// One run of an instance's flight: its input, its limits, and the rights of its lookups. For
// reconciles, and for reviews of proposed objects.
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
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::airways {

struct FlightRun {
  const Platform& platform;
  std::shared_ptr<const Binding> binding;
  const Release& release;
  // The instance that lookups are remembered for, in `tracker` and by the view.
  ResourceRef lookups_for;
  Tracker& tracker;
  const Actor& actor;
  budget::Consumer consumer;             // Charged with the run.
  Duration time_max = Duration::max();   // Even if the Airway allows more.
  FlightRecording* recording = nullptr;  // Receives the lookups. Null: no recording.
};
// All references live until the task ends. Errors: those of input_of(), FlightModules::load() and
// abi::flight::evaluate().
[[nodiscard]] io::Task<Result<abi::flight::Output>> run_flight(FlightRun run,
                                                               const json::Value& instance,
                                                               std::stop_token stop);

// The message for a run whose exit code is not 0: what it printed on standard error.
[[nodiscard]] std::string evaluation_failure(const abi::flight::Output& output);

// A flight's output, and the memory that it takes while it is carried out; std::nullopt: too little
// to be counted (limits::kFlightOutputFreeBytesMax).
struct PrintedOutput {
  Output output;
  std::optional<budget::Reservation> memory;
};
// Parses a flight's output on a worker, however short it is. Waits for the memory first.
// `memory`: null: none is counted. LimitExceeded: `whose` namespace can never have it.
[[nodiscard]] io::Task<Result<PrintedOutput>> parse_printed(io::Workers& workers,
                                                            budget::ReservationQueue* memory,
                                                            budget::Consumer whose,
                                                            std::string text, std::stop_token stop);

}  // namespace hangar::airways
