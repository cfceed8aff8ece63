#include "kube/client.h"

#include "base/consumer.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/core_resources.h"
#include "kube/limits.h"
#include "kube/scope.h"
#include "kube/test_api_server.h"
#include "kube/watch/watch_event.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {
namespace {

constexpr std::string_view kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class Ledger final : public RequestObserver {
 public:
  std::string on_request(std::uint64_t body_bytes) override {
    text_ += fmt::format("sent {};", body_bytes);
    return std::string(kTrace);
  }
  void on_response(int status, std::uint64_t body_bytes) override {
    text_ += fmt::format("{} {};", status, body_bytes);
  }
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

class WarningsSeen final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*component*/, std::string_view /*message*/,
             std::span<const LogField> fields) override {
    for (const LogField& field : fields)
      if (field.key == "warning") texts.push_back(std::get<std::string>(field.value));
  }

  std::vector<std::string> texts;
};

// The server answers /BYTES with a document of that size, and refuses a path that begins with 0.
// It answers for objects with `answer_`.
class ClientTest : public ApiServerTest {
 protected:
  Result<json::Value> get(const Client& client, std::size_t bytes) {
    return io::run_to_end(loop_, client.get_path(fmt::format("/{}", bytes), {}));
  }

  io::Workers workers_{loop_, 1};
  std::string traceparent_;  // Of the last request.
  std::string accept_;       // Of the last request.
  std::string answer_;
  http::Headers headers_;  // Of each answer to a path of a number.

 private:
  io::Task<http::Response> answer(http::ServerRequest request) override {
    traceparent_ = http::find_header(request.headers, "traceparent").value_or("");
    accept_ = http::find_header(request.headers, "Accept").value_or("");
    if (request.path.starts_with("/api/")) co_return http::Response{.status = 200, .body = answer_};
    const std::size_t bytes = std::stoul(request.path.substr(1));
    co_return http::Response{.status = request.path.starts_with("/0") ? 403 : 200,
                             .headers = headers_,
                             .body = fmt::format(R"({{"text":"{}"}})", std::string(bytes, 'x'))};
  }
};

TEST_F(ClientTest, SharesConnectionsUnlessItHasItsOwn) {
  const Client first = client({});
  const Client second = client({});
  const Client apart = client({.has_own_connections = true});

  ASSERT_TRUE(get(first, 1));
  ASSERT_TRUE(get(second, 1));
  EXPECT_EQ(server_->connection_count(), 1U);
  ASSERT_TRUE(get(apart, 1));
  EXPECT_EQ(server_->connection_count(), 2U);
  ASSERT_TRUE(get(apart.as({.user = "jane"}), 1));
  EXPECT_EQ(server_->connection_count(), 2U) << "all of one client have the same";
}

TEST_F(ClientTest, TellsWhatItSendsAndReceives) {
  Ledger ledger;
  const Client observed = client({}).observed_by(&ledger);

  ASSERT_TRUE(io::run_to_end(loop_, observed.post_path("/10", json::Object{{"a", 1}}, {})));
  EXPECT_EQ(ledger.take(), "sent 7;200 21;");
  EXPECT_EQ(traceparent_, kTrace);
  ASSERT_TRUE(get(observed.as({.user = "jane"}), 10));
  EXPECT_EQ(ledger.take(), "sent 0;200 21;");
  ASSERT_FALSE(io::run_to_end(loop_, observed.get_path("/010", {})));
  EXPECT_EQ(ledger.take(), "sent 0;403 21;");
  ASSERT_TRUE(io::run_to_end(loop_, observed.send({.target = "/10", .body = "{}"}, {})));
  EXPECT_EQ(ledger.take(), "sent 2;200 21;");
  EXPECT_EQ(traceparent_, kTrace);
  // Nothing was sent.
  ASSERT_FALSE(io::run_to_end(loop_, observed.get_path("/a b", {})));
  EXPECT_EQ(ledger.take(), "");
  // Nobody waits for the answer.
  std::stop_source stop;
  stop.request_stop();
  ASSERT_FALSE(io::run_to_end(loop_, observed.get_path("/10", stop.get_token())));
  EXPECT_EQ(ledger.take(), "sent 0;");
  ASSERT_TRUE(get(observed.observed_by(nullptr), 10));
  EXPECT_EQ(ledger.take(), "");
  EXPECT_EQ(traceparent_, "");
}

