// Reviews of Flights and ClusterFlights: whether to accept them.
//
// Guarantees:
//   - A review refuses what a reconcile would refuse: the fields, the account, a policy of the
//     namespace, the module, what the program says of its input, and what the API server says of
//     the resources that it prints.
//   - A Flight names its namespace, its module and its account itself. So a review by a sender that
//     may not be the API server checks only the fields: nothing is fetched, run, stored or asked
//     for anybody. A warning says so.
//   - A review by the API server fetches a module only after the host may act in the namespace, and
//     as that namespace.
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
  ~FlightAdmission() = default;

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
