#include "cli/argocd_command.h"

#include "base/log.h"
#include "base/result.h"
#include "cli/atc_program.h"
#include "cli/go_flags.h"
#include "cli/setting_flags.h"
#include "cli/standard_streams.h"
#include "commands/argocd_generate.h"
#include "commands/argocd_server.h"
#include "host/config.h"
#include "host/log.h"
#include "io/program.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

Result<> generate(const host::Config& config, const std::string& server_url, const Log& log) {
  const std::vector<std::string> variables = io::environment_with({});
  print(HANGAR_TRY(commands::generate_for_argocd(
      config, {.server_url = server_url, .variables = variables}, log)));
  return {};
}

// The variables of the original, and the settings that they are here.
Result<host::Config> yokecd_config() {
  struct Variable {
    const char* name;
    std::string_view setting;
  };
  constexpr std::array<Variable, 2> kVariables = {
      {{"MODULE_ALLOW_LIST", "module-allow-list"},
       {"MODULE_VERIFICATION_KEYS_PATH", "module-verification-keys"}}};
  const auto value_of = [](const char* name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts.
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  host::Config config;
  for (const Variable& variable : kVariables) {
    const std::string text = value_of(variable.name);
    if (text.empty()) continue;
    const auto setting =
        std::ranges::find(host::settings(), variable.setting, &host::Setting::name);
    Result<> set = setting->set(config, text);
    if (!set) {
      return std::unexpected(
          std::move(set).error().in(fmt::format("failed to parse variable(s): {}", variable.name)));
    }
  }
  config.module_cache_dir = module_cache_in(value_of("YOKECD_CACHE_FS"), value_of("TMPDIR"));
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts.
  HANGAR_TRY(host::apply_environment(config, [](const char* name) { return std::getenv(name); }));
  return config;
}

Result<> run_plugin(bool serves) {
  const host::Config config = HANGAR_TRY(yokecd_config());
  const std::unique_ptr<LogSink> sink = host::make_log_sink(config);
  const Log log(*sink, "yokecd");
  if (serves) return commands::serve_argocd(config, commands::kArgoServerAddress, log);
  return generate(config, commands::kArgoServerUrl, log);
}

}  // namespace

ArgocdCommand::ArgocdCommand(CLI::App& command)
    : command_(command),
      settings_(command, {host::Part::Log, host::Part::Cluster, host::Part::Requests,
                          host::Part::Modules, host::Part::Policy, host::Part::Walls}) {
  command.add_flag("--svr", flags_->serves, "serve the plugin until SIGINT or SIGTERM");
  command
      .add_option("--listen", flags_->listen_address,
                  "with --svr: address to listen at; only programs of this machine may run flights "
                  "there (default :3666)")
      ->type_name("ADDRESS");
  command
      .add_option("--server", flags_->server_url,
                  "URL of the server (default http://127.0.0.1:3666)")
      ->type_name("URL");
  command
      .add_option(
          "--verify", flags_->keys,
          "with --svr: public key, or directory of public keys (.pem); one of them must have "
          "signed each module, unless --module-allow-list names its URL")
      ->type_name("FILE|DIRECTORY");
}

std::vector<std::string> ArgocdCommand::read(std::vector<std::string> arguments) const {
  const std::array<const CLI::App*, 1> commands = {&command_};
  return read_go_flags(std::move(arguments), commands);
}

int ArgocdCommand::run() const {
  Result<host::Config> config = settings_.resolve();
  if (!config) return report(config.error(), kWrongUsage);
  if (!flags_->keys.empty()) config->module_verification_keys = flags_->keys;
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*config);
  const Log log(*sink, "argocd");
  const Result<> done = flags_->serves
                            ? commands::serve_argocd(*config, flags_->listen_address, log)
                            : generate(*config, flags_->server_url, log);
  return done ? kDone : report(done.error(), kFailed);
}

int run_yokecd(std::span<const std::string> arguments) {
  constexpr std::string_view kUsage =
      "Usage of yokecd:\n"
      "  -svr\n"
      "    \tserve the plugin\n";
  CLI::App program;
  bool serves = false;
  program.add_flag("--svr", serves);
  const auto refuse = [&](std::string_view why) {
    say(fmt::format("{}\n{}", why, kUsage));
    return kWrongUsage;
  };
  Result<GoLine> line = read_go_line(arguments, program);
  if (!line) return refuse(line.error().message());
  if (line->asks_for_help) {
    say(kUsage);
    return kDone;
  }
  try {
    program.parse(std::move(line->arguments));
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  const Result<> done = run_plugin(serves);
  if (done) return kDone;
  say(done.error().message() + "\n");
  return kFailed;
}

}  // namespace hangar::cli
