// Runs readiness rules in Lua for a command: with its own supply of modules and its own guest
// processes, since a command cannot use those of a host.
#pragma once

#include "abi/statemachine/runtime.h"
#include "airways/lua_rules.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"

#include <memory>
#include <optional>

namespace hangar::commands {

// Loop thread only.
class LuaSession {
 public:
  // The parts to prepare before a credential is read.
  struct Start {
    host::Config config;  // Resolved.
    std::optional<domains::ZygoteProcess> zygote;
  };
  // `config` need not be resolved. Errors: those of host::resolve_for_guests() and
  // host::start_zygote().
  [[nodiscard]] static Result<Start> prepare(const host::Config& config);
  // Opens the caches of modules. All references outlive the session. Errors: those of
  // ModuleFiles::open() and CodeCache::open().
  [[nodiscard]] static Result<std::unique_ptr<LuaSession>> open(Start start, io::Loop& loop,
                                                                io::Workers& workers,
                                                                http::Client& http,
                                                                Metrics& metrics, const Log& log);
  LuaSession(const LuaSession&) = delete;
  LuaSession& operator=(const LuaSession&) = delete;

  [[nodiscard]] airways::LuaRules& rules() { return rules_; }

 private:
  LuaSession(Start start, host::ModuleFiles files, io::Loop& loop, io::Workers& workers,
             http::Client& http, Metrics& metrics, const Log& log);

  const host::Config config_;
  host::ModuleSupply supply_;
  const std::unique_ptr<domains::GuestProcesses> guest_processes_;  // Null: rules run here.
  abi::statemachine::Runtime machines_;
  airways::LuaRules rules_;
};

}  // namespace hangar::commands
