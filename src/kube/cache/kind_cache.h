// All watches of one resource: the informers of each scope with subscribers, and the reflectors
// that feed them as watch_plan.h decides. Loop thread only.
#pragma once

#include "base/metrics.h"
#include "base/time.h"
#include "io/loop.h"
#include "kube/audience.h"
#include "kube/cache/cache.h"
#include "kube/cache/informer.h"
#include "kube/cache/reflector.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/packing.h"
#include "kube/scope.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace hangar::kube {

class KindCache final : public std::enable_shared_from_this<KindCache> {
 public:
  // `on_unused` is called when the last informer has ended.
  KindCache(std::shared_ptr<Reflector::Platform> platform, const Resource& resource,
            const Cache::Options& options, std::function<void()> on_unused);

  void subscribe(const Scope& scope, const std::shared_ptr<Subscriber>& subscriber);
  void kick();
  // Stops all watches; informers remain but receive nothing more.
  void stop();

  // Counts each object once.
  [[nodiscard]] Cache::Statistics statistics() const;

 private:
  // An informer, the reflector that feeds it, and the one that is planned to. The informer has
  // settled when these are the same.
  struct Fed {
    std::shared_ptr<Informer> informer;
    std::shared_ptr<Reflector> by;    // Null before the first whole list.
    std::shared_ptr<Reflector> next;  // Null while `by` is as planned.
    bool is_alone = false;            // Only the server can evaluate its selector.
    [[nodiscard]] const std::shared_ptr<Reflector>& planned() const { return next ? next : by; }
  };

  struct Denial {
    Instant at;                 // When the last one happened.
    std::uint64_t earlier = 0;  // Refusals before it, since the watch last worked.
  };

  // True while it is too early to retry the refused watch.
  [[nodiscard]] bool is_denied(const Scope& watch) const;
  Fed& add(const Scope& scope);
  void remove(const std::shared_ptr<Informer>& informer);
  void drop(std::map<Scope, Fed>::iterator position);
  // If an existing watch covers all objects of the informer, makes that watch feed it.
  // False otherwise.
  [[nodiscard]] bool feed_from_present(Fed& fed);
  // Finds a watch for informers that have none, and merges or narrows watches where that is better.
  void plan();
  void follow(const std::map<Scope, Scope>& plan);
  void lead(Fed& fed, const Scope& watch);
  void start_new();
  void stop_unused();
  void review_in(Duration delay);

  [[nodiscard]] ObjectPtr shared(ObjectPtr object, Detail detail);
  [[nodiscard]] ObjectPtr kept(const Informer& informer, ObjectPtr object) const;
  void on_settled(Reflector& reflector, Informer& informer);
  void on_use(Reflector& reflector, bool is_usable);
  void on_delta(const Informer& informer, const Delta& delta);
  void count(const Informer& informer, const ObjectPtr& object, int sign);

  const std::shared_ptr<Reflector::Platform> platform_;
  const Cache::Options options_;
  const std::function<void()> on_unused_;
  std::map<Scope, Fed> informers_;
  Audience<Informer> audience_;  // The same informers, and those that are being emptied.
  std::map<Scope, std::shared_ptr<Reflector>> reflectors_;
  std::set<Scope> watches_;         // The keys of reflectors_ in the last plan.
  std::map<Scope, Denial> denied_;  // Watches that the API server refused.
  // Not for Secrets: its samples outlive the objects that they are from.
  std::optional<Packer> packer_;
  std::optional<Instant> narrower_since_;  // Since when narrower watches would suffice.
  io::Loop::Timer review_;
  bool is_stopped_ = false;

  Gauge& objects_;
  Gauge& bytes_;
  std::size_t object_count_ = 0;
  std::size_t object_bytes_ = 0;
};

}  // namespace hangar::kube
