// An existing release with its history, for one command.
#pragma once

#include "airways/instance.h"
#include "airways/ownership.h"
#include "airways/release_history.h"
#include "base/result.h"
#include "commands/release_session.h"
#include "io/task.h"

#include <string>

namespace hangar::commands {

struct ReleaseName {
  std::string name;
  std::string namespace_ = {};  // Empty: the kubeconfig's.
};

struct OpenedRelease {
  ReleaseName name;  // With its namespace.
  airways::Release release;
  airways::Instance memory;

  [[nodiscard]] airways::ReleaseHistory& history() { return *memory.history; }
};

// A release without revisions has an empty history. Errors: those of ReleaseHistory::load.
[[nodiscard]] io::Task<Result<OpenedRelease>> open_release(ReleaseSession& session,
                                                           ReleaseName named);

}  // namespace hangar::commands
