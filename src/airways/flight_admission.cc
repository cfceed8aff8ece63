#include "airways/flight_admission.h"

#include "admission/review.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/flight.h"
#include "airways/flight_rules.h"
#include "airways/flight_status.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/proposed.h"
#include "airways/review_modules.h"
#include "airways/terms.h"
#include "base/invalid.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "modules/pin.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "tenants/policies.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

using admission::Decision;
using admission::Review;

constexpr std::string_view kConfiguration = "hangar-flights";
// The name of yoke's webhook, which refusals show.
constexpr std::string_view kWebhook = "flights.yoke.cd";
// Long: a module may have to be fetched and compiled.
constexpr std::chrono::seconds kTimeout{30};

// Policies are unknown only for a moment after the start.
constexpr std::chrono::milliseconds kPoliciesAgain{100};

constexpr std::string_view kWhoAsks =
    "this host does not know who asks; give it the authority of the API server's client "
    "certificate (webhook-client-ca-file)";

Decision not_evaluated(std::string_view why) {
  return admission::allowed_with(fmt::format("not evaluated: {}, and {}", why, kWhoAsks));
}

// A pin counts only for the source that it was made for.
modules::Wish wish_for(const json::Value& flight, const modules::Source& source,
                       modules::Requester requester) {
  modules::Wish wish{.requester = std::move(requester), .module = source};
  const std::optional<modules::Pin> pin = pin_in(flight, kFlightModule);
  if (pin && pin->definition == modules::definition_of(source)) wish.pinned_sha256 = pin->sha256;
  return wish;
}

}  // namespace

FlightAdmission::FlightAdmission(const Platform& platform, ReviewModules& modules,
                                 tenants::Policies& policies, AsHost as_host)
    : platform_(platform), modules_(modules), rules_{.policies = policies, .as_host = as_host} {}

FlightAdmission::~FlightAdmission() = default;

void FlightAdmission::start(admission::Webhooks& webhooks) {
  std::string path = fmt::format("{}{}", kValidationsPath, kWebhook);
  webhooks.server().review_at(path, [this](Review proposed, std::string, std::stop_token stop) {
    return review(std::move(proposed), std::move(stop));
  });
  const kube::Resource flights = flight_resource();
  webhooks.want({.name = std::string(kConfiguration),
                 .webhook = std::string(kWebhook),
                 .path = std::move(path),
                 .rules = reviewed_rules(flights.group, flights.version,
                                         {flights.plural, cluster_flight_resource().plural}),
                 .match_conditions = reviewed_conditions(),
                 .timeout = kTimeout});
}

FlightAdmission::DecisionTask FlightAdmission::review(Review review, std::stop_token stop) {
  if (passes_unseen(review)) co_return Decision{};
  const kube::GroupVersionKind kind = HANGAR_CO_TRY(kube::gvk_of(review.object));
  if (!is_flight(kind.group_kind())) co_return invalid("kind: must be Flight or ClusterFlight");
  Terms terms = HANGAR_CO_TRY(parse_flight(review.object));
  if (terms.skip_admission_webhook) {
    co_return admission::allowed_with(
        fmt::format("not validated: the {} has skipAdmissionWebhook", kind.kind));
  }
  const Actor actor = HANGAR_CO_TRY(co_await actor_for(review.object, terms, stop));
  const modules::Reference module =
      HANGAR_CO_TRY(modules::Reference::parse(terms.flight.reference));
  if (!review.is_authenticated && module.is_config_map()) {
    co_return not_evaluated("its module is in a ConfigMap");
  }
  co_return co_await evaluate(review, std::move(terms), actor, std::move(stop));
}

FlightAdmission::DecisionTask FlightAdmission::evaluate(const Review& review, Terms terms,
                                                        const Actor& actor, std::stop_token stop) {
  const bool knows_asker = review.is_authenticated;
  if (knows_asker) HANGAR_CO_TRY(co_await actor.check(platform_.shared.acting, stop));
  FlightModule module = HANGAR_CO_TRY(co_await modules_.prepare(
      wish_for(review.object, terms.flight, rules_.requester_of(review.object)), stop));
  if (!knows_asker && terms.cluster_access) co_return not_evaluated("it has clusterAccess");

  const Release release = release_of(review.object);
  auto binding = std::make_shared<const Binding>(
      Binding{.terms = std::move(terms), .module = std::move(module)});
  Decision decision = HANGAR_CO_TRY(
      co_await evaluate_proposed({.platform = platform_,
                                  .review = review,
                                  .binding = std::move(binding),
                                  .release = release,
                                  .actor = actor,
                                  .consumer = fmt::format("admission/{}", kWebhook),
                                  .look_at = knows_asker ? LookAt::Cluster : LookAt::Output},
                                 std::move(stop)));
  if (!knows_asker) decision.warnings.push_back(fmt::format("not rehearsed: {}", kWhoAsks));
  co_return decision;
}

io::Task<Result<Actor>> FlightAdmission::actor_for(const json::Value& flight, const Terms& terms,
                                                   std::stop_token stop) {
  while (!rules_.are_known()) {
    if (!co_await platform_.shared.loop.sleep(kPoliciesAgain, stop)) {
      co_return fail(ErrorKind::Unavailable, "TenantPolicies are not known yet");
    }
  }
  co_return rules_.check(flight, terms);
}

}  // namespace hangar::airways
