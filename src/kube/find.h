// One object by its name, for those who may list and watch its kind.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <stop_token>

namespace hangar::kube {

// Null when there is none. As a list of one: a watcher has the right to list, and needs no other
// one for this. Errors as of Client::list. `client` lives until the task ends.
[[nodiscard]] io::Task<Result<ObjectPtr>> find(const Client& client, Resource resource,
                                               ObjectKey key, std::stop_token stop);

}  // namespace hangar::kube
