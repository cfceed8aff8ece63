#include "cli/release_commands.h"

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/go_flags.h"
#include "cli/last_line.h"
#include "cli/setting_flags.h"
#include "cli/standard_streams.h"
#include "commands/blackbox.h"
#include "commands/limits.h"
#include "commands/release_steps.h"
#include "commands/release_text.h"
#include "commands/releases.h"
#include "commands/takeoff.h"
#include "host/config.h"
#include "host/log.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

using commands::Finished;
using host::Part;

// Like Go's strconv.Atoi. Accepts zero and negative numbers: commands that need a revision check
// its range.
Result<long> parse_number(std::string_view text, std::string_view what) {
  long number = 0;
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format(
            "{} must be an integer ID: strconv.Atoi: parsing \"{}\": {}", what, text,
            read.ec == std::errc::result_out_of_range ? "value out of range" : "invalid syntax"));
  }
  return number;
}

// The number of a revision; zero for numbers below one, which no revision has.
std::size_t revision_of(long number) {
  return static_cast<std::size_t>(std::max(number, 0L));
}

void show_waiting(std::string_view text) {
  show_on_last_line(text.empty() ? std::string() : fmt::format("waiting for {}", text));
}

// The address space of a flight; more than any needs.
constexpr std::uint64_t kMemoryMibMax = 4096;

Result<Duration> parse_duration(const std::string& text, std::string_view flag) {
  Result<Duration> duration = parse_go_duration(text);
  if (!duration) return std::unexpected(std::move(duration).error().in(flag));
  return duration;
}

}  // namespace

ReleaseCommand::ReleaseCommand(CLI::App& command, std::initializer_list<host::Part> parts)
    : command_(command), settings_(command, parts, {{"context", "kube-context"}}) {
  command.add_flag("--debug", *debug_, "log at level debug");
}

int ReleaseCommand::run(const Result<>& check, const Work& work) const {
  Result<host::Config> config = settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  if (*debug_) config->log_level = LogLevel::Debug;
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Log log(*sink, command_.get_name());
  const Result<Finished> finished =
      check ? work(*config, log) : Result<Finished>(std::unexpected(check.error()));
  if (!finished) {
    fmt::print(stderr, "{}\n", without_controls(finished.error().message()));
    return kFailed;
  }
  if (!finished->warning.empty()) fmt::print(stderr, "{}\n", without_controls(finished->warning));
  return kDone;
}

commands::ReleaseName ReleaseCommands::Flags::name() const {
  return {.name = release, .namespace_ = namespace_};
}

commands::PruneOptions ReleaseCommands::Flags::prune() const {
  return {.crds = remove_all || remove_crds, .namespaces = remove_all || remove_namespaces};
}

Result<> ReleaseCommands::Flags::check_release() const {
  if (release.empty()) return fail(ErrorKind::InvalidInput, "release is required");
  return {};
}

Result<commands::Waiting> ReleaseCommands::Flags::waiting() const {
  commands::Waiting waiting;
  waiting.time_max = HANGAR_TRY(parse_duration(wait, "--wait"));
  waiting.poll = HANGAR_TRY(parse_duration(poll, "--poll"));
  if (waiting.poll <= Duration::zero()) {
    return fail(ErrorKind::InvalidInput, "--poll: must be greater than 0");
  }
  if (::isatty(STDERR_FILENO) == 1) waiting.show = show_waiting;
  return waiting;
}

