// Creates or changes a release, from the output of a flight or from given resources: yoke's command
// takeoff.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/flight_runner.h"
#include "commands/release_steps.h"
#include "commands/release_text.h"
#include "commands/releases.h"
#include "commands/streams.h"
#include "host/config.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hangar::commands {

// What to do with the flight's output.
enum class TakeoffEnd : std::uint8_t {
  Release,  // Apply it.
  Dry,      // Dry run at the API server; apply nothing.
  Diff,     // Show what would change in the release.
  Stdout,   // Print it unchanged.
  Files,    // Write it to `out`, or print one document if that is "-".
};

struct TakeoffOptions {
  ReleaseName release;
  // Nothing: `output` is used instead of a flight's output.
  std::optional<FlightToRun> flight;
  std::string output = {};  // The resources, if there is no flight.
  bool cluster_access = false;
  std::vector<std::string> resource_access_matchers = {};

  TakeoffEnd end = TakeoffEnd::Release;
  std::filesystem::path out = {};
  std::size_t context_lines = 4;
  Color color = Color::None;

  bool create_namespace = false;
  bool cross_namespace = false;
  bool force_ownership = false;
  bool force_conflicts = false;
  bool rehearse = true;
  Waiting waiting = {};
  bool lock = false;
  bool load_custom_readiness = false;
  std::optional<std::uint32_t> history_max = 10;
  PruneOptions prune = {};
};

// Records the revision before anything is applied. The revision becomes active when everything is
// applied and the rest is pruned, so that the next takeoff continues an interrupted one.
[[nodiscard]] Result<Finished> takeoff(const host::Config& config, const TakeoffOptions& options,
                                       const Streams& streams, const Log& log);

}  // namespace hangar::commands
