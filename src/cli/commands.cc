#include "cli/commands.h"

#include "base/dns_name.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/argocd_command.h"
#include "cli/atc_program.h"
#include "cli/build_commands.h"
#include "cli/completion.h"
#include "cli/console_command.h"
#include "cli/demo_command.h"
#include "cli/last_line.h"
#include "cli/module_commands.h"
#include "cli/release_commands.h"
#include "cli/seeing_commands.h"
#include "cli/setting_flags.h"
#include "cli/standard_streams.h"
#include "cli/tenant_commands.h"
#include "cli/top_command.h"
#include "cli/uninstall_command.h"
#include "cli/yoke_program.h"
#include "commands/build_machine.h"
#include "commands/flight_from_chart.h"
#include "commands/node_fleet.h"
#include "commands/output_logs.h"
#include "commands/pod_logs.h"
#include "commands/ready.h"
#include "commands/run_directory.h"
#include "commands/run_flight.h"
#include "commands/run_machine.h"
#include "commands/workflow_commands.h"
#include "host/config.h"
#include "host/host.h"
#include "host/log.h"
#include "host/version.h"
#include "io/file.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

using host::Part;

int run_host(const SettingFlags& flags) {
  const Result<host::Config> config = flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<> ended = host::run_host(*config, *sink);
  return ended ? kDone : report(ended.error(), kFailed);
}

// Without a path, reads a pipe on stdin, but not a terminal: a flight that needs no input must not
// wait for a person. Returns an empty text if there is no input.
Result<std::string> read_input(const std::string& path) {
  if (path.empty() && ::isatty(STDIN_FILENO) == 1) return std::string();
  if (!path.empty() && path != "-") return io::read_file(path, limits::kObjectBytesMax);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

// A check for --name and similar flags, whose value goes into a manifest: why it cannot be the name
// of an object, or nothing. An empty value counts as not given.
std::string check_object_name(const std::string& name) {
  if (name.empty() || is_dns_subdomain(name)) return {};
  return fmt::format(
      "must be a name such as my-app.v1: lower case letters, digits, '-' and '.', at most {}, each "
      "part between dots beginning and ending with a letter or digit",
      kDnsNameBytesMax);
}

struct FlightFlags {
  commands::RunFlightOptions options;
  std::string input_path;
  std::string timeout;
};

void add_flight_flags(CLI::App& command, FlightFlags& flags) {
  auto& options = flags.options;
  command
      .add_option("MODULE", options.module,
                  "module of the flight: a file, or a URL as in an Airway")
      ->type_name("FILE|URL")
      ->required();
  command.add_option("ARGS", options.args, "arguments of the flight, after --")->type_name("TEXT");
  command
      .add_option("-f,--file", flags.input_path,
                  "file with the custom resource; - reads stdin, also from a terminal (default: "
                  "stdin, unless it is a terminal)")
      ->type_name("FILE");
  command
      .add_option("--release", options.release,
                  "release name (default: derived from the resource; flight without a resource)")
      ->type_name("NAME");
  command
      .add_option("--release-namespace", options.namespace_,
                  "release namespace (default: the resource's; default without a resource)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
  command.add_option("--checksum", options.checksum, "expected SHA-256 of the module")
      ->type_name("SHA256");
  command.add_flag("--insecure", options.insecure,
                   "allow plain HTTP, and HTTPS without verifying the certificate");
  command.add_flag("--cluster-access", options.cluster_access,
                   "answer the flight's lookups from the cluster");
  command
      .add_option(
          "--resource-access", options.resource_access_matchers,
          "resources outside the release that the flight may look up: [ns/]Kind.group[:name]")
      ->type_name("MATCHER");
  command.add_flag("--diff", options.diff, "show what would change in the cluster");
  command
      .add_option("--diff-context", options.diff_context,
                  "lines of context around each change (default 4)")
      ->type_name("LINES");
  command.add_option("--timeout", flags.timeout, "time limit of the flight (default 10s)")
      ->type_name("DURATION");
  command
      .add_option("--max-memory-mib", options.memory_mib_max, "memory limit of the flight, in MiB")
      ->type_name("NUMBER");
}

int run_flight(const SettingFlags& setting_flags, FlightFlags flags) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  if (!flags.timeout.empty()) {
    const Result<Duration> timeout = parse_go_duration(flags.timeout);
    if (!timeout) return report(Error(timeout.error()).in("--timeout"), kWrongUsage);
    flags.options.timeout = *timeout;
  }
  Result<std::string> input = read_input(flags.input_path);
  if (!input) return report(input.error(), kFailed);
  flags.options.input = *std::move(input);
  flags.options.show = last_line();

  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<commands::RunFlightOutput> output =
      commands::run_flight(*config, std::move(flags.options), Log(*sink, "run-flight"));
  if (!output) return report(output.error(), kFailed);
  fmt::print(stderr, "{}", output->stderr_text);
  fmt::print("{}", output->text);
  return kDone;
}

struct RunFlags {
  std::string directory;
  std::string sleep_after = "1s";
  bool never_sleep = false;
};

void add_run_flags(CLI::App& command, RunFlags& flags) {
  command.add_option("DIR", flags.directory, "directory with a wasm_config.yaml")
      ->type_name("DIRECTORY")
      ->required();
  command
      .add_option("--sleep-after", flags.sleep_after,
                  "idle time after which an operator is suspended to disk (default 1s)")
      ->type_name("DURATION");
  command.add_flag("--never-sleep", flags.never_sleep, "keep all operators in memory");
}

int run_directory(const SettingFlags& setting_flags, const RunFlags& flags) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const Result<Duration> after = parse_go_duration(flags.sleep_after);
  if (!after || *after < Duration::zero()) {
    return report(Error(ErrorKind::InvalidInput, "--sleep-after: must be a duration such as 1s"),
                  kWrongUsage);
  }
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<> ended = commands::run_directory(
      *config,
      {.directory = flags.directory,
       .sleep_after = flags.never_sleep ? std::nullopt : std::optional(*after)},
      Log(*sink, "run"));
  return ended ? kDone : report(ended.error(), kFailed);
}

