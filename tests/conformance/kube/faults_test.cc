// The client while the API server is away, slow, or forgets its history: with a control plane of
// its own, whose API server is killed and whose history is short.
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "objects.h"
#include "testing/control_plane.h"
#include "testing/own_control_plane.h"
#include "testing/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Component;
using testing::Session;

class FaultsTest : public testing::OwnControlPlane<FaultsTest> {
 public:
  static testing::ControlPlaneOptions options() {
    return {.controller_manager = false,
            .proxy = true,
            .apiserver_arguments = {"--etcd-compaction-interval=1s"}};
  }

 protected:
  void SetUp() override {
    OwnControlPlane::SetUp();
    if (is_absent()) return;
    namespace_ = own_->unique_namespace("faults").value();
  }

  std::string namespace_;
};

TEST_F(FaultsTest, SaysThatAnOldPlaceIsGone) {
  Session session(own_->kubeconfig());
  const json::Value created =
      session.must(session.client.create(kConfigMaps, config_map(namespace_, "a"), {}, {}));
  const ListOptions old{
      .namespace_ = namespace_,
      .resource_version = std::string(json::string_at(created, {"metadata", "resourceVersion"})),
      .resource_version_match = "Exact"};
  ASSERT_TRUE(session.run(session.client.list(kConfigMaps, old, {})).has_value());

  // A write is needed for the version to become an old one.
  Result<List> listed;
  const Instant until = io::Loop::now() + seconds(30);
  for (int index = 0; io::Loop::now() < until; ++index) {
    session.must(session.client.create(kConfigMaps,
                                       config_map(namespace_, fmt::format("b{}", index)), {}, {}));
    listed = session.run(session.client.list(kConfigMaps, old, {}));
    if (!listed) break;
    ASSERT_TRUE(session.run(session.loop.sleep(milliseconds(200), {})).has_value());
  }

  ASSERT_FALSE(listed.has_value());
  EXPECT_EQ(listed.error().kind(), ErrorKind::Expired) << listed.error().message();
}

TEST_F(FaultsTest, ReadsThroughAShortCut) {
  Session session(own_->proxied_kubeconfig());
  session.must(session.client.create(kConfigMaps, config_map(namespace_, "a"), {}, {}));
  std::thread fault([&] {
    EXPECT_TRUE(own_->cut().has_value());
    std::this_thread::sleep_for(milliseconds(500));
    EXPECT_TRUE(own_->restore().has_value());
  });

  for (const Instant until = io::Loop::now() + seconds(2); io::Loop::now() < until;) {
    const auto read = session.run(session.client.get(kConfigMaps, {namespace_, "a"}, {}));
    EXPECT_TRUE(read.has_value()) << read.error().message();
  }
  fault.join();
}

TEST_F(FaultsTest, TellsTheTruthAboutWritesWhenTheServerIsKilled) {
  Session session(own_->kubeconfig());
  bool killed = false;
  bool back = false;
  std::latch writing(1);  // Before that all could wait for a connection, and none fail.
  std::thread fault([&] {
    writing.wait();
    EXPECT_TRUE(own_->kill(Component::ApiServer).has_value());
    session.loop.post([&] { killed = true; });
    EXPECT_TRUE(own_->start_again(Component::ApiServer).has_value());
    session.loop.post([&] { back = true; });
  });
  // Writers that go on, whatever happens, until the server is back.
  std::set<std::string> made;
  std::set<std::string> failed;
  std::vector<io::Task<Result<>>> writers;
  const auto write = [](Session& on, std::string in, int number, const bool& stop,
                        std::latch& begun, std::set<std::string>& good,
                        std::set<std::string>& bad) -> io::Task<Result<>> {
    int index = 0;
    while (!stop) {
      const std::string name = fmt::format("w{}-{}", number, index++);
      const auto created = co_await on.client.create(kConfigMaps, config_map(in, name), {}, {});
      if (created) {
        good.insert(name);
        if (good.size() == 1) begun.count_down();
        continue;
      }
      bad.insert(name);
      EXPECT_EQ(created.error().kind(), ErrorKind::Unavailable) << created.error().message();
      HANGAR_CO_TRY(co_await on.loop.sleep(milliseconds(50), {}));
    }
    co_return Result<>();
  };
  // Enough that some are under way at any time, however slow this process is.
  for (int number = 0; number < 60; ++number)
    writers.push_back(write(session, namespace_, number, back, writing, made, failed));

  session.run_all(std::move(writers));
  fault.join();
  const auto after = session.run(session.client.list(kConfigMaps, {.namespace_ = namespace_}, {}));

  EXPECT_TRUE(killed);
  EXPECT_FALSE(made.empty());
  EXPECT_FALSE(failed.empty());
  ASSERT_TRUE(after.has_value()) << after.error().message();
  std::set<std::string> found;
  for (const ObjectPtr& item : after->items)
    found.insert(item->key().name);
  for (const std::string& name : made)
    EXPECT_TRUE(found.contains(name)) << name;
}

TEST_F(FaultsTest, EndsAWatchWhenTheConnectionIsCut) {
  Session session(own_->proxied_kubeconfig());
  session.must(session.client.create(kConfigMaps, config_map(namespace_, "a"), {}, {}));
  std::thread fault;
  const auto on_line = [&](std::string_view) -> Result<> {
    if (!fault.joinable()) fault = std::thread([&] { EXPECT_TRUE(own_->cut().has_value()); });
    return {};
  };

  const auto ended = session.run(session.client.watch(kConfigMaps, namespace_, "", on_line, {}));
  fault.join();
  ASSERT_TRUE(own_->restore().has_value());

  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().kind(), ErrorKind::Unavailable);
}

}  // namespace
}  // namespace hangar::kube
