// A small HTTP/1.1 server on the loop: metrics, probes, and later admission requests.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::http {

struct ServerRequest {
  std::string method;
  std::string path;   // Without the query; not decoded.
  std::string query;  // Behind the '?'.
  Headers headers;
  std::string body;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Loop thread only.
class Server {
 public:
  struct Options {
    std::size_t connections_max = 64;  // Further ones wait in the kernel's queue.
    std::uint64_t body_bytes_max = 8ULL << 20;
    // A client that sends or takes nothing for so long is cut off.
    std::chrono::seconds idle_timeout{30};
  };
  using Handler = std::function<io::Task<ServerResponse>(ServerRequest request)>;

  // `handler` is called for each request that is well formed and within the bounds.
  Server(io::Loop& loop, Handler handler, Options options, Log log);
  Server(io::Loop& loop, Handler handler, Log log) : Server(loop, std::move(handler), {}, log) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Stop it before, if it listens.
  ~Server();

  // "127.0.0.1:8080", "[::1]:0", ":8080" (every address). InvalidInput; Denied or Unavailable when
  // the address cannot be had.
  [[nodiscard]] Result<> listen(std::string_view address);
  // Where it listens, port zero resolved; zero before.
  [[nodiscard]] std::uint16_t port() const;

  // Takes no more connections, and waits for requests that are being answered: bounded by the idle
  // time-out.
  [[nodiscard]] io::Task<void> stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::http
