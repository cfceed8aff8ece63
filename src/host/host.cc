#include "host/host.h"

#include "abi/flight/evaluation.h"
#include "admission/webhooks.h"
#include "airways/air_traffic_controller.h"
#include "airways/flight.h"
#include "airways/flight_modules.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/container_memory.h"
#include "budget/disk_metrics.h"
#include "budget/pressure_relief.h"
#include "budget/pressure_watch.h"
#include "budget/processor_sharing.h"
#include "budget/rate_metrics.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "host/config_maps.h"
#include "host/costs.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "host/node_settings.h"
#include "host/operator_parts.h"
#include "host/recording.h"
#include "host/registry_credentials.h"
#include "host/seeing.h"
#include "host/succession.h"
#include "host/supervisor.h"
#include "host/tenant_bounds.h"
#include "host/tenant_usage.h"
#include "host/tracing.h"
#include "host/version.h"
#include "host/workflow_parts.h"
#include "http/client.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/idle_heap.h"
#include "io/loop.h"
#include "io/program.h"
#include "io/signals.h"
#include "io/startup_pages.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/auth/credentials.h"
#include "kube/cache/cache.h"
#include "kube/cache/definition_memory.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/fence.h"
#include "kube/object.h"
#include "modules/docker_config.h"
#include "modules/limits.h"
#include "nodes/node_controller.h"
#include "operators/carried_operator.h"
#include "operators/operator_controller.h"
#include "ops/metrics_text.h"
#include "output/log_files.h"
#include "output/log_writer.h"
#include "reconcile/acting_rights.h"
#include "reconcile/event_recorder.h"
#include "reconcile/guest_waits.h"
#include "reconcile/leader_elector.h"
#include "reconcile/limits.h"
#include "reconcile/platform.h"
#include "reconcile/turnstile.h"
#include "recorder/recorder.h"
#include "signatures/module_verifier.h"
#include "signatures/verification_keys.h"
#include "tenants/policies.h"
#include "tenants/usage_writer.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "workflows/workflow.h"
#include "workflows/workflow_controller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::host {

static_assert(limits::kFetchedBytesMax == limits::kModuleBytesMax,
              "the engine takes what is fetched");
static_assert(limits::kGuestCallMax < limits::kLeaseDuration,
              "a stuck guest is stopped before the leader can lose its lease over it");

