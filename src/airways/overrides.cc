#include "airways/overrides.h"

#include "admission/webhooks.h"
#include "airways/airway.h"
#include "airways/ownership.h"
#include "airways/platform.h"
#include "airways/terms.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/find.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <expected>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

constexpr std::string_view kApprovalLabel = "hangar.dev/override";

// The uid of the webhook configuration for the instances; empty if there is none.
io::Task<Result<std::string>> configuration_uid(const Platform& platform, std::string airway_name,
                                                std::stop_token stop) {
  const kube::ObjectPtr configuration =
      HANGAR_CO_TRY(co_await kube::find(platform.shared.client, admission::configuration_resource(),
                                        {.name = std::move(airway_name)}, std::move(stop)));
  if (!configuration || configuration->is_being_deleted()) co_return std::string();
  co_return std::string(configuration->uid());
}

json::Value approval(std::string_view name, const Platform& platform,
                     const OverrideChange& change) {
  const std::string_view uid = json::string_at(change.instance, {"metadata", "uid"});
  return json::Object{
      {"apiVersion", "apps/v1"},
      {"kind", "ControllerRevision"},
      {"metadata",
       json::Object{{"name", name},
                    {"namespace", platform.namespace_},
                    {"labels", json::Object{{kApprovalLabel, uid}}},
                    {"ownerReferences", json::Array{json::Object{{"apiVersion", kAirwayApiVersion},
                                                                 {"kind", kAirwayKind},
                                                                 {"name", change.airway.name},
                                                                 {"uid", change.airway.uid}}}}}},
      {"revision", 1},
      // Only informative.
      {"data",
       json::Object{{"airway", change.airway.name},
                    {"namespace", json::string_at(change.instance, {"metadata", "namespace"})},
                    {"name", json::string_at(change.instance, {"metadata", "name"})}}}};
}

}  // namespace

Overrides overrides_of(const json::Value& instance) {
  return {.flight = std::string(kube::annotation_of(instance, kOverrideFlight)),
          .mode = std::string(kube::annotation_of(instance, kOverrideMode))};
}

Result<> check_mode(const Overrides& overrides) {
  if (overrides.mode.empty() || mode_of(overrides.mode)) return {};
  return invalid(
      fmt::format("annotation {}: \"{}\" is not one of standard, static, dynamic, subscription",
                  kOverrideMode, overrides.mode));
}

Terms overridden(Terms terms, const Overrides& overrides) {
  if (!overrides.flight.empty()) {
    terms.flight.reference = overrides.flight;
    terms.flight.sha256.clear();
  }
  terms.mode = mode_of(overrides.mode).value_or(terms.mode);
  return terms;
}

std::string not_approved(const Airway& airway) {
  return fmt::format(
      "the annotations {} and {} are ignored: no admission webhook has seen them set by a user "
      "who may update the Airway {}. Let such a user remove them and set them again",
      kOverrideFlight, kOverrideMode, airway.name);
}

std::string approval_name(std::string_view configuration_uid, const json::Value& instance,
                          const Overrides& overrides) {
  // As JSON, so that the texts cannot run into each other. With the name by which record() looks
  // for the stored instance: a forged review may give the uid of one instance to another name.
  return "override-" +
         sha256_hex(json::dump(json::Array{
             configuration_uid, json::string_at(instance, {"metadata", "namespace"}),
             json::string_at(instance, {"metadata", "name"}),
             json::string_at(instance, {"metadata", "uid"}), overrides.flight, overrides.mode}));
}

io::Task<Result<std::optional<std::string>>> find_approval(const Platform& platform,
                                                           std::string airway_name,
                                                           const json::Value& instance,
                                                           Overrides overrides,
                                                           std::stop_token stop) {
  const std::string configuration =
      HANGAR_CO_TRY(co_await configuration_uid(platform, std::move(airway_name), stop));
  const bool has_uid = !json::string_at(instance, {"metadata", "uid"}).empty();
  if (configuration.empty() || !has_uid) co_return std::nullopt;
  std::string name = approval_name(configuration, instance, overrides);
  const Result<json::Value> found = co_await platform.shared.client.get(
      kube::controller_revision_resource(), {.namespace_ = platform.namespace_, .name = name},
      std::move(stop));
  if (found) co_return name;
  if (found.error().kind() == ErrorKind::NotFound) co_return std::nullopt;
  co_return std::unexpected(Error(found.error()).in("look for the approval of overrides"));
}

io::Task<Result<>> remove_approval(const Platform& platform, std::string name,
                                   std::stop_token stop) {
  const Result<json::Value> removed = co_await platform.shared.client.remove(
      kube::controller_revision_resource(),
      {.namespace_ = platform.namespace_, .name = std::move(name)}, {}, std::move(stop));
  if (removed || removed.error().kind() == ErrorKind::NotFound) co_return Result<>();
  co_return std::unexpected(Error(removed.error()).in("remove the approval of overrides"));
}

io::Task<Result<>> record(const Platform& platform, OverrideChange change, std::stop_token stop) {
  if (!change.overrides.any()) co_return Result<>();
  const std::string uid(json::string_at(change.instance, {"metadata", "uid"}));
  const std::string configuration =
      HANGAR_CO_TRY(co_await configuration_uid(platform, change.airway.name, stop));
  if (uid.empty() || configuration.empty()) {
    co_return fail(ErrorKind::Unavailable,
                   "the webhook for override annotations is not registered yet; try again");
  }
  const kube::ObjectPtr live = HANGAR_CO_TRY(co_await kube::find(
      platform.shared.client, change.airway.instances,
      {.namespace_ = std::string(json::string_at(change.instance, {"metadata", "namespace"})),
       .name = std::string(json::string_at(change.instance, {"metadata", "name"}))},
      stop));
  if (live && live->uid() == uid && overrides_of(live->to_value()) == change.overrides) {
    co_return fail(ErrorKind::Conflict,
                   "the instance has these override annotations already; remove them and set them "
                   "again");
  }
  const Result<json::Value> created = co_await platform.shared.client.create(
      kube::controller_revision_resource(),
      approval(approval_name(configuration, change.instance, change.overrides), platform, change),
      {.field_manager = std::string(kControllerFieldManager)}, stop);
  if (created || kube::reason_of(created.error()) == "AlreadyExists") co_return Result<>();
  co_return std::unexpected(Error(created.error()).in("approve override annotations"));
}

}  // namespace hangar::airways