struct LogsFlags {
  std::string name;
  std::string namespace_;
  std::optional<std::size_t> tail;
  bool follow = false;
};

void add_logs_flags(CLI::App& command, LogsFlags& flags) {
  command
      .add_option("NAME", flags.name,
                  "an Operator; AIRWAY/NAME, such as backends.examples.com/test, for an instance "
                  "and the stderr of its flight; or airway/AIRWAY for all instances of an Airway")
      ->type_name("NAME")
      ->required();
  command
      .add_option(
          "-n,--namespace", flags.namespace_,
          "namespace (default: the kubeconfig's, unless hangar run has an operator of this name)")
      ->type_name("NAMESPACE");
  command
      .add_option("--tail", flags.tail,
                  "number of lines to print from the end (default: all that are kept)")
      ->type_name("LINES");
  command.add_flag("-f,--follow", flags.follow, "keep printing new lines as they arrive");
}

int print_logs(const SettingFlags& setting_flags, const LogsFlags& flags) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  commands::LogsOptions options{.namespace_ = flags.namespace_,
                                .name = flags.name,
                                .tail_lines = flags.tail,
                                .follow = flags.follow};
  if (const std::size_t slash = flags.name.find('/'); slash != std::string::npos) {
    options.resource = flags.name.substr(0, slash);
    options.name = flags.name.substr(slash + 1);
    if (options.resource.empty() || options.name.empty() || options.name.contains('/')) {
      return report(Error(ErrorKind::InvalidInput,
                          "NAME: must be an operator, AIRWAY/NAME, or airway/AIRWAY"),
                    kWrongUsage);
    }
    if (options.resource == "airway") options.resource = std::exchange(options.name, {});
  }
  const auto print = [](std::string_view text) {
    fmt::print("{}", text);
    return std::fflush(stdout) == 0;
  };
  const auto is_elsewhere = [](const Result<>& ended) {
    return !ended && ended.error().kind() == ErrorKind::NotFound;
  };
  Result<> ended = commands::print_output_logs(*config, options, print);
  if (is_elsewhere(ended) && options.namespace_.empty()) {
    Result<std::string> namespace_ = commands::kubeconfig_namespace(*config);
    if (!namespace_) return report(ended.error(), kFailed);
    options.namespace_ = *std::move(namespace_);
    ended = commands::print_output_logs(*config, options, print);
  }
  if (is_elsewhere(ended)) {
    const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
    ended = commands::print_pod_logs(*config, options, print, Log(*sink, "logs"));
  }
  return ended ? kDone : report(ended.error(), kFailed);
}

