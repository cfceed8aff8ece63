// Shared by the tests of this folder: a loop with time to run, certificates made on the spot, and a
// TCP server whose behaviour a test scripts.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::http::testing {

// A certificate that an authority signed, in PEM.
struct Identity {
  std::string certificate_pem;
  std::string key_pem;
};
class Authority {
 public:
  Authority();
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  [[nodiscard]] std::string certificate_pem() const;
  // Signs for `name`, a DNS name or an address. `more`: further fields of the subject, such as "O".
  using Fields = std::vector<std::pair<std::string, std::string>>;
  [[nodiscard]] Identity sign(const std::string& name, const Fields& more = {}) const;

 private:
  struct Key;
  std::unique_ptr<Key> key_;
};

// Serves each connection on its own thread with `script`, which reads and writes the socket and
// returns to close it. The destructor waits for the scripts: they must not wait for ever.
class ScriptedServer {
 public:
  class Peer {
   public:
    explicit Peer(int socket) : socket_(socket) {}
    // Reads one whole request head ("...\r\n\r\n"); "" when the client has closed.
    std::string read_head();
    // Reads that many bytes; "" when the client has closed.
    std::string read(std::size_t count);
    // False when the client has closed.
    bool write(std::string_view bytes);
    // Waits until the client closes the connection.
    void wait_for_end();

   private:
    int socket_;
  };

  explicit ScriptedServer(std::function<void(Peer&)> script);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::string url(std::string_view path = "/") const;

 private:
  void accept_until_stopped();

  std::function<void(Peer&)> script_;
  int listener_ = -1;
  std::vector<std::jthread> peers_;
  std::jthread acceptor_;
};

// A DNS server on loopback, over UDP, whose answers a test scripts.
class NameServer {
 public:
  struct Reply {
    std::vector<std::string> addresses = {};  // Addresses of the other family are left out.
    int code = 0;                             // 2: the server failed; 3: no such name.
    std::uint32_t ttl_seconds = 60;
  };
  // Called on a thread of the server; std::nullopt: no answer.
  using Script = std::function<std::optional<Reply>(const std::string& name)>;

  explicit NameServer(Script script);
  ~NameServer();
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;

  [[nodiscard]] std::string address() const;  // "127.0.0.1:port".

 private:
  void answer_until_stopped();

  Script script_;
  int socket_ = -1;
  std::jthread thread_;
};

// Runs one task until it has finished.
template <class T>
T run(io::Loop& loop, io::Task<T> task) {
  std::optional<T> value;
  loop.spawn([](io::Task<T> inner, std::optional<T>& out) -> io::Task<> {
    out.emplace(co_await std::move(inner));
  }(std::move(task), value));
  loop.run_until([&] { return value.has_value(); });
  return *std::move(value);
}
inline void run(io::Loop& loop, io::Task<> task) {
  bool done = false;
  loop.spawn([](io::Task<> inner, bool& out) -> io::Task<> {
    co_await std::move(inner);
    out = true;
  }(std::move(task), done));
  loop.run_until([&] { return done; });
}

// A transport that uses no proxy: the environment of a test machine may name one.
[[nodiscard]] std::shared_ptr<const Transport> direct(Transport transport = {});

}  // namespace hangar::http::testing
