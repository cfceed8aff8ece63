#include "gateway/feed.h"

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/feed_memory.h"
#include "gateway/history.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

namespace {

// Consecutive failures that may be temporary: with the cache's back-off, five to ten seconds.
constexpr int kFailuresMax = 4;

}  // namespace

Feed::Feed(io::Loop& loop, kube::Cache& cache, OwnWrites& own_writes, kube::Scope scope,
           Counter& shown, std::shared_ptr<kube::Allowance> memory)
    : cache_(cache),
      own_writes_(own_writes),
      scope_(std::move(scope)),
      shown_(shown),
      memory_(std::move(memory)),
      changed_(loop),
      advanced_(loop),
      used_at_(io::Loop::now()) {}

void Feed::start() {
  subscription_ =
      cache_.subscribe(scope_,
                       {.on_delta = [this](const kube::Delta& delta) { on_delta(delta); },
                        .on_synced = [this] { on_synced(); },
                        .on_progress = [this](std::string_view version,
                                              bool is_list) { on_progress(version, is_list); },
                        .on_failed = [this](const Error& error) { on_failed(error); },
                        .on_gone = [this] { on_gone(); }},
                       std::exchange(memory_, nullptr));
  // Requests for another subscriber of this scope may have failed already.
  if (const auto error = subscription_->last_error(); error && !subscription_->is_synced()) {
    on_failed(*error);
  }
}

void Feed::refuse(Error error) {
  if (phase_ == Phase::Starting) fail_with(std::move(error));
}

io::Task<Result<>> Feed::wait_ready(std::stop_token stop) {
  const auto keep = shared_from_this();
  while (phase_ == Phase::Starting)
    HANGAR_CO_TRY(co_await changed_.wait(stop));
  if (phase_ == Phase::Failed) co_return std::unexpected(*error_);
  co_return Result<>();
}

io::Task<Result<>> Feed::wait_for(std::uint64_t version, std::stop_token stop) {
  const auto keep = shared_from_this();
  while (is_ready() && history_.version() < version)
    HANGAR_CO_TRY(co_await advanced_.wait(stop));
  if (!is_ready()) co_return fail(ErrorKind::NotFound, "the feed has failed");
  co_return Result<>();
}

bool Feed::covers(const ReadScope& scope) const {
  const View& view = scope.view();
  const bool is_whole = scope_.label_selector.empty() && scope_.field_selector.empty();
  const bool selects_the_same = scope_.label_selector == view.label_selector() &&
                                scope_.field_selector == view.field_selector();
  const bool is_there =
      scope_.namespace_.empty() || scope_.namespace_ == view.requested_namespace();
  return scope.fits(scope_.resource) && is_there && (is_whole || selects_the_same);
}

std::optional<Feed::Window> Feed::open(AuthorizedScope scope) {
  if (!covers(scope.scope())) return std::nullopt;
  return Window(shared_from_this(), std::move(scope).take_view());
}

Attributes Feed::Window::attributes(Verb verb) const {
  return attributes_of(verb, feed_->scope().resource, view_);
}

std::vector<kube::ObjectPtr> Feed::Window::candidates() const {
  return feed_->candidates(view_);
}

kube::ObjectPtr Feed::Window::same_as(const kube::Object& object) const {
  if (!feed_->is_ready()) return nullptr;
  kube::ObjectPtr known = feed_->subscription_->get(object.key());
  const bool is_same = known && known->uid() == object.uid() &&
                       known->resource_version() == object.resource_version();
  return is_same ? std::move(known) : nullptr;
}

std::vector<kube::ObjectPtr> Feed::candidates(const View& view) const {
  if (!is_ready()) return {};
  const bool is_one =
      !view.name().empty() && (!view.namespace_().empty() || !scope_.resource.namespaced);
  if (!is_one) return subscription_->list(view.namespace_());
  std::vector<kube::ObjectPtr> found;
  if (auto object = subscription_->get(view.place())) found.push_back(std::move(object));
  return found;
}

void Feed::attach(std::shared_ptr<Viewer> viewer, std::uint64_t seen) {
  viewer->seen_ = seen;
  viewer->is_attached_ = true;
  audience_.add(std::move(viewer));
}

void Feed::detach(Viewer& viewer) {
  if (!std::exchange(viewer.is_attached_, false)) return;
  audience_.remove(viewer);
  touch();
}

void Feed::on_care() {
  history_.age(io::Loop::now());
  tell_progress();
}

