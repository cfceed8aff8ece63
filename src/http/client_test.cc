#include "http/client.h"

#include "base/destroyed_by.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "http/address_policy.h"
#include "http/limits.h"
#include "http/server.h"
#include "http/test_support.h"
#include "io/all.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/objects.h>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::http {
namespace {

using testing::Authority;
using testing::direct;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::Identity;
using testing::NameServer;
using ::testing::Not;
using testing::run;
using testing::ScriptedServer;
using ::testing::StartsWith;
using Peer = ScriptedServer::Peer;
using std::chrono::milliseconds;

// A server that answers every connection's first request with the same bytes.
std::function<void(Peer&)> answer(std::string bytes) {
  return [bytes = std::move(bytes)](Peer& peer) {
    peer.read_head();
    peer.write(bytes);
  };
}

class ClientTest : public ::testing::Test {
 protected:
  ~ClientTest() override {
    server_.reset();
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }

  Result<Response> send(Request request, std::stop_token stop = {}) {
    if (!request.transport) request.transport = transport_;
    return run(loop_, client_.send(std::move(request), std::move(stop)));
  }
  Result<Response> stream(Request request, Client::StreamHandler handler,
                          std::stop_token stop = {}) {
    if (!request.transport) request.transport = transport_;
    return run(loop_, client_.stream(std::move(request), std::move(handler), std::move(stop)));
  }

  // Starts our own server; returns the URL of its root.
  std::string serve(Server::Handler handler, ServerOptions options = {}) {
    const bool tls = options.tls.has_value();
    server_.emplace(loop_, std::move(options), std::move(handler));
    const auto started = server_->start();
    EXPECT_TRUE(started.has_value());
    return fmt::format("{}://127.0.0.1:{}/", tls ? "https" : "http", server_->port());
  }
  std::string serve_echo(ServerOptions options = {}) {
    return serve(
        [this](ServerRequest request) -> io::Task<Response> {
          last_ = std::move(request);
          co_return Response{.status = 200, .body = last_.body};
        },
        std::move(options));
  }

  io::Loop loop_;
  std::shared_ptr<const Transport> transport_ = direct();
  Client client_{loop_};
  std::optional<Server> server_;
  ServerRequest last_;
};

TEST_F(ClientTest, SendsWhatTheCallerWroteAndNothingElse) {
  std::mutex mutex;
  std::string head;
  const ScriptedServer server([&](Peer& peer) {
    const std::scoped_lock lock(mutex);
    head = peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });

  const auto response = send({.url = server.url("/a/../b?x=%20y"),
                              .headers = {{"X-One", "1"}, {"X-Empty", ""}, {"X-One", "2"}}});

  ASSERT_TRUE(response.has_value()) << response.error().message();
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(head, fmt::format("GET /a/../b?x=%20y HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n"
                              "X-One: 1\r\nX-Empty:\r\nX-One: 2\r\n\r\n",
                              server.url("").substr(7)));
}

TEST_F(ClientTest, CarriesEveryMethodWithItsBody) {
  const std::string url = serve_echo();
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    for (const std::string& body :
         {std::string(), std::string("{\0}", 3), std::string(900'000, 'x')}) {
      const auto response = send({.method = method,
                                  .url = url,
                                  .headers = {{"Content-Type", "application/json"}},
                                  .body = body});

      ASSERT_TRUE(response.has_value()) << method << ": " << response.error().message();
      EXPECT_EQ(last_.method, method);
      EXPECT_EQ(last_.body.size(), body.size());
      EXPECT_EQ(response->body, body) << method;
    }
  }
  EXPECT_TRUE(send({.method = "HEAD", .url = url}).has_value());
  EXPECT_EQ(last_.method, "HEAD");
}

TEST_F(ClientTest, SendsABodyThatIsReadPieceByPiece) {
  const std::string url = serve_echo();
  const std::string body = std::string(700'000, 'x') + "end";

  const auto response =
      send({.method = "PUT",
            .url = url,
            .body_source = BodySource{
                .size_bytes = body.size(),
                .read = [&](std::uint64_t offset, std::span<char> into) -> Result<std::size_t> {
                  // Fewer bytes than there is room for, as a pipe might return.
                  return body.copy(into.data(), std::min<std::size_t>(into.size(), 1000), offset);
                }}});

  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(last_.method, "PUT");
  EXPECT_EQ(last_.body, body);
}

TEST_F(ClientTest, EndsARequestWhoseBodyCannotBeRead) {
  const std::string url = serve_echo();

  const auto response = send(
      {.method = "PUT",
       .url = url,
       .body_source = BodySource{.size_bytes = 10,
                                 .read = [](std::uint64_t, std::span<char>) -> Result<std::size_t> {
                                   return fail(ErrorKind::Corrupt, "the file is shorter");
                                 }}});

  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().kind(), ErrorKind::Corrupt);
  EXPECT_THAT(response.error().message(), HasSubstr("the file is shorter"));
}

TEST_F(ClientTest, SendsManyHeadersInTheirOrder) {
  const std::string url = serve_echo();
  Headers headers;
  for (int index = 0; index < 1000; ++index)
    headers.emplace_back("X-Part", std::to_string(index));

  ASSERT_TRUE(send({.url = url, .headers = headers}).has_value());

  Headers arrived = last_.headers;
  std::erase_if(arrived, [](const auto& header) { return header.first != "X-Part"; });
  EXPECT_EQ(arrived, headers);
}

// If the list were walked to its end for each header, this would take the loop an hour.
TEST_F(ClientTest, AddsEachOfManyHeadersAtOnce) {
  constexpr std::size_t kHeaders = 1'000'000;

  const auto response = send({.url = "https://127.0.0.1/",
                              .headers = Headers(kHeaders, {"x", "y"}),
                              .transport = direct({.addresses = AddressPolicy::public_only()})});

  // The headers are ready, and nothing is sent.
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().kind(), ErrorKind::Denied);
}

TEST_F(ClientTest, ReturnsEveryStatusAsAResponse) {
  const ScriptedServer server(answer(
      "HTTP/1.1 503 Down\r\nRetry-After: 7\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 4\r\n\r\nwait"));

  const auto response = send({.url = server.url()});

  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 503);
  EXPECT_EQ(response->body, "wait");
  EXPECT_EQ(find_header(response->headers, "retry-after"), "7");
  EXPECT_EQ(find_header(response->headers, "x-a"), "1");
  EXPECT_EQ(find_header(response->headers, "nothing"), std::nullopt);
}

