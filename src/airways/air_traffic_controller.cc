#include "airways/air_traffic_controller.h"

#include "airways/airway_controller.h"
#include "airways/flight.h"
#include "airways/flight_modules.h"
#include "airways/instance_controller.h"
#include "airways/ownership.h"
#include "airways/readiness.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "archive/copy_format.h"
#include "archive/module_archive.h"
#include "base/metrics.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/core_resources.h"
#include "kube/object.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

constexpr std::string_view kEveryNamespace = "*";
constexpr std::string_view kNoNamespace = "-";

// Every user who may write ConfigMaps in one of these decides for all namespaces.
std::vector<std::string> sources_of_rules(const AirTrafficController::Parts& parts) {
  const std::vector<std::string>& given = parts.readiness_rules_from;
  if (given.empty()) return {parts.namespace_};
  if (given.size() == 1 && given.front() == kNoNamespace) return {};
  if (std::ranges::find(given, kEveryNamespace) != given.end()) {
    return {std::string(kEveryNamespace)};
  }
  return given;
}

// Reviews and conversions need copies on every host, whether or not it leads.
archive::ModuleArchive::Parts reading(const AirTrafficController::Parts& parts,
                                      archive::CopyFormat format) {
  return {.loop = parts.reviewing.loop,
          .workers = parts.reviewing.workers,
          .client = parts.reviewing.client,
          .store = parts.store,
          .format = std::move(format)};
}

}  // namespace

AirTrafficController::AirTrafficController(const Parts& parts)
    : authorizer_(parts.platform.client),
      view_(parts.platform.cache, parts.platform.discovery, parts.platform.client,
            {.on_child = [this](const ResourceRef& child, Change change,
                                const kube::Object& object) { on_child(child, change, object); },
             .on_external =
                 [this](const ResourceRef& resource, Change change, const kube::Object& object) {
                   dispatch(resource, change, object);
                 }}),
      recorder_(parts.recorder, recorder::Contract::Airway),
      lua_(parts.platform.loop, parts.platform.workers, parts.machines),
      platform_{
          .shared = parts.platform,
          .view = view_,
          .tracker = tracker_,
          .modules = parts.modules,
          .store = parts.store,
          .runtime = parts.runtime,
          .custom_readiness = custom_readiness_,
          .lua = lua_,
          .authorizer = authorizer_,
          .acting_by_default = parts.acting_by_default,
          .evaluations =
              parts.platform.metrics.counter("hangar_evaluations_total", "Runs of flights."),
          .evaluation_cpu_seconds = parts.platform.metrics.histogram(
              "hangar_evaluation_cpu_seconds", "CPU time of one run of a flight, in seconds.",
              latency_buckets()),
          .host_version = parts.host_version,
          .namespace_ = parts.namespace_,
          .output = parts.output,
          .recorder = recorder_,
          .pod = parts.pod,
          .means = {.has_webhooks = parts.webhooks.is_on()},
          .webhook_address = [&webhooks = parts.webhooks](
                                 std::string_view path) { return webhooks.address_of(path); },
          .check_protection =
              [this](std::string_view policy) { return admission_.check_protection(policy); }},
      webhooks_(parts.webhooks),
      has_airways_(parts.has_airways),
      has_flights_(parts.has_flights),
      airways_(platform_),
      flights_(platform_, parts.policies,
               {.kind = flight_resource(), .name = "flight", .copies = flight_copies()}),
      cluster_flights_(platform_, parts.policies,
                       {.kind = cluster_flight_resource(),
                        .name = "clusterflight",
                        .as_host = parts.cluster_flights,
                        .copies = cluster_flight_copies()}),
      admission_(platform_, parts.reviewing, parts.webhooks,
                 {.has_airways = parts.has_airways,
                  .has_flights = parts.has_flights,
                  .policies = parts.policies,
                  .cluster_flights = parts.cluster_flights}),
      readiness_rules_from_(sources_of_rules(parts)),
      airway_copies_(reading(parts, airway_copies())),
      cluster_flight_copies_(reading(parts, cluster_flight_copies())),
      flight_copies_(reading(parts, flight_copies())) {
  platform_.modules.read_copies({{.archive = &airway_copies_, .kept_in = parts.namespace_},
                                 {.archive = &cluster_flight_copies_, .kept_in = parts.namespace_},
                                 {.archive = &flight_copies_, .kept_in = {}}});
}

