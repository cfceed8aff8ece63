// Bytes of any client: each whole request is answered once, and the next client is served too.
#include "base/assert.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/task.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using hangar::http::Response;
using hangar::http::ServerRequest;

struct Served {
  hangar::io::Loop loop;
  int requests = 0;
  hangar::http::Server server{
      loop, {.body_bytes_max = 4096}, [this](ServerRequest request) -> hangar::io::Task<Response> {
        ++requests;
        HANGAR_ASSERT(!request.method.empty(), "a request without method");
        HANGAR_ASSERT(!request.path.contains('?'), "a query in the path");
        HANGAR_ASSERT(request.body.size() <= 4096, "a body beyond the bound");
        co_return Response{.status = 200, .body = request.method + " " + request.path};
      }};

  Served() { HANGAR_ASSERT(server.start().has_value(), "listens on loopback"); }
};

// The server's answers to these bytes, after which the client sends no more.
std::string talk(Served& served, std::string_view bytes) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(served.server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const linger at_once{.l_onoff = 1, .l_linger = 0};  // So that no port stays in TIME_WAIT.
  ::setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  HANGAR_ASSERT(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
                "the server accepts");
  std::string answer;
  bool is_over = false;
  std::size_t sent = 0;
  served.loop.run_until([&] {
    // Between two steps of the server: it reads and writes what it wants to.
    while (sent < bytes.size()) {
      const ssize_t count =
          ::send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
    if (sent == bytes.size()) ::shutdown(client, SHUT_WR);
    std::array<char, 4096> buffer{};
    while (true) {
      const ssize_t count = ::recv(client, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (count > 0) {
        answer.append(buffer.data(), static_cast<std::size_t>(count));
        continue;
      }
      is_over = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      break;
    }
    if (!is_over) served.loop.post([] {});  // Looks again.
    return is_over;
  });
  ::close(client);
  return answer;
}

std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Served served;
  constexpr std::size_t kBytesMax = 16384;
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, kBytesMax));
  served.requests = 0;
  const std::string answer = talk(served, bytes);
  HANGAR_ASSERT(answer.empty() || answer.starts_with("HTTP/1."), "an answer that is none");
  HANGAR_ASSERT(count_of(answer, "HTTP/1.1 200 OK\r\n") + count_of(answer, "HTTP/1.0 200 OK\r\n") >=
                    static_cast<std::size_t>(served.requests),
                "a request without answer");

  served.requests = 0;
  const std::string next =
      talk(served, "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  HANGAR_ASSERT(next.ends_with("GET /next") && served.requests == 1, "the next client is served");
  return 0;
}