TEST_F(ClientTest, SkipsInterimAnswersAndLeavesEncodingsAlone) {
  const ScriptedServer server(
      answer("HTTP/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\nHTTP/1.1 200 OK\r\n"
             "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b!"));

  const auto response = send({.url = server.url()});

  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "\x1f\x8b!");
  EXPECT_FALSE(find_header(response->headers, "x-interim").has_value());
}

TEST_F(ClientTest, RefusesRequestsThatAreNone) {
  for (const char* url : {"", "ftp://127.0.0.1/", "file:///etc/passwd", "127.0.0.1/", "http://",
                          "http://a b/", "unix:/x"}) {
    const auto response = send({.url = url});

    ASSERT_FALSE(response.has_value()) << url;
    EXPECT_EQ(response.error().kind(), ErrorKind::InvalidInput) << url;
  }
  const Request injected{.url = "http://127.0.0.1/", .headers = {{"A", "b\r\nX-Evil: 1"}}};
  EXPECT_EQ(send(injected).error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(send({.url = "http://127.0.0.1/", .headers = {{"A: b", ""}}}).error().kind(),
            ErrorKind::InvalidInput);
  EXPECT_EQ(send({.method = "GET /x", .url = "http://127.0.0.1/"}).error().kind(),
            ErrorKind::InvalidInput);
}

TEST_F(ClientTest, TellsThatNothingWasSentAndShowsNoSecret) {
  std::string url;
  {
    const ScriptedServer gone([](Peer&) {});
    url = gone.url("/path?token=secret");
  }
  url.replace(0, 7, "http://user:password@");

  const auto response = send({.method = "POST", .url = url, .body = "x"});

  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().kind(), ErrorKind::Unavailable);
  EXPECT_TRUE(was_never_sent(response.error())) << response.error().message();
  EXPECT_THAT(response.error().message(), StartsWith("POST http://127.0.0.1:"));
  EXPECT_THAT(response.error().message(), HasSubstr("/path: "));
  EXPECT_THAT(response.error().message(), Not(HasSubstr("secret")));
  EXPECT_THAT(response.error().message(), Not(HasSubstr("password")));
  // The message does not contain how long it took: the same failure gives the same text.
  EXPECT_THAT(response.error().message(), HasSubstr("Failed to connect"));
  EXPECT_THAT(response.error().message(), Not(HasSubstr(" after ")));
}

TEST_F(ClientTest, TellsACutAnswerFromAWholeOne) {
  struct Case {
    std::string_view name;
    std::string bytes;
  };
  for (const Case& one :
       {Case{"nothing", ""}, Case{"half a status line", "HTTP/1.1 2"},
        Case{"half the headers", "HTTP/1.1 200 OK\r\nContent-Le"},
        Case{"half the body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"},
        Case{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"},
        Case{"broken chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n"},
        Case{"garbage", "\x16\x03\x01 what is this\r\n\r\n"},
        Case{"HTTP/0.9", "<html>hello</html>"}}) {
    const ScriptedServer server(answer(one.bytes));

    const auto response = send({.method = "POST", .url = server.url()});

    ASSERT_FALSE(response.has_value()) << one.name;
    EXPECT_EQ(response.error().kind(), ErrorKind::Unavailable) << one.name;
    EXPECT_FALSE(was_never_sent(response.error())) << one.name;
  }
}

TEST_F(ClientTest, BoundsTheBody) {
  const auto chunked = [](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.write("10\r\n0123456789abcdef\r\n")) {
    }
  };
  const ScriptedServer endless(chunked);
  const ScriptedServer exact(answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour"));

  EXPECT_EQ(send({.url = endless.url(), .response_bytes_max = 1'000'000}).error().kind(),
            ErrorKind::LimitExceeded);
  EXPECT_EQ(send({.url = exact.url(), .response_bytes_max = 4}).value().body, "four");
  EXPECT_EQ(send({.url = exact.url(), .response_bytes_max = 3}).error().kind(),
            ErrorKind::LimitExceeded);
}

TEST_F(ClientTest, BoundsTheHeaders) {
  const ScriptedServer endless([](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\n");
    const std::string header = "X: " + std::string(1000, 'x') + "\r\n";
    while (peer.write(header)) {
    }
  });

  EXPECT_EQ(send({.url = endless.url()}).error().kind(), ErrorKind::LimitExceeded);
}

TEST_F(ClientTest, EndsARequestThatTakesTooLong) {
  const ScriptedServer silent([](Peer& peer) { peer.wait_for_end(); });

  const auto response = send({.url = silent.url(), .total_timeout = milliseconds(20)});

  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().kind(), ErrorKind::Unavailable);
  EXPECT_FALSE(was_never_sent(response.error()));
}

TEST_F(ClientTest, EndsAStreamThatFallsSilentAndNoOther) {
  const ScriptedServer silent([](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
    peer.wait_for_end();
  });
  std::string body;

  const auto response = stream(
      {.url = silent.url(), .total_timeout = milliseconds(0), .idle_timeout = milliseconds(20)},
      {.on_headers = [](int, const Headers&) { return Result<>(); },
       .on_bytes =
           [&](std::string_view bytes) {
             body += bytes;
             return Result<>();
           }});

  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(response.error().message(), EndsWith("nothing arrived for 20ms"));
  EXPECT_EQ(body, "hi");
}

