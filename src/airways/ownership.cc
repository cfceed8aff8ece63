#include "airways/ownership.h"

#include "airways/flight.h"
#include "airways/output.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

// Labels that yoke used before annotations.
constexpr std::string_view kDeprecatedReleaseLabel = "app.kubernetes.io/yoke-release";
constexpr std::string_view kDeprecatedNamespaceLabel = "app.kubernetes.io/yoke-release-namespace";

// Fields that a flight may have read from a live object and printed again. The server refuses some
// in an apply (uid, managedFields), others would become a precondition (resourceVersion).
constexpr std::array<std::string_view, 7> kServerFields = {
    "resourceVersion", "creationTimestamp", "uid",     "managedFields",
    "generation",      "deletionTimestamp", "selfLink"};

void for_each_resource(Stages& stages, auto&& visit) {
  for (Stage& stage : stages) {
    for (json::Value& resource : stage)
      visit(resource);
  }
}
void for_each_resource(const Stages& stages, auto&& visit) {
  for (const Stage& stage : stages) {
    for (const json::Value& resource : stage)
      visit(resource);
  }
}

std::string_view first_of(std::string_view preferred, std::string_view otherwise) {
  return preferred.empty() ? otherwise : preferred;
}

void add_owner_reference(json::Value& resource, const Release& release) {
  json::Value* member = json::find(resource, {"metadata", "ownerReferences"});
  if (member == nullptr || !member->is_array()) {
    json::set_at(resource, {"metadata", "ownerReferences"}, json::Array());
    member = json::find(resource, {"metadata", "ownerReferences"});
  }
  json::Array& references = member->get_array();
  const bool is_there = std::ranges::any_of(references, [&](const json::Value& reference) {
    return json::string_at(reference, {"uid"}) == release.instance_uid;
  });
  if (is_there) return;
  references.push_back(json::Object{{"apiVersion", release.instance_api_version},
                                    {"kind", release.instance.kind.kind},
                                    {"name", release.instance.name},
                                    {"uid", release.instance_uid}});
}

void drop_server_fields(json::Value& resource) {
  json::Value* metadata = json::find(resource, {"metadata"});
  if (metadata == nullptr || !metadata->is_object()) return;
  for (const std::string_view field : kServerFields)
    metadata->get_object().erase(field);
}

}  // namespace

Release release_of(const json::Value& instance) {
  Release release;
  release.instance = ref_of(instance);
  release.instance_api_version = json::string_at(instance, {"apiVersion"});
  release.instance_uid = json::string_at(instance, {"metadata", "uid"});
  release.cross_namespace = release.instance.namespace_.empty();
  release.namespace_ = release.cross_namespace ? "default" : release.instance.namespace_;

  if (is_flight(release.instance.kind)) {
    release.name = release.instance.name;
    release.history_name = release.instance.to_string();
    return release;
  }
  release.name = release.instance.kind.group + "." + release.instance.kind.kind;
  if (!release.instance.namespace_.empty()) release.name += "." + release.instance.namespace_;
  release.name += "." + release.instance.name;
  release.history_name = release.name;
  return release;
}

Release recorded_release(std::string history_name, std::string namespace_, const Stages& stages) {
  Release release{.name = history_name,
                  .namespace_ = std::move(namespace_),
                  .history_name = std::move(history_name)};
  release.managed_by = kManagedByCommand;
  if (const Result<ResourceRef> flight = parse_ref(release.history_name);
      flight && is_flight(flight->kind)) {
    release.name = flight->name;
  }
  for (const Stage& stage : stages) {
    for (const json::Value& resource : stage) {
      if (owner_of(resource) != release.owner()) continue;
      release.managed_by = kube::label_of(resource, kManagedByLabel);
      const std::optional<ResourceRef> instance = instance_of(resource);
      if (!instance) return release;
      release.instance = *instance;
      for (const kube::OwnerReference& owner : kube::owners_of(resource)) {
        if (owner.kind == instance->kind.kind && owner.name == instance->name) {
          release.instance_uid = owner.uid;
        }
      }
      return release;
    }
  }
  return release;
}

