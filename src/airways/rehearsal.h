// Rehearses a release: sends every document as a dry run. Nothing is changed or remembered.
#pragma once

#include "airways/ownership.h"
#include "airways/release_view.h"
#include "airways/release_work.h"
#include "airways/revision.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "kube/client.h"

#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::airways {

// Turns the stages that a flight printed into the release's (prepare_release()). Discovery tells
// whether a kind is namespaced; kinds are looked up for `whose`.
[[nodiscard]] io::Task<Result<>> prepare_printed(ReleaseView& view, const Release& release,
                                                 Stages& stages, budget::Consumer whose,
                                                 std::stop_token stop);

struct Rehearsed {
  std::vector<std::string> not_rehearsed;  // One sentence for each resource that could not be.
  std::vector<std::string> warnings;       // Of the API server, each once; bounded.
};

// `stages`: as the flight printed them; they become the release's. `client`: the identity that
// would carry the release out; `options`: how. `to_come`: namespaces that are created before.
// A resource cannot be rehearsed if its Namespace does not exist yet, or if the release itself
// creates its kind. It is listed, not refused.
// Errors: InvalidInput (namespaces, ownership, refused by the API server), each naming its
// resource; Denied; and the server's. All references outlive the task.
[[nodiscard]] io::Task<Result<Rehearsed>> rehearse(ReleaseParts parts, kube::Client client,
                                                   const Release& release, Stages& stages,
                                                   CarryOptions options,
                                                   std::set<std::string> to_come,
                                                   std::stop_token stop);

}  // namespace hangar::airways
