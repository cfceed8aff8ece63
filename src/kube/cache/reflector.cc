#include "kube/cache/reflector.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/part.h"
#include "io/task.h"
#include "kube/cache/informer.h"
#include "kube/cache/object_set.h"
#include "kube/cache/watch_plan.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/watch/watch_event.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

// The same as for the watch itself.
constexpr ExponentialBackoff kListBackoff{.min = std::chrono::milliseconds(800),
                                          .max = std::chrono::seconds(30)};

// Longer than an API server needs to read its roles. If a right was really revoked, informers stay
// unchanged for this long.
constexpr std::chrono::seconds kRefusalMayPass{30};

// For reports of a blocked loop. A watch may be shared: it does not work for its first user.
std::string in_words(const Scope& scope) {
  std::string text = "watch of " + scope.resource.qualified_plural();
  if (!scope.namespace_.empty()) text += " in " + scope.namespace_;
  return text;
}

// What an object in a list that is being read costs besides itself.
constexpr std::size_t kHeldBytes = 128;

MetricLabels labels_of(const Scope& scope) {
  return {{"group", scope.resource.group}, {"resource", scope.resource.plural}};
}

}  // namespace

Reflector::Reflector(std::shared_ptr<Platform> platform, Scope scope, Owner owner)
    : platform_(std::move(platform)),
      scope_(std::move(scope)),
      owner_(std::move(owner)),
      watcher_(platform_->loop, platform_->client, scope_, platform_->traits, *this),
      relists_(platform_->metrics.counter(
          "hangar_cache_relists_total",
          "Whole lists after the first one, because a watch could not be resumed.",
          labels_of(scope_))),
      watches_(platform_->metrics.gauge("hangar_cache_watches", "Watches that are kept open.",
                                        labels_of(scope_))) {}

void Reflector::start() {
  is_started_ = true;
  watches_.add(1);
  platform_->loop.spawn(run(shared_from_this()));
}

void Reflector::stop() {
  if (is_stopped()) return;
  if (is_started_) watches_.add(-1);
  stop_.request_stop();
  for (const MemberPtr& member : members())
    leave(*member->informer);
}

io::Task<void> Reflector::run(std::shared_ptr<Reflector> self) {
  const io::Loop::Activity activity(self->platform_->loop, in_words(self->scope_));
  co_await self->watcher_.run(self->stop_.get_token());
}

void Reflector::join(const std::shared_ptr<Informer>& informer) {
  if (members_.contains(informer.get())) return;
  const auto member = std::make_shared<Member>();
  member->informer = informer;
  member->joined_at = list_count_;
  members_.emplace(informer.get(), member);
  audience_.add(member);
  platform_->loop.post([self = shared_from_this(), member] {
    if (self->is_member(member)) self->welcome(member);
  });
}

void Reflector::welcome(const MemberPtr& member) {
  const bool is_awaited = member->joined_at < list_count_ || !is_streaming_;
  if (member->phase != Member::Phase::AwaitsList) return;
  if (is_awaited) {
    if (error_ && !member->informer->has_list()) member->informer->set_error(error_);
  } else if (!copy_from_another(member)) {
    start_listing(member);
  }
}

void Reflector::leave(const Informer& informer) {
  const auto found = members_.find(&informer);
  if (found == members_.end()) return;
  const MemberPtr member = found->second;
  member->listing.request_stop();
  drop_in_slices(platform_->loop, platform_->slice, std::exchange(member->incoming, {}));
  audience_.remove(*member);
  members_.erase(found);
}

void Reflector::on_list_begin() {
  ++list_count_;
  is_streaming_ = false;
  for (const auto& [informer, member] : members_) {
    forget_incoming(*member);
    if (member->phase != Member::Phase::Listing) continue;
    member->phase = Member::Phase::AwaitsList;
    member->listing.request_stop();
    member->meanwhile.clear();
  }
}

void Reflector::on_listed(ObjectPtr object) {
  const auto keep = shared_from_this();
  const std::vector<MemberPtr> concerned = audience_.concerned_by(object->key());
  std::vector<MemberPtr> selected;
  for (const MemberPtr& member : concerned) {
    // This list does not complete a member that joined after it had begun.
    if (member->joined_at == list_count_ || member->informer->is_over()) continue;
    if (selects(*member, *object)) {
      selected.push_back(member);
    } else {
      unlist(*member, object->key());  // An earlier state of it may have been selected.
    }
  }
  if (selected.empty()) return;
  object = to_hold(std::move(object), selected);
  for (const MemberPtr& member : selected)
    take_in(*member, object);
}

