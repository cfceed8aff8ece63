// What a person does with a release that is there, as yoke's commands do it: go back to an older
// revision, delete it, unlock it. It may be one of a host's, of `takeoff` or of yoke's own program.
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
  bool load_custom_readiness = false;  // Rules that the cluster has for kinds of its own.
  PruneOptions prune = {};
};
// Applies an older revision again, prunes what it has not, and makes it the active one. If that is
// interrupted, the revision from which it went is still the active one, and it can be done again.
[[nodiscard]] Result<Finished> descent(const host::Config& config, const DescentOptions& options,
                                       const Say& say, const Log& log);

struct MaydayOptions {
  ReleaseName release;
  PruneOptions prune = {};
};
// Deletes all that a release has made, interrupted revisions included, then its history.
[[nodiscard]] Result<Finished> mayday(const host::Config& config, const MaydayOptions& options,
                                      const Say& say, const Log& log);

[[nodiscard]] Result<Finished> unlatch(const host::Config& config, const ReleaseName& release,
                                       const Log& log);

}  // namespace hangar::commands
