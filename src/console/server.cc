#include "console/server.h"

#include "base/text.h"
#include "console/limits.h"
#include "console/page_files.h"
#include "json/value.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace hangar::console {

namespace {

constexpr std::string_view kJson = "application/json; charset=utf-8";

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidInput:
      return 400;
    case ErrorKind::Denied:
      return 403;
    case ErrorKind::NotFound:
      return 404;
    case ErrorKind::Conflict:
      return 409;
    case ErrorKind::Expired:
      return 410;
    case ErrorKind::LimitExceeded:
      return 413;
    default:
      return 502;
  }
}

http::Response words_response(int status, std::string_view words) {
  return {.status = status,
          .headers = safe_headers(kJson),
          .body = json::dump(json::Object{{"error", printable(words)}})};
}

http::Response file_response(const PageFile& file) {
  http::Response response{
      .status = 200, .headers = safe_headers(file.content_type), .body = std::string(file.gzipped)};
  response.headers.emplace_back("Content-Encoding", "gzip");
  return response;
}

}  // namespace

std::string Question::parameter(std::string_view name) const {
  const std::string* const value = target.parameter(name);
  return value == nullptr ? std::string() : *value;
}

http::Response error_response(const Error& error) {
  return words_response(status_of(error.kind()), error.message());
}

Server::Server(io::Loop& loop, Options options, Answer answer, std::function<void()> on_idle,
               Log log)
    : loop_(loop),
      options_(std::move(options)),
      answer_(std::move(answer)),
      on_idle_(std::move(on_idle)),
      log_(std::move(log)),
      used_at_(io::Loop::now()),
      server_(std::make_unique<http::Server>(
          loop,
          http::ServerOptions{.address = "127.0.0.1",
                              .port = options_.port,
                              .body_bytes_max = limits::kConsoleBodyBytesMax,
                              .bodies_bytes_max = limits::kMiB,
                              .connections_max = limits::kConsoleConnectionsMax},
          [this](http::ServerRequest request) { return handle(std::move(request)); },
          log_.named("http"))) {}

Result<> Server::start() {
  HANGAR_TRY(server_->start());
  gate_ = std::make_unique<Gate>(
      Gate::Options{.port = server_->port(),
                    .key = options_.key,
                    .opening_key = options_.opening_key,
                    .opening_until = io::Loop::now() + limits::kConsoleOpeningMax,
                    .allows_actions = options_.allows_actions});
  used_at_ = io::Loop::now();
  watch_idle();
  return {};
}

void Server::watch_idle() {
  if (options_.idle_max == Duration::zero()) return;
  const Instant end = used_at_ + options_.idle_max;
  const Instant now = io::Loop::now();
  if (now >= end && questions_ == 0) return on_idle_();
  const Duration rest = now >= end ? Duration(std::chrono::seconds(1)) : Duration(end - now);
  idle_timer_ = loop_.after(rest, [this] { watch_idle(); });
}

io::Task<http::Response> Server::handle(http::ServerRequest request) {
  if (const auto refusal = gate_->check(request, io::Loop::now())) {
    log_.debug("refused a request", {{"status", refusal->status}, {"reason", refusal->words}});
    co_return words_response(refusal->status, refusal->words);
  }
  if (!request.path.starts_with(kApiPrefix)) {
    const auto file = page_file(request.path);
    co_return file ? file_response(*file) : words_response(404, "there is no such file");
  }
  used_at_ = io::Loop::now();
  if (request.path == kOpenPath) {
    co_return http::Response{.status = 200,
                             .headers = safe_headers(kJson),
                             .body = json::dump(json::Object{{"key", gate_->key()}})};
  }
  if (questions_ >= limits::kConsoleQuestionsMax) {
    co_return words_response(503, fmt::format("{} questions are under way, which is the most",
                                              limits::kConsoleQuestionsMax));
  }
  ++questions_;
  http::Response response = co_await answer(std::move(request));
  --questions_;
  used_at_ = io::Loop::now();
  co_return response;
}

io::Task<http::Response> Server::answer(http::ServerRequest request) {
  const std::string text = request.path + (request.query.empty() ? "" : "?" + request.query);
  Result<gateway::RequestTarget> target = gateway::parse_target("GET", text);
  if (!target) co_return error_response(target.error());
  const Result<std::string> answered = co_await answer_({.target = *std::move(target),
                                                         .path = std::move(request.path),
                                                         .body = std::move(request.body)});
  if (!answered) co_return error_response(answered.error());
  if (answered->size() > limits::kConsoleAnswerBytesMax) {
    co_return error_response(
        Error(ErrorKind::LimitExceeded,
              fmt::format("the answer has {} bytes, and the console shows at most {}",
                          answered->size(), limits::kConsoleAnswerBytesMax)));
  }
  co_return http::Response{.status = 200, .headers = safe_headers(kJson), .body = *answered};
}

}  // namespace hangar::console
