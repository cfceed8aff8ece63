#include "airways/admission.h"

#include "abi/flight/evaluation.h"
#include "admission/conversion_review.h"
#include "admission/review.h"
#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/binding.h"
#include "airways/child_protection.h"
#include "airways/conditions.h"
#include "airways/conversion.h"
#include "airways/conversion_memory.h"
#include "airways/conversion_recording.h"
#include "airways/crd_template.h"
#include "airways/flight_modules.h"
#include "airways/flight_status.h"
#include "airways/overrides.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/proposed.h"
#include "airways/review_modules.h"
#include "airways/review_slots.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "gateway/read_scope.h"
#include "io/all.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/find.h"
#include "kube/object.h"
#include "modules/pin.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/engine.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using admission::Decision;
using admission::Operation;
using admission::Review;

constexpr std::string_view kAirwaysConfiguration = "hangar-airways";
// The name of yoke's webhook, which refusals show.
constexpr std::string_view kAirwaysWebhook = "airways.yoke.cd";
constexpr std::string_view kAirwaysPath = "/validations/airways.yoke.cd";
// Long: a module may have to be fetched and compiled.
constexpr std::chrono::seconds kAirwayTimeout{30};
constexpr std::chrono::seconds kInstanceTimeout{10};

// The API server waits for half a minute; the converter may not use all of that.
constexpr std::chrono::seconds kConversionTimeMax{20};
// Each part has an instance of the converter, with its memory.
constexpr std::size_t kPartsMax = 4;
// Texts of conversions that the loop reads and writes itself, within a fraction of a millisecond:
// to wake a worker costs as much.
constexpr std::size_t kReadAtOnceBytesMax = 64 * limits::kKiB;

constexpr std::chrono::seconds kSelfAgain{10};

// For approvals by unauthenticated senders: each leaves an object in the host's namespace.
constexpr TokenBucket::Options kUnprovenApprovals{.per_second = 1.0 / 60, .burst = 32};

// Counts its objects in `count`, which outlives it.
class Counted {
 public:
  explicit Counted(std::size_t& count) : count_(count) { ++count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --count_; }

 private:
  std::size_t& count_;
};

// Calls `work`, which reads or writes `size` bytes: on a worker if they are many. `workers` outlive
// the task.
template <class F>
io::Task<std::invoke_result_t<F&>> read_on(io::Workers& workers, budget::Consumer whose,
                                           std::size_t size, F work) {
  if (size <= kReadAtOnceBytesMax) co_return work();
  co_return co_await workers.run(std::move(whose), std::move(work));
}

bool is_being_deleted(const json::Value& object) {
  return json::find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

}  // namespace

std::optional<admission::Registration> registration_of(const json::Value& value) {
  if (is_being_deleted(value)) return std::nullopt;
  const Result<Airway> airway = parse_airway(value);
  if (!airway) return std::nullopt;
  const kube::Resource& kind = airway->instances;
  return admission::Registration{.name = airway->name,
                                 .webhook = airway->name,
                                 .path = fmt::format("{}{}", kValidationsPath, airway->name),
                                 .rules = reviewed_rules(kind.group, kind.version, {kind.plural}),
                                 .match_conditions = reviewed_conditions(),
                                 .timeout = kInstanceTimeout,
                                 .owner = json::Object{{"apiVersion", kAirwayApiVersion},
                                                       {"kind", kAirwayKind},
                                                       {"name", airway->name},
                                                       {"uid", airway->uid}}};
}

Admission::Admission(const Platform& platform, const reconcile::Platform& shared,
                     admission::Webhooks& webhooks, Options options)
    : authorizer_(shared.client),
      platform_{.shared = shared,
                .view = platform.view,
                .tracker = platform.tracker,
                .modules = platform.modules,
                .store = platform.store,
                .runtime = platform.runtime,
                .custom_readiness = platform.custom_readiness,
                .lua = platform.lua,
                .authorizer = authorizer_,
                .acting_by_default = platform.acting_by_default,
                .evaluations = platform.evaluations,
                .evaluation_cpu_seconds = platform.evaluation_cpu_seconds,
                .host_version = platform.host_version,
                .namespace_ = platform.namespace_,
                .output = platform.output,
                .recorder = platform.recorder,
                .pod = platform.pod,
                .means = platform.means,
                .webhook_address = platform.webhook_address,
                .check_protection = platform.check_protection},
      webhooks_(webhooks),
      has_airways_(options.has_airways),
      conversions_(platform.recorder),
      failed_conversions_(shared.metrics.counter(
          "hangar_conversions_failed_total",
          "Conversions of objects between versions of their kind that failed.")),
      slots_(shared.loop),
      modules_(shared.loop, platform.modules),
      unproven_approvals_(kUnprovenApprovals) {
  if (options.has_flights) {
    flights_.emplace(FlightAdmission::Parts{.platform = platform_,
                                            .slots = slots_,
                                            .modules = modules_,
                                            .policies = options.policies},
                     options.cluster_flights);
  }
}

