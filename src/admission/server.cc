#include "admission/server.h"

#include "admission/review.h"
#include "admission/review_reader.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::admission {

namespace {

// A conversion is of all objects of a list, or a page of it: as many bytes as the converter may
// print. A review is smaller (review_reader.h).
constexpr std::uint64_t kBodyBytesMax = limits::kFlightOutputBytesMax;
// Of all requests without an answer.
constexpr std::uint64_t kBodiesBytesMax = 4 * kBodyBytesMax;
// The API server's own default, and what it accepts at most.
constexpr std::chrono::seconds kTimeoutDefault{10};
constexpr std::chrono::seconds kTimeoutMax{30};
// For the request and the answer on the network.
constexpr std::chrono::milliseconds kOnTheWay{1000};
// For conversions the API server waits for half a minute, and does not send a timeout.
constexpr std::chrono::seconds kConversionMax = kTimeoutMax - std::chrono::seconds(5);
constexpr std::chrono::seconds kStopGrace{10};

// For readers of the API server's log, and of the error that it makes of a 401.
constexpr std::string_view kWhoAreYou =
    "this webhook takes reviews from the API server alone: name a client certificate that "
    "webhook-client-ca-file has signed in the AdmissionConfiguration of the API server";

bool is_caller(const Callers& callers, const std::optional<std::string>& name) {
  if (!callers.must_authenticate) return true;
  return name &&
         (callers.names.empty() || std::ranges::find(callers.names, *name) != callers.names.end());
}

http::Response text(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(body) + "\n"};
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

}  // namespace

Duration time_for(std::string_view query) {
  constexpr std::string_view kName = "timeout=";
  Duration timeout = kTimeoutDefault;
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

Server::Server(io::Loop& loop, io::Workers& workers, Metrics& metrics, Log log, Callers callers)
    : loop_(loop),
      reader_(loop, workers),
      metrics_(metrics),
      seconds_(metrics.histogram("hangar_admission_review_seconds",
                                 "Time of one review by an admission webhook, in seconds.",
                                 latency_buckets())),
      conversion_seconds_(metrics.histogram(
          "hangar_conversion_seconds",
          "Time of one conversion of objects between versions of their kind, in seconds.",
          latency_buckets())),
      log_(std::move(log)),
      callers_(std::move(callers)) {}

Server::~Server() = default;

void Server::review_at(std::string path, Reviewer reviewer) {
  reviewers_[std::move(path)] = std::move(reviewer);
}

void Server::convert_at(std::string path, Converter converter) {
  converters_[std::move(path)] = std::move(converter);
}

Result<> Server::listen(const std::string& address, http::ServerOptions::Tls certificate) {
  return http::listen_with(
      server_, loop_, address,
      {.tls = std::move(certificate),
       .body_bytes_max = kBodyBytesMax,
       .bodies_bytes_max = kBodiesBytesMax},
      [this](http::ServerRequest request) { return answer(std::move(request)); }, log_);
}

io::Task<void> Server::stop() {
  leave();
  if (server_) co_await server_->stop(kStopGrace);
}

io::Task<http::Response> Server::answer(http::ServerRequest request) {
  if (request.path == "/live") co_return text(200, "ok");
  if (request.path == "/ready") {
    if (is_leaving_) co_return text(503, "this host is ending");
    co_return text(200, "ok");
  }
  std::string rest;
  if (const Reviewer* const reviewer = entry_for(reviewers_, request.path, rest)) {
    if (request.method != "POST") co_return text(405, "send an AdmissionReview by POST");
    if (!is_caller(callers_, request.client_name)) co_return text(401, std::string(kWhoAreYou));
    co_return co_await review(*reviewer, std::move(rest), std::move(request));
  }
  if (const Converter* const converter = entry_for(converters_, request.path, rest)) {
    if (request.method != "POST") co_return text(405, "send a ConversionReview by POST");
    co_return co_await convert(*converter, std::move(rest), std::move(request));
  }
  co_return text(404, "there is no webhook at this path");
}

io::Task<http::Response> Server::review(Reviewer reviewer, std::string name,
                                        http::ServerRequest request) {
  const Instant begin = io::Loop::now();
  const auto count = [this](const char* result) {
    metrics_
        .counter("hangar_admission_reviews_total", "Reviews by admission webhooks, by result.",
                 {{"result", result}})
        .add();
  };
  const Duration time = time_for(request.query);
  std::stop_source stop;
  const io::Loop::Timer limit = loop_.after(time, [stop]() mutable { stop.request_stop(); });
  Result<ReviewReader::Read> read =
      co_await reader_.read(std::move(request.body), stop.get_token());
  if (!read) {
    const bool is_malformed = read.error().kind() == ErrorKind::InvalidInput;
    count(is_malformed ? "malformed" : "crowded");
    co_return text(is_malformed ? 400 : 503, read.error().message());
  }
  read->review.is_authenticated = callers_.must_authenticate;
  const std::string uid = read->review.uid;
  Result<Decision> decision =
      co_await reviewer(std::move(read->review), std::move(name), stop.get_token());
  if (!decision && stop.stop_requested()) {
    decision = refusal(Error(ErrorKind::Unavailable,
                             fmt::format("the review was not done within {}: {}",
                                         to_go_duration(time), decision.error().message())));
  } else if (!decision) {
    decision = refusal(decision.error());
  }
  seconds_.observe(in_seconds(io::Loop::now() - begin));
  count(decision->is_allowed ? "allowed" : "denied");
  co_return http::Response{.status = 200,
                           .headers = {{"Content-Type", "application/json"}},
                           .body = answer_to(uid, *decision)};
}

io::Task<http::Response> Server::convert(Converter converter, std::string name,
                                         http::ServerRequest request) {
  const Instant begin = io::Loop::now();
  std::stop_source stop;
  const io::Loop::Timer limit =
      loop_.after(kConversionMax, [stop]() mutable { stop.request_stop(); });
  Result<std::string> answer =
      co_await converter(std::move(request.body), std::move(name), stop.get_token());
  conversion_seconds_.observe(in_seconds(io::Loop::now() - begin));
  if (!answer) {
    const bool is_crowded = answer.error().kind() == ErrorKind::Unavailable;
    co_return text(is_crowded ? 503 : 400, answer.error().message());
  }
  co_return http::Response{
      .status = 200, .headers = {{"Content-Type", "application/json"}}, .body = *std::move(answer)};
}

}  // namespace hangar::admission
