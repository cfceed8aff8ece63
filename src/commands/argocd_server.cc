#include "commands/argocd_server.h"

#include "abi/flight/command.h"
#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "airways/flight_modules.h"
#include "airways/limits.h"
#include "airways/lookups.h"
#include "airways/matcher.h"
#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/request_view.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "airways/tracker.h"
#include "base/consumer.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/argocd_request.h"
#include "commands/offline_lookups.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "host/version.h"
#include "http/client.h"
#include "http/listen_address.h"
#include "http/server.h"
#include "io/event.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/signals.h"
#include "io/task.h"
#include "io/turns.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"
#include "modules/allow_list.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "schematics/key_files.h"
#include "signatures/module_verifier.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>

namespace hangar::commands {

namespace {

// A module of 82 MB, of a Helm chart, is sent as 20 MB: gzipped and in base64.
constexpr std::uint64_t kArgoRequestBytesMax = 64 * limits::kMiB;
constexpr std::uint64_t kArgoRequestsBytesMax = 128 * limits::kMiB;
// More than the flights that Argo CD generates concurrently for one repo server by default.
constexpr std::size_t kArgoEvaluationsMax = 32;
// Leaves room for probes while all evaluations are in use.
constexpr std::size_t kArgoConnectionsMax = 2 * kArgoEvaluationsMax;
// Modules that were sent with a request, by the digest of the bytes that were sent.
constexpr std::size_t kArgoUploadsMax = 1024;

http::Response plain_answer(int status, std::string text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"},
                      {"X-Content-Type-Options", "nosniff"}},
          .body = std::move(text)};
}

// A flight cannot run without a time limit here: Argo CD times out after 60 s by default.
Duration evaluation_time(Duration asked) {
  if (asked == Duration::zero()) return limits::kGuestCallMax;
  if (asked < Duration::zero()) return limits::kFlightTimeMax;
  return std::min<Duration>(asked, limits::kFlightTimeMax);
}

std::uint64_t evaluation_memory(std::uint32_t asked_mib) {
  if (asked_mib == 0) return limits::kGuestMemoryBytesMax;
  return std::min(asked_mib, limits::kFlightMemoryMibMax) * limits::kMiB;
}

// The output of a flight, as JSON. A flight may print YAML; the answer then has its resources.
Result<std::string> answer_of(std::string printed) {
  if (json::parse(printed)) return printed;
  const airways::Output parsed = HANGAR_TRY(airways::parse_output(printed));
  json::Array stages;
  for (const airways::Stage& stage : parsed.stages)
    stages.emplace_back(json::Array(stage.begin(), stage.end()));
  return json::dump(stages);
}

// For lookups.
struct ArgoCluster {
  ArgoCluster(const host::Config& config, kube::Login login, io::Loop& loop, http::Client& http,
              Metrics& metrics, const Log& log)
      : client(loop, http, std::make_shared<kube::Credentials>(loop, std::move(login), log),
               metrics, log, host::client_options(config)),
        view(client) {}

  const kube::Client client;
  airways::RequestView view;
};

// Built in the order of the members, destroyed in reverse.
class ArgoServer {
 public:
  // `login`: without one, flights cannot look anything up.
  ArgoServer(const host::Config& config, std::optional<domains::ZygoteProcess> zygote,
             Result<kube::Login> login, host::ModuleFiles files, const http::ListenAddress& address,
             const Log& log)
      : config_(config),
        log_(log),
        signals_(loop_, {SIGINT, SIGTERM}, [this](int) { end(); }),
        workers_(loop_, config.guest_threads),
        http_(loop_),
        supply_(std::move(files), config, loop_, workers_, http_, nullptr,
                host::FileModules::Allowed, log.named("modules")),
        guest_processes_(host::make_guest_processes(config, std::move(zygote), supply_.engine,
                                                    metrics_, log.named("guests"))),
        runtime_(supply_.engine, guest_processes_.get()),
        verifier_({.loop = loop_,
                   .workers = workers_,
                   .program = config.compiler,
                   .directory = config.module_cache_dir / "verified"}),
        fetched_(
            {.sources = sources_of_urls(), .code_cache = supply_.code_cache, .runtime = runtime_}),
        sent_(
            {.sources = sources_of_files(), .code_cache = supply_.code_cache, .runtime = runtime_}),
        uploads_(loop_),
        server_(
            loop_,
            {.address = address.address,
             .port = address.port,
             .body_bytes_max = kArgoRequestBytesMax,
             .bodies_bytes_max = kArgoRequestsBytesMax,
             .connections_max = kArgoConnectionsMax},
            [this](http::ServerRequest request) { return handle(std::move(request)); },
            log.named("http")) {
    if (login) {
      cluster_.emplace(config, *std::move(login), loop_, http_, metrics_, log.named("kube"));
    } else {
      no_cluster_ = login.error().message();
    }
  }

