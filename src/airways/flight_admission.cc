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
#include "airways/review_slots.h"
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

// The pin counts for the source that it was made of.
modules::Wish wish_for(const json::Value& flight, const modules::Source& source,
                       modules::Requester requester) {
  modules::Wish wish{.requester = std::move(requester), .module = source};
  const std::optional<modules::Pin> pin = pin_in(flight, kFlightModule);
  if (pin && pin->definition == modules::definition_of(source)) wish.pinned_sha256 = pin->sha256;
  return wish;
}

}  // namespace

FlightAdmission::FlightAdmission(Parts parts, AsHost as_host)
    : platform_(parts.platform),
      slots_(parts.slots),
      modules_(parts.modules),
      rules_{.policies = parts.policies, .as_host = as_host} {}

void FlightAdmission::start(admission::Webhooks& webhooks) {
  std::string path = fmt::format("{}{}", kValidationsPath, kWebhook);
  webhooks.server().review_at(path,
                              [this](Review proposed, const std::string&, std::stop_token stop) {
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
  HANGAR_CO_TRY(modules::Reference::parse(terms.flight.reference));
  if (!review.is_authenticated) co_return check_fields(review, terms);
  const ReviewSlots::Slot slot = HANGAR_CO_TRY(co_await slots_.take(review, stop));
  const Actor actor = HANGAR_CO_TRY(co_await actor_for(review.object, terms, stop));
  co_return co_await evaluate(review, std::move(terms), actor, std::move(stop));
}

Result<Decision> FlightAdmission::check_fields(const Review& review, const Terms& terms) const {
  HANGAR_TRY(rules_.actor_of(review.object));
  HANGAR_TRY(platform_.modules.check_allowed(terms.flight.reference));
  return admission::allowed_with(fmt::format(
      "only its fields were checked, not its module and the module's output: {}", kWhoAsks));
}

FlightAdmission::DecisionTask FlightAdmission::evaluate(const Review& review, Terms terms,
                                                        const Actor& actor, std::stop_token stop) {
  HANGAR_CO_TRY(co_await actor.check(platform_.shared.acting, stop));
  // A review ends before anything that it looked up could change.
  terms.lookup_watch = LookupWatch::None;
  const modules::Reference reference =
      HANGAR_CO_TRY(modules::Reference::parse(terms.flight.reference));
  Result<FlightModule> prepared = co_await modules_.prepare(
      wish_for(review.object, terms.flight, rules_.requester_of(review.object)), stop);
  if (!prepared) {
    // yoke's words for an invalid signature.
    Error bare = modules::without_reference(prepared.error(), reference);
    const bool is_signature = bare.message().starts_with("failed to verify module: ");
    co_return std::unexpected(is_signature ? std::move(bare) : std::move(prepared).error());
  }
  FlightModule module = *std::move(prepared);

  const kube::Resource of_cluster = cluster_flight_resource();
  const bool is_of_cluster = review.kind.kind == of_cluster.kind;
  const Release release = release_of(review.object);
  auto binding = std::make_shared<const Binding>(
      Binding{.terms = std::move(terms), .module = std::move(module)});
  co_return co_await evaluate_proposed({.platform = platform_,
                                        .review = review,
                                        .kind = is_of_cluster ? of_cluster : flight_resource(),
                                        .binding = std::move(binding),
                                        .release = release,
                                        .actor = actor,
                                        .consumer = fmt::format("admission/{}", kWebhook)},
                                       std::move(stop));
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
