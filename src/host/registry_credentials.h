// Credentials for registries from a Secret of the type of image pull secrets. Changes of the Secret
// apply without a restart. If the Secret is deleted, there are no credentials; if it cannot be
// read, the previous ones stay. Loop thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/secret_watch.h"
#include "kube/object.h"
#include "modules/docker_config.h"

#include <functional>
#include <optional>

namespace hangar::host {

// The credentials in `.dockerconfigjson`. The message of InvalidInput does not contain its content.
[[nodiscard]] Result<modules::DockerConfig> credentials_in_secret(const json::Value& secret);

class RegistryCredentials {
 public:
  using Listener = std::function<void(modules::DockerConfig credentials)>;

  // `cache` must outlive it.
  RegistryCredentials(kube::Cache& cache, Log log, kube::ObjectKey secret, Listener listener);
  RegistryCredentials(const RegistryCredentials&) = delete;
  RegistryCredentials& operator=(const RegistryCredentials&) = delete;
  ~RegistryCredentials();

  void start();
  void stop() { watch_.reset(); }

 private:
  void take(const kube::ObjectPtr& secret);

  kube::Cache& cache_;
  const Log log_;
  const kube::ObjectKey key_;
  const Listener listener_;
  std::optional<kube::SecretWatch> watch_;
};

}  // namespace hangar::host
