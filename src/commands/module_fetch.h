// Fetches a module for a command that does so once.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/fetcher.h"

#include <string>

namespace hangar::commands {

// `module`: a file, or a URL that the allow list of `config` has. The result is uncompressed.
// Errors: those of modules::Fetcher::fetch(). All references outlive the task. Loop thread.
[[nodiscard]] io::Task<Result<modules::Fetched>> fetch_module(const host::Config& config,
                                                              io::Loop& loop, io::Workers& workers,
                                                              http::Client& http,
                                                              std::string module, const Log& log);

}  // namespace hangar::commands
