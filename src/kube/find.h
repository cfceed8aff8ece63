// Fetches one object by name with only the rights to list and watch its kind.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <stop_token>

namespace hangar::kube {

// Null when there is no such object. Lists with a field selector: watchers have the right to list,
// and so need no right to get. Errors as for Client::list. `client` must outlive the task.
[[nodiscard]] io::Task<Result<ObjectPtr>> find(const Client& client, Resource resource,
                                               ObjectKey key, std::stop_token stop);

}  // namespace hangar::kube
