// What the recorder is told of flights: each run, and what is asked for because of it.
//
// A run is a turn of its instance or Flight (reconcile/recording.h); what it was woken by is the
// instance as it was then. Lookups are not recorded, nor are reviews.
#pragma once

#include "abi/flight/evaluation.h"
#include "base/result.h"
#include "base/time.h"
#include "reconcile/recording.h"

#include <string_view>

namespace hangar::airways {

// Of one reconcile of one instance.
class FlightRecording final : public reconcile::GuestRecording {
 public:
  using GuestRecording::GuestRecording;

  // The flight ran. `user`: as whom its release is carried out; empty: as the host.
  void ran(Instant began, std::string_view user, std::string_view module_sha256,
           const Result<abi::flight::Output>& output);
  // Its release is taken down, without a run.
  void taken_down(std::string_view user);
};

}  // namespace hangar::airways
