#include "airways/proposed.h"

#include "abi/flight/evaluation.h"
#include "admission/review.h"
#include "airways/flight_run.h"
#include "airways/identity.h"
#include "airways/instance_work.h"
#include "airways/ownership.h"
#include "airways/reasons.h"
#include "airways/recording.h"
#include "airways/rehearsal.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/review_slots.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "wasm/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using admission::Operation;
using admission::Review;

// The API server waits for ten seconds or more; the rest of them is for rehearsing the output.
constexpr std::chrono::seconds kFlightTimeAtAdmissionMax{7};

using Members = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view key, Members members) {
  return std::ranges::find(members, key) != members.end();
}

// Ignores these members. Does not copy: a review may hold objects of megabytes.
bool are_equal(const json::Object* before, const json::Object* after, Members but_for) {
  if (before == nullptr || after == nullptr) return before == after;
  const auto counts = [but_for](const auto& member) { return !is_one_of(member.key(), but_for); };
  if (std::ranges::count_if(*before, counts) != std::ranges::count_if(*after, counts)) return false;
  return std::ranges::all_of(*before, [&](const auto& member) {
    if (!counts(member)) return true;
    const json::Value* const other = after->if_contains(member.key());
    return other != nullptr && *other == member.value();
  });
}

// Whether an update changes only finalizers, owners and fields that the server sets.
bool changes_bookkeeping_only(const json::Value& before, const json::Value& after) {
  return are_equal(before.if_object(), after.if_object(), {"metadata", "status"}) &&
         are_equal(
             json::object_at(before, {"metadata"}), json::object_at(after, {"metadata"}),
             {"finalizers", "ownerReferences", "resourceVersion", "generation", "managedFields"});
}

// A review that is not authenticated may come from anybody who reaches the webhooks. The sender
// must not learn what a flight makes of objects that it has looked up with another account's
// rights.
constexpr std::string_view kWithheld =
    "the reason is withheld, because the flight looked up other objects and the sender of this "
    "review is not authenticated; give hangar the CA of the API server's client certificate "
    "(webhook-client-ca-file)";

Error withheld(const Error& error) {
  return Error(error.kind(), fmt::format("the flight does not accept the instance: {}", kWithheld));
}

void withhold(Rehearsed& rehearsed) {
  const std::size_t count = rehearsed.not_rehearsed.size();
  rehearsed.warnings.clear();
  if (count > 0) rehearsed.not_rehearsed = {fmt::format("resources not rehearsed: {}", count)};
}

// `recording`: null: nothing is recorded.
io::Task<Result<Rehearsed>> look_at_output(const Proposal& proposal, FlightRecording* recording,
                                           abi::flight::Output output, std::stop_token stop) {
  const Platform& platform = proposal.platform;
  ReleaseParts parts = platform.release_parts();
  parts.consumer = consumer_of(proposal.review, proposal.consumer);
  parts.recording = recording;
  if (output.exit_code != 0) co_return fail(ErrorKind::GuestFault, evaluation_failure(output));
  PrintedOutput parsed = HANGAR_CO_TRY(
      co_await parse_printed(platform.shared.workers, platform.runtime.engine().memory(),
                             parts.consumer, std::move(output.stdout_bytes), stop));
  std::ignore = take_identity(parsed.output.stages, proposal.release.instance);
  Result<Rehearsed> rehearsed =
      co_await rehearse(parts, proposal.actor.client(platform.shared.client), proposal.release,
                        parsed.output.stages, {.rehearse_flights = false}, {}, stop);
  if (!rehearsed) co_return std::unexpected(proposal.actor.advise(rehearsed.error()));
  co_return rehearsed;
}

}  // namespace

json::Array reviewed_rules(std::string_view group, std::string_view version,
                           const std::vector<std::string_view>& plurals) {
  json::Array resources;
  for (const std::string_view plural : plurals)
    resources.emplace_back(plural);
  return {json::Object{{"apiGroups", json::Array{group}},
                       {"apiVersions", json::Array{version}},
                       {"resources", std::move(resources)},
                       {"operations", json::Array{"CREATE", "UPDATE"}},
                       {"scope", "*"}}};
}

json::Array reviewed_conditions() {
  return {json::Object{{"name", "unless-being-deleted"},
                       {"expression", "!has(object.metadata.deletionTimestamp)"}}};
}

bool passes_unseen(const Review& review) {
  if (review.operation != Operation::Create && review.operation != Operation::Update) return true;
  if (json::find(review.object, {"metadata", "deletionTimestamp"}) != nullptr) return true;
  // What is left out of both objects looks unchanged.
  return review.operation == Operation::Update && !review.is_object_cut &&
         !review.is_old_object_cut && changes_bookkeeping_only(review.old_object, review.object);
}

// A stranger chooses the uid of a review. If two reviews had the same holder, the first one to end
// would end the watches that the other one waits for.
ResourceRef holder_of_lookups(const Review& review, ResourceRef instance, const void* run) {
  instance.name = fmt::format("{} at admission {}", instance.name, run);
  instance.namespace_ = consumer_of(review, {}).tenant.namespace_name();
  return instance;
}

io::Task<Result<admission::Decision>> evaluate_proposed(Proposal proposal, std::stop_token stop) {
  const Platform& platform = proposal.platform;
  // The lookups of this run evaluate no instance again: they are remembered separately, and only
  // while it runs.
  Tracker tracker;
  const ResourceRef lookups =
      holder_of_lookups(proposal.review, proposal.release.instance, &tracker);
  const std::shared_ptr<void> watches(
      nullptr, [&platform, holder = lookups](void*) { platform.view.forget(holder); });
  tracker.begin(lookups, proposal.binding->terms.mode);
  // A name that the server generates later has no turns.
  std::optional<FlightRecording> recorded;
  if (proposal.review.is_authenticated && !proposal.review.key.name.empty()) {
    recorded.emplace(platform.recorder, proposal.kind, proposal.review.object);
  }
  FlightRecording* const recording = recorded ? &*recorded : nullptr;
  const Instant began = io::Loop::now();
  Result<abi::flight::Output> output =
      co_await run_flight({.platform = platform,
                           .binding = proposal.binding,
                           .release = proposal.release,
                           .lookups_for = lookups,
                           .tracker = tracker,
                           .actor = proposal.actor,
                           .consumer = consumer_of(proposal.review, proposal.consumer),
                           .time_max = kFlightTimeAtAdmissionMax,
                           .recording = recording},
                          proposal.review.object, stop);
  if (recording != nullptr) {
    Reasons reasons;
    reasons.add("review");
    const Account* const account = proposal.actor.account();
    recording->ran(began, account == nullptr ? std::string() : account->identity().user,
                   proposal.binding->module.sha256, output, reasons);
  }
  if (!output) co_return std::unexpected(std::move(output).error());
  // A refused lookup counts, too: it tells that the object exists.
  const bool tells = proposal.review.is_authenticated || !tracker.has_asked(lookups);
  Result<Rehearsed> rehearsed =
      co_await look_at_output(proposal, recording, *std::move(output), stop);
  if (!rehearsed) {
    co_return std::unexpected(tells ? rehearsed.error() : withheld(rehearsed.error()));
  }
  if (!tells) withhold(*rehearsed);
  admission::Decision decision{.warnings = std::move(rehearsed->not_rehearsed)};
  std::ranges::move(rehearsed->warnings, std::back_inserter(decision.warnings));
  co_return decision;
}

}  // namespace hangar::airways