void ReleaseCommands::add_release(CLI::App& command, Flags& flags) {
  command.add_option("RELEASE", flags.release, "name of the release")->type_name("NAME");
  command
      .add_option("--namespace", flags.namespace_,
                  "namespace of the release (default: the kubeconfig's)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
}

void ReleaseCommands::add_waiting(CLI::App& command, Flags& flags) {
  command
      .add_option("--wait", flags.wait,
                  "time to wait until the release is ready (default 0: do not wait)")
      ->type_name("DURATION");
  command.add_option("--poll", flags.poll, "interval between checks while waiting (default 5s)")
      ->type_name("DURATION");
  command.add_flag("--lock", flags.lock,
                   "lock the release during the command; blocks only other commands with --lock");
  command.add_flag("--load-custom-readiness", flags.load_custom_readiness,
                   "use the readiness rules in the cluster's ConfigMaps for custom kinds");
}

void ReleaseCommands::add_prune(CLI::App& command, Flags& flags) {
  command.add_flag("--remove-all", flags.remove_all,
                   "also delete CustomResourceDefinitions and Namespaces of the release, with "
                   "everything in them (default: they stay, without an owner)");
  command.add_flag("--remove-crds", flags.remove_crds,
                   "also delete CustomResourceDefinitions of the release");
  command.add_flag("--remove-namespaces", flags.remove_namespaces,
                   "also delete Namespaces of the release");
}

ReleaseCommands::ReleaseCommands(CLI::App& app)
    : blackbox_(add_command(app, "blackbox",
                            "list releases, show the revisions of a release or the resources of a "
                            "revision, or compare two revisions",
                            {"inspect"}),
                {Part::Log, Part::Cluster, Part::Requests}),
      descent_(add_command(app, "descent", "roll back a release to an older revision",
                           {"down", "restore"}),
               {Part::Log, Part::Cluster, Part::Requests, Part::Walls}),
      mayday_(add_command(app, "mayday", "delete a release with its resources and its history",
                          {"delete"}),
              {Part::Log, Part::Cluster, Part::Requests}),
      unlatch_(add_command(app, "unlatch", "unlock a release that a killed command left locked",
                           {"unlock"}),
               {Part::Log, Part::Cluster, Part::Requests}),
      takeoff_(
          add_command(app, "takeoff",
                      "create or update a release from the output of a flight, or from "
                      "resources on standard input",
                      {"up", "apply"}),
          {Part::Log, Part::Cluster, Part::Requests, Part::Modules, Part::Policy, Part::Walls}),
      turbulence_(add_command(app, "turbulence",
                              "show the differences between a release and the cluster, or fix them",
                              {"drift", "diff"}),
                  {Part::Log, Part::Cluster, Part::Requests}),
      stow_(add_command(app, "stow", "push a module into an OCI registry", {"push"}),
            {Part::Log, Part::Modules}) {
  flags_->color = ::isatty(STDOUT_FILENO) == 1;
  const auto app_of = [&app](const char* name) -> CLI::App& { return *app.get_subcommand(name); };
  CLI::App& blackbox = app_of("blackbox");
  add_release(blackbox, *flags_);
  blackbox.add_option("REVISION", flags_->revision, "number of the revision to show")
      ->type_name("NUMBER");
  blackbox
      .add_option("COMPARED-WITH", flags_->compared_with,
                  "number of the revision to compare it with")
      ->type_name("NUMBER");
  add_context(blackbox, *flags_);

  CLI::App& descent = app_of("descent");
  add_release(descent, *flags_);
  descent.add_option("REVISION", flags_->revision, "number of the revision, as blackbox shows it")
      ->type_name("NUMBER");
  add_waiting(descent, *flags_);
  add_prune(descent, *flags_);

  CLI::App& mayday = app_of("mayday");
  add_release(mayday, *flags_);
  add_prune(mayday, *flags_);

  add_release(app_of("unlatch"), *flags_);
  add_takeoff(app_of("takeoff"), *flags_);

  CLI::App& turbulence = app_of("turbulence");
  add_release(turbulence, *flags_);
  add_difference(turbulence, *flags_);
  turbulence.add_flag(
      "--conflict-only", flags_->turbulence.conflicts_only,
      "compare only the fields that the release sets; =false: all fields (default true)");
  turbulence.add_flag(
      "--fix", flags_->turbulence.fix,
      "apply differing resources again, also over fields that another manager has set");

  add_stow(app_of("stow"), *flags_);
}

void ReleaseCommands::add_context(CLI::App& command, Flags& flags) {
  command
      .add_option("--context", flags.context_lines,
                  "lines of context around each difference (default 4)")
      ->type_name("LINES");
}

void ReleaseCommands::add_difference(CLI::App& command, Flags& flags) {
  add_context(command, flags);
  command.add_flag("--color", flags.color,
                   "color differences (default: if the output is a terminal)");
}

void ReleaseCommands::add_stow(CLI::App& command, Flags& flags) {
  command.add_option("MODULE", flags.module, "module file: .wasm or .wasm.gz")->type_name("FILE");
  command.add_option("TARGET", flags.stow.target, "destination: oci://registry/repository:tag")
      ->type_name("URL");
  command.add_option("--tag", flags.stow.tags, "comma-separated additional tags")
      ->type_name("TAGS")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--insecure", flags.stow.insecure,
                   "push over plain HTTP, or HTTPS without verifying the certificate, if the "
                   "registry offers nothing better");
}

