#include "commands/console.h"

#include "airways/resource_ref.h"
#include "base/consumer.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/text.h"
#include "commands/guest_names.h"
#include "commands/node_fleet.h"
#include "commands/output_logs.h"
#include "commands/pod_logs.h"
#include "commands/release_drift.h"
#include "commands/why.h"
#include "commands/workflow_commands.h"
#include "console/cluster.h"
#include "console/cluster_paths.h"
#include "console/gate.h"
#include "console/server.h"
#include "gateway/request_target.h"
#include "host/cluster_session.h"
#include "host/version.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/program.h"
#include "io/run.h"
#include "io/signals.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/object.h"
#include "seeing/cost.h"
#include "seeing/find.h"
#include "seeing/messages.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

namespace hangar::commands {

namespace {

constexpr std::chrono::seconds kStopMax{2};
constexpr std::size_t kConsoleTurnsMax = 500;
constexpr std::size_t kConsoleLogLinesMax = 500;
constexpr std::uint64_t kConsoleLogBytesMax = 4 * limits::kMiB;
// For blocking work: drawing workflows, reading logs, unpacking and comparing releases.
constexpr std::size_t kConsoleWorkers = 2;

using console::Question;

// A number from 1 to `most`; `otherwise` without the parameter.
Result<std::size_t> number_of(const Question& question, std::string_view name, std::size_t most,
                              std::size_t otherwise) {
  const std::string text = question.parameter(name);
  if (text.empty()) return otherwise;
  const auto number = parse_number<std::size_t>(text);
  if (number && *number >= 1 && *number <= most) return *number;
  return fail(ErrorKind::InvalidInput, fmt::format("{} must be a number from 1 to {}", name, most));
}

Result<std::string> required_parameter(const Question& question, std::string_view name) {
  std::string text = question.parameter(name);
  if (text.empty()) return fail(ErrorKind::InvalidInput, fmt::format("{} is missing", name));
  return text;
}

// Asks for records on its own thread: opening them may start kubectl and wait for it, and the
// search of `why` blocks. The connection is opened with the first question, and again after one
// that did not reach the host.
class ConsoleRecords {
 public:
  ConsoleRecords(const host::Config& config, RecordsAccess access, io::Loop& loop, Log log)
      : config_(config), access_(std::move(access)), log_(std::move(log)), thread_(loop, 1) {}

  // `ask(session, records)` is called on that thread.
  template <class Ask>
  [[nodiscard]] io::Task<Result<std::string>> ask(Ask ask) {
    co_return co_await thread_.run(unnamed_consumer(),
                                   [this, ask = std::move(ask)]() -> Result<std::string> {
                                     HANGAR_TRY(open());
                                     Result<std::string> answer = ask(*session_, *records_);
                                     if (!answer && answer.error().kind() == ErrorKind::Unavailable)
                                       close();
                                     return answer;
                                   });
  }

  // Cancels the question under way. Loop thread.
  void give_up() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    if (!session_) return;
    // A weak pointer: the session, which the records need, may be destroyed with this still queued.
    session_->loop.post([weak = std::weak_ptr<Records>(records_)] {
      if (const auto records = weak.lock()) records->give_up();
    });
  }

 private:
  [[nodiscard]] Result<> open() {
    if (records_) return {};
    kube::Login login = HANGAR_TRY(host::find_login(config_));
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return fail(ErrorKind::Cancelled, "the console ends");
      session_.emplace(std::move(login), log_);
    }
    Result<std::unique_ptr<Records>> opened = open_records(config_, *session_, access_);
    if (!opened) {
      close();
      return std::unexpected(std::move(opened).error());
    }
    const std::lock_guard lock(mutex_);
    records_ = *std::move(opened);
    return {};
  }

  void close() {
    const std::lock_guard lock(mutex_);
    records_.reset();
    session_.reset();
  }

