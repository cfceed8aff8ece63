#include "reconcile/custom_resource.h"

#include "base/assert.h"
#include "io/loop.h"
#include "json/limits.h"
#include "json/skim.h"
#include "json/value.h"
#include "kube/cache/ration.h"
#include "kube/client.h"
#include "kube/find.h"
#include "reconcile/conditions.h"
#include "reconcile/finalizer.h"
#include "reconcile/limits.h"
#include "reconcile/memory_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::reconcile {

namespace {

// A client that writes labels as fast as hangar writes statuses wins every other time.
constexpr int kStatusAttemptsMax = 5;

// How soon an object that waits for memory is looked at again. That sends no request while there is
// no room.
constexpr std::chrono::seconds kMemoryRecheck{30};

// False for an object that is nested so deep that to_value() leaves a part of it out. What counts
// as depth is at most the number of brackets, which almost all objects have too few of.
bool is_whole_document(const kube::Object& object) {
  const kube::ObjectText text = object.text();
  const auto brackets = std::ranges::count_if(
      text.view(), [](char character) { return character == '{' || character == '['; });
  return std::cmp_less(brackets, limits::kDocumentDepthMax) || json::parse(text.view()).has_value();
}

Error gone() {
  return {ErrorKind::Cancelled, "the object is gone: there is nothing to say of it"};
}

}  // namespace

CustomResource::WhileItLives::WhileItLives(CustomResource& shell, kube::ObjectKey key,
                                           const std::stop_token& stop)
    : shell_(shell), key_(std::move(key)), on_stop_(stop, [this] { end_.request_stop(); }) {
  shell_.living_[key_].push_back(this);
}

CustomResource::WhileItLives::~WhileItLives() {
  const auto found = shell_.living_.find(key_);
  std::erase(found->second, this);
  if (found->second.empty()) shell_.living_.erase(found);
}

CustomResource::CustomResource(const Platform& platform, Options options)
    : platform_(platform),
      options_(std::move(options)),
      controller_(platform.loop, platform.metrics, options_.log,
                  {.name = options_.name,
                   .concurrency = options_.concurrency,
                   .is_deletion =
                       [this](const kube::ObjectKey& key) {
                         const kube::ObjectPtr object = newest(key);
                         return !object || object->is_being_deleted();
                       },
                   .turnstile = &platform.turnstile},
                  [this](kube::ObjectKey key, std::stop_token stop) {
                    return run(std::move(key), std::move(stop));
                  }) {}

CustomResource::~CustomResource() = default;

void CustomResource::start() {
  controller_.start();
  subscription_ =
      platform_.cache.subscribe({.resource = options_.kind, .keep = kube::Keep::Rationed},
                                {.on_delta = [this](const kube::Delta& delta) { on_delta(delta); },
                                 .on_synced =
                                     [this] {
                                       has_listed_ = true;
                                       // Those that ran before were put off.
                                       for (const kube::ObjectPtr& object : subscription_->list())
                                         controller_.enqueue(object->key());
                                       if (options_.on_synced) options_.on_synced();
                                     }});
}

io::Task<void> CustomResource::stop() {
  subscription_.reset();
  co_await controller_.stop();
}

void CustomResource::on_delta(const kube::Delta& delta) {
  if (delta.type == kube::Delta::Type::Deleted || delta.object->is_being_deleted()) {
    if (const auto living = living_.find(delta.object->key()); living != living_.end()) {
      for (WhileItLives* const one : living->second)
        one->end_.request_stop();
    }
  }
  if (delta.type == kube::Delta::Type::Deleted) on_memory_freed(delta.object->key().namespace_);
  if (const auto held = held_.find(delta.object->key()); held != held_.end()) {
    held->second.push_back(delta);
    return;
  }
  if (newest_.on_delta(delta) == Newest::News::Echo) return;
  const bool may_skip = delta.type == kube::Delta::Type::Modified && !delta.object->is_bare() &&
                        !delta.previous->is_bare();
  if (may_skip && !options_.predicate(delta)) return;
  if (options_.on_change) options_.on_change(delta);
  controller_.enqueue(delta.object->key());
}

