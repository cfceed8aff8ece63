// Kinds and objects for tests of the client, and the counts of its requests in its metrics.
#pragma once

#include "base/metrics.h"
#include "json/value.h"
#include "kube/object.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {

inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
inline const Resource kSecrets{"", "v1", "secrets", "Secret", true};
inline const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
inline const Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings",
                                    "RoleBinding", true};
inline const Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};
inline const Resource kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                            "CustomResourceDefinition", false};

[[nodiscard]] inline json::Value parse(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value.has_value()) << text;
  return value.value_or(json::Value());
}

[[nodiscard]] inline json::Value config_map(std::string_view namespace_, std::string_view name,
                                            std::string_view data = "{}") {
  json::Value object = parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{}})");
  json::set_at(object, {"metadata", "name"}, json::String(name));
  json::set_at(object, {"metadata", "namespace"}, json::String(namespace_));
  json::set_at(object, {"data"}, parse(data));
  return object;
}

// How many requests with that method were answered with that code, as our metrics count them.
[[nodiscard]] inline double requests(const Metrics& metrics, std::string_view method,
                                     std::string_view code) {
  double sum = 0;
  for (const Metrics::Family& family : metrics.collect()) {
    if (family.name != "rest_client_requests_total") continue;
    for (const Metrics::Sample& sample : family.samples) {
      const std::set<std::pair<std::string, std::string>> labels(sample.labels.begin(),
                                                                 sample.labels.end());
      if (labels.contains({"method", std::string(method)}) &&
          labels.contains({"code", std::string(code)})) {
        sum += sample.value;
      }
    }
  }
  return sum;
}

}  // namespace hangar::kube
