// The feature as a whole: every Airway of the cluster and every instance of their kinds.
//
// Loop thread only. start() once this host leads; stop() ends all work of it and waits for it.
#pragma once

#include "abi/flight/evaluation.h"
#include "airways/acting.h"
#include "airways/airway_controller.h"
#include "airways/flight_modules.h"
#include "airways/live_view.h"
#include "airways/platform.h"
#include "airways/readiness.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "base/log.h"
#include "base/metrics.h"
#include "gateway/authorizer.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "modules/module_store.h"
#include "output/log_writer.h"
#include "reconcile/acting_rights.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"

#include <cstddef>
#include <memory>
#include <string>

namespace hangar::airways {

class AirTrafficController {
 public:
  // What the host shares with every feature; outlives this.
  struct Host {
    io::Loop& loop;
    io::Workers& workers;  // For what a flight printed, and its history.
    const kube::Client& client;
    kube::Cache& cache;
    kube::Discovery& discovery;
    FlightModules& modules;
    modules::ModuleStore& store;
    const abi::flight::Runtime& runtime;
    std::size_t concurrency = 1;  // Instances of one kind worked on at once.
    reconcile::ActingRights& acting;
    Acting acting_by_default = {};  // The host itself.
    reconcile::EventRecorder& events;
    reconcile::Turnstile& turnstile;
    Metrics& metrics;
    Log log;
    std::string host_version;
    std::string namespace_;  // The host's own.
    output::LogWriter& output;
    std::string pod = {};  // As the status says it: where to look for output. Empty: nowhere.
  };
  explicit AirTrafficController(const Host& host);
  AirTrafficController(const AirTrafficController&) = delete;
  AirTrafficController& operator=(const AirTrafficController&) = delete;
  ~AirTrafficController();

  void start();
  [[nodiscard]] io::Task<void> stop();
  [[nodiscard]] bool is_synced() const { return airways_.is_synced(); }

 private:
  void on_child(const ResourceRef& child, Change change, const kube::Object& object);
  void dispatch(const ResourceRef& resource, Change change);
  void read_custom_readiness();

  Tracker tracker_;
  CustomReadiness custom_readiness_;
  gateway::Authorizer authorizer_;
  LiveView view_;
  Platform platform_;
  AirwayController airways_;
  std::unique_ptr<kube::Cache::Subscription> readiness_rules_;
};

}  // namespace hangar::airways