TEST_F(ClientTest, AsksForNoMoreOfAnAnswerThanItsCallerReads) {
  answer_ = R"({"metadata":{"resourceVersion":"2"}})";
  const auto patch = [this](WriteOptions options) {
    return io::run_to_end(loop_,
                          client({}).patch(config_map_resource(), {.namespace_ = "a", .name = "b"},
                                           PatchType::Merge, json::Object{}, options, {}));
  };

  ASSERT_TRUE(patch({}));
  EXPECT_EQ(accept_, "application/json");
  ASSERT_TRUE(patch({.detail = Detail::Metadata}));
  EXPECT_EQ(accept_, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
}

TEST_F(ClientTest, LeavesLongAnswersToAWorker) {
  const Client client_with_readers = client({.readers = &workers_});
  std::promise<void> released;
  workers_.submit(unnamed_consumer(), [held = released.get_future().share()] { held.wait(); });
  std::optional<Result<json::Value>> answer;
  const auto ask = [](const Client& asked,
                      std::optional<Result<json::Value>>& into) -> io::Task<void> {
    into.emplace(co_await asked.get_path(fmt::format("/{}", limits::kListSliceBytes), {}));
  };

  loop_.spawn(ask(client_with_readers, answer));
  EXPECT_TRUE(get(client_with_readers, 1)) << "a short one needs no worker";
  // The long response arrives at the latest before a later response on its connection.
  for (int later = 0; later < 3; ++later)
    EXPECT_TRUE(get(client({}), limits::kListSliceBytes));
  EXPECT_FALSE(answer) << "the loop has read it";
  released.set_value();
  loop_.run_until([&] { return answer.has_value(); });
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(json::string_at(**answer, {"text"}).size(), limits::kListSliceBytes);
}

// InvalidInput would mean that the caller's object is wrong, and nobody would ask again.
TEST_F(ClientTest, TakesAnAnswerThatCannotBeReadForAnUnavailableServer) {
  const Client client_with_readers = client({.readers = &workers_});
  const std::string page(limits::kListSliceBytes, ' ');
  for (const std::string& answer :
       {std::string("<html>"), std::string("null"), std::string("{}"),
        std::string(R"({"items":[{"metadata":{)"), std::string(R"({"items":[{}]})"),
        "<html>" + page, R"({"items":[)" + page}) {
    answer_ = answer;
    const auto listed =
        io::run_to_end(loop_, client_with_readers.list(config_map_resource(), {}, {}));
    ASSERT_FALSE(listed) << answer.substr(0, 40);
    EXPECT_EQ(listed.error().kind(), ErrorKind::Unavailable) << listed.error().message();
  }
  for (const std::string_view answer : {"<html>", "null", "[]", R"({"metadata":{)"}) {
    answer_ = answer;
    const auto read = io::run_to_end(
        loop_, client({}).get(config_map_resource(), {.namespace_ = "a", .name = "b"}, {}));
    ASSERT_FALSE(read) << answer;
    EXPECT_EQ(read.error().kind(), ErrorKind::Unavailable) << read.error().message();
  }
}

// etcd stores 1.5 MiB of an object, and '<' has six bytes in the API server's JSON. Anybody who may
// create a Pod could otherwise end all watches of Pods.
TEST_F(ClientTest, ReadsTheLongestTextOfAnObject) {
  std::string text;
  for (std::uint64_t stored = 0; stored < limits::kObjectBytesMax; ++stored)
    text += "\\u003c";
  const std::string object = fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a","namespace":"b","resourceVersion":"1"}},"spec":{{"text":"{}"}}}})",
      text);

  answer_ = fmt::format(R"({{"metadata":{{"resourceVersion":"2"}},"items":[{}]}})", object);
  const auto listed =
      io::run_to_end(loop_, client({}).list(config_map_resource(), {.page_size = 2}, {}));
  ASSERT_TRUE(listed) << listed.error().message();
  EXPECT_EQ(listed->items.size(), 1U);

  answer_ = fmt::format(R"({{"type":"ADDED","object":{}}})", object) + "\n";
  std::size_t seen = 0;
  const auto on_line = [&seen](std::string_view line) -> Result<> {
    if (parse_watch_event(line)) ++seen;
    return {};
  };
  const auto watched =
      io::run_to_end(loop_, client({}).watch(config_map_resource(), "b", {}, on_line, {}));
  EXPECT_TRUE(watched) << watched.error().message();
  EXPECT_EQ(seen, 1U);
}

TEST_F(ClientTest, LogsNoWarningsOfAnswersThatItPassesOn) {
  WarningsSeen seen;
  const Client logging(loop_, http_, credentials_, metrics_, Log(seen, "kube"));
  headers_ = {{"Warning", R"(299 - "mine")"}};

  ASSERT_TRUE(io::run_to_end(loop_, logging.send({.target = "/1"}, {})));
  http::Client::StreamHandler handler{
      .on_headers = [](int, const http::Headers&) { return Result<>(); },
      .on_bytes = [](std::string_view) { return Result<>(); }};
  ASSERT_TRUE(io::run_to_end(loop_, logging.stream({.target = "/1"}, std::move(handler), {})));
  EXPECT_TRUE(seen.texts.empty());

  ASSERT_TRUE(get(logging, 1));
  EXPECT_EQ(seen.texts, std::vector<std::string>{"mine"});
}

}  // namespace
}  // namespace hangar::kube
