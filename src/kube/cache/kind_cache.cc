#include "kube/cache/kind_cache.h"

#include "base/backoff.h"
#include "base/metrics.h"
#include "base/time.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/cache/informer.h"
#include "kube/cache/ration.h"
#include "kube/cache/reflector.h"
#include "kube/cache/store.h"
#include "kube/cache/watch_plan.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selection.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

// A refused watch that would be better than the present ones is tried again: soon at first, because
// an API server that was just starting may have refused it.
constexpr ExponentialBackoff kDeniedRetry{.min = std::chrono::seconds(30),
                                          .max = std::chrono::minutes(10)};

MetricLabels labels_of(const Resource& resource) {
  return {{"group", resource.group}, {"resource", resource.plural}};
}

bool is_same_state(const Object& left, const Object& right) {
  return left.uid() == right.uid() && left.resource_version() == right.resource_version();
}

// The scope of a watch that feeds an informer of that scope alone.
Scope watch_of(Scope scope) {
  scope.keep = Keep::Whole;
  return scope;
}

}  // namespace

KindCache::KindCache(std::shared_ptr<Reflector::Platform> platform, const Resource& resource,
                     const Cache::Options& options, std::function<void()> on_unused)
    : platform_(std::move(platform)),
      options_(options),
      on_unused_(std::move(on_unused)),
      objects_(platform_->metrics.gauge("hangar_cache_objects", "Objects held in watch caches.",
                                        labels_of(resource))),
      bytes_(platform_->metrics.gauge("hangar_cache_bytes", "Heap bytes of the objects in caches.",
                                      labels_of(resource))) {
  if (resource != secret_resource()) packer_.emplace(options.packing);
}

void KindCache::subscribe(const Scope& scope, const std::shared_ptr<Subscriber>& subscriber) {
  auto known = informers_.find(scope);
  if (known != informers_.end() && known->second.informer->is_over()) {
    // It receives nothing more. This subscriber's allowance may suffice.
    drop(known);
    known = informers_.end();
  }
  const bool is_new = known == informers_.end();
  Fed& fed = is_new ? add(scope) : known->second;
  fed.informer->add(subscriber);
  if (!is_new) return;
  if (fed.is_alone) {
    lead(fed, watch_of(scope));
  } else if (!feed_from_present(fed)) {
    return plan();
  }
  start_new();
}

void KindCache::kick() {
  for (const auto& [scope, reflector] : reflectors_)
    reflector->kick();
}

void KindCache::stop() {
  const auto keep = shared_from_this();
  is_stopped_ = true;
  review_.cancel();
  for (const auto& [scope, reflector] : std::exchange(reflectors_, {}))
    reflector->stop();
  for (const auto& [scope, fed] : informers_)
    fed.informer->stop();
  objects_.add(-static_cast<double>(object_count_));
  bytes_.add(-static_cast<double>(object_bytes_));
}

Cache::Statistics KindCache::statistics() const {
  return {.watches = reflectors_.size(), .objects = object_count_, .bytes = object_bytes_};
}

bool KindCache::is_denied(const Scope& watch) const {
  const auto known = denied_.find(watch);
  return known != denied_.end() &&
         io::Loop::now() - known->second.at < kDeniedRetry.delay(known->second.earlier);
}

KindCache::Fed& KindCache::add(const Scope& scope) {
  Result<Selection> selection = Informer::selection_of(scope);
  const bool is_alone = !selection || selection->has_remote_terms();
  if (!selection) selection = Selection({scope.namespace_, {}}, {}, {});
  const auto informer = std::make_shared<Informer>(
      platform_->loop, platform_->slice, scope, *std::move(selection),
      Informer::Owner{
          .linger = options_.linger,
          .on_delta = [this](const Informer& of, const Delta& delta) { on_delta(of, delta); },
          .on_unused = [this](const std::shared_ptr<Informer>& of) { remove(of); }});
  audience_.add(informer);
  Fed& fed = informers_[scope];
  fed = {.informer = informer, .is_alone = is_alone};
  return fed;
}

