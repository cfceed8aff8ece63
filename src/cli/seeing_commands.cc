#include "cli/seeing_commands.h"

#include "base/log.h"
#include "base/result.h"
#include "commands/pod_logs.h"
#include "host/config.h"
#include "host/log.h"
#include "host/recording.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
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

WhyCommand::WhyCommand(CLI::App& command)
    : settings_(command, {Part::Log, Part::Cluster, Part::Modules, Part::Records}) {
  command
      .add_option("KIND/NAME", flags_->options.object,
                  "the object, such as deployment.apps/web: kind or plural, with its group")
      ->type_name("KIND/NAME")
      ->required();
  command
      .add_option("-n,--namespace", flags_->options.namespace_,
                  "its namespace (default: the kubeconfig's)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
  command
      .add_option("--field", flags_->options.field,
                  "why this one is as it is, such as .spec.replicas (default: the whole object)")
      ->type_name("FIELD");
  command
      .add_option("--writes", flags_->options.writes_max,
                  "how many of the last writes on it (default 10)")
      ->type_name("NUMBER")
      ->check(CLI::PositiveNumber);
  command.add_flag("-f,--follow", flags_->options.follow, "go on with writes from now on");
  command.add_option("-o,--output", flags_->output, "json or mermaid (default: text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"json", "mermaid"}));
}

int WhyCommand::run() const {
  const Result<host::Config> given = settings_.resolve();
  if (!given) return report(given.error(), kWrongUsage);
  const Result<host::Config> config = host::resolve(*given);
  if (!config) return report(config.error(), kFailed);
  commands::WhyOptions options = flags_->options;
  options.directory = host::recorder_directory(*config);
  if (flags_->output == "json") options.format = commands::WhyFormat::Json;
  if (flags_->output == "mermaid") options.format = commands::WhyFormat::Mermaid;
  const auto print = [](std::string_view text) {
    fmt::print("{}", text);
    return std::fflush(stdout) == 0;
  };
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<> ended = commands::why(*config, options, print, Log(*sink, "why"));
  if (ended) return kDone;
  return report(ended.error(),
                ended.error().kind() == ErrorKind::InvalidInput ? kWrongUsage : kFailed);
}

}  // namespace hangar::cli
