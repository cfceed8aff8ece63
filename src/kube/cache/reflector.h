// One watch, and the informers that it feeds. The name and the role are client-go's.
//
// The scope may be wider than each informer's: a change goes to those whom it concerns, and what
// concerns nobody is not kept. An informer that comes later is completed by a list of its own, or
// from one that has all of its objects; one that was fed by another reflector moves over once this
// one knows at least as much, so that its history has no gap. Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/audience.h"
#include "kube/cache/informer.h"
#include "kube/client.h"
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
  };
  struct Owner {
    // The same object, with at least that detail, where it is known already.
    std::function<ObjectPtr(ObjectPtr object, Detail detail)> shared;
    // From now on this one feeds the informer, and no other does.
    std::function<void(Reflector& reflector, Informer& informer)> on_settled;
    // Whether it can be a watch for several: the server refuses it, or it works. A refusal of what
    // has worked counts once it lasts: an API server that begins refuses what its authorizer has
    // not read the roles for yet.
    std::function<void(Reflector& reflector, bool is_usable)> on_use;
  };
  Reflector(std::shared_ptr<Platform> platform, Scope scope, Owner owner);

  // Once; whoever has joined before is completed by the first list.
  void start();
  [[nodiscard]] bool is_started() const { return is_started_; }
  void stop();
  [[nodiscard]] bool is_stopped() const { return stop_.stop_requested(); }
  void kick() { watcher_.kick(); }

  [[nodiscard]] const Scope& scope() const { return scope_; }

  // Feeds the informer as soon as it can, and tells it nothing within this call. Its scope is
  // covered by this one's.
  void join(const std::shared_ptr<Informer>& informer);
  void leave(const Informer& informer);
  [[nodiscard]] bool is_unused() const { return members_.empty(); }

 private:
  // An informer that is fed, or will be.
  struct Member {
    enum class Phase : std::uint8_t {
      AwaitsList,  // The next whole list of this watch has what it needs.
      Listing,     // Its own list is under way; what happens meanwhile is remembered.
      Fed,
    };
    std::shared_ptr<Informer> informer;
    Phase phase = Phase::AwaitsList;
    std::uint64_t joined_at = 0;  // How many lists had begun.
    // It knew more than this watch when it was settled: changes may be such as it knows.
    bool may_be_ahead = false;
    std::vector<Change> meanwhile = {};
    std::stop_source listing{std::nostopstate};

    [[nodiscard]] const ObjectKey& place() const { return informer->place(); }
  };
  using MemberPtr = std::shared_ptr<Member>;

  void on_list_begin() override;
  [[nodiscard]] bool wants(const Object& object) const override;
  void on_replace(std::vector<ObjectPtr> objects, std::string resource_version) override;
  void on_change(Change change) override;
  void on_bookmark(std::string resource_version) override;
  void on_gone() override;
  void on_health(std::optional<Error> error) override;

  static io::Task<void> run(std::shared_ptr<Reflector> self);
  static io::Task<void> list(std::shared_ptr<Reflector> self, MemberPtr member,
                             std::stop_token stop);
  void welcome(const MemberPtr& member);
  void start_listing(const MemberPtr& member);
  void on_listed(const MemberPtr& member, List list, const std::string& known_before);
  // Gives it what it lacks, if a member that is fed has that.
  [[nodiscard]] bool complete_from_another(const MemberPtr& member);
  // Hands over a whole list, which is as of `resource_version`.
  void complete(const MemberPtr& member, std::vector<ObjectPtr> objects,
                std::string resource_version);
  void settle(const MemberPtr& member);
  void feed(Member& member, const Change& change);
  // The last error is a refusal, and not one that may pass.
  [[nodiscard]] bool is_refused() const;
  // The member's scope is that of the watch.
  [[nodiscard]] bool has_all(const Member& member) const;
  [[nodiscard]] bool selects(const Member& member, const Object& object) const;
  [[nodiscard]] std::vector<MemberPtr> members() const;
  // As the members are to have it: the metadata alone where nobody wants more, and the same object
  // for all who have it.
  [[nodiscard]] ObjectPtr to_hold(ObjectPtr object, const std::vector<MemberPtr>& concerned) const;
  [[nodiscard]] bool is_member(const MemberPtr& member) const;

  const std::shared_ptr<Platform> platform_;
  const Scope scope_;
  const Owner owner_;
  Watcher watcher_;
  std::map<const Informer*, MemberPtr> members_;
  Audience<Member> audience_;     // The same.
  std::string resource_version_;  // Up to where changes have come.
  std::uint64_t list_count_ = 0;  // Whole lists that have begun.
  bool is_started_ = false;
  bool is_streaming_ = false;  // A whole list is there, and changes to it come.
  bool has_worked_ = false;
  std::optional<Instant> refused_since_;  // Without a break.
  std::optional<Error> error_;
  std::stop_source stop_;

  Counter& relists_;
  Gauge& watches_;
  std::uint64_t counted_relists_ = 0;
};

}  // namespace hangar::kube
