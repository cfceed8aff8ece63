#include "cli/uninstall_command.h"

#include "base/log.h"
#include "base/result.h"
#include "cli/setting_flags.h"
#include "cli/standard_streams.h"
#include "commands/uninstall.h"
#include "host/config.h"
#include "host/log.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string_view>

namespace hangar::cli {

UninstallCommand::UninstallCommand(CLI::App& uninstall)
    : settings_(uninstall, {host::Part::Log, host::Part::Cluster, host::Part::Place}) {
  uninstall
      .add_option("--deployment", options_->deployment,
                  "Deployment of the hosts, which is scaled to zero first (default: none, hosts "
                  "have ended)")
      ->type_name("NAME");
  uninstall.add_flag("--keep-finalizers", options_->keeps_finalizers,
                     "leave hangar's finalizers: objects that are deleted afterwards wait until "
                     "hangar is installed again");
}

int UninstallCommand::run() const {
  const Result<host::Config> config = settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<> done = commands::uninstall(*config, *options_, Log(*sink, "uninstall"),
                                            {.out =
                                                 [](std::string_view line) {
                                                   print(line);
                                                   std::fflush(stdout);
                                                 },
                                             .say = say});
  return done ? kDone : report(done.error(), kFailed);
}

}  // namespace hangar::cli
