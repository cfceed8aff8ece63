// One client of a control plane, with its own loop, for tests that proceed step by step.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/all.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
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

  // Runs one task until it finishes and returns its value.
  template <class T>
  T run(io::Task<T> task) {
    return io::run_to_end(loop, std::move(task));
  }
  // Runs all of them at the same time.
  template <class T>
  std::vector<T> run_all(std::vector<io::Task<T>> tasks) {
    return run(io::all(loop, std::move(tasks)));
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
