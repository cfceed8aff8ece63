// What the controllers of this folder stand on: built once by AirTrafficController, handed to each.
#pragma once

#include "abi/flight/evaluation.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/flight_modules.h"
#include "airways/live_view.h"
#include "airways/readiness.h"
#include "airways/release_work.h"
#include "airways/tracker.h"
#include "base/metrics.h"
#include "base/result.h"
#include "gateway/authorizer.h"
#include "modules/module_store.h"
#include "output/log_writer.h"
#include "reconcile/platform.h"
#include "reconcile/recording.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::airways {

// Every reference outlives whoever is given this.
struct Platform {
  const reconcile::Platform& shared;
  LiveView& view;
  Tracker& tracker;
  FlightModules& modules;
  modules::ModuleStore& store;  // Theirs.
  const abi::flight::Runtime& runtime;
  const CustomReadiness& custom_readiness;  // Changes as its ConfigMaps do.
  gateway::Authorizer& authorizer;          // What a flight's service account may be shown.
  Acting acting_by_default;                 // Of Airways that name none.
  Counter& evaluations;                     // Flights that ran, whatever came of it.
  Histogram& evaluation_cpu_seconds;        // Of each of them.
  std::string host_version;                 // HANGAR_VERSION of the flights.
  std::string namespace_;                   // The host's own, for copies of pinned flights.
  output::LogWriter& output;
  reconcile::GuestRecorder& recorder;  // Of flights.
  std::string pod;                     // Where to look for output. Empty: nowhere.
  Means means;
  // How the API server reaches a path of the webhooks; nothing yet, or where they are off.
  std::function<std::optional<admission::Address>(std::string_view path)> webhook_address;
  // Whether the API server has been told to protect the children of Airways of mode static.
  std::function<Result<>()> check_protection;

  [[nodiscard]] ReleaseParts release_parts() const {
    return {.loop = shared.loop,
            .view = view,
            .client = shared.client,
            .custom_readiness = custom_readiness};
  }
};

}  // namespace hangar::airways
