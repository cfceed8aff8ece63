#include "kube/cache/informer.h"

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selection.h"
#include "kube/selector.h"
#include "kube/watch/watch_event.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

bool is_known_at(std::string_view one, std::string_view other) {
  const auto version = parse_version(one);
  const auto known = parse_version(other);
  return version && known && *version <= *known;
}

Result<Selection> Informer::selection_of(const Scope& scope) {
  LabelSelector labels = HANGAR_TRY(LabelSelector::parse(scope.label_selector));
  FieldSelector fields = HANGAR_TRY(FieldSelector::parse(scope.field_selector));
  return Selection({scope.namespace_, {}}, std::move(labels), std::move(fields));
}

Informer::Informer(io::Loop& loop, Scope scope, Selection selection, Owner owner)
    : loop_(loop),
      scope_(std::move(scope)),
      selection_(std::move(selection)),
      owner_(std::move(owner)) {}

void Informer::add(const std::shared_ptr<Subscriber>& subscriber) {
  linger_.cancel();
  subscriber->informer = shared_from_this();
  subscribers_.push_back(subscriber);
  choose_allowance();
  if (!is_complete_) return;  // replace() will complete it.
  loop_.post([self = shared_from_this(), subscriber] {
    if (self->is_complete_ && !self->is_stopped_) {
      self->deliver([&] { self->replay(subscriber); });
    }
  });
}

void Informer::remove_dead() {
  if (delivering_depth_ > 0) return;  // deliver() does it once no loop iterates over the list.
  std::erase_if(subscribers_, [](const auto& subscriber) { return !subscriber->is_alive; });
  if (!subscribers_.empty()) choose_allowance();
  if (!subscribers_.empty() || is_stopped_) return;
  // One that is over has nothing to keep, and would go on reading what it may not hold.
  linger_ = loop_.after(is_over_ ? Duration::zero() : owner_.linger,
                        [this] { owner_.on_unused(shared_from_this()); });
}

void Informer::choose_allowance() {
  const bool is_bounded =
      std::ranges::all_of(subscribers_, [](const auto& one) { return one->allowance != nullptr; });
  const std::shared_ptr<Allowance> chosen = is_bounded ? subscribers_.back()->allowance : nullptr;
  if (chosen == allowance_ || is_over_) return;
  // The earlier one gives back first: both may belong to the same account.
  if (allowance_) (void)allowance_->resize(0);
  allowance_ = chosen;
  // In a later turn of the loop: the subscriber does not expect a call from within subscribe().
  loop_.post([self = shared_from_this()] { (void)self->may_hold(0); });
}

bool Informer::may_hold(std::uint64_t bytes) {
  if (is_over_) return false;
  if (!allowance_ || is_stopped_) return true;
  const Result<> allowed = allowance_->resize(store_.size_bytes() + bytes);
  if (!allowed) give_up(allowed.error());
  return allowed.has_value();
}

void Informer::give_up(const Error& error) {
  is_over_ = true;
  is_complete_ = false;
  error_ = error;
  deliver([&] {
    for_each_alive([&error](Subscriber& subscriber) {
      subscriber.is_synced = false;
      if (subscriber.handlers.on_failed) subscriber.handlers.on_failed(error);
    });
    store_.replace({}, [this](const Delta& delta) { owner_.on_delta(*this, delta); });
  });
  notify_all();
  (void)allowance_->resize(0);
}

void Informer::stop() {
  is_stopped_ = true;
  linger_.cancel();
  notify_all();
}

bool Informer::is_error_final() const {
  return is_gone_ || is_over_ || (error_ && error_->kind() == ErrorKind::Denied);
}

void Informer::replace(std::vector<ObjectPtr> objects, std::string resource_version) {
  if (is_stopped_ || is_over_) return;
  resource_version_ = std::move(resource_version);
  // Subscribers that are added during the callbacks below are completed by add().
  const std::vector<std::shared_ptr<Subscriber>> present = subscribers_;
  deliver([&] {
    store_.replace(std::move(objects), [this](Delta delta) {
      delta.is_from_list = true;
      tell(std::move(delta));
    });
    is_complete_ = true;
    is_gone_ = false;
    tell_progress(/*is_list=*/true);
    for (const auto& subscriber : present)
      replay(subscriber);
  });
  (void)may_hold(0);
}

