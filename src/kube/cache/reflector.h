// One watch, and the informers that it feeds. The name and the role are client-go's.
//
// The watch may be wider than each informer's scope: the reflector passes a change on to the
// informers that it concerns, and keeps no object that concerns none. An informer that joins later
// gets its objects from a list request for its own scope, or from an informer that has all of them.
// An informer that another reflector fed moves over once this one knows at least as much, so that
// its history has no gap.
//
// The objects of a list go to the members as they arrive, so that the end of the list costs little,
// however long it is. Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/audience.h"
#include "kube/cache/informer.h"
#include "kube/cache/object_set.h"
#include "kube/client.h"
#include "kube/limits.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/watch/watch_event.h"
#include "kube/watch/watch_machine.h"
#include "kube/watch/watcher.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {

class Reflector final : public Watcher::Sink, public std::enable_shared_from_this<Reflector> {
 public:
  // Shared by all reflectors of a cache.
  struct Platform {
    io::Loop& loop;
    const Client& client;
    Metrics& metrics;
    Log log;
    ServerTraits traits = {};
    io::SharedSlice slice{loop, limits::kCacheSliceObjects};
  };
  struct Owner {
    // Returns the object that is already known, whole or with that detail, or `object` itself.
    std::function<ObjectPtr(ObjectPtr object, Detail detail)> shared;
    // What an informer of that scope keeps of the object.
    std::function<ObjectPtr(const Informer& informer, ObjectPtr object)> kept;
    // From now on this reflector feeds the informer, and no other does.
    std::function<void(Reflector& reflector, Informer& informer)> on_settled;
    // Whether the watch can serve several informers: it works, or the server refuses it. A refusal
    // after it has worked counts only when it lasts: an API server that is starting refuses
    // requests until its authorizer has read the roles.
    std::function<void(Reflector& reflector, bool is_usable)> on_use;
  };
  Reflector(std::shared_ptr<Platform> platform, Scope scope, Owner owner);

  // Call it once. The first list completes the informers that joined before this call.
  void start();
  [[nodiscard]] bool is_started() const { return is_started_; }
  void stop();
  [[nodiscard]] bool is_stopped() const { return stop_.stop_requested(); }
  void kick() { watcher_.kick(); }

  [[nodiscard]] const Scope& scope() const { return scope_; }

  // Feeds the informer as soon as it can, but makes no call to it before join() returns. The
  // watch's scope must cover the informer's.
  void join(const std::shared_ptr<Informer>& informer);
  void leave(const Informer& informer);
  [[nodiscard]] bool is_unused() const { return members_.empty(); }

 private:
  // An informer that is fed, or will be.
  struct Member {
    enum class Phase : std::uint8_t {
      AwaitsList,  // The next whole list of this watch will complete it.
      // Its own list, or the copy of another member's objects, is in progress; changes are queued
      // meanwhile.
      Listing,
      Fed,
    };
    std::shared_ptr<Informer> informer;
    Phase phase = Phase::AwaitsList;
    std::uint64_t joined_at = 0;  // list_count_ when the informer joined.
    // When it settled, it knew more than this watch, so it may know some of the changes already.
    bool may_be_ahead = false;
    std::vector<Change> meanwhile = {};
    ObjectSet incoming = {};  // Of a list in progress.
    // The size of objects in `incoming` and `meanwhile` that the informer's store does not have.
    std::uint64_t incoming_bytes = 0;
    std::stop_source listing{std::nostopstate};

    [[nodiscard]] const ObjectKey& place() const { return informer->place(); }
  };
  using MemberPtr = std::shared_ptr<Member>;

  void on_list_begin() override;
  void on_listed(ObjectPtr object) override;
  void on_unlisted(const ObjectKey& key) override;
  void on_replace(std::string resource_version) override;
  void on_change(Change change) override;
  void on_bookmark(std::string resource_version) override;
  void on_gone() override;
  void on_health(std::optional<Error> error) override;

  static io::Task<void> run(std::shared_ptr<Reflector> self);
  static io::Task<void> list(std::shared_ptr<Reflector> self, MemberPtr member,
                             std::stop_token stop);
  void welcome(const MemberPtr& member);
  void start_listing(const MemberPtr& member);
  void on_own_list(const MemberPtr& member, std::string resource_version,
                   const std::string& known_before);
  // Completes the member with a copy from a member that has all of its objects; false if there is
  // none.
  [[nodiscard]] bool copy_from_another(const MemberPtr& member);
  void on_copied(const MemberPtr& member, ObjectSet objects, std::string resource_version);
  // Feeds the changes that came while the member was Listing.
  void feed_meanwhile(const MemberPtr& member);
  // True when the informer may know more than a list of that version contains.
  [[nodiscard]] static bool is_ahead_of(const Informer& informer, std::string_view version);
  void settle(const MemberPtr& member);
  void feed(Member& member, Change change);
  // Counts the object. False when the informer's allowance refuses it.
  [[nodiscard]] static bool add_incoming(Member& member, const Object& object);
  void take_in(Member& member, ObjectPtr object);
  static void unlist(Member& member, const ObjectKey& key);
  void forget_incoming(Member& member);
  // Hands the completed list to the informer.
  static void replace(Member& member, std::string resource_version);
  // True when the last error is a refusal that has lasted.
  [[nodiscard]] bool is_refused() const;
  // True when the member's scope is that of the watch.
  [[nodiscard]] bool has_all(const Member& member) const;
  [[nodiscard]] bool selects(const Member& member, const Object& object) const;
  [[nodiscard]] std::vector<MemberPtr> members() const;
  // The object as the members keep it, the same for all of them: only its metadata when no member
  // needs more.
  [[nodiscard]] ObjectPtr to_hold(ObjectPtr object, const std::vector<MemberPtr>& concerned) const;
  [[nodiscard]] bool is_member(const MemberPtr& member) const;

  const std::shared_ptr<Platform> platform_;
  const Scope scope_;
  const Owner owner_;
  Watcher watcher_;
  std::map<const Informer*, MemberPtr> members_;
  Audience<Member> audience_;     // The same members.
  std::string resource_version_;  // Changes have arrived up to this version.
  std::uint64_t list_count_ = 0;  // Whole lists that have begun.
  bool is_started_ = false;
  bool is_streaming_ = false;  // The whole list is complete, and changes follow it.
  bool has_worked_ = false;
  std::optional<Instant> refused_since_;  // Every request was refused since then.
  std::optional<Error> error_;
  std::stop_source stop_;

  Counter& relists_;
  Gauge& watches_;
  std::uint64_t counted_relists_ = 0;
};

}  // namespace hangar::kube
