// One execution of a guest, from a new instance to its destruction.
//
// A guest runs on its own stack (a fiber), on any free worker. While it waits for an answer from
// the host it holds only its memory; when its slice is over and others wait, it goes to the back of
// the queue. However the run ends, the instance is destroyed before the result is returned.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::wasm {

struct RunLimits {
  // From the moment the guest starts, waiting included. std::nullopt: no limit.
  std::optional<Duration> timeout = limits::kGuestCallMax;
  // Bounds its linear memory and tables. Beyond it, memory.grow and table.grow return -1.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  // The consumer on whose behalf the guest runs, and whose share of the workers it uses.
  budget::Consumer consumer = budget::unnamed_consumer();
  // Replaces the engine's accounts, also for the initial memory.
  AskMemory ask_memory = {};
};

struct RunReport {
  // Success when the guest returned or left (HostCall::leave). GuestFault: it trapped or broke a
  // rule of its contract. LimitExceeded: it exceeded its time, its memory or a bound of a host
  // function. Cancelled. Unavailable: the host's fault.
  Result<> ended;
  bool has_timed_out = false;      // True: LimitExceeded is about time.
  Duration cpu_time{};             // On the workers, including instantiation.
  std::uint64_t memory_bytes = 0;  // Of memory and tables at the end.
};

// Instantiates `module` and calls its export `entry`, which takes and returns nothing. `functions`
// and `state` outlive the task. Loop thread.
[[nodiscard]] io::Task<RunReport> run(Engine& engine, std::shared_ptr<const Module> module,
                                      const HostFunctions& functions, HostState& state,
                                      std::string entry, RunLimits limits, std::stop_token stop);

}  // namespace hangar::wasm
