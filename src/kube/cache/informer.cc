#include "kube/cache/informer.h"

#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/cache/object_set.h"
#include "kube/cache/store.h"
#include "kube/limits.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selection.h"
#include "kube/selector.h"
#include "kube/watch/watch_event.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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

Informer::Informer(io::Loop& loop, io::SharedSlice slice, Scope scope, Selection selection,
                   Owner owner)
    : loop_(loop),
      slice_(std::move(slice)),
      scope_(std::move(scope)),
      selection_(std::move(selection)),
      owner_(std::move(owner)) {}

void Informer::add(const std::shared_ptr<Subscriber>& subscriber) {
  linger_.cancel();
  subscriber->informer = shared_from_this();
  subscribers_.push_back(subscriber);
  choose_allowance();
  if (!is_complete_) return;  // on_told() will complete it.
  loop_.post([self = shared_from_this(), subscriber] {
    if (!self->is_complete_ || self->has_ended()) return;
    self->works_.emplace_back(Replay{.subscriber = subscriber});
    self->begin();
  });
}

void Informer::remove_dead() {
  if (delivering_depth_ > 0) return;  // deliver() does it once no loop iterates over the list.
  std::erase_if(subscribers_, [](const auto& subscriber) { return !subscriber->is_alive; });
  if (!subscribers_.empty()) choose_allowance();
  if (!subscribers_.empty() || is_stopped_) return;
  // An informer that is over has nothing to keep, and would go on reading objects that it may not
  // hold.
  linger_ = loop_.after(is_over_ ? Duration::zero() : owner_.linger,
                        [this] { owner_.on_unused(shared_from_this()); });
}

void Informer::choose_allowance() {
  const bool is_bounded =
      std::ranges::all_of(subscribers_, [](const auto& one) { return one->allowance != nullptr; });
  const std::shared_ptr<Allowance> chosen = is_bounded ? subscribers_.back()->allowance : nullptr;
  if (chosen == allowance_ || is_over_) return;
  // The earlier allowance is returned first: both may belong to the same account.
  if (allowance_) (void)allowance_->resize(0);
  allowance_ = chosen;
  // In a later turn of the loop: the subscriber does not expect a call from within subscribe().
  loop_.post([self = shared_from_this()] { (void)self->may_hold(0); });
}

bool Informer::may_hold(std::uint64_t bytes) {
  if (is_over_) return false;
  if (!allowance_ || is_stopped_) return true;
  const Result<> allowed = allowance_->resize(held_bytes() + bytes);
  if (!allowed) give_up(allowed.error());
  return allowed.has_value();
}

std::uint64_t Informer::held_bytes() const {
  const std::uint64_t bytes = store_.size_bytes() + waiting_bytes_ + incoming_bytes_;
  if (works_.empty()) return bytes;
  const auto* const list = std::get_if<List>(&works_.front());
  const bool is_telling = list != nullptr && list->replacement.is_in_place();
  return is_telling ? bytes + list->replacement.untold_bytes() : bytes;
}

void Informer::give_up(const Error& error) {
  is_over_ = true;
  is_complete_ = false;
  has_list_ = false;
  error_ = error;
  deliver([&] {
    for_each_alive([&error](Subscriber& subscriber) {
      subscriber.is_synced = false;
      if (subscriber.handlers.on_failed) subscriber.handlers.on_failed(error);
    });
  });
  works_.emplace_back(Emptying{});
  begin();
  notify_all();
  (void)allowance_->resize(0);
}

void Informer::stop() {
  is_stopped_ = true;
  linger_.cancel();
  notify_all();
}

void Informer::empty(std::function<void()> on_empty) {
  stop();
  is_emptying_ = true;
  works_.emplace_back(Emptying{.on_empty = std::move(on_empty)});
  begin();
}

ObjectPtr Informer::told(const ObjectKey& key) const {
  if (!works_.empty()) {
    const auto* const list = std::get_if<List>(&works_.front());
    const bool is_telling = list != nullptr && list->replacement.is_in_place();
    const Delta* const untold = is_telling ? list->replacement.untold(key) : nullptr;
    if (untold != nullptr) return untold->previous;
  }
  return store_.get(key);
}

bool Informer::is_error_final() const {
  return is_gone_ || is_over_ || (error_ && error_->kind() == ErrorKind::Denied);
}

void Informer::replace(ObjectSet objects, std::string resource_version,
                       std::uint64_t incoming_bytes) {
  if (has_ended()) return;
  given_version_ = resource_version;
  has_list_ = true;
  is_gone_ = false;
  supersede_list();
  works_.emplace_back(std::in_place_type<List>, std::move(objects));
  List& list = std::get<List>(works_.back());
  list.version = std::move(resource_version);
  list.incoming_bytes = incoming_bytes;
  incoming_bytes_ += incoming_bytes;
  begin();
}