Admission::~Admission() = default;

void Admission::start() {
  if (!webhooks_.is_on()) return;
  if (flights_) flights_->start(webhooks_);
  if (has_airways_) {
    start_airways();
  } else {
    webhooks_.keep_no_others();
  }
}

void Admission::start_airways() {
  webhooks_.server().review_at(std::string(kAirwaysPath),
                               [this](Review review, const std::string&, std::stop_token stop) {
                                 return review_airway(std::move(review), std::move(stop));
                               });
  webhooks_.server().review_at(std::string(kValidationsPath),
                               [this](Review review, std::string airway, std::stop_token stop) {
                                 return review_instance(std::move(review), std::move(airway),
                                                        std::move(stop));
                               });
  webhooks_.server().convert_at(std::string(kConversionPath),
                                [this](std::string body, std::string airway, std::stop_token stop) {
                                  return convert(std::move(body), std::move(airway),
                                                 std::move(stop));
                                });
  const kube::Resource airways = airway_resource();
  webhooks_.want({.name = std::string(kAirwaysConfiguration),
                  .webhook = std::string(kAirwaysWebhook),
                  .path = std::string(kAirwaysPath),
                  .rules = reviewed_rules(airways.group, airways.version, {airways.plural}),
                  .match_conditions = reviewed_conditions(),
                  .timeout = kAirwayTimeout});
  airways_ = platform_.shared.cache.subscribe(
      {.resource = airways}, {.on_delta = [this](const kube::Delta& delta) { on_airway(delta); },
                              .on_synced = [this] { webhooks_.keep_no_others(); }});
}

void Admission::lead() {
  if (!webhooks_.is_on()) return;
  protected_.emplace(platform_.shared.loop);
  platform_.shared.loop.spawn(protect_children());
}

Result<> Admission::check_protection(std::string_view policy) const {
  return webhooks_.check_policy(std::string(policy));
}

io::Task<void> Admission::stop() {
  airways_.reset();
  stop_.request_stop();
  if (protected_) co_await protected_->wait();
  co_await modules_.stop();
}

io::Task<void> Admission::protect_children() {
  constexpr std::string_view kPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  while (!stop_.stop_requested()) {
    const Result<json::Value> self = co_await platform_.shared.client.post_path(
        std::string(kPath),
        json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}},
        stop_.get_token());
    if (self) {
      const std::string_view host = json::string_at(*self, {"status", "userInfo", "username"});
      const auto want = [this](ChildProtection protection) {
        webhooks_.want_policy(std::move(protection.policy), std::move(protection.binding));
      };
      if (has_airways_) want(protection_of_airways(host, platform_.acting_by_default));
      if (flights_) {
        want(protection_of_flights());
        want(protection_of_cluster_flights(host));
      }
      webhooks_.keep_no_other_policies();
      break;
    }
    platform_.shared.log.warning("cannot determine this host's user name at the API server",
                                 {{"error", self.error().message()}});
    if (!co_await platform_.shared.loop.sleep(kSelfAgain, stop_.get_token())) break;
  }
  protected_->set(true);
}

void Admission::on_airway(const kube::Delta& delta) {
  std::optional<admission::Registration> registration;
  if (delta.type != kube::Delta::Type::Deleted) {
    const json::Value airway = delta.object->to_value();
    registration = registration_of(airway);
    // An Airway that became invalid is served as before, and so are its instances.
    if (!registration && !delta.object->is_being_deleted()) return;
  }
  if (registration) {
    webhooks_.want(*std::move(registration));
  } else {
    webhooks_.drop(delta.object->key().name);
  }
}

