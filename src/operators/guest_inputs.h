// What spec.env and spec.files of an Operator name, read from the cluster.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "operators/operator.h"
#include "operators/running_operator.h"

#include <stop_token>

namespace hangar::operators {

// Reads only from the operator's own namespace, with the rights of `client`. Values never become
// part of a message. Errors: those of Client::get(), which name the object; NotFound when an object
// that is not optional lacks a key; LimitExceeded (limits::kOperatorInputBytesMax). `spec` outlives
// the task.
[[nodiscard]] io::Task<Result<GuestInputs>> read_guest_inputs(kube::Client client,
                                                              const Operator& spec,
                                                              std::stop_token stop);

}  // namespace hangar::operators
