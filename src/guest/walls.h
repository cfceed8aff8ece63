// The walls: what a guest process gives up before it reads its first message.
#pragma once

#include "base/result.h"
#include "sandbox/system_calls.h"
#include "wasm/engine.h"

#include <sys/types.h>

namespace hangar::guest {

// Call it before threads start. From here on the process is killed with `zygote`, is killed before
// the host when memory is short, hides its memory, opens no files, and has no more descriptors than
// its modules need. Returns the files of /proc that the engine needs, opened before that
// became impossible.
[[nodiscard]] Result<wasm::OwnProcFiles> put_up_first_walls(pid_t zygote);

// The system calls that remain: those for computing, and for messages over open descriptors. Apply
// it after all threads have started, to all of them.
[[nodiscard]] Result<sandbox::SystemCallFilter> compile_last_wall();

}  // namespace hangar::guest
