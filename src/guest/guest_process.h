// The main function of the processes that the zygote forks.
#pragma once

#include "abi/flight/evaluation.h"
#include "guest_protocol/zygote_messages.h"

#include <sys/types.h>

namespace hangar::guest {

// Constructs an engine, puts up the walls, and serves the host on `socket` until the host closes
// it. Returns the exit status when a wall cannot be put up; otherwise it does not return.
// `add_functions`: imports of the guests besides those of their contract, for tests of the walls.
[[nodiscard]] int run_guest_process(const guest_protocol::ForkProcess& order, int socket,
                                    pid_t zygote,
                                    const abi::flight::Runtime::AddFunctions& add_functions = {});

}  // namespace hangar::guest
