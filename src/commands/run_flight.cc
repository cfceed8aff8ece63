#include "commands/run_flight.h"

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "airways/identity.h"
#include "airways/lookups.h"
#include "airways/matcher.h"
#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/rehearsal.h"
#include "airways/request_view.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "airways/tracker.h"
#include "base/consumer.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "commands/drift.h"
#include "commands/flight_runner.h"
#include "commands/offline_lookups.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "host/guest_parts.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/diff.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

// The connection to the cluster, created only if it is needed.
struct Cluster {
  Cluster(io::Loop& loop, http::Client& http, kube::Login login, Metrics& metrics, const Log& log)
      : client(loop, http, std::make_shared<kube::Credentials>(loop, std::move(login), log),
               metrics, log),
        view(client) {}

  kube::Client client;
  airways::RequestView view;
  airways::Tracker tracker;
};

// Removes fields that the server sets: they are noise in a difference.
json::Value without_server_fields(json::Value object) {
  object = without_bookkeeping(std::move(object));
  json::erase_at(object, {"metadata", "uid"});
  return object;
}

class FlightSession {
 public:
  FlightSession(const host::Config& config, RunFlightOptions options, const Log& log)
      : config_(config),
        options_(std::move(options)),
        log_(log),
        workers_(loop_, 2),
        http_(loop_) {}

  [[nodiscard]] Result<RunFlightOutput> run() {
    // Before a credential is read: the zygote must not have it.
    runner_.emplace(FlightRunner::Parts{.config = config_,
                                        .loop = loop_,
                                        .workers = workers_,
                                        .http = http_,
                                        .metrics = metrics_,
                                        .log = log_},
                    HANGAR_TRY(host::start_zygote(config_)));
    return io::run_to_end(loop_, run_once());
  }

 private:
  [[nodiscard]] Result<> connect() {
    kube::Login login = HANGAR_TRY(host::find_login(config_));
    cluster_.emplace(loop_, http_, std::move(login), metrics_, log_);
    return {};
  }

  [[nodiscard]] io::Task<Result<RunFlightOutput>> run_once() {
    std::optional<json::Value> resource;
    if (options_.input.find_first_not_of(" \t\r\n") != std::string::npos) {
      resource = HANGAR_CO_TRY(json::parse_yaml(options_.input));
    }
    if (options_.cluster_access || options_.diff) HANGAR_CO_TRY(connect());
    const airways::Release release = release_for(resource);

    Result<abi::flight::Output> evaluated = co_await evaluate(resource, release);
    if (!evaluated) {
      co_return std::unexpected(std::move(evaluated).error().in("failed to evaluate flight"));
    }
    RunFlightOutput output{.stderr_text = std::move(evaluated->stderr_bytes)};
    if (evaluated->exit_code != 0) {
      co_return fail(ErrorKind::GuestFault, fmt::format("the flight exited with code {}:\n{}",
                                                        evaluated->exit_code, output.stderr_text));
    }
    airways::Output parsed = HANGAR_CO_TRY(airways::parse_output(evaluated->stdout_bytes));
    const std::optional<json::Value> self = airways::take_identity(parsed.stages, release.instance);
    if (cluster_) {
      HANGAR_CO_TRY(co_await airways::prepare_printed(cluster_->view, release, parsed.stages,
                                                      unnamed_consumer(), stop_));
    }
    for (const airways::Stage& stage : parsed.stages) {
      for (const json::Value& one : stage) {
        output.text +=
            options_.diff ? HANGAR_CO_TRY(co_await difference(one)) : "---\n" + json::to_yaml(one);
      }
    }
    if (self && !options_.diff) output.text += "---\n" + json::to_yaml(*self);
    co_return output;
  }

  [[nodiscard]] airways::Release release_for(const std::optional<json::Value>& resource) const {
    airways::Release release = resource
                                   ? airways::release_of(*resource)
                                   : airways::Release{.name = "flight", .namespace_ = "default"};
    if (!options_.release.empty()) release.name = options_.release;
    if (!options_.namespace_.empty()) release.namespace_ = options_.namespace_;
    return release;
  }

  [[nodiscard]] io::Task<Result<abi::flight::Output>> evaluate(
      const std::optional<json::Value>& resource, const airways::Release& release) {
    const std::unique_ptr<abi::flight::Lookups> lookups = HANGAR_CO_TRY(lookups_for(release));
    RanFlight ran = HANGAR_CO_TRY(
        co_await runner_->run({.module = {.reference = options_.module,
                                          .sha256 = options_.checksum,
                                          .insecure = options_.insecure},
                               .args = options_.args,
                               .stdin_bytes = resource ? json::dump(*resource) : "",
                               .timeout = options_.timeout,
                               .memory_mib_max = options_.memory_mib_max,
                               .show = options_.show},
                              release, *lookups, cluster_ ? &cluster_->client : nullptr, stop_));
    co_return std::move(ran.output);
  }

  [[nodiscard]] Result<std::unique_ptr<abi::flight::Lookups>> lookups_for(
      const airways::Release& release) {
    if (!options_.cluster_access) return std::make_unique<OfflineLookups>();
    const auto terms = std::make_shared<airways::Terms>();
    terms->cluster_access = true;
    for (const std::string& text : options_.resource_access_matchers) {
      terms->resource_access_matchers.push_back(HANGAR_TRY(airways::Matcher::parse(text)));
    }
    return std::make_unique<airways::ReleaseLookups>(terms, release, release.instance,
                                                     cluster_->view, cluster_->tracker,
                                                     std::nullopt, unnamed_consumer(), stop_);
  }

  // What applying `desired` would change, by a dry run of the server.
  [[nodiscard]] io::Task<Result<std::string>> difference(const json::Value& desired) {
    const kube::GroupVersionKind gvk = HANGAR_CO_TRY(kube::gvk_of(desired));
    const kube::Resource resource =
        HANGAR_CO_TRY(co_await cluster_->view.discovery().find(gvk, unnamed_consumer(), stop_));
    const std::string name = airways::canonical_name(desired);
    Result<json::Value> live =
        co_await cluster_->client.get(resource, kube::key_of(desired), stop_);
    if (!live && live.error().kind() != ErrorKind::NotFound)
      co_return std::unexpected(live.error());
    const json::Value merged = HANGAR_CO_TRY(co_await cluster_->client.apply(
        resource, desired,
        {.field_manager = std::string(airways::kFieldManager), .force = true, .dry_run = true},
        stop_));
    const std::string before = live ? json::to_yaml(without_server_fields(*std::move(live))) : "";
    const std::string after = json::to_yaml(without_server_fields(merged));
    co_return json::diff_lines(before, after,
                               {.context_lines = options_.diff_context,
                                .left_name = "live/" + name,
                                .right_name = "flight/" + name});
  }

  const host::Config& config_;
  const RunFlightOptions options_;
  const Log& log_;
  std::stop_token stop_;
  Metrics metrics_;
  io::Loop loop_;
  io::Workers workers_;
  http::Client http_;
  std::optional<Cluster> cluster_;
  std::optional<FlightRunner> runner_;
};

}  // namespace

Result<RunFlightOutput> run_flight(const host::Config& config, RunFlightOptions options,
                                   const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve_for_guests(config));
  return FlightSession(resolved, std::move(options), log).run();
}

}  // namespace hangar::commands
