#include "ops/endpoints.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "ops/metrics_text.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::ops {

namespace {

constexpr std::string_view kReady = "/readyz";

}  // namespace

Endpoints::Endpoints(io::Loop& loop, const Metrics& metrics, Log log)
    : metrics_(metrics),
      server_(
          loop, [this](http::ServerRequest request) { return answer(std::move(request)); },
          std::move(log)) {}

void Endpoints::add_check(std::string name, std::function<Result<>()> check) {
  checks_.emplace_back(std::move(name), std::move(check));
}

Result<> Endpoints::listen(std::string_view address) {
  return server_.listen(address);
}

io::Task<void> Endpoints::stop() {
  return server_.stop();
}

io::Task<http::ServerResponse> Endpoints::answer(http::ServerRequest request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    co_return http::ServerResponse{.status = 405, .body = "use GET\n"};
  }
  if (request.path == "/metrics") {
    co_return http::ServerResponse{.content_type = kMetricsContentType,
                                   .body = to_prometheus_text(metrics_)};
  }
  // Whoever answers this is alive: the loop thread, which does everything else too.
  if (request.path == "/healthz" || request.path == "/livez") {
    co_return http::ServerResponse{.body = "ok"};
  }
  if (request.path == kReady || request.path.starts_with(std::string(kReady) + "/")) {
    co_return readiness(request);
  }
  co_return http::ServerResponse{.status = 404,
                                 .body = "there are /metrics, /healthz, /livez and /readyz\n"};
}

http::ServerResponse Endpoints::readiness(const http::ServerRequest& request) const {
  const std::string_view only = request.path.size() > kReady.size()
                                    ? std::string_view(request.path).substr(kReady.size() + 1)
                                    : std::string_view();
  std::string lines;
  bool is_known = only.empty();
  bool is_ready = true;
  for (const auto& [name, check] : checks_) {
    if (!only.empty() && name != only) continue;
    is_known = true;
    const Result<> checked = check();
    lines += checked ? fmt::format("[+]{} ok\n", name)
                     : fmt::format("[-]{} failed: {}\n", name, checked.error().message());
    if (!checked) is_ready = false;
  }
  if (!is_known) return {.status = 404, .body = fmt::format("there is no check {}\n", only)};
  if (!is_ready) return {.status = 500, .body = lines + "readyz check failed\n"};
  const bool is_verbose = request.query == "verbose" || request.query.starts_with("verbose=") ||
                          request.query.starts_with("verbose&");
  return {.body = is_verbose ? lines + "readyz check passed\n" : "ok"};
}

}  // namespace hangar::ops