  [[nodiscard]] Result<> run() {
    HANGAR_TRY(supply_.code_cache.open());
    HANGAR_TRY(host::hide_from_guests(config_));
    HANGAR_TRY(io::make_private_directory(directory()));
    if (has_keys()) {
      verifier_.use(HANGAR_TRY(schematics::load_public_keys(config_.module_verification_keys)));
    }
    HANGAR_TRY(server_.start());
    log_.info("serves Argo CD's plugin", {{"port", server_.port()}});
    if (!cluster_) {
      log_.warning("flights cannot look anything up: there is no login", {{"error", no_cluster_}});
    }
    loop_.run();
    return {};
  }

 private:
  // Holds modules from requests until they have been read.
  [[nodiscard]] std::filesystem::path directory() const {
    return config_.module_cache_dir / "sent";
  }
  [[nodiscard]] bool has_keys() const { return !config_.module_verification_keys.empty(); }
  // As in a host, modules that an allow list names need no signature.
  [[nodiscard]] modules::Sources sources_of_urls() {
    modules::Sources sources = supply_.sources;
    if (has_keys() && config_.module_allow_list.empty()) sources.verifier = &verifier_;
    return sources;
  }
  // For modules that a request contains. The allow list applies to URLs only.
  [[nodiscard]] modules::Sources sources_of_files() {
    modules::Sources sources = supply_.sources;
    sources.allow_list = modules::AllowList();
    if (has_keys()) sources.verifier = &verifier_;
    return sources;
  }

  [[nodiscard]] io::Task<http::Response> handle(http::ServerRequest request) {
    const bool is_read = request.method == "GET" || request.method == "HEAD";
    if (request.path == "/health") {
      co_return is_read ? http::Response{.status = 200, .headers = {}, .body = {}}
                        : plain_answer(405, "Method Not Allowed\n");
    }
    if (request.path != "/exec") co_return plain_answer(404, "404 page not found\n");
    if (request.method != "POST") co_return plain_answer(405, "Method Not Allowed\n");
    // A flight runs with the server's rights. A page in a browser on this machine does not count as
    // a program on this machine.
    if (!request.is_from_loopback || http::find_header(request.headers, "Origin")) {
      co_return plain_answer(403, "only programs of this machine may run flights\n");
    }
    if (running_ >= kArgoEvaluationsMax) {
      co_return plain_answer(
          503, fmt::format("{} flights are being run, which is the most; try again later\n",
                           kArgoEvaluationsMax));
    }
    const Running running(*this);
    co_return co_await execute(std::move(request.body));
  }

  [[nodiscard]] io::Task<http::Response> execute(std::string body) {
    Result<ArgoRequest> request = co_await workers_.run(
        unnamed_consumer(), [body = std::move(body)] { return parse_argo_request(body); });
    if (!request) co_return plain_answer(400, request.error().message() + "\n");
    const std::string release = request->release;
    const std::string namespace_ = request->namespace_;
    const Instant began = io::Loop::now();
    http::Response response = co_await answer(*std::move(request));
    log_.info(
        "ran a flight",
        {{"release", release},
         {"namespace", namespace_},
         {"status", response.status},
         {"took_ms",
          std::chrono::duration_cast<std::chrono::milliseconds>(io::Loop::now() - began).count()},
         {"error", response.status == 200 ? std::string() : response.body}});
    co_return response;
  }

  [[nodiscard]] io::Task<http::Response> answer(ArgoRequest request) {
    if (request.source.empty()) {
      const Result<modules::Reference> reference = modules::Reference::parse(request.path);
      if (!reference) co_return plain_answer(400, reference.error().message() + "\n");
      const Result<> allowed = check_reference(*reference);
      if (!allowed) co_return plain_answer(403, allowed.error().message() + "\n");
    }
    const Result<std::string> printed = co_await evaluate(std::move(request));
    if (!printed) co_return plain_answer(500, printed.error().message() + "\n");
    co_return http::Response{
        .status = 200, .headers = {{"Content-Type", "application/json"}}, .body = *printed + "\n"};
  }

