#include "admission/kept_objects.h"

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/object.h"
#include "reconcile/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <expected>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

namespace hangar::admission {

namespace {

using reconcile::Outcome;

// After a refusal; the right to write may be given at any time.
constexpr std::chrono::seconds kDeniedRecheck{5};

}  // namespace

KeptObjects::KeptObjects(Parts parts, kube::Resource kind, std::string keeper,
                         std::string namespace_)
    : parts_(std::move(parts)),
      kind_(std::move(kind)),
      keeper_(std::move(keeper)),
      namespace_(std::move(namespace_)),
      applied_(parts_.loop),
      controller_(parts_.loop, parts_.metrics, parts_.log, {.name = "kept-" + kind_.plural},
                  [this](kube::ObjectKey key, std::stop_token stop) {
                    return reconcile(std::move(key), std::move(stop));
                  }) {}

KeptObjects::~KeptObjects() = default;

void KeptObjects::want(json::Value object) {
  std::string name(json::string_at(object, {"metadata", "name"}));
  json::set_at(object, {"apiVersion"}, json::Value(kind_.gvk().api_version()));
  json::set_at(object, {"kind"}, json::Value(kind_.kind));
  json::set_at(object, {"metadata", "labels", kKeptByLabel}, json::Value(keeper_));
  if (!namespace_.empty()) {
    json::set_at(object, {"metadata", "namespace"}, json::Value(namespace_));
  }
  Wanted& wanted = wanted_[name];
  if (wanted.object == object) return;
  wanted = {.object = std::move(object)};
  controller_.enqueue(key_of(std::move(name)));
}

void KeptObjects::drop(const std::string& name) {
  if (wanted_.erase(name) != 0) controller_.enqueue(key_of(name));
}

void KeptObjects::keep_no_others() {
  is_complete_ = true;
  look_at_all();
}

Result<> KeptObjects::check(const std::string& name) const {
  const auto found = wanted_.find(name);
  if (found == wanted_.end()) {
    return fail(ErrorKind::Unavailable, fmt::format("{} {} is not kept", kind_.kind, name));
  }
  if (found->second.problem) return std::unexpected(*found->second.problem);
  if (found->second.applied_version.empty()) {
    return fail(ErrorKind::Unavailable, fmt::format("{} {} is not applied yet", kind_.kind, name));
  }
  return {};
}

void KeptObjects::start() {
  present_ = parts_.cache.subscribe(
      {.resource = kind_,
       .namespace_ = namespace_,
       .label_selector = fmt::format("{}={}", kKeptByLabel, keeper_)},
      {.on_delta = [this](const kube::Delta& delta) { controller_.enqueue(delta.object->key()); },
       .on_synced = [this] { look_at_all(); }});
  controller_.start();
}

io::Task<void> KeptObjects::settle(Duration most) {
  const std::stop_source late;
  const io::Loop::Timer limit = parts_.loop.after(most, [late] { late.request_stop(); });
  const auto is_applied = [](const auto& entry) { return !entry.second.applied_version.empty(); };
  while (!std::ranges::all_of(wanted_, is_applied)) {
    if (!co_await applied_.wait(late.get_token())) co_return;
  }
}

io::Task<void> KeptObjects::stop() {
  present_.reset();
  co_await controller_.stop();
}

void KeptObjects::look_at_all() {
  for (const auto& [name, wanted] : wanted_)
    controller_.enqueue(key_of(name));
  if (!present_ || !is_complete_) return;
  for (const kube::ObjectPtr& object : present_->list())
    controller_.enqueue(object->key());
}

io::Task<Result<Outcome>> KeptObjects::reconcile(kube::ObjectKey key, std::stop_token stop) {
  if (!present_ || !present_->is_synced()) {
    const auto found = wanted_.find(key.name);
    if (found != wanted_.end() && present_) found->second.problem = present_->last_error();
    co_return Outcome{};  // on_synced queues all of them.
  }
  const kube::ObjectPtr live = present_->get(key);
  auto found = wanted_.find(key.name);
  if (found == wanted_.end()) {
    if (!live || !is_complete_) co_return Outcome{};
    // The version: another host may have made it its own since this one read it.
    const Result<json::Value> removed =
        co_await parts_.client.remove(kind_, key,
                                      {.uid = std::string(live->uid()),
                                       .resource_version = std::string(live->resource_version())},
                                      std::move(stop));
    if (!removed && removed.error().kind() != ErrorKind::NotFound &&
        removed.error().kind() != ErrorKind::Conflict) {
      co_return std::unexpected(removed.error());
    }
    co_return Outcome{};  // A change queues it again.
  }
  // The object is unchanged since our last apply.
  if (live && live->resource_version() == found->second.applied_version) co_return Outcome{};
  const json::Value desired = found->second.object;
  Result<json::Value> answer = co_await parts_.client.apply(
      kind_, desired, {.field_manager = std::string(kKeptFieldManager), .force = true},
      std::move(stop));
  // The desired object may have changed or been dropped meanwhile; then its key is queued again.
  found = wanted_.find(key.name);
  if (found == wanted_.end() || found->second.object != desired) co_return Outcome{};
  if (!answer) {
    const Error error =
        std::move(answer).error().in(fmt::format("apply {} {}", kind_.kind, key.name));
    if (error.kind() != ErrorKind::Cancelled) found->second.problem = error;
    // A binding is not valid before its policy is known.
    const bool may_pass =
        error.kind() == ErrorKind::Denied || error.kind() == ErrorKind::InvalidInput;
    if (may_pass) co_return Outcome{.requeue_after = kDeniedRecheck};
    co_return std::unexpected(error);
  }
  found->second.problem.reset();
  found->second.applied_version = json::string_at(*answer, {"metadata", "resourceVersion"});
  applied_.notify_all();
  co_return Outcome{};
}

}  // namespace hangar::admission
