#include "commands/lua_session.h"

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"

#include <memory>
#include <utility>

namespace hangar::commands {

Result<std::unique_ptr<LuaSession>> LuaSession::open(const host::Config& config, io::Loop& loop,
                                                     io::Workers& workers, http::Client& http,
                                                     const Log& log) {
  host::Config resolved = HANGAR_TRY(host::resolve(config));
  host::ModuleFiles files = HANGAR_TRY(host::ModuleFiles::open(resolved, log));
  // The constructor is private.
  std::unique_ptr<LuaSession> session(
      new LuaSession(std::move(resolved), std::move(files), loop, workers, http, log));
  HANGAR_TRY(session->supply_.code_cache.open());
  return session;
}

LuaSession::LuaSession(host::Config config, host::ModuleFiles files, io::Loop& loop,
                       io::Workers& workers, http::Client& http, const Log& log)
    : config_(std::move(config)),
      supply_(std::move(files), config_, loop, workers, http, nullptr, host::FileModules::Refused,
              log),
      runtime_(supply_.engine),
      rules_(runtime_, supply_.code_cache) {}

}  // namespace hangar::commands
