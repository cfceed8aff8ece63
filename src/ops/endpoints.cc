#include "ops/endpoints.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "ops/metrics_text.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::ops {

namespace {

constexpr std::string_view kReady = "/readyz";

// For a scrape that is being answered when the host ends.
constexpr std::chrono::seconds kStopGrace{1};

http::Response text(int status, std::string body,
                    std::string_view content_type = "text/plain; charset=utf-8") {
  return {.status = status,
          .headers = {{"Content-Type", std::string(content_type)}},
          .body = std::move(body)};
}

Result<http::ServerOptions> options_for(std::string_view address) {
  const auto invalid = [address] {
    return fail(ErrorKind::InvalidInput,
                fmt::format("\"{}\" is no address to listen at: write for example 127.0.0.1:8080 "
                            "or :8080",
                            address));
  };
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return invalid();
  std::string_view host = address.substr(0, colon);
  const std::string_view digits = address.substr(colon + 1);
  http::ServerOptions options;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), options.port);
  if (error != std::errc() || end != digits.data() + digits.size()) return invalid();
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  options.address = host.empty() ? "0.0.0.0" : std::string(host);
  return options;
}

}  // namespace

Endpoints::Endpoints(io::Loop& loop, const Metrics& metrics, Log log)
    : loop_(loop), metrics_(metrics), log_(std::move(log)) {}

void Endpoints::add_check(std::string name, std::function<Result<>()> check) {
  checks_.emplace_back(std::move(name), std::move(check));
}

Result<> Endpoints::listen(std::string_view address) {
  http::ServerOptions options = HANGAR_TRY(options_for(address));
  server_ = std::make_unique<http::Server>(
      loop_, std::move(options),
      [this](http::ServerRequest request) { return answer(std::move(request)); }, log_);
  return server_->start();
}

io::Task<void> Endpoints::stop() {
  if (server_) co_await server_->stop(kStopGrace);
}

io::Task<http::Response> Endpoints::answer(http::ServerRequest request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    co_return text(405, "use GET\n");
  }
  if (request.path == "/metrics") {
    co_return text(200, to_prometheus_text(metrics_), kMetricsContentType);
  }
  // Whoever answers this is alive: the loop thread, which does everything else too.
  if (request.path == "/healthz" || request.path == "/livez") {
    co_return text(200, "ok");
  }
  if (request.path == kReady || request.path.starts_with(std::string(kReady) + "/")) {
    co_return readiness(request);
  }
  co_return text(404, "there are /metrics, /healthz, /livez and /readyz\n");
}

http::Response Endpoints::readiness(const http::ServerRequest& request) const {
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
  if (!is_known) return text(404, fmt::format("there is no check {}\n", only));
  if (!is_ready) return text(500, lines + "readyz check failed\n");
  const bool is_verbose = request.query == "verbose" || request.query.starts_with("verbose=") ||
                          request.query.starts_with("verbose&");
  return text(200, is_verbose ? lines + "readyz check passed\n" : "ok");
}

}  // namespace hangar::ops