TEST_F(ClientTest, EndsAnAnswerThatTricklesAndNoOther) {
  const auto trickle = [](std::string head, std::string_view piece) {
    return [head = std::move(head), piece](Peer& peer) {
      peer.read_head();
      peer.write(head);
      while (peer.write(piece))
        std::this_thread::sleep_for(milliseconds(1));
    };
  };
  const ScriptedServer body(trickle("HTTP/1.1 200 OK\r\n\r\n", "x"));
  const ScriptedServer headers(trickle("HTTP/1.1 200 OK\r\n", "X: y\r\n"));
  for (const ScriptedServer* server : {&body, &headers}) {
    const auto response = send({.url = server->url(),
                                .total_timeout = milliseconds(0),
                                .pace_window = milliseconds(50),
                                .pace_bytes_min = 1'000'000});

    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().kind(), ErrorKind::Unavailable);
    EXPECT_THAT(response.error().message(), HasSubstr("too slow"));
  }
  // A response that is fast enough continues, and so does one that has not started.
  std::latch has_waited(1);
  const ScriptedServer late([&](Peer& peer) {
    peer.read_head();
    has_waited.wait();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
  });
  const io::Loop::Timer tick = loop_.after(milliseconds(20), [&] { has_waited.count_down(); });
  EXPECT_EQ(send({.url = late.url(), .pace_window = milliseconds(5), .pace_bytes_min = 1'000'000})
                .value()
                .body,
            "late");
}

TEST_F(ClientTest, DeliversAStreamPieceByPiece) {
  // The server sends each piece when the client has seen the one before.
  std::latch first_seen(1);
  std::latch headers_seen(1);
  const ScriptedServer server([&](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n");
    headers_seen.wait();
    peer.write("4\r\none\n\r\n");
    first_seen.wait();
    peer.write("4\r\ntwo\n\r\n0\r\nX-Trailer: t\r\n\r\n");
  });
  std::vector<std::string> pieces;
  int headers_calls = 0;

  const auto response =
      stream({.url = server.url()}, {.on_headers =
                                         [&](int status, const Headers& headers) {
                                           EXPECT_EQ(status, 200);
                                           EXPECT_EQ(find_header(headers, "x-a"), "b");
                                           ++headers_calls;
                                           headers_seen.count_down();
                                           return Result<>();
                                         },
                                     .on_bytes =
                                         [&](std::string_view bytes) {
                                           pieces.emplace_back(bytes);
                                           if (pieces.size() == 1) first_seen.count_down();
                                           return Result<>();
                                         }});

  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(headers_calls, 1);
  EXPECT_EQ(pieces, (std::vector<std::string>{"one\n", "two\n"}));
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "");
  EXPECT_FALSE(find_header(response->headers, "x-trailer").has_value());
}

TEST_F(ClientTest, TellsHeadersOfAnAnswerWithoutBody) {
  const ScriptedServer server(answer("HTTP/1.1 204 No Content\r\n\r\n"));
  int status_seen = 0;

  const auto response =
      stream({.url = server.url()}, {.on_headers =
                                         [&](int status, const Headers&) {
                                           status_seen = status;
                                           return Result<>();
                                         },
                                     .on_bytes = [](std::string_view) { return Result<>(); }});

  EXPECT_TRUE(response.has_value());
  EXPECT_EQ(status_seen, 204);
}

TEST_F(ClientTest, EndsAStreamWithTheErrorOfACallback) {
  const ScriptedServer server([](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.write("2\r\nhi\r\n")) {
    }
  });
  const auto fine = [](int, const Headers&) { return Result<>(); };
  int calls = 0;

  const auto from_headers =
      stream({.url = server.url()}, {.on_headers = [](int, const Headers&) -> Result<> {
                                       return fail(ErrorKind::Denied, "not this status");
                                     },
                                     .on_bytes =
                                         [&](std::string_view) {
                                           ++calls;
                                           return Result<>();
                                         }});
  const auto from_bytes = stream(
      {.url = server.url()}, {.on_headers = fine, .on_bytes = [&](std::string_view) -> Result<> {
                                return fail(ErrorKind::Expired, "enough");
                              }});

  EXPECT_EQ(from_headers.error().message(), "not this status");
  EXPECT_EQ(from_headers.error().kind(), ErrorKind::Denied);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(from_bytes.error().kind(), ErrorKind::Expired);
}

TEST_F(ClientTest, EndsAStreamWhoseCallbackThrows) {
  const ScriptedServer server([](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.write("2\r\nhi\r\n")) {
    }
  });

  const auto ended = stream(
      {.url = server.url()},
      {.on_headers = [](int, const Headers&) { return Result<>(); },
       .on_bytes = [](std::string_view) -> Result<> { throw std::runtime_error("no room"); }});

  EXPECT_EQ(ended.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(ended.error().message(), HasSubstr("no room"));
}

TEST_F(ClientTest, IsCancelledFromInsideOfACallback) {
  const ScriptedServer server([](Peer& peer) {
    peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.write("2\r\nhi\r\n")) {
    }
  });
  std::stop_source stop;
  int calls = 0;

  const auto response = stream({.url = server.url()},
                               {.on_headers = [](int, const Headers&) { return Result<>(); },
                                .on_bytes =
                                    [&](std::string_view) {
                                      ++calls;
                                      stop.request_stop();
                                      return Result<>();
                                    }},
                               stop.get_token());

  EXPECT_EQ(response.error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ(calls, 1);
}