  const host::Config& config_;
  const RecordsAccess access_;
  const Log log_;
  std::mutex mutex_;  // Guards the members that give_up() reads.
  bool is_ending_ = false;
  std::optional<host::ClusterSession> session_;
  std::shared_ptr<Records> records_;
  io::Workers thread_;  // Last: destroyed before the members that it uses.
};

class Console {
 public:
  Console(const host::Config& config, const ConsoleOptions& options, kube::Login login,
          std::string key, std::string opening_key, const Log& log)
      : config_(config),
        options_(options),
        log_(log),
        session_(std::move(login), log),
        signals_(session_.loop, {SIGINT, SIGTERM, SIGHUP}, [this](int) { on_signal(); }),
        ended_(session_.loop),
        records_(config, options.records, session_.loop, log.named("records")),
        workers_(session_.loop, kConsoleWorkers),
        server_(
            session_.loop,
            {.port = options.port,
             .key = std::move(key),
             .opening_key = std::move(opening_key),
             .allows_actions = options.allows_actions,
             .idle_max = options.idle_max},
            [this](Question question) { return answer(std::move(question)); },
            [this] { end("Nobody has used the page for the idle time."); }, log.named("server")) {}

  [[nodiscard]] Result<> start() { return server_.start(); }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  [[nodiscard]] bool is_busy() const { return server_.is_busy(); }

  // Returns the reason for the exit.
  [[nodiscard]] std::string serve() { return session_.run(until_end()); }

 private:
  void on_signal() {
    // The user does not want to wait for a question that is under way.
    if (!reason_.empty()) std::_Exit(1);
    end("Ended by a signal.");
  }

  void end(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    stop_.request_stop();
    records_.give_up();
    ended_.notify_all();
  }

  io::Task<std::string> until_end() {
    while (reason_.empty())
      (void)co_await ended_.wait({});
    co_await server_.stop(kStopMax);
    co_return reason_;
  }

  io::Task<Result<std::string>> answer(Question question) {
    const std::string_view path = question.path;
    if (path == "/api/state") co_return state();
    if (path.starts_with(console::kClusterPrefix)) co_return co_await cluster(std::move(question));
    if (path == "/api/top") co_return co_await top(std::move(question));
    if (path == "/api/cost") co_return co_await cost(std::move(question));
    if (path == "/api/turns") co_return co_await turns(std::move(question));
    if (path == "/api/uses") co_return co_await uses(std::move(question));
    if (path == "/api/why") co_return co_await why(std::move(question));
    if (path == "/api/logs") co_return co_await logs(std::move(question));
    if (path == "/api/machine") co_return co_await machine(std::move(question));
    if (path == "/api/drift") co_return co_await drift(std::move(question));
    if (path == "/api/nodes") {
      co_return co_await workers_.run(
          unnamed_consumer(), [this] { return node_fleet(of_host(), FleetFormat::Json, log_); });
    }
    if (path == console::kSignalPath) co_return co_await signal(std::move(question));
    co_return fail(ErrorKind::NotFound, "the console has no such question");
  }

  // The record of the rollout is in the host's namespace.
  [[nodiscard]] host::Config of_host() const {
    host::Config config = config_;
    config.namespace_ = options_.records.host.namespace_;
    return config;
  }

  [[nodiscard]] std::string state() const {
    return json::dump(json::Object{
        {"version", host::kVersion},
        {"server", printable(session_.credentials->server())},
        {"context", printable(config_.context)},
        {"namespace", namespace_or_default({})},
        {"allowsActions", options_.allows_actions},
        {"idleSeconds",
         std::chrono::duration_cast<std::chrono::seconds>(options_.idle_max).count()}});
  }

  [[nodiscard]] std::string namespace_or_default(std::string given) const {
    if (given.empty()) given = session_.credentials->namespace_();
    return given.empty() ? "default" : given;
  }