Admission::DecisionTask Admission::review_airway(Review review, std::stop_token stop) {
  if (passes_unseen(review)) co_return Decision{};
  const bool is_update = review.operation == Operation::Update;
  const ReviewSlots::Slot slot = HANGAR_CO_TRY(co_await slots_.take(review, stop));
  HANGAR_CO_TRY(acting_of(review.object, platform_.acting_by_default));
  const Airway airway = HANGAR_CO_TRY(parse_airway(review.object));

  const Result<Airway> before =
      is_update ? parse_airway(review.old_object) : fail(ErrorKind::NotFound, "there was none");
  // A module that is pinned, or whose source cannot be reached now, does not prevent other changes.
  const bool has_other_flight = !before || before->terms.flight != airway.terms.flight;
  const bool has_other_converter =
      !airway.converter_url.empty() && (!before || converter_of(*before) != converter_of(airway));
  std::vector<std::string> warnings = unsupported_of(airway, platform_.means);
  if (!review.is_authenticated) {
    // The sender is unknown: the host would fetch any module for it, with the host's credentials.
    HANGAR_CO_TRY(platform_.modules.check_allowed(airway.terms.flight.reference));
    if (has_other_converter) {
      HANGAR_CO_TRY(platform_.modules.check_allowed(airway.converter_url));
    }
    HANGAR_CO_TRY(co_await rehearse_crd(airway, stop));
    if (has_other_flight || has_other_converter) {
      warnings.push_back(fmt::format("modules not checked: {}", kWhoAsks));
    }
    co_return Decision{.warnings = std::move(warnings)};
  }
  if (has_other_flight) {
    std::ignore = HANGAR_CO_TRY(co_await prepare_as("flight", airway.terms.flight, stop));
  }
  if (has_other_converter) {
    FlightModule converter =
        HANGAR_CO_TRY(co_await prepare_as("converter", converter_of(airway), stop));
    const Result<> fits = co_await platform_.modules.check_converter(std::move(converter), stop);
    if (!fits) co_return std::unexpected(Error(fits.error()).in("spec.wasmUrls.converter"));
  }
  HANGAR_CO_TRY(co_await rehearse_crd(airway, stop));
  co_return Decision{.warnings = std::move(warnings)};
}

io::Task<Result<FlightModule>> Admission::prepare(modules::Source source, std::stop_token stop) {
  return modules_.prepare(
      {.requester = modules::Requester::cluster_wide(), .module = std::move(source)},
      std::move(stop));
}

io::Task<Result<FlightModule>> Admission::prepare_as(std::string_view role, modules::Source source,
                                                     std::stop_token stop) {
  const modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(source.reference));
  Result<FlightModule> prepared = co_await prepare(std::move(source), std::move(stop));
  if (prepared || prepared.error().kind() == ErrorKind::Unavailable) co_return prepared;
  co_return std::unexpected(
      modules::without_reference(prepared.error(), reference)
          .in(fmt::format("failed to validate {} url \"{}\"", role, reference.display())));
}

io::Task<Result<>> Admission::rehearse_crd(const Airway& airway, std::stop_token stop) {
  constexpr std::string_view kDoing = "invalid crd template";
  std::optional<admission::Address> converter;
  if (has_conversion(airway)) converter = webhooks_.address_of(conversion_path(airway));
  Result<json::Value> desired = crd_of(airway, std::move(converter));
  if (!desired) co_return std::unexpected(std::move(desired).error().in(kDoing));
  const kube::Client& client = platform_.shared.client;
  const Result<json::Value> live = co_await client.get(crd_resource(), {.name = airway.name}, stop);
  if (!live && live.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(live.error());
  }
  bool is_ours = false;
  if (live) {
    // It is deleted with an earlier Airway of this name; the reconcile waits for that.
    if (is_being_deleted(*live)) co_return Result<>();
    HANGAR_CO_TRY(may_take_over_crd(*live, airway));
    is_ours = is_owned_by(*live, airway.uid);
  }
  const Result<json::Value> answer = co_await client.apply(
      crd_resource(), *std::move(desired),
      {.field_manager = std::string(kFieldManager), .force = is_ours, .dry_run = true}, stop);
  if (!answer) co_return std::unexpected(Error(answer.error()).in(kDoing));
  co_return Result<>();
}

