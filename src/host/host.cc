#include "host/host.h"

#include "abi/flight/evaluation.h"
#include "airways/air_traffic_controller.h"
#include "airways/flight_modules.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "host/config_maps.h"
#include "host/module_supply.h"
#include "host/node_settings.h"
#include "host/operator_parts.h"
#include "host/startup_pages.h"
#include "host/version.h"
#include "host/workflow_parts.h"
#include "http/client.h"
#include "io/idle_heap.h"
#include "io/loop.h"
#include "io/signals.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/auth/credentials.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "nodes/node_controller.h"
#include "operators/operator_controller.h"
#include "ops/endpoints.h"
#include "ops/metrics_text.h"
#include "reconcile/event_recorder.h"
#include "reconcile/leader_elector.h"
#include "reconcile/turnstile.h"
#include "wasm/engine.h"
#include "workflows/workflow_controller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::host {

namespace {

constexpr std::string_view kComponent = "hangar";

// After the last reconcile, before its memory is given back: a burst costs one look.
constexpr std::chrono::seconds kHeapQuiet{5};

// "<host name>_<pid>": who holds the Lease, for people who look.
std::string identity() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {};
  return fmt::format("{}_{}", name.data(), ::getpid());
}

}  // namespace

// In the order in which parts are built; they are destroyed in reverse.
struct Host::Parts {
  struct Opened {
    Config config;
    kube::Login login;
    ModuleFiles modules;
    OperatorFiles operators;
  };
  Parts(Opened opened, const Log& log_in);

  void end(std::optional<Error> error);
  [[nodiscard]] io::Task<void> end_all();
  void on_leading();
  void add_checks();

  const Config config;
  const Log log;
  Metrics metrics;
  io::Loop loop;
  // Before any thread, so that all of them leave the signals to the loop.
  io::Signals signals;
  io::Workers workers;
  http::Client http;

  std::shared_ptr<kube::Credentials> credentials;
  kube::Client client;
  kube::Discovery discovery;
  kube::Cache cache;

  ConfigMaps config_maps;
  ModuleSupply supply;
  abi::flight::Runtime flights;
  airways::FlightModules flight_modules;
  OperatorParts operator_parts;
  MachineParts machine_parts;

  reconcile::EventRecorder events;
  io::IdleHeap heap;
  reconcile::Turnstile turnstile;
  airways::AirTrafficController airways;
  operators::OperatorController operators;
  workflows::WorkflowController workflows;
  nodes::NodeController nodes;
  reconcile::LeaderElector elector;
  ops::Endpoints endpoints;
  StartupPages startup_pages{loop};

  bool is_ending = false;
  bool has_started = false;
  std::optional<Error> error;  // Why it ends, if not because it was told to.
};

Host::Parts::Parts(Opened opened, const Log& log_in)
    : config(std::move(opened.config)),
      log(log_in),
      signals(loop, {SIGTERM, SIGINT},
              [this](int signal) {
                log.info("stopping", {{"signal", signal}});
                end(std::nullopt);
              }),
      workers(loop, config.guest_threads),
      http(loop),
      credentials(
          std::make_shared<kube::Credentials>(loop, std::move(opened.login), log.named("kube"))),
      client(loop, http, credentials, metrics, log.named("kube"), client_options(config)),
      discovery(client),
      cache(loop, client, metrics, log.named("kube")),
      config_maps(client),
      supply(std::move(opened.modules), config, loop, workers, http, &config_maps,
             config.allow_file_modules ? FileModules::Allowed : FileModules::Refused,
             log.named("modules")),
      flights(supply.engine),
      flight_modules({.loop = loop,
                      .workers = workers,
                      .fetcher = supply.fetcher,
                      .code_cache = supply.code_cache,
                      .runtime = flights,
                      .allow_list = modules::AllowList(config.module_allow_list),
                      .index_file = config.module_cache_dir / "flights.json"}),
      operator_parts(std::move(opened.operators), config, loop, client, cache, discovery, supply,
                     metrics, log),
      machine_parts(config, loop, workers, supply),
      events(loop, client, log.named("events"), std::string(kComponent), identity()),
      heap(loop, kHeapQuiet, wasm::trim_heaps),
      turnstile(loop, config.max_concurrent_reconciles, [this] { heap.used(); }),
      airways({.loop = loop,
               .client = client,
               .cache = cache,
               .discovery = discovery,
               .modules = flight_modules,
               .runtime = flights,
               .concurrency = config.max_concurrent_reconciles,
               .events = events,
               .turnstile = turnstile,
               .metrics = metrics,
               .log = log,
               .version = std::string(kVersion)}),
      operators({.loop = loop,
                 .client = client,
                 .cache = cache,
                 .gateway = operator_parts.gateway,
                 .modules = operator_parts.modules,
                 .runtime = operator_parts.runtime,
                 .snapshots = *operator_parts.snapshots,
                 .events = events,
                 .turnstile = turnstile,
                 .metrics = metrics,
                 .output = operator_parts.output,
                 .log = log,
                 .pod = config.pod,
                 .memory_budget_bytes = config.operator_memory_bytes}),
      workflows({.loop = loop,
                 .client = client,
                 .cache = cache,
                 .discovery = discovery,
                 .modules = machine_parts.modules,
                 .workers = workers,
                 .store = *supply.store,
                 .concurrency = config.max_concurrent_reconciles,
                 .events = events,
                 .turnstile = turnstile,
                 .metrics = metrics,
                 .log = log}),
      nodes({.loop = loop,
             .client = client,
             .cache = cache,
             .events = events,
             .turnstile = turnstile,
             .metrics = metrics,
             .log = log},
            node_options(config, lease_namespace(config, credentials->namespace_()))),
      elector(loop, client, metrics, log.named("lease"),
              {.namespace_ = lease_namespace(config, credentials->namespace_()),
               .name = std::string(kComponent),
               .election = {.identity = identity()}},
              {.on_started = [this] { on_leading(); },
               .on_stopped =
                   [this] {
                     if (!is_ending) end(Error(ErrorKind::Unavailable, "the Lease was lost"));
                   }}),
      endpoints(loop, metrics, log.named("ops")) {
  ops::add_process_metrics(metrics);
}

