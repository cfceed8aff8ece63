#include "host/registry_credentials.h"

#include "base/base64.h"
#include "base/invalid.h"
#include "base/log.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/secret_watch.h"
#include "kube/object.h"
#include "modules/docker_config.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::host {

namespace {

// The key that `kubectl create secret docker-registry` uses.
constexpr std::string_view kKey = ".dockerconfigjson";

}  // namespace

Result<modules::DockerConfig> credentials_in_secret(const json::Value& secret) {
  const json::Value* const data = json::find(secret, {"data", kKey});
  if (data == nullptr || !data->is_string()) return invalid(fmt::format("it has no {}", kKey));
  const std::optional<std::string> text = base64_decode(data->get_string());
  if (!text) return invalid(fmt::format("{} is not base64", kKey));
  return modules::DockerConfig::parse(*text);
}

RegistryCredentials::RegistryCredentials(kube::Cache& cache, Log log, kube::ObjectKey secret,
                                         Listener listener)
    : cache_(cache),
      log_(std::move(log)),
      key_(std::move(secret)),
      listener_(std::move(listener)) {}

RegistryCredentials::~RegistryCredentials() = default;

void RegistryCredentials::start() {
  watch_.emplace(cache_, key_,
                 kube::SecretWatch::Handlers{
                     .on_secret = [this](const kube::ObjectPtr& secret) { take(secret); },
                     .on_failed =
                         [this](const Error& error) {
                           log_.warning("the Secret with registry credentials cannot be read",
                                        {{"error", error.message()}});
                         }});
}

void RegistryCredentials::take(const kube::ObjectPtr& secret) {
  if (!secret) {
    log_.warning(
        "the Secret with registry credentials does not exist: modules are fetched without "
        "credentials",
        {{"namespace", key_.namespace_}, {"secret", key_.name}});
    listener_({});
    return;
  }
  Result<modules::DockerConfig> credentials = credentials_in_secret(secret->to_value());
  if (!credentials) {
    log_.warning("the Secret with registry credentials is invalid",
                 {{"secret", key_.name}, {"error", credentials.error().message()}});
    return;
  }
  log_.info("has credentials for registries", {{"secret", key_.name}});
  listener_(*std::move(credentials));
}

}  // namespace hangar::host
