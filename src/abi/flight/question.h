// Asks a flight about itself: runs it with arguments other than a release's, for yoke's command
// `schematics get`.
#pragma once

#include "abi/flight/command.h"
#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "base/result.h"
#include "io/task.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::abi::flight {

struct Question {
  std::vector<std::string> args;        // After "schematics".
  std::chrono::nanoseconds timeout{0};  // As in Evaluation; so are the others.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
};

// Runs a flight once without an environment or input. Results, errors and lifetimes as for
// evaluate().
[[nodiscard]] io::Task<Result<Output>> ask(const Runtime& runtime,
                                           std::shared_ptr<const wasm::Module> module,
                                           Question question, Lookups& lookups,
                                           std::stop_token stop);

}  // namespace hangar::abi::flight
