#include "cli/demo_command.h"

#include "base/result.h"
#include "cli/setting_flags.h"
#include "commands/demo.h"
#include "host/config.h"

#include <CLI/CLI.hpp>

namespace hangar::cli {

DemoCommand::DemoCommand(CLI::App& demo) : settings_(demo, {host::Part::Cluster}) {
  demo.add_flag("-y,--yes", options_->is_confirmed,
                "do not ask before using a cluster that is not on this machine");
  demo.add_flag("--clean", clean_,
                "only remove the remains of an earlier demonstration, such as one that was killed");
  demo.add_option("--directory", options_->directory,
                  "directory of the demonstration's files (default: share/hangar/demo of the "
                  "installation)")
      ->type_name("DIRECTORY");
}

int DemoCommand::run() const {
  const Result<host::Config> config = settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  commands::DemoOptions options = *options_;
  options.kubeconfig = config->kubeconfig;
  options.context = config->context;
  if (clean_) options.work = commands::DemoWork::Clean;
  return report(commands::run_demo(options), kFailed);
}

}  // namespace hangar::cli
