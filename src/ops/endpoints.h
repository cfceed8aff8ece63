// What an administrator and the kubelet ask a running host: /metrics, /healthz, /readyz, /livez.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstdint>
#include <functional>
#include <memory>
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

  // Answers from here on. `address`: "127.0.0.1:8080", "[::1]:8080", ":8080" (every interface).
  // InvalidInput when it is none; Unavailable when it is taken.
  [[nodiscard]] Result<> listen(std::string_view address);
  [[nodiscard]] io::Task<void> stop();
  // Where it listens, port zero resolved; zero before.
  [[nodiscard]] std::uint16_t port() const { return server_ ? server_->port() : std::uint16_t{0}; }

 private:
  [[nodiscard]] io::Task<http::Response> answer(http::ServerRequest request) const;
  [[nodiscard]] http::Response readiness(const http::ServerRequest& request) const;

  io::Loop& loop_;
  const Metrics& metrics_;
  const Log log_;
  std::vector<std::pair<std::string, std::function<Result<>()>>> checks_;
  std::unique_ptr<http::Server> server_;  // Null until listen().
};

}  // namespace hangar::ops
