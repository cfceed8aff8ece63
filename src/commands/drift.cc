#include "commands/drift.h"

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

constexpr std::string_view kWithheld = "(withheld)";
constexpr std::string_view kWithheldExpected = "(withheld, as printed)";
constexpr std::string_view kWithheldActual = "(withheld, another value)";
// Of a Secret, what tells nothing of its values. Everything else is withheld, also a member that
// Secrets do not have: a mistyped `data` contains values, too.
constexpr std::array<std::string_view, 5> kShownOfSecret = {"apiVersion", "kind", "metadata",
                                                            "type", "immutable"};
// Annotations with a copy of the whole object: kubectl's.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool is_secret(const json::Value& object) {
  const Result<kube::GroupVersionKind> gvk = kube::gvk_of(object);
  return gvk && gvk->group.empty() && gvk->kind == "Secret";
}

// Withholds a value that may be missing on either side.
void withhold(json::Value* expected, json::Value* actual) {
  const bool is_same = expected != nullptr && actual != nullptr && json::equal(*expected, *actual);
  if (expected != nullptr) *expected = is_same ? kWithheld : kWithheldExpected;
  if (actual != nullptr) *actual = is_same ? kWithheld : kWithheldActual;
}

// Withholds the values of the members, and keeps their names.
void withhold_members(json::Value* expected, json::Value* actual) {
  json::Object* const left = expected == nullptr ? nullptr : expected->if_object();
  json::Object* const right = actual == nullptr ? nullptr : actual->if_object();
  // One of them is not an object, as in a Secret that the API server would refuse.
  if ((expected != nullptr && left == nullptr) || (actual != nullptr && right == nullptr)) {
    return withhold(expected, actual);
  }
  if (left != nullptr) {
    for (auto& member : *left)
      withhold(&member.value(), right == nullptr ? nullptr : right->if_contains(member.key()));
  }
  if (right == nullptr) return;
  for (auto& member : *right) {
    if (left == nullptr || !left->contains(member.key())) withhold(nullptr, &member.value());
  }
}

}  // namespace

json::Value without_bookkeeping(json::Value object) {
  for (const std::string_view member :
       {"generation", "resourceVersion", "managedFields", "creationTimestamp"}) {
    json::erase_at(object, {"metadata", member});
  }
  json::erase_at(object, {"status"});
  return object;
}

json::Value without_additions(const json::Value& expected, json::Value actual) {
  if (json::Object* const object = actual.if_object()) {
    const json::Object* const wanted = expected.if_object();
    if (wanted == nullptr) return actual;
    std::vector<std::string> added;
    for (auto& member : *object) {
      const json::Value* const one = wanted->if_contains(member.key());
      if (one == nullptr) {
        added.emplace_back(member.key());
      } else {
        member.value() = without_additions(*one, std::move(member.value()));
      }
    }
    for (const std::string& name : added)
      object->erase(name);
  } else if (json::Array* const array = actual.if_array()) {
    const json::Array* const wanted = expected.if_array();
    if (wanted == nullptr) return actual;
    for (std::size_t i = 0; i < std::min(array->size(), wanted->size()); ++i)
      (*array)[i] = without_additions((*wanted)[i], std::move((*array)[i]));
  }
  return actual;
}

ComparedResource compare_resource(const json::Value& resource, std::optional<json::Value> live,
                                  ComparedFields fields) {
  ComparedResource compared{.expected = without_bookkeeping(resource), .actual = std::nullopt};
  if (!live) return compared;
  json::Value actual = without_bookkeeping(*std::move(live));
  if (fields == ComparedFields::Set) actual = without_additions(resource, std::move(actual));
  compared.actual = std::move(actual);
  return compared;
}

void withhold_secret_values(ComparedResource& compared) {
  json::Value* const actual = compared.actual ? &*compared.actual : nullptr;
  if (!is_secret(compared.expected) && (actual == nullptr || !is_secret(*actual))) return;
  std::vector<std::string> names;
  for (const json::Value* const side : {static_cast<const json::Value*>(&compared.expected),
                                        static_cast<const json::Value*>(actual)}) {
    const json::Object* const object = side == nullptr ? nullptr : side->if_object();
    if (object == nullptr) continue;
    for (const auto& member : *object)
      names.emplace_back(member.key());
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  const auto on_actual = [actual](json::Path path) {
    return actual == nullptr ? nullptr : json::find(*actual, path);
  };
  for (const std::string& name : names) {
    if (std::ranges::find(kShownOfSecret, name) != kShownOfSecret.end()) continue;
    withhold_members(json::find(compared.expected, {name}), on_actual({name}));
  }
  withhold(json::find(compared.expected, {"metadata", "annotations", kLastApplied}),
           on_actual({"metadata", "annotations", kLastApplied}));
}

}  // namespace hangar::commands
