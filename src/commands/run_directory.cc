#include "commands/run_directory.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "budget/container_memory.h"
#include "budget/pressure_watch.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/cluster_session.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "host/operator_parts.h"
#include "host/recording.h"
#include "http/address_policy.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/signals.h"
#include "io/startup_pages.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/auth/credentials.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "modules/requester.h"
#include "operators/fleet.h"
#include "operators/operator.h"
#include "operators/operator_modules.h"
#include "operators/pod_view.h"
#include "ops/endpoints.h"
#include "ops/loop_watch.h"
#include "ops/metrics_text.h"
#include "output/log_files.h"
#include "output/log_writer.h"
#include "recorder/recorder.h"

#include <csignal>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

constexpr std::string_view kConfigFile = "wasm_config.yaml";

// Everything else is in the configuration.
io::Task<Result<operators::GuestInputs>> read_inputs(kube::Client client,
                                                     const operators::Operator& spec,
                                                     std::stop_token stop) {
  operators::GuestInputs inputs;
  const std::string& namespace_name = client.default_namespace();
  inputs.in_pod = operators::pod_view(
      {.namespace_ = namespace_name.empty() ? "default" : namespace_name,
       .name = spec.key.name,
       .cluster_ca = HANGAR_CO_TRY(co_await client.server_ca(std::move(stop)))});
  for (const operators::EnvironmentEntry& entry : spec.environment) {
    inputs.environment.push_back(entry.name + "=" + entry.value);
  }
  co_return inputs;
}

// Built in the order of the members, destroyed in reverse.
class Session {
 public:
  // Everything that is opened before any thread starts.
  struct Opened {
    std::optional<domains::ZygoteProcess> zygote;
    kube::Login login;
    host::ModuleFiles modules;
    host::OperatorFiles operators;
  };
  Session(const host::Config& config, Opened opened, const Log& log)
      : config_(config),
        log_(log),
        signals_(loop_, {SIGTERM, SIGINT}, [this](int) { end(std::nullopt); }),
        workers_(loop_, config.guest_threads),
        http_(loop_),
        client_(
            loop_, http_,
            std::make_shared<kube::Credentials>(loop_, std::move(opened.login), log.named("kube")),
            metrics_, log.named("kube"), host::client_options(config)),
        discovery_(client_),
        cache_(loop_, client_, metrics_, log.named("kube")),
        supply_(std::move(opened.modules), config, loop_, workers_, http_, nullptr,
                host::FileModules::Allowed, log.named("modules")),
        guest_processes_(host::make_guest_processes(config, std::move(opened.zygote),
                                                    supply_.engine, metrics_, log.named("guests"))),
        parts_(std::move(opened.operators), config, loop_, http_, &host::OperatorParts::no_policies,
               client_, client_, cache_,
               std::make_shared<budget::Accounts>(budget::cache_memory_limits()), discovery_,
               supply_, guest_processes_.get(), operators::RunOnce::Allowed, metrics_, log),
        output_(loop_, output::LogFiles(host::log_directory(config)), log.named("operators")),
        recorder_(host::make_recorder(config, loop_, metrics_, log.named("recorder"))),
        pressure_(loop_, {}),
        fleet_({.loop = loop_,
                .engine = supply_.engine,
                .pressure = pressure_,
                .guests = parts_.guests(),
                .gateway = parts_.gateway,
                .outbound = parts_.outbound,
                .metrics = metrics_,
                .output = output_,
                .recorder = recorder_.get(),
                .read_inputs =
                    [this](const operators::Operator& spec, std::stop_token stop) {
                      return read_inputs(client_, spec, std::move(stop));
                    },
                .log = log,
                .memory_budget_bytes = config.operator_memory_bytes,
                .answers = budget::answer_memory_limits()},
               {.on_change = [](const operators::RunningOperator&) {},
                .on_failure =
                    [this](const operators::RunningOperator& failed, const Error& error) {
                      log_.warning("a guest failed",
                                   {{"name", failed.key().name}, {"error", error.message()}});
                    },
                .on_bound =
                    [this](const operators::RunningOperator& refused, const std::string& message) {
                      log_.warning("a request is refused",
                                   {{"name", refused.key().name}, {"reason", message}});
                    }}),
        loop_watch_(loop_, metrics_, log.named("loop")),
        endpoints_(loop_, loop_, metrics_, log.named("ops")) {
    ops::add_process_metrics(metrics_);
  }

