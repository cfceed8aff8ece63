#include "airways/rehearsal.h"

#include "airways/flight.h"
#include "airways/limits.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/recording.h"
#include "airways/release_view.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "base/result.h"
#include "io/all.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/dry_apply.h"
#include "kube/object.h"
#include "recorder/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

// Rehearses one resource of the release: whether it may be taken over, and whether the API server
// accepts it.
struct Rehearsal {
  const ReleaseParts& parts;
  const kube::Client& client;
  const Release& release;
  const CarryOptions& options;
  std::vector<std::string>& warnings;
  std::stop_token stop;

  [[nodiscard]] io::Task<Result<>> operator()(const json::Value* resource, kube::Resource kind) {
    const ResourceRef ref = ref_of(*resource);
    LiveFact fact{.live = parts.view.child(ref)};
    if (!fact.live) {
      fact.live = HANGAR_CO_TRY(co_await parts.view.read_as(client, kind, ref.key(), stop));
    }
    HANGAR_CO_TRY(plan_stage({*resource}, {&fact, 1}, release, options.adoption));
    const kube::ObjectKey key = ref.key();
    Result<std::vector<std::string>> warned = co_await dry_apply(kind, key, *resource);
    if (!warned) {
      co_return std::unexpected(std::move(warned).error().in(canonical_name(*resource)));
    }
    for (std::string& text : *warned)
      warn(std::move(text));
    co_return Result<>();
  }

  [[nodiscard]] io::Task<Result<std::vector<std::string>>> dry_apply(
      const kube::Resource& kind, const kube::ObjectKey& key, const json::Value& resource) const {
    std::optional<FlightRecording::Exchange> exchange;
    if (parts.recording != nullptr) {
      exchange.emplace(*parts.recording, FlightRecording::Request{.verb = recorder::Verb::Patch,
                                                                  .resource = kind,
                                                                  .key = key,
                                                                  .field_manager = kFieldManager,
                                                                  .is_dry_run = true});
    }
    Result<std::vector<std::string>> warned = co_await kube::dry_apply(
        client.observed_by(exchange ? &*exchange : nullptr), kind, resource,
        {.field_manager = std::string(kFieldManager), .force = options.force_conflicts}, stop);
    if (exchange) {
      exchange->end(warned ? Result<json::Value>(json::Value())
                           : std::unexpected(Error(warned.error())));
    }
    co_return warned;
  }

  void warn(std::string text) const {
    const bool is_known = std::ranges::find(warnings, text) != warnings.end();
    if (is_known || warnings.size() >= limits::kRehearsalWarningsMax) return;
    warnings.push_back(std::move(text));
  }
};

std::set<std::string> namespaces_made_by(const Stages& stages) {
  std::set<std::string> names;
  for (const Stage& stage : stages) {
    for (const json::Value& resource : stage) {
      const ResourceRef ref = ref_of(resource);
      if (is_namespace(ref.kind)) names.insert(ref.name);
    }
  }
  return names;
}

}  // namespace

io::Task<Result<>> prepare_printed(ReleaseView& view, const Release& release, Stages& stages,
                                   budget::Consumer whose, std::stop_token stop) {
  Scopes scopes = scopes_defined_in(stages);
  for (const kube::GroupVersionKind& gvk : kinds_to_discover(stages)) {
    const Result<kube::Resource> resource = co_await view.discovery().find(gvk, whose, stop);
    if (!resource) {
      co_return std::unexpected(Error(resource.error()).in(while_discovering(gvk, stages)));
    }
    scopes[gvk.group_kind()] = resource->namespaced;
  }
  co_return prepare_release(stages, release, scopes);
}

io::Task<Result<Rehearsed>> rehearse(ReleaseParts parts, kube::Client client,
                                     const Release& release, Stages& stages, CarryOptions options,
                                     std::set<std::string> to_come, std::stop_token stop) {
  HANGAR_CO_TRY(co_await prepare_printed(parts.view, release, stages, parts.consumer, stop));

  std::set<std::string> made = namespaces_made_by(stages);
  made.merge(std::move(to_come));
  std::map<std::string, bool> exists;  // Those in `made`.
  for (const std::string& name : made) {
    const kube::ObjectPtr live = HANGAR_CO_TRY(
        co_await parts.view.read_as(client, kube::namespace_resource(), {.name = name}, stop));
    exists[name] = live != nullptr;
  }

  Rehearsed rehearsed;
  std::optional<Error> error;
  Rehearsal one{.parts = parts,
                .client = client,
                .release = release,
                .options = options,
                .warnings = rehearsed.warnings,
                .stop = stop};
  for (const Stage& stage : stages) {
    std::vector<std::pair<const json::Value*, kube::Resource>> sends;
    for (const json::Value& resource : stage) {
      const kube::GroupVersionKind gvk = HANGAR_CO_TRY(kube::gvk_of(resource));
      Result<kube::Resource> kind = co_await parts.view.discovery().find(gvk, parts.consumer, stop);
      if (!kind && kind.error().kind() != ErrorKind::NotFound) {
        co_return std::unexpected(std::move(kind).error());
      }
      if (!options.rehearse_flights && is_flight(gvk.group_kind())) {
        rehearsed.not_rehearsed.push_back(fmt::format(
            "{} is not rehearsed: it is reviewed when it is made", canonical_name(resource)));
        continue;
      }
      const auto its_namespace = exists.find(ref_of(resource).namespace_);
      const bool waits_for_namespace = its_namespace != exists.end() && !its_namespace->second;
      if (!kind || waits_for_namespace) {
        rehearsed.not_rehearsed.push_back(
            fmt::format("{} is not rehearsed: the release makes its {} first",
                        canonical_name(resource), kind ? "namespace" : "kind"));
        continue;
      }
      sends.emplace_back(&resource, *std::move(kind));
    }
    for (std::size_t first = 0; first < sends.size(); first += limits::kParallelAppliesMax) {
      const std::size_t end = std::min(first + limits::kParallelAppliesMax, sends.size());
      std::vector<io::Task<Result<>>> tasks;
      for (std::size_t index = first; index < end; ++index)
        tasks.push_back(one(sends[index].first, sends[index].second));
      for (Result<>& done : co_await io::all(parts.loop, std::move(tasks))) {
        if (done) continue;
        // All messages are collected, so that the user can fix all of them at once.
        error = error ? Error(error->kind(), error->message() + "; " + done.error().message())
                      : std::move(done).error();
      }
    }
  }
  if (error) {
    co_return std::unexpected(std::move(*error).in("failed to apply resources: dry run"));
  }
  co_return rehearsed;
}

}  // namespace hangar::airways
