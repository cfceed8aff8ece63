#include "ops/endpoints.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "http/listen_address.h"
#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "ops/metrics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hangar::ops {

namespace {

// Shorter than Prometheus' scrape timeout, which is ten seconds.
constexpr std::chrono::seconds kAnswerMax{5};

constexpr std::string_view kOperatorMetrics = "/metrics/operators/";

// The texts of metrics that clients take. One has some megabytes at most.
constexpr std::uint64_t kResponsesBytesMax = 64 * limits::kMiB;

// Lets a running scrape finish when the host stops.
constexpr std::chrono::seconds kStopGrace{1};

http::Response text(int status, std::string body,
                    std::string_view content_type = "text/plain; charset=utf-8") {
  return {.status = status,
          .headers = {{"Content-Type", std::string(content_type)}},
          .body = std::move(body)};
}

std::unexpected<Error> fail_to_answer() {
  return fail(ErrorKind::Unavailable,
              fmt::format("the main loop has not answered for {}", to_go_duration(kAnswerMax)));
}

}  // namespace

struct Endpoints::Waiting {
  std::map<std::string, std::size_t> by_source;
  std::size_t count = 0;
};

Endpoints::Endpoints(io::Loop& loop, io::Loop& main, const Metrics& metrics, Log log)
    : loop_(loop),
      main_(main),
      metrics_(metrics),
      log_(std::move(log)),
      waiting_requests_(std::make_shared<Waiting>()) {}

void Endpoints::add_check(std::string name, std::function<Result<>()> check) {
  checks_.push_back({.name = std::move(name), .passes = std::move(check)});
}

void Endpoints::add_liveness_check(std::string name, std::function<Result<>()> check) {
  liveness_checks_.push_back({.name = std::move(name), .passes = std::move(check)});
}

Result<> Endpoints::listen(std::string_view address) {
  http::ListenAddress where = HANGAR_TRY(http::parse_listen_address(address));
  server_ = std::make_unique<http::Server>(
      loop_,
      http::ServerOptions{.address = std::move(where.address),
                          .port = where.port,
                          .responses_bytes_max = kResponsesBytesMax,
                          .source_responses_bytes_max = kResponsesBytesMax / 2},
      [this](http::ServerRequest request) { return answer(std::move(request)); }, log_);
  return server_->start();
}

io::Task<void> Endpoints::stop() {
  if (server_) co_await server_->stop(kStopGrace);
}

io::Task<Result<Endpoints::SharedText>> Endpoints::metrics_text() {
  if (is_collecting_) {
    const io::OneShot<Result<SharedText>> shared(loop_);
    waiting_.push_back(shared);
    co_return co_await shared.wait();
  }
  is_collecting_ = true;
  const Result<std::vector<Metrics::Family>> collected =
      co_await ask_main([this] { return metrics_.collect(); });
  is_collecting_ = false;
  const std::vector<io::OneShot<Result<SharedText>>> waiting = std::exchange(waiting_, {});
  Result<SharedText> metrics =
      collected
          ? Result<SharedText>(std::make_shared<const std::string>(to_prometheus_text(*collected)))
          : std::unexpected(collected.error());
  for (const io::OneShot<Result<SharedText>>& shared : waiting)
    shared.set(metrics);
  co_return metrics;
}

io::Task<http::Response> Endpoints::answer(http::ServerRequest request) {
  if (request.method != "GET" && request.method != "HEAD") {
    co_return text(405, "use GET\n");
  }
  const Probe probe = probe_of(request);
  if (probe.name == "healthz" || probe.name == "livez") co_return run(liveness_checks_, probe);

  const std::string source = request.source;
  const std::shared_ptr<Waiting> waiting = waiting_requests_;
  std::size_t& of_source = waiting->by_source[source];
  if (waiting->count >= kWaitingRequestsMax || of_source >= kWaitingRequestsOfSourceMax) {
    if (of_source == 0) waiting->by_source.erase(source);
    co_return text(503, "too many requests are waiting for an answer\n");
  }
  ++of_source;
  ++waiting->count;
  // A map's elements stay where they are.
  const std::shared_ptr<void> ended(nullptr, [&](void*) {
    --waiting->count;
    if (--of_source == 0) waiting->by_source.erase(source);
  });
  co_return co_await ask(std::move(request));
}