Admission::DecisionTask Admission::review_instance(Review review, std::string airway_name,
                                                   std::stop_token stop) {
  if (passes_unseen(review)) co_return Decision{};
  const bool is_update = review.operation == Operation::Update;
  const ReviewSlots::Slot slot = HANGAR_CO_TRY(co_await slots_.take(review, stop));
  const kube::ObjectPtr object = HANGAR_CO_TRY(co_await find_airway(airway_name, stop));
  if (!object || object->is_being_deleted()) {
    co_return admission::allowed_with(
        fmt::format("not validated: Airway {} no longer exists", airway_name));
  }
  const json::Value value = object->to_value();
  auto binding = std::make_shared<Binding>();
  binding->airway = std::make_shared<const Airway>(HANGAR_CO_TRY(parse_airway(value)));
  const Airway& own = *binding->airway;
  binding->terms = own.terms;
  const OverrideChange change{
      .airway = own, .instance = review.object, .overrides = overrides_of(review.object)};
  const bool sets_overrides =
      change.overrides != (is_update ? overrides_of(review.old_object) : Overrides{});
  if (sets_overrides) HANGAR_CO_TRY(co_await check_overrides(review, change, stop));
  const bool leaves_trace = sets_overrides && !review.is_dry_run;
  if (own.terms.skip_admission_webhook) {
    if (leaves_trace) HANGAR_CO_TRY(co_await approve(review, change, stop));
    co_return admission::allowed_with(
        fmt::format("not validated: the Airway {} has skipAdmissionWebhook", airway_name));
  }
  // The sender may have invented both the module and a user who may name it: the host neither
  // fetches nor runs that module.
  if (sets_overrides && !change.overrides.flight.empty() && !review.is_authenticated) {
    if (leaves_trace) HANGAR_CO_TRY(co_await approve(review, change, stop));
    co_return admission::allowed_with(
        fmt::format("not evaluated with the module of {}: {}", kOverrideFlight, kWhoAsks));
  }
  // Overrides that this review sets count here. Overrides from before need an approval.
  bool is_overridden = sets_overrides && change.overrides.any();
  if (!sets_overrides && change.overrides.any()) {
    const std::optional<std::string> approval = HANGAR_CO_TRY(
        co_await find_approval(platform_, airway_name, review.object, change.overrides, stop));
    is_overridden = approval.has_value();
  }
  if (is_overridden) binding->terms = overridden(own.terms, change.overrides);
  const Terms& terms = binding->terms;
  Release release = release_of(review.object);
  if (is_overridden) release.override_mode = change.overrides.mode;
  const Acting acting = HANGAR_CO_TRY(acting_of(value, platform_.acting_by_default));
  const Actor actor = HANGAR_CO_TRY(actor_for(acting, release.instance.namespace_));
  HANGAR_CO_TRY(co_await actor.check(platform_.shared.acting, stop));
  if (is_overridden && !change.overrides.flight.empty()) {
    binding->module = HANGAR_CO_TRY(co_await prepare(terms.flight, stop));
  } else {
    binding->module = HANGAR_CO_TRY(co_await module_for(kFlight, terms.flight, value, stop));
  }

  Decision decision =
      HANGAR_CO_TRY(co_await evaluate_proposed({.platform = platform_,
                                                .review = review,
                                                .kind = own.instances,
                                                .binding = binding,
                                                .release = release,
                                                .actor = actor,
                                                .consumer = "admission/" + airway_name},
                                               stop));
  if (!is_overridden && change.overrides.any()) {
    decision.warnings.push_back(not_approved(own));
  }
  if (leaves_trace) HANGAR_CO_TRY(co_await approve(review, change, stop));
  co_return decision;
}

io::Task<Result<>> Admission::approve(const Review& review, const OverrideChange& change,
                                      std::stop_token stop) {
  if (!review.is_authenticated && change.overrides.any() &&
      !unproven_approvals_.try_take(io::Loop::now())) {
    co_return fail(ErrorKind::Unavailable,
                   fmt::format("too many overrides were set; try again in a minute: {}", kWhoAsks));
  }
  co_return co_await record(platform_, change, std::move(stop));
}

