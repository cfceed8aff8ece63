#include "http/server.h"

#include "base/result.h"
#include "http/client.h"
#include "http/test_support.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::http {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::Authority;
using testing::direct;
using ::testing::HasSubstr;
using testing::Identity;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::run;
using ::testing::StartsWith;

class ServerTest : public ::testing::Test {
 protected:
  // A client that sends exactly what a test wants.
  class Peer {
   public:
    // `from`: its own address; zero: the kernel's choice.
    explicit Peer(std::uint16_t port, std::uint32_t from = 0)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      own.sin_addr.s_addr = htonl(from);
      EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() { ::close(socket_); }
    void send(std::string_view bytes) const {
      (void)::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    // Reads until the server closes the connection.
    [[nodiscard]] std::string read_all() const {
      std::string answer;
      std::array<char, 4096> buffer{};
      for (ssize_t count = 0; (count = ::recv(socket_, buffer.data(), buffer.size(), 0)) > 0;)
        answer.append(buffer.data(), static_cast<std::size_t>(count));
      return answer;
    }
    // The other end, which the server in this process has accepted; -1 if there is none.
    [[nodiscard]] int accepted() const {
      constexpr int kDescriptorsMax = 1024;
      const sockaddr_in own = name_of(&::getsockname, socket_);
      for (int other = 0; other < kDescriptorsMax; ++other) {
        const sockaddr_in peer = name_of(&::getpeername, other);
        if (peer.sin_port == own.sin_port && peer.sin_addr.s_addr == own.sin_addr.s_addr)
          return other;
      }
      return -1;
    }

   private:
    static sockaddr_in name_of(int (*get)(int, sockaddr*, socklen_t*), int socket) {
      sockaddr_in name{};
      socklen_t size = sizeof name;
      if (get(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return {};
      return name;
    }
    int socket_;
  };

  ~ServerTest() override {
    server_.reset();
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }

  void serve(Server::Handler handler, ServerOptions options = {}) {
    server_.emplace(loop_, std::move(options), std::move(handler));
    const auto started = server_->start();
    ASSERT_TRUE(started.has_value()) << started.error().message();
    ASSERT_NE(server_->port(), 0);
  }

  // Runs the loop while another thread does `work`.
  template <class F>
  void with_thread(F work) {
    std::atomic<bool> done = false;
    std::thread thread([&] {
      work();
      done = true;
      loop_.post([] {});
    });
    loop_.run_until([&] { return done.load(); });
    thread.join();
  }
  // Sends `bytes` and returns everything until the server closes the connection.
  std::string talk(std::string_view bytes, std::uint32_t from = 0) {
    std::string answer;
    with_thread([&, port = server_->port()] {
      const Peer peer(port, from);
      peer.send(bytes);
      answer = peer.read_all();
    });
    return answer;
  }

  static io::Task<Response> echo(ServerRequest request) {
    co_return Response{
        .status = 200,
        .headers = {{"Content-Type", "text/plain"}, {"X-Extra", "1"}},
        .body = request.method + " " + request.path + " " + request.query + " " + request.body};
  }

  io::Loop loop_;
  std::optional<Server> server_;
};

TEST_F(ServerTest, AnswersOneRequestAfterTheOther) {
  serve(echo);

  const std::string answers = talk(
      "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");

  EXPECT_EQ(
      answers,
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Extra: 1\r\nContent-Length: 11\r\n\r\n"
      "GET /a b=c "
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Extra: 1\r\nContent-Length: 11\r\n"
      "Connection: close\r\n\r\nPOST /d  hi");
}

TEST_F(ServerTest, DoesNotHoldTheEndOfAResponseBack) {
  serve(echo);
  const Peer peer(server_->port());
  loop_.run_until([&] { return server_->connection_count() == 1; });

  int is_no_delay = 0;
  socklen_t size = sizeof is_no_delay;
  ASSERT_EQ(::getsockopt(peer.accepted(), IPPROTO_TCP, TCP_NODELAY, &is_no_delay, &size), 0);
  EXPECT_NE(is_no_delay, 0);
}

TEST_F(ServerTest, TellsProgramsOfThisMachineFromForwardedRequests) {
  constexpr std::uint32_t kProxy = 0x7f000006;  // 127.0.0.6
  constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const auto handler = [](ServerRequest request) -> io::Task<Response> {
    co_return Response{.status = 200, .body = request.is_from_loopback ? "here" : "elsewhere"};
  };

  serve(handler);
  EXPECT_THAT(talk(kRequest), HasSubstr("\r\n\r\nhere"));
  EXPECT_THAT(talk(kRequest, kProxy), HasSubstr("\r\n\r\nelsewhere"));
}

TEST_F(ServerTest, TakesRequestsInSmallPieces) {
  serve(echo);
  std::string answer;

  with_thread([&, port = server_->port()] {
    const Peer peer(port);
    for (const char byte : std::string_view("PUT /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                            "Transfer-Encoding: chunked\r\n\r\n"
                                            "2\r\nhi\r\n0\r\n\r\n")) {
      peer.send(std::string_view(&byte, 1));
    }
    answer = peer.read_all();
  });

  EXPECT_THAT(answer, HasSubstr("PUT /p  hi"));
}

TEST_F(ServerTest, HeadHasTheLengthAndNoBody) {
  serve(echo);

  const std::string answer = talk("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(ServerTest, RefusesWhatIsMalformedOrTooLarge) {
  struct Case {
    std::string_view name;
    std::string request;
    std::string_view answer;
  };
  serve(echo, {.body_bytes_max = 10});
  for (const Case& one :
       {Case{"no request line", "nonsense\r\n\r\n", "HTTP/1.1 400"},
        Case{"a version of its own", "GET / HTTP/9.1\r\n\r\n", "HTTP/1.1 400"},
        Case{"a negative length", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400"},
        Case{"two lengths", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
             "HTTP/1.1 400"},
        Case{"a broken chunk", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
             "HTTP/1.1 400"},
        Case{"headers without end", "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'y'),
             "HTTP/1.1 431"},
        Case{"a body past the bound", "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n",
             "HTTP/1.1 413"},
        Case{"chunks past the bound",
             "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n",
             "HTTP/1.1 413"}}) {
    EXPECT_THAT(talk(one.request), StartsWith(one.answer)) << one.name;
  }
}

TEST_F(ServerTest, TakesABodyAtTheBound) {
  serve(echo, {.body_bytes_max = 10});

  EXPECT_THAT(talk("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 10\r\n\r\n0123456789"),
              HasSubstr("0123456789"));
}

TEST_F(ServerTest, CutsOffWhoeverTakesTooLong) {
  serve(echo, {.read_max = milliseconds(20), .idle_max = milliseconds(20)});

  EXPECT_THAT(talk(""), IsEmpty());
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nX-"), IsEmpty());
  EXPECT_THAT(talk("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12"), IsEmpty());
}

TEST_F(ServerTest, CutsOffWhoeverDoesNotTakeTheResponse) {
  serve(
      [](ServerRequest) -> io::Task<Response> {
        co_return Response{.status = 200, .body = std::string(64'000'000, 'x')};
      },
      {.write_max = milliseconds(20)});
  const Peer peer(server_->port());

  peer.send("GET / HTTP/1.1\r\n\r\n");
  loop_.run_until([&] { return server_->connection_count() == 1; });
  loop_.run_until([&] { return server_->connection_count() == 0; });
}

TEST_F(ServerTest, ServesTheNextClientHoweverManyConnectionsAreHeld) {
  serve(
      [](ServerRequest request) -> io::Task<Response> {
        const bool is_large = request.path == "/large";
        co_return Response{.status = 200, .body = std::string(is_large ? 64'000'000 : 2, 'x')};
      },
      {.connections_max = 3, .read_max = hours(1), .write_max = hours(1), .idle_max = hours(1)});
  const Peer takes_nothing(server_->port());
  takes_nothing.send("GET /large HTTP/1.1\r\n\r\n");
  const Peer says_little(server_->port());
  says_little.send("GET / HTTP/1.1\r\nX-");
  const Peer says_nothing(server_->port());
  loop_.run_until([&] { return server_->connection_count() == 3; });

  // Each client holds its connection as long as it can, and loses it to the next one.
  std::vector<std::unique_ptr<Peer>> others;
  for (int client = 0; client < 10; ++client) {
    others.push_back(std::make_unique<Peer>(server_->port()));
    EXPECT_THAT(talk("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 200 OK"));
    loop_.run_until([&] { return server_->connection_count() <= 3; });
  }
}

TEST_F(ServerTest, MakesRoomAtTheCostOfTheSourceThatHasTheMost) {
  serve(echo, {.connections_max = 3, .read_max = hours(1), .idle_max = hours(1)});
  const std::string request = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
  constexpr std::uint32_t kElsewhere = 0x7f000002;
  // It is the oldest, but the only one of its source.
  const Peer quiet(server_->port(), kElsewhere);
  std::vector<std::unique_ptr<Peer>> others;
  for (int client = 0; client < 10; ++client) {
    others.push_back(std::make_unique<Peer>(server_->port()));
    EXPECT_THAT(talk(request), StartsWith("HTTP/1.1 200 OK"));
  }
  std::string answer;
  with_thread([&] {
    quiet.send(request);
    answer = quiet.read_all();
  });
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, LeavesConnectionsThatAreHandledToOtherSources) {
  io::Event changed(loop_);
  bool is_over = false;
  std::atomic<int> handled = 0;
  serve(
      [&](ServerRequest request) -> io::Task<Response> {
        ++handled;
        while (request.path == "/slow" && !is_over)
          std::ignore = co_await changed.wait({});
        co_return Response{.status = 200, .body = request.source};
      },
      {.connections_max = 3, .source_connections_max = 2});
  const Peer first(server_->port());
  const Peer second(server_->port());
  first.send("GET /slow HTTP/1.1\r\nConnection: close\r\n\r\n");
  second.send("GET /slow HTTP/1.1\r\nConnection: close\r\n\r\n");
  loop_.run_until([&] { return handled == 2; });

  EXPECT_THAT(talk("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), IsEmpty());
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 0x7f000002),
              HasSubstr("127.0.0.2"));
  with_thread([&] {
    loop_.post([&] {
      is_over = true;
      changed.notify_all();
    });
    EXPECT_THAT(first.read_all(), HasSubstr("127.0.0.1"));
    EXPECT_THAT(second.read_all(), HasSubstr("127.0.0.1"));
  });
}

TEST_F(ServerTest, HoldsNoMoreBodiesOfOneSourceThanItMay) {
  serve(echo, {.body_bytes_max = 1000, .source_bodies_bytes_max = 1500});
  const std::string part(900, 'x');
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ";
  std::string slow;
  std::string anothers;
  with_thread([&, port = server_->port()] {
    const Peer other(port, 0x7f000002);
    other.send(head + "1000\r\n\r\n" + part);
    const Peer holds(port);
    holds.send(head + "1000\r\n\r\n" + part);
    const Peer also(port);
    also.send(head + "900\r\n\r\n" + part);
    EXPECT_THAT(also.read_all(), StartsWith("HTTP/1.1 200"));
    slow = holds.read_all();
    other.send(std::string(100, 'x'));
    anothers = other.read_all();
  });
  EXPECT_THAT(slow, IsEmpty());
  EXPECT_THAT(anothers, StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, HoldsNoMoreOfAllBodiesThanItMay) {
  serve(echo, {.body_bytes_max = 1000, .bodies_bytes_max = 1500});
  std::string slow;
  std::string quick;
  with_thread([&, port = server_->port()] {
    const std::string part(900, 'x');
    const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ";
    const Peer holds(port);
    holds.send(head + "1000\r\n\r\n" + part);
    const Peer also(port);
    also.send(head + "900\r\n\r\n" + part);
    quick = also.read_all();
    slow = holds.read_all();
  });
  EXPECT_THAT(quick, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(slow, IsEmpty()) << "whoever has sent for longest makes room";
  EXPECT_THAT(
      talk("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 900\r\n\r\n" +
           std::string(900, 'x')),
      StartsWith("HTTP/1.1 200"))
      << "what was held is given back";
}

TEST_F(ServerTest, RefusesABodyForWhichThereIsNoRoomWhileOthersAreHandled) {
  io::Event changed(loop_);
  bool is_over = false;
  std::atomic<int> handled = 0;
  serve(
      [&](ServerRequest) -> io::Task<Response> {
        ++handled;
        while (!is_over)
          std::ignore = co_await changed.wait({});
        co_return Response{.status = 200};
      },
      {.body_bytes_max = 1000, .bodies_bytes_max = 1500});
  std::string refused;
  with_thread([&, port = server_->port()] {
    const std::string request =
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" +
        std::string(1000, 'x');
    const Peer first(port);
    first.send(request);
    loop_.post([] {});
    while (handled == 0)
      std::this_thread::yield();
    const Peer second(port);
    second.send(request);
    refused = second.read_all();
    loop_.post([&] {
      is_over = true;
      changed.notify_all();
    });
    EXPECT_THAT(first.read_all(), StartsWith("HTTP/1.1 200"));
  });
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
}

// More than the kernel takes for a client that reads nothing.
constexpr std::size_t kLarge = 24'000'000;
io::Task<Response> large_response(int& answered) {
  ++answered;
  co_return Response{.status = 200, .body = std::string(kLarge, 'x')};
}
constexpr std::string_view kAsk = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

TEST_F(ServerTest, HoldsNoMoreOfAllResponsesThanItMay) {
  int answered = 0;
  serve([&](ServerRequest) { return large_response(answered); },
        {.responses_bytes_max = 60'000'000, .write_max = hours(1)});
  // It takes its response for longest, but it is the only one of its source.
  const Peer quiet(server_->port(), 0x7f000002);
  quiet.send(kAsk);
  loop_.run_until([&] { return answered == 1; });
  const Peer slow(server_->port());
  slow.send(kAsk);
  loop_.run_until([&] { return answered == 2; });

  EXPECT_GT(talk(kAsk).size(), kLarge);
  with_thread([&] {
    EXPECT_LT(slow.read_all().size(), kLarge);
    EXPECT_GT(quiet.read_all().size(), kLarge);
  });
}

TEST_F(ServerTest, HoldsNoMoreResponsesToOneSourceThanItMay) {
  int answered = 0;
  serve([&](ServerRequest) { return large_response(answered); },
        {.source_responses_bytes_max = 30'000'000, .write_max = hours(1)});
  const Peer other(server_->port(), 0x7f000002);
  other.send(kAsk);
  loop_.run_until([&] { return answered == 1; });
  const Peer slow(server_->port());
  slow.send(kAsk);
  loop_.run_until([&] { return answered == 2; });

  EXPECT_GT(talk(kAsk).size(), kLarge);
  with_thread([&] {
    EXPECT_LT(slow.read_all().size(), kLarge);
    EXPECT_GT(other.read_all().size(), kLarge);
  });
}

TEST_F(ServerTest, RefusesResponsesUntilThoseThatMadeRoomAreFreed) {
  io::Event changed(loop_);
  bool is_over = false;
  std::size_t waiting = 0;
  serve(
      [&](ServerRequest) -> io::Task<Response> {
        ++waiting;
        while (!is_over)
          std::ignore = co_await changed.wait({});
        co_return Response{.status = 200, .body = std::string(kLarge, 'x')};
      },
      {.responses_bytes_max = 30'000'000, .write_max = hours(1)});
  std::vector<std::unique_ptr<Peer>> peers;
  for (int client = 0; client < 8; ++client) {
    peers.push_back(std::make_unique<Peer>(server_->port()));
    peers.back()->send(kAsk);
  }
  loop_.run_until([&] { return waiting == peers.size(); });

  // All are answered before the loop learns that a write has failed.
  is_over = true;
  changed.notify_all();
  int whole = 0;
  int refused = 0;
  with_thread([&] {
    for (const auto& peer : peers) {
      const std::string answer = peer->read_all();
      if (answer.size() > kLarge) ++whole;
      if (answer.starts_with("HTTP/1.1 503")) ++refused;
    }
  });

  EXPECT_GT(whole, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(ServerTest, TakesNoConnectionFromARequestThatIsHandled) {
  const io::OneShot<bool> may_answer(loop_);
  bool is_asked = false;
  serve(
      [&](ServerRequest) -> io::Task<Response> {
        is_asked = true;
        co_await may_answer.wait();
        co_return Response{.status = 200, .body = "done"};
      },
      {.connections_max = 1});
  std::string answer;
  std::thread thread([&, port = server_->port()] {
    const Peer peer(port);
    peer.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    answer = peer.read_all();
  });
  loop_.run_until([&] { return is_asked; });

  EXPECT_THAT(talk("GET / HTTP/1.1\r\n\r\n"), IsEmpty());

  may_answer.set(true);
  loop_.run_until([&] { return server_->connection_count() == 0; });
  thread.join();

  EXPECT_THAT(answer, HasSubstr("done"));
}

TEST_F(ServerTest, SurvivesClientsThatLeaveInTheMiddle) {
  serve(echo);
  with_thread([port = server_->port()] {
    for (const std::string_view bytes :
         {"", "G", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n1",
          "GET / HTTP/1.1\r\n\r\n"}) {
      const Peer peer(port);
      peer.send(bytes);
    }
  });

  EXPECT_THAT(talk("GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(ServerTest, LetsRequestsFinishWhenItStops) {
  const io::OneShot<bool> may_answer(loop_);
  bool asked = false;
  serve([&](ServerRequest) -> io::Task<Response> {
    asked = true;
    co_await may_answer.wait();
    co_return Response{.status = 200, .body = "done"};
  });
  std::string answer;
  const Peer idle(server_->port());
  const std::uint16_t port = server_->port();
  std::thread thread([&, port] {
    const Peer peer(port);
    peer.send("GET / HTTP/1.1\r\n\r\n");
    answer = peer.read_all();
  });
  loop_.run_until([&] { return asked && server_->connection_count() == 2; });
  bool stopped = false;

  loop_.spawn([](Server& server, bool& out) -> io::Task<> {
    co_await server.stop(hours(1));
    out = true;
  }(*server_, stopped));
  loop_.run_until([&] { return server_->connection_count() == 1; });  // Idle one closed.
  EXPECT_FALSE(stopped);
  may_answer.set(true);
  loop_.run_until([&] { return stopped; });
  thread.join();

  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, HasSubstr("done"));
  EXPECT_EQ(server_->connection_count(), 0U);
}

TEST_F(ServerTest, WaitsForNobodyBeyondItsGrace) {
  const io::OneShot<bool> never_in_time(loop_);
  bool asked = false;
  serve([&](ServerRequest) -> io::Task<Response> {
    asked = true;
    co_await never_in_time.wait();
    co_return Response{.status = 200};
  });
  const Peer peer(server_->port());
  peer.send("GET / HTTP/1.1\r\n\r\n");
  loop_.run_until([&] { return asked; });

  run(loop_, server_->stop(milliseconds(1)));

  EXPECT_THAT(peer.read_all(), IsEmpty());
  never_in_time.set(true);
}

TEST_F(ServerTest, SaysWhyItCannotStart) {
  for (const char* address : {"", "x", "127.0.0.1:80", "300.0.0.1"}) {
    Server server(loop_, {.address = address}, echo);

    EXPECT_EQ(server.start().error().kind(), ErrorKind::InvalidInput) << address;
  }
  serve(echo);
  Server second(loop_, {.port = server_->port()}, echo);
  EXPECT_EQ(second.start().error().kind(), ErrorKind::Unavailable);
  Server broken(loop_, {.tls = ServerOptions::Tls{.certificate_pem = "x", .key_pem = "y"}}, echo);
  EXPECT_EQ(broken.start().error().kind(), ErrorKind::InvalidInput);
}

TEST_F(ServerTest, ShowsNewConnectionsTheNewCertificate) {
  const Authority old_authority;
  const Authority new_authority;
  const auto tls_of = [](const Authority& authority) {
    const Identity identity = authority.sign("127.0.0.1");
    return ServerOptions::Tls{.certificate_pem = identity.certificate_pem,
                              .key_pem = identity.key_pem};
  };
  serve(echo, {.tls = tls_of(old_authority)});
  Client client(loop_);
  const auto get = [&](const Authority& trusted) {
    return run(loop_, client.send({.url = fmt::format("https://127.0.0.1:{}/", server_->port()),
                                   .transport = direct({.ca_pem = trusted.certificate_pem()})},
                                  {}));
  };
  EXPECT_TRUE(get(old_authority).has_value());

  EXPECT_EQ(server_->set_certificate({.certificate_pem = "x"}).error().kind(),
            ErrorKind::InvalidInput);
  EXPECT_TRUE(get(old_authority).has_value());
  ASSERT_TRUE(server_->set_certificate(tls_of(new_authority)).has_value());

  EXPECT_TRUE(get(new_authority).has_value());
  EXPECT_FALSE(get(old_authority).has_value());
}

TEST_F(ServerTest, AnswersOfEverySizeArriveWholeOverTls) {
  const Authority authority;
  const Identity identity = authority.sign("127.0.0.1");
  std::size_t size = 0;
  serve(
      [&size](ServerRequest /*request*/) -> io::Task<Response> {
        co_return Response{.status = 200, .body = std::string(size, 'x')};
      },
      {.tls = ServerOptions::Tls{.certificate_pem = identity.certificate_pem,
                                 .key_pem = identity.key_pem}});
  Client client(loop_);
  // A record of TLS has 16 KiB at most.
  for (const std::size_t bytes : {1UL, 16'000UL, 16'384UL, 23'000UL, 40'000UL, 1'000'000UL}) {
    size = bytes;
    const auto answer =
        run(loop_, client.send({.url = fmt::format("https://127.0.0.1:{}/", server_->port()),
                                .transport = direct({.ca_pem = authority.certificate_pem()})},
                               {}));
    ASSERT_TRUE(answer.has_value()) << bytes << ": " << answer.error().message();
    EXPECT_EQ(answer->body.size(), bytes);
  }
}

TEST_F(ServerTest, RefusesACertificateWithTheKeyOfAnother) {
  const Authority authority;
  const Identity one = authority.sign("127.0.0.1");
  const Identity other = authority.sign("127.0.0.1");
  Server server(
      loop_,
      {.tls = ServerOptions::Tls{.certificate_pem = one.certificate_pem, .key_pem = other.key_pem}},
      echo);

  EXPECT_EQ(server.start().error().kind(), ErrorKind::InvalidInput);
}

TEST_F(ServerTest, KnowsTheNameOfAClientThatShowsItsCertificate) {
  const Authority authority;
  const Authority clients;
  const Authority strangers;
  const Identity identity = authority.sign("127.0.0.1");
  serve(
      [](ServerRequest request) -> io::Task<Response> {
        co_return Response{.status = 200,
                           .body = fmt::format("{} of [{}]", request.client_name.value_or("nobody"),
                                               fmt::join(request.client_organizations, ", "))};
      },
      {.tls = ServerOptions::Tls{.certificate_pem = identity.certificate_pem,
                                 .key_pem = identity.key_pem,
                                 .client_ca_pem = clients.certificate_pem(),
                                 .client_is_optional = true}});
  Client client(loop_);
  const auto ask = [&](const Identity& shown) {
    return run(loop_, client.send({.url = fmt::format("https://127.0.0.1:{}/", server_->port()),
                                   .transport = direct({.ca_pem = authority.certificate_pem(),
                                                        .certificate_pem = shown.certificate_pem,
                                                        .key_pem = shown.key_pem})},
                                  {}));
  };

  const auto without = ask({});
  const auto known = ask(clients.sign("kube-apiserver"));
  ASSERT_TRUE(without) << without.error().message();
  EXPECT_EQ(without->body, "nobody of []");
  ASSERT_TRUE(known) << known.error().message();
  EXPECT_EQ(known->body, "kube-apiserver of []");
  // In the form in which the API server's certificates name users and groups.
  const auto member = ask(clients.sign("jane", {{"O", "team-b"}, {"O", "team-a"}}));
  ASSERT_TRUE(member) << member.error().message();
  EXPECT_EQ(member->body, "jane of [team-b, team-a]");
  // Programs disagree on which of several names counts.
  const auto torn = ask(clients.sign("jane", {{"CN", "john"}}));
  ASSERT_TRUE(torn) << torn.error().message();
  EXPECT_EQ(torn->body, " of []");
  EXPECT_FALSE(ask(strangers.sign("kube-apiserver")).has_value());
}

}  // namespace
}  // namespace hangar::http