  io::Task<Result<std::string>> cluster(Question question) {
    const std::string whole = question.target.to_string();
    const gateway::RequestTarget target = HANGAR_CO_TRY(gateway::parse_target(
        "GET", std::string_view(whole).substr(console::kClusterPrefix.size())));
    co_return co_await console::ask_cluster(session_.client, target, stop_.get_token());
  }

  io::Task<Result<std::string>> top(Question question) {
    constexpr std::size_t kWindowMax = 3600;
    const std::size_t window = HANGAR_CO_TRY(number_of(question, "window", kWindowMax, 60));
    const seeing::TopQuestion asked{.namespace_ = question.parameter("namespace"),
                                    .window = std::chrono::seconds(window)};
    co_return co_await records_.ask(
        [asked](host::ClusterSession& session, Records& records) -> Result<std::string> {
          const seeing::FoundTop found = HANGAR_TRY(session.run(records.top(asked)));
          return json::dump(seeing::json_of(found));
        });
  }

  io::Task<Result<std::string>> cost(Question question) {
    const seeing::CostQuestion asked{.namespace_ = question.parameter("namespace")};
    co_return co_await records_.ask(
        [asked](host::ClusterSession& session, Records& records) -> Result<std::string> {
          const seeing::FoundCost found = HANGAR_TRY(session.run(records.cost(asked)));
          return json::dump(seeing::json_of(found));
        });
  }

  io::Task<Result<std::string>> turns(Question question) {
    const seeing::TurnsQuestion asked{
        .namespace_ = question.parameter("namespace"),
        .name = recorded_name(HANGAR_CO_TRY(required_parameter(question, "name"))),
        .turns_max = HANGAR_CO_TRY(number_of(question, "turns", kConsoleTurnsMax, 100)),
        .slowest = question.parameter("slowest") == "true",
        .bodies = true};
    co_return co_await records_.ask(
        [asked](host::ClusterSession& session, Records& records) -> Result<std::string> {
          const seeing::FoundTurns found = HANGAR_TRY(session.run(records.turns(asked)));
          return json::dump(seeing::json_of(found));
        });
  }

  io::Task<Result<std::string>> uses(Question question) {
    const seeing::UsesQuestion asked{
        .namespace_ = question.parameter("namespace"),
        .name = recorded_name(HANGAR_CO_TRY(required_parameter(question, "name")))};
    co_return co_await records_.ask(
        [asked](host::ClusterSession& session, Records& records) -> Result<std::string> {
          const seeing::FoundUses found = HANGAR_TRY(session.run(records.uses(asked)));
          return json::dump(seeing::json_of(found));
        });
  }

  io::Task<Result<std::string>> why(Question question) {
    const WhyOptions asked{.object = HANGAR_CO_TRY(required_parameter(question, "object")),
                           .namespace_ = question.parameter("namespace"),
                           .field = question.parameter("field")};
    co_return co_await records_.ask(
        [asked](host::ClusterSession& session, Records& records) -> Result<std::string> {
          return json::dump(json::Object{{"text", HANGAR_TRY(why_once(asked, session, records))}});
        });
  }

  io::Task<Result<std::string>> logs(Question question) {
    const std::size_t lines = HANGAR_CO_TRY(number_of(question, "lines", kConsoleLogLinesMax, 200));
    const LogsOptions asked{.namespace_ = question.parameter("namespace"),
                            .name = HANGAR_CO_TRY(required_parameter(question, "name")),
                            .resource = question.parameter("resource"),
                            .tail_lines = lines};
    co_return co_await workers_.run(unnamed_consumer(), [this, asked]() -> Result<std::string> {
      std::string text;
      HANGAR_TRY(print_pod_logs(
          config_, asked,
          [&text](std::string_view line) {
            text += line;
            return text.size() < kConsoleLogBytesMax;
          },
          log_));
      return json::dump(json::Object{{"text", printable_lines(text)}});
    });
  }