struct NodesFlags {
  std::string format;
  bool watch = false;
};

int print_nodes(const SettingFlags& setting_flags, const NodesFlags& flags) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  if (!flags.format.empty() && flags.format != "json") {
    return report(Error(ErrorKind::InvalidInput, "-o: json, or nothing for a table"), kWrongUsage);
  }
  const auto format =
      flags.format.empty() ? commands::FleetFormat::Table : commands::FleetFormat::Json;
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Log log(*sink, "nodes");
  if (flags.watch) {
    const Result<commands::WatchedFleet> watched =
        commands::watch_fleet(*config, format, last_line(), log);
    if (!watched) return report(watched.error(), kFailed);
    fmt::print("{}", watched->text);
    return watched->is_halted ? kFailed : kDone;
  }
  const Result<std::string> text = commands::node_fleet(*config, format, log);
  if (!text) return report(text.error(), kFailed);
  fmt::print("{}", *text);
  return kDone;
}

int check_ready(const std::string& url) {
  const Result<> ready = commands::check_ready(url);
  if (ready) fmt::print("ready\n");
  if (ready) return kDone;
  return report(ready.error(),
                ready.error().kind() == ErrorKind::InvalidInput ? kWrongUsage : kFailed);
}

struct RunMachineFlags {
  commands::RunMachineOptions options;
  std::string events_path = "-";
  std::string output = "text";
};

void add_run_machine_flags(CLI::App& command, RunMachineFlags& flags) {
  command
      .add_option(
          "MODULE", flags.options.module,
          "the machine: a project directory, a bundle, a module, a file with a ConfigMap, or a URL")
      ->type_name("DIRECTORY|FILE|URL")
      ->required();
  command
      .add_option("--plugin", flags.options.plugin,
                  "plugin of a dynamically linked module, such as Javy's: a file or a URL")
      ->type_name("FILE|URL");
  command
      .add_option("--input", flags.options.input,
                  "value of spec.input, in JSON or YAML (default: {})")
      ->type_name("OBJECT");
  command
      .add_option(
          "-e,--events", flags.events_path,
          "file with one event per line: TYPE, TYPE {...} or {\"type\": ...} (default: stdin)")
      ->type_name("FILE");
  command
      .add_option("-o,--output", flags.output,
                  "output format: text, json, mermaid or tree; the last two draw the machine "
                  "(default text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json", "mermaid", "tree"}));
  command
      .add_option("--repeat", flags.options.repeat,
                  "replay the events this many more times, and print the time per step")
      ->type_name("NUMBER");
}

