// What a release would be answered with: every document is sent as a dry run, nothing is changed
// and nothing is remembered.
#pragma once

#include "airways/ownership.h"
#include "airways/release_view.h"
#include "airways/release_work.h"
#include "airways/revision.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"

#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::airways {

// Makes what a flight printed the release's (prepare_release()), with the kinds that the cluster
// serves.
[[nodiscard]] io::Task<Result<>> prepare_printed(ReleaseView& view, const Release& release,
                                                 Stages& stages, std::stop_token stop);

struct Rehearsed {
  std::vector<std::string> not_rehearsed;  // One sentence for each resource that could not be.
  std::vector<std::string> warnings;       // Of the API server, each once; the first ones.
};

// `stages`: as the flight printed them; they are made the release's. `client`: who would carry it
// out, and `options` how. `to_come`: namespaces that are made before.
// What depends on a Namespace that does not exist yet or a kind that the release itself makes first
// cannot be rehearsed: it is listed, not refused.
// Errors: InvalidInput (namespaces, ownership, what the API server finds wrong), each naming its
// resource; Denied; and the server's. Everything that it is given outlives the task.
[[nodiscard]] io::Task<Result<Rehearsed>> rehearse(ReleaseParts parts, kube::Client client,
                                                   const Release& release, Stages& stages,
                                                   CarryOptions options,
                                                   std::set<std::string> to_come,
                                                   std::stop_token stop);

}  // namespace hangar::airways