io::Task<http::Response> Endpoints::ask(http::ServerRequest request) {
  if (request.path == "/metrics") {
    const Result<SharedText> metrics = co_await metrics_text();
    if (!metrics) co_return text(503, metrics.error().message() + "\n");
    co_return text(200, std::string(**metrics), kMetricsContentType);
  }
  if (scrape_operator_ && request.path.starts_with(kOperatorMetrics)) {
    co_return co_await answer_for_operator(
        std::string_view(request.path).substr(kOperatorMetrics.size()));
  }
  if (Probe probe = probe_of(request); probe.name == "readyz") {
    Result<http::Response> response =
        co_await ask_main([this, probe = std::move(probe)] { return run(checks_, probe); });
    if (response) co_return *std::move(response);
    co_return text(500, fmt::format("[-]main-loop failed: {}\nreadyz check failed\n",
                                    response.error().message()));
  }
  co_return text(404,
                 fmt::format("there are /metrics, {}NAMESPACE/NAME, /healthz, /livez and /readyz\n",
                             kOperatorMetrics));
}

io::Task<http::Response> Endpoints::answer_for_operator(std::string_view names) const {
  const std::size_t slash = names.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == names.size() ||
      names.find('/', slash + 1) != std::string_view::npos) {
    co_return text(404, fmt::format("use {}NAMESPACE/NAME\n", kOperatorMetrics));
  }
  const io::OneShot<Result<std::string>> done(loop_);
  main_.post([this, given = io::OneShot<Result<std::string>>(done),
              namespace_name = std::string(names.substr(0, slash)),
              name = std::string(names.substr(slash + 1))]() mutable {
    main_.spawn(scrape_on_main(std::move(namespace_name), std::move(name), std::move(given)));
  });
  const io::Loop::Timer limit = loop_.after(kAnswerMax, [done] { done.set(fail_to_answer()); });
  Result<std::string> scraped = co_await done.wait();
  if (!scraped) {
    const int status = scraped.error().kind() == ErrorKind::NotFound ? 404 : 503;
    co_return text(status, scraped.error().message() + "\n");
  }
  // The guest chooses the text: with the content type of metrics no client reads it as
  // another format.
  http::Response response = text(200, *std::move(scraped), kMetricsContentType);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  co_return response;
}

io::Task<void> Endpoints::scrape_on_main(std::string namespace_name, std::string name,
                                         io::OneShot<Result<std::string>> done) const {
  Result<std::string> scraped =
      co_await scrape_operator_(std::move(namespace_name), std::move(name));
  loop_.post([done = std::move(done), scraped = std::move(scraped)]() mutable {
    done.set(std::move(scraped));
  });
}

// Calls `question` on the main loop.
template <class Question>
io::Task<Result<std::invoke_result_t<Question&>>> Endpoints::ask_main(Question question) const {
  using Answer = Result<std::invoke_result_t<Question&>>;
  const io::OneShot<Answer> done(loop_);
  main_.post(
      [&loop = loop_, done = io::OneShot<Answer>(done), question = std::move(question)]() mutable {
        // The last reference moves back, too, since only one thread may use a OneShot.
        loop.post([done = std::move(done), answer = Answer(question())]() mutable {
          done.set(std::move(answer));
        });
      });
  const io::Loop::Timer limit = loop_.after(kAnswerMax, [done] { done.set(fail_to_answer()); });
  co_return co_await done.wait();
}

Endpoints::Probe Endpoints::probe_of(const http::ServerRequest& request) {
  std::string_view path = request.path;
  if (path.starts_with('/')) path.remove_prefix(1);
  const std::size_t slash = std::min(path.find('/'), path.size());
  const std::string_view query = request.query;
  return {.name = std::string(path.substr(0, slash)),
          .only = std::string(path.substr(std::min(slash + 1, path.size()))),
          .is_verbose =
              query == "verbose" || query.starts_with("verbose=") || query.starts_with("verbose&")};
}

http::Response Endpoints::run(const Checks& checks, const Probe& probe) {
  std::string lines;
  bool is_known = probe.only.empty();
  bool has_passed = true;
  for (const Check& check : checks) {
    if (!probe.only.empty() && check.name != probe.only) continue;
    is_known = true;
    const Result<> passed = check.passes();
    lines += passed ? fmt::format("[+]{} ok\n", check.name)
                    : fmt::format("[-]{} failed: {}\n", check.name, passed.error().message());
    if (!passed) has_passed = false;
  }
  if (!is_known) return text(404, fmt::format("there is no check {}\n", probe.only));
  if (!has_passed) return text(500, fmt::format("{}{} check failed\n", lines, probe.name));
  return text(200, probe.is_verbose ? fmt::format("{}{} check passed\n", lines, probe.name) : "ok");
}

}  // namespace hangar::ops
