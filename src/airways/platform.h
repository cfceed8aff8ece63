// What the controllers of this folder stand on: built once by AirTrafficController, handed to each.
#pragma once

#include "abi/flight/evaluation.h"
#include "airways/acting.h"
#include "airways/flight_modules.h"
#include "airways/live_view.h"
#include "airways/readiness.h"
#include "airways/tracker.h"
#include "base/log.h"
#include "base/metrics.h"
#include "gateway/authorizer.h"
#include "io/loop.h"
#include "io/workers.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "modules/module_store.h"
#include "output/log_writer.h"
#include "reconcile/acting_rights.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"

#include <cstddef>
#include <string>

namespace hangar::airways {

// Every reference outlives whoever is given this.
struct Platform {
  io::Loop& loop;
  io::Workers& workers;
  const kube::Client& client;
  kube::Cache& cache;
  LiveView& view;
  Tracker& tracker;
  FlightModules& modules;
  modules::ModuleStore& store;  // Theirs.
  const abi::flight::Runtime& runtime;
  // How many instances of one kind are worked on at once, at most.
  std::size_t concurrency = 1;
  const CustomReadiness& custom_readiness;  // Changes as its ConfigMaps do.
  reconcile::ActingRights& acting;          // Whether we may act as a flight's service account.
  gateway::Authorizer& authorizer;          // What it may be shown.
  Acting acting_by_default;                 // Of Airways that name none.
  reconcile::EventRecorder& events;
  reconcile::Turnstile& turnstile;  // Shares the slots for reconciles between all kinds.
  Metrics& metrics;
  Counter& evaluations;               // Flights that ran, whatever came of it.
  Histogram& evaluation_cpu_seconds;  // Of each of them.
  Log log;
  std::string host_version;  // HANGAR_VERSION of the flights.
  std::string namespace_;    // The host's own, for copies of pinned flights.
  output::LogWriter& output;
  std::string pod;  // Where to look for output. Empty: nowhere.
};

}  // namespace hangar::airways