namespace {

constexpr std::string_view kComponent = "hangar";

// A turn of the main loop that takes this many lease durations counts as hung. By default that is a
// minute; even on a busy machine a turn takes seconds at most.
constexpr int kLeasesUntilDead = 4;

// How long a host that is being replaced waits for turns and answers to end. A guest that takes
// longer starts anew. Within limits::kShutdownMax with everything else that stops.
constexpr std::chrono::seconds kCarryWait{5};

// Time from the last reconcile until free memory is returned to the system: a burst of reconciles
// costs one pass.
constexpr std::chrono::seconds kHeapQuiet{5};

std::optional<reconcile::LeaderElector::Options> lease_options(const Config& config,
                                                               std::string_view own_namespace,
                                                               std::string identity) {
  if (!config.leader_elect) return std::nullopt;
  return reconcile::LeaderElector::Options{
      .namespace_ = lease_namespace(config, own_namespace),
      .name = std::string(kComponent),
      .election = {.identity = std::move(identity),
                   .lease_duration = config.lease_duration,
                   .renew_deadline = config.lease_renew_deadline,
                   .retry_period = config.lease_retry_period}};
}

admission::Webhooks::Options webhook_options(const Config& config, std::string namespace_) {
  admission::Webhooks::Options options = config.webhooks;
  options.has_reviews = config.has(Feature::Airways) || config.has(Feature::Flights);
  const bool is_needed = options.has_reviews || config.has(Feature::Operators);
  if (!is_needed) options.bind_address.clear();
  if (!config.has(Feature::Operators)) options.leader = {};
  options.namespace_ = std::move(namespace_);
  return options;
}

kube::ClientOptions fenced(kube::ClientOptions options, std::shared_ptr<const kube::Fence> fence) {
  options.fence = std::move(fence);
  return options;
}

kube::ClientOptions apart(kube::ClientOptions options) {
  options.has_own_connections = true;
  return options;
}

kube::ClientOptions kube_options(const Config& config, io::Workers& readers) {
  kube::ClientOptions options = client_options(config);
  options.readers = &readers;
  return options;
}

// "<host name>-<boot>_<pid>": names the holder of the Lease. The kernel draws the boot's number at
// random: machines made from one image may have the same host name and start hangar with the same
// pid. A container that is restarted where it was keeps all three, and so its Lease.
std::string identity() {
  constexpr std::size_t kBootChars = 8;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {};
  const std::string boot =
      io::read_file("/proc/sys/kernel/random/boot_id", limits::kKiB).value_or("");
  return fmt::format("{}-{}_{}", name.data(), boot.substr(0, kBootChars), ::getpid());
}

// Null: modules need no signature.
std::unique_ptr<signatures::ModuleVerifier> make_verifier(const Config& config, io::Loop& loop,
                                                          io::Workers& workers, const Log& log) {
  if (config.module_verification_keys.empty() && config.module_verification_keys_secret.empty()) {
    return nullptr;
  }
  // As in yoke: modules that the list allows are trusted, and no others may run.
  if (!config.module_allow_list.empty()) {
    log.warning(
        "module-allow-list is set: modules are not verified with the module-verification-keys");
    return nullptr;
  }
  return std::make_unique<signatures::ModuleVerifier>(
      signatures::ModuleVerifier::Parts{.loop = loop,
                                        .workers = workers,
                                        .program = config.compiler,
                                        .directory = config.module_cache_dir / "verified"});
}

modules::Sources verified(modules::Sources sources, modules::Verifier* verifier) {
  sources.verifier = verifier;
  return sources;
}

// Snapshots of the program before this one that cannot be used are no reason not to start.
Result<OperatorFiles> open_operator_files(const Config& config, Inheritance& inheritance) {
  if (inheritance.fleet && inheritance.fleet->snapshots.is_open()) {
    Result<OperatorFiles> files = OperatorFiles::open_again(config, *inheritance.fleet);
    if (files || files.error().kind() != ErrorKind::Corrupt) return files;
    inheritance.problem = files.error().message();
  }
  inheritance.fleet.reset();
  return OperatorFiles::open(config);
}

// No scrape reads `workers` after the supervisor has stopped, because it serves the scrapes.
void add_worker_metrics(Metrics& metrics, const io::Workers& workers, std::string_view pool) {
  for (std::size_t thread = 0; thread < workers.thread_count(); ++thread) {
    metrics.counter_read("hangar_worker_busy_seconds_total",
                         "How long a worker thread has worked, in seconds.",
                         [&workers, thread] { return in_seconds(workers.busy_time(thread)); },
                         {{"pool", std::string(pool)}, {"worker", std::to_string(thread)}});
  }
}

}  // namespace

// Built in the order of the members, destroyed in reverse.
struct Host::Parts {
  struct Opened {
    Config config;
    std::optional<domains::ZygoteProcess> zygote;
    kube::Login login;
    ModuleFiles modules;
    OperatorFiles operators;
    operators::CarriedFleet carried;  // Of the program that this one has replaced.
  };
  Parts(Opened opened, const Log& log_in);

  void on_signal(int signal);
  void end();
  [[nodiscard]] io::Task<void> end_all();
  // Everything that the next program needs of this one.
  [[nodiscard]] io::Task<void> carry_operators();
  void on_leading();
  [[nodiscard]] bool has_tenants() const;
  void add_endpoints();

  const Config config;
  const Log log;
  Metrics metrics;
  io::Loop loop;
  // Before any thread is started: all threads inherit the mask that blocks these signals.
  io::Signals signals;
  io::Workers workers;
  // Read long lists and events. Guests' turns, which take seconds, run on other workers.
  io::Workers readers;
  http::Client http;

