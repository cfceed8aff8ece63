// What the recorder is told of flights: each run, and what is asked for because of it.
//
// A run is a turn of its instance or Flight (reconcile/recording.h); what it was woken by is the
// instance as it was then. Lookups are its reads; reviews are not recorded.
#pragma once

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "reconcile/recording.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace hangar::airways {

// Of one reconcile of one instance.
class FlightRecording final : public reconcile::GuestRecording {
 public:
  using GuestRecording::GuestRecording;

  // What it was shown while it runs, or why not. Of so many as one run may have recorded.
  void looked_up(const kube::Resource& resource, kube::ObjectKey key, Instant asked_at,
                 const abi::flight::LookupAnswer& answer);
  // The flight ran. `user`: as whom its release is carried out; empty: as the host.
  void ran(Instant began, std::string_view user, std::string_view module_sha256,
           const Result<abi::flight::Output>& output);
  // Its release is taken down, without a run.
  void taken_down(std::string_view user);

 private:
  struct Lookup {
    kube::Resource resource;
    kube::ObjectKey key;
    Instant asked_at;
    Instant answered_at;
    std::uint64_t status = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Lookup> lookups_;  // Of the run that has not ended.
};

}  // namespace hangar::airways
