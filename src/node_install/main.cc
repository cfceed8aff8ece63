// hangar-node: installs Wasm runtimes on one Kubernetes node, and uninstalls them.
//
// Runs on the node itself or in a privileged container that has the node's root mounted. It is
// linked statically: it runs in an otherwise empty image, and by hand on any distribution.
// docs/operating/node-installer.md describes its changes and outcomes.
#include "base/result.h"
#include "node_install/distribution.h"
#include "node_install/files.h"
#include "node_install/installer.h"
#include "node_install/limits.h"
#include "node_install/outcome.h"
#include "node_install/report.h"
#include "node_install/runtime_source.h"
#include "node_install/runtimes.h"
#include "node_install/service.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

namespace {

struct Arguments {
  std::string root = "/";
  std::string runtimes_directory;
  std::vector<std::string> checksums;
  std::string distribution;
  std::string install_directory;
  std::string restart_command;
  std::int64_t restart_seconds = limits::kRestartMax.count();
  bool is_json = false;
  bool no_restart = false;
  bool is_dry_run = false;
  bool keep_existing = false;
};

void add_common(CLI::App& command, Arguments& arguments) {
  command.add_option("--root", arguments.root, "path at which the node's root is mounted")
      ->envname("NODE_ROOT")
      ->capture_default_str();
  command.add_option(
      "--distribution", arguments.distribution,
      "Kubernetes distribution of the node, instead of detecting it: " + distribution_names());
  command.add_option("--install-dir", arguments.install_directory,
                     "directory for the runtimes, as the node sees it");
  command.add_flag("--json", arguments.is_json,
                   "print one JSON object per line on stdout, errors too");
}

void add_changing(CLI::App& command, Arguments& arguments) {
  command.add_flag("--no-restart", arguments.no_restart,
                   "do not restart containerd; you restart it");
  command.add_option(
      "--restart-command", arguments.restart_command,
      "command that restarts containerd, run here by sh -c, instead of the node's service manager");
  command
      .add_option("--restart-timeout", arguments.restart_seconds,
                  "seconds within which containerd must answer again")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command.add_flag("--dry-run", arguments.is_dry_run, "change nothing, print what would change");
}

// The path becomes part of a TOML text, of a Go template, and of other paths.
bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && !path.ends_with('/') && !path.contains("/../") &&
         !path.ends_with("/..") &&
         path.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "/._-") == std::string_view::npos;
}

Result<InstallerOptions> options_from(const Arguments& arguments) {
  InstallerOptions options{
      .install_directory = arguments.install_directory,
      .restart = arguments.no_restart ? Restart::Never : Restart::WhenNeeded,
      .existing = arguments.keep_existing ? Existing::Keep : Existing::Refuse,
      .run = arguments.is_dry_run ? Run::Dry : Run::Real,
  };
  if (!arguments.distribution.empty()) {
    options.distribution = distribution_named(arguments.distribution);
    if (!options.distribution) {
      return refuse(ErrorKind::InvalidInput, reason::kUsage,
                    fmt::format("--distribution {}: not one of {}", arguments.distribution,
                                distribution_names()));
    }
  }
  if (!arguments.install_directory.empty() && !is_plain_path(arguments.install_directory)) {
    return refuse(ErrorKind::InvalidInput, reason::kUsage,
                  "--install-dir: an absolute path of letters, digits and ._- only");
  }
  return options;
}

int print_status(const Status& status, const Arguments& arguments) {
  static constexpr std::array<std::string_view, 3> kStates = {"NotInstalled", "Installed",
                                                              "Incomplete"};
  const std::string_view state = kStates.at(static_cast<std::size_t>(status.state));
  Report report(arguments.is_json ? Report::Format::Json : Report::Format::Lines, stdout);
  const std::string handlers = fmt::format("{}", fmt::join(status.handlers, ","));
  report.say("status", state,
             {{"version", status.version},
              {"distribution", status.distribution},
              {"config", status.config},
              {"handlers", handlers},
              {"problem", status.problem}});
  switch (status.state) {
    case Status::State::NotInstalled:
      return kExitNotInstalled;
    case Status::State::Incomplete:
      return kExitIncomplete;
    case Status::State::Installed:
      break;
  }
  return kExitDone;
}

Result<int> run_command_line(std::string_view command, const Arguments& arguments, Report& report) {
  const InstallerOptions options = HANGAR_TRY(options_from(arguments));
  NodeFiles files = HANGAR_TRY(NodeFiles::open(arguments.root));
  NodeService service(files, {.root = arguments.root,
                              .restart_command = arguments.restart_command,
                              .at_most = std::chrono::seconds(arguments.restart_seconds)});
  Installer installer(files, service, report, options);
  if (command == "install") {
    std::vector<RuntimeSource> expected;
    for (const std::string& text : arguments.checksums) {
      const Result<RuntimeSource> one = parse_checksum_argument(text);
      if (!one) {
        return refuse(ErrorKind::InvalidInput, reason::kUsage,
                      fmt::format("--checksum {}", one.error().message()));
      }
      expected.push_back(*one);
    }
    HANGAR_TRY(installer.install([&](std::string_view install_directory) {
      return runtimes_in(arguments.runtimes_directory, install_directory, expected);
    }));
    return kExitDone;
  }
  if (command == "uninstall") {
    HANGAR_TRY(installer.uninstall());
    return kExitDone;
  }
  return print_status(HANGAR_TRY(installer.status()), arguments);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Installs Wasm runtimes on a Kubernetes node, and uninstalls them.");
  app.set_version_flag("--version", HANGAR_VERSION);
  app.require_subcommand(1);
  CLI::App* install = app.add_subcommand("install", "install or update the runtimes");
  CLI::App* uninstall = app.add_subcommand("uninstall", "uninstall the runtimes");
  CLI::App* status = app.add_subcommand("status",
                                        "report the installation; exit status 0: installed, 10: "
                                        "not installed, 11: incomplete or changed");
  for (CLI::App* command : {install, uninstall, status})
    add_common(*command, arguments);
  for (CLI::App* command : {install, uninstall})
    add_changing(*command, arguments);
  install
      ->add_option("--runtimes-dir", arguments.runtimes_directory,
                   "directory with the runtimes and their SHA256SUMS")
      ->required();
  install->add_option(
      "--checksum", arguments.checksums,
      "FILE[@ARCHITECTURE]=sha256:HEX: install this file, whatever SHA256SUMS says; repeatable");
  install->add_flag("--keep-existing", arguments.keep_existing,
                    "keep runtime handlers of the same name that someone else has configured");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status_of_help = app.exit(error);
    return status_of_help == 0 ? kExitDone : kExitUsage;
  }

  Report report(arguments.is_json ? Report::Format::Json : Report::Format::Lines, stdout);
  const Result<int> done =
      run_command_line(app.get_subcommands().front()->get_name(), arguments, report);
  if (done) return *done;
  report.fail(done.error());
  leave_last_words(done.error());
  return exit_status_of(done.error());
}

}  // namespace

}  // namespace hangar::node_install

int main(int argc, char** argv) {
  // Writing beyond the limit on file sizes should be an error, like a full disk, and not a signal.
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return hangar::node_install::run(argc, argv);
}
