#include "commands/module_fetch.h"

#include "base/result.h"
#include "host/module_supply.h"
#include "modules/reference.h"
#include "modules/requester.h"

#include <stop_token>
#include <string>
#include <utility>

namespace hangar::commands {

io::Task<Result<modules::Fetched>> fetch_module(const host::Config& config, io::Loop& loop,
                                                io::Workers& workers, http::Client& http,
                                                std::string module, const Log& log) {
  host::ModuleFiles files = HANGAR_CO_TRY(host::ModuleFiles::open(config, log));
  host::ModuleSupply supply(std::move(files), config, loop, workers, http, nullptr,
                            host::FileModules::Allowed, log);
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(module));
  HANGAR_CO_TRY(supply.sources.allow_list.check(reference));
  co_return co_await supply.fetcher.fetch(modules::Requester::cluster_wide(), std::move(reference),
                                          {}, std::stop_token());
}

}  // namespace hangar::commands