void Feed::tell_progress() {
  for (const auto& viewer : audience_.all())
    if (viewer->is_attached_) viewer->on_progress(history_.version());
}

std::optional<Instant> Feed::unused_since() const {
  if (audience_.size() > 0 || phase_ == Phase::Starting) return std::nullopt;
  return used_at_;
}

void Feed::on_delta(const kube::Delta& delta) {
  if (!is_ready()) return;  // on_synced() tells when the first list is complete.
  if (delta.is_from_list) {
    differences_.push_back(delta);
    return;
  }
  const Change change{
      .type = delta.type,
      .object = delta.object,
      .previous = delta.previous,
      .version =
          kube::parse_version(delta.object->resource_version()).value_or(history_.version())};
  history_.append(change);
  advanced_.notify_all();
  show(change);
}

void Feed::on_synced() {
  if (phase_ != Phase::Starting) return;
  const auto version = kube::parse_version(subscription_->resource_version());
  if (!version) {
    return fail_with(Error(ErrorKind::InvalidInput, "resourceVersions of another kind"));
  }
  history_.begin(*version);
  phase_ = Phase::Ready;
  changed_.notify_all();
}

void Feed::on_progress(std::string_view resource_version, bool is_list) {
  if (!is_ready()) return;
  const auto version = kube::parse_version(resource_version);
  if (is_list) {
    on_list(version.value_or(history_.version()));
  } else if (version) {
    history_.advance(*version);
  }
  advanced_.notify_all();
}

void Feed::on_list(std::uint64_t version) {
  const auto keep = shared_from_this();
  const std::uint64_t before = history_.version();
  std::vector<kube::Delta> differences = std::exchange(differences_, {});
  if (version < before) {
    // The server was restored from a backup, so a version no longer means the same state. No viewer
    // can resume: each of them gets the 410 and lists again.
    history_.begin(version);
    for (const auto& viewer : audience_.all())
      if (viewer->is_attached_) drop(*viewer);
    return;
  }
  // A viewer whose place is inside the gap that this list leaves (it began ahead of the cache)
  // cannot be served from the differences: they lead from `before` to `version`. It is detached
  // and compares its own state with the present one. All other viewers are at `before`, or beyond
  // the list.
  const std::vector<Change> changes = in_order(std::move(differences), before, version);
  history_.append_list(changes, version);
  for (const auto& viewer : audience_.all())
    if (viewer->is_attached_ && !history_.covers(viewer->seen_) && viewer->seen_ > before)
      lose(*viewer);
  for (const Change& change : changes)
    show(change);
  tell_progress();
}

void Feed::on_failed(const Error& error) {
  // A feed that is ready waits for the watch to work again, but this one receives nothing any more.
  if (is_ready() && error.reason() == kTooLargeToWatch) return end_with(error);
  if (phase_ != Phase::Starting) return;
  // A server that is starting, or setting up a new resource, gets some time.
  const bool may_pass = error.kind() == ErrorKind::Unavailable;
  if (may_pass && ++failure_count_ < kFailuresMax) return;
  fail_with(error);
}

void Feed::on_gone() {
  if (is_ready()) end_with(Error(ErrorKind::NotFound, "the resource is not served any more"));
}

void Feed::end_with(Error error) {
  const auto keep = shared_from_this();
  differences_.clear();
  const auto viewers = audience_.all();
  fail_with(std::move(error));
  for (const auto& viewer : viewers)
    if (viewer->is_attached_) drop(*viewer);
}

void Feed::fail_with(Error error) {
  phase_ = Phase::Failed;
  error_ = std::move(error);
  touch();
  subscription_.reset();
  changed_.notify_all();
  advanced_.notify_all();
}

void Feed::show(const Change& change) {
  const auto keep = shared_from_this();
  own_writes_.seen(change.version, io::Loop::now());
  Sight sight(change);
  for (const auto& viewer : audience_.concerned_by(change.object->key())) {
    // The call of an earlier viewer may have detached this one. A viewer that began ahead of the
    // cache skips the changes up to its version.
    if (!viewer->is_attached_ || change.version <= viewer->seen_) continue;
    if (auto line = viewer->view().see(sight)) {
      shown_.add();
      viewer->on_line(*std::move(line));
    }
  }
}

void Feed::lose(Viewer& viewer) {
  detach(viewer);
  viewer.on_lost(viewer.seen_);
}

void Feed::drop(Viewer& viewer) {
  detach(viewer);
  viewer.on_gone();
}

}  // namespace hangar::gateway
