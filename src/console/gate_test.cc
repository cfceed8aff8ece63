#include "console/gate.h"

#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace hangar::console {
namespace {

using ::testing::HasSubstr;

constexpr Instant kNow{std::chrono::seconds(1000)};
const std::string kKey(64, 'a');
const std::string kOpening(64, 'b');

Gate make_gate(bool allows_actions = false) {
  return Gate({.port = 8123,
               .key = kKey,
               .opening_key = kOpening,
               .opening_until = kNow + std::chrono::seconds(60),
               .allows_actions = allows_actions});
}

// A request as the page makes it.
http::ServerRequest question(std::string path = "/api/state") {
  return {.method = "GET",
          .path = std::move(path),
          .query = {},
          .headers = {{"Host", "127.0.0.1:8123"},
                      {"Sec-Fetch-Site", "same-origin"},
                      {"hangar-console-key", kKey}},
          .body = {},
          .is_from_loopback = true};
}
http::ServerRequest with(http::ServerRequest request, const std::string& name,
                         const std::string& value) {
  std::erase_if(request.headers, [&](const auto& header) { return header.first == name; });
  request.headers.emplace_back(name, value);
  return request;
}
http::ServerRequest without(http::ServerRequest request, const std::string& name) {
  std::erase_if(request.headers, [&](const auto& header) { return header.first == name; });
  return request;
}
int status_of(Gate& gate, const http::ServerRequest& request, Instant now = kNow) {
  const auto refusal = gate.check(request, now);
  return refusal ? refusal->status : 200;
}
http::ServerRequest signal() {
  http::ServerRequest request = with(question("/api/signal"), "Origin", "http://127.0.0.1:8123");
  request.method = "POST";
  request.body = "{}";
  return request;
}

TEST(ConsoleGate, AnswersItsOwnPage) {
  Gate gate = make_gate();

  EXPECT_EQ(status_of(gate, question()), 200);
  EXPECT_EQ(status_of(gate, with(question(), "Host", "localhost:8123")), 200);
  EXPECT_EQ(status_of(gate, with(question(), "Origin", "http://127.0.0.1:8123")), 200);
  // A client that does not send Sec-Fetch-Site is not a current browser; the key is still required.
  EXPECT_EQ(status_of(gate, without(question(), "Sec-Fetch-Site")), 200);
}

TEST(ConsoleGate, AnswersUnderItsOwnNameOnly) {
  Gate gate = make_gate();

  for (const char* const host : {"evil.example:8123", "127.0.0.1", "127.0.0.1:8124",
                                 "127.0.0.1.evil.example:8123", "[::1]:8123", ""}) {
    EXPECT_EQ(status_of(gate, with(question(), "Host", host)), 421) << host;
    // The page, too: a page under another name would be another origin.
    EXPECT_EQ(status_of(gate, with(question("/"), "Host", host)), 421) << host;
  }
  EXPECT_EQ(status_of(gate, without(question(), "Host")), 421);
  http::ServerRequest two = question();
  two.headers.emplace_back("host", "127.0.0.1:8123");
  EXPECT_EQ(status_of(gate, two), 421);
}

TEST(ConsoleGate, AnswersNoOtherMachine) {
  Gate gate = make_gate();
  http::ServerRequest request = question();
  request.is_from_loopback = false;

  EXPECT_EQ(status_of(gate, request), 403);
}

TEST(ConsoleGate, AnswersNoOtherOrigin) {
  Gate gate = make_gate();

  for (const char* const origin : {"http://evil.example", "https://127.0.0.1:8123", "null",
                                   "http://localhost:8123", "http://127.0.0.1:9000", ""}) {
    EXPECT_EQ(status_of(gate, with(question(), "Origin", origin)), 403) << origin;
  }
  EXPECT_EQ(status_of(gate, with(question(), "Sec-Fetch-Site", "cross-site")), 403);
  EXPECT_EQ(status_of(gate, with(question(), "Sec-Fetch-Site", "same-site")), 403);
  EXPECT_EQ(status_of(gate, with(question("/console.js"), "Sec-Fetch-Site", "cross-site")), 403);
}

TEST(ConsoleGate, ALinkOfAnotherPageLeadsToThePageAndToNothingElse) {
  Gate gate = make_gate();
  const auto link = [](http::ServerRequest request) {
    return with(with(with(without(std::move(request), "hangar-console-key"), "Sec-Fetch-Site",
                          "cross-site"),
                     "Sec-Fetch-Mode", "navigate"),
                "Sec-Fetch-Dest", "document");
  };

  EXPECT_EQ(status_of(gate, link(question("/"))), 200);
  EXPECT_EQ(status_of(gate, with(link(question("/")), "Sec-Fetch-Dest", "iframe")), 403);
  EXPECT_EQ(status_of(gate, link(question())), 403);
}

TEST(ConsoleGate, QuestionsNeedTheKeyAndThePageDoesNot) {
  Gate gate = make_gate();

  EXPECT_EQ(status_of(gate, without(question("/"), "hangar-console-key")), 200);
  EXPECT_EQ(status_of(gate, without(question(), "hangar-console-key")), 401);
  EXPECT_EQ(status_of(gate, with(question(), "hangar-console-key", kKey.substr(1))), 401);
  EXPECT_EQ(status_of(gate, with(question(), "hangar-console-key", "")), 401);
  EXPECT_EQ(status_of(gate, with(question(), "hangar-console-key", kOpening)), 401);
  http::ServerRequest two = question();
  two.headers.emplace_back("Hangar-Console-Key", kKey);
  EXPECT_EQ(status_of(gate, two), 401);
}

TEST(ConsoleGate, AnOpeningKeyWorksOnceAndNotForLong) {
  const auto opening = [] {
    http::ServerRequest request = with(question("/api/open"), "hangar-console-key", kOpening);
    request.method = "POST";
    return request;
  };
  Gate gate = make_gate();
  EXPECT_EQ(status_of(gate, opening()), 200);
  EXPECT_EQ(status_of(gate, opening()), 401);

  Gate late = make_gate();
  EXPECT_EQ(status_of(late, opening(), kNow + std::chrono::seconds(60)), 401);

  // A wrong guess does not use it up.
  Gate guessed = make_gate();
  EXPECT_EQ(status_of(guessed, with(opening(), "hangar-console-key", kKey)), 401);
  EXPECT_EQ(status_of(guessed, opening()), 200);

  Gate none({.port = 8123, .key = kKey, .opening_key = {}});
  EXPECT_EQ(status_of(none, with(opening(), "hangar-console-key", "")), 401);
}

TEST(ConsoleGate, IsReadOnlyUnlessActionsAreAllowed) {
  Gate closed = make_gate();
  const auto refusal = closed.check(signal(), kNow);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 403);
  EXPECT_THAT(refusal->words, HasSubstr("--allow-actions"));

