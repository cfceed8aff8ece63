#include "http/server.h"

#include "base/log.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hangar::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// What a peer sees that sends `bytes` as they are and reads until the server closes.
std::string talk(std::uint16_t port, std::string_view bytes) {
  const int peer = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  std::string answer;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::recv(peer, buffer.data(), buffer.size(), 0)) > 0;) {
    answer.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(peer);
  return answer;
}

class ServerTest : public testing::Test {
 protected:
  // Serves while `client` runs on a thread of its own.
  std::vector<std::string> serve(Server& server, const std::vector<std::string>& requests) {
    EXPECT_TRUE(server.listen("127.0.0.1:0").has_value());
    const std::uint16_t port = server.port();
    std::vector<std::string> answers;
    std::atomic<bool> done = false;
    std::thread client([&] {
      for (const std::string& request : requests)
        answers.push_back(talk(port, request));
      done = true;
      loop_.post([] {});
    });
    loop_.run_until([&] { return done.load(); });
    client.join();
    return answers;
  }

  static io::Task<ServerResponse> echo(ServerRequest request) {
    co_return ServerResponse{.body = request.method + " " + request.path + " " + request.query +
                                     " " + request.body};
  }

  io::Loop loop_;
};

TEST_F(ServerTest, AnswersOneRequestAfterTheOther) {
  Server server(loop_, echo, Log());

  const auto answers = serve(
      server, {"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"
               "POST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"});

  EXPECT_THAT(answers[0], StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answers[0], HasSubstr("GET /a b=c "));
  EXPECT_THAT(answers[0], HasSubstr("POST /d  hi"));
}

TEST_F(ServerTest, HeadHasTheLengthAndNoBody) {
  Server server(loop_, echo, Log());

  const auto answers = serve(server, {"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"});

  EXPECT_THAT(answers[0], HasSubstr("Content-Length: 8\r\n"));
  EXPECT_TRUE(answers[0].ends_with("\r\n\r\n")) << answers[0];
}

TEST_F(ServerTest, RefusesWhatIsMalformedOrTooLarge) {
  Server server(loop_, echo, {.body_bytes_max = 10}, Log());

  const auto answers = serve(
      server, {"nonsense\r\n\r\n", "GET / HTTP/1.1\r\nx: " + std::string(100'000, 'y') + "\r\n\r\n",
               "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n"});

  EXPECT_THAT(answers[0], StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answers[1], StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(answers[2], StartsWith("HTTP/1.1 413"));
}

TEST_F(ServerTest, SaysWhyItCannotListen) {
  Server server(loop_, echo, Log());

  for (const std::string_view address :
       {"", "x", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "a b:1"}) {
    const Result<> listening = server.listen(address);
    ASSERT_FALSE(listening.has_value()) << address;
    EXPECT_EQ(listening.error().kind(), ErrorKind::InvalidInput) << address;
  }
}

}  // namespace
}  // namespace hangar::http