void KindCache::remove(const std::shared_ptr<Informer>& informer) {
  const auto keep = shared_from_this();
  const auto found = informers_.find(informer->scope());
  if (is_stopped_ || found == informers_.end() || found->second.informer != informer) return;
  drop(found);
  if (informers_.empty()) return on_unused_();
  review_in(options_.narrow_after / 5);  // Scopes that end at the same time are reviewed together.
}

void KindCache::drop(std::map<Scope, Fed>::iterator position) {
  const Fed fed = std::move(position->second);
  informers_.erase(position);
  for (const auto& reflector : {fed.by, fed.next})
    if (reflector) reflector->leave(*fed.informer);
  // Until it is empty, it still counts as an owner of its objects.
  fed.informer->empty(
      [keep = shared_from_this(), informer = fed.informer] { keep->audience_.remove(*informer); });
  stop_unused();
}

void KindCache::plan() {
  if (is_stopped_) return;
  const auto keep = shared_from_this();
  const Instant now = io::Loop::now();
  // Forget refusals of watches that have not been tried for long.
  std::erase_if(denied_,
                [now](const auto& one) { return now - one.second.at >= 2 * kDeniedRetry.max; });
  std::set<Scope> denied;
  Duration retry = kDeniedRetry.max;
  for (const auto& [scope, denial] : denied_) {
    if (!is_denied(scope)) continue;
    denied.insert(scope);
    retry = std::min(retry, Duration(denial.at + kDeniedRetry.delay(denial.earlier) - now));
  }

  std::vector<Scope> wanted;
  bool lacks = false;
  for (const auto& [scope, fed] : informers_) {
    if (fed.is_alone) continue;
    wanted.push_back(watch_of(scope));
    const Reflector* const watch = fed.planned().get();
    lacks = lacks || watch == nullptr ||
            (watch->scope() != wanted.back() && denied.contains(watch->scope()));
  }
  const std::map<Scope, Scope> plan = plan_watches(wanted, denied);
  std::set<Scope> watches;
  for (const auto& [scope, watch] : plan)
    watches.insert(watch);

  if (!denied.empty()) review_in(retry);
  // A scope without a usable watch, or a plan with fewer watches, is acted on at once. A plan with
  // narrower watches must have been better for some time: subscribers come and go.
  if (lacks || watches.size() < watches_.size()) return follow(plan);
  if (watches == watches_) {
    narrower_since_.reset();
    return;
  }
  if (!narrower_since_) narrower_since_ = now;
  if (now - *narrower_since_ >= options_.narrow_after) return follow(plan);
  review_in(options_.narrow_after);
}

bool KindCache::feed_from_present(Fed& fed) {
  const auto found = std::ranges::find_if(watches_, [&](const Scope& watch) {
    return !is_denied(watch) && covers(watch, fed.informer->scope());
  });
  if (found == watches_.end()) return false;
  lead(fed, Scope(*found));
  return true;
}

void KindCache::follow(const std::map<Scope, Scope>& plan) {
  narrower_since_.reset();
  watches_.clear();
  for (const auto& [scope, watch] : plan)
    watches_.insert(watch);
  for (auto& [scope, fed] : informers_)
    if (!fed.is_alone) lead(fed, plan.at(watch_of(scope)));
  stop_unused();
  start_new();
}

void KindCache::lead(Fed& fed, const Scope& watch) {
  if (fed.planned() && fed.planned()->scope() == watch) return;
  if (fed.next) std::exchange(fed.next, nullptr)->leave(*fed.informer);
  if (fed.by && fed.by->scope() == watch) return;
  std::shared_ptr<Reflector>& reflector = reflectors_[watch];
  if (reflector == nullptr) {
    reflector = std::make_shared<Reflector>(
        platform_, watch,
        Reflector::Owner{
            .shared = [this](ObjectPtr object,
                             Detail detail) { return shared(std::move(object), detail); },
            .kept = [this](const Informer& informer,
                           ObjectPtr object) { return kept(informer, std::move(object)); },
            .on_settled = [this](Reflector& by, Informer& informer) { on_settled(by, informer); },
            .on_use = [this](Reflector& of, bool is_usable) { on_use(of, is_usable); }});
  }
  fed.next = reflector;
  reflector->join(fed.informer);
}