void Reflector::on_unlisted(const ObjectKey& key) {
  for (const MemberPtr& member : audience_.concerned_by(key))
    if (member->joined_at < list_count_) unlist(*member, key);
}

void Reflector::unlist(Member& member, const ObjectKey& key) {
  const auto found = member.incoming.find(ByKey::view(key));
  if (found != member.incoming.end()) member.incoming.erase(found);
}

void Reflector::take_in(Member& member, ObjectPtr object) {
  object = owner_.kept(*member.informer, std::move(object));
  if (add_incoming(member, *object)) {
    put(member.incoming, std::move(object));
  } else {
    forget_incoming(member);
  }
}

bool Reflector::add_incoming(Member& member, const Object& object) {
  Informer& informer = *member.informer;
  if (informer.store().get(object.key()).get() != &object) {
    member.incoming_bytes += object.size_bytes() + kHeldBytes;
  }
  return informer.may_hold(member.incoming_bytes);
}

void Reflector::forget_incoming(Member& member) {
  drop_in_slices(platform_->loop, platform_->slice, std::exchange(member.incoming, {}));
  if (std::exchange(member.incoming_bytes, 0) > 0) (void)member.informer->may_hold(0);
}

void Reflector::replace(Member& member, std::string resource_version) {
  member.informer->replace(std::exchange(member.incoming, {}), std::move(resource_version),
                           std::exchange(member.incoming_bytes, 0));
}

void Reflector::on_replace(std::string resource_version) {
  if (is_stopped()) return;
  const auto keep = shared_from_this();
  // Versions that are not numbers do not tell which of two watches knows more. Such a watch can
  // serve only informers that have its own scope.
  const bool is_comparable = parse_version(resource_version).has_value();
  if (!is_comparable && !std::ranges::all_of(members(), [this](const MemberPtr& member) {
        return has_all(*member);
      })) {
    return owner_.on_use(*this, /*is_usable=*/false);
  }
  resource_version_ = std::move(resource_version);
  is_streaming_ = true;
  has_worked_ = true;
  relists_.add(static_cast<double>(watcher_.relist_count() - counted_relists_));
  counted_relists_ = watcher_.relist_count();
  owner_.on_use(*this, /*is_usable=*/true);

  for (const MemberPtr& member : members()) {
    if (is_stopped()) return;
    if (!is_member(member)) continue;
    const bool is_awaited = member->joined_at < list_count_;
    // A member that waits for this list but may know more gets a list of its own scope, which is
    // later. So does one that has joined after this list began, unless another member has its
    // objects.
    if (is_awaited && member->phase == Member::Phase::Fed) {
      member->may_be_ahead = false;
      replace(*member, resource_version_);
    } else if (is_awaited && !is_ahead_of(*member->informer, resource_version_)) {
      settle(member);
      replace(*member, resource_version_);
    } else if (is_awaited) {
      start_listing(member);
    } else if (member->phase == Member::Phase::AwaitsList && !copy_from_another(member)) {
      start_listing(member);
    }
  }
}

void Reflector::on_change(Change change) {
  if (is_stopped()) return;
  const auto keep = shared_from_this();
  if (!change.object->resource_version().empty()) {
    resource_version_ = change.object->resource_version();
  }
  // Includes members whose labels the object lacks, or no longer has.
  const std::vector<MemberPtr> concerned = audience_.concerned_by(change.object->key());
  if (concerned.empty()) return;
  change.read_time /= static_cast<Duration::rep>(concerned.size());
  change.object = to_hold(std::move(change.object), concerned);
  for (const MemberPtr& member : concerned) {
    if (is_stopped()) return;
    if (is_member(member)) feed(*member, change);
  }
}

void Reflector::feed(Member& member, Change change) {
  if (change.type != Change::Type::Deleted) {
    change.object = owner_.kept(*member.informer, std::move(change.object));
  }
  if (member.phase == Member::Phase::Listing && add_incoming(member, *change.object)) {
    member.meanwhile.push_back(std::move(change));
    return;
  }
  if (member.phase != Member::Phase::Fed) return;
  if (member.may_be_ahead &&
      is_known_at(change.object->resource_version(), member.informer->given_version())) {
    return;
  }
  member.informer->apply(change);
}

