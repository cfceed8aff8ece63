#include "console/server.h"

#include "base/log.h"
#include "console/limits.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hangar::console {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kKey(64, 'a');

// A server with an answer that a test chooses, and a client beside it on the same loop.
class ConsoleServerTest : public ::testing::Test {
 protected:
  void start(Server::Options options = {}) {
    options.key = kKey;
    server_.emplace(
        loop_, options, [this](Question question) { return answer_(std::move(question)); },
        [this] { ++idle_; }, Log());
    ASSERT_TRUE(server_->start());
  }

  http::Response ask(const std::string& path, std::optional<std::string> key = kKey,
                     const http::Headers& more = {}) {
    http::Headers headers = more;
    if (key) headers.emplace_back(kKeyHeader, *key);
    auto response = io::run_to_end(
        loop_,
        client_.send(
            {.method = "GET",
             .url = fmt::format("http://127.0.0.1:{}{}", server_->port(), path),
             .headers = std::move(headers),
             .transport = std::make_shared<const http::Transport>(http::Transport{.direct = true})},
            {}));
    if (response) return *std::move(response);
    ADD_FAILURE() << response.error().message();
    return {};
  }

  void TearDown() override {
    if (server_) EXPECT_TRUE(io::run_to_end(loop_, finish()));
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }
  io::Task<bool> finish() {
    co_await server_->stop(std::chrono::milliseconds(1));
    co_return true;
  }

  io::Loop loop_;
  http::Client client_{loop_};
  Server::Answer answer_ = [](Question question) -> io::Task<Result<std::string>> {
    co_return fmt::format("\"{} of {}\"", question.path, question.parameter("name"));
  };
  int idle_ = 0;
  std::optional<Server> server_;
};

TEST_F(ConsoleServerTest, ServesThePageAndAnswersItsQuestions) {
  start();

  const http::Response page = ask("/", std::nullopt);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(http::find_header(page.headers, "Content-Encoding"), "gzip");
  EXPECT_THAT(std::string(http::find_header(page.headers, "Content-Security-Policy").value_or("")),
              StartsWith("default-src 'none'"));
  EXPECT_THAT(page.body, StartsWith("\x1f\x8b"));

  const http::Response answer = ask("/api/turns?name=a%20b");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "\"/api/turns of a b\"");
  EXPECT_EQ(http::find_header(answer.headers, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(http::find_header(answer.headers, "Cache-Control"), "no-store");
}

TEST_F(ConsoleServerTest, RefusesWithWordsWhatTheGateRefuses) {
  start();

  const http::Response without = ask("/api/state", std::nullopt);
  EXPECT_EQ(without.status, 401);
  EXPECT_THAT(without.body, HasSubstr("open the address"));
  EXPECT_EQ(ask("/api/state", kKey, {{"Origin", "http://evil.example"}}).status, 403);
  EXPECT_EQ(ask("/api/state", kKey, {{"Host", "evil.example"}}).status, 421);
  EXPECT_EQ(ask("/nothing", std::nullopt).status, 404);
}

TEST_F(ConsoleServerTest, AnErrorIsAnAnswerWithItsWordsMadeSafe) {
  answer_ = [](Question) -> io::Task<Result<std::string>> {
    co_return fail(ErrorKind::Denied, "user \"x\x1b[31m\" may not");
  };
  start();

  const http::Response response = ask("/api/top");

  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(response.body, R"({"error":"user \"x\\x1b[31m\" may not"})");
}

TEST_F(ConsoleServerTest, AnAnswerThatIsTooLongIsAnError) {
  answer_ = [](Question) -> io::Task<Result<std::string>> {
    co_return std::string(limits::kConsoleAnswerBytesMax + 1, ' ');
  };
  start();

  const http::Response response = ask("/api/top");

  EXPECT_EQ(response.status, 413);
  EXPECT_THAT(response.body, HasSubstr("at most"));
}

TEST_F(ConsoleServerTest, QuestionsAtATimeAreLimited) {
  io::Event go(loop_);
  bool has_gone = false;
  answer_ = [&](Question) -> io::Task<Result<std::string>> {
    while (!has_gone)
      (void)co_await go.wait({});
    co_return "1";
  };
  start();
  // A client has at most 16 connections to one server.
  http::Client other(loop_);
  std::size_t answered = 0;
  std::size_t refused = 0;
  const auto one = [&](http::Client& client) -> io::Task<void> {
    const auto response = co_await client.send(
        {.url = fmt::format("http://127.0.0.1:{}/api/top", server_->port()),
         .headers = {{std::string(kKeyHeader), kKey}},
         .transport = std::make_shared<const http::Transport>(http::Transport{.direct = true})},
        {});
    ++(response && response->status == 200 ? answered : refused);
  };
  constexpr std::size_t kMore = 3;
  for (std::size_t at = 0; at < limits::kConsoleQuestionsMax + kMore; ++at)
    loop_.spawn(one(at % 2 == 0 ? client_ : other));
  loop_.run_until([&] { return refused == kMore; });

  has_gone = true;
  go.notify_all();
  loop_.run_until([&] { return answered == limits::kConsoleQuestionsMax; });
}

TEST_F(ConsoleServerTest, EndsWhenNobodyAsks) {
  start({.idle_max = std::chrono::milliseconds(50)});

  loop_.run_until([&] { return idle_ > 0; });

  EXPECT_EQ(idle_, 1);
}

TEST_F(ConsoleServerTest, APortInUseIsAnErrorThatNamesIt) {
  start();
  Server second(loop_, {.port = server_->port(), .key = kKey}, answer_, [] {}, Log());

  const Result<> started = second.start();

  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message(), HasSubstr(std::to_string(server_->port())));
}

}  // namespace
}  // namespace hangar::console
