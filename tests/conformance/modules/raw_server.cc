#include "raw_server.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::testing {

namespace {

bool read_more(int connection, std::string& text) {
  constexpr std::size_t kStep = 16 * 1024;
  const std::size_t before = text.size();
  text.resize(before + kStep);
  const ssize_t count = ::recv(connection, text.data() + before, kStep, 0);
  text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return count > 0;
}

RawServer::Request read_head(std::string_view head) {
  RawServer::Request request;
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first + 1);
  request.method = line.substr(0, first);
  request.path = line.substr(first + 1, second - first - 1);
  for (std::size_t at = line.size() + 2; at < head.size();) {
    const std::size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view header = head.substr(at, end - at);
    if (const std::size_t colon = header.find(':'); colon != std::string_view::npos) {
      std::string_view value = header.substr(colon + 1);
      value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
      request.headers.emplace_back(header.substr(0, colon), value);
    }
    at = end + 2;
  }
  return request;
}

}  // namespace

std::string RawServer::Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && ::strncasecmp(key.data(), name.data(), name.size()) == 0) {
      return value;
    }
  }
  return {};
}

RawServer::RawServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  constexpr int kBacklog = 64;
  const bool is_listening =
      ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      ::listen(listener_, kBacklog) == 0 &&
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  HANGAR_ASSERT(is_listening, "loopback has a free port");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] { serve(); });
}

RawServer::~RawServer() {
  stop();
  ::close(listener_);
}

std::string RawServer::address() const {
  return fmt::format("127.0.0.1:{}", port_);
}

std::string RawServer::url(std::string_view path) const {
  return fmt::format("http://{}{}", address(), path);
}

std::vector<RawServer::Request> RawServer::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

void RawServer::stop() {
  ::shutdown(listener_, SHUT_RDWR);  // Ends accept(), and refuses later clients.
  if (thread_.joinable()) thread_.join();
}

void RawServer::serve() {
  while (true) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    answer(connection);
    ::close(connection);
  }
}

void RawServer::answer(int connection) {
  std::string text;
  std::size_t head_end = std::string::npos;
  while (head_end == std::string::npos) {
    if (!read_more(connection, text)) return;
    // A TLS hello: this server speaks plain HTTP only, and answers like others do, by closing.
    if (text.starts_with('\x16')) return;
    head_end = text.find("\r\n\r\n");
  }
  Request request = read_head(std::string_view(text).substr(0, head_end));
  const std::string length = request.header("Content-Length");
  const std::size_t body_bytes = length.empty() ? 0 : std::stoul(length);
  constexpr std::size_t kHeadEndBytes = 4;
  while (text.size() < head_end + kHeadEndBytes + body_bytes) {
    if (!read_more(connection, text)) return;
  }
  request.body = text.substr(head_end + kHeadEndBytes, body_bytes);
  {
    const std::scoped_lock lock(mutex_);
    requests_.push_back(request);
  }
  const std::string bytes = handler_(request);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count =
        ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

std::string answer(int status, std::string_view body,
                   const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string text = fmt::format(
      "HTTP/1.1 {} Answer\r\nContent-Length: {}\r\nConnection: close\r\n", status, body.size());
  for (const auto& [name, value] : headers)
    text += fmt::format("{}: {}\r\n", name, value);
  text += "\r\n";
  text += body;
  return text;
}

}  // namespace hangar::testing
