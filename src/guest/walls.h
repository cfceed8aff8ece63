// The walls: what a guest process gives up before it reads its first message.
#pragma once

#include "base/result.h"
#include "wasm/engine.h"

#include <sys/types.h>

namespace hangar::guest {

// Call it before threads start. From here on the process is killed with `zygote`, is killed before
// the host when memory is short, hides its memory, opens no files, and has no more descriptors than
// its modules need. Returns the files of /proc that the engine needs, opened before that
// became impossible.
[[nodiscard]] Result<wasm::OwnProcFiles> put_up_first_walls(pid_t zygote);

// Call it after all threads have started; it applies to all of them. Only computing, and messages
// over open descriptors, remain possible.
[[nodiscard]] Result<> put_up_last_wall();

}  // namespace hangar::guest
