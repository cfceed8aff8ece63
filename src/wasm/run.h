// One execution of a guest, from a new instance to its end.
//
// A guest runs on a stack of its own (a fiber), on any free worker. While it waits for an answer of
// the host it holds only its memory; when its slice is over and others wait, it goes to the back of
// the queue. However it ends, the instance is destroyed before the result is returned.
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
  // Bounds its linear memory and tables. A guest that asks for more gets -1 from memory.grow
  // and table.grow.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  // On whose behalf it runs: it uses this consumer's share of the workers.
  budget::Consumer consumer = budget::unnamed_consumer();
  // Asked instead of the engine's accounts, also about the initial memory.
  AskMemory ask_memory = {};
};

struct RunReport {
  // Success when the guest returned or left (HostCall::leave). GuestFault: it trapped or broke a
  // rule of its contract. LimitExceeded: it exceeded its time, memory or a bound of a host
  // function. Cancelled. Unavailable: the host's fault.
  Result<> ended;
  bool has_timed_out = false;      // The reason for LimitExceeded.
  Duration cpu_time{};             // On the workers, including instantiation.
  std::uint64_t memory_bytes = 0;  // Of memory and tables at the end.
};

// Instantiates `module` and calls its export `entry`, which takes and returns nothing. `functions`
// and `state` outlive the task. Loop thread.
[[nodiscard]] io::Task<RunReport> run(Engine& engine, std::shared_ptr<const Module> module,
                                      const HostFunctions& functions, HostState& state,
                                      std::string entry, RunLimits limits, std::stop_token stop);

}  // namespace hangar::wasm
