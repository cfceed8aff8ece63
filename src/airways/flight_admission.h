// Reviews of Flights and ClusterFlights: whether to accept them.
//
// Guarantees:
//   - A review refuses what a reconcile would refuse: because of the fields, the account, a policy
//     of the namespace, the module, an error of the program about its input, or the API server's
//     answers to the resources that the program prints.
//   - A Flight names its own namespace, module and account. So a review from an unauthenticated
//     sender checks only the fields: nothing is fetched, run, stored or requested for it. A warning
//     says so.
//   - A review from the API server fetches a module only after the host was found to have the right
//     to act in the namespace, and on behalf of that namespace.
// Every replica answers, whether or not it leads. Loop thread only.
#pragma once

#include "admission/review.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/flight.h"
#include "airways/flight_modules.h"
#include "airways/flight_rules.h"
#include "airways/platform.h"
#include "airways/review_modules.h"
#include "airways/review_slots.h"
#include "airways/terms.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "tenants/policies.h"

#include <stop_token>

namespace hangar::airways {

class FlightAdmission {
 public:
  // All members outlive this object. `platform`: that of reviews.
  struct Parts {
    const Platform& platform;
    ReviewSlots& slots;
    ReviewModules& modules;
    tenants::Policies& policies;
  };
  FlightAdmission(Parts parts, AsHost as_host);
  FlightAdmission(const FlightAdmission&) = delete;
  FlightAdmission& operator=(const FlightAdmission&) = delete;
  ~FlightAdmission() = default;

  // Registers the webhook, and starts to answer.
  void start(admission::Webhooks& webhooks);

 private:
  using DecisionTask = io::Task<Result<admission::Decision>>;
  [[nodiscard]] DecisionTask review(admission::Review review, std::stop_token stop);
  [[nodiscard]] Result<admission::Decision> check_fields(const admission::Review& review,
                                                         const Terms& terms) const;
  [[nodiscard]] DecisionTask evaluate(const admission::Review& review, Terms terms,
                                      const Actor& actor, std::stop_token stop);
  // The actor, if a policy allows both it and the module; waits until the policies are known.
  [[nodiscard]] io::Task<Result<Actor>> actor_for(const json::Value& flight, const Terms& terms,
                                                  std::stop_token stop);

  const Platform& platform_;
  ReviewSlots& slots_;
  ReviewModules& modules_;
  const FlightRules rules_;
};

}  // namespace hangar::airways