int run_machine(const SettingFlags& setting_flags, RunMachineFlags flags) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  if (flags.output == "json") flags.options.output = commands::MachineOutput::JsonLines;
  if (flags.output == "mermaid") flags.options.output = commands::MachineOutput::Mermaid;
  if (flags.output == "tree") flags.options.output = commands::MachineOutput::Tree;
  flags.options.show = last_line();
  std::ifstream file;
  if (flags.events_path != "-") {
    file.open(flags.events_path);
    if (!file) {
      return report(Error(ErrorKind::NotFound, "cannot read " + flags.events_path), kFailed);
    }
  }
  std::istream& events = flags.events_path == "-" ? std::cin : file;
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<> ended = commands::run_machine(
      *config, flags.options,
      [&events]() -> std::optional<std::string> {
        std::string line;
        if (!std::getline(events, line)) return std::nullopt;
        return line;
      },
      [](std::string_view text) {
        fmt::print("{}", text);
        std::fflush(stdout);  // A person sees the result of each event at once.
      },
      Log(*sink, "machine"));
  return ended ? kDone : report(ended.error(), kFailed);
}

void add_from_chart_flags(CLI::App& command, commands::FlightFromChartOptions& options) {
  command.add_option("CHART", options.chart, "Helm chart: a directory or a .tgz file")
      ->type_name("DIRECTORY|FILE")
      ->required();
  command.add_option("--out", options.out, "directory to create; an existing one must be empty")
      ->type_name("DIRECTORY")
      ->required();
  command
      .add_option("--module", options.module, "name of the Go module (default: the chart's name)")
      ->type_name("NAME");
  command
      .add_option("--kube-version", options.kube_version,
                  "Kubernetes version to render the chart for (default: Helm's)")
      ->type_name("VERSION");
  command.add_flag("--include-crds", options.include_crds,
                   "render the chart's CustomResourceDefinitions as well");
  command.add_flag("--no-hooks", options.no_hooks, "leave out the chart's hooks");
}

int make_flight_from_chart(const commands::FlightFromChartOptions& options) {
  if (const Result<> made = commands::flight_from_chart(options); !made) {
    return report(made.error(), kFailed);
  }
  fmt::print(
      "{0} is a flight. Build it with:\n"
      "  cd {0} && GOOS=wasip1 GOARCH=wasm go build -trimpath -ldflags '-s -w' -o flight.wasm .\n",
      options.out.string());
  return kDone;
}

void add_build_machine_flags(CLI::App& command, commands::BuildMachineOptions& options) {
  command
      .add_option("DIR", options.project.directory,
                  "directory of a TypeScript or JavaScript project")
      ->type_name("DIRECTORY")
      ->required();
  command.add_option("--entry", options.project.entry, "entry file (default: src/index.ts, ...)")
      ->type_name("FILE");
  command
      .add_option("--name", options.name, "name of the ConfigMap (default: the directory's name)")
      ->type_name("NAME")
      ->check(check_object_name);
  command.add_option("-n", options.namespace_, "namespace of the ConfigMap")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
}

int build_machine(const SettingFlags& setting_flags, commands::BuildMachineOptions options) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  options.show = last_line();
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<std::string> text = commands::build_machine(*config, options, Log(*sink, "machine"));
  if (!text) return report(text.error(), kFailed);
  fmt::print("{}", *text);
  return kDone;
}

struct WorkflowFlags {
  commands::WorkflowName workflow;
  commands::WorkflowSignal signal;
  std::string output = "text";
};

// Adds a subcommand with the argument NAME, a workflow.
CLI::App* add_workflow_command(CLI::App& parent, const char* name, const char* help,
                               WorkflowFlags& flags) {
  CLI::App* const command = parent.add_subcommand(name, help);
  command->add_option("NAME", flags.workflow.name, "name of the StatefulWorkflow")
      ->type_name("NAME")
      ->required();
  command
      ->add_option("-n", flags.workflow.namespace_,
                   "its namespace (default: the kubeconfig's, else default)")
      ->type_name("NAMESPACE");
  return command;
}

int show_workflow(const SettingFlags& setting_flags, const WorkflowFlags& flags) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<commands::ShownWorkflow> shown = commands::show_workflow(
      *config, flags.workflow,
      flags.output == "mermaid" ? commands::Drawing::Mermaid : commands::Drawing::Tree,
      Log(*sink, "workflow"));
  if (!shown) return report(shown.error(), kFailed);
  fmt::print("{}", shown->text);
  if (!shown->trouble) return kDone;
  std::fflush(stdout);  // The error comes last even if both go to one file.
  return report(*shown->trouble, kFailed);
}

