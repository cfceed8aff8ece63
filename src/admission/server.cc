#include "admission/server.h"

#include "admission/limits.h"
#include "admission/review.h"
#include "admission/review_reader.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "http/client.h"
#include "http/limits.h"
#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/part.h"
#include "io/task.h"
#include "io/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace hangar::admission {

namespace {

constexpr std::uint64_t kBodyBytesMax = limits::kConversionBytesMax;
// Size of all requests without an answer.
constexpr std::uint64_t kBodiesBytesMax = 4 * kBodyBytesMax;
// Size of all answers that clients take, and of those of one address: half again as much as its
// requests may have, since a conversion may add fields.
constexpr std::uint64_t kAnswersBytesMax = kBodiesBytesMax;
constexpr std::uint64_t kSourceAnswersBytesMax = kAnswersBytesMax * 3 / 4;
// The API server's default, and its maximum.
constexpr std::chrono::seconds kTimeoutDefault{10};
constexpr std::chrono::seconds kTimeoutMax{30};
// Time for the request and the answer on the network.
constexpr std::chrono::milliseconds kOnTheWay{1000};
// For conversions the API server waits for half a minute, and does not send a timeout.
constexpr std::chrono::seconds kConversionMax = kTimeoutMax - std::chrono::seconds(5);
constexpr std::chrono::seconds kStopGrace{10};
// How long the main loop may be silent after a request was due. Less than kOnTheWay.
constexpr std::chrono::milliseconds kSilenceMax{250};

bool is_caller(const Callers& callers, const std::optional<std::string>& name) {
  if (!callers.must_authenticate) return true;
  return name &&
         (callers.names.empty() || std::ranges::find(callers.names, *name) != callers.names.end());
}

// The entry whose path is `path`, or the longest prefix of it that ends with '/'.
template <class Entry>
const Entry* entry_for(const std::map<std::string, Entry, std::less<>>& entries,
                       std::string_view path, std::string& rest) {
  if (const auto exact = entries.find(path); exact != entries.end() && !path.ends_with('/')) {
    rest.clear();
    return &exact->second;
  }
  const Entry* best = nullptr;
  std::size_t length = 0;
  for (const auto& [prefix, entry] : entries) {
    const bool fits =
        prefix.ends_with('/') && path.starts_with(prefix) && path.size() > prefix.size();
    if (!fits || prefix.size() < length) continue;
    best = &entry;
    length = prefix.size();
  }
  rest = path.substr(std::min(length, path.size()));
  return best;
}

// The names below a prefix are those of CRDs, which have a dot. Of an unknown one the reviewer
// decides, since what it is the name of may have been deleted a moment ago. Without a dot, it is
// the path of a webhook that this server does not have, such as yoke's /validations/resources.
bool may_be_name(std::string_view rest) {
  return rest.empty() || rest.contains('.');
}

}  // namespace

http::Response in_words(int status, std::string text) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(text) + "\n"};
}

Duration time_for(std::string_view query, Duration otherwise) {
  constexpr std::string_view kName = "timeout=";
  Duration timeout = otherwise;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (!pair.starts_with(kName)) continue;
    const Result<Duration> asked = parse_go_duration(pair.substr(kName.size()));
    if (asked && *asked > Duration::zero()) timeout = std::min<Duration>(*asked, kTimeoutMax);
  }
  return timeout > 2 * kOnTheWay ? timeout - kOnTheWay : timeout / 2;
}

// State of both threads. The paths do not change once the server listens.
struct Server::Shared {
  Shared(io::Loop& main_in, Metrics& metrics_in, Log log_in, Callers callers_in)
      : main(main_in),
        metrics(metrics_in),
        seconds(metrics.histogram("hangar_admission_review_seconds",
                                  "Time of one review by an admission webhook, in seconds.",
                                  latency_buckets())),
        conversion_seconds(metrics.histogram(
            "hangar_conversion_seconds",
            "Time of one conversion of objects between versions of their kind, in seconds.",
            latency_buckets())),
        log(std::move(log_in)),
        callers(std::move(callers_in)) {}

