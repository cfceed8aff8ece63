// Runs readiness rules in Lua for a command: with an engine and a compiler of its own, since a
// command has no host's.
#pragma once

#include "abi/flight/evaluation.h"
#include "airways/lua_rules.h"
#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"

#include <memory>

namespace hangar::commands {

// Loop thread only.
class LuaSession {
 public:
  // Opens the caches of modules of `config`, which need not be resolved. All references outlive the
  // session. Errors: those of host::resolve(), ModuleFiles::open() and CodeCache::open().
  [[nodiscard]] static Result<std::unique_ptr<LuaSession>> open(const host::Config& config,
                                                                io::Loop& loop,
                                                                io::Workers& workers,
                                                                http::Client& http, const Log& log);
  LuaSession(const LuaSession&) = delete;
  LuaSession& operator=(const LuaSession&) = delete;

  [[nodiscard]] airways::LuaRules& rules() { return rules_; }

 private:
  LuaSession(host::Config config, host::ModuleFiles files, io::Loop& loop, io::Workers& workers,
             http::Client& http, const Log& log);

  const host::Config config_;
  host::ModuleSupply supply_;
  const abi::flight::Runtime runtime_;
  airways::LuaRules rules_;
};

}  // namespace hangar::commands
