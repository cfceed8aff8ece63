// Yoke's commands for existing releases: roll back to an older revision, delete, unlock. The
// release may belong to a host, or be made by `takeoff` or by yoke's own program.
#pragma once

#include "airways/terms.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/opened_release.h"
#include "commands/release_steps.h"
#include "commands/streams.h"
#include "host/config.h"

#include <cstddef>

namespace hangar::commands {

using airways::PruneOptions;

struct DescentOptions {
  ReleaseName release;
  std::size_t revision = 0;  // Counted from one.
  Waiting waiting = {};
  bool lock = false;
  bool load_custom_readiness = false;  // Use the cluster's readiness rules.
  PruneOptions prune = {};
};
// Applies an older revision again, prunes resources that it does not have, and activates it. If
// that is interrupted, the former revision is still active, and the command can be repeated.
[[nodiscard]] Result<Finished> descent(const host::Config& config, const DescentOptions& options,
                                       const Say& say, const Log& log);

struct MaydayOptions {
  ReleaseName release;
  PruneOptions prune = {};
};
// Deletes all resources of a release, including those of interrupted revisions, then its history.
[[nodiscard]] Result<Finished> mayday(const host::Config& config, const MaydayOptions& options,
                                      const Say& say, const Log& log);

[[nodiscard]] Result<Finished> unlatch(const host::Config& config, const ReleaseName& release,
                                       const Log& log);

}  // namespace hangar::commands
