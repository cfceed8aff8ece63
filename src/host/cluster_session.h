// A connection to the cluster for one command.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"

#include <memory>
#include <utility>

namespace hangar::host {

// The login that --kubeconfig and --context select.
[[nodiscard]] inline Result<kube::Login> find_login(const Config& config) {
  return kube::find_login({.kubeconfig = config.kubeconfig, .context = config.context});
}

struct ClusterSession {
  ClusterSession(kube::Login login, const Log& log)
      : http(loop),
        credentials(std::make_shared<kube::Credentials>(loop, std::move(login), log)),
        client(loop, http, credentials, metrics, log) {}

  template <class T>
  [[nodiscard]] T run(io::Task<T> task) {
    return io::run_to_end(loop, std::move(task));
  }

  Metrics metrics;
  io::Loop loop;
  http::Client http;
  const std::shared_ptr<kube::Credentials> credentials;
  const kube::Client client;
};

}  // namespace hangar::host
