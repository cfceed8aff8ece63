// Notices that a ConfigMap with a module has become another one.
//
// Of its metadata only: a module is a megabyte, which the fetcher reads when it is needed. The
// cache has one watch for all operators that run what is in the same ConfigMap. Loop thread only.
#pragma once

#include "kube/cache/cache.h"
#include "kube/object.h"

#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace hangar::operators {

class ModuleWatches {
 public:
  // Called in turns of the loop of their own: the ConfigMap that `follower` follows may be another
  // one than before, or is gone. Also when it is first seen: who began to read it before may have
  // read the one before.
  using OnChange = std::function<void(const kube::ObjectKey& follower)>;
  ModuleWatches(kube::Cache& cache, OnChange on_change)
      : cache_(cache), on_change_(std::move(on_change)) {}
  ModuleWatches(const ModuleWatches&) = delete;
  ModuleWatches& operator=(const ModuleWatches&) = delete;

  // From now on, in place of what it followed before. Where we may not watch nothing is called; it
  // is tried again now and then.
  void follow(const kube::ObjectKey& follower, const kube::ObjectKey& config_map);
  void release(const kube::ObjectKey& follower) { followed_.erase(follower); }
  void clear() { followed_.clear(); }

 private:
  struct Followed {
    kube::ObjectKey config_map;
    std::unique_ptr<kube::Cache::Subscription> subscription;
  };

  kube::Cache& cache_;
  const OnChange on_change_;
  std::map<kube::ObjectKey, Followed> followed_;  // By follower.
};

}  // namespace hangar::operators
