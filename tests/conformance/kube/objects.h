// One client of a control plane, with the loop that it lives on, for tests that go step by step.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"
#include "kube/object.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// How many requests with that method were answered with that code, as our metrics have it.
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

class Session {
 public:
  explicit Session(const std::filesystem::path& kubeconfig, Log log = {},
                   ClientOptions options = {})
      : Session(find_login({.kubeconfig = kubeconfig}).value(), std::move(log), options) {}
  explicit Session(Login login, Log log = {}, ClientOptions options = {})
      : http(loop),
        client(loop, http, std::make_shared<Credentials>(loop, std::move(login), log), metrics, log,
               options) {}

  // Runs one task to its end and gives its value.
  template <class T>
  T run(io::Task<T> task) {
    std::optional<T> out;
    const auto wait = [](io::Task<T> inner, std::optional<T>& result) -> io::Task<void> {
      result.emplace(co_await std::move(inner));
    };
    loop.spawn(wait(std::move(task), out));
    loop.run_until([&out] { return out.has_value(); });
    return *std::move(out);
  }
  // Runs all of them at the same time.
  template <class T>
  std::vector<T> run_all(std::vector<io::Task<T>> tasks) {
    std::vector<std::optional<T>> out(tasks.size());
    std::size_t left = tasks.size();
    const auto wait = [](io::Task<T> inner, std::optional<T>& result,
                         std::size_t& count) -> io::Task<void> {
      result.emplace(co_await std::move(inner));
      --count;
    };
    for (std::size_t index = 0; index < tasks.size(); ++index)
      loop.spawn(wait(std::move(tasks[index]), out[index], left));
    loop.run_until([&left] { return left == 0; });
    std::vector<T> values;
    for (std::optional<T>& value : out)
      values.push_back(*std::move(value));
    return values;
  }
  // The value of a task that must succeed; null JSON after a failure, which fails the test.
  json::Value must(Client::ValueTask task) {
    auto value = run(std::move(task));
    EXPECT_TRUE(value.has_value()) << value.error().message();
    return value.value_or(json::Value());
  }

  io::Loop loop;
  Metrics metrics;
  http::Client http;
  Client client;
};

}  // namespace hangar::kube
