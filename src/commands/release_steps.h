// Carries out a release to completion, for a command: it waits where a host would come back later.
#pragma once

#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/release_session.h"
#include "io/task.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::commands {

// How long to wait until a release is ready, and how often to check.
struct Waiting {
  // Zero: does not wait for the last stage, and for others as long as a host.
  Duration time_max{0};
  Duration poll = std::chrono::seconds(5);
  // Receives the thing that is waited for before each pause, and an empty text at the end.
  std::function<void(std::string_view what)> show = [](std::string_view) {};
};

// Applies stage by stage, and waits for each stage that must be ready before the next one, and for
// the last one if `waiting` has a time. Errors: those of ReleaseWork::apply, and Unavailable after
// a timeout. References must outlive the task.
[[nodiscard]] io::Task<Result<>> apply_release(ReleaseSession& session, airways::ReleaseWork& work,
                                               const airways::Stages& stages,
                                               std::optional<airways::Source> source,
                                               Waiting waiting);

// Deletes the resources of `previous` that `wanted` does not have, and waits until they are gone.
[[nodiscard]] io::Task<Result<>> prune_release(ReleaseSession& session, airways::ReleaseWork& work,
                                               const airways::Stages& previous,
                                               const airways::Stages& wanted);

// Locks the release against other commands that lock it, by the same Secret as yoke. Conflict:
// "lock is already taken".
[[nodiscard]] io::Task<Result<>> lock_release(ReleaseSession& session, std::string release,
                                              std::string namespace_);
// Unlocks the release, even if another command has locked it. An unlocked release is not an error.
[[nodiscard]] io::Task<Result<>> unlock_release(ReleaseSession& session, std::string release,
                                                std::string namespace_);

}  // namespace hangar::commands