  // Users of Argo CD must not reach the files and ConfigMaps that this process may read.
  [[nodiscard]] Result<> check_reference(const modules::Reference& reference) const {
    if (!std::holds_alternative<modules::HttpSource>(reference.source()) &&
        !std::holds_alternative<modules::OciSource>(reference.source())) {
      return fail(ErrorKind::Denied,
                  fmt::format("module \"{}\" not allowed: only https, http and oci URLs are",
                              reference.display()));
    }
    return supply_.sources.allow_list.check(reference);
  }

  [[nodiscard]] io::Task<Result<std::string>> evaluate(ArgoRequest request) {
    const std::stop_token stop = stop_.get_token();
    auto terms = std::make_shared<airways::Terms>();
    terms->cluster_access = request.cluster_access;
    terms->lookup_watch = airways::LookupWatch::None;
    for (const std::string& text : request.resource_matchers) {
      terms->resource_access_matchers.push_back(HANGAR_CO_TRY(airways::Matcher::parse(text)));
    }
    if (request.cluster_access && !cluster_) {
      co_return fail(ErrorKind::Unavailable,
                     "the plugin server has no login for a cluster: " + no_cluster_);
    }
    std::shared_ptr<const wasm::Module> code = HANGAR_CO_TRY(co_await load(
        {.reference = request.path, .sha256 = request.checksum, .insecure = request.insecure},
        std::move(request.source)));

    const airways::Release release{.name = request.release,
                                   .namespace_ = request.namespace_,
                                   .history_name = request.release,
                                   .managed_by = "yokecd"};
    airways::Tracker tracker;
    std::unique_ptr<abi::flight::Lookups> lookups = std::make_unique<OfflineLookups>();
    if (request.cluster_access) {
      lookups = std::make_unique<airways::ReleaseLookups>(std::move(terms), release,
                                                          release.instance, cluster_->view, tracker,
                                                          std::nullopt, unnamed_consumer(), stop);
    }
    abi::flight::Evaluation evaluation{
        .release = request.release,
        .namespace_ = request.namespace_,
        .args = std::move(request.args),
        .stdin_bytes = std::move(request.input),
        .host_version = std::string(host::kVersion),
        .environment = std::move(request.environment),
        .timeout = evaluation_time(request.timeout),
        .memory_bytes_max = evaluation_memory(request.memory_mib_max),
        .consumer = modules::Requester::in_namespace(request.namespace_)
                        .consumer("argocd/" + request.release)};
    Result<abi::flight::Output> output = co_await abi::flight::evaluate(
        runtime_, std::move(code), std::move(evaluation), *lookups, stop);
    if (!output) co_return std::unexpected(std::move(output).error().in("failed to execute wasm"));
    if (output->exit_code != 0) {
      co_return fail(ErrorKind::GuestFault,
                     fmt::format("failed to execute wasm: module closed with exit_code({}): {}",
                                 output->exit_code, output->stderr_bytes));
    }
    co_return co_await workers_.run(unnamed_consumer(),
                                    [printed = std::move(output->stdout_bytes)]() mutable {
                                      return answer_of(std::move(printed));
                                    });
  }

  [[nodiscard]] io::Task<Result<std::shared_ptr<const wasm::Module>>> load(modules::Source module,
                                                                           std::string sent) {
    const std::stop_token stop = stop_.get_token();
    if (!sent.empty()) {
      const auto bytes = std::make_shared<const std::string>(std::move(sent));
      airways::FlightModule taken = HANGAR_CO_TRY(co_await take(bytes, std::move(module.sha256)));
      Result<std::shared_ptr<const wasm::Module>> loaded =
          co_await sent_.load(std::move(taken), unnamed_consumer(), stop);
      // The store has dropped its bytes: the next request brings them again.
      if (!loaded && loaded.error().kind() == ErrorKind::NotFound) taken_.clear();
      co_return loaded;
    }
    airways::FlightModule fetched = HANGAR_CO_TRY(co_await fetched_.prepare(
        {.requester = modules::Requester::cluster_wide(), .module = std::move(module)}, stop));
    co_return co_await fetched_.load(std::move(fetched), unnamed_consumer(), stop);
  }

