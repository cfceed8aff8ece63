// The rules for a Flight: the account that it acts as, and the accounts and modules that the
// policies of its namespace allow. For reconciles and reviews. Loop thread only.
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
  AsHost as_host = AsHost::Refused;  // For ClusterFlights.

  // check() and requester_of() need the policies; they are not known at first.
  [[nodiscard]] bool are_known() const { return policies.is_settled(); }
  // For a Flight always a service account of its namespace.
  [[nodiscard]] Result<Actor> actor_of(const json::Value& flight) const;
  // Like actor_of(); an error if a policy of the namespace does not allow the account or the
  // module. No policy applies to ClusterFlights: only an administrator can create one.
  [[nodiscard]] Result<Actor> check(const json::Value& flight, const Terms& terms) const;
  // The requester on whose behalf its module is fetched.
  [[nodiscard]] modules::Requester requester_of(const json::Value& flight) const;
};

}  // namespace hangar::airways
