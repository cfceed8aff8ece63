// Forks guest processes on the host's orders, and reaps them.
#pragma once

#include "guest_protocol/zygote_messages.h"

#include <sys/types.h>

#include <functional>

namespace hangar::guest {

// The body of a forked process; it returns the exit status. `socket` is its connection to the host.
using RunProcess =
    std::function<int(const guest_protocol::ForkProcess& order, int socket, pid_t zygote)>;

// Serves the host on `socket` until the host closes it. Single-threaded, because fork copies one
// thread only. In a forked process this function does not return.
void run_zygote(int socket, const RunProcess& run_process);

}  // namespace hangar::guest