void Host::Parts::on_leading() {
  if (is_ending || has_started) return;
  has_started = true;
  log.info("leading");
  if (config.has(Feature::Airways)) airways.start();
  if (config.has(Feature::Operators)) operators.start();
  if (config.has(Feature::Workflows)) workflows.start();
  if (has_node_provisioning(config)) nodes.start();
}

// For /readyz: the controllers of this host have listed what they are about. A host that does not
// lead has nothing to list, and is ready to lead.
void Host::Parts::add_checks() {
  const auto add = [this](std::string name, bool is_on, const auto& controller,
                          std::string_view what) {
    if (!is_on) return;
    endpoints.add_check(std::move(name), [this, &controller, what]() -> Result<> {
      if (config.leader_elect && !elector.is_leading()) return {};
      if (controller.is_synced()) return {};
      return fail(ErrorKind::Unavailable, fmt::format("the {} have not been listed yet", what));
    });
  };
  add("airways", config.has(Feature::Airways), airways, "Airways");
  add("operators", config.has(Feature::Operators), operators, "Operators");
  add("workflows", config.has(Feature::Workflows), workflows, "StatefulWorkflows");
  add("nodes", has_node_provisioning(config), nodes, "nodes and their Jobs");
}

// Asks once for the end of everything; run() returns when that is done.
void Host::Parts::end(std::optional<Error> why) {
  if (std::exchange(is_ending, true)) return;
  error = std::move(why);
  loop.spawn(end_all());
}

io::Task<void> Host::Parts::end_all() {
  if (has_started) {
    co_await nodes.stop();
    co_await workflows.stop();
    co_await operators.stop();
    co_await airways.stop();
  }
  // Only now: whoever leads next finds nobody at work.
  if (config.leader_elect) co_await elector.stop();
  co_await events.stop();
  cache.stop();
  co_await endpoints.stop();
  loop.stop();
}

Host::Host(Config config, LogSink& log_sink)
    : config_(std::move(config)), log_(log_sink, std::string(kComponent)) {}

Host::~Host() = default;

Result<> Host::run() {
  Parts::Opened opened;
  opened.config = HANGAR_TRY(resolve(config_));
  opened.login = HANGAR_TRY(find_login(opened.config));
  opened.modules = HANGAR_TRY(ModuleFiles::open(opened.config, log_.named("modules")));
  opened.operators = HANGAR_TRY(OperatorFiles::open(opened.config));
  HANGAR_TRY(prepare_machine_directory(opened.config));
  parts_ = std::make_unique<Parts>(std::move(opened), log_);
  HANGAR_TRY(parts_->supply.code_cache.open());
  parts_->flight_modules.open();
  parts_->add_checks();
  HANGAR_TRY(parts_->endpoints.listen(parts_->config.bind_address));

  log_.info("starting", {{"version", kVersion}, {"server", parts_->credentials->server()}});
  if (parts_->config.leader_elect) {
    parts_->elector.start();
  } else {
    parts_->loop.post([this] { parts_->on_leading(); });
  }
  parts_->loop.run();
  log_.info("stopped");
  if (parts_->error) return std::unexpected(*parts_->error);
  return {};
}

}  // namespace hangar::host
