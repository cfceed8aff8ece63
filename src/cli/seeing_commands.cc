#include "cli/seeing_commands.h"

#include "base/result.h"
#include "commands/pod_logs.h"
#include "host/config.h"
#include "host/recording.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace hangar::cli {

using host::Part;

TimelineCommand::TimelineCommand(CLI::App& command)
    : settings_(command, {Part::Log, Part::Cluster, Part::Modules, Part::Records}) {
  command.add_option("NAME", flags_->options.name, "an operator")->type_name("NAME")->required();
  command
      .add_option("-n,--namespace", flags_->options.namespace_,
                  "its namespace (default: an operator of hangar run, else the kubeconfig's)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
  command.add_flag("--slowest", flags_->options.slowest,
                   "the turns that took longest, instead of the last");
  command.add_option("--turns", flags_->options.turns_max, "how many turns (default 20)")
      ->type_name("NUMBER")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--file", flags_->file,
                  "read this file of a recorder (default: those of recorder-directory)")
      ->type_name("FILE");
  command.add_option("-o,--output", flags_->output, "json (default: text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"json"}));
}

int TimelineCommand::run() const {
  const Result<host::Config> given = settings_.resolve();
  if (!given) return report(given.error(), kWrongUsage);
  const Result<host::Config> config = host::resolve(*given);
  if (!config) return report(config.error(), kFailed);
  commands::TimelineOptions options = flags_->options;
  options.json = flags_->output == "json";
  options.place = {.directory = host::recorder_directory(*config), .file = flags_->file};
  Result<std::string> text = commands::timeline(options);
  if (!text && text.error().kind() == ErrorKind::NotFound && options.namespace_.empty()) {
    if (Result<std::string> namespace_ = commands::kubeconfig_namespace(*config)) {
      options.namespace_ = *std::move(namespace_);
      text = commands::timeline(options);
    }
  }
  if (!text) return report(text.error(), kFailed);
  fmt::print("{}", *text);
  return kDone;
}

}  // namespace hangar::cli
