// An HTTP/1.1 server on loopback that answers with whatever bytes the test gives it, so that it can
// misbehave as no real server would: wrong lengths, early ends, any redirect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::testing {

class RawServer {
 public:
  struct Request {
    std::string method;
    std::string path;  // With its query.
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;

    // Empty when there is none.
    [[nodiscard]] std::string header(std::string_view name) const;
  };
  // Returns the whole answer, beginning with the status line; the connection is closed after it.
  // Called on the server's thread, one request at a time.
  using Handler = std::function<std::string(const Request& request)>;

  explicit RawServer(Handler handler);
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  ~RawServer();

  // "127.0.0.1:PORT".
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::string url(std::string_view path) const;
  // All requests so far.
  [[nodiscard]] std::vector<Request> requests() const;
  // Refuses connections from here on.
  void stop();

 private:
  void serve();
  void answer(int connection);

  const Handler handler_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::jthread thread_;
};

// An answer with a correct Content-Length.
[[nodiscard]] std::string answer(
    int status, std::string_view body,
    const std::vector<std::pair<std::string, std::string>>& headers = {});

}  // namespace hangar::testing