void ReleaseCommands::add_takeoff(CLI::App& command, Flags& flags) {
  TakeoffFlags& takeoff = flags.takeoff;
  add_release(command, flags);
  command
      .add_option("MODULE", takeoff.module,
                  "module of the flight: a file or a URL; its arguments follow --, its input is "
                  "standard input (default: standard input contains the resources)")
      ->type_name("FILE|URL");

  command.add_flag("--stdout", takeoff.stdout_only,
                   "print the output of the flight unchanged, and apply nothing");
  command
      .add_option("--out", takeoff.out,
                  "write each resource to a file in this directory, or with - all of them to "
                  "standard output, and apply nothing")
      ->type_name("DIRECTORY");
  command.add_flag("--diff-only", takeoff.diff_only,
                   "show the changes to the release, and apply nothing");
  add_difference(command, flags);
  command.add_flag("--dry", takeoff.dry,
                   "send each resource to the API server as a dry run, and apply nothing");
  command.add_flag("--skip-dry-run", takeoff.skip_dry_run,
                   "apply each stage without a dry run first");

  command.add_flag("--create-namespace", takeoff.create_namespace,
                   "create the release's namespace if it does not exist");
  command.add_flag("--cross-namespace", takeoff.cross_namespace,
                   "allow resources in other namespaces than the release's");
  command.add_flag("--force-conflicts", takeoff.force_conflicts,
                   "take over fields that another manager has set");
  command.add_flag("--force-ownership", takeoff.force_ownership,
                   "take over existing resources that have another owner or none");
  command
      .add_option("--history-cap", takeoff.history_max,
                  "number of revisions to keep; 0 or less keeps all (default 10)")
      ->type_name("NUMBER");
  add_waiting(command, flags);
  add_prune(command, flags);

  command.add_flag(
      "--cluster-access", takeoff.cluster_access,
      "let the flight look up resources of the release, with the rights of the kubeconfig");
  command
      .add_option("--resource-access", takeoff.resource_access,
                  "comma-separated resources outside the release that the flight may look up: "
                  "[ns/]Kind.group[:name]")
      ->type_name("MATCHERS")
      ->delimiter(',')
      ->allow_extra_args(false);  // One value for each flag; the next word is a new argument.
  command.add_option("--checksum", takeoff.checksum, "expected SHA-256 of the module")
      ->type_name("SHA256");
  command
      .add_option("--verify", takeoff.verify,
                  "public key, or directory of public keys (.pem); the module must be signed with "
                  "one of them")
      ->type_name("FILE|DIRECTORY");
  command.add_flag("--insecure", takeoff.insecure,
                   "allow plain HTTP, and HTTPS without verifying the certificate");
  command
      .add_option("--max-memory-mib", takeoff.memory_mib_max,
                  "memory limit of the flight in MiB, at most 4096 (default 128)")
      ->type_name("NUMBER");
  command
      .add_option("--timeout", takeoff.timeout,
                  "time limit of the flight; negative: no limit (default 10s)")
      ->type_name("DURATION");
  command
      .add_option("--compilation-cache", takeoff.compilation_cache,
                  "private directory for modules and compiled code, as --module-cache-dir")
      ->type_name("DIRECTORY");
}

