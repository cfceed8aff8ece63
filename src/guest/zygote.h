// Forks guest processes when it is told to, and buries them.
#pragma once

#include "guest_protocol/zygote_messages.h"

#include <sys/types.h>

#include <functional>

namespace hangar::guest {

// What a forked process does; what it returns is its exit status. `socket` is its way to the host.
using RunProcess =
    std::function<int(const guest_protocol::ForkProcess& order, int socket, pid_t zygote)>;

// Serves the host on `socket` until that closes it. Single-threaded: a fork copies one thread only.
// In the process that it forks this does not return.
void run_zygote(int socket, const RunProcess& run_process);

}  // namespace hangar::guest
