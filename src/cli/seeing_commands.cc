#include "cli/seeing_commands.h"

#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "commands/guest_names.h"
#include "commands/pod_logs.h"
#include "commands/records.h"
#include "commands/rights.h"
#include "commands/tenant_commands.h"
#include "commands/timeline.h"
#include "commands/used_rights.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "host/log.h"
#include "host/recording.h"
#include "io/loop.h"
#include "io/run.h"
#include "seeing/find.h"
#include "seeing/uses.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::cli {

using host::Part;

RecordsFlags::RecordsFlags(CLI::App& command) {
  command
      .add_option("--host-address", place_.address,
                  "URL of the host's records, such as https://hangar.example.com:9444 (default: as "
                  "the host's ConfigMap hangar-records says, through kubectl port-forward)")
      ->type_name("URL");
  command
      .add_option("--host-ca", authority_,
                  "file with the authorities that sign the host's certificate (default: those in "
                  "the ConfigMap; with --host-address the system's)")
      ->type_name("FILE");
  command
      .add_option("--host-namespace", place_.namespace_,
                  "namespace of the host (default hangar-system)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
}

Result<commands::RecordsAccess> RecordsFlags::resolve(const host::Config& given) const {
  commands::RecordsAccess access{.local = {}, .host = place_};
  access.host.authority = authority_;
  // A user who gives a directory of the host means the records in it.
  const bool is_local = !given.recorder_directory.empty() || !given.module_cache_dir.empty();
  if (!is_local || !place_.address.empty()) return access;
  const host::Config config = HANGAR_TRY(host::resolve(given));
  access.local = {.directory = host::recorder_directory(config), .file = {}};
  return access;
}

namespace {

// The rule of the API server: the name is one segment of a path.
std::string check_role_name(const std::string& name) {
  const bool is_one = !name.empty() && name != "." && name != ".." &&
                      name.find_first_of("/%") == std::string::npos && printable(name) == name;
  return is_one ? "" : fmt::format("\"{}\" must be the name of a role", printable(name));
}

void add_guest(CLI::App& command, std::string& name, std::string& namespace_) {
  command
      .add_option("NAME", name,
                  "an Operator; workflow/NAME for a StatefulWorkflow; or RESOURCE/NAME for a "
                  "Flight, an Airway or an instance of one, such as backends.examples.com/web")
      ->type_name("NAME")
      ->required();
  command
      .add_option(
          "-n,--namespace", namespace_,
          "namespace (default: the kubeconfig's, unless hangar run has an operator of this name)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
}

// Calls `ask(records, question)` with the source of records, and sets the question's namespace if
// it is empty.
template <class Told, class Question, class Ask>
Result<Told> ask_about(const host::Config& given, const commands::RecordsAccess& access,
                       Question& question, std::string_view command, const Ask& ask) {
  const host::Config config = HANGAR_TRY(host::resolve(given));
  // An Airway has no namespace: that of the kubeconfig is not meant.
  const bool has_namespace =
      !question.namespace_.empty() || !commands::instances_of(question.name).empty();
  // The files of this machine first: without a namespace, the question may be about an operator of
  // `hangar run`.
  if (access.local || !has_namespace) {
    const std::unique_ptr<commands::Records> local = commands::local_records(access.local.value_or(
        seeing::RecordsPlace{.directory = host::recorder_directory(config), .file = {}}));
    io::Loop loop;
    Result<Told> found = io::run_to_end(loop, ask(*local, question));
    if (found || found.error().kind() != ErrorKind::NotFound || has_namespace) return found;
    question.namespace_ = HANGAR_TRY(commands::kubeconfig_namespace(config));
    if (access.local) return io::run_to_end(loop, ask(*local, question));
  }
  const std::unique_ptr<LogSink> sink = host::make_log_sink(config);
  host::ClusterSession session(HANGAR_TRY(host::find_login(config)),
                               Log(*sink, std::string(command)));
  const std::unique_ptr<commands::Records> records =
      HANGAR_TRY(commands::host_records(config, session, access.host));
  Result<Told> found = session.run(ask(*records, question));
  const bool may_have_none = !has_namespace && question.name.contains('/');
  if (found || found.error().kind() != ErrorKind::NotFound || !may_have_none) return found;
  // It may be a cluster-scoped instance.
  const std::string namespace_ = std::exchange(question.namespace_, {});
  Result<Told> again = session.run(ask(*records, question));
  if (again) return again;
  question.namespace_ = namespace_;
  return found;
}

}  // namespace

TimelineCommand::TimelineCommand(CLI::App& command)
    : records_(command),
      settings_(command, {Part::Log, Part::Cluster, Part::Modules, Part::Records}) {
  seeing::TurnsQuestion& question = flags_->options.question;
  add_guest(command, question.name, question.namespace_);
  command.add_flag("--slowest", question.slowest,
                   "show the longest turns instead of the most recent");
  command.add_option("--turns", question.turns_max, "number of turns to show (default 20)")
      ->type_name("NUMBER")
      ->check(CLI::PositiveNumber);
  command.add_flag("--bodies", question.bodies,
                   "show the recorded bodies of writes, of operators with spec.record: Bodies");
  command.add_option("--file", flags_->file, "read this file of the flight recorder")
      ->type_name("FILE");
  command.add_option("-o,--output", flags_->output, "json (default: text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"json"}));
}

Result<std::string> TimelineCommand::text(const host::Config& given) const {
  commands::TimelineOptions options = flags_->options;
  options.json = flags_->output == "json";
  options.question.name = commands::recorded_name(options.question.name);
  options.question.instances = commands::instances_of(options.question.name);
  commands::RecordsAccess access = HANGAR_TRY(records_.resolve(given));
  if (!flags_->file.empty()) access.local = {.directory = {}, .file = flags_->file};
  return ask_about<std::string>(
      given, access, options.question, "timeline",
      [&options](commands::Records& records, const seeing::TurnsQuestion& question) {
        commands::TimelineOptions of_question = options;
        of_question.question = question;
        return commands::timeline(std::move(of_question), records);
      });
}

int TimelineCommand::run() const {
  const Result<host::Config> given = settings_.resolve();
  if (!given) return report(given.error(), kWrongUsage);
  const Result<std::string> printed = text(*given);
  if (!printed) return report(printed.error(), kFailed);
  fmt::print("{}", *printed);
  return kDone;
}

WhyCommand::WhyCommand(CLI::App& command)
    : records_(command),
      settings_(command, {Part::Log, Part::Cluster, Part::Modules, Part::Records}) {
  command
      .add_option("KIND/NAME", flags_->options.object,
                  "the object: its kind or plural with the group, and its name, such as "
                  "deployment.apps/web")
      ->type_name("KIND/NAME")
      ->required();
  command
      .add_option("-n,--namespace", flags_->options.namespace_,
                  "its namespace (default: the kubeconfig's)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
  command
      .add_option("--field", flags_->options.field,
                  "explain only this field, such as .spec.replicas or "
                  ".spec.containers[name=web].image (default: the whole object)")
      ->type_name("FIELD");
  command
      .add_option("--writes", flags_->options.writes_max,
                  "number of recent writes to show (default 10)")
      ->type_name("NUMBER")
      ->check(CLI::PositiveNumber);
  command.add_flag("-f,--follow", flags_->options.follow, "keep printing new writes");
  command.add_flag("--bodies", flags_->options.bodies,
                   "show the recorded bodies of writes, of operators with spec.record: Bodies");
  command.add_option("-o,--output", flags_->output, "json or mermaid (default: text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"json", "mermaid"}));
}

int WhyCommand::run() const {
  const Result<host::Config> given = settings_.resolve();
  if (!given) return report(given.error(), kWrongUsage);
  Result<commands::RecordsAccess> access = records_.resolve(*given);
  if (!access) return report(access.error(), kFailed);
  const Result<host::Config> config = host::resolve(*given);
  if (!config) return report(config.error(), kFailed);
  commands::WhyOptions options = flags_->options;
  options.records = *std::move(access);
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

RightsCommand::RightsCommand(CLI::App& command)
    : records_(command),
      settings_(command, {Part::Log, Part::Cluster, Part::Modules, Part::Records}) {
  commands::RightsOptions& options = flags_->options;
  add_guest(command, options.question.name, options.question.namespace_);
  command.add_flag("--names", flags_->names,
                   "restrict rules to the names of the objects that it used, for kinds that it "
                   "does not list, watch or create and of which it used at most 16 objects");
  command
      .add_option("--role", options.roles.role,
                  "name of the roles and bindings, such as the name of a role to replace (default "
                  "hangar:used:NAMESPACE:NAME)")
      ->type_name("NAME")
      ->check(check_role_name);
  command
      .add_option(
          "-o,--output", flags_->output,
          "output format: yaml or json (default yaml); with json, remarks go to standard error")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"yaml", "json"}));
}

Result<seeing::FoundUses> RightsCommand::find(const host::Config& given,
                                              seeing::UsesQuestion& question) const {
  const commands::RecordsAccess access = HANGAR_TRY(records_.resolve(given));
  return ask_about<seeing::FoundUses>(
      given, access, question, "rights",
      [](commands::Records& records, const seeing::UsesQuestion& asked) {
        return records.uses(asked);
      });
}

int RightsCommand::run() const {
  const Result<host::Config> given = settings_.resolve();
  if (!given) return report(given.error(), kWrongUsage);
  commands::RightsOptions options = flags_->options;
  options.question.name = commands::recorded_name(options.question.name);
  if (flags_->names) options.roles.names = commands::RoleNames::Touched;
  if (flags_->output == "json") options.format = commands::ManifestFormat::Json;
  const Result<seeing::FoundUses> found = find(*given, options.question);
  if (!found) return report(found.error(), kFailed);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*given);
  const commands::RightsOutput output =
      commands::rights(*given, options, *found, Log(*sink, "rights"));
  fmt::print(stderr, "{}", output.remarks);
  fmt::print("{}", output.text);
  return kDone;
}

}  // namespace hangar::cli
