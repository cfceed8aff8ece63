#include "gateway/feed.h"

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "gateway/feed_memory.h"
#include "gateway/history.h"
#include "gateway/limits.h"
#include "gateway/read_scope.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "io/cpu_time.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::gateway {

namespace {

// Consecutive failures that may be temporary: with the cache's back-off, five to ten seconds.
constexpr int kFailuresMax = 4;

}  // namespace

Feed::Feed(io::Loop& loop, io::SharedSlice slice, kube::Cache& cache, OwnWrites& own_writes,
           kube::Scope scope, Counter& shown, std::shared_ptr<FeedMemory> memory,
           budget::Rates* rates)
    : loop_(loop),
      slice_(std::move(slice)),
      cache_(cache),
      own_writes_(own_writes),
      scope_(std::move(scope)),
      shown_(shown),
      memory_(std::move(memory)),
      rates_(rates),
      changed_(loop),
      advanced_(loop),
      used_at_(io::Loop::now()) {}

void Feed::start() {
  if (memory_) {
    memory_->set_sharers([weak = weak_from_this()] {
      const auto feed = weak.lock();
      return feed ? feed->sharers() : std::vector<budget::Tenant>();
    });
  }
  subscription_ =
      cache_.subscribe(scope_,
                       {.on_delta = [this](const kube::Delta& delta) { on_delta(delta); },
                        .on_synced = [this] { on_synced(); },
                        .on_list = [this] { on_list(); },
                        .on_progress = [this](std::string_view version,
                                              bool is_list) { on_progress(version, is_list); },
                        .on_failed = [this](const Error& error) { on_failed(error); },
                        .on_gone = [this] { on_gone(); }},
                       memory_);
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

const budget::Tenant& Feed::payer() const {
  static const budget::Tenant host = budget::Tenant::host();
  return memory_ ? memory_->payer() : host;
}

bool Feed::covers(const ReadScope& scope) const {
  const View& view = scope.view();
  const bool is_whole = scope_.label_selector.empty() && scope_.field_selector.empty();
  const bool selects_the_same = scope_.label_selector == view.label_selector() &&
                                scope_.field_selector == view.field_selector();
  const bool is_there =
      scope_.namespace_.empty() || scope_.namespace_ == view.requested_namespace();
  const bool has_enough =
      scope_.detail == kube::Detail::Whole || view.detail() == kube::Detail::Metadata;
  return scope.fits(scope_.resource) && is_there && has_enough && (is_whole || selects_the_same);
}

bool Feed::is_all_of(const View& view) const {
  return scope_.namespace_ == view.requested_namespace() &&
         scope_.label_selector == view.label_selector() &&
         scope_.field_selector == view.field_selector() && scope_.detail == view.detail();
}

void Feed::reach_back(std::vector<kube::Delta> differences, std::uint64_t from, std::uint64_t to) {
  // While differences of a list are being shown, history_ is not at one version.
  if (!is_ready() || listed_at_ || !has_shown_all()) return;
  if (differences.size() > limits::kGatewayHistoryMax) return;
  history_.reach_back(in_order(std::move(differences), from, to), from, to);
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
  check_payer();
  tell_progress();
}

std::vector<budget::Tenant> Feed::sharers() const {
  std::vector<budget::Tenant> found;
  for (const auto& viewer : audience_.all())
    found.push_back(viewer->tenant());
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

void Feed::check_payer() {
  if (!memory_ || !is_ready() || audience_.size() == 0) return;
  std::vector<budget::Tenant> present = sharers();
  if (std::ranges::binary_search(present, payer()) || memory_->hand_over(std::move(present)))
    return;
  // Each of them may open the feed again, and learns then what it has no room for.
  end_with(Error(ErrorKind::Unavailable, "the watch of this resource has ended"));
}

void Feed::tell_progress() {
  owes_progress_ = !has_shown_all();
  if (owes_progress_) return;
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
    differences_.add(delta);
    return;
  }
  const Change change{
      .type = delta.type,
      .object = delta.object,
      .previous = delta.previous,
      .version =
          kube::parse_version(delta.object->resource_version()).value_or(history_.version())};
  const auto keep = shared_from_this();
  own_writes_.seen(change.version, io::Loop::now());
  history_.append(change);
  advanced_.notify_all();
  show_later(change, delta.read_time);
  begin_showing();
  bound_unshown();
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

void Feed::on_list() {
  if (is_ready()) listed_at_ = kube::parse_version(subscription_->resource_version());
}

void Feed::on_progress(std::string_view resource_version, bool is_list) {
  if (!is_ready()) return;
  const auto version = kube::parse_version(resource_version);
  if (is_list) {
    on_differences(version.value_or(history_.version()));
  } else if (version) {
    history_.advance(*version);
  }
  advanced_.notify_all();
}

void Feed::on_differences(std::uint64_t version) {
  const auto keep = shared_from_this();
  const std::uint64_t before = history_.version();
  Differences differences = std::exchange(differences_, {});
  differences.set_range(before, version);
  listed_at_.reset();
  if (!differences.empty()) own_writes_.seen(version, io::Loop::now());
  if (version < before) {
    // The server was restored from a backup, so a version no longer means the same state. No viewer
    // can resume: each of them gets the 410 and lists again.
    history_.begin(version);
    unshown_.push_back({.what = std::move(differences)});
    forget_unshown();
    begin_showing();
    return drop_all();
  }
  if (differences.are_few()) {
    std::vector<Change> changes;
    while (!differences.empty())
      changes.push_back(differences.take());
    history_.append_list(changes, version);
    for (Change& change : changes)
      show_later(std::move(change), std::nullopt);
  } else {
    history_.skip_list(version);
    const auto unshown_lists = std::ranges::count_if(unshown_, [](const Unshown& one) {
      return !one.is_forgotten && std::holds_alternative<Differences>(one.what);
    });
    unshown_.push_back({.what = std::move(differences)});
    if (unshown_lists >= limits::kGatewayUnshownListsMax) {
      forget_unshown();
      begin_showing();
      return drop_all();
    }
  }
  // A viewer whose place is inside the gap that this list leaves (it began ahead of the cache)
  // cannot be served from the differences: they lead from `before` to `version`. It is detached
  // and compares its own state with the present one. All other viewers are at `before`, or beyond
  // the list.
  for (const auto& viewer : audience_.all())
    if (viewer->is_attached_ && !history_.covers(viewer->seen_) && viewer->seen_ > before)
      lose(*viewer);
  owes_progress_ = true;
  begin_showing();
  bound_unshown();
}

void Feed::show_later(Change change, std::optional<Duration> read_time) {
  unshown_bytes_ += bytes_of(change);
  unshown_.push_back({.what = Later{.change = std::move(change), .read_time = read_time}});
}

void Feed::bound_unshown() {
  if (unshown_bytes_ <= limits::kGatewayUnshownBytesMax) return;
  // Not within a call of a viewer. A task that has thrown goes on in a later turn of the loop.
  if (is_in_step_ || !is_showing_) return;
  const bool has_list = std::ranges::any_of(unshown_, [](const Unshown& one) {
    return !one.is_forgotten && std::holds_alternative<Differences>(one.what);
  });
  if (has_list) {
    forget_unshown();
    return drop_all();
  }
  // The API server's stream cannot be slowed down, and one tenant's changes must not end the
  // watches of others.
  while (unshown_bytes_ > limits::kGatewayUnshownBytesMax && has_unshown())
    show_next();
}

void Feed::begin_showing() {
  if (!std::exchange(is_showing_, true)) loop_.spawn(show_in_slices(shared_from_this()));
}

io::Task<void> Feed::show_in_slices(std::shared_ptr<Feed> self) {
  // If a viewer throws, this task ends, and a new one continues after that viewer.
  struct AtEnd {
    std::shared_ptr<Feed> feed;
    ~AtEnd() {
      feed->is_showing_ = false;
      if (!feed->has_unshown()) return;
      feed->loop_.post([again = feed] { again->begin_showing(); });
    }
  };
  {
    const AtEnd at_end{self};
    while (self->has_unshown()) {
      co_await self->slice_.turn();
      // bound_unshown() may have shown all of it meanwhile.
      while (self->has_unshown()) {
        self->show_next();
        if (self->slice_.is_used_up_by(1)) break;
      }
    }
  }
  if (self->owes_progress_ && self->is_ready()) self->tell_progress();
}

void Feed::show_next() {
  struct Step {
    bool& is_in_step;
    explicit Step(bool& is) : is_in_step(is) { is_in_step = true; }
    ~Step() { is_in_step = false; }
  };
  const Step step(is_in_step_);
  if (showing_) return go_on_showing();
  Unshown& next = unshown_.front();
  const bool is_forgotten = next.is_forgotten || !is_ready();
  if (auto* const differences = std::get_if<Differences>(&next.what)) {
    if (differences->empty()) return unshown_.pop_front();
    if (is_forgotten) return differences->drop_one();
    return show({.change = differences->take(), .read_time = std::nullopt});
  }
  Later later = std::get<Later>(std::move(next.what));
  unshown_bytes_ -= bytes_of(later.change);
  unshown_.pop_front();
  if (!is_forgotten) show(std::move(later));
}

void Feed::show(Later later) {
  const Duration begin = io::thread_cpu_time();
  auto viewers = audience_.concerned_by(later.change.object->key());
  showing_.emplace(std::move(later), std::move(viewers));
  showing_->took = io::thread_cpu_time() - begin;
  go_on_showing();
}

void Feed::go_on_showing() {
  Showing& showing = *showing_;
  const Duration begin = io::thread_cpu_time();
  while (showing.next < showing.viewers.size()) {
    const std::shared_ptr<Viewer> viewer = std::move(showing.viewers[showing.next++]);
    show_to(*viewer);
    if (slice_.is_used_up_by(1)) break;
  }
  showing.took += io::thread_cpu_time() - begin;
  if (showing.next < showing.viewers.size()) return;
  charge_shown();
  showing_.reset();
}

void Feed::show_to(Viewer& viewer) {
  // An earlier viewer, or other work between two slices, may have detached this one. A viewer that
  // began ahead of the cache, or has been attached again, skips the changes up to its version.
  const Change& change = showing_->later.change;
  if (!viewer.is_attached_ || change.version <= viewer.seen_) return;
  if (rates_ != nullptr) showing_->concerned.push_back(viewer.tenant());
  if (auto line = viewer.view().see(showing_->sight)) {
    shown_.add();
    viewer.on_line(*std::move(line));
  }
}

void Feed::charge_shown() {
  const std::optional<Duration>& read_time = showing_->later.read_time;
  if (rates_ == nullptr || !read_time) return;
  std::vector<budget::Tenant>& payers = showing_->concerned;
  if (payers.empty()) payers.push_back(payer());
  const Duration took = *read_time + showing_->took;
  rates_->charge_equally(payers, static_cast<std::uint64_t>(took.count()), io::Loop::now());
}

void Feed::forget_unshown() {
  owes_progress_ = false;
  for (Unshown& one : unshown_)
    one.is_forgotten = true;
  // A viewer that is being shown it may have called this: go_on_showing() ends it.
  if (showing_) std::exchange(showing_->viewers, {}).clear();
}

void Feed::drop_all() {
  for (const auto& viewer : audience_.all())
    if (viewer->is_attached_) drop(*viewer);
}

void Feed::on_failed(const Error& error) {
  // Usually a ready feed waits for the watch to recover; this one will receive nothing more.
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
  unshown_.push_back({.what = std::exchange(differences_, {})});
  listed_at_.reset();
  forget_unshown();
  fail_with(std::move(error));
  begin_showing();  // Frees unshown_ in slices; shows nothing.
  drop_all();
}

void Feed::fail_with(Error error) {
  phase_ = Phase::Failed;
  error_ = std::move(error);
  touch();
  subscription_.reset();
  changed_.notify_all();
  advanced_.notify_all();
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