void Informer::apply(const Change& change) {
  if (has_ended()) return;
  if (works_.empty()) {
    if (apply_now(change)) given_version_ = resource_version_;
    (void)may_hold(0);
    return;
  }
  if (!change.object->resource_version().empty()) {
    given_version_ = change.object->resource_version();
  }
  const std::uint64_t bytes = change.object->size_bytes();
  works_.emplace_back(Waiting{.change = change, .bytes = bytes});
  waiting_bytes_ += bytes;
  (void)may_hold(0);
  if (waiting_bytes_ > limits::kCacheWaitingBytesMax) finish();
}

bool Informer::apply_now(const Change& change) {
  const bool is_gone = change.type == Change::Type::Deleted || !selection_.matches(*change.object);
  if (is_gone && !store_.get(change.object->key())) return false;
  if (!change.object->resource_version().empty()) {
    resource_version_ = change.object->resource_version();
  }
  const Change own{.type = is_gone ? Change::Type::Deleted : change.type, .object = change.object};
  // Where one change becomes two deltas, it was read once.
  Duration read_time = change.read_time;
  deliver([&] {
    store_.apply(own, [&](Delta delta) {
      delta.read_time = std::exchange(read_time, Duration::zero());
      tell(std::move(delta));
    });
  });
  return true;
}

void Informer::advance(std::string_view resource_version) {
  if (has_ended() || !has_list_ || is_known_at(resource_version, given_version_)) return;
  given_version_ = resource_version;
  if (works_.empty()) return advance_now(resource_version);
  if (auto* const last = std::get_if<Progress>(&works_.back()); last != nullptr && !is_stepping_) {
    last->version = resource_version;
  } else {
    works_.emplace_back(Progress{.version = std::string(resource_version)});
  }
}

void Informer::advance_now(std::string_view resource_version) {
  resource_version_ = resource_version;
  deliver([this] { tell_progress(/*is_list=*/false); });
}

void Informer::copy(std::string namespace_, Selects selects, OnCopied on_copied) {
  works_.emplace_back(Copy{.namespace_ = std::move(namespace_),
                           .selects = std::move(selects),
                           .on_copied = std::move(on_copied)});
  begin();
}

void Informer::lose() {
  if (has_ended() || is_gone_) return;
  is_gone_ = true;
  has_list_ = false;
  // New subscribers wait until the resource is back, or learn that it is gone.
  is_complete_ = false;
  supersede_list();
  works_.emplace_back(std::in_place_type<List>, ObjectSet());
  begin();
  notify_all();
}

void Informer::supersede_list() {
  const auto superseded = std::ranges::find_if(works_, [](const Work& work) {
    const auto* const list = std::get_if<List>(&work);
    return list != nullptr && !list->replacement.has_begun();
  });
  if (superseded == works_.end()) return;
  List& list = std::get<List>(*superseded);
  incoming_bytes_ -= list.incoming_bytes;
  drop_in_slices(loop_, slice_, list.replacement.take_objects());
  // The new list includes the changes to the superseded one, whose state can no longer be copied.
  std::vector<OnCopied> refused;
  for (auto position = works_.erase(superseded); position != works_.end();) {
    if (auto* const waiting = std::get_if<Waiting>(&*position)) {
      waiting_bytes_ -= waiting->bytes;
    } else if (auto* const copy = std::get_if<Copy>(&*position)) {
      refused.push_back(std::move(copy->on_copied));
    } else if (!std::holds_alternative<Progress>(*position)) {
      ++position;
      continue;
    }
    position = works_.erase(position);
  }
  for (const OnCopied& on_copied : refused)
    on_copied(std::nullopt);
}

void Informer::begin() {
  if (std::exchange(is_working_, true)) return;
  loop_.spawn(work(shared_from_this()));
}

io::Task<void> Informer::work(std::shared_ptr<Informer> self) {
  // If a subscriber throws, this task ends, and a new one continues after that call.
  struct AtEnd {
    Informer& informer;
    ~AtEnd() {
      informer.is_working_ = false;
      if (informer.works_.empty()) return;
      informer.loop_.post([again = informer.shared_from_this()] { again->begin(); });
    }
  };
  const AtEnd at_end{*self};
  const io::Loop::Activity activity(
      self->loop_, "cache of " + self->scope().resource.qualified_plural() + ": delivery");
  while (!self->works_.empty()) {
    co_await self->slice_.turn();
    self->deliver([&self] {
      while (!self->works_.empty() && !self->slice_.is_used_up_by(self->step())) {
      }
    });
  }
}

void Informer::finish() {
  if (is_stepping_) return;
  deliver([this] {
    while (!works_.empty())
      (void)step();
  });
}

