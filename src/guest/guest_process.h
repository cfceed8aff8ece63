// The main function of the processes that the zygote forks.
#pragma once

#include "guest/prepared.h"
#include "guest_protocol/zygote_messages.h"

#include <sys/types.h>

namespace hangar::guest {

// Starts the threads of the engine, puts up the walls, and serves the host on `socket` until the
// host closes it. Returns the exit status when a wall cannot be put up; otherwise it does not
// return.
[[nodiscard]] int run_guest_process(const Prepared& prepared,
                                    const guest_protocol::ForkProcess& order, int socket,
                                    pid_t zygote);

}  // namespace hangar::guest
