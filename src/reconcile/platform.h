// Shared by the host and all features: built once, passed to each by reference.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "io/loop.h"
#include "io/workers.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "reconcile/acting_rights.h"
#include "reconcile/event_recorder.h"
#include "reconcile/guest_waits.h"
#include "reconcile/turnstile.h"

#include <cstddef>

namespace hangar::reconcile {

// Outlives the features; everything that it refers to outlives it.
struct Platform {
  io::Loop& loop;
  io::Workers& workers;  // For work that takes milliseconds: parsing, hashing, unpacking.
  const kube::Client& client;
  kube::Cache& cache;
  kube::Discovery& discovery;
  ActingRights& acting;
  EventRecorder& events;
  Turnstile& turnstile;  // The slots for reconciles, shared by all controllers.
  Metrics& metrics;
  Log log;
  // How many objects of one kind may be reconciled at once, if the feature has no bound of its own.
  std::size_t concurrency = 1;
  GuestWaits* waits = nullptr;  // Null: statuses do not say which guests wait for memory.
};

}  // namespace hangar::reconcile