  io::Loop& main;
  Metrics& metrics;
  Histogram& seconds;
  Histogram& conversion_seconds;
  const Log log;
  const Callers callers;
  std::map<std::string, Reviewer, std::less<>> reviewers;
  std::map<std::string, Converter, std::less<>> converters;
  std::map<std::string, Passer, std::less<>> passers;
  std::atomic<bool> is_leaving = false;
};

// The thread that talks to clients. Constructed and destroyed on the main thread; all other members
// belong to its own thread once that runs.
class Server::Door {
 public:
  explicit Door(Shared& shared) : shared_(shared), parser_(loop_, 1), reader_(loop_, parser_) {
    loop_.observe({.on_exception = [this](const Error& error, std::string_view) {
      shared_.log.error("a task failed with an exception", {{"error", error.message()}});
    }});
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door() { loop_.stop(); }

  // Starts the thread if it listens.
  Result<> open(const std::string& address, http::ServerOptions::Tls certificate) {
    HANGAR_TRY(http::listen_with(
        server_, loop_, address,
        {.tls = std::move(certificate),
         .body_bytes_max = kBodyBytesMax,
         .bodies_bytes_max = kBodiesBytesMax,
         .source_connections_max = limits::kServerConnectionsMax / 2,
         .source_bodies_bytes_max = kBodiesBytesMax / 2,
         .responses_bytes_max = kAnswersBytesMax,
         .source_responses_bytes_max = kSourceAnswersBytesMax},
        [this](http::ServerRequest request) { return answer(std::move(request)); }, shared_.log));
    port_ = server_->port();
    thread_ = std::jthread([this] { loop_.run(); });
    return {};
  }

  // All functions below are for the main thread.

  [[nodiscard]] std::uint16_t port() const { return port_; }

  Result<> show(http::ServerOptions::Tls certificate) {
    HANGAR_TRY(http::check_certificate(certificate));
    loop_.post([this, certificate = std::move(certificate)] {
      const Result<> shown = server_->set_certificate(certificate);
      HANGAR_ASSERT(shown.has_value(), "it was checked");
    });
    return {};
  }

  io::Task<void> close() {
    if (std::exchange(is_closed_, true)) co_return;
    const io::OneShot<bool> ended(shared_.main);
    loop_.post(
        [this, given = io::OneShot<bool>(ended)]() mutable { loop_.spawn(end(std::move(given))); });
    co_await ended.wait();
  }

 private:
  io::Task<void> end(io::OneShot<bool> ended) {
    co_await server_->stop(kStopGrace);
    // The last reference moves to the main loop, since only one thread may use a OneShot.
    shared_.main.post([done = std::move(ended)] { done.set(true); });
    loop_.stop();
  }

  io::Task<http::Response> answer(http::ServerRequest request);
  io::Task<http::Response> review(const Reviewer& reviewer, std::string name,
                                  http::ServerRequest request);
  io::Task<http::Response> convert(const Converter& converter, std::string name,
                                   http::ServerRequest request);
  io::Task<http::Response> pass(const Passer& passer, std::string path,
                                http::ServerRequest request);

  template <class T>
  using Work = std::move_only_function<io::Task<Result<T>>(std::stop_token stop)>;
  // Calls `work` on the main loop, and requests its stop at `due`.
  template <class T>
  io::Task<Result<T>> ask_main(Work<T> work, Instant due);
  template <class T>
  io::Task<void> work_on_main(Work<T> work, Instant due, io::OneShot<Result<T>> told);

  Shared& shared_;
  io::Loop loop_;
  io::Workers parser_;
  ReviewReader reader_;
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
  bool is_closed_ = false;  // Used by the main thread only.
  std::jthread thread_;
};

Server::Server(io::Loop& main, Metrics& metrics, Log log, Callers callers)
    : shared_(std::make_unique<Shared>(main, metrics, std::move(log), std::move(callers))) {}

Server::~Server() = default;

void Server::review_at(std::string path, Reviewer reviewer) {
  HANGAR_ASSERT(!door_, "its thread reads the paths");
  shared_->reviewers[std::move(path)] = std::move(reviewer);
}

void Server::convert_at(std::string path, Converter converter) {
  HANGAR_ASSERT(!door_, "its thread reads the paths");
  shared_->converters[std::move(path)] = std::move(converter);
}

void Server::pass_at(std::string path, Passer passer) {
  HANGAR_ASSERT(!door_, "its thread reads the paths");
  shared_->passers[std::move(path)] = std::move(passer);
}

Result<> Server::listen(const std::string& address, http::ServerOptions::Tls certificate) {
  if (door_) return door_->show(std::move(certificate));
  auto door = std::make_unique<Door>(*shared_);
  HANGAR_TRY(door->open(address, std::move(certificate)));
  door_ = std::move(door);
  return {};
}

std::uint16_t Server::port() const {
  return door_->port();
}

void Server::leave() {
  shared_->is_leaving = true;
}

bool Server::is_leaving() const {
  return shared_->is_leaving;
}

io::Task<void> Server::stop() {
  leave();
  if (door_) co_await door_->close();
}

io::Task<http::Response> Server::Door::answer(http::ServerRequest request) {
  if (request.path == "/live") co_return in_words(200, "ok");
  if (request.path == "/ready") {
    if (shared_.is_leaving) co_return in_words(503, "this host is ending");
    co_return in_words(200, "ok");
  }
  std::string rest;
  const Reviewer* const reviewer = entry_for(shared_.reviewers, request.path, rest);
  if (reviewer != nullptr && may_be_name(rest)) {
    if (request.method != "POST") co_return in_words(405, "send an AdmissionReview by POST");
    if (!is_caller(shared_.callers, request.client_name)) {
      co_return in_words(401, std::string(kWhoAreYou));
    }
    co_return co_await review(*reviewer, std::move(rest), std::move(request));
  }
  if (const Converter* const converter = entry_for(shared_.converters, request.path, rest)) {
    if (request.method != "POST") co_return in_words(405, "send a ConversionReview by POST");
    co_return co_await convert(*converter, std::move(rest), std::move(request));
  }
  if (const Passer* const passer = entry_for(shared_.passers, request.path, rest)) {
    if (request.method != "POST") co_return in_words(405, "send a review by POST");
    co_return co_await pass(*passer, std::move(rest), std::move(request));
  }
  co_return in_words(404, "no webhook is registered at this path");
}

io::Task<http::Response> Server::Door::review(const Reviewer& reviewer, std::string name,
                                              http::ServerRequest request) {
  const Instant begin = io::Loop::now();
  const auto count = [this](const char* result) {
    shared_.metrics
        .counter("hangar_admission_reviews_total", "Reviews by admission webhooks, by result.",
                 {{"result", result}})
        .add();
  };
  const Duration time = time_for(request.query, kTimeoutDefault);
  const std::stop_source stop;
  const io::Loop::Timer limit = loop_.after(time, [stop] { stop.request_stop(); });
  Result<ReviewReader::Read> read =
      co_await reader_.read(std::move(request.body), std::move(request.source), stop.get_token());
  if (!read) {
    const bool is_malformed = read.error().kind() == ErrorKind::InvalidInput;
    count(is_malformed ? "malformed" : "crowded");
    co_return in_words(is_malformed ? 400 : 503, read.error().message());
  }
  read->review.is_authenticated = shared_.callers.must_authenticate;
  const std::string uid = read->review.uid;
  Result<Decision> decision = Decision{};
  if (const Result<> fits = check_depth(read->review); !fits) {
    decision = std::unexpected(fits.error());
  } else {
    decision = co_await ask_main<Decision>(
        [&reviewer, review = std::move(read->review),
         name = std::move(name)](std::stop_token stopping) mutable {
          return reviewer(std::move(review), std::move(name), std::move(stopping));
        },
        begin + time);
  }
  const Duration took = io::Loop::now() - begin;
  if (!decision && took >= time) {
    decision = refusal(Error(ErrorKind::Unavailable,
                             fmt::format("the review was not done within {}: {}",
                                         to_go_duration(time), decision.error().message())));
  } else if (!decision) {
    decision = refusal(decision.error());
  }
  shared_.seconds.observe(in_seconds(took));
  count(decision->is_allowed ? "allowed" : "denied");
  co_return http::Response{.status = 200,
                           .headers = {{"Content-Type", "application/json"}},
                           .body = answer_to(uid, *decision)};
}

io::Task<http::Response> Server::Door::convert(const Converter& converter, std::string name,
                                               http::ServerRequest request) {
  const Instant begin = io::Loop::now();
  Result<std::string> answer = co_await ask_main<std::string>(
      [&converter, body = std::move(request.body),
       name = std::move(name)](std::stop_token stopping) mutable {
        return converter(std::move(body), std::move(name), std::move(stopping));
      },
      begin + kConversionMax);
  shared_.conversion_seconds.observe(in_seconds(io::Loop::now() - begin));
  if (!answer) {
    const bool is_crowded = answer.error().kind() == ErrorKind::Unavailable;
    co_return in_words(is_crowded ? 503 : 400, answer.error().message());
  }
  co_return http::Response{
      .status = 200, .headers = {{"Content-Type", "application/json"}}, .body = *std::move(answer)};
}

io::Task<http::Response> Server::Door::pass(const Passer& passer, std::string path,
                                            http::ServerRequest request) {
  const Instant begin = io::Loop::now();
  // Reviews say how long they may take, conversions do not.
  const Duration time = time_for(request.query, kConversionMax);
  Passed passed{.path = std::move(path),
                .query = std::move(request.query),
                .body = std::move(request.body),
                .is_caller = is_caller(shared_.callers, request.client_name)};
  Result<http::Response> answer = co_await ask_main<http::Response>(
      [&passer, passed = std::move(passed)](std::stop_token stopping) mutable {
        return passer(std::move(passed), std::move(stopping));
      },
      begin + time);
  if (!answer) co_return in_words(503, answer.error().message());
  co_return *std::move(answer);
}

template <class T>
io::Task<Result<T>> Server::Door::ask_main(Work<T> work, Instant due) {
  const io::OneShot<Result<T>> told(loop_);
  const io::Loop::Timer limit = loop_.after(due + kSilenceMax - io::Loop::now(), [told] {
    told.set(fail(ErrorKind::Unavailable, "the host is busy: try again"));
  });
  shared_.main.post(
      [this, work = std::move(work), due, given = io::OneShot<Result<T>>(told)]() mutable {
        shared_.main.spawn(work_on_main<T>(std::move(work), due, std::move(given)));
      });
  co_return co_await told.wait();
}

template <class T>
io::Task<void> Server::Door::work_on_main(Work<T> work, Instant due, io::OneShot<Result<T>> told) {
  const io::Part part(shared_.main, "request to the webhooks");
  const std::stop_source stop;
  const Duration left = std::max<Duration>(due - io::Loop::now(), Duration::zero());
  const io::Loop::Timer limit = shared_.main.after(left, [stop] { stop.request_stop(); });
  Result<T> result = co_await work(stop.get_token());
  // The last reference moves back to the thread of the OneShot, since no other may use it.
  loop_.post([done = std::move(told), result = std::move(result)]() mutable {
    done.set(std::move(result));
  });
}

}  // namespace hangar::admission
