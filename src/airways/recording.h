// Records runs of flights, and the requests that they cause.
//
// A run is a turn of its instance or Flight (reconcile/recording.h), also one for a review of it by
// an authenticated sender. Lookups are its reads. Converters: conversion_recording.h.
#pragma once

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "airways/reasons.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "reconcile/recording.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace hangar::airways {

// For one reconcile of one instance.
class FlightRecording final : public reconcile::GuestRecording {
 public:
  using GuestRecording::GuestRecording;

  // A lookup of the run, and its answer. Only the first kRecordedLookupsMax are recorded.
  void looked_up(const kube::Resource& resource, kube::ObjectKey key, Instant asked_at,
                 const abi::flight::LookupAnswer& answer);
  // The flight ran. `user`: the user that carries out its release; empty: the host. Without
  // reasons, the instance as it is was the cause.
  void ran(Instant began, std::string_view user, std::string_view module_sha256,
           const Result<abi::flight::Output>& output, const Reasons& reasons = {});
  // The release is being removed, without a run. A change of the instance is its deletion.
  void taken_down(std::string_view user, const Reasons& reasons = {});

 private:
  struct Lookup {
    kube::Resource resource;
    kube::ObjectKey key;
    Instant asked_at;
    Instant answered_at;
    std::uint64_t status = 0;
    std::uint64_t bytes = 0;
    std::uint64_t version = 0;
  };
  std::vector<Lookup> lookups_;  // Of the run in progress.
};

}  // namespace hangar::airways
