#include "cli/yoke_program.h"

#include "base/result.h"
#include "cli/completion.h"
#include "cli/go_flags.h"
#include "cli/module_commands.h"
#include "cli/release_commands.h"
#include "cli/setting_flags.h"
#include "cli/standard_streams.h"
#include "commands/rounded_table.h"
#include "host/version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::cli {

namespace {

constexpr int kWrongFlag = 2;  // The exit code of Go's flag package.

int fail_with(std::string_view text, int code) {
  fmt::print(stderr, "{}\n", text);
  return code;
}

// The commands that yoke's own program has, too.
class YokeProgram {
 public:
  YokeProgram()
      : app_("hangar, as yoke", "yoke"),
        releases_(app_),
        modules_(app_),
        completion_(app_, "yoke") {
    app_.require_subcommand(1);
    app_.fallthrough(false);
    version_ = app_.add_subcommand("version", "print the version");
  }

  int run(std::span<const std::string> arguments) {
    std::vector<const CLI::App*> commands = releases_.apps();
    std::ranges::copy(modules_.apps(), std::back_inserter(commands));
    commands.push_back(version_);
    commands.push_back(&completion_.app());
    if (!arguments.empty() && arguments.front() == kCompleteWord) {
      print(complete_command(app_, arguments.subspan(1)));
      return kDone;
    }
    Result<GoLine> line = read_go_line(arguments, commands, releases_.takeoff_app());
    if (!line) {
      return fail_with(fmt::format("{}\n{}", line.error().message(), app_.help()), kWrongFlag);
    }
    if (line->asks_for_help) {
      fmt::print(stderr, "{}",
                 line->command != nullptr ? line->command->help("yoke") : app_.help());
      return kDone;
    }
    if (line->name.empty()) {
      fmt::print(stderr, "{}\n", app_.help());
      return fail_with("no command provided", kFailed);
    }
    if (line->name == "atc") {
      return fail_with("atc: hangar has no such dashboard; `hangar top` shows what runs", kFailed);
    }
    if (line->command == nullptr) return fail_with("unknown command: " + line->name, kFailed);
    return run(arguments, *std::move(line));
  }

 private:
  int run(std::span<const std::string> given, GoLine line) {
    if (!line.left_out.empty()) {
      fmt::print(stderr, "left out, as flags stand before names: {}\n",
                 fmt::join(line.left_out, " "));
    }
    // `schematics set` has flags after the action.
    const bool has_inner_flags = line.command == modules_.apps().front();
    std::vector<std::string> arguments =
        has_inner_flags ? modules_.read({given.begin(), given.end()}) : std::move(line.arguments);
    releases_.take_flight_arguments(std::move(line.behind_dashes));
    std::ranges::reverse(arguments);
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? kDone : kWrongFlag;
    }
    if (releases_.parsed()) return releases_.run();
    if (modules_.parsed()) return modules_.run();
    if (completion_.parsed()) return completion_.run();
    fmt::print("{}\n",
               commands::rounded_table({{.header = "program"}, {.header = "version"}},
                                       {{"yoke", fmt::format("hangar {}", host::kVersion)}}));
    return kDone;
  }

  CLI::App app_;
  ReleaseCommands releases_;
  ModuleCommands modules_;
  CompletionCommand completion_;
  const CLI::App* version_ = nullptr;
};

}  // namespace

int run_yoke(std::span<const std::string> arguments) {
  return YokeProgram().run(arguments);
}

}  // namespace hangar::cli
