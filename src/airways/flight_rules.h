// What a Flight may do: as whom it acts, and what the policies of its namespace let it name. For a
// reconcile and for a review.
// Loop thread only.
#pragma once

#include "airways/acting.h"
#include "airways/flight.h"
#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "modules/requester.h"
#include "tenants/policies.h"

namespace hangar::airways {

struct FlightRules {
  const tenants::Policies& policies;
  AsHost as_host = AsHost::Refused;  // Of ClusterFlights.

  // Until then nothing is known of what Flights may.
  [[nodiscard]] bool are_known() const { return policies.is_settled(); }
  // Of a Flight always a service account of its namespace.
  [[nodiscard]] Result<Actor> actor_of(const json::Value& flight) const;
  // As whom, unless a policy of the namespace does not let it name that, or the module. No policy
  // is about ClusterFlights: only an administrator can make one.
  [[nodiscard]] Result<Actor> check(const json::Value& flight, const Terms& terms) const;
  // For whom its module is fetched.
  [[nodiscard]] modules::Requester requester_of(const json::Value& flight) const;
};

}  // namespace hangar::airways
