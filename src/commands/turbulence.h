// Compares the cluster with a release and repairs differences: yoke's command turbulence.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/release_text.h"
#include "commands/releases.h"
#include "commands/streams.h"
#include "host/config.h"

#include <cstddef>

namespace hangar::commands {

struct TurbulenceOptions {
  ReleaseName release;
  bool conflicts_only = true;  // Compare only fields that the release sets.
  bool fix = false;            // Apply different resources again, by force.
  std::size_t context_lines = 4;
  Color color = Color::None;
};

[[nodiscard]] Result<Finished> turbulence(const host::Config& config,
                                          const TurbulenceOptions& options, const Streams& streams,
                                          const Log& log);

}  // namespace hangar::commands