bool Release::owns(const json::Value& object) const {
  if (owner_of(object) != owner()) return false;
  const std::string_view made_by = kube::annotation_of(object, kInstanceRefAnnotation);
  if (!made_by.empty()) return has_instance() && made_by == instance.to_string();
  return !is_flight(instance.kind) || is_owned_by(object, instance_uid);
}

std::string owner_of(const json::Value& object) {
  const std::string_view release = first_of(kube::annotation_of(object, kReleaseAnnotation),
                                            kube::label_of(object, kDeprecatedReleaseLabel));
  const std::string_view namespace_ = first_of(kube::annotation_of(object, kNamespaceAnnotation),
                                               kube::label_of(object, kDeprecatedNamespaceLabel));
  if (release.empty() || namespace_.empty()) return {};
  return fmt::format("{}/{}", namespace_, release);
}

std::optional<ResourceRef> instance_of(const json::Value& object) {
  Result<ResourceRef> ref = parse_ref(kube::annotation_of(object, kInstanceRefAnnotation));
  if (!ref) return std::nullopt;
  return *std::move(ref);
}

bool may_contain(const ResourceRef& instance, const ResourceRef& child) {
  return instance.namespace_.empty() || child.namespace_.empty() ||
         child.namespace_ == instance.namespace_;
}

bool is_owned_by(const json::Value& object, std::string_view uid) {
  return std::ranges::any_of(kube::owners_of(object),
                             [uid](const kube::OwnerReference& owner) { return owner.uid == uid; });
}

Result<> may_take_over(const json::Value& live, const Release& release, Adoption adoption) {
  if (adoption == Adoption::Force) return {};
  const auto refused = [&](std::string_view owner) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("expected release \"{}\" but resource is already owned by \"{}\"",
                            release.owner(), owner));
  };
  if (release.owns(live)) return {};
  std::string owner = owner_of(live);
  if (owner == release.owner()) {
    const std::string_view made_by = kube::annotation_of(live, kInstanceRefAnnotation);
    owner = made_by.empty() ? "another release of that name" : std::string(made_by);
  }
  if (!owner.empty() || adoption == Adoption::Refuse) return refused(owner);
  // A controller would revert our changes to its own resources, such as a Deployment's ReplicaSet.
  for (const kube::OwnerReference& reference : kube::owners_of(live)) {
    if (reference.controller && reference.uid != release.instance_uid) {
      return refused(reference.kind + " " + reference.name);
    }
  }
  return {};
}

Scopes scopes_defined_in(const Stages& stages) {
  Scopes scopes;
  for_each_resource(stages, [&](const json::Value& resource) {
    if (!is_crd(ref_of(resource).kind)) return;
    const std::string_view kind = json::string_at(resource, {"spec", "names", "kind"});
    if (kind.empty()) return;
    scopes[{std::string(json::string_at(resource, {"spec", "group"})), std::string(kind)}] =
        json::string_at(resource, {"spec", "scope"}) == "Namespaced";
  });
  return scopes;
}

std::vector<kube::GroupVersionKind> kinds_to_discover(const Stages& stages) {
  const Scopes defined = scopes_defined_in(stages);
  std::set<kube::GroupVersionKind> kinds;
  for_each_resource(stages, [&](const json::Value& resource) {
    const kube::GroupVersionKind gvk = kube::make_gvk(json::string_at(resource, {"apiVersion"}),
                                                      json::string_at(resource, {"kind"}));
    if (!defined.contains(gvk.group_kind())) kinds.insert(gvk);
  });
  return {kinds.begin(), kinds.end()};
}

std::string while_discovering(const kube::GroupVersionKind& gvk, const Stages& stages) {
  std::string first;
  for_each_resource(stages, [&](const json::Value& resource) {
    const bool is_of_kind = json::string_at(resource, {"kind"}) == gvk.kind &&
                            json::string_at(resource, {"apiVersion"}) == gvk.api_version();
    if (first.empty() && is_of_kind) first = canonical_name(resource);
  });
  return fmt::format("setting target namespace: {}: failed to lookup resource mapping", first);
}

