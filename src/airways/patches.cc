#include "airways/patches.h"

#include "airways/airway.h"
#include "airways/ownership.h"
#include "json/value.h"
#include "kube/object.h"

#include <optional>
#include <utility>

namespace hangar::airways {

namespace {

json::Array array_or_empty(const json::Value& object, json::Path path) {
  const json::Array* const present = json::array_at(object, path);
  return present == nullptr ? json::Array{} : *present;
}

bool refers_to_an_airway(const json::Value& owner) {
  return json::string_at(owner, {"kind"}) == kAirwayKind &&
         json::string_at(owner, {"apiVersion"}) == kAirwayApiVersion;
}

}  // namespace

std::optional<json::Value> claim_patch(const json::Value& instance, const Airway* airway) {
  const bool has_finalizer = kube::has_finalizer(instance, kInstanceFinalizer);
  const bool has_owner = airway == nullptr || is_owned_by(instance, airway->uid);
  if (has_finalizer && has_owner) return std::nullopt;

  json::Object metadata{
      {"resourceVersion", json::string_at(instance, {"metadata", "resourceVersion"})}};
  if (!has_finalizer) {
    json::Array finalizers = array_or_empty(instance, {"metadata", "finalizers"});
    finalizers.emplace_back(kInstanceFinalizer);
    metadata["finalizers"] = std::move(finalizers);
  }
  if (!has_owner) {
    // With a reference to an Airway that is gone, the garbage collector would delete the instance.
    json::Array owners;
    for (json::Value& owner : array_or_empty(instance, {"metadata", "ownerReferences"})) {
      if (!refers_to_an_airway(owner)) owners.push_back(std::move(owner));
    }
    owners.push_back(json::Object{{"apiVersion", kAirwayApiVersion},
                                  {"kind", kAirwayKind},
                                  {"name", airway->name},
                                  {"uid", airway->uid},
                                  {"blockOwnerDeletion", true}});
    metadata["ownerReferences"] = std::move(owners);
  }
  return json::Value(json::Object{{"metadata", std::move(metadata)}});
}

}  // namespace hangar::airways