TEST_F(ClientTest, IsCancelledBeforeWhileAndAfterItWaits) {
  const ScriptedServer silent([](Peer& peer) { peer.wait_for_end(); });
  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(send({.url = silent.url()}, before.get_token()).error().kind(), ErrorKind::Cancelled);

  std::stop_source at_once;
  loop_.post([&] { at_once.request_stop(); });
  EXPECT_EQ(send({.url = silent.url()}, at_once.get_token()).error().kind(), ErrorKind::Cancelled);

  std::stop_source later;
  const auto timer = loop_.after(milliseconds(5), [&] { later.request_stop(); });
  EXPECT_EQ(send({.url = silent.url()}, later.get_token()).error().kind(), ErrorKind::Cancelled);

  EXPECT_EQ(client_.busy_connection_count(), 0U);
}

TEST_F(ClientTest, TakesNewRequestsFromInsideOfACallback) {
  const std::string url = serve_echo();
  std::optional<Result<Response>> inner;
  const auto start_inner = [](Client& client, Request request,
                              std::optional<Result<Response>>& out) -> io::Task<> {
    out.emplace(co_await client.send(std::move(request), {}));
  };

  const auto outer = stream(
      {.method = "POST", .url = url, .body = "outer"},
      {.on_headers = [](int, const Headers&) { return Result<>(); },
       .on_bytes =
           [&](std::string_view) {
             loop_.spawn(start_inner(
                 client_, {.method = "POST", .url = url, .body = "inner", .transport = transport_},
                 inner));
             return Result<>();
           }});
  loop_.run_until([&] { return inner.has_value(); });

  EXPECT_TRUE(outer.has_value());
  ASSERT_TRUE(inner->has_value()) << inner->error().message();
  EXPECT_EQ((*inner)->body, "inner");
}

