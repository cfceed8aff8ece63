// What a guest process gives up before it reads its first message.
#pragma once

#include "base/result.h"
#include "wasm/engine.h"

#include <sys/types.h>

namespace hangar::guest {

// Before threads: ends with `zygote`, and before the host where memory is short; no memory for
// others, no files, no more descriptors than its modules need. Returns the files of /proc that the
// engine needs, opened before that became impossible.
[[nodiscard]] Result<wasm::OwnProcFiles> put_up_first_walls(pid_t zygote);

// After threads, for all of them: computing, and messages through descriptors that are open.
[[nodiscard]] Result<> put_up_last_wall();

}  // namespace hangar::guest
