#include "host/host.h"

#include "abi/flight/evaluation.h"
#include "airways/air_traffic_controller.h"
#include "airways/flight_modules.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "host/config.h"
#include "host/config_maps.h"
#include "host/version.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/signals.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/auth/credentials.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "modules/docker_config.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
#include "ops/endpoints.h"
#include "ops/metrics_text.h"
#include "reconcile/event_recorder.h"
#include "reconcile/leader_elector.h"
#include "reconcile/turnstile.h"
#include "wasm/code_cache.h"
#include "wasm/engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::host {

namespace {

constexpr std::string_view kComponent = "hangar";

// "<host name>_<pid>": who holds the Lease, for people who look.
std::string identity() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {};
  return fmt::format("{}_{}", name.data(), ::getpid());
}

Result<modules::DockerConfig> docker_config(const Config& config) {
  if (config.docker_config.empty()) return modules::DockerConfig::load();
  const std::string text = HANGAR_TRY(io::read_file(config.docker_config, limits::kObjectBytesMax));
  return modules::DockerConfig::parse(text);
}

}  // namespace

// In the order in which parts are built; they are destroyed in reverse.
struct Host::Parts {
  struct Opened {
    Config config;
    kube::Login login;
    modules::DockerConfig docker;
    std::unique_ptr<modules::ModuleStore> store;
  };
  Parts(Opened opened, const Log& log_in);

  void end(std::optional<Error> error);
  [[nodiscard]] io::Task<void> end_all();
  void on_leading();

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

  std::unique_ptr<modules::ModuleStore> store;
  ConfigMaps config_maps;
  modules::Fetcher fetcher;
  wasm::Engine engine;
  wasm::CodeCache code_cache;
  abi::flight::Runtime flights;
  airways::FlightModules flight_modules;

  reconcile::EventRecorder events;
  reconcile::Turnstile turnstile;
  airways::AirTrafficController airways;
  reconcile::LeaderElector elector;
  ops::Endpoints endpoints;

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
      client(loop, http, credentials, metrics, log.named("kube")),
      discovery(client),
      cache(loop, client, metrics, log.named("kube")),
      store(std::move(opened.store)),
      config_maps(client),
      fetcher({.loop = loop,
               .workers = workers,
               .client = http,
               .store = *store,
               .config_maps = &config_maps,
               .may_read_files = config.allow_file_modules,
               .log = log.named("modules")}),
      engine(loop, workers),
      code_cache(engine, {.directory = config.module_cache_dir / "code",
                          .compile_program = config.compiler}),
      flights(engine),
      flight_modules({.loop = loop,
                      .workers = workers,
                      .fetcher = fetcher,
                      .code_cache = code_cache,
                      .runtime = flights,
                      .allow_list = config.module_allow_list,
                      .index_file = config.module_cache_dir / "flights.json"}),
      events(loop, client, log.named("events"), std::string(kComponent), identity()),
      turnstile(loop, config.max_concurrent_reconciles),
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
      elector(loop, client, metrics, log.named("lease"),
              {.namespace_ = !config.namespace_.empty()           ? config.namespace_
                             : !credentials->namespace_().empty() ? credentials->namespace_()
                                                                  : "default",
               .name = std::string(kComponent),
               .election = {.identity = identity()}},
              {.on_started = [this] { on_leading(); },
               .on_stopped =
                   [this] {
                     if (!is_ending) end(Error(ErrorKind::Unavailable, "the Lease was lost"));
                   }}),
      endpoints(loop, metrics, log.named("ops")) {
  fetcher.use_credentials(std::move(opened.docker));
  ops::add_process_metrics(metrics);
}

void Host::Parts::on_leading() {
  if (is_ending || has_started) return;
  has_started = true;
  log.info("leading");
  airways.start();
}

// Asks once for the end of everything; run() returns when that is done.
void Host::Parts::end(std::optional<Error> why) {
  if (std::exchange(is_ending, true)) return;
  error = std::move(why);
  loop.spawn(end_all());
}

io::Task<void> Host::Parts::end_all() {
  if (has_started) co_await airways.stop();
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
  opened.login = HANGAR_TRY(
      kube::find_login({.kubeconfig = opened.config.kubeconfig, .context = opened.config.context}));
  opened.docker = HANGAR_TRY(docker_config(opened.config));
  HANGAR_TRY(io::make_private_directory(opened.config.module_cache_dir));
  opened.store = HANGAR_TRY(modules::ModuleStore::open(opened.config.module_cache_dir / "modules",
                                                       log_.named("modules")));
  parts_ = std::make_unique<Parts>(std::move(opened), log_);
  HANGAR_TRY(parts_->code_cache.open());
  parts_->flight_modules.open();
  parts_->endpoints.add_check("airways", [this]() -> Result<> {
    if (parts_->config.leader_elect && !parts_->elector.is_leading()) return {};
    if (parts_->airways.is_synced()) return {};
    return fail(ErrorKind::Unavailable, "the Airways have not been listed yet");
  });
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
