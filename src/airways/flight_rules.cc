#include "airways/flight_rules.h"

#include "airways/acting.h"
#include "airways/flight.h"
#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "modules/requester.h"
#include "tenants/policies.h"
#include "tenants/rules.h"

#include <memory>
#include <string>

namespace hangar::airways {

namespace {

bool is_of_the_cluster(const json::Value& flight) {
  return json::string_at(flight, {"kind"}) == kClusterFlightKind;
}

std::string namespace_of(const json::Value& flight) {
  return std::string(json::string_at(flight, {"metadata", "namespace"}));
}

}  // namespace

Result<Actor> FlightRules::actor_of(const json::Value& flight) const {
  if (is_of_the_cluster(flight)) return cluster_actor_of(flight, as_host);
  return Actor::account(HANGAR_TRY(account_of(flight)));
}

Result<Actor> FlightRules::check(const json::Value& flight, const Terms& terms) const {
  Actor actor = HANGAR_TRY(actor_of(flight));
  if (is_of_the_cluster(flight)) return actor;
  const std::shared_ptr<const tenants::Rules> rules = policies.rules_of(namespace_of(flight));
  HANGAR_TRY(rules->check_service_account(actor.account()->name));
  HANGAR_TRY(rules->check_module(terms.flight));
  return actor;
}

modules::Requester FlightRules::requester_of(const json::Value& flight) const {
  if (is_of_the_cluster(flight)) return modules::Requester::cluster_wide();
  const std::string namespace_ = namespace_of(flight);
  return policies.rules_of(namespace_)->requester(namespace_);
}

}  // namespace hangar::airways