void Reflector::on_bookmark(std::string resource_version) {
  if (is_stopped()) return;
  const auto keep = shared_from_this();
  resource_version_ = std::move(resource_version);
  for (const MemberPtr& member : members()) {
    if (is_stopped()) return;
    if (!is_member(member) || member->phase != Member::Phase::Fed) continue;
    member->may_be_ahead =
        member->may_be_ahead && is_known_at(resource_version_, member->informer->given_version());
    member->informer->advance(resource_version_);
  }
}

void Reflector::on_gone() {
  if (is_stopped()) return;
  const auto keep = shared_from_this();
  is_streaming_ = false;
  platform_->log.warning("resource is gone",
                         {{"resource", scope_.resource.plural}, {"group", scope_.resource.group}});
  for (const MemberPtr& member : members()) {
    if (is_stopped()) return;
    if (is_member(member)) member->informer->lose();
  }
}

void Reflector::on_health(std::optional<Error> error) {
  if (is_stopped() || (!error && !error_)) return;
  const auto keep = shared_from_this();
  const bool is_news = !error || !error_ || error->message() != error_->message();
  if (is_news && error) {
    platform_->log.warning("watch failed", {{"resource", scope_.resource.plural},
                                            {"group", scope_.resource.group},
                                            {"namespace", scope_.namespace_},
                                            {"error", error->message()}});
  } else if (is_news) {
    platform_->log.info("watch works again", {{"resource", scope_.resource.plural},
                                              {"group", scope_.resource.group},
                                              {"namespace", scope_.namespace_}});
  }
  error_ = std::move(error);
  if (!error_) {
    refused_since_.reset();
  } else if (error_->kind() == ErrorKind::Denied && !refused_since_) {
    refused_since_ = io::Loop::now();
  }
  // Informers that a narrower watch will feed need not learn of this error.
  if (is_refused()) owner_.on_use(*this, /*is_usable=*/false);
  for (const MemberPtr& member : members()) {
    if (is_stopped()) return;
    if (!is_member(member)) continue;
    const bool is_fed_elsewhere =
        member->phase != Member::Phase::Fed && member->informer->has_list();
    if (!is_fed_elsewhere) member->informer->set_error(error_);
  }
}

bool Reflector::is_refused() const {
  if (!error_ || error_->kind() != ErrorKind::Denied) return false;
  return !has_worked_ || io::Loop::now() - *refused_since_ >= kRefusalMayPass;
}

bool Reflector::has_all(const Member& member) const {
  const Scope& scope = member.informer->scope();
  return scope.namespace_ == scope_.namespace_ && scope.label_selector == scope_.label_selector &&
         scope.field_selector == scope_.field_selector;
}

bool Reflector::selects(const Member& member, const Object& object) const {
  return has_all(member) || member.informer->selection().matches(object);
}

ObjectPtr Reflector::to_hold(ObjectPtr object, const std::vector<MemberPtr>& concerned) const {
  Detail detail = scope_.detail;
  const auto wants_whole = [&](const MemberPtr& member) {
    const Informer& informer = *member->informer;
    return informer.scope().detail == Detail::Whole &&
           (selects(*member, *object) || informer.is_busy() || informer.store().get(object->key()));
  };
  if (detail == Detail::Whole && std::ranges::none_of(concerned, wants_whole)) {
    detail = Detail::Metadata;
    object = metadata_of(*object);
  }
  return owner_.shared(std::move(object), detail);
}

std::vector<Reflector::MemberPtr> Reflector::members() const {
  return audience_.all();
}

bool Reflector::is_member(const MemberPtr& member) const {
  const auto found = members_.find(member->informer.get());
  return found != members_.end() && found->second == member;
}

bool Reflector::copy_from_another(const MemberPtr& member) {
  const Informer& informer = *member->informer;
  for (const auto& [key, candidate] : members_) {
    Informer& other = *candidate->informer;
    if (candidate == member || candidate->phase != Member::Phase::Fed || !other.has_list())
      continue;
    if (!covers(other.scope(), informer.scope())) continue;
    if (other.scope().keep != informer.scope().keep) continue;
    const bool is_other_later = is_known_at(resource_version_, other.given_version());
    const std::string version = is_other_later ? other.given_version() : resource_version_;
    if (is_ahead_of(informer, version)) continue;
    member->phase = Member::Phase::Listing;
    member->listing = std::stop_source();
    other.copy(
        informer.scope().namespace_,
        [member](const Object& object) { return member->informer->selection().matches(object); },
        [self = shared_from_this(), member, version,
         stop = member->listing.get_token()](std::optional<ObjectSet> objects) {
          if (stop.stop_requested() || self->is_stopped()) {
            if (objects)
              drop_in_slices(self->platform_->loop, self->platform_->slice, *std::move(objects));
          } else if (objects) {
            self->on_copied(member, *std::move(objects), version);
          } else {
            self->start_listing(member);
          }
        });
    return true;
  }
  return false;
}

