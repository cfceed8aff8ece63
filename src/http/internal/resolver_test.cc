#include "http/internal/resolver.h"

#include "base/result.h"
#include "http/test_support.h"
#include "io/loop.h"
#include "io/task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::http::internal {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::NameServer;
using ::testing::UnorderedElementsAre;

// Longer than any of these tests takes: no request times out unless the test wants it.
constexpr seconds kLong{600};

class ResolverTest : public ::testing::Test {
 protected:
  ~ResolverTest() override {
    if (resolver_) resolver_->stop();
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }

  void use(const NameServer& server) {
    resolver_ = std::make_shared<Resolver>(loop_, server.address());
  }

  using Answer = std::shared_ptr<std::optional<Result<Addresses>>>;
  Answer ask(Resolver::Question question, std::stop_token stop = {}) {
    auto answer = std::make_shared<std::optional<Result<Addresses>>>();
    if (question.patience == Duration::zero()) question.patience = kLong;
    loop_.spawn([](io::Task<Result<Addresses>> task, Answer out) -> io::Task<> {
      out->emplace(co_await std::move(task));
    }(Resolver::resolve(resolver_, std::move(question), std::move(stop)), answer));
    return answer;
  }
  Result<Addresses> resolve(Resolver::Question question) {
    const Answer answer = ask(std::move(question));
    loop_.run_until([&] { return answer->has_value(); });
    return **answer;
  }

  io::Loop loop_;
  std::shared_ptr<Resolver> resolver_;
};

std::optional<NameServer::Reply> silence(const std::string& /*name*/) {
  return std::nullopt;
}

TEST_F(ResolverTest, FindsAddressesOfBothFamilies) {
  const NameServer server([](const std::string& name) {
    EXPECT_EQ(name, "registry.example.com");
    return NameServer::Reply{.addresses = {"192.0.2.1", "2001:db8::1", "192.0.2.2"}};
  });
  use(server);

  EXPECT_THAT(resolve({.name = "registry.example.com"}).value(),
              UnorderedElementsAre("192.0.2.1", "192.0.2.2", "2001:db8::1"));
}

// Each would be judged for each request.
TEST_F(ResolverTest, TakesFewAddressesOfEachFamilyHoweverManyThereAre) {
  const NameServer server([](const std::string&) {
    NameServer::Reply reply;
    for (int last = 1; last <= 17; ++last) {  // As many as fit into one datagram of DNS.
      reply.addresses.push_back(fmt::format("192.0.2.{}", last));
      reply.addresses.push_back(fmt::format("2001:db8::{:x}", last));
    }
    return reply;
  });
  use(server);

  const Addresses addresses = resolve({.name = "r.example"}).value();

  EXPECT_EQ(std::ranges::count_if(addresses, [](const auto& one) { return one.contains(':'); }),
            16);
  EXPECT_EQ(addresses.size(), 32U);
}

TEST_F(ResolverTest, FindsLocalhostWithoutANameServer) {
  const NameServer server(silence);
  use(server);

  EXPECT_THAT(resolve({.name = "localhost"}).value(), ::testing::Contains("127.0.0.1"));
}

TEST_F(ResolverTest, SaysWhichNameHasNoAddress) {
  const NameServer server([](const std::string&) { return NameServer::Reply{.code = 3}; });
  use(server);

  const auto answer = resolve({.name = "nowhere.example.com"});

  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(answer.error().message(), HasSubstr("nowhere.example.com"));
}