  // Open while this process leads. Null without a Lease.
  const std::shared_ptr<kube::Fence> fence;
  std::shared_ptr<kube::Credentials> credentials;
  // For requests that are bounded in number: of reconciles with their deletions, and of guests.
  // Watches, which are open for long and may be many, have other connections, and so has admission:
  // none of these can use up the connections of another.
  kube::Client client;
  kube::Client watch_client;   // For watches of the cache.
  kube::Client stream_client;  // Guests' watches that the API server answers itself.
  // Without the fence, for the work of every replica: admission.
  kube::Client replica_client;
  kube::Discovery discovery;
  const std::shared_ptr<budget::Accounts> cache_memory;  // For objects of tenants in `cache`.
  kube::Cache cache;
  tenants::Policies policies;

  ConfigMaps config_maps;
  ModuleSupply supply;
  budget::ProcessorSharing processor_sharing;
  const std::unique_ptr<domains::GuestProcesses> guest_processes;  // Null: not configured.
  abi::flight::Runtime flights;
  const std::unique_ptr<signatures::ModuleVerifier> verifier;  // Null: modules need no signature.
  airways::FlightModules flight_modules;
  OperatorParts operator_parts;
  MachineParts machine_parts;
  output::LogWriter output;
  const std::unique_ptr<recorder::Recorder> recorder;  // Null: nothing is recorded.

  reconcile::ActingRights acting;
  reconcile::ActingRights replica_acting;
  reconcile::EventRecorder events;
  reconcile::GuestWaits waits;
  io::IdleHeap heap;
  reconcile::Turnstile turnstile;
  const reconcile::Platform platform;
  const reconcile::Platform replica_platform;                             // With replica_client.
  const std::unique_ptr<signatures::VerificationKeys> verification_keys;  // Null with the verifier.
  // Null: the credentials that were read at the start are used.
  const std::unique_ptr<RegistryCredentials> registry_credentials;
  admission::Webhooks webhooks;
  budget::PressureWatch pressure;
  airways::AirTrafficController airways;
  operators::OperatorController operators;
  workflows::WorkflowController workflows;
  nodes::NodeController nodes;
  tenants::UsageWriter usage;
  const std::unique_ptr<Metrics::Collection> rate_metrics;
  const std::unique_ptr<Metrics::Collection> disk_metrics;
  const std::unique_ptr<Costs> costs;      // Null with the recorder.
  const std::unique_ptr<Tracing> tracing;  // Null: no traces.
  const std::unique_ptr<Seeing> seeing;    // Null: records are not shown.
  budget::PressureRelief relief;
  Supervisor supervisor;
  io::StartupPages startup_pages{loop};

  bool is_ending = false;
  bool is_replacing = false;         // It ends for a program that continues.
  operators::CarriedFleet carrying;  // For that.
  bool has_started = false;
};