Result<> prepare_release(Stages& stages, const Release& release, const Scopes& scopes) {
  std::vector<std::string> foreign;
  std::vector<std::string> unknown;
  const std::string instance_ref = release.instance.to_string();
  for_each_resource(stages, [&](json::Value& resource) {
    const ResourceRef ref = ref_of(resource);
    const auto scope = scopes.find(ref.kind);
    if (scope == scopes.end()) {
      unknown.push_back(fmt::format("{}: no matches for kind \"{}\" in version \"{}\"",
                                    canonical_name(resource), ref.kind.kind,
                                    json::string_at(resource, {"apiVersion"})));
      return;
    }
    const bool namespaced = scope->second;
    if (!namespaced) {
      json::erase_at(resource, {"metadata", "namespace"});
    } else if (ref.namespace_.empty()) {
      json::set_at(resource, {"metadata", "namespace"}, json::Value(release.namespace_));
    } else if (ref.namespace_ != release.namespace_ && !release.cross_namespace) {
      foreign.push_back(fmt::format("{}: namespace \"{}\" does not match target namespace \"{}\"",
                                    canonical_name(resource), ref.namespace_, release.namespace_));
    }

    json::set_at(resource, {"metadata", "labels", kManagedByLabel},
                 json::Value(release.managed_by));
    json::set_at(resource, {"metadata", "annotations", kReleaseAnnotation},
                 json::Value(release.name));
    json::set_at(resource, {"metadata", "annotations", kNamespaceAnnotation},
                 json::Value(release.namespace_));
    if (release.has_instance()) {
      json::set_at(resource, {"metadata", "annotations", kInstanceRefAnnotation},
                   json::Value(instance_ref));
      if (namespaced || release.instance.namespace_.empty()) add_owner_reference(resource, release);
    }
    // A flight may print annotations that the author of the instance chooses.
    json::erase_at(resource, {"metadata", "annotations", kModeAnnotation});
    if (!release.override_mode.empty()) {
      json::set_at(resource, {"metadata", "annotations", kModeAnnotation},
                   json::Value(release.override_mode));
    }
    drop_server_fields(resource);
  });

  if (!foreign.empty()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("Multiple namespaces detected (if desired enable multinamespace "
                            "releases): {}",
                            fmt::join(foreign, "; ")));
  }
  if (!unknown.empty()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("setting target namespace: {}", fmt::join(unknown, "; ")));
  }
  return check_unique(stages);
}

std::optional<json::Value> orphan_patch(const json::Value& live, const Release& release) {
  json::Value patch = json::Object();
  bool changes = false;
  if (!kube::label_of(live, kManagedByLabel).empty()) {
    json::set_at(patch, {"metadata", "labels", kManagedByLabel}, nullptr);
    changes = true;
  }
  for (const std::string_view key :
       {kReleaseAnnotation, kNamespaceAnnotation, kInstanceRefAnnotation, kModeAnnotation}) {
    if (kube::annotation_of(live, key).empty()) continue;
    json::set_at(patch, {"metadata", "annotations", key}, nullptr);
    changes = true;
  }
  if (const json::Array* references = json::array_at(live, {"metadata", "ownerReferences"})) {
    json::Array others;
    for (const json::Value& reference : *references) {
      if (json::string_at(reference, {"uid"}) != release.instance_uid) others.push_back(reference);
    }
    if (others.size() != references->size()) {
      changes = true;
      json::set_at(patch, {"metadata", "ownerReferences"},
                   others.empty() ? json::Value(nullptr) : json::Value(std::move(others)));
    }
  }
  if (!changes) return std::nullopt;
  json::set_at(patch, {"metadata", "resourceVersion"},
               json::Value(json::string_at(live, {"metadata", "resourceVersion"})));
  return patch;
}

}  // namespace hangar::airways