// Posted, because the object that is gone counts as long as its delta is told.
void CustomResource::on_memory_freed(const std::string& namespace_name) {
  if (!waiting_.has_any(namespace_name) || !freed_.insert(namespace_name).second) return;
  platform_.loop.post([this, namespace_name, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    freed_.erase(namespace_name);
    const kube::Ration& ration = *platform_.cache.ration();
    const auto has_room = [&ration](const std::string& name, std::uint64_t bytes) {
      return ration.has_room(name, bytes);
    };
    for (const kube::ObjectKey& key : waiting_.with_room(namespace_name, has_room))
      controller_.enqueue(key);
  });
}

kube::ObjectPtr CustomResource::newest(const kube::ObjectKey& key) const {
  return subscription_ ? newest_.of(subscription_->get(key)) : nullptr;
}

std::vector<kube::ObjectPtr> CustomResource::list(std::string_view namespace_) const {
  if (!subscription_) return {};
  std::vector<kube::ObjectPtr> objects = subscription_->list(namespace_);
  for (kube::ObjectPtr& object : objects)
    object = newest_.of(object);
  return objects;
}

std::vector<std::string> CustomResource::namespaces() const {
  std::set<std::string> namespaces;
  for (const kube::ObjectPtr& object : list())
    namespaces.insert(object->key().namespace_);
  return {namespaces.begin(), namespaces.end()};
}

CustomResource::OutcomeTask CustomResource::run(kube::ObjectKey key, std::stop_token stop) {
  // While the first list is being told, in slices, no object can be looked up: that one is not
  // found does not mean that it was deleted.
  if (!has_listed_) co_return Outcome{};
  kube::ObjectPtr object = newest(key);
  const bool is_going = object && object->is_being_deleted();
  if (!object || (is_going && options_.finalizer.empty())) {
    announced_.erase(key);
    waiting_.erase(key);
    co_await options_.forget(std::move(key));
    co_return Outcome{};
  }
  // Held until the run ends, and taken before anything parses the object.
  Documents documents(*this);
  Outcome waits;
  object = HANGAR_CO_TRY(co_await with_room(std::move(object), documents, waits, stop));
  if (!object) co_return waits;
  if (is_going) co_return co_await run_finalize(std::move(object), std::move(stop));
  // A part of it must not be taken for what its author wants.
  if (!is_whole_document(*object)) {
    co_return fail(
        ErrorKind::InvalidInput,
        fmt::format("the object is nested more than {} levels deep", limits::kDocumentDepthMax));
  }
  if (!options_.finalizer.empty() && options_.finalizer_by == FinalizerBy::Shell &&
      !kube::has_finalizer(object->to_value(), options_.finalizer)) {
    const json::Value answer =
        HANGAR_CO_TRY(co_await add_finalizer(platform_.client, options_.kind, object->to_value(),
                                             options_.finalizer, options_.field_manager, stop));
    remember(answer);
    object = HANGAR_CO_TRY(kube::Object::make(answer, options_.kind.gvk()));
  }
  co_return co_await options_.reconcile(std::move(object), std::move(stop));
}

CustomResource::Documents::~Documents() {
  if (!bytes_) return;
  bytes_.reset();
  if (!shell_lives_.expired()) shell_.on_memory_freed(namespace_);
}

void CustomResource::Documents::hold(std::shared_ptr<const void> bytes,
                                     std::string namespace_name) {
  bytes_ = std::move(bytes);
  namespace_ = std::move(namespace_name);
}

bool CustomResource::waits_still(const kube::Object& object) {
  const kube::Ration* const ration = platform_.cache.ration();
  const MemoryWaits::Waiting* const known = waiting_.find(object.key());
  return ration != nullptr && known != nullptr && !object.is_being_deleted() &&
         known->resource_version == object.resource_version() &&
         known->is_bare == object.is_bare() &&
         !ration->has_room(object.key().namespace_, known->bytes);
}