Host::Parts::Parts(Opened opened, const Log& log_in)
    : config(std::move(opened.config)),
      log(log_in),
      signals(loop, {SIGTERM, SIGINT, SIGUSR2}, [this](int signal) { on_signal(signal); }),
      workers(loop, config.guest_threads, io::Workers::Priority::BelowLoop),
      readers(loop, 1),
      http(loop),
      fence(config.leader_elect ? std::make_shared<kube::Fence>() : nullptr),
      credentials(std::make_shared<kube::Credentials>(loop, opened.login, log.named("kube"))),
      client(loop, http, credentials, metrics, log.named("kube"),
             fenced(kube_options(config, readers), fence)),
      watch_client(loop, http, credentials, metrics, log.named("kube"),
                   apart(kube_options(config, readers))),
      stream_client(loop, http, credentials, metrics, log.named("kube"),
                    apart(fenced(kube_options(config, readers), fence))),
      replica_client(loop, http, credentials, metrics, log.named("kube"),
                     apart(kube_options(config, readers))),
      discovery(client),
      cache_memory(std::make_shared<budget::Accounts>(budget::cache_memory_limits())),
      cache(loop, watch_client, metrics, log.named("kube"),
            {.ration = kube::make_ration(cache_memory)}),
      policies({.loop = loop,
                .cache = cache,
                .client = watch_client,
                .metrics = metrics,
                .log = log.named("tenants")}),
      config_maps(client),
      supply(std::move(opened.modules), config, loop, workers, http, &config_maps,
             config.allow_file_modules ? FileModules::Allowed : FileModules::Refused,
             log.named("modules")),
      processor_sharing(loop, supply.rates, config.shares_processors_equally),
      guest_processes(make_guest_processes(config, std::move(opened.zygote), supply.engine, metrics,
                                           log.named("guests"))),
      flights(supply.engine, guest_processes.get()),
      verifier(make_verifier(config, loop, workers, log.named("modules"))),
      flight_modules({.sources = verified(supply.sources, verifier.get()),
                      .code_cache = supply.code_cache,
                      .runtime = flights,
                      .index_file = config.module_cache_dir / "flights.json"}),
      operator_parts(
          std::move(opened.operators), config, loop, http,
          [this](const std::string& name) { return policies.rules_of(name); }, client,
          stream_client, cache, cache_memory, discovery, supply, guest_processes.get(),
          operators::RunOnce::Refused, metrics, log, fence),
      machine_parts(config, supply, guest_processes.get()),
      output(loop, output::LogFiles(log_directory(config)), log.named("output")),
      recorder(make_recorder(config, loop, metrics, log.named("recorder"))),
      acting(client),
      replica_acting(replica_client),
      events(loop, client, log.named("events"), std::string(kComponent), identity()),
      waits(loop, supply.engine.memory(), &supply.rates),
      heap(loop, kHeapQuiet, wasm::trim_heaps),
      turnstile(loop, config.max_concurrent_reconciles, [this] { heap.used(); }),
      platform{.loop = loop,
               .workers = workers,
               .client = client,
               .cache = cache,
               .discovery = discovery,
               .acting = acting,
               .events = events,
               .turnstile = turnstile,
               .metrics = metrics,
               .log = log,
               .concurrency = config.max_concurrent_reconciles,
               .waits = &waits},
      replica_platform{.loop = loop,
                       .workers = workers,
                       .client = replica_client,
                       .cache = cache,
                       .discovery = discovery,
                       .acting = replica_acting,
                       .events = events,
                       .turnstile = turnstile,
                       .metrics = metrics,
                       .log = log,
                       .concurrency = config.max_concurrent_reconciles},
      verification_keys(
          verifier == nullptr
              ? nullptr
              : std::make_unique<signatures::VerificationKeys>(
                    signatures::VerificationKeys::Parts{.loop = loop,
                                                        .workers = workers,
                                                        .cache = cache,
                                                        .log = log.named("modules")},
                    signatures::VerificationKeys::Options{
                        .path = config.module_verification_keys,
                        .namespace_ = lease_namespace(config, credentials->namespace_()),
                        .secret = config.module_verification_keys_secret},
                    [this](schematics::PublicKeys keys) { verifier->use(std::move(keys)); })),
      registry_credentials(config.docker_config_secret.empty()
                               ? nullptr
                               : std::make_unique<RegistryCredentials>(
                                     cache, log.named("modules"),
                                     kube::ObjectKey{.namespace_ = lease_namespace(
                                                         config, credentials->namespace_()),
                                                     .name = config.docker_config_secret},
                                     [this](modules::DockerConfig found) {
                                       supply.fetcher.use_credentials(std::move(found));
                                     })),
      webhooks({.loop = loop,
                .client = replica_client,
                .leader = client,
                .cache = cache,
                .metrics = metrics,
                .log = log.named("webhooks")},
               webhook_options(config, lease_namespace(config, credentials->namespace_()))),
      pressure(loop, {}),
      airways({.platform = platform,
               .reviewing = replica_platform,
               .webhooks = webhooks,
               .modules = flight_modules,
               .store = *supply.store,
               .runtime = flights,
               .machines = machine_parts.runtime,
               .policies = policies,
               .has_airways = config.has(Feature::Airways),
               .has_flights = config.has(Feature::Flights),
               .cluster_flights = config.cluster_flights_as_host ? airways::AsHost::Allowed
                                                                 : airways::AsHost::Refused,
               .acting_by_default = config.airway_service_account,
               .host_version = std::string(kVersion),
               .namespace_ = lease_namespace(config, credentials->namespace_()),
               .output = output,
               .readiness_rules_from = config.readiness_rules_from,
               .recorder = recorder.get(),
               .pod = config.pod}),
      operators({.platform = platform,
                 .gateway = operator_parts.gateway,
                 .outbound = operator_parts.outbound,
                 .modules = operator_parts.modules,
                 .engine = supply.engine,
                 .pressure = pressure,
                 .guests = operator_parts.guests(),
                 .snapshots = operator_parts.snapshots.get(),
                 .policies = policies,
                 .webhooks = webhooks,
                 .output = output,
                 .recorder = recorder.get(),
                 .pod = config.pod,
                 .memory_budget_bytes = config.operator_memory_bytes,
                 .answers = budget::answer_memory_limits(),
                 .carried = std::move(opened.carried)}),
      workflows({.platform = platform,
                 .modules = machine_parts.modules,
                 .store = *supply.store,
                 .policies = policies,
                 .output = output.allowances(),
                 .recorder = recorder.get()}),
      nodes(platform, node_options(config, lease_namespace(config, credentials->namespace_()))),
      usage({.loop = loop,
             .client = client,
             .read =
                 [this] {
                   return usage_now(
                       {.policies = policies,
                        .memory = supply.memory,
                        .disk = operator_parts.snapshots->accounts(),
                        .module_disk = supply.disk,
                        .rates = supply.rates,
                        .gateway = operator_parts.gateway,
                        .fetcher = supply.fetcher,
                        .output = output.allowances(),
                        .operators = config.has(Feature::Operators) ? &operators : nullptr,
                        .workflows = config.has(Feature::Workflows) ? &workflows : nullptr,
                        .airways = config.has(Feature::Airways) || config.has(Feature::Flights)
                                       ? &airways
                                       : nullptr});
                 },
             .log = log.named("tenants")}),
      rate_metrics(budget::collect_rates(metrics, supply.rates)),
      disk_metrics(budget::collect_disk(metrics, supply.disk)),
      costs(recorder == nullptr ? nullptr
                                : std::make_unique<Costs>(
                                      Costs::Sources{.loop = loop,
                                                     .rates = supply.rates,
                                                     .memory = supply.memory,
                                                     .disk = operator_parts.snapshots->accounts(),
                                                     .cache = cache,
                                                     .gateway = operator_parts.gateway,
                                                     .operators = operators},
                                      *recorder, metrics)),
      tracing(Tracing::make(config, recorder.get(), loop, http, metrics, log.named("traces"))),
      seeing(Seeing::make(
          config,
          {.main = loop,
           .login = opened.login,
           .metrics = metrics,
           .log = log,
           .namespace_ = lease_namespace(config, credentials->namespace_()),
           .present = [this] { return present_guests(operators); },
           .guest_resources =
               [this] {
                 std::vector<kube::Resource> all = airways.flown_resources();
                 all.push_back(workflows::workflow_resource());
                 return all;
               },
           .cost = [this] { return costs->now(); },
           .watches =
               [this](std::string_view user) { return open_watches(operator_parts.gateway, user); },
           .fence = fence})),
      relief(
          pressure, metrics,
          {{.name = "instances", .give_back = [this] { return machine_parts.runtime.free_kept(); }},
           {.name = "guest_processes",
            .give_back =
                [this] { return guest_processes == nullptr ? 0 : guest_processes->give_back(); }}}),
      supervisor({.main = loop,
                  .login = std::move(opened.login),
                  .metrics = metrics,
                  .log = log,
                  .lease = lease_options(config, credentials->namespace_(), identity()),
                  .fence = fence,
                  .dead_after = kLeasesUntilDead * config.lease_duration}) {
  ops::add_process_metrics(metrics);
  metrics.counter_read("hangar_disk_syncs_total",
                       "How often the host has waited until a file was on its disk.",
                       [] { return static_cast<double>(io::sync_count()); });
  add_worker_metrics(metrics, workers, "guests");
  add_worker_metrics(metrics, supply.engine.long_run_workers(), "long_runs");
  add_worker_metrics(metrics, readers, "readers");
  if (verifier) verifier->on_change([this] { airways.on_verification_keys(); });
  loop.set_on_work([this](const budget::Tenant& payer, Duration processor_time) {
    supply.rates.charge(payer, static_cast<std::uint64_t>(processor_time.count()), io::Loop::now());
  });
  apply_tenant_bounds(policies, {.memory = supply.memory,
                                 .disk = operator_parts.snapshots->accounts(),
                                 .module_disk = supply.disk,
                                 .rates = supply.rates,
                                 .equal_rates = processor_sharing.equal_rates(),
                                 .gateway = operator_parts.gateway,
                                 .fetcher = supply.fetcher,
                                 .output = output.allowances()});
}

