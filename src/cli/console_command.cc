#include "cli/console_command.h"

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/console.h"
#include "commands/records.h"
#include "host/config.h"
#include "host/log.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace hangar::cli {

using host::Part;

namespace {

Result<Duration> idle_of(const std::string& text) {
  const Result<Duration> duration = parse_go_duration(text);
  constexpr std::chrono::seconds kLeast{10};
  if (duration && (*duration == Duration::zero() || *duration >= kLeast)) return *duration;
  return fail(
      ErrorKind::InvalidInput,
      fmt::format("--idle-timeout: \"{}\" is not a duration of 10s or more, and not 0", text));
}

}  // namespace

ConsoleCommand::ConsoleCommand(CLI::App& command)
    : records_(command),
      settings_(command, {Part::Log, Part::Cluster, Part::Modules, Part::Walls, Part::Records}) {
  command
      .add_option("--port", flags_->port,
                  "port of 127.0.0.1 for the page (default: any that is free)")
      ->type_name("PORT");
  command.add_flag("--no-open", flags_->no_open,
                   "only print the address, do not open it with xdg-open");
  command.add_flag("--allow-actions", flags_->allow_actions,
                   "let the page send signals to workflows, with your rights (default: read-only)");
  command
      .add_option("--idle-timeout", flags_->idle_timeout,
                  "stop after the page has been idle for this long; 0: never (default 30m)")
      ->type_name("DURATION");
}

int ConsoleCommand::run() const {
  const Result<host::Config> given = settings_.resolve();
  if (!given) return report(given.error(), kWrongUsage);
  const Result<Duration> idle = idle_of(flags_->idle_timeout);
  if (!idle) return report(idle.error(), kWrongUsage);
  Result<commands::RecordsAccess> access = records_.resolve(*given);
  if (!access) return report(access.error(), kFailed);
  const commands::ConsoleOptions options{.records = *std::move(access),
                                         .port = flags_->port,
                                         .opens_browser = !flags_->no_open,
                                         .allows_actions = flags_->allow_actions,
                                         .idle_max = *idle};
  const std::unique_ptr<LogSink> sink = host::make_log_sink(*given);
  const auto print = [](const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  const Result<> ended = commands::console(*given, options, print, Log(*sink, "console"));
  return ended ? kDone : report(ended.error(), kFailed);
}

}  // namespace hangar::cli