  // Bytes that JSON cannot carry, and control characters, are escaped.
  static std::string printable_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      out += printable(text.substr(0, end));
      if (end == std::string_view::npos) break;
      out += '\n';
      text.remove_prefix(end + 1);
    }
    return out;
  }

  io::Task<Result<std::string>> machine(Question question) {
    const WorkflowName workflow{.namespace_ = namespace_or_default(question.parameter("namespace")),
                                .name = HANGAR_CO_TRY(required_parameter(question, "name"))};
    co_return co_await workers_.run(unnamed_consumer(), [this, workflow]() -> Result<std::string> {
      return HANGAR_TRY(show_workflow(config_, workflow, Drawing::Definition, log_)).text;
    });
  }

  io::Task<Result<std::string>> drift(Question question) {
    const std::string name = HANGAR_CO_TRY(required_parameter(question, "instance"));
    airways::ResourceRef instance = HANGAR_CO_TRY(airways::parse_ref(name));
    const ReleaseDrift found = HANGAR_CO_TRY(
        co_await release_drift(session_.client, workers_, std::move(instance), stop_.get_token()));
    co_return json::dump(json_of(found));
  }

  io::Task<Result<std::string>> signal(Question question) {
    const json::Value body = HANGAR_CO_TRY(json::parse(question.body));
    const kube::ObjectKey key{.namespace_ = std::string(json::string_at(body, {"namespace"})),
                              .name = std::string(json::string_at(body, {"name"}))};
    const std::string event(json::string_at(body, {"event"}));
    if (key.namespace_.empty() || key.name.empty() || event.empty()) {
      co_return fail(ErrorKind::InvalidInput, "a signal has a namespace, a name and an event");
    }
    const std::string id = HANGAR_CO_TRY(co_await send_signal(
        session_.client, key,
        {.event = event, .data = std::string(json::string_at(body, {"data"})), .id = {}}));
    log_.info("sent a signal", {{"workflow", key.to_string()}, {"event", event}, {"id", id}});
    co_return json::dump(json::Object{{"id", id}});
  }

  const host::Config& config_;
  const ConsoleOptions& options_;
  const Log log_;
  host::ClusterSession session_;
  io::Signals signals_;
  std::string reason_;
  std::stop_source stop_;
  io::Event ended_;
  ConsoleRecords records_;
  io::Workers workers_;
  console::Server server_;
};

// The address was printed, so a failure is only logged for the user.
void open_browser(const std::string& address, const Log& log) {
  const Result<std::filesystem::path> opener = io::find_program("xdg-open");
  const Result<> started = !opener ? Result<>(std::unexpected(opener.error()))
                                   : io::start_detached({.path = *opener, .arguments = {address}});
  if (!started) log.warning("no browser was opened", {{"error", started.error().message()}});
}

}  // namespace

Result<> console(const host::Config& config, const ConsoleOptions& options,
                 const std::function<void(const std::string&)>& print, const Log& log) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  const std::string key = console::new_key();
  const std::string opening_key = options.opens_browser ? console::new_key() : std::string();
  Console serving(config, options, std::move(login), key, opening_key, log);
  HANGAR_TRY(serving.start());
  // The browser does not send the part after '#': it is in no request, no log and no Referer.
  const std::string address = fmt::format("http://127.0.0.1:{}/", serving.port());
  print(
      fmt::format("The console is at {}#key={}\nAnyone with this address sees the cluster as you "
                  "do{}. Press Ctrl-C to stop.\n",
                  address, key, options.allows_actions ? " and can send signals as you" : ""));
  if (options.opens_browser) {
    open_browser(fmt::format("{}#open={}", address, opening_key), log);
  }
  print(serving.serve() + "\n");
  // Exit at once: a thread that waits for the cluster, the host or kubectl would keep the user
  // waiting, too. A port-forward ends with this process, however it exits.
  if (serving.is_busy()) std::_Exit(0);
  return {};
}

}  // namespace hangar::commands