  Gate open = make_gate(true);
  EXPECT_EQ(status_of(open, signal()), 200);
  EXPECT_EQ(status_of(open, without(signal(), "Origin")), 403);
  EXPECT_EQ(status_of(open, with(signal(), "Origin", "http://evil.example")), 403);
  EXPECT_EQ(status_of(open, without(signal(), "hangar-console-key")), 401);
}

TEST(ConsoleGate, TakesTheMethodsOfItsPagesOnly) {
  Gate gate = make_gate(true);

  for (const char* const method : {"POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"}) {
    http::ServerRequest request = question();
    request.method = method;
    EXPECT_EQ(status_of(gate, request), 405) << method;
  }
  http::ServerRequest read = signal();
  read.method = "GET";
  EXPECT_EQ(status_of(gate, read), 405);
  http::ServerRequest body = question();
  body.body = "x";
  EXPECT_EQ(status_of(gate, body), 400);
}

TEST(ConsoleGate, KeysAreLongAndDiffer) {
  const std::string one = new_key();
  const std::string other = new_key();

  EXPECT_EQ(one.size(), 64U);
  EXPECT_NE(one, other);
}

TEST(ConsoleGate, ThePolicyOfThePageAllowsNothingInlineAndNoOtherServer) {
  const http::Headers headers = safe_headers("text/html");
  const auto policy = http::find_header(headers, "Content-Security-Policy");

  ASSERT_TRUE(policy);
  EXPECT_THAT(*policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(*policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(*policy, HasSubstr("require-trusted-types-for 'script'"));
  EXPECT_THAT(*policy, ::testing::Not(HasSubstr("unsafe")));
  EXPECT_THAT(*policy, ::testing::Not(HasSubstr("http")));
  EXPECT_EQ(http::find_header(headers, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(http::find_header(headers, "Referrer-Policy"), "no-referrer");
  EXPECT_FALSE(http::find_header(headers, "Access-Control-Allow-Origin"));
}

}  // namespace
}  // namespace hangar::console
