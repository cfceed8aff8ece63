// Notices that a ConfigMap with a module has become another one.
//
// One watch a ConfigMap, however many operators run what is in it, and of its metadata only: a
// module is a megabyte, which the fetcher reads when it is needed. Nothing is kept but the last
// version that was seen. Loop thread only.
#pragma once

#include "base/log.h"
#include "kube/client.h"
#include "kube/object.h"

#include <functional>
#include <map>
#include <memory>

namespace hangar::operators {

class ModuleWatches {
 public:
  // Called in turns of the loop of their own: the ConfigMap that `follower` follows may be another
  // one than before, or is gone.
  using OnChange = std::function<void(const kube::ObjectKey& follower)>;
  ModuleWatches(const kube::Client& client, Log log, OnChange on_change);
  ModuleWatches(const ModuleWatches&) = delete;
  ModuleWatches& operator=(const ModuleWatches&) = delete;
  ~ModuleWatches();  // Calls nobody any more.

  // From now on, in place of what it followed before. Where we may not watch nothing is called; it
  // is tried again now and then.
  void follow(const kube::ObjectKey& follower, const kube::ObjectKey& config_map);
  void release(const kube::ObjectKey& follower);
  void clear();

 private:
  struct Watch;

  const kube::Client client_;
  const Log log_;
  const std::shared_ptr<const OnChange> on_change_;
  std::map<kube::ObjectKey, std::shared_ptr<Watch>> watches_;  // By ConfigMap.
  std::map<kube::ObjectKey, kube::ObjectKey> followed_;        // By follower.
};

}  // namespace hangar::operators
