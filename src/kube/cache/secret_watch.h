// Watches one Secret that others write. Calls a handler when the Secret has been read, and at each
// change. Loop thread.
#pragma once

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/object.h"

#include <functional>
#include <memory>

namespace hangar::kube {

class SecretWatch {
 public:
  struct Handlers {
    std::function<void(const ObjectPtr& secret)> on_secret;  // Null: it does not exist.
    std::function<void(const Error& error)> on_failed;       // The last known state stays valid.
  };
  // `cache` must outlive it. Calls no handler before the constructor has returned.
  SecretWatch(Cache& cache, ObjectKey key, Handlers handlers);
  SecretWatch(const SecretWatch&) = delete;
  SecretWatch& operator=(const SecretWatch&) = delete;
  ~SecretWatch();

 private:
  void tell() const;

  const ObjectKey key_;
  const Handlers handlers_;
  std::unique_ptr<Cache::Subscription> subscription_;
};

}  // namespace hangar::kube