TEST_F(ClientTest, SendsNothingThatMayNotBeSentAnyMore) {
  std::atomic<int> requests = 0;
  const ScriptedServer server([&](Peer& peer) {
    // The second response ends the connection, because the server waits for its connections.
    while (requests < 2 && !peer.read_head().empty()) {
      const bool is_last = ++requests == 2;
      peer.write(is_last ? "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                         : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  });
  const auto transport = direct();
  const auto put = [&](bool may_send) {
    return send(
        {.method = "DELETE", .url = server.url(), .transport = transport, .may_send = [may_send] {
           return may_send;
         }});
  };

  EXPECT_TRUE(put(true));
  const auto on_a_kept_connection = put(false);

  ASSERT_FALSE(on_a_kept_connection);
  EXPECT_EQ(on_a_kept_connection.error().kind(), ErrorKind::Unavailable);
  EXPECT_TRUE(was_never_sent(on_a_kept_connection.error()));
  EXPECT_TRUE(put(true));
  EXPECT_EQ(requests, 2);
}

TEST_F(ClientTest, SendsAWholeBodyWhileItMayAndNoMoreOfItAfter) {
  std::vector<std::string> bodies;
  const auto server = std::make_unique<Server>(loop_, ServerOptions{.body_bytes_max = limits::kMiB},
                                               [&](ServerRequest request) -> io::Task<Response> {
                                                 bodies.push_back(std::move(request.body));
                                                 co_return Response{.status = 200};
                                               });
  ASSERT_TRUE(server->start());
  const std::string body(600'000, 'x');
  const auto put = [&](std::function<bool()> may_send) {
    return send({.method = "PUT",
                 .url = fmt::format("http://127.0.0.1:{}/", server->port()),
                 .body = body,
                 .transport = direct(),
                 .may_send = std::move(may_send)});
  };

  EXPECT_TRUE(put([] { return true; }));
  const auto cut = put([left = 5]() mutable { return --left > 0; });

  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().kind(), ErrorKind::Unavailable);
  EXPECT_FALSE(was_never_sent(cut.error()));
  run(loop_, server->stop(milliseconds(10)));
  EXPECT_EQ(bodies, std::vector<std::string>{body});
}

TEST_F(ClientTest, EndsWithItsOwner) {
  const ScriptedServer silent([](Peer& peer) { peer.wait_for_end(); });
  auto client = std::make_unique<Client>(loop_);
  std::optional<Result<Response>> result;
  loop_.spawn([](Client& one, Request request, std::optional<Result<Response>>& out) -> io::Task<> {
    out.emplace(co_await one.send(std::move(request), {}));
  }(*client, {.url = silent.url(), .transport = transport_}, result));
  loop_.run_until([&] { return client->busy_connection_count() == 1; });

  client.reset();
  loop_.run_until([&] { return result.has_value(); });

  EXPECT_EQ(result->error().kind(), ErrorKind::Cancelled);
}

TEST_F(ClientTest, FollowsRedirectsOnlyAsFarAsAsked) {
  const ScriptedServer target(answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"));
  const ScriptedServer detour(answer(fmt::format(
      "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 3\r\n\r\nnot", target.url("/there"))));
  const ScriptedServer circle(
      answer("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"));

  EXPECT_EQ(send({.url = detour.url()}).value().status, 302);
  const auto followed = send({.url = detour.url(), .redirects_max = 1});
  EXPECT_EQ(followed.value().status, 200);
  EXPECT_EQ(followed.value().body, "here");
  EXPECT_FALSE(find_header(followed.value().headers, "location").has_value());
  EXPECT_EQ(send({.url = circle.url(), .redirects_max = 3}).error().kind(),
            ErrorKind::LimitExceeded);
}

TEST_F(ClientTest, NeverFollowsARedirectToAnotherProtocol) {
  const ScriptedServer server(
      answer("HTTP/1.1 302 Found\r\nLocation: file:///etc/hostname\r\nContent-Length: 0\r\n\r\n"));

  EXPECT_FALSE(send({.url = server.url(), .redirects_max = 5}).has_value());
}

TEST_F(ClientTest, TakesCredentialsToNoOtherHost) {
  std::mutex mutex;
  std::string head;
  const ScriptedServer target([&](Peer& peer) {
    const std::scoped_lock lock(mutex);
    head = peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  // To libcurl another port is another host.
  const ScriptedServer detour(answer(fmt::format(
      "HTTP/1.1 307 Go\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", target.url("/there"))));

  const auto response = send(
      {.url = detour.url(),
       .headers = {{"Authorization", "Bearer secret"}, {"Cookie", "c=secret"}, {"X-Kept", "1"}},
       .redirects_max = 1});

  ASSERT_TRUE(response.has_value());
  const std::scoped_lock lock(mutex);
  EXPECT_THAT(head, HasSubstr("X-Kept: 1"));
  EXPECT_THAT(head, Not(HasSubstr("secret")));
}

io::Task<> send_many(io::Loop& loop, Client& client, Request request, int count, int& succeeded) {
  std::vector<io::Task<Result<Response>>> requests;
  for (int index = 0; index < count; ++index)
    requests.push_back(client.send(request, {}));
  for (const auto& response : co_await io::all(loop, std::move(requests)))
    succeeded += response.has_value() && response->status == 200 ? 1 : 0;
}

TEST_F(ClientTest, HoldsAThousandStreamsAtOnce) {
  constexpr int kStreams = 1000;
  // Both ends of each connection belong to this process: many systems allow 1024 descriptors
  // by default.
  rlimit descriptors{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  descriptors.rlim_cur = descriptors.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &descriptors), 0);
  io::Event arrived(loop_);
  int waiting = 0;
  // No request is answered before all have arrived.
  const std::string url = serve(
      [&](ServerRequest) -> io::Task<Response> {
        if (++waiting == kStreams) {
          arrived.notify_all();
        } else {
          EXPECT_TRUE((co_await arrived.wait({})).has_value());
        }
        co_return Response{.status = 200, .body = "ok"};
      },
      {.connections_max = kStreams});
  int succeeded = 0;

  run(loop_, send_many(loop_, client_, {.url = url, .transport = transport_}, kStreams, succeeded));

  EXPECT_EQ(succeeded, kStreams);
}

TEST_F(ClientTest, KeepsConnectionsForTheNextRequest) {
  const std::string url = serve_echo();

  for (int request = 0; request < 5; ++request)
    ASSERT_TRUE(send({.url = url}).has_value());

  EXPECT_EQ(server_->connection_count(), 1U);
}

TEST_F(ClientTest, SharesNoConnectionBetweenTransports) {
  const std::string url = serve_echo();
  const auto other = direct();

  ASSERT_TRUE(send({.url = url}).has_value());
  ASSERT_TRUE(send({.url = url, .transport = other}).has_value());

  EXPECT_EQ(server_->connection_count(), 2U);
}

TEST_F(ClientTest, ClosesConnectionsWhoseTransportIsGone) {
  const std::string url = serve_echo();
  ASSERT_TRUE(send({.url = url, .transport = direct()}).has_value());
  EXPECT_EQ(server_->connection_count(), 1U);

  ASSERT_TRUE(send({.url = url}).has_value());
  loop_.run_until([&] { return server_->connection_count() == 1; });
}

TEST_F(ClientTest, UsesTheProxyItIsGiven) {
  std::mutex mutex;
  std::string head;
  const ScriptedServer proxy([&](Peer& peer) {
    const std::scoped_lock lock(mutex);
    head = peer.read_head();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy");
  });

  const auto response =
      send({.url = "http://127.0.0.1:1/x",
            .transport = std::make_shared<const Transport>(Transport{.proxy_url = proxy.url()})});

  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(response->body, "proxy");
  const std::scoped_lock lock(mutex);
  EXPECT_THAT(head, StartsWith("GET http://127.0.0.1:1/x HTTP/1.1\r\n"));
}

// Replaces the address in a URL by a name.
std::string with_host(std::string url, std::string_view name) {
  return url.replace(url.find("127.0.0.1"), 9, name);
}

class ClientNamesTest : public ClientTest {
 protected:
  void use(const NameServer& server) {
    named_ = std::make_unique<Client>(loop_, ClientOptions{.name_servers = server.address()});
  }
  Result<Response> send_named(Request request, std::stop_token stop = {}) {
    if (!request.transport) request.transport = transport_;
    return run(loop_, named_->send(std::move(request), std::move(stop)));
  }

  std::unique_ptr<Client> named_;
};

TEST_F(ClientNamesTest, FindsServersByTheirNames) {
  std::mutex mutex;
  std::vector<std::string> asked;
  const NameServer names([&](const std::string& name) {
    const std::scoped_lock lock(mutex);
    asked.push_back(name);
    return NameServer::Reply{.addresses = {"127.0.0.1"}};
  });
  use(names);
  const std::string url = with_host(serve_echo(), "Server.Example.com");

  const auto response = send_named({.url = url, .body = "x"});

  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(find_header(last_.headers, "host"), url.substr(7, url.size() - 8));
  const std::scoped_lock lock(mutex);
  EXPECT_THAT(asked, ::testing::Each("server.example.com"));
}

TEST_F(ClientNamesTest, TriesEveryAddress) {
  const NameServer names([](const std::string&) {
    // No server listens at the first addresses.
    return NameServer::Reply{.addresses = {"::1", "127.1.2.3", "127.0.0.1"}};
  });
  use(names);

  EXPECT_TRUE(send_named({.url = with_host(serve_echo(), "server.example.com")}).has_value());
}

TEST_F(ClientNamesTest, KeepsConnectionsOfAName) {
  const NameServer names([](const std::string&) {
    return NameServer::Reply{.addresses = {"127.0.0.1"}, .ttl_seconds = 0};
  });
  use(names);
  const std::string url = with_host(serve_echo(), "server.example.com");

  for (int request = 0; request < 5; ++request)
    ASSERT_TRUE(send_named({.url = url}).has_value());

  EXPECT_EQ(server_->connection_count(), 1U);
}

TEST_F(ClientNamesTest, TellsThatANameHasNoAddress) {
  const NameServer names([](const std::string&) { return NameServer::Reply{.code = 3}; });
  use(names);

  const auto response = send_named({.url = "http://nowhere.example.com/"});

  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().kind(), ErrorKind::Unavailable);
  EXPECT_TRUE(was_never_sent(response.error())) << response.error().message();
  EXPECT_THAT(response.error().message(), StartsWith("GET http://nowhere.example.com/: "));
}

TEST_F(ClientNamesTest, WaitsForANameNoLongerThanForAConnection) {
  const NameServer names([](const std::string&) { return std::nullopt; });
  use(names);

  const auto by_connect =
      send_named({.url = "http://silent.example.com/", .connect_timeout = milliseconds(20)});
  const auto by_total =
      send_named({.url = "http://silent.example.com/", .total_timeout = milliseconds(20)});

  EXPECT_TRUE(was_never_sent(by_connect.error())) << by_connect.error().message();
  EXPECT_TRUE(was_never_sent(by_total.error())) << by_total.error().message();
}

TEST_F(ClientNamesTest, ServesOthersWhileANameIsAwaited) {
  const NameServer names([](const std::string&) { return std::nullopt; });
  use(names);
  const std::string url = serve_echo();
  std::stop_source stop;
  std::optional<Result<Response>> result;
  loop_.spawn([](io::Task<Result<Response>> task,
                 std::optional<Result<Response>>& out) -> io::Task<> {
    out.emplace(co_await std::move(task));
  }(named_->send({.url = "http://silent.example.com/", .transport = transport_}, stop.get_token()),
                                                       result));

  for (int request = 0; request < 20; ++request)
    EXPECT_TRUE(send_named({.url = url}).has_value());
  EXPECT_FALSE(result.has_value());
  stop.request_stop();
  loop_.run_until([&] { return result.has_value(); });

  EXPECT_EQ(result->error().kind(), ErrorKind::Cancelled);
}

TEST_F(ClientNamesTest, EndsWithItsOwnerWhileANameIsAwaited) {
  const NameServer names([](const std::string&) { return std::nullopt; });
  use(names);
  std::optional<Result<Response>> result;
  loop_.spawn(
      [](io::Task<Result<Response>> task, std::optional<Result<Response>>& out) -> io::Task<> {
        out.emplace(co_await std::move(task));
      }(named_->send({.url = "http://silent.example.com/", .transport = transport_}, {}), result));

  named_.reset();
  loop_.run_until([&] { return result.has_value(); });

  EXPECT_EQ(result->error().kind(), ErrorKind::Cancelled);
}

TEST_F(ClientNamesTest, ResolvesWhereRedirectsLead) {
  const NameServer names(
      [](const std::string&) { return NameServer::Reply{.addresses = {"127.0.0.1"}}; });
  use(names);
  const ScriptedServer target(answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"));
  const ScriptedServer detour(
      answer(fmt::format("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
                         with_host(target.url("/there"), "target.example.com"))));

  const auto response =
      send_named({.url = with_host(detour.url(), "detour.example.com"), .redirects_max = 1});

  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(response->body, "here");
}

TEST_F(ClientNamesTest, ResolvesTheProxyAndNotWhatItIsFor) {
  std::mutex mutex;
  std::vector<std::string> asked;
  const NameServer names([&](const std::string& name) {
    const std::scoped_lock lock(mutex);
    asked.push_back(name);
    return NameServer::Reply{.addresses = {"127.0.0.1"}};
  });
  use(names);
  const ScriptedServer proxy(answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy"));

  const auto response =
      send_named({.url = "http://server.example.com/",
                  .transport = std::make_shared<const Transport>(
                      Transport{.proxy_url = with_host(proxy.url(), "proxy.example.com")})});

  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(response->body, "proxy");
  const std::scoped_lock lock(mutex);
  EXPECT_THAT(asked, ::testing::Each("proxy.example.com"));
}

// A transport that may reach public addresses, and `addresses`.
std::shared_ptr<const Transport> allowing(const std::vector<std::string>& addresses) {
  return direct({.addresses = AddressPolicy::public_and(addresses).value()});
}

TEST_F(ClientNamesTest, ConnectsToNoAddressThatItsPolicyRefuses) {
  const NameServer names(
      [](const std::string&) { return NameServer::Reply{.addresses = {"127.0.0.1", "::1"}}; });
  use(names);
  const std::string url = serve_echo();
  // All spellings that libcurl understands, and names.
  for (const char* host :
       {"127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::1]", "[::]", "localhost", "server.example.com"}) {
    const auto response = send_named({.url = with_host(url, host), .transport = allowing({})});

    ASSERT_FALSE(response.has_value()) << host;
    EXPECT_EQ(response.error().kind(), ErrorKind::Denied) << host << response.error().message();
  }
  EXPECT_EQ(server_->connection_count(), 0U);
  EXPECT_TRUE(send_named({.url = with_host(url, "server.example.com"),
                          .transport = allowing({"127.0.0.1"})})
                  .has_value());
}

TEST_F(ClientNamesTest, ConnectsToTheAllowedAddressesOfANameOnly) {
  const NameServer names([](const std::string&) {
    return NameServer::Reply{.addresses = {"127.0.0.1", "127.0.0.2"}};
  });
  use(names);
  const std::string url = with_host(serve_echo(), "server.example.com");

  EXPECT_TRUE(send_named({.url = url, .transport = allowing({"127.0.0.1"})}).has_value());
  // No server listens there.
  const auto other = send_named({.url = url, .transport = allowing({"127.0.0.2"})});
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind(), ErrorKind::Unavailable);
}

TEST_F(ClientNamesTest, LooksAtTheAddressOfEachRedirectAndOfEachRequest) {
  std::atomic<bool> is_rebound = false;
  const NameServer names([&](const std::string& name) {
    const bool is_inside = name == "inside.example.com" || is_rebound;
    return NameServer::Reply{.addresses = {is_inside ? "127.0.0.2" : "127.0.0.1"},
                             .ttl_seconds = 0};
  });
  use(names);
  for (const char* location : {"http://127.0.0.2/", "//127.0.0.2/", "http://inside.example.com/",
                               "http://[::ffff:127.0.0.2]/", "http://2130706434/"}) {
    const ScriptedServer detour(answer(
        fmt::format("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", location)));
    const auto response = send_named({.url = with_host(detour.url(), "outside.example.com"),
                                      .transport = allowing({"127.0.0.1"}),
                                      .redirects_max = 5});

    ASSERT_FALSE(response.has_value()) << location;
    EXPECT_EQ(response.error().kind(), ErrorKind::Denied) << response.error().message();
  }
  const std::string url = with_host(serve_echo(), "outside.example.com");
  const auto transport = allowing({"127.0.0.1"});
  EXPECT_TRUE(send_named({.url = url, .transport = transport}).has_value());
  is_rebound = true;
  EXPECT_EQ(send_named({.url = url, .transport = transport}).error().kind(), ErrorKind::Denied);
}

// Unescaped once, the host is a name that resolves to an allowed address. Unescaped twice, it would
// be 127.0.0.1.
TEST_F(ClientNamesTest, RefusesAHostThatIsAnotherWhenItIsReadAgain) {
  const NameServer names(
      [](const std::string&) { return NameServer::Reply{.addresses = {"127.0.0.2"}}; });
  use(names);
  const std::string url = serve_echo();
  for (const char* host : {"%2531%2532%2537.0.0.1", "%252531%252532%252537.0.0.1", "127%252e0.0.1",
                           "%31%32%37%252e0.0.1"}) {
    const auto direct_response =
        send_named({.url = with_host(url, host), .transport = allowing({"127.0.0.2"})});
    const ScriptedServer detour(answer(fmt::format(
        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", with_host(url, host))));
    const auto redirected = send_named({.url = detour.url(),
                                        .transport = allowing({"127.0.0.1", "127.0.0.2"}),
                                        .redirects_max = 1});

    ASSERT_FALSE(direct_response.has_value()) << host;
    EXPECT_EQ(direct_response.error().kind(), ErrorKind::InvalidInput) << host;
    ASSERT_FALSE(redirected.has_value()) << host;
    EXPECT_EQ(redirected.error().kind(), ErrorKind::InvalidInput)
        << host << ": " << redirected.error().message();
  }
  EXPECT_EQ(server_->connection_count(), 0U);
}

TEST_F(ClientNamesTest, LeavesAddressesToTheProxy) {
  const NameServer names([](const std::string&) { return NameServer::Reply{.code = 3}; });
  use(names);
  const ScriptedServer proxy(answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy"));
  const auto transport = std::make_shared<const Transport>(
      Transport{.proxy_url = proxy.url(), .addresses = AddressPolicy::public_and({}).value()});

  EXPECT_EQ(send_named({.url = "http://10.0.0.1/", .transport = transport}).value().body, "proxy");
}

class ClientTlsTest : public ClientTest {
 protected:
  std::string serve_tls(const std::string& name, std::string client_ca_pem = {}) {
    const Identity identity = authority_.sign(name);
    return serve_echo({.tls = ServerOptions::Tls{.certificate_pem = identity.certificate_pem,
                                                 .key_pem = identity.key_pem,
                                                 .client_ca_pem = std::move(client_ca_pem)}});
  }

  Authority authority_;
};

TEST_F(ClientTlsTest, TrustsTheAuthorityItIsGiven) {
  const std::string url = serve_tls("127.0.0.1");
  const Authority other;

  const auto trusted =
      send({.url = url, .transport = direct({.ca_pem = authority_.certificate_pem()})});
  const auto by_system = send({.url = url});
  const auto by_other =
      send({.url = url, .transport = direct({.ca_pem = other.certificate_pem()})});
  const auto unverified = send({.url = url, .transport = direct({.skip_verify = true})});

  EXPECT_TRUE(trusted.has_value()) << trusted.error().message();
  ASSERT_FALSE(by_system.has_value());
  EXPECT_EQ(by_system.error().kind(), ErrorKind::Unavailable);
  EXPECT_TRUE(was_never_sent(by_system.error()));
  EXPECT_FALSE(by_other.has_value());
  EXPECT_TRUE(unverified.has_value());
}

TEST_F(ClientTlsTest, VerifiesTheNameItIsGiven) {
  const std::string url = serve_tls("kubernetes.example");
  const std::string ca_pem = authority_.certificate_pem();

  const auto named = send(
      {.url = url, .transport = direct({.ca_pem = ca_pem, .server_name = "kubernetes.example"})});
  EXPECT_EQ(find_header(last_.headers, "host"), url.substr(8, url.size() - 9));
  const auto misnamed =
      send({.url = url, .transport = direct({.ca_pem = ca_pem, .server_name = "other.example"})});
  const auto unnamed = send({.url = url, .transport = direct({.ca_pem = ca_pem})});

  EXPECT_TRUE(named.has_value()) << named.error().message();
  EXPECT_FALSE(misnamed.has_value());
  EXPECT_FALSE(unnamed.has_value());
}

TEST_F(ClientTlsTest, VerifiesTheNameThatItLookedUp) {
  const NameServer names(
      [](const std::string&) { return NameServer::Reply{.addresses = {"127.0.0.1"}}; });
  Client named(loop_, {.name_servers = names.address()});
  const std::string url = serve_tls("server.example.com");
  const auto trusted = direct({.ca_pem = authority_.certificate_pem()});

  const auto right = run(
      loop_, named.send({.url = with_host(url, "server.example.com"), .transport = trusted}, {}));
  const auto wrong = run(
      loop_, named.send({.url = with_host(url, "other.example.com"), .transport = trusted}, {}));

  EXPECT_TRUE(right.has_value()) << right.error().message();
  EXPECT_FALSE(wrong.has_value());
}

TEST_F(ClientTlsTest, ShowsItsCertificate) {
  const Authority clients;
  const std::string url = serve_tls("127.0.0.1", clients.certificate_pem());
  const std::string ca_pem = authority_.certificate_pem();
  const Identity known = clients.sign("client");
  const Identity unknown = authority_.sign("client");

  const auto with = send({.url = url,
                          .transport = direct({.ca_pem = ca_pem,
                                               .certificate_pem = known.certificate_pem,
                                               .key_pem = known.key_pem})});
  const auto without = send({.url = url, .transport = direct({.ca_pem = ca_pem})});
  const auto with_unknown = send({.url = url,
                                  .transport = direct({.ca_pem = ca_pem,
                                                       .certificate_pem = unknown.certificate_pem,
                                                       .key_pem = unknown.key_pem})});
  const auto with_garbage =
      send({.url = url,
            .transport = direct({.ca_pem = ca_pem, .certificate_pem = "garbage", .key_pem = "x"})});

  EXPECT_TRUE(with.has_value()) << with.error().message();
  EXPECT_FALSE(without.has_value());
  EXPECT_FALSE(with_unknown.has_value());
  ASSERT_FALSE(with_garbage.has_value());
  EXPECT_TRUE(was_never_sent(with_garbage.error())) << with_garbage.error().message();
}

TEST_F(ClientTlsTest, OpensAConnectionForEachRequestWhereHttp2IsNotSpoken) {
  constexpr int kStreams = 3 * static_cast<int>(limits::kHttp2ConnectionsMax);
  const Identity identity = authority_.sign("127.0.0.1");
  io::Event arrived(loop_);
  int waiting = 0;
  const std::string url = serve(
      [&](ServerRequest) -> io::Task<Response> {
        if (++waiting == kStreams) {
          arrived.notify_all();
        } else if (waiting > 1) {
          EXPECT_TRUE((co_await arrived.wait({})).has_value());
        }
        co_return Response{.status = 200, .body = "ok"};
      },
      {.tls = ServerOptions::Tls{.certificate_pem = identity.certificate_pem,
                                 .key_pem = identity.key_pem}});
  int succeeded = 0;

  run(loop_, send_many(loop_, client_,
                       {.url = url, .transport = direct({.ca_pem = authority_.certificate_pem()})},
                       kStreams, succeeded));

  EXPECT_EQ(succeeded, kStreams);
}

// With a prime of its choice, a server would have the loop compute for a second in each handshake.
TEST_F(ClientTlsTest, OffersNoKeyExchangeInAGroupThatTheServerMakesUp) {
  constexpr std::size_t kRecordHeaderBytes = 5;
  constexpr std::size_t kSessionIdAt = 38;  // After the handshake's header, version and random.
  std::mutex mutex;
  std::string hello;
  const ScriptedServer server([&](Peer& peer) {
    const std::string header = peer.read(kRecordHeaderBytes);
    if (header.empty()) return;
    const std::scoped_lock lock(mutex);
    hello = peer.read(static_cast<unsigned char>(header[3]) * std::size_t{256} +
                      static_cast<unsigned char>(header[4]));
  });

  ASSERT_FALSE(send({.url = "https" + server.url().substr(4)}).has_value());

  const std::scoped_lock lock(mutex);
  const auto number_at = [&hello](std::size_t at) {
    return std::size_t{static_cast<unsigned char>(hello.at(at))};
  };
  const std::size_t list = kSessionIdAt + 1 + number_at(kSessionIdAt);
  const std::size_t end = list + 2 + number_at(list) * 256 + number_at(list + 1);
  ASSERT_LE(end, hello.size());
  const std::unique_ptr<SSL_CTX, DestroyedBy<SSL_CTX_free>> context(
      SSL_CTX_new(TLS_client_method()));
  const std::unique_ptr<SSL, DestroyedBy<SSL_free>> ssl(SSL_new(context.get()));
  std::size_t known = 0;
  for (std::size_t at = list + 2; at < end; at += 2) {
    const SSL_CIPHER* const cipher =
        SSL_CIPHER_find(ssl.get(), reinterpret_cast<const unsigned char*>(&hello[at]));
    if (cipher == nullptr) continue;
    ++known;
    EXPECT_NE(SSL_CIPHER_get_kx_nid(cipher), NID_kx_dhe) << SSL_CIPHER_get_name(cipher);
  }
  EXPECT_GT(known, 0U);
}

TEST_F(ClientTlsTest, NeverFollowsARedirectOutOfTls) {
  const ScriptedServer plain(answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  const Identity identity = authority_.sign("127.0.0.1");
  const std::string target = plain.url();
  const std::string url = serve(
      [&target](ServerRequest) -> io::Task<Response> {
        co_return Response{.status = 302, .headers = {{"Location", target}}};
      },
      {.tls = ServerOptions::Tls{.certificate_pem = identity.certificate_pem,
                                 .key_pem = identity.key_pem}});

  const auto response = send({.url = url,
                              .transport = direct({.ca_pem = authority_.certificate_pem()}),
                              .redirects_max = 1});

  EXPECT_FALSE(response.has_value());
}

TEST_F(ClientTlsTest, FailsAgainstAServerThatSpeaksNoTls) {
  const ScriptedServer plain([](Peer& peer) {
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    peer.wait_for_end();
  });

  const auto response = send({.url = "https" + plain.url().substr(4)});

  ASSERT_FALSE(response.has_value());
  EXPECT_TRUE(was_never_sent(response.error())) << response.error().message();
}

}  // namespace
}  // namespace hangar::http