void Host::Parts::on_leading() {
  if (is_ending || has_started) return;
  has_started = true;
  log.info("leading");
  if (config.has(Feature::Airways) || config.has(Feature::Flights)) {
    airways.start();
  }
  webhooks.lead();
  if (has_tenants()) policies.start();
  if (config.has(Feature::Operators)) operators.start();
  if (config.has(Feature::Workflows)) workflows.start();
  if (has_node_provisioning(config)) nodes.start();
  if (has_tenants()) usage.start();
  if (seeing) seeing->lead();
}

// Whether users who are not administrators can make this host run modules.
bool Host::Parts::has_tenants() const {
  return config.has(Feature::Flights) || config.has(Feature::Operators) ||
         config.has(Feature::Workflows);
}

// For /readyz: the controllers have listed their objects. A host that does not lead lists nothing,
// and is ready to lead.
void Host::Parts::add_endpoints() {
  const auto add = [this](std::string name, bool is_on, const auto& controller,
                          std::string_view what) {
    if (!is_on) return;
    supervisor.add_check(std::move(name), [this, &controller, what]() -> Result<> {
      if (!has_started) return {};
      if (controller.is_synced()) return {};
      return fail(ErrorKind::Unavailable, fmt::format("the {} have not been listed yet", what));
    });
  };
  add("airways", config.has(Feature::Airways) || config.has(Feature::Flights), airways,
      "Airways and Flights");
  add("operators", config.has(Feature::Operators), operators, "Operators");
  add("workflows", config.has(Feature::Workflows), workflows, "StatefulWorkflows");
  if (config.has(Feature::Operators)) {
    supervisor.set_operators([this](std::string namespace_name, std::string name) {
      return operators.fleet().scrape(
          {.namespace_ = std::move(namespace_name), .name = std::move(name)});
    });
  }
  if (has_tenants()) {
    supervisor.add_check("tenants", [this]() -> Result<> {
      if (!has_started || policies.has_settled()) return {};
      return fail(ErrorKind::Unavailable, "the TenantPolicies have not been listed yet");
    });
  }
  if (webhooks.is_on()) {
    supervisor.add_check("webhooks", [this] { return webhooks.check(); });
  }
  if (verification_keys) {
    supervisor.add_check("verification-keys", [this] { return verification_keys->check(); });
  }
  add("nodes", has_node_provisioning(config), nodes, "nodes and their Jobs");
}