  [[nodiscard]] Result<> run(std::vector<operators::Operator> specs,
                             const std::string& bind_address) {
    HANGAR_TRY(host::hide_from_guests(config_));
    HANGAR_TRY(supply_.code_cache.open());
    HANGAR_TRY(endpoints_.listen(bind_address));
    loop_.spawn(start(std::move(specs)));
    loop_.run();
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  [[nodiscard]] io::Task<void> start(std::vector<operators::Operator> specs) {
    for (operators::Operator& spec : specs) {
      Result<operators::OperatorModule> module = co_await parts_.modules.prepare(
          modules::Requester::cluster_wide(),
          {.reference = spec.module, .sha256 = spec.sha256, .insecure = spec.insecure},
          stop_.get_token());
      if (stop_.stop_requested()) co_return;
      if (!module) {
        end(std::move(module).error().in(spec.key.name));
        co_return;
      }
      co_await fleet_.run(std::move(spec), *std::move(module));
    }
    log_.info("all operators run", {{"count", fleet_.size()}});
  }

  void end(std::optional<Error> why) {
    if (!stop_.request_stop()) return;
    error_ = std::move(why);
    loop_.spawn(end_all());
  }

  [[nodiscard]] io::Task<void> end_all() {
    co_await parts_.modules.supply().stop();
    co_await fleet_.stop();
    if (guest_processes_ != nullptr) guest_processes_->stop();
    // Includes the module that start() waits for.
    co_await supply_.code_cache.stop();
    co_await output_.flush();
    if (recorder_ != nullptr) co_await recorder_->flush();
    cache_.stop();
    co_await endpoints_.stop();
    loop_.stop();
  }

  const host::Config& config_;
  const Log& log_;
  Metrics metrics_;
  io::Loop loop_;
  // Before any thread is started: all threads inherit that the signals are blocked.
  io::Signals signals_;
  io::Workers workers_;
  http::Client http_;
  kube::Client client_;
  kube::Discovery discovery_;
  kube::Cache cache_;
  host::ModuleSupply supply_;
  const std::unique_ptr<domains::GuestProcesses> guest_processes_;  // Null: not configured.
  host::OperatorParts parts_;
  output::LogWriter output_;
  const std::unique_ptr<recorder::Recorder> recorder_;  // Null: nothing is recorded.
  budget::PressureWatch pressure_;
  operators::Fleet fleet_;
  ops::LoopWatch loop_watch_;
  ops::Endpoints endpoints_;
  io::StartupPages startup_pages_{loop_};
  std::stop_source stop_;
  std::optional<Error> error_;
};

Result<std::vector<operators::Operator>> read_specs(const RunDirectoryOptions& options) {
  const std::filesystem::path file = options.directory / kConfigFile;
  const std::string text = HANGAR_TRY(io::read_file(file, limits::kObjectBytesMax));
  using operators::SleepPolicy;
  const SleepPolicy sleep = options.sleep_after ? SleepPolicy{.kind = SleepPolicy::Kind::Idle,
                                                              .after = *options.sleep_after}
                                                : SleepPolicy{.kind = SleepPolicy::Kind::Never};
  Result<std::vector<operators::Operator>> specs =
      operators::parse_wasm_config(text, options.directory.string(), sleep);
  if (!specs) return std::unexpected(std::move(specs).error().in(file.string()));
  return specs;
}

}  // namespace

Result<> run_directory(const host::Config& config, RunDirectoryOptions options, const Log& log) {
  host::Config resolved = HANGAR_TRY(host::resolve_for_guests(config));
  // The user of the command has chosen all modules.
  resolved.module_addresses = http::AddressPolicy();
  std::vector<operators::Operator> specs = HANGAR_TRY(read_specs(options));
  Session::Opened opened;
  // Before the credential is read, so that no process forked from the zygote has one.
  opened.zygote = HANGAR_TRY(host::start_zygote(resolved));
  opened.login = HANGAR_TRY(host::find_login(resolved));
  opened.modules = HANGAR_TRY(host::ModuleFiles::open(resolved, log.named("modules")));
  opened.operators = HANGAR_TRY(host::OperatorFiles::open(resolved, host::Users::One));
  return Session(resolved, std::move(opened), log).run(std::move(specs), resolved.bind_address);
}

}  // namespace hangar::commands
