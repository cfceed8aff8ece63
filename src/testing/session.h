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

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hangar::testing {

class Session {
 public:
  explicit Session(const std::filesystem::path& kubeconfig, Log log = {},
                   kube::ClientOptions options = {})
      : Session(kube::find_login({.kubeconfig = kubeconfig}).value(), std::move(log), options) {}
  explicit Session(kube::Login login, Log log = {}, kube::ClientOptions options = {})
      : http(loop),
        client(loop, http, std::make_shared<kube::Credentials>(loop, std::move(login), log),
               metrics, log, options) {}

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
  json::Value must(kube::Client::ValueTask task) {
    auto value = run(std::move(task));
    EXPECT_TRUE(value.has_value()) << value.error().message();
    return value.value_or(json::Value());
  }

  io::Loop loop;
  Metrics metrics;
  http::Client http;
  kube::Client client;
};

}  // namespace hangar::testing
