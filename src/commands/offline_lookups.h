// The lookups of a flight without a cluster.
#pragma once

#include "abi/flight/lookups.h"
#include "io/task.h"

#include <string>

namespace hangar::commands {

// Refuses every lookup, as if the Airway had no clusterAccess.
class OfflineLookups final : public abi::flight::Lookups {
 public:
  [[nodiscard]] io::Task<abi::flight::LookupAnswer> lookup(abi::flight::LookupRequest) override {
    co_return refused();
  }
  [[nodiscard]] io::Task<abi::flight::LookupAnswer> rest_mapping(std::string,
                                                                 std::string) override {
    co_return refused();
  }

 private:
  static abi::flight::LookupAnswer refused() {
    return {.state = abi::flight::LookupState::FeatureNotGranted,
            .body = "access to the cluster has not been granted for this flight invocation"};
  }
};

}  // namespace hangar::commands
