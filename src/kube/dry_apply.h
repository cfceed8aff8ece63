// A server-side apply that changes nothing: what the API server would say to it, for whoever passes
// that on. (Client::apply() logs warnings, and returns the object that it would make.)
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

// The server's warnings. Errors as of Client::apply(). `options`: dry_run counts for nothing.
[[nodiscard]] io::Task<Result<std::vector<std::string>>> dry_apply(Client client, Resource resource,
                                                                   json::Value object,
                                                                   ApplyOptions options,
                                                                   std::stop_token stop);

}  // namespace hangar::kube
