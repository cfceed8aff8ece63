// Where flights run, for the host and for commands that run them.
#pragma once

#include "abi/flight/command.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/config.h"
#include "wasm/engine.h"

#include <memory>
#include <optional>

namespace hangar::host {

// Starts what guest processes are forked from; nothing when none is wanted. Before any credential
// is read. `config` is resolved. Unavailable.
[[nodiscard]] Result<std::optional<domains::ZygoteProcess>> start_zygote(const Config& config);

// Where there are guest processes, hides this one's memory from who has this user's rights. After
// the engine is made, which opens files of its own /proc. Unavailable.
[[nodiscard]] Result<> hide_from_guests(const Config& config);

// Null: in this process. All references outlive it.
[[nodiscard]] std::unique_ptr<domains::GuestProcesses> make_guest_processes(
    const Config& config, std::optional<domains::ZygoteProcess> zygote, wasm::Engine& engine,
    Metrics& metrics, Log log);

}  // namespace hangar::host
