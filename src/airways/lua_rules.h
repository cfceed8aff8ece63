// Runs readiness rules that are written in Lua.
//
// The interpreter is a guest: our own program (third_party/lua) that reads a script and a resource
// and prints the answer. It runs where flights run, within limits, and starts anew for each answer,
// so that no script sees anything of another one.
#pragma once

#include "abi/flight/evaluation.h"
#include "airways/limits.h"
#include "airways/readiness.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/task.h"
#include "json/value.h"
#include "wasm/code_cache.h"
#include "wasm/module.h"

#include <cstdint>
#include <memory>
#include <stop_token>

namespace hangar::airways {

// The answer of a rule about a resource.
struct LuaVerdict {
  Readiness readiness;
  // A limit stopped the script. It may get further another time.
  bool is_cut = false;
};

// Loop thread. Outlives its tasks; destroyed before the code cache and the runtime.
class LuaRules {
 public:
  struct Limits {
    Duration time_max = limits::kLuaRuleTimeMax;
    std::uint64_t memory_bytes_max = limits::kLuaRuleMemoryBytesMax;
  };
  LuaRules(const abi::flight::Runtime& runtime, wasm::CodeCache& code_cache, Limits limits);
  LuaRules(const abi::flight::Runtime& runtime, wasm::CodeCache& code_cache)
      : LuaRules(runtime, code_cache, Limits{}) {}
  LuaRules(const LuaRules&) = delete;
  LuaRules& operator=(const LuaRules&) = delete;

  // Loads the interpreter, and compiles it if no host has done so with this cache. Errors: those of
  // CodeCache::load().
  [[nodiscard]] io::Task<Result<>> prepare(std::stop_token stop);

  // Runs `script` on `live`. If the script is wrong, or reaches a limit, the readiness is Failed
  // and says why. Errors: those of prepare(), which this includes; Unavailable when the script
  // cannot be run now; Cancelled. `live` outlives the task.
  [[nodiscard]] io::Task<Result<LuaVerdict>> judge(std::shared_ptr<const LuaScript> script,
                                                   const json::Value& live,
                                                   budget::Consumer consumer, std::stop_token stop);

 private:
  const abi::flight::Runtime& runtime_;
  wasm::CodeCache& code_cache_;
  const Limits limits_;
  io::Semaphore loading_;
  std::shared_ptr<const wasm::Module> interpreter_;  // Null until prepare().
};

}  // namespace hangar::airways
