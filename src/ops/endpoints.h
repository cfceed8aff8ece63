// What an administrator and the kubelet ask a running host: /metrics, /healthz, /readyz, /livez.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::ops {

// Answers are those of kube-apiserver's own probes: "ok", or with `?verbose` a line for each check;
// one check alone is /readyz/NAME. Loop thread only.
class Endpoints {
 public:
  // `metrics` outlives it.
  Endpoints(io::Loop& loop, const Metrics& metrics, Log log);

  // /readyz fails while any check does; the error's message is for the log and for ?verbose.
  void add_check(std::string name, std::function<Result<>()> check);

  // As http::Server::listen.
  [[nodiscard]] Result<> listen(std::string_view address);
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  [[nodiscard]] io::Task<void> stop();

 private:
  [[nodiscard]] io::Task<http::ServerResponse> answer(http::ServerRequest request) const;
  [[nodiscard]] http::ServerResponse readiness(const http::ServerRequest& request) const;

  const Metrics& metrics_;
  std::vector<std::pair<std::string, std::function<Result<>()>>> checks_;
  http::Server server_;
};

}  // namespace hangar::ops