AirTrafficController::~AirTrafficController() {
  platform_.modules.read_copies({});
}

void AirTrafficController::start() {
  for (const std::string& namespace_ : readiness_rules_from_) {
    readiness_rules_.push_back(platform_.shared.cache.subscribe(
        {.resource = kube::config_map_resource(),
         .namespace_ = namespace_ == kEveryNamespace ? std::string() : namespace_,
         .label_selector = std::string(CustomReadiness::kLabelSelector)},
        {.on_delta = [this](const kube::Delta&) { read_custom_readiness(); },
         .on_synced = [this] { read_custom_readiness(); }}));
  }
  if (has_flights_) {
    flights_.start();
    cluster_flights_.start();
  }
  admission_.lead();
  if (!has_airways_) return;
  webhooks_.on_address_change("airways", [this] { airways_.on_webhook_address(); });
  airways_.start();
}

void AirTrafficController::on_verification_keys() {
  airways_.on_verification_keys();
  flights_.on_verification_keys();
  cluster_flights_.on_verification_keys();
}

std::vector<kube::Resource> AirTrafficController::flown_resources() const {
  std::vector<kube::Resource> resources = {flight_resource(), cluster_flight_resource()};
  std::ranges::move(airways_.instance_resources(), std::back_inserter(resources));
  return resources;
}

std::map<std::string, AirTrafficController::Count> AirTrafficController::counts() const {
  std::map<std::string, Count> counts;
  for (const auto& [namespace_name, count] : flights_.counts())
    counts[namespace_name].flights = count;
  for (const auto& [namespace_name, count] : airways_.instance_counts())
    counts[namespace_name].instances = count;
  return counts;
}

bool AirTrafficController::is_synced() const {
  return (!has_airways_ || airways_.is_synced()) &&
         (!has_flights_ || (flights_.is_synced() && cluster_flights_.is_synced()));
}

io::Task<void> AirTrafficController::stop() {
  webhooks_.on_address_change("airways", {});
  co_await admission_.stop();
  readiness_rules_.clear();
  co_await flights_.stop();
  co_await cluster_flights_.stop();
  co_await airways_.stop();
}

void AirTrafficController::read_custom_readiness() {
  std::vector<json::Value> config_maps;
  for (const auto& rules : readiness_rules_) {
    for (const kube::ObjectPtr& object : rules->list())
      config_maps.push_back(object->to_value());
  }
  custom_readiness_ = CustomReadiness(config_maps);
}

void AirTrafficController::on_child(const ResourceRef& child, Change change,
                                    const kube::Object& object) {
  const std::optional<ResourceRef> instance = instance_of(object.to_value());
  // Anybody may write the annotation: an object of another namespace wakes no instance.
  if (instance && may_contain(*instance, child)) {
    if (InstanceController* const controller = instances_of(instance->kind)) {
      controller->on_child(instance->key(), child, change, object);
    }
  }
  dispatch(child, change, object);
}

InstanceController* AirTrafficController::instances_of(const kube::GroupKind& kind) {
  if (!is_flight(kind)) return airways_.instances_of(kind);
  if (!has_flights_) return nullptr;
  return &(kind.kind == kFlightKind ? flights_ : cluster_flights_).instances();
}

void AirTrafficController::dispatch(const ResourceRef& resource, Change change,
                                    const kube::Object& object) {
  for (const ResourceRef& instance : tracker_.concerned(resource, change)) {
    if (InstanceController* const controller = instances_of(instance.kind)) {
      controller->on_tracked(instance.key(), resource, change, object);
    }
  }
}

}  // namespace hangar::airways