void Host::Parts::on_signal(int signal) {
  const bool replaces = signal == SIGUSR2;
  if (replaces && is_ending) return;
  log.info(replaces ? "replacing this program" : "stopping", {{"signal", signal}});
  // A process that is told to end while it is being replaced ends.
  is_replacing = replaces;
  end();
}

io::Task<void> Host::Parts::carry_operators() {
  carrying = co_await operators.carry(kCarryWait);
  Result<io::Descriptor> file = operator_parts.snapshots->leave_file();
  if (file) {
    carrying.snapshots = *std::move(file);
    co_return;
  }
  log.error("all operators will be restarted", {{"error", file.error().message()}});
  carrying = {};
}

// Starts to stop all parts, once; run() returns when they have stopped.
void Host::Parts::end() {
  if (std::exchange(is_ending, true)) return;
  loop.spawn(end_all());
}

io::Task<void> Host::Parts::end_all() {
  // First: reviews are still answered while the API server changes to other replicas.
  co_await webhooks.stop(is_replacing ? admission::Webhooks::Leaving::Replaced
                                      : admission::Webhooks::Leaving::Ends);
  if (seeing) co_await seeing->stop();
  if (verification_keys) co_await verification_keys->stop();
  if (registry_credentials) registry_credentials->stop();
  if (has_started) {
    co_await usage.stop();
    co_await nodes.stop();
    co_await workflows.stop();
  }
  if (is_replacing && config.has(Feature::Operators)) co_await carry_operators();
  if (has_started) {
    co_await operators.stop();
    co_await airways.stop();
  }
  policies.stop();
  if (guest_processes != nullptr) guest_processes->stop();
  co_await flight_modules.supply().stop();
  co_await operator_parts.modules.supply().stop();
  co_await machine_parts.modules.supply().stop();
  // Stops all compilations, including those of abandoned reconciles.
  co_await supply.code_cache.stop();
  co_await output.flush();
  if (tracing) co_await tracing->stop();
  if (recorder != nullptr) co_await recorder->flush();
  co_await events.stop();
  cache.stop();
  // Releases the Lease last: the next leader starts when this host's work has stopped.
  co_await supervisor.stop(is_replacing ? Supervisor::Leaving::Keep : Supervisor::Leaving::Release);
  loop.stop();
}

