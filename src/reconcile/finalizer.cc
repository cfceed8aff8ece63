#include "reconcile/finalizer.h"

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::reconcile {

namespace {

io::Task<Result<json::Value>> set_finalizer(kube::Client client, kube::Resource resource,
                                            json::Value object, std::string finalizer,
                                            Presence presence, std::string field_manager,
                                            std::stop_token stop) {
  std::optional<json::Value> patch = finalizer_patch(object, finalizer, presence);
  if (!patch) co_return object;
  co_return co_await client.patch(std::move(resource), kube::key_of(object), kube::PatchType::Json,
                                  *std::move(patch), {.field_manager = std::move(field_manager)},
                                  std::move(stop));
}

}  // namespace

std::optional<json::Value> finalizer_patch(const json::Value& object, std::string_view finalizer,
                                           Presence presence) {
  const bool is_present = kube::has_finalizer(object, finalizer);
  if (is_present == (presence == Presence::Present)) return std::nullopt;

  json::Array finalizers;
  if (const json::Array* present = json::array_at(object, {"metadata", "finalizers"})) {
    for (const json::Value& other : *present) {
      const bool is_ours = other.is_string() && std::string_view(other.get_string()) == finalizer;
      if (!is_ours) finalizers.push_back(other);
    }
  }
  if (presence == Presence::Present) finalizers.emplace_back(finalizer);

  // The patch writes the version instead of testing it: the server answers a failed test as an
  // invalid request (422), but a write with an old version as a conflict (409).
  json::Array patch;
  patch.push_back(
      json::Object{{"op", "replace"},
                   {"path", "/metadata/resourceVersion"},
                   {"value", json::string_at(object, {"metadata", "resourceVersion"})}});
  patch.push_back(json::Object{
      {"op", "add"}, {"path", "/metadata/finalizers"}, {"value", std::move(finalizers)}});
  return json::Value(std::move(patch));
}

io::Task<Result<json::Value>> add_finalizer(kube::Client client, kube::Resource resource,
                                            json::Value object, std::string finalizer,
                                            std::string field_manager, std::stop_token stop) {
  return set_finalizer(client, std::move(resource), std::move(object), std::move(finalizer),
                       Presence::Present, std::move(field_manager), std::move(stop));
}

io::Task<Result<json::Value>> remove_finalizer(kube::Client client, kube::Resource resource,
                                               json::Value object, std::string finalizer,
                                               std::string field_manager, std::stop_token stop) {
  return set_finalizer(client, std::move(resource), std::move(object), std::move(finalizer),
                       Presence::Absent, std::move(field_manager), std::move(stop));
}

}  // namespace hangar::reconcile