io::Task<Result<kube::ObjectPtr>> CustomResource::with_room(kube::ObjectPtr object,
                                                            Documents& documents, Outcome& waits,
                                                            std::stop_token stop) {
  const kube::ObjectKey key = object->key();
  const kube::Ration* const ration = platform_.cache.ration();
  const bool is_bare = object->is_bare();
  waits.requeue_after = kMemoryRecheck;
  if (waits_still(*object)) co_return kube::ObjectPtr();
  if (is_bare) object = HANGAR_CO_TRY(co_await read(key, stop));
  if (!object) {
    waits = {};
    co_return object;
  }
  // Without a ration no object is bare, and nothing is counted.
  if (ration == nullptr) co_return object;

  // A deletion waits for nothing.
  const bool is_going = object->is_being_deleted();
  const std::uint64_t document_bytes =
      is_going ? 0 : document_memory_of(*object, options_.documents);
  // The documents first: an object that is not worked on is not held either.
  Result<std::shared_ptr<const void>> room = ration->hold_bytes(key.namespace_, document_bytes);
  Result<kube::ObjectPtr> held = object;
  if (!room) {
    held = std::unexpected(room.error());
  } else if (is_bare) {
    held = ration->hold(object);
  }
  if (held) {
    documents.hold(*std::move(room), key.namespace_);
    waiting_.erase(key);
    if (is_bare) remember(*held, Newest::Origin::Whole);
    co_return held;
  }
  if (is_going) co_return object;
  room = std::shared_ptr<const void>();  // A run that waits holds nothing.
  waiting_.put(key, {.resource_version = std::string(object->resource_version()),
                     .bytes = document_bytes + (is_bare ? object->size_bytes() : 0),
                     .is_bare = is_bare});
  HANGAR_CO_TRY(co_await report_wait(std::move(object), held.error(), std::move(stop)));
  co_return kube::ObjectPtr();
}

io::Task<Result<>> CustomResource::report_wait(kube::ObjectPtr object, Error error,
                                               std::stop_token stop) {
  const json::Value identity = identity_of(*object, options_.kind);
  const std::string message =
      fmt::format("the host has no memory for this object: {}", error.message());
  announce(
      identity, message,
      EventText{
          .type = EventType::Warning, .reason = std::string(kNamespaceMemory), .message = message});
  std::optional<json::Value> known = small_status_of(*object);
  if (!known) co_return Result<>();  // The Event says it.
  json::Value status = *std::move(known);
  bool is_news = false;
  const auto put = [&](std::string_view type, ConditionStatus value) {
    is_news |= set_condition(status,
                             {.type = std::string(type),
                              .status = value,
                              .reason = std::string(kNamespaceMemory),
                              .message = message,
                              .observed_generation = object->generation()},
                             io::Loop::wall_now());
  };
  put(kReady, ConditionStatus::False);
  if (options_.has_stalled) put(kStalled, ConditionStatus::True);
  if (!is_news) co_return Result<>();
  const Result<json::Value> answer =
      co_await put_status(identity, std::move(status), StatusOf::Spec, kube::Detail::Metadata,
                          std::move(stop), /*observer=*/nullptr);
  // A kind without this subresource has the Event only.
  if (!answer && answer.error().kind() == ErrorKind::Cancelled) co_return Result<>();
  if (!answer) co_return std::unexpected(answer.error());
  if (MemoryWaits::Waiting* const waiting = waiting_.find(object->key())) {
    waiting->resource_version = json::string_at(*answer, {"metadata", "resourceVersion"});
  }
  co_return Result<>();
}

// A deletion has no spec that somebody could correct, so even a terminal error is retried.
CustomResource::OutcomeTask CustomResource::run_finalize(kube::ObjectPtr object,
                                                         std::stop_token stop) {
  Result<Outcome> outcome = co_await try_finalize(std::move(object), std::move(stop));
  if (outcome || outcome.error().kind() != ErrorKind::InvalidInput) co_return outcome;
  co_return std::unexpected(Error(ErrorKind::Unavailable, outcome.error().message()));
}

CustomResource::OutcomeTask CustomResource::try_finalize(kube::ObjectPtr object,
                                                         std::stop_token stop) {
  const kube::ObjectKey key = object->key();
  if (!kube::has_finalizer(object->to_value(), options_.finalizer)) co_return Outcome{};
  const Outcome outcome = HANGAR_CO_TRY(co_await options_.finalize(std::move(object), stop));
  if (outcome.requeue_after) co_return outcome;
  // finalize() may have written its status.
  kube::ObjectPtr now = newest(key);
  if (now && now->is_bare()) now = HANGAR_CO_TRY(co_await read(key, stop));
  if (!now) co_return Outcome{};
  const Result<json::Value> removed =
      co_await remove_finalizer(platform_.client, options_.kind, now->to_value(),
                                options_.finalizer, options_.field_manager, stop);
  if (removed) remember(*removed);
  if (!removed && removed.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(removed.error());
  }
  co_return Outcome{};
}

