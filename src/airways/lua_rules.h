// Runs readiness rules that are written in Lua.
//
// The interpreter is a guest: our own program (third_party/lua), which has the entry point of a
// state machine. It runs where machines run, within limits. Each answer begins with the memory of
// the interpreter after its start, so that no script sees anything of another one, on an instance
// that is kept warm (wasm/warm_instances.h).
#pragma once

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "airways/limits.h"
#include "airways/readiness.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::airways {

// The module that interprets Lua; part of this program. Corrupt when the program is damaged. Any
// thread.
[[nodiscard]] Result<std::string> lua_interpreter();

// The answer of a rule about a resource.
struct LuaVerdict {
  Readiness readiness;
  // A limit stopped the script. It may get further another time.
  bool is_cut = false;
};

// Loop thread. Outlives its tasks; destroyed before the runtime.
class LuaRules {
 public:
  struct Limits {
    Duration cpu_time_max = limits::kLuaRuleTimeMax;
    std::uint64_t memory_bytes_max = limits::kLuaRuleMemoryBytesMax;
  };
  LuaRules(io::Loop& loop, io::Workers& workers, abi::statemachine::Runtime& machines,
           Limits limits);
  LuaRules(io::Loop& loop, io::Workers& workers, abi::statemachine::Runtime& machines)
      : LuaRules(loop, workers, machines, Limits{}) {}
  LuaRules(const LuaRules&) = delete;
  LuaRules& operator=(const LuaRules&) = delete;

  // Loads the interpreter, and compiles it if no host has done so with this cache. Errors: those of
  // statemachine::Runtime::load().
  [[nodiscard]] io::Task<Result<>> prepare(std::stop_token stop);

  // Runs `script` on `live`. If the script is wrong, or reaches a limit, the readiness is Failed
  // and says why. Errors: those of prepare(), which this includes; Unavailable when the script
  // cannot be run now; Cancelled. `live` outlives the task.
  [[nodiscard]] io::Task<Result<LuaVerdict>> judge(std::shared_ptr<const LuaScript> script,
                                                   const json::Value& live,
                                                   budget::Consumer consumer, std::stop_token stop);

 private:
  io::Workers& workers_;
  abi::statemachine::Runtime& machines_;
  const Limits limits_;
  io::Semaphore loading_;
  std::shared_ptr<abi::statemachine::Machine> interpreter_;  // Null until prepare().
};

}  // namespace hangar::airways
