#include "commands/lua_session.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "domains/guest_processes.h"
#include "host/config.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "host/workflow_parts.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"

#include <memory>
#include <utility>

namespace hangar::commands {

Result<LuaSession::Start> LuaSession::prepare(const host::Config& config) {
  Start start{.config = HANGAR_TRY(host::resolve_for_guests(config))};
  start.zygote = HANGAR_TRY(host::start_zygote(start.config));
  return start;
}

Result<std::unique_ptr<LuaSession>> LuaSession::open(Start start, io::Loop& loop,
                                                     io::Workers& workers, http::Client& http,
                                                     Metrics& metrics, const Log& log) {
  host::ModuleFiles files = HANGAR_TRY(host::ModuleFiles::open(start.config, log));
  // The constructor is private.
  std::unique_ptr<LuaSession> session(
      new LuaSession(std::move(start), std::move(files), loop, workers, http, metrics, log));
  HANGAR_TRY(session->supply_.code_cache.open());
  HANGAR_TRY(host::prepare_machine_directory(session->config_));
  HANGAR_TRY(host::hide_from_guests(session->config_));
  return session;
}

LuaSession::LuaSession(Start start, host::ModuleFiles files, io::Loop& loop, io::Workers& workers,
                       http::Client& http, Metrics& metrics, const Log& log)
    : config_(std::move(start.config)),
      supply_(std::move(files), config_, loop, workers, http, nullptr, host::FileModules::Refused,
              log),
      guest_processes_(host::make_guest_processes(config_, std::move(start.zygote), supply_.engine,
                                                  metrics, log, domains::TellsOfWalls::No)),
      machines_(supply_.code_cache, host::machine_directory(config_), guest_processes_.get()),
      rules_(loop, workers, machines_) {}

}  // namespace hangar::commands
