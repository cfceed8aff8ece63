// The processes that guests of all contracts run in, for the host and for commands.
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

// Whether one of the host's features has guests.
[[nodiscard]] bool runs_guests(const Config& config);

// Starts the process that guest processes are forked from; std::nullopt if none are configured.
// Call it before any credential is read. `config` is resolved. Unavailable.
[[nodiscard]] Result<std::optional<domains::ZygoteProcess>> start_zygote(const Config& config);
// The same for a host: std::nullopt also if none of its features has guests.
[[nodiscard]] Result<std::optional<domains::ZygoteProcess>> start_host_zygote(const Config& config);

// If guest processes are configured, hides this process's memory from processes of the same user.
// Call it after the engine has been created, which opens files in /proc/self. Unavailable.
[[nodiscard]] Result<> hide_from_guests(const Config& config);

// Null: guests run in this process. All references must outlive it. `tells`: whether the log
// describes the kernel's walls. A short-lived command does not log them.
[[nodiscard]] std::unique_ptr<domains::GuestProcesses> make_guest_processes(
    const Config& config, std::optional<domains::ZygoteProcess> zygote, wasm::Engine& engine,
    Metrics& metrics, Log log, domains::TellsOfWalls tells = domains::TellsOfWalls::Yes);

}  // namespace hangar::host