std::vector<const CLI::App*> ReleaseCommands::apps() const {
  return {&blackbox_.app(), &descent_.app(),    &mayday_.app(), &unlatch_.app(),
          &takeoff_.app(),  &turbulence_.app(), &stow_.app()};
}

std::vector<std::string> ReleaseCommands::read(std::vector<std::string> arguments) {
  arguments = read_go_flags(std::move(arguments), apps());
  if (arguments.empty() || !takeoff_.app().check_name(arguments.front())) return arguments;
  const auto end = std::ranges::find(arguments, "--");
  if (end == arguments.end()) return arguments;
  flags_->takeoff.args.assign(std::next(end), arguments.end());
  arguments.erase(end, arguments.end());
  return arguments;
}

bool ReleaseCommands::parsed() const {
  return std::ranges::any_of(apps(), [](const CLI::App* one) { return one->parsed(); });
}

int ReleaseCommands::run() const {
  if (blackbox_.parsed()) return blackbox();
  if (descent_.parsed()) return descent();
  if (mayday_.parsed()) return mayday();
  if (takeoff_.parsed()) return takeoff();
  if (turbulence_.parsed()) return turbulence();
  return stow_.parsed() ? stow() : unlatch();
}

int ReleaseCommands::blackbox() const {
  commands::BlackboxOptions options{.release = flags_->name(),
                                    .context_lines = flags_->context_lines};
  if (::isatty(STDOUT_FILENO) == 1) options.color = commands::Color::Ansi;
  const auto check = [&]() -> Result<> {
    if (!flags_->revision.empty()) {
      options.revision = revision_of(HANGAR_TRY(parse_number(flags_->revision, "revision")));
    }
    if (!flags_->compared_with.empty()) {
      options.compared_with =
          revision_of(HANGAR_TRY(parse_number(flags_->compared_with, "revision to diff")));
    }
    return {};
  };
  const Result<> checked = check();
  return blackbox_.run(
      checked, [&](const host::Config& config, const Log& log) -> Result<Finished> {
        const commands::Shown shown = HANGAR_TRY(commands::blackbox(config, options, log));
        for (const std::string& warning : shown.warnings)
          fmt::print(stderr, "{}\n", without_controls(warning));
        print(shown.text);
        return Finished{};
      });
}

int ReleaseCommands::descent() const {
  commands::DescentOptions options{.release = flags_->name(),
                                   .lock = flags_->lock,
                                   .load_custom_readiness = flags_->load_custom_readiness,
                                   .prune = flags_->prune()};
  const auto check = [&]() -> Result<> {
    if (flags_->release.empty()) {
      return fail(ErrorKind::InvalidInput, "release is required as first positional arg");
    }
    if (flags_->revision.empty()) {
      return fail(ErrorKind::InvalidInput, "revision is required as second positional arg");
    }
    options.revision = revision_of(HANGAR_TRY(parse_number(flags_->revision, "revision")));
    options.waiting = HANGAR_TRY(flags_->waiting());
    return {};
  };
  const Result<> checked = check();
  return descent_.run(checked, [&](const host::Config& config, const Log& log) {
    return commands::descent(config, options, say, log);
  });
}

int ReleaseCommands::mayday() const {
  return mayday_.run(flags_->check_release(), [&](const host::Config& config, const Log& log) {
    return commands::mayday(config, {.release = flags_->name(), .prune = flags_->prune()}, say,
                            log);
  });
}