  // A module that a request contains. The same bytes are unpacked and compiled once.
  [[nodiscard]] io::Task<Result<airways::FlightModule>> take(
      std::shared_ptr<const std::string> bytes, std::string checksum) {
    const std::string digest =
        co_await workers_.run(unnamed_consumer(), [bytes] { return sha256_hex(*bytes); });
    const auto turn = co_await uploads_.take(digest);
    auto known = taken_.find(digest);
    if (known == taken_.end() || sent_.find(known->second.sha256) == nullptr) {
      airways::FlightModule module =
          HANGAR_CO_TRY(co_await prepare_file(directory() / digest, bytes));
      if (taken_.size() >= kArgoUploadsMax) taken_.clear();
      known = taken_.insert_or_assign(digest, std::move(module)).first;
    }
    if (!checksum.empty()) HANGAR_CO_TRY(modules::verify_sha256(checksum, known->second.sha256));
    co_return known->second;
  }

  [[nodiscard]] io::Task<Result<airways::FlightModule>> prepare_file(
      std::filesystem::path path, std::shared_ptr<const std::string> bytes) {
    HANGAR_CO_TRY(co_await workers_.run(unnamed_consumer(), [path, bytes = std::move(bytes)] {
      return io::write_file(path, *bytes);
    }));
    Result<airways::FlightModule> prepared = co_await sent_.prepare(
        {.requester = modules::Requester::cluster_wide(), .module = {.reference = path.string()}},
        stop_.get_token());
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    co_return prepared;
  }

  void end() {
    if (!std::exchange(is_ending_, true)) loop_.spawn(end_all());
  }

  [[nodiscard]] io::Task<void> end_all() {
    log_.info("shuts down");
    co_await server_.stop(limits::kShutdownMax);
    // No client waits for the requests that are still running.
    stop_.request_stop();
    while (running_ > 0)
      std::ignore = co_await ended_.wait(std::stop_token());
    co_await fetched_.supply().stop();
    co_await sent_.supply().stop();
    co_await supply_.code_cache.stop();
    loop_.stop();
  }

  // Counts a request while it is executed.
  class Running {
   public:
    explicit Running(ArgoServer& server) : server_(server) { ++server_.running_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
      --server_.running_;
      server_.ended_.notify_all();
    }

   private:
    ArgoServer& server_;
  };

  const host::Config& config_;
  const Log& log_;
  std::stop_source stop_;
  Metrics metrics_;
  io::Loop loop_;
  // Before any thread is started: all threads inherit that the signals are blocked.
  io::Signals signals_;
  io::Workers workers_;
  http::Client http_;
  std::optional<ArgoCluster> cluster_;
  std::string no_cluster_;  // The reason if there is no cluster.
  host::ModuleSupply supply_;
  const std::unique_ptr<domains::GuestProcesses> guest_processes_;
  const abi::flight::Runtime runtime_;
  signatures::ModuleVerifier verifier_;
  airways::FlightModules fetched_;                      // From URLs.
  airways::FlightModules sent_;                         // With requests.
  io::Turns<std::string> uploads_;                      // By the digest of the sent bytes.
  std::map<std::string, airways::FlightModule> taken_;  // The same.
  io::Event ended_{loop_};                              // A request has been executed.
  std::size_t running_ = 0;
  bool is_ending_ = false;
  http::Server server_;
};

}  // namespace

Result<> serve_argocd(const host::Config& config, const std::string& address, const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve_for_guests(config));
  if (!resolved.module_verification_keys_secret.empty()) {
    return invalid("module-verification-keys-secret is for hangar host; give a file of keys");
  }
  const http::ListenAddress listen = HANGAR_TRY(http::parse_listen_address(address));
  // The zygote must not have a credential in its memory, so the login is read after the zygote has
  // started.
  std::optional<domains::ZygoteProcess> zygote = HANGAR_TRY(host::start_zygote(resolved));
  Result<kube::Login> login = host::find_login(resolved);
  host::ModuleFiles files = HANGAR_TRY(host::ModuleFiles::open(resolved, log.named("modules")));
  return ArgoServer(resolved, std::move(zygote), std::move(login), std::move(files), listen, log)
      .run();
}

}  // namespace hangar::commands
