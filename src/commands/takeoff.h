// Makes or changes a release out of what a flight prints, or of resources as they are: what yoke's
// command takeoff does.
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

// What becomes of what the flight has printed.
enum class TakeoffEnd : std::uint8_t {
  Release,  // It is applied.
  Dry,      // The API server is asked what it would say; nothing is applied.
  Diff,     // What would change of the release is shown.
  Stdout,   // It is shown as it is.
  Files,    // It is written to `out`, or shown as one document where that is "-".
};

struct TakeoffOptions {
  ReleaseName release;
  // Without a module, what would be its standard input is what it would print.
  std::optional<FlightToRun> flight;
  std::string output = {};  // Without a module: the resources.
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

// The revision is recorded before anything is applied, and becomes the active one when everything
// is there and the rest is gone: what is interrupted is taken up by the next one.
[[nodiscard]] Result<Finished> takeoff(const host::Config& config, const TakeoffOptions& options,
                                       const Streams& streams, const Log& log);

}  // namespace hangar::commands