Host::Host(Config config, LogSink& log_sink)
    : config_(std::move(config)), log_(log_sink, std::string(kComponent)) {}

Host::~Host() = default;

Result<> Host::run() {
  // Until the loop can take it: whoever sends it again wants what is just happening.
  std::signal(SIGUSR2, SIG_IGN);
  // Before any other program runs: the file of this one may be replaced from now on.
  const std::filesystem::path program = HANGAR_TRY(io::own_program());
  Inheritance inheritance = take_inheritance();
  Parts::Opened opened;
  opened.config = HANGAR_TRY(runs_guests(config_) ? resolve_for_guests(config_) : resolve(config_));
  // Before a credential is read, so that no process that the zygote forks has one.
  opened.zygote = HANGAR_TRY(start_host_zygote(opened.config));
  opened.login = HANGAR_TRY(find_login(opened.config));
  opened.modules = HANGAR_TRY(ModuleFiles::open(opened.config, log_.named("modules")));
  opened.operators = HANGAR_TRY(open_operator_files(opened.config, inheritance));
  if (!inheritance.problem.empty()) {
    log_.warning("operators of the previous program are restarted",
                 {{"error", inheritance.problem}});
  }
  if (inheritance.fleet) opened.carried = *std::move(inheritance.fleet);
  HANGAR_TRY(prepare_machine_directory(opened.config));
  parts_ = std::make_unique<Parts>(std::move(opened), log_);
  std::signal(SIGUSR2, SIG_DFL);  // It is blocked now; an ignored one would not reach the loop.
  HANGAR_TRY(hide_from_guests(parts_->config));
  HANGAR_TRY(parts_->supply.code_cache.open());
  parts_->flight_modules.open();
  parts_->add_endpoints();
  HANGAR_TRY(parts_->supervisor.listen(parts_->config.bind_address));

  log_.info("starting", {{"version", kVersion}, {"server", parts_->credentials->server()}});
  if (parts_->verification_keys) parts_->verification_keys->start();
  if (parts_->registry_credentials) parts_->registry_credentials->start();
  if (parts_->webhooks.is_on()) {
    // Every replica reviews Flights against the policies.
    if (parts_->config.has(Feature::Flights)) parts_->policies.start();
    parts_->airways.start_reviews();
    // Last: if its certificate exists, it listens at once, and then no more paths can be added.
    parts_->webhooks.start();
  }
  if (parts_->seeing) parts_->seeing->start();
  parts_->supervisor.start([parts = parts_.get()] { parts->on_leading(); });
  parts_->loop.run();
  log_.info("stopped");
  if (!parts_->is_replacing) return {};
  // Still blocked here: one that is pending is dropped.
  std::signal(SIGUSR2, SIG_IGN);
  successor_ = HANGAR_TRY(Successor::make(program, std::move(parts_->carrying)));
  return {};
}

Result<> run_host(const Config& config, LogSink& log_sink) {
  auto host = std::make_unique<Host>(config, log_sink);
  HANGAR_TRY(host->run());
  const std::optional<Successor> successor = host->take_successor();
  if (!successor) return {};
  // Its threads, connections and guest processes end before the program does.
  host.reset();
  return std::unexpected(successor->exec());
}

}  // namespace hangar::host
