// A release carried out to its end, for a command: what a host would come back for is waited for.
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

// How long to wait until a release is ready, and how often to look.
struct Waiting {
  Duration time_max{0};  // Zero: not for the last stage, and for others as long as a host does.
  Duration poll = std::chrono::seconds(5);
  // Told what is waited for, each time before it is looked at again; nothing at the end.
  std::function<void(std::string_view what)> show = [](std::string_view) {};
};

// Applies stage by stage; whatever has to be ready before the next one, or at all, is waited for.
// Errors as of ReleaseWork::apply, and Unavailable when the time is over. References outlive the
// task.
[[nodiscard]] io::Task<Result<>> apply_release(ReleaseSession& session, airways::ReleaseWork& work,
                                               const airways::Stages& stages,
                                               std::optional<airways::Source> source,
                                               Waiting waiting);

// Removes what `previous` has and `wanted` has not, and waits until it is gone.
[[nodiscard]] io::Task<Result<>> prune_release(ReleaseSession& session, airways::ReleaseWork& work,
                                               const airways::Stages& previous,
                                               const airways::Stages& wanted);

// A lock that keeps other locked runs off a release: a Secret, yoke's.
// Conflict: "lock is already taken".
[[nodiscard]] io::Task<Result<>> lock_release(ReleaseSession& session, std::string release,
                                              std::string namespace_);
// Whoever has locked it. That it is not locked is no error.
[[nodiscard]] io::Task<Result<>> unlock_release(ReleaseSession& session, std::string release,
                                                std::string namespace_);

}  // namespace hangar::commands