io::Task<Result<json::Value>> CustomResource::patch(kube::ObjectKey key, kube::PatchType type,
                                                    json::Value patch, std::stop_token stop,
                                                    kube::RequestObserver* observer) {
  const bool is_only_one = held_.try_emplace(key).second;
  HANGAR_ASSERT(is_only_one, "two patches of one object at a time");
  Result<json::Value> answer = co_await platform_.client.observed_by(observer).patch(
      options_.kind, key, type, std::move(patch), {.field_manager = options_.field_manager},
      std::move(stop));
  const std::vector<kube::Delta> held = std::move(held_.extract(key).mapped());
  if (answer) remember(*answer);
  // Changes up to the answer are part of the answer, with which the run continues.
  const std::string_view told =
      answer ? json::string_at(*answer, {"metadata", "resourceVersion"}) : std::string_view();
  for (const kube::Delta& delta : held) {
    const std::string_view version = delta.object->resource_version();
    const bool is_in_answer = version == told || (answer && is_older(version, told));
    if (delta.type != kube::Delta::Type::Modified || !is_in_answer) on_delta(delta);
  }
  co_return answer;
}

void CustomResource::remember(const json::Value& answer) {
  Result<kube::ObjectPtr> object = kube::Object::make(answer, options_.kind.gvk());
  if (object) remember(*std::move(object), Newest::Origin::OwnWrite);
}

void CustomResource::remember(kube::ObjectPtr object, Newest::Origin origin) {
  if (!subscription_) return;
  const kube::ObjectPtr cached = subscription_->get(object->key());
  newest_.remember(std::move(object), cached, origin);
}

io::Task<Result<json::Value>> CustomResource::patch_status(const json::Value& object,
                                                           json::Value status,
                                                           kube::WriteOptions options,
                                                           std::stop_token stop,
                                                           kube::RequestObserver* observer) const {
  options.field_manager = options_.field_manager;
  options.subresource = "status";
  Result<json::Value> answer = co_await platform_.client.observed_by(observer).patch(
      options_.kind, kube::key_of(object), kube::PatchType::Json,
      status_replacement(object, std::move(status)), std::move(options), std::move(stop));
  if (answer) co_return answer;
  if (answer.error().kind() == ErrorKind::NotFound) co_return std::unexpected(gone());
  co_return std::unexpected(std::move(answer).error().in("write the status"));
}

io::Task<Result<json::Value>> CustomResource::try_status(json::Value object, json::Value status,
                                                         std::stop_token stop,
                                                         kube::RequestObserver* observer) {
  co_return co_await patch_status(object, std::move(status), {.dry_run = true}, std::move(stop),
                                  observer);
}

io::Task<Result<json::Value>> CustomResource::write_status(json::Value object, json::Value status,
                                                           StatusOf of, std::stop_token stop,
                                                           kube::RequestObserver* observer) {
  co_return co_await put_status(std::move(object), std::move(status), of, kube::Detail::Whole,
                                std::move(stop), observer);
}

io::Task<Result<json::Value>> CustomResource::put_status(json::Value object, json::Value status,
                                                         StatusOf of, kube::Detail detail,
                                                         std::stop_token stop,
                                                         kube::RequestObserver* observer) {
  const kube::ObjectKey key = kube::key_of(object);
  for (int attempt = 1;; ++attempt) {
    Result<json::Value> answer =
        co_await patch_status(object, status, {.detail = detail}, stop, observer);
    if (answer && detail == kube::Detail::Whole) remember(*answer);
    if (answer || answer.error().kind() != ErrorKind::Conflict) co_return answer;

    const Result<kube::ObjectPtr> live = co_await read(key, stop);
    if (!live) co_return std::unexpected(live.error());
    if (!*live) co_return std::unexpected(gone());
    // The cache may not have the other writer's state yet, and the next run must see it.
    remember(*live, Newest::Origin::Read);
    json::Value now = identity_of(**live, options_.kind);
    if (of == StatusOf::Version || !is_same_spec(object, now) || attempt == kStatusAttemptsMax) {
      controller_.enqueue(key);
      co_return answer;
    }
    object = std::move(now);
  }
}

