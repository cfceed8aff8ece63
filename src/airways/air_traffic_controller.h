// The whole feature: all Airways of the cluster, the instances of their kinds, all Flights and all
// ClusterFlights.
//
// Loop thread only. Every host answers reviews from start_reviews() on. Call start() once this host
// leads. stop() stops all work and waits until it has finished.
#pragma once

#include "abi/flight/evaluation.h"
#include "abi/statemachine/runtime.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/admission.h"
#include "airways/airway_controller.h"
#include "airways/flight.h"
#include "airways/flight_controller.h"
#include "airways/flight_modules.h"
#include "airways/instance_controller.h"
#include "airways/live_view.h"
#include "airways/lua_rules.h"
#include "airways/platform.h"
#include "airways/readiness.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "archive/module_archive.h"
#include "gateway/authorizer.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "modules/module_store.h"
#include "output/log_writer.h"
#include "reconcile/platform.h"
#include "reconcile/recording.h"
#include "recorder/recorder.h"
#include "tenants/policies.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hangar::airways {

class AirTrafficController {
 public:
  // The references outlive this object.
  struct Parts {
    const reconcile::Platform& platform;
    // Like `platform`, but its requests are sent whether or not this host leads: for reviews.
    const reconcile::Platform& reviewing;
    admission::Webhooks& webhooks;
    FlightModules& modules;
    modules::ModuleStore& store;  // The store of `modules`.
    const abi::flight::Runtime& runtime;
    abi::statemachine::Runtime& machines;  // For readiness rules in Lua.
    tenants::Policies& policies;           // For Flights.
    bool has_airways = true;
    bool has_flights = true;
    AsHost cluster_flights = AsHost::Refused;
    Acting acting_by_default = {};  // For Airways; by default the host itself.
    std::string host_version;       // HANGAR_VERSION in a flight's environment.
    std::string namespace_;         // The host's own.
    output::LogWriter& output;
    // Namespaces whose ConfigMaps define, for all namespaces, when resources of kinds without a
    // built-in rule are ready. "*": every namespace; "-": none. Empty: the host's own.
    std::vector<std::string> readiness_rules_from = {};
    recorder::Recorder* recorder = nullptr;  // Null: nothing is recorded.
    std::string pod = {};  // For statuses: the pod whose log has the output. Empty: none.
  };
  explicit AirTrafficController(const Parts& parts);
  AirTrafficController(const AirTrafficController&) = delete;
  AirTrafficController& operator=(const AirTrafficController&) = delete;
  ~AirTrafficController();

  void start_reviews() { admission_.start(); }
  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const;
  // The kinds of objects that flights evaluate: Flights, and the instances of served Airways.
  [[nodiscard]] std::vector<kube::Resource> flown_resources() const;
  struct Count {
    std::uint64_t flights = 0;
    std::uint64_t instances = 0;  // Of Airways.
  };
  // By namespace; namespaces without any are left out.
  [[nodiscard]] std::map<std::string, Count> counts() const;
  // The verification keys have changed: requests all modules again.
  void on_verification_keys();

 private:
  void on_child(const ResourceRef& child, Change change, const kube::Object& object);
  void dispatch(const ResourceRef& resource, Change change, const kube::Object& object);
  // Null if no controller works on this kind.
  [[nodiscard]] InstanceController* instances_of(const kube::GroupKind& kind);
  void read_custom_readiness();

  Tracker tracker_;
  CustomReadiness custom_readiness_;  // From the present ConfigMaps.
  gateway::Authorizer authorizer_;
  LiveView view_;
  reconcile::GuestRecorder recorder_;  // Records runs of flights.
  LuaRules lua_;
  Platform platform_;
  admission::Webhooks& webhooks_;
  const bool has_airways_;
  const bool has_flights_;
  AirwayController airways_;
  FlightController flights_;
  FlightController cluster_flights_;
  Admission admission_;
  const std::vector<std::string> readiness_rules_from_;
  std::vector<std::unique_ptr<kube::Cache::Subscription>> readiness_rules_;
  // Only for reading: the controllers keep the copies of pinned modules.
  archive::ModuleArchive airway_copies_;
  archive::ModuleArchive cluster_flight_copies_;
  archive::ModuleArchive flight_copies_;
};

}  // namespace hangar::airways