Result<commands::TakeoffOptions> ReleaseCommands::takeoff_options() const {
  const TakeoffFlags& given = flags_->takeoff;
  if (flags_->release.empty()) {
    return fail(ErrorKind::InvalidInput, "release is required as first positional arg");
  }
  commands::TakeoffOptions options{.release = flags_->name(),
                                   .cluster_access = given.cluster_access,
                                   .resource_access_matchers = given.resource_access,
                                   .out = given.out,
                                   .context_lines = flags_->context_lines,
                                   .create_namespace = given.create_namespace,
                                   .cross_namespace = given.cross_namespace,
                                   .force_ownership = given.force_ownership,
                                   .force_conflicts = given.force_conflicts,
                                   .rehearse = !given.skip_dry_run,
                                   .lock = flags_->lock,
                                   .load_custom_readiness = flags_->load_custom_readiness,
                                   .prune = flags_->prune()};
  using End = commands::TakeoffEnd;
  options.end = given.stdout_only    ? End::Stdout
                : !given.out.empty() ? End::Files
                : given.diff_only    ? End::Diff
                : given.dry          ? End::Dry
                                     : End::Release;
  if (flags_->color) options.color = commands::Color::Ansi;
  options.history_max = given.history_max > 0 ? std::optional(static_cast<std::uint32_t>(std::min(
                                                    given.history_max, std::int64_t{UINT32_MAX})))
                                              : std::nullopt;
  options.waiting = HANGAR_TRY(flags_->waiting());
  if (given.module.empty()) return options;
  options.flight = commands::FlightToRun{
      .module = {.reference = given.module, .sha256 = given.checksum, .insecure = given.insecure},
      .args = given.args,
      .timeout = HANGAR_TRY(parse_duration(given.timeout, "--timeout")),
      .memory_mib_max = std::min(given.memory_mib_max, kMemoryMibMax),
      .keys = given.verify,
      .show = last_line()};
  return options;
}

int ReleaseCommands::takeoff() const {
  Result<commands::TakeoffOptions> options = takeoff_options();
  const auto check = [&]() -> Result<> {
    if (!options) return std::unexpected(options.error());
    // Does not wait for a person to type.
    if (::isatty(STDIN_FILENO) == 1) {
      if (options->flight) return {};
      return fail(ErrorKind::InvalidInput, "flight-path is required as second position arg");
    }
    std::string input = HANGAR_TRY(read_standard_input(limits::kTakeoffInputBytesMax));
    (options->flight ? options->flight->stdin_bytes : options->output) = std::move(input);
    return {};
  };
  const Result<> checked = check();
  return takeoff_.run(checked, [&](host::Config config, const Log& log) {
    if (!flags_->takeoff.compilation_cache.empty()) {
      config.module_cache_dir = flags_->takeoff.compilation_cache;
    }
    return commands::takeoff(config, *options, {.out = print, .say = say}, log);
  });
}

int ReleaseCommands::turbulence() const {
  commands::TurbulenceOptions options = flags_->turbulence;
  options.release = flags_->name();
  options.context_lines = flags_->context_lines;
  if (flags_->color) options.color = commands::Color::Ansi;
  return turbulence_.run(flags_->check_release(), [&](const host::Config& config, const Log& log) {
    return commands::turbulence(config, options, {.out = print, .say = say}, log);
  });
}

int ReleaseCommands::stow() const {
  const auto check = [this]() -> Result<> {
    if (flags_->module.empty()) {
      return fail(ErrorKind::InvalidInput, "wasm file must be specified as first argument");
    }
    if (!flags_->stow.target.empty()) return {};
    return fail(ErrorKind::InvalidInput, "OCI url must be specified as second argument");
  };
  return stow_.run(check(), [this](const host::Config& config, const Log& log) {
    commands::StowOptions options = flags_->stow;
    options.module = flags_->module;
    options.show = last_line();
    return commands::stow(config, options, {.out = print, .say = say}, log);
  });
}

int ReleaseCommands::unlatch() const {
  return unlatch_.run(flags_->check_release(), [&](const host::Config& config, const Log& log) {
    // The default of yoke's own unlatch is "default", not the kubeconfig's namespace.
    commands::ReleaseName name = flags_->name();
    if (name.namespace_.empty()) name.namespace_ = "default";
    return commands::unlatch(config, name, log);
  });
}

}  // namespace hangar::cli
