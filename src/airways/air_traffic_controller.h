// The feature as a whole: every Airway of the cluster, every instance of their kinds, every Flight
// and every ClusterFlight.
//
// Loop thread only. Every host answers reviews from start_reviews() on; start() once it leads;
// stop() ends all work of it and waits for it.
#pragma once

#include "abi/flight/evaluation.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/admission.h"
#include "airways/airway_controller.h"
#include "airways/flight.h"
#include "airways/flight_controller.h"
#include "airways/flight_modules.h"
#include "airways/instance_controller.h"
#include "airways/live_view.h"
#include "airways/platform.h"
#include "airways/readiness.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
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

#include <memory>
#include <string>
#include <vector>

namespace hangar::airways {

class AirTrafficController {
 public:
  // Outlives this.
  struct Parts {
    const reconcile::Platform& platform;
    // The same, but its requests are made whether or not this host leads: for reviews.
    const reconcile::Platform& reviewing;
    admission::Webhooks& webhooks;
    FlightModules& modules;
    modules::ModuleStore& store;  // Theirs.
    const abi::flight::Runtime& runtime;
    tenants::Policies& policies;  // Of Flights.
    bool has_airways = true;
    bool has_flights = true;
    AsHost cluster_flights = AsHost::Refused;
    Acting acting_by_default = {};  // Of Airways: the host itself.
    std::string host_version;       // HANGAR_VERSION of the flights.
    std::string namespace_;         // The host's own.
    output::LogWriter& output;
    // Whose ConfigMaps say when resources of kinds that nobody knows are ready, in any namespace.
    // "*": those of every namespace; "-": nobody's. Empty: the host's own.
    std::vector<std::string> readiness_rules_from = {};
    recorder::Recorder* recorder = nullptr;  // Null: nothing is recorded.
    std::string pod = {};  // As the status says it: where to look for output. Empty: nowhere.
  };
  explicit AirTrafficController(const Parts& parts);
  AirTrafficController(const AirTrafficController&) = delete;
  AirTrafficController& operator=(const AirTrafficController&) = delete;
  ~AirTrafficController();

  void start_reviews() { admission_.start(); }
  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const;
  // Modules are verified with other keys from now on: each is looked at again.
  void on_verification_keys();

 private:
  void on_child(const ResourceRef& child, Change change, const kube::Object& object);
  void dispatch(const ResourceRef& resource, Change change);
  // Null when nobody works on instances of this kind.
  [[nodiscard]] InstanceController* instances_of(const kube::GroupKind& kind);
  void read_custom_readiness();

  Tracker tracker_;
  CustomReadiness custom_readiness_;
  gateway::Authorizer authorizer_;
  LiveView view_;
  reconcile::GuestRecorder recorder_;  // Of flights.
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
};

}  // namespace hangar::airways
