// How the cluster differs from what a release wants, and mending it: yoke's command turbulence.
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
  bool conflicts_only = true;  // Only of what the release says itself; else all that is there.
  bool fix = false;            // Apply again what differs, with force.
  std::size_t context_lines = 4;
  Color color = Color::None;
};

[[nodiscard]] Result<Finished> turbulence(const host::Config& config,
                                          const TurbulenceOptions& options, const Streams& streams,
                                          const Log& log);

}  // namespace hangar::commands