io::Task<Result<>> Admission::check_overrides(const Review& review, const OverrideChange& change,
                                              std::stop_token stop) {
  const kube::Resource airways = airway_resource();
  // An identity without a user means the host.
  if (review.identity.user.empty()) co_return fail(ErrorKind::Denied, std::string(kMayNotOverride));
  gateway::Attributes update{.verb = "update",
                             .group = airways.group,
                             .version = airways.version,
                             .resource = airways.plural,
                             .namespace_ = {},
                             .name = change.airway.name,
                             .label_selector = {},
                             .field_selector = {}};
  const bool may = HANGAR_CO_TRY(
      co_await authorizer_.allows(review.identity, std::move(update), std::move(stop)));
  if (!may) co_return fail(ErrorKind::Denied, std::string(kMayNotOverride));
  HANGAR_CO_TRY(check_mode(change.overrides));
  if (change.overrides.flight.empty()) co_return Result<>();
  co_return platform_.modules.check_allowed(change.overrides.flight);
}

io::Task<Result<kube::ObjectPtr>> Admission::find_airway(std::string name, std::stop_token stop) {
  if (airways_ && airways_->is_synced()) {
    if (kube::ObjectPtr known = airways_->get({.name = name})) co_return known;
  }
  // It was created a moment ago, or the list is not complete yet.
  co_return co_await kube::find(platform_.shared.client, airway_resource(),
                                {.name = std::move(name)}, std::move(stop));
}

// The module that instances are reconciled with: the one in the status. Its source may serve
// another one by now.
io::Task<Result<FlightModule>> Admission::module_for(ModuleRole role, modules::Source source,
                                                     const json::Value& airway,
                                                     std::stop_token stop) {
  HANGAR_CO_TRY(platform_.modules.check_allowed(source.reference));
  const std::optional<modules::Pin> pin = pin_in(airway, role);
  modules::Wish wish{.requester = modules::Requester::cluster_wide(), .module = source};
  std::string sha256;
  if (pin && pin->definition == modules::definition_of(source)) {
    sha256 = wish.pinned_sha256 = pin->sha256;
  } else if (meets_condition(airway, kReady)) {
    // No pin for this source: the status of a Ready Airway names the module that its instances run.
    sha256 = json::string_at(airway, {"status", role.name, "sha256"});
  }
  if (const modules::Product made = platform_.modules.find(sha256)) {
    co_return FlightModules::module_of({.product = made, .sha256 = sha256, .resolved = {}});
  }
  const modules::Supplied supplied =
      HANGAR_CO_TRY(co_await platform_.modules.supply().get(std::move(wish), std::move(stop)));
  co_return FlightModules::module_of(supplied);
}

io::Task<Result<std::string>> Admission::convert(std::string body, std::string airway_name,
                                                 std::stop_token stop) {
  // A list of instances may be large: a worker reads it, within memory that was reserved for that.
  const ReviewSlots::Slot slot = HANGAR_CO_TRY(co_await slots_.take_conversion(airway_name, stop));
  const Counted counted(conversion_count_);
  io::Workers& workers = platform_.shared.workers;
  const budget::Consumer whose = conversion_consumer(airway_name);
  budget::ReservationQueue* const memory = platform_.runtime.engine().memory();
  const auto text = std::make_shared<std::string>(std::move(body));
  const std::size_t size = text->size();
  const std::size_t parts_max = conversion_parts_max();
  auto held = HANGAR_CO_TRY(co_await reserve_for_conversion(
      memory, airway_name, size + admission::conversion_review_bytes_max(size), stop));
  auto parsed = HANGAR_CO_TRY(co_await read_on(workers, whose, size, [text, parts_max] {
    return admission::parse_conversion_review(*text, parts_max);
  }));
  std::vector<std::string> bodies;
  bodies.reserve(parsed.parts.size());
  for (admission::ConversionReview::Part& part : parsed.parts)
    bodies.push_back(std::move(part.body));
  *text = std::string();
  held.reset();
  const auto review = std::make_shared<const admission::ConversionReview>(std::move(parsed));
  Result<std::string> answer = co_await answer_conversion(review, std::move(bodies),
                                                          std::move(airway_name), std::move(stop));
  if (answer) co_return *std::move(answer);
  failed_conversions_.add();
  co_return admission::conversion_failure(review->uid, answer.error().message());
}