std::uint64_t Informer::step() {
  if (is_stopped_ && !is_emptying_) {
    // The cache is stopping, and its owner may be gone.
    works_.clear();
    return 1;
  }
  struct Stepping {
    bool& is_stepping;
    explicit Stepping(bool& is) : is_stepping(is) { is_stepping = true; }
    ~Stepping() { is_stepping = false; }
  };
  const Stepping stepping(is_stepping_);
  const auto front = works_.begin();
  const std::uint64_t units = units_of(*front);
  const bool has_more = std::visit([this](auto& work) { return step(work); }, *front);
  if (!has_more) works_.erase(front);
  return units;
}

std::uint64_t Informer::units_of(const Work& work) const {
  const std::uint64_t told = 1 + subscribers_.size();
  if (std::holds_alternative<Copy>(work)) return 1;
  if (std::holds_alternative<Emptying>(work)) return limits::kCacheFreedObjectCost;
  const auto* const list = std::get_if<List>(&work);
  if (list == nullptr) return told;
  if (list->replacement.is_told()) return limits::kCacheFreedObjectCost;
  return list->replacement.is_in_place() ? told : 1;
}

bool Informer::step(List& list) {
  Store::Replacement& replacement = list.replacement;
  if (has_ended() && !replacement.is_in_place()) replacement.give_up();
  const bool was_in_place = replacement.is_in_place();
  const bool was_told = replacement.is_told();
  const bool has_more = replacement.step(store_, [this](Delta delta) {
    delta.is_from_list = true;
    tell(std::move(delta));
  });
  if (!was_in_place && replacement.is_in_place()) on_in_place(list);
  if (!was_told && replacement.is_told()) on_told(list);
  return has_more;
}

void Informer::on_in_place(const List& list) {
  incoming_bytes_ -= list.incoming_bytes;
  if (has_ended()) return;
  if (list.version.empty()) {
    // Subscribers learn this before they could take the empty state for a list without objects.
    for_each_synced([](const Cache::Handlers& handlers) {
      if (handlers.on_gone) handlers.on_gone();
    });
    return;
  }
  resource_version_ = list.version;
  for_each_synced([](const Cache::Handlers& handlers) {
    if (handlers.on_list) handlers.on_list();
  });
}

void Informer::on_told(const List& list) {
  if (list.version.empty() || has_ended()) return;
  is_complete_ = !is_gone_;
  const auto next = std::next(works_.begin());
  for (const auto& subscriber : subscribers_)
    if (subscriber->is_alive && !subscriber->is_synced && is_complete_)
      works_.emplace(next, Replay{.subscriber = subscriber});
  tell_progress(/*is_list=*/true);
  (void)may_hold(0);
}

bool Informer::step(Waiting& waiting) {
  waiting_bytes_ -= std::exchange(waiting.bytes, 0);
  // The change counts as handled even if a subscriber throws.
  const Change change = std::exchange(waiting.change, {});
  if (change.object && !has_ended()) {
    (void)apply_now(change);
    (void)may_hold(0);
  }
  return false;
}

bool Informer::step(Progress& progress) {
  if (!has_ended() && !is_gone_) advance_now(std::exchange(progress.version, {}));
  return false;
}

bool Informer::step(Replay& replay) {
  const std::shared_ptr<Subscriber> subscriber = replay.subscriber;
  const bool can_begin = is_complete_ || replay.last;
  if (!can_begin || subscriber->is_synced || !subscriber->is_alive || has_ended()) return false;
  if (subscriber->handlers.on_delta) {
    if (ObjectPtr object = store_.next({}, replay.last.get())) {
      replay.last = object;
      subscriber->handlers.on_delta({.type = Delta::Type::Added, .object = std::move(object)});
      return true;
    }
  }
  subscriber->is_synced = true;
  subscriber->changed.notify_all();
  if (subscriber->handlers.on_synced) subscriber->handlers.on_synced();
  return false;
}

bool Informer::step(Copy& copy) {
  if (!has_ended()) {
    if (const ObjectPtr object = store_.next(copy.namespace_, copy.last.get())) {
      copy.last = object;
      if (copy.selects(*object)) copy.objects.insert(copy.objects.end(), object);
      return true;
    }
  }
  const OnCopied on_copied = std::exchange(copy.on_copied, {});
  if (!on_copied) return false;
  if (has_ended()) {
    drop_in_slices(loop_, slice_, std::move(copy.objects));
    on_copied(std::nullopt);
  } else {
    on_copied(std::move(copy.objects));
  }
  return false;
}

bool Informer::step(Emptying& emptying) {
  const auto tell_owner = [this](const Delta& delta) { owner_.on_delta(*this, delta); };
  if (store_.erase_first(tell_owner)) return true;
  if (const auto on_empty = std::exchange(emptying.on_empty, {})) on_empty();
  return false;
}

void Informer::set_error(std::optional<Error> error) {
  if (has_ended() || (!error && !error_)) return;
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
  struct Depth {
    int& depth;
    explicit Depth(int& of) : depth(of) { ++depth; }
    ~Depth() { --depth; }
  };
  {
    const Depth within(delivering_depth_);
    calls();
  }
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

}  // namespace hangar::kube
