// One Secret that somebody else writes, as it is now. Whoever is interested in it is told when it
// is known and of each change. Loop thread.
#pragma once

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/object.h"

#include <functional>
#include <memory>

namespace hangar::host {

class SecretWatch {
 public:
  struct Handlers {
    std::function<void(const kube::ObjectPtr& secret)> on_secret;  // Null: there is none.
    std::function<void(const Error& error)> on_failed;  // What was known last still counts.
  };
  // `cache` outlives it. Calls nothing before the constructor has returned.
  SecretWatch(kube::Cache& cache, kube::ObjectKey key, Handlers handlers);
  SecretWatch(const SecretWatch&) = delete;
  SecretWatch& operator=(const SecretWatch&) = delete;
  ~SecretWatch();

 private:
  void tell() const;

  const kube::ObjectKey key_;
  const Handlers handlers_;
  std::unique_ptr<kube::Cache::Subscription> subscription_;
};

}  // namespace hangar::host