int signal_workflow(const SettingFlags& setting_flags, const WorkflowFlags& flags) {
  const Result<host::Config> config = setting_flags.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Result<std::string> id =
      commands::signal_workflow(*config, flags.workflow, flags.signal, Log(*sink, "workflow"));
  if (!id) {
    return report(id.error(), id.error().kind() == ErrorKind::InvalidInput ? kWrongUsage : kFailed);
  }
  fmt::print("{}\n", *id);
  return kDone;
}

}  // namespace

ProgramName program_name(std::string_view argv0) {
  const std::string_view name = argv0.substr(argv0.rfind('/') + 1);
  if (name == "yoke") return ProgramName::Yoke;
  if (name == "atc") return ProgramName::Atc;
  if (name == "yokecd") return ProgramName::Yokecd;
  return ProgramName::Hangar;
}

int run(int argc, char** argv) {
  const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  const ProgramName name = argc > 0 ? program_name(argv[0]) : ProgramName::Hangar;
  if (name == ProgramName::Yoke) return run_yoke(given);
  if (name == ProgramName::Atc) return run_atc(given);
  if (name == ProgramName::Yokecd) return run_yokecd(given);
  auto parser = std::make_unique<CLI::App>(
      "hangar runs a cluster's operators as WebAssembly modules", "hangar");
  CLI::App& app = *parser;
  app.require_subcommand(1);
  app.fallthrough(false);
  const std::string version = fmt::format("hangar {}", host::kVersion);
  app.set_version_flag("--version", version, "print the version");

  CLI::App* const host_command = app.add_subcommand("host", "run all controllers until SIGTERM");
  const SettingFlags host_flags(*host_command);

  CLI::App* const flight_command = app.add_subcommand(
      "run-flight",
      "run a flight once and print the resources that it would apply; stdin is its input");
  const SettingFlags flight_settings(*flight_command, {Part::Log, Part::Cluster, Part::Requests,
                                                       Part::Modules, Part::Policy, Part::Walls});
  FlightFlags flight_flags;
  add_flight_flags(*flight_command, flight_flags);

  CLI::App* const run_command =
      app.add_subcommand("run",
                         "run the operators of a directory with the rights of the kubeconfig, "
                         "until SIGINT or SIGTERM");
  const SettingFlags run_settings(
      *run_command, {Part::Log, Part::Cluster, Part::Requests, Part::Modules, Part::Policy,
                     Part::Guests, Part::Walls, Part::Endpoints, Part::Recorder, Part::Records});
  RunFlags run_flags;
  add_run_flags(*run_command, run_flags);

  CLI::App* const logs_command =
      app.add_subcommand("logs",
                         "print the recent output of an operator or a flight, on the host's "
                         "machine or from its pod's log");
  const SettingFlags logs_settings(*logs_command,
                                   {Part::Log, Part::Cluster, Part::Modules, Part::Pod});
  LogsFlags logs_flags;
  add_logs_flags(*logs_command, logs_flags);

  CLI::App* const timeline_command = app.add_subcommand(
      "timeline", "print the recorded turns of an operator, a workflow or a flight");
  const TimelineCommand timeline(*timeline_command);
  CLI::App* const why_command =
      app.add_subcommand("why", "print the writes to an object and the causes of each");
  const WhyCommand why(*why_command);
  CLI::App* const rights_command = app.add_subcommand(
      "rights",
      "print the smallest roles that cover the recorded requests of an operator, a workflow or a "
      "flight, for kubectl apply, and its unused rights");
  const RightsCommand rights(*rights_command);
  CLI::App* const top_command =
      app.add_subcommand("top",
                         "show the resource usage of operators, workflows and flights: CPU time, "
                         "turns, requests, memory, disk");
  const TopCommand top(*top_command);
  CLI::App* const console_command = app.add_subcommand(
      "console",
      "open a page in the browser of this machine that shows operators, Airways, workflows, nodes "
      "and tenants, with the rights of the kubeconfig");
  const ConsoleCommand console(*console_command);
  CLI::App* const demo_command = app.add_subcommand(
      "demo",
      "show operators, an Airway and a workflow on a cluster, and remove them again; needs kubectl "
      "and rights to make namespaces, kinds and roles");
  const DemoCommand demo(*demo_command);

  CLI::App* const nodes_command =
      app.add_subcommand("nodes", "show the provisioning phase of each node, and the rollout");
  const SettingFlags nodes_settings(*nodes_command, {Part::Log, Part::Cluster, Part::Place});
  NodesFlags nodes_flags;
  nodes_command
      ->add_option("-o,--output", nodes_flags.format, "output format: json (default: a table)")
      ->type_name("FORMAT");
  nodes_command->add_flag("-w,--watch", nodes_flags.watch,
                          "wait until the rollout is done, or halted by a failure (exit code 1); "
                          "shows the progress on a terminal");

  CLI::App* const source_command = app.add_subcommand("flight", "generate the source of a flight");
  source_command->require_subcommand(1);
  CLI::App* const from_chart_command = source_command->add_subcommand(
      "from-chart", "generate a flight in Go that renders a Helm chart, with types for its values");
  commands::FlightFromChartOptions from_chart_options;
  add_from_chart_flags(*from_chart_command, from_chart_options);

  CLI::App* const build_command = app.add_subcommand(
      "build",
      "build modules from programs that use controller-runtime, and native code from modules");
  const BuildCommands build_commands(*build_command);

  CLI::App* const machine_command =
      app.add_subcommand("machine", "build and try out machines for workflows");
  machine_command->require_subcommand(1);
  CLI::App* const build_machine_command = machine_command->add_subcommand(
      "build",
      "bundle a project with esbuild and print the ConfigMap that StatefulWorkflows refer to");
  const SettingFlags build_machine_settings(*build_machine_command,
                                            {Part::Log, Part::Modules, Part::Walls});
  commands::BuildMachineOptions build_machine_options;
  add_build_machine_flags(*build_machine_command, build_machine_options);
  CLI::App* const run_machine_command = machine_command->add_subcommand(
      "run",
      "send events to a machine and print its states and requested actions; needs no cluster");
  const SettingFlags run_machine_settings(*run_machine_command,
                                          {Part::Log, Part::Modules, Part::Walls});
  RunMachineFlags run_machine_flags;
  add_run_machine_flags(*run_machine_command, run_machine_flags);

  CLI::App* const workflow_command =
      app.add_subcommand("workflow", "show a StatefulWorkflow, or send it an event");
  workflow_command->require_subcommand(1);
  WorkflowFlags show_flags;
  CLI::App* const show_command =
      add_workflow_command(*workflow_command, "show",
                           "draw the machine of a workflow and its current state", show_flags);
  show_command
      ->add_option("-o,--output", show_flags.output,
                   "output format: mermaid for a state diagram alone (default: text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "mermaid"}));
  const SettingFlags show_settings(*show_command,
                                   {Part::Log, Part::Cluster, Part::Modules, Part::Walls});
  WorkflowFlags signal_flags;
  CLI::App* const signal_command =
      add_workflow_command(*workflow_command, "signal",
                           "send an event to a workflow, and print the event's ID", signal_flags);
  signal_command
      ->add_option("EVENT", signal_flags.signal.event, "type of the event, or {\"type\": ...}")
      ->type_name("EVENT")
      ->required();
  signal_command
      ->add_option("--data", signal_flags.signal.data,
                   "data of the event, an object in JSON or YAML")
      ->type_name("OBJECT");
  signal_command
      ->add_option("--id", signal_flags.signal.id,
                   "ID of the event; events with the same ID count once (default: a new ID)")
      ->type_name("ID");
  const SettingFlags signal_settings(*signal_command, {Part::Log, Part::Cluster});

  CLI::App* const tenant_command = app.add_subcommand(
      "tenant", "manage the namespaces in which hangar may act, with the rights of the kubeconfig");
  const TenantCommands tenant_commands(*tenant_command);
  CLI::App* const uninstall_command = app.add_subcommand(
      "uninstall",
      "prepare the cluster for the removal of hangar: afterwards no webhook, conversion or "
      "finalizer waits for a host; deletes no object that users created");
  const UninstallCommand uninstall(*uninstall_command);

  ReleaseCommands release_commands(app);
  const ModuleCommands module_commands(app);
  CLI::App* const argocd_command = app.add_subcommand(
      "argocd",
      "print the resources of an Argo CD Application, as its config management plugin; or serve "
      "the plugin");
  const ArgocdCommand argocd(*argocd_command);

  const CompletionCommand completion(app, "hangar");

  CLI::App* const ready_command = app.add_subcommand(
      "ready",
      "check whether a running host is ready: exit code 0 if it is, otherwise 1 and the reason");
  std::string ready_url;
  ready_command
      ->add_option("URL", ready_url,
                   "URL of the host's endpoints, such as http://hangar.hangar-system")
      ->type_name("URL")
      ->required();

  CLI::App* const version_command = app.add_subcommand("version", "print the version");

  if (!given.empty() && given.front() == kCompleteWord) {
    print(complete_command(app, std::span(given).subspan(1)));
    return kDone;
  }
  try {
    std::vector<std::string> arguments =
        argocd.read(module_commands.read(release_commands.read(given)));
    std::ranges::reverse(arguments);  // CLI11 takes them from the last to the first.
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kDone : kWrongUsage;
  }
  // These commands may run for long: they free the parser, which has every setting once per
  // command.
  const bool is_host = host_command->parsed();
  const bool is_run = run_command->parsed();
  const bool is_argocd = argocd_command->parsed();
  if (is_host || is_run || is_argocd) parser.reset();
  if (is_host) return run_host(host_flags);
  if (is_run) return run_directory(run_settings, run_flags);
  if (is_argocd) return argocd.run();
  if (flight_command->parsed()) return run_flight(flight_settings, std::move(flight_flags));
  if (logs_command->parsed()) return print_logs(logs_settings, logs_flags);
  if (timeline_command->parsed()) return timeline.run();
  if (why_command->parsed()) return why.run();
  if (rights_command->parsed()) return rights.run();
  if (top_command->parsed()) return top.run();
  if (console_command->parsed()) return console.run();
  if (demo_command->parsed()) return demo.run();
  if (nodes_command->parsed()) return print_nodes(nodes_settings, nodes_flags);
  if (from_chart_command->parsed()) return make_flight_from_chart(from_chart_options);
  if (build_command->parsed()) return build_commands.run();
  if (build_machine_command->parsed()) {
    return build_machine(build_machine_settings, build_machine_options);
  }
  if (run_machine_command->parsed()) {
    return run_machine(run_machine_settings, std::move(run_machine_flags));
  }
  if (show_command->parsed()) return show_workflow(show_settings, show_flags);
  if (signal_command->parsed()) return signal_workflow(signal_settings, signal_flags);
  if (tenant_command->parsed()) return tenant_commands.run();
  if (uninstall_command->parsed()) return uninstall.run();
  if (release_commands.parsed()) return release_commands.run();
  if (module_commands.parsed()) return module_commands.run();
  if (completion.parsed()) return completion.run();
  if (ready_command->parsed()) return check_ready(ready_url);
  if (version_command->parsed()) fmt::print("{}\n", version);
  return kDone;
}

}  // namespace hangar::cli