void Informer::apply(const Change& change) {
  if (is_stopped_ || is_over_) return;
  const bool is_gone = change.type == Change::Type::Deleted || !selection_.matches(*change.object);
  if (is_gone && !store_.get(change.object->key())) return;
  if (!change.object->resource_version().empty()) {
    resource_version_ = change.object->resource_version();
  }
  const Change own{.type = is_gone ? Change::Type::Deleted : change.type, .object = change.object};
  deliver([&] { store_.apply(own, [this](const Delta& delta) { tell(delta); }); });
  (void)may_hold(0);
}

void Informer::advance(std::string_view resource_version) {
  if (is_stopped_ || !is_complete_ || is_known_at(resource_version, resource_version_)) return;
  resource_version_ = resource_version;
  deliver([this] { tell_progress(/*is_list=*/false); });
}

void Informer::lose() {
  if (is_stopped_ || is_gone_ || is_over_) return;
  is_gone_ = true;
  // New subscribers wait until the resource is back, or learn that it is gone.
  is_complete_ = false;
  deliver([&] {
    store_.replace({}, [this](Delta delta) {
      delta.is_from_list = true;
      tell(std::move(delta));
    });
    for_each_synced([](const Cache::Handlers& handlers) {
      if (handlers.on_gone) handlers.on_gone();
    });
  });
  notify_all();
}

void Informer::set_error(std::optional<Error> error) {
  if (is_stopped_ || is_over_ || (!error && !error_)) return;
  error_ = std::move(error);
  notify_all();
  if (!error_) return;
  deliver([this, failed = *error_] {
    for_each_alive([&failed](const Subscriber& subscriber) {
      if (subscriber.handlers.on_failed) subscriber.handlers.on_failed(failed);
    });
  });
}

void Informer::notify_all() {
  for (const auto& subscriber : subscribers_)
    subscriber->changed.notify_all();
}

// Runs `calls`, which call subscribers: they may unsubscribe, subscribe and stop the
// cache meanwhile.
void Informer::deliver(const auto& calls) {
  const auto keep = shared_from_this();
  ++delivering_depth_;
  calls();
  --delivering_depth_;
  if (std::ranges::any_of(subscribers_, [](const auto& one) { return !one->is_alive; })) {
    remove_dead();
  }
}

void Informer::tell(Delta delta) {
  owner_.on_delta(*this, delta);
  for_each_synced([&delta](const Cache::Handlers& handlers) {
    if (handlers.on_delta) handlers.on_delta(delta);
  });
}

void Informer::for_each_alive(const auto& call) {
  // By index: a subscriber that is added from a callback is appended, and is not synced.
  for (std::size_t position = 0; position < subscribers_.size(); ++position) {
    const std::shared_ptr<Subscriber> subscriber = subscribers_[position];
    if (subscriber->is_alive && !is_stopped_) call(*subscriber);
  }
}

void Informer::for_each_synced(const auto& call) {
  for_each_alive([&call](const Subscriber& subscriber) {
    if (subscriber.is_synced) call(subscriber.handlers);
  });
}

void Informer::tell_progress(bool is_list) {
  for_each_synced([&](const Cache::Handlers& handlers) {
    if (handlers.on_progress) handlers.on_progress(resource_version_, is_list);
  });
}

void Informer::replay(const std::shared_ptr<Subscriber>& subscriber) {
  if (subscriber->is_synced || !subscriber->is_alive) return;
  if (subscriber->handlers.on_delta) {
    for (ObjectPtr& object : store_.list({})) {
      if (!subscriber->is_alive || is_stopped_) return;
      subscriber->handlers.on_delta({.type = Delta::Type::Added, .object = std::move(object)});
    }
  }
  if (!subscriber->is_alive || is_stopped_) return;
  subscriber->is_synced = true;
  subscriber->changed.notify_all();
  if (subscriber->handlers.on_synced) subscriber->handlers.on_synced();
}

}  // namespace hangar::kube