TEST_F(ResolverTest, LeavesTheLoopFreeWhileANameServerIsSilent) {
  const NameServer server(silence);
  use(server);
  std::stop_source stop;
  const Answer answer = ask({.name = "registry.example.com"}, stop.get_token());

  // All other work of the loop is done.
  constexpr int kTurns = 100;
  int turns = 0;
  std::function<void()> again = [&] {
    if (++turns < kTurns) loop_.post([&again] { again(); });
  };
  again();
  loop_.run_until([&] { return turns == kTurns; });
  EXPECT_FALSE(answer->has_value());

  // A request whose stop is requested ends, although the name server still does not answer.
  stop.request_stop();
  loop_.run_until([&] { return answer->has_value(); });
  EXPECT_EQ((*answer)->error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ(resolver_->lookup_count(), 1U);
}

TEST_F(ResolverTest, LosesPatience) {
  const NameServer server(silence);
  use(server);

  const auto answer =
      resolve({.name = "registry.example.com", .patience = std::chrono::milliseconds(20)});

  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(resolver_->lookup_count(), 1U);
}

TEST_F(ResolverTest, AsksOnceForAllWhoWaitAndAsLongAsTheAnswerIsFresh) {
  std::atomic<int> asked = 0;
  const NameServer server([&](const std::string& name) {
    ++asked;
    return NameServer::Reply{.addresses = {"192.0.2.1"},
                             .ttl_seconds = name == "kept.example.com" ? 60U : 0U};
  });
  use(server);
  const Answer first = ask({.name = "kept.example.com"});
  const Answer second = ask({.name = "kept.example.com"});
  EXPECT_EQ(resolver_->lookup_count(), 1U);
  loop_.run_until([&] { return first->has_value() && second->has_value(); });

  // A lookup asks two questions: for IPv4 and for IPv6.
  EXPECT_TRUE(resolve({.name = "kept.example.com"}).has_value());
  EXPECT_EQ(asked, 2);
  for (int time = 0; time < 2; ++time)
    EXPECT_TRUE(resolve({.name = "new.example.com"}).has_value());
  EXPECT_EQ(asked, 6);
}

TEST_F(ResolverTest, TakesTheOldAnswerWhileTheNameServerFailsAndNoLonger) {
  std::atomic<int> code = 0;
  const NameServer server([&](const std::string&) {
    return NameServer::Reply{
        .addresses = code == 0 ? std::vector<std::string>{"192.0.2.1"} : std::vector<std::string>(),
        .code = code,
        .ttl_seconds = 0};
  });
  use(server);
  EXPECT_THAT(resolve({.name = "a.example.com"}).value(), ElementsAre("192.0.2.1"));

  code = 2;
  EXPECT_THAT(resolve({.name = "a.example.com"}).value(), ElementsAre("192.0.2.1"));
  EXPECT_FALSE(resolve({.name = "b.example.com"}).has_value());
  code = 3;
  EXPECT_FALSE(resolve({.name = "a.example.com"}).has_value());
  code = 2;
  EXPECT_FALSE(resolve({.name = "a.example.com"}).has_value());
}

TEST_F(ResolverTest, TakesTheOldAnswerWhenTheNameServerFallsSilent) {
  std::atomic<bool> is_silent = false;
  const NameServer server([&](const std::string&) -> std::optional<NameServer::Reply> {
    if (is_silent) return std::nullopt;
    return NameServer::Reply{.addresses = {"192.0.2.1"}, .ttl_seconds = 0};
  });
  use(server);
  ASSERT_TRUE(resolve({.name = "a.example.com"}).has_value());

  is_silent = true;
  EXPECT_THAT(resolve({.name = "a.example.com"}).value(), ElementsAre("192.0.2.1"));
}

TEST_F(ResolverTest, HoldsNobodyUpForTheNamesOfAnother) {
  const NameServer server([](const std::string& name) -> std::optional<NameServer::Reply> {
    if (name.ends_with(".silent.example.com")) return std::nullopt;
    return NameServer::Reply{.addresses = {"192.0.2.1"}};
  });
  use(server);
  std::vector<Answer> silent;
  for (int tenant = 0; tenant < 30; ++tenant) {
    for (int name = 0; name < 20; ++name) {
      silent.push_back(ask({.name = fmt::format("n{}.silent.example.com", name),
                            .requester = fmt::format("team-{}", tenant)}));
    }
  }
  EXPECT_EQ(resolver_->lookup_count(), 128U);

  // The host's own lookups do not wait for those of tenants.
  EXPECT_TRUE(resolve({.name = "api.example.com"}).has_value());
  resolver_->stop();
  use(server);
  for (int name = 0; name < 20; ++name) {
    silent.push_back(
        ask({.name = fmt::format("n{}.silent.example.com", name), .requester = "greedy"}));
  }
  EXPECT_EQ(resolver_->lookup_count(), 8U);
  EXPECT_TRUE(resolve({.name = "a.example.com", .requester = "victim"}).has_value());
  EXPECT_EQ(resolver_->lookup_count(), 8U);
}

TEST_F(ResolverTest, RemembersFewNamesOfOneRequester) {
  std::atomic<int> asked = 0;
  const NameServer server([&](const std::string& name) {
    if (name == "api.example.com") ++asked;
    return NameServer::Reply{.addresses = {"192.0.2.1"}};
  });
  use(server);
  ASSERT_TRUE(resolve({.name = "api.example.com"}).has_value());
  ASSERT_TRUE(resolve({.name = "api.example.com", .requester = "greedy"}).has_value());
  EXPECT_EQ(asked, 4);

  for (int name = 0; name < 100; ++name) {
    ASSERT_TRUE(
        resolve({.name = fmt::format("n{}.example.com", name), .requester = "greedy"}).has_value());
  }

  // The host's answer is still cached; one of the greedy tenant's answers was evicted.
  EXPECT_TRUE(resolve({.name = "api.example.com"}).has_value());
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(resolve({.name = "api.example.com", .requester = "greedy"}).has_value());
  EXPECT_EQ(asked, 6);
}

TEST_F(ResolverTest, EndsEveryQuestionWhenItStops) {
  const NameServer server(silence);
  use(server);
  const Answer waiting = ask({.name = "a.example.com"});

  resolver_->stop();
  const Answer late = ask({.name = "b.example.com"});
  loop_.run_until([&] { return waiting->has_value() && late->has_value(); });

  EXPECT_EQ((*waiting)->error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ((*late)->error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ(resolver_->lookup_count(), 0U);
}

}  // namespace
}  // namespace hangar::http::internal