// Called after all informers that the first list is to complete have joined.
void KindCache::start_new() {
  const auto present = reflectors_;
  for (const auto& [scope, reflector] : present)
    if (!reflector->is_started() && !reflector->is_stopped()) reflector->start();
}

void KindCache::stop_unused() {
  std::erase_if(reflectors_, [](const auto& one) {
    const auto reflector = one.second;
    if (reflector->is_unused()) reflector->stop();
    return reflector->is_stopped();
  });
  std::erase_if(watches_, [this](const Scope& watch) { return !reflectors_.contains(watch); });
}

void KindCache::review_in(Duration delay) {
  review_ = platform_->loop.after(delay, [this] { plan(); });
}

ObjectPtr KindCache::shared(ObjectPtr object, Detail detail) {
  if (object->resource_version().empty()) return object;
  bool is_new = true;
  for (const auto& informer : audience_.concerned_by(object->key())) {
    if (detail == Detail::Whole && informer->scope().detail == Detail::Metadata) continue;
    ObjectPtr known = informer->store().get(object->key());
    if (known == nullptr) continue;
    if (!known->is_bare() && is_same_state(*known, *object)) return known;
    is_new = false;
  }
  return packer_ ? packer_->pack(std::move(object), is_new) : object;
}

ObjectPtr KindCache::kept(const Informer& informer, ObjectPtr object) const {
  if (informer.scope().keep == Keep::Whole || !options_.ration) return object;
  ObjectPtr known = informer.store().get(object->key());
  // What is held of a state does not change: its subscribers would not learn of it.
  if (known != nullptr && is_same_state(*known, *object)) return known;
  return options_.ration->hold_or_bare(std::move(object));
}

void KindCache::on_settled(Reflector& reflector, Informer& informer) {
  const auto found = informers_.find(informer.scope());
  if (found == informers_.end()) return;
  Fed& fed = found->second;
  if (fed.by && fed.by.get() != &reflector) fed.by->leave(informer);
  fed.by = reflector.shared_from_this();
  if (fed.next == fed.by) fed.next.reset();
  stop_unused();
}

void KindCache::on_use(Reflector& reflector, bool is_usable) {
  const Scope& watch = reflector.scope();
  const bool was_denied = is_denied(watch);
  if (is_usable) {
    denied_.erase(watch);
  } else if (!was_denied) {
    const auto [denial, is_first] = denied_.try_emplace(watch);
    denial->second.at = io::Loop::now();
    if (!is_first) ++denial->second.earlier;
  }
  if (is_usable == was_denied) plan();
}

void KindCache::on_delta(const Informer& informer, const Delta& delta) {
  using enum Delta::Type;
  if (is_stopped_) return;
  if (delta.type != Deleted) count(informer, delta.object, 1);
  if (delta.previous) count(informer, delta.previous, -1);
}

// Objects are shared: each counts once as long as any informer has it.
void KindCache::count(const Informer& informer, const ObjectPtr& object, int sign) {
  const auto others = audience_.concerned_by(object->key());
  const bool is_held = std::ranges::any_of(others, [&](const auto& other) {
    return other.get() != &informer && other->told(object->key()) == object;
  });
  if (is_held) return;
  const auto bytes = static_cast<std::ptrdiff_t>(object->resident_bytes());
  object_count_ += static_cast<std::size_t>(sign);
  object_bytes_ += static_cast<std::size_t>(sign * bytes);
  objects_.add(sign);
  bytes_.add(static_cast<double>(sign * bytes));
}

}  // namespace hangar::kube
