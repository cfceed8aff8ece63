#include "cli/top_command.h"

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/setting_flags.h"
#include "cli/terminal.h"
#include "commands/cost_table.h"
#include "commands/records.h"
#include "commands/timeline.h"
#include "commands/top_table.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "host/log.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/signals.h"
#include "io/task.h"
#include "seeing/cost.h"
#include "seeing/find.h"
#include "seeing/top.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::cli {

namespace {

using commands::TopScreen;
using host::Part;

constexpr std::chrono::seconds kEvery{2};
// An escape byte is the Escape key if no further byte follows within this time.
constexpr std::chrono::milliseconds kEscapeTime{50};

// The live screen. Loop thread; its tasks have ended when show() returns.
class Live {
 public:
  Live(io::Loop& loop, commands::Records& records, seeing::TopQuestion question,
       seeing::FoundTop found, commands::TopColumn by)
      : loop_(loop), records_(records), question_(std::move(question)), screen_(by), ended_(loop) {
    screen_.update(std::move(found));
  }

  [[nodiscard]] io::Task<Result<>> show() {
    const auto input = loop_.watch(STDIN_FILENO, io::Loop::Direction::Read, [this] { on_input(); });
    ++under_way_;
    loop_.spawn(refresh());
    draw();
    while (!stop_.stop_requested() || under_way_ > 0)
      (void)co_await ended_.wait({});
    co_return Result<>();
  }

  void quit() {
    stop_.request_stop();
    records_.give_up();
    ended_.notify_all();
  }

 private:
  io::Task<void> refresh() {
    while (co_await loop_.sleep(kEvery, stop_.get_token())) {
      Result<seeing::FoundTop> found = co_await records_.top(question_);
      if (stop_.stop_requested()) break;
      if (found) {
        screen_.update(*std::move(found));
      } else {
        screen_.set_problem(found.error().message());
      }
      draw();
    }
    --under_way_;
    ended_.notify_all();
  }

  io::Task<void> open(seeing::GuestKey guest) {
    constexpr std::size_t kTurns = 50;
    const std::string name = guest.namespace_ + "/" + guest.name;
    const Result<seeing::FoundTurns> found = co_await records_.turns(
        {.namespace_ = guest.namespace_, .name = guest.name, .turns_max = kTurns});
    screen_.show_text(name, found ? commands::timeline_text(found->stories, found->read)
                                  : found.error().message());
    draw();
    is_opening_ = false;
    --under_way_;
    ended_.notify_all();
  }

  void on_input() {
    const Result<std::string> typed = Terminal::read();
    if (!typed) return quit();
    input_ += *typed;
    take_keys(false);
    if (input_.empty()) return;
    escape_timer_ = loop_.after(kEscapeTime, [this] { take_keys(true); });
  }

  void take_keys(bool is_all) {
    while (const std::optional<commands::Key> key = commands::take_key(input_, is_all)) {
      const TopScreen::Wish wish = screen_.on_key(*key);
      if (std::holds_alternative<TopScreen::Quit>(wish)) return quit();
      const auto* const open_wish = std::get_if<TopScreen::Open>(&wish);
      if (open_wish == nullptr || std::exchange(is_opening_, true)) continue;
      ++under_way_;
      loop_.spawn(open(open_wish->guest));
    }
    draw();
  }

  void draw() {
    if (stop_.stop_requested()) return;
    const Terminal::Size size = Terminal::size();
    screen_.resize({.columns = size.columns, .lines = size.lines});
    const std::vector<TopScreen::Line> lines = screen_.lines();
    std::vector<Terminal::Line> drawn;
    drawn.reserve(lines.size());
    for (const TopScreen::Line& line : lines)
      drawn.push_back({.text = line.text, .is_marked = line.is_marked});
    Terminal::draw(drawn);
  }

  io::Loop& loop_;
  commands::Records& records_;
  const seeing::TopQuestion question_;
  TopScreen screen_;
  std::string input_;
  io::Loop::Timer escape_timer_;
  bool is_opening_ = false;
  std::size_t under_way_ = 0;  // Number of own tasks.
  std::stop_source stop_;
  io::Event ended_;
};

Result<seeing::TopQuestion> question_of(const std::string& namespace_, const std::string& window) {
  const Result<Duration> duration = parse_go_duration(window);
  constexpr std::chrono::hours kMost{1};
  if (!duration || *duration < std::chrono::seconds(1) || *duration > kMost) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("--window: \"{}\" is not a duration from 1s to 1h", window));
  }
  return seeing::TopQuestion{.namespace_ = namespace_,
                             .window = std::chrono::duration_cast<std::chrono::seconds>(*duration)};
}