io::Task<Result<kube::ObjectPtr>> CustomResource::read(kube::ObjectKey key,
                                                       std::stop_token stop) const {
  return kube::find(platform_.client, options_.kind, std::move(key), std::move(stop));
}

void CustomResource::announce(const json::Value& object, std::string state,
                              std::optional<EventText> text) {
  const kube::ObjectKey key = kube::key_of(object);
  const auto before = announced_.find(key);
  const bool is_known =
      before == announced_.end()
          ? state.empty()
          : before->second.state == state && (!text || before->second.message == text->message);
  if (is_known) return;
  Announced now{.state = std::move(state), .message = text ? text->message : std::string()};
  if (text) platform_.events.record(object, *std::move(text));
  if (now.state.empty()) {
    announced_.erase(key);
  } else {
    announced_[key] = std::move(now);
  }
}

std::string_view CustomResource::announced(const kube::ObjectKey& key) const {
  const auto found = announced_.find(key);
  return found == announced_.end() ? std::string_view() : found->second.state;
}

void CustomResource::record(const kube::ObjectKey& key, EventText text) {
  if (const kube::ObjectPtr object = newest(key)) {
    platform_.events.record(object->to_value(), std::move(text));
  }
}

json::Value status_replacement(const json::Value& object, json::Value status) {
  // The patch writes the version instead of testing it: the server answers a failed test as an
  // invalid request (422), but a write with an old version as a conflict (409).
  return json::Array{
      json::Object{{"op", "replace"},
                   {"path", "/metadata/resourceVersion"},
                   {"value", json::string_at(object, {"metadata", "resourceVersion"})}},
      json::Object{{"op", "add"}, {"path", "/status"}, {"value", std::move(status)}}};
}

bool is_same_spec(const json::Value& left, const json::Value& right) {
  return json::string_at(left, {"metadata", "uid"}) ==
             json::string_at(right, {"metadata", "uid"}) &&
         json::int_at(left, {"metadata", "generation"}) ==
             json::int_at(right, {"metadata", "generation"});
}

std::uint64_t document_memory_of(const kube::Object& object, std::uint64_t documents) {
  // A byte of text counts as 66 at most.
  constexpr std::uint64_t kShortBytesMax = limits::kDocumentFreeBytesMax / 128;
  if (documents == 0 || object.text_size() <= kShortBytesMax) return 0;
  const kube::ObjectText text = object.text();
  const std::uint64_t bytes = json::parsed_bytes_max(text.view());
  return bytes > limits::kDocumentFreeBytesMax ? documents * bytes : 0;
}

json::Value identity_of(const kube::Object& object, const kube::Resource& kind) {
  const kube::ObjectKey& key = object.key();
  json::Object metadata{{"name", key.name},
                        {"uid", object.uid()},
                        {"resourceVersion", object.resource_version()},
                        {"generation", object.generation()}};
  if (!key.namespace_.empty()) metadata["namespace"] = key.namespace_;
  return json::Object{{"apiVersion", kind.gvk().api_version()},
                      {"kind", kind.kind},
                      {"metadata", std::move(metadata)}};
}

std::optional<json::Value> small_status_of(const kube::Object& object) {
  const kube::ObjectText text = object.text();
  json::Skim skim(text.view());
  std::string_view status;
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view value = skim.value();
    if (*key == "status") status = value;
  }
  if (status.empty()) return json::Object{};
  if (json::parsed_bytes_max(status) > limits::kWaitStatusBytesMax) return std::nullopt;
  Result<json::Value> parsed = json::parse(status);
  if (!parsed) return std::nullopt;
  return parsed->is_object() ? *std::move(parsed) : json::Value(json::Object{});
}

json::Value status_of(const json::Value& object) {
  const json::Value* const present = json::find(object, {"status"});
  return present != nullptr && present->is_object() ? *present : json::Value(json::Object{});
}

}  // namespace hangar::reconcile
