// What the zygote's children do.
#pragma once

#include "abi/flight/evaluation.h"
#include "guest_protocol/zygote_messages.h"

#include <sys/types.h>

namespace hangar::guest {

// Makes an engine, puts up the walls, and serves the host on `socket` until that is gone. Returns
// the exit status when a wall cannot be put up, and not at all otherwise.
// `add_functions`: what its guests may import beside their contract, for tests of the walls.
[[nodiscard]] int run_guest_process(const guest_protocol::ForkProcess& order, int socket,
                                    pid_t zygote,
                                    const abi::flight::Runtime::AddFunctions& add_functions = {});

}  // namespace hangar::guest
