// The processes that flights run in, for the host and for commands that run flights.
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

// Starts the process that guest processes are forked from; nothing if none are configured or no
// flights run. Call it before any credential is read. `config` is resolved. Unavailable.
[[nodiscard]] Result<std::optional<domains::ZygoteProcess>> start_zygote(const Config& config);

// If guest processes are configured, hides this process's memory from processes of the same user.
// Call it after the engine has been created, which opens files in /proc/self. Unavailable.
[[nodiscard]] Result<> hide_from_guests(const Config& config);

// Null: flights run in this process. All references must outlive it.
[[nodiscard]] std::unique_ptr<domains::GuestProcesses> make_guest_processes(
    const Config& config, std::optional<domains::ZygoteProcess> zygote, wasm::Engine& engine,
    Metrics& metrics, Log log);

}  // namespace hangar::host