void Reflector::on_copied(const MemberPtr& member, ObjectSet objects,
                          std::string resource_version) {
  forget_incoming(*member);
  member->incoming = std::move(objects);
  if (is_ahead_of(*member->informer, resource_version)) return start_listing(member);
  member->may_be_ahead = true;
  settle(member);
  replace(*member, std::move(resource_version));
  feed_meanwhile(member);
}

bool Reflector::is_ahead_of(const Informer& informer, std::string_view version) {
  return informer.has_list() && !is_known_at(informer.given_version(), version);
}

void Reflector::settle(const MemberPtr& member) {
  member->phase = Member::Phase::Fed;
  member->informer->set_error(std::nullopt);
  owner_.on_settled(*this, *member->informer);
}

void Reflector::start_listing(const MemberPtr& member) {
  member->phase = Member::Phase::Listing;
  member->listing.request_stop();
  member->listing = std::stop_source();
  platform_->loop.spawn(list(shared_from_this(), member, member->listing.get_token()));
}

io::Task<void> Reflector::list(std::shared_ptr<Reflector> self, MemberPtr member,
                               std::stop_token stop) {
  const Scope scope = member->informer->scope();
  const io::Loop::Activity activity(self->platform_->loop, in_words(scope) + ": list");
  const io::Loop::DoingPtr doing = self->platform_->loop.activity();
  for (std::uint64_t failures = 0; !stop.stop_requested(); ++failures) {
    const std::string known_before = member->informer->given_version();
    ListOptions options{.namespace_ = scope.namespace_,
                        .label_selector = scope.label_selector,
                        .field_selector = scope.field_selector,
                        .detail = scope.detail};
    options.on_begin = [&self, &member, &stop] {
      if (stop.stop_requested()) return;  // `incoming` now belongs to the watch's own list.
      member->meanwhile.clear();          // The list will include these changes.
      self->forget_incoming(*member);
    };
    options.holds = [&self, &member, &stop, &doing](ObjectPtr object) -> Result<ObjectPtr> {
      const io::Resumed resumed(self->platform_->loop, doing);
      if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "the informer has left");
      object = self->owner_.shared(std::move(object), member->informer->scope().detail);
      self->take_in(*member, std::move(object));
      if (member->informer->is_over()) {
        return fail(ErrorKind::Cancelled, "the objects of this scope exceed their memory limit");
      }
      return nullptr;  // The member keeps it.
    };
    Result<List> listed =
        co_await self->platform_->client.list(scope.resource, std::move(options), stop);
    if (stop.stop_requested() || member->informer->is_over()) co_return;
    if (listed) {
      co_return self->on_own_list(member, std::move(listed->resource_version), known_before);
    }
    if (!member->informer->has_list()) member->informer->set_error(listed.error());
    const Result<> elapsed =
        co_await self->platform_->loop.sleep(kListBackoff.delay(failures), stop);
    if (!elapsed) co_return;
  }
}

void Reflector::on_own_list(const MemberPtr& member, std::string resource_version,
                            const std::string& known_before) {
  const Informer& informer = *member->informer;
  // Another watch may have fed the informer newer state while the list was in progress. But if the
  // list lacks what the informer knew before the list was requested, the server was reset to older
  // state, and the list counts.
  const bool is_ahead =
      is_ahead_of(informer, resource_version) && is_known_at(known_before, resource_version);
  member->may_be_ahead = true;
  settle(member);
  if (is_ahead) {
    forget_incoming(*member);
  } else {
    replace(*member, std::move(resource_version));
  }
  feed_meanwhile(member);
}

void Reflector::feed_meanwhile(const MemberPtr& member) {
  for (Change& change : std::exchange(member->meanwhile, {}))
    if (is_member(member)) feed(*member, std::move(change));
}

}  // namespace hangar::kube
