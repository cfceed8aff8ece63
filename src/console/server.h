// The server of the console: serves the page's files and answers its questions (gate.h decides
// which requests are answered at all).
//
// Guarantees: it listens on 127.0.0.1 only; the sizes of answers and requests, and the numbers of
// connections and concurrent questions are limited; every response forbids the browser all features
// that the page does not need.
//
// Loop thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "console/gate.h"
#include "gateway/request_target.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::console {

struct Question {
  gateway::RequestTarget target;  // Path and query: "/api/turns?name=web".
  std::string path;               // "/api/turns".
  std::string body;               // The body of a signal.

  // The value of a parameter; empty: it is missing.
  [[nodiscard]] std::string parameter(std::string_view name) const;
};

class Server {
 public:
  // Returns an answer as JSON. NotFound for an unknown question.
  using Answer = std::function<io::Task<Result<std::string>>(Question question)>;

  struct Options {
    std::uint16_t port = 0;  // Zero: any free port.
    std::string key;
    std::string opening_key;  // As for Gate; empty: none.
    bool allows_actions = false;
    Duration idle_max{};  // Zero: on_idle is never called.
  };
  // `on_idle` is called once when no question has been answered for `idle_max`. All references must
  // outlive the server.
  Server(io::Loop& loop, Options options, Answer answer, std::function<void()> on_idle, Log log);

  // Errors: Unavailable if the port is in use.
  [[nodiscard]] Result<> start();
  [[nodiscard]] io::Task<> stop(Duration grace) { return server_->stop(grace); }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  // True while a question is being answered.
  [[nodiscard]] bool is_busy() const { return questions_ > 0; }

 private:
  [[nodiscard]] io::Task<http::Response> handle(http::ServerRequest request);
  [[nodiscard]] io::Task<http::Response> answer(http::ServerRequest request);
  void watch_idle();

  io::Loop& loop_;
  Options options_;
  Answer answer_;
  std::function<void()> on_idle_;
  Log log_;
  std::size_t questions_ = 0;
  Instant used_at_{};
  io::Loop::Timer idle_timer_;
  std::unique_ptr<Gate> gate_;  // Set by start(), because it needs the port.
  std::unique_ptr<http::Server> server_;
};

// The status and the JSON of an error: {"error": words}.
[[nodiscard]] http::Response error_response(const Error& error);

}  // namespace hangar::console