int print_cost(io::Loop& loop, commands::Records& records, const std::string& namespace_,
               const std::string& output) {
  Result<seeing::FoundCost> found = io::run_to_end(loop, records.cost({.namespace_ = namespace_}));
  if (!found) return report(found.error(), kFailed);
  if (output == "json") {
    fmt::print("{}", commands::cost_json(*found));
  } else if (output == "csv") {
    fmt::print("{}", commands::cost_csv(*std::move(found)));
  } else {
    fmt::print("{}", commands::cost_text(*std::move(found)));
  }
  return kDone;
}

}  // namespace

TopCommand::TopCommand(CLI::App& command)
    : records_(command),
      settings_(command, {Part::Log, Part::Cluster, Part::Modules, Part::Records}) {
  command
      .add_option("-n,--namespace", flags_->namespace_,
                  "show only guests of this namespace (default: all namespaces that you may list)")
      ->type_name("NAMESPACE")
      ->check(check_namespace);
  command.add_option("--sort", flags_->sort, "column to sort by (default cpu)")
      ->type_name("COLUMN")
      ->check(CLI::IsMember(commands::top_column_names()));
  command.add_option("--window", flags_->window, "time span of the counts, up to 1h (default 1m)")
      ->type_name("DURATION");
  command.add_flag("--once", flags_->once,
                   "print the table once and exit (default: if the output is not a terminal)");
  command.add_flag("--cost", flags_->cost,
                   "print what each namespace and module has cost since the host started");
  command
      .add_option("-o,--output", flags_->output,
                  "output format: json, or csv with --cost (default: a table)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"json", "csv"}));
}

int TopCommand::run() const {
  const Result<host::Config> given = settings_.resolve();
  if (!given) return report(given.error(), kWrongUsage);
  const Result<seeing::TopQuestion> question = question_of(flags_->namespace_, flags_->window);
  if (!question) return report(question.error(), kWrongUsage);
  if (flags_->output == "csv" && !flags_->cost) {
    return report(Error(ErrorKind::InvalidInput, "-o csv needs --cost"), kWrongUsage);
  }
  const Result<commands::RecordsAccess> access = records_.resolve(*given);
  if (!access) return report(access.error(), kFailed);
  const bool is_live =
      !flags_->once && !flags_->cost && flags_->output.empty() && Terminal::is_there();
  const commands::TopColumn by =
      commands::top_column(flags_->sort).value_or(commands::TopColumn::Cpu);

  const std::unique_ptr<LogSink> sink = host::make_log_sink(*given);
  io::Loop own_loop;
  std::optional<host::ClusterSession> session;
  if (!access->local) {
    auto login = host::find_login(*given);
    if (!login) return report(login.error(), kFailed);
    // Log lines would overwrite the screen.
    session.emplace(*std::move(login), is_live ? Log() : Log(*sink, "top"));
  }
  io::Loop& loop = session ? session->loop : own_loop;
  std::optional<Live> live;
  std::optional<io::Signals> signals;
  if (is_live) {
    signals.emplace(loop, std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP}, [&live](int) {
      if (!live) std::_Exit(kFailed);  // Before the screen is taken.
      live->quit();
    });
  }
  const Result<std::unique_ptr<commands::Records>> records =
      session ? commands::host_records(*given, *session, access->host)
              : commands::local_records(*access->local);
  if (!records) return report(records.error(), kFailed);
  if (flags_->cost) return print_cost(loop, **records, flags_->namespace_, flags_->output);
  // Asks once before taking the screen, so that errors are printed normally.
  Result<seeing::FoundTop> found = io::run_to_end(loop, (*records)->top(*question));
  if (!found) return report(found.error(), kFailed);
  if (is_live) {
    const Terminal terminal;
    live.emplace(loop, **records, *question, *std::move(found), by);
    const Result<> shown = io::run_to_end(loop, live->show());
    return shown ? kDone : report(shown.error(), kFailed);
  }
  fmt::print("{}", flags_->output == "json" ? commands::top_json(*found)
                                            : commands::top_text(*std::move(found), by));
  return kDone;
}

}  // namespace hangar::cli
