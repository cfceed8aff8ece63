// Reviews of Flights and ClusterFlights: whether to accept them.
//
// Guarantees:
//   - A Flight is refused that its reconcile would refuse: for its fields, its account, a policy of
//     its namespace, its module, what its program says of the input, and what the API server says
//     of the resources that it prints.
//   - A Flight names its namespace, its module and its account itself. So of a review of somebody
//     who may not be the API server only the fields are looked at: nothing is fetched, run, stored
//     or asked for anybody. A warning says so.
//   - For a review of the API server the namespace must be one of this host's before anything is
//     fetched, and the module is fetched as that namespace.
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
  // All of it outlives this. `platform`: of reviews.
  struct Parts {
    const Platform& platform;
    ReviewSlots& slots;
    ReviewModules& modules;
    tenants::Policies& policies;
  };
  FlightAdmission(Parts parts, AsHost as_host);
  FlightAdmission(const FlightAdmission&) = delete;
  FlightAdmission& operator=(const FlightAdmission&) = delete;
  ~FlightAdmission();

  // Registers the webhook, and answers from now on.
  void start(admission::Webhooks& webhooks);

 private:
  using DecisionTask = io::Task<Result<admission::Decision>>;
  [[nodiscard]] DecisionTask review(admission::Review review, std::stop_token stop);
  [[nodiscard]] Result<admission::Decision> check_fields(const admission::Review& review,
                                                         const Terms& terms) const;
  [[nodiscard]] DecisionTask evaluate(const admission::Review& review, Terms terms,
                                      const Actor& actor, std::stop_token stop);
  // The actor, if a policy allows it and the module; waits until the policies are known.
  [[nodiscard]] io::Task<Result<Actor>> actor_for(const json::Value& flight, const Terms& terms,
                                                  std::stop_token stop);

  const Platform& platform_;
  ReviewSlots& slots_;
  ReviewModules& modules_;
  const FlightRules rules_;
};

}  // namespace hangar::airways
