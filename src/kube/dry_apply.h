// A server-side apply as a dry run, for callers that pass on the API server's warnings.
// (Client::apply() logs the warnings and returns the resulting object.)
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <stop_token>
#include <string>
#include <vector>

namespace hangar::kube {

// Returns the server's warnings. Errors as for Client::apply(). Ignores `options.dry_run`.
[[nodiscard]] io::Task<Result<std::vector<std::string>>> dry_apply(Client client, Resource resource,
                                                                   json::Value object,
                                                                   ApplyOptions options,
                                                                   std::stop_token stop);

}  // namespace hangar::kube
