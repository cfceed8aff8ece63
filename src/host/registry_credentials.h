// The credentials for registries that a Secret has, as an image pull secret does: those that are
// there now are used, without a restart. A Secret that is gone has none; one that cannot be read
// changes nothing. Loop thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/secret_watch.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "modules/docker_config.h"

#include <functional>
#include <optional>

namespace hangar::host {

// Its `.dockerconfigjson`. InvalidInput tells nothing of what is in it.
[[nodiscard]] Result<modules::DockerConfig> credentials_in_secret(const json::Value& secret);

class RegistryCredentials {
 public:
  using Listener = std::function<void(modules::DockerConfig credentials)>;

  // `cache` outlives it.
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
  std::optional<SecretWatch> watch_;
};

}  // namespace hangar::host
