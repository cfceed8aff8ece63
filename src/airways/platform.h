// Services that the controllers of this folder share. AirTrafficController makes them once and
// gives them to each controller.
#pragma once

#include "abi/flight/evaluation.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/flight_modules.h"
#include "airways/live_view.h"
#include "airways/lua_rules.h"
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

// The references outlive all users of this struct.
struct Platform {
  const reconcile::Platform& shared;
  LiveView& view;
  Tracker& tracker;
  FlightModules& modules;
  modules::ModuleStore& store;  // The store of `modules`.
  const abi::flight::Runtime& runtime;
  const CustomReadiness& custom_readiness;  // Replaced when its ConfigMaps change.
  LuaRules& lua;                            // Runs those in Lua.
  gateway::Authorizer& authorizer;          // Checks what a flight's account may see.
  Acting acting_by_default;                 // For Airways that name no account.
  Counter& evaluations;                     // Runs of flights, failed ones included.
  Histogram& evaluation_cpu_seconds;        // Of each run that returned an output.
  std::string host_version;                 // HANGAR_VERSION in a flight's environment.
  std::string namespace_;                   // The host's: for copies and approvals.
  output::LogWriter& output;
  reconcile::GuestRecorder& recorder;  // Records runs of flights.
  std::string pod;                     // For statuses: its log has the output. Empty: none.
  Means means;
  // How the API server reaches a path of the webhooks. std::nullopt: there is no certificate yet,
  // or webhooks are off.
  std::function<std::optional<admission::Address>(std::string_view path)> webhook_address;
  // Returns an error until that policy (child_protection.h) is applied.
  std::function<Result<>(std::string_view policy)> check_protection;

  [[nodiscard]] ReleaseParts release_parts() const {
    return {.loop = shared.loop,
            .view = view,
            .client = shared.client,
            .custom_readiness = custom_readiness,
            .lua = &lua};
  }
};

}  // namespace hangar::airways
