// One execution of a guest, from a fresh instance to its end.
//
// A guest runs on a stack of its own (a fiber), on whichever worker is free. While it waits for an
// answer of the host it holds its memory and nothing else; when its slice is over and others wait,
// it goes to the back of the queue. However it ends, the instance is gone when the result is there.
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
  // From the moment the guest begins, waiting included. Nothing: for ever.
  std::optional<Duration> timeout = limits::kGuestCallMax;
  // Of its linear memory and its tables. A guest that asks for more gets -1 from memory.grow and
  // table.grow.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  // For whom: whose share of the workers it uses.
  budget::Consumer consumer = budget::unnamed_consumer();
  // Who is asked in place of the engine's accounts, also about what it begins with.
  AskMemory ask_memory = {};
};

struct RunReport {
  // Fine when the guest returned or left (HostCall::leave). GuestFault: it trapped or broke a rule
  // of its contract. LimitExceeded: time, memory or what a host function bounds. Cancelled.
  // Unavailable: the host's fault.
  Result<> ended;
  bool has_timed_out = false;      // Why it is LimitExceeded.
  Duration cpu_time{};             // On the workers, instantiation included.
  std::uint64_t memory_bytes = 0;  // Of memory and tables at the end.
};

// Instantiates `module` and calls its export `entry`, which takes and returns nothing. `functions`
// and `state` outlive the task. Loop thread.
[[nodiscard]] io::Task<RunReport> run(Engine& engine, std::shared_ptr<const Module> module,
                                      const HostFunctions& functions, HostState& state,
                                      std::string entry, RunLimits limits, std::stop_token stop);

}  // namespace hangar::wasm