// Parts take more processor time and memory than the whole, so they are of use only while nobody
// else waits for either.
std::size_t Admission::conversion_parts_max() const {
  const io::Workers& workers = platform_.shared.workers;
  const budget::ReservationQueue* const memory = platform_.runtime.engine().memory();
  if (memory != nullptr && !memory->waits().empty()) return 1;
  if (workers.has_waiting_beside(conversion_consumer(""))) return 1;
  return std::clamp<std::size_t>(workers.thread_count() / conversion_count_, 1, kPartsMax);
}

io::Task<Result<std::string>> Admission::answer_conversion(
    std::shared_ptr<const admission::ConversionReview> review, std::vector<std::string> bodies,
    std::string airway_name, std::stop_token stop) {
  auto printed =
      HANGAR_CO_TRY(co_await run_converter(*review, std::move(bodies), airway_name, stop));
  std::size_t size = 0;
  for (const std::string& text : printed)
    size += text.size();
  for (const std::string& status : review->statuses)
    size += status.size();
  const auto output = std::make_shared<const std::vector<std::string>>(std::move(printed));
  io::Workers& workers = platform_.shared.workers;
  const budget::Consumer whose = conversion_consumer(airway_name);
  const std::uint64_t bytes = converted_bytes_max(*review, *output);
  const auto held = HANGAR_CO_TRY(co_await reserve_for_conversion(
      platform_.runtime.engine().memory(), std::move(airway_name), bytes, std::move(stop)));
  co_return co_await read_on(workers, whose, size,
                             [review, output] { return converted(*review, *output); });
}

io::Task<Result<std::vector<std::string>>> Admission::run_converter(
    const admission::ConversionReview& review, std::vector<std::string> bodies,
    std::string airway_name, std::stop_token stop) {
  const kube::ObjectPtr object = HANGAR_CO_TRY(co_await find_airway(airway_name, stop));
  if (!object) {
    co_return fail(ErrorKind::NotFound, fmt::format("there is no Airway {}", airway_name));
  }
  const json::Value value = object->to_value();
  const Airway airway = HANGAR_CO_TRY(parse_airway(value));
  if (airway.converter_url.empty()) {
    co_return fail(ErrorKind::NotFound,
                   fmt::format("Airway {} no longer has a converter", airway_name));
  }
  const FlightModule module =
      HANGAR_CO_TRY(co_await module_for(kConverter, converter_of(airway), value, stop));
  const std::shared_ptr<const wasm::Module> code = HANGAR_CO_TRY(
      co_await platform_.modules.load(module, conversion_consumer(airway_name), stop));
  std::vector<io::Task<Result<abi::flight::Output>>> runs;
  runs.reserve(bodies.size());
  for (std::size_t part = 0; part < bodies.size(); ++part) {
    abi::flight::Conversion conversion{
        .stdin_bytes = std::move(bodies[part]),
        .timeout = std::min<Duration>(airway.terms.timeout.value_or(kConversionTimeMax),
                                      kConversionTimeMax),
        .consumer = conversion_consumer(airway_name)};
    if (airway.terms.memory_mib_max > 0) {
      conversion.memory_bytes_max = airway.terms.memory_mib_max * limits::kMiB;
    }
    const std::size_t object_count = review.parts[part].object_count;
    runs.push_back(run_recorded(
        value, conversion_event(airway.instances.kind, review.desired_api_version, object_count),
        module.sha256, abi::flight::convert(platform_.runtime, code, std::move(conversion), stop)));
  }
  std::vector<Result<abi::flight::Output>> outputs =
      co_await io::all(platform_.shared.loop, std::move(runs));
  std::vector<std::string> printed;
  printed.reserve(outputs.size());
  for (Result<abi::flight::Output>& output : outputs) {
    if (!output) co_return std::unexpected(std::move(output).error());
    if (output->exit_code != 0) {
      co_return fail(ErrorKind::GuestFault, fmt::format("the converter exited with code {}: {}",
                                                        output->exit_code, output->stderr_bytes));
    }
    printed.push_back(std::move(output->stdout_bytes));
  }
  co_return printed;
}

io::Task<Result<abi::flight::Output>> Admission::run_recorded(
    const json::Value& airway, std::string event, const std::string& module_sha256,
    io::Task<Result<abi::flight::Output>> run) {
  const Instant began = io::Loop::now();
  Result<abi::flight::Output> output = co_await std::move(run);
  conversions_.ran(airway, event, began, module_sha256, output);
  co_return output;
}

}  // namespace hangar::airways
