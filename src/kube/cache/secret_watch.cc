#include "kube/cache/secret_watch.h"

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/core_resources.h"
#include "kube/object.h"

#include <utility>

namespace hangar::kube {

SecretWatch::SecretWatch(Cache& cache, ObjectKey key, Handlers handlers)
    : key_(std::move(key)),
      handlers_(std::move(handlers)),
      subscription_(cache.subscribe(
          {.resource = secret_resource(),
           .namespace_ = key_.namespace_,
           .field_selector = "metadata.name=" + key_.name},
          {.on_delta =
               [this](const Delta&) {
                 if (subscription_ && subscription_->is_synced()) tell();
               },
           .on_synced = [this] { tell(); },
           .on_failed = [this](const Error& error) { handlers_.on_failed(error); }})) {}

SecretWatch::~SecretWatch() = default;

void SecretWatch::tell() const {
  if (subscription_) handlers_.on_secret(subscription_->get(key_));
}

}  // namespace hangar::kube
