// `hangar console`: serves a page to the browser on this machine. The page shows what the
// kubeconfig's user may see of the cluster.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/records.h"
#include "host/config.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace hangar::commands {

struct ConsoleOptions {
  RecordsAccess records;
  std::uint16_t port = 0;  // Zero: a free one.
  bool opens_browser = true;
  bool allows_actions = false;
  Duration idle_max = std::chrono::minutes(30);  // Zero: it never exits by itself.
};

// Serves until SIGINT or SIGTERM, or until the page was not used for `idle_max`. `print` receives
// the address, and the reason for the exit. Errors: no login, the port is in use.
[[nodiscard]] Result<> console(const host::Config& config, const ConsoleOptions& options,
                               const std::function<void(const std::string&)>& print,
                               const Log& log);

}  // namespace hangar::commands
