// The shell of features against a real API server: its promises about states, writes and deletion.
#include "reconcile/custom_resource.h"

#include "base/log.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/ration.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "reconcile/acting_rights.h"
#include "reconcile/conditions.h"
#include "reconcile/event_recorder.h"
#include "reconcile/platform.h"
#include "reconcile/turnstile.h"
#include "testing/control_plane.h"
#include "testing/session.h"
#include "testing/shared_control_plane.h"
#include "testing/wait.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::reconcile {
namespace {

using testing::ControlPlane;
using testing::Session;
using testing::wait;

constexpr std::string_view kFinalizer = "tests.example.com/ours";

constexpr std::string_view kCrd = R"({
"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"things.tests.example.com"},
"spec":{"group":"tests.example.com","scope":"Namespaced",
"names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"status":{"type":"object","properties":{"count":{"type":"integer"},
"conditions":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}}]}})";

kube::Resource things() {
  return {.group = "tests.example.com",
          .version = "v1",
          .plural = "things",
          .kind = "Thing",
          .namespaced = true};
}

// What the objects of one namespace may take.
class Purse final : public kube::Allowance {
 public:
  explicit Purse(const std::uint64_t& bytes_max) : bytes_max_(bytes_max) {}

  Result<> resize(std::uint64_t bytes) override {
    if (bytes > bytes_max_) return fail(ErrorKind::LimitExceeded, "no more than its purse has");
    return {};
  }

 private:
  const std::uint64_t& bytes_max_;
};

// One feature without decisions of its own: the test says what a run does.
class CustomResourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
    ASSERT_TRUE(cluster.kubectl({"apply", "-f", "-"}, std::string(kCrd)).has_value());
    ASSERT_TRUE(cluster
                    .kubectl({"wait", "--for=condition=Established", "--timeout=60s",
                              "crd/things.tests.example.com"})
                    .has_value());
    namespace_ = cluster.unique_namespace().value();
    host_ = std::make_unique<Host>(cluster.kubeconfig(), purse_bytes_);
  }

  void TearDown() override {
    if (!shell_) return;
    finish(shell_->stop());
    shell_.reset();
    host_->cache.stop();
    EXPECT_TRUE(testing::wait_for_end_of_tasks(host_->session.loop));
  }

  CustomResource& start(CustomResource::Options options) {
    options.kind = things();
    options.name = "thing";
    options.field_manager = "tests";
    if (!options.reconcile) {
      options.reconcile = [this](kube::ObjectPtr newest,
                                 std::stop_token) -> CustomResource::OutcomeTask {
        // The cluster still has objects of other tests in their namespaces.
        if (newest->key().namespace_ == namespace_) runs_.emplace_back(newest->resource_version());
        co_return Outcome{};
      };
    }
    if (!options.forget) {
      options.forget = [this](kube::ObjectKey key) -> io::Task<void> {
        if (key.namespace_ == namespace_) forgotten_.push_back(key.name);
        co_return;
      };
    }
    shell_ = std::make_unique<CustomResource>(host_->platform, std::move(options));
    shell_->start();
    EXPECT_TRUE(wait(loop(), [this] { return shell_->is_synced(); }));
    return *shell_;
  }

  // The reason of one of its conditions, as the server has it.
  std::string reason(std::string_view name, std::string_view type) {
    const json::Value status = status_of(live(name));
    const json::Value* const found = find_condition(status, type);
    return found == nullptr ? "" : std::string(json::string_at(*found, {"reason"}));
  }
  json::Value create(std::string_view name, std::size_t text_bytes = 0,
                     json::Array finalizers = {}) {
    return host_->session.must(host_->session.client.create(
        things(),
        json::Object{{"apiVersion", "tests.example.com/v1"},
                     {"kind", "Thing"},
                     {"metadata", json::Object{{"namespace", namespace_},
                                               {"name", name},
                                               {"finalizers", std::move(finalizers)}}},
                     {"spec", json::Object{{"size", 1}, {"text", std::string(text_bytes, 'x')}}}},
        {}, {}));
  }
  // With a spec of many numbers: each needs 64 bytes of memory, and two of text.
  json::Value create_dense(std::string_view name, std::size_t numbers) {
    return host_->session.must(host_->session.client.create(
        things(),
        json::Object{{"apiVersion", "tests.example.com/v1"},
                     {"kind", "Thing"},
                     {"metadata", json::Object{{"namespace", namespace_}, {"name", name}}},
                     {"spec", json::Object{{"numbers", json::Array(numbers, json::Value(1))}}}},
        {}, {}));
  }
  json::Value merge(std::string_view name, json::Value patch) {
    return host_->session.must(host_->session.client.patch(
        things(), key(name), kube::PatchType::Merge, std::move(patch), {}, {}));
  }
  // By the client, because kubectl's cached discovery may not have the kind yet.
  void remove(std::string_view name) {
    host_->session.must(host_->session.client.remove(things(), key(name), {}, {}));
  }
  json::Value live(std::string_view name) {
    return host_->session.must(host_->session.client.get(things(), key(name), {}));
  }
  kube::ObjectKey key(std::string_view name) const {
    return {.namespace_ = namespace_, .name = std::string(name)};
  }
  static json::Value count(int number) { return json::Object{{"count", number}}; }
  static std::string version_of(const json::Value& object) {
    return std::string(json::string_at(object, {"metadata", "resourceVersion"}));
  }
  bool has_seen(const json::Value& object) {
    return wait(loop(), [&] {
      const kube::ObjectPtr newest = shell_->newest(kube::key_of(object));
      return newest && newest->resource_version() == version_of(object);
    });
  }

  void finish(io::Task<void> task) {
    bool is_done = false;
    loop().spawn([](io::Task<void> inner, bool& done) -> io::Task<void> {
      co_await std::move(inner);
      done = true;
    }(std::move(task), is_done));
    EXPECT_TRUE(wait(loop(), [&] { return is_done; }));
  }
  io::Loop& loop() { return host_->session.loop; }

  struct Host {
    Host(const std::string& kubeconfig, const std::uint64_t& purse_bytes)
        : session(kubeconfig),
          workers(session.loop, 1),
          cache(session.loop, session.client, session.metrics, Log(),
                {.ration = std::make_shared<const kube::Ration>([&purse_bytes](const std::string&) {
                   return std::make_unique<Purse>(purse_bytes);
                 })}),
          discovery(session.client),
          acting(session.client),
          events(session.loop, session.client, Log(), "tests"),
          turnstile(session.loop, 4),
          platform{.loop = session.loop,
                   .workers = workers,
                   .client = session.client,
                   .cache = cache,
                   .discovery = discovery,
                   .acting = acting,
                   .events = events,
                   .turnstile = turnstile,
                   .metrics = session.metrics,
                   .log = {}} {}

    Session session;
    io::Workers workers;
    kube::Cache cache;
    kube::Discovery discovery;
    ActingRights acting;
    EventRecorder events;
    Turnstile turnstile;
    Platform platform;
  };

  std::string namespace_;
  std::uint64_t purse_bytes_ = 50'000;  // Of each namespace.
  std::unique_ptr<Host> host_;
  std::unique_ptr<CustomResource> shell_;
  std::vector<std::string> runs_;  // The version that each run received.
  std::vector<std::string> forgotten_;
};

TEST_F(CustomResourceTest, RunsForASpecAndNotForItsOwnStatus) {
  CustomResource& shell = start({});
  const json::Value created = create("a");
  ASSERT_TRUE(wait(loop(), [&] { return runs_.size() == 1; }));

  const Result<json::Value> written =
      host_->session.run(shell.write_status(created, count(1), StatusOf::Spec, std::stop_token()));
  ASSERT_TRUE(written.has_value()) << written.error().message();
  ASSERT_TRUE(has_seen(*written));
  const json::Value labelled =
      merge("a", json::Object{{"metadata", json::Object{{"labels", json::Object{{"a", "b"}}}}}});
  ASSERT_TRUE(has_seen(labelled));
  merge("a", json::Object{{"spec", json::Object{{"size", 2}}}});

  ASSERT_TRUE(wait(loop(), [&] { return runs_.size() == 2; }));
  EXPECT_EQ(json::int_at(live("a"), {"status", "count"}), 1);
}

TEST_F(CustomResourceTest, WhatARunWaitsForEndsWhenItsObjectIsDeleted) {
  bool is_waiting = false;
  std::vector<ErrorKind> ended;
  CustomResource& shell =
      start({.reconcile = [&](kube::ObjectPtr newest,
                              std::stop_token stop) -> CustomResource::OutcomeTask {
        if (newest->key().namespace_ != namespace_) co_return Outcome{};
        const CustomResource::WhileItLives living(*shell_, newest->key(), stop);
        is_waiting = true;
        const Result<> slept = co_await loop().sleep(std::chrono::hours(1), living.token());
        if (slept) co_return Outcome{};
        ended.push_back(slept.error().kind());
        co_return std::unexpected(slept.error());
      }});
  create("a");
  ASSERT_TRUE(wait(loop(), [&] { return is_waiting; }));
  merge("a", json::Object{{"metadata", json::Object{{"labels", json::Object{{"a", "b"}}}}}});
  ASSERT_TRUE(has_seen(live("a")));
  EXPECT_TRUE(ended.empty()) << "other changes do not end it";

  remove("a");

  ASSERT_TRUE(wait(loop(), [&] { return !forgotten_.empty(); }));
  EXPECT_EQ(ended, std::vector{ErrorKind::Cancelled});
  EXPECT_EQ(shell.newest(key("a")), nullptr);
}

TEST_F(CustomResourceTest, KnowsTheAnswerToItsWriteBeforeTheWatchTells) {
  CustomResource& shell = start({});
  const json::Value created = create("a");
  ASSERT_TRUE(has_seen(created));

  const Result<json::Value> written = host_->session.run(
      shell.write_status(created, count(1), StatusOf::Version, std::stop_token()));

  ASSERT_TRUE(written.has_value()) << written.error().message();
  EXPECT_EQ(shell.newest(key("a"))->resource_version(), version_of(*written));
}

TEST_F(CustomResourceTest, WritesAStatusOverLabelsThatSomebodyTouched) {
  CustomResource& shell = start({});
  const json::Value created = create("a");
  merge("a", json::Object{{"metadata", json::Object{{"labels", json::Object{{"a", "b"}}}}}});

  const Result<json::Value> written =
      host_->session.run(shell.write_status(created, count(1), StatusOf::Spec, std::stop_token()));

  ASSERT_TRUE(written.has_value()) << written.error().message();
  EXPECT_EQ(json::int_at(*written, {"status", "count"}), 1);
  EXPECT_EQ(kube::label_of(*written, "a"), "b");
}

TEST_F(CustomResourceTest, RefusesAStatusOfAnotherSpecAsConflictAndRunsForTheNewOne) {
  CustomResource& shell = start({});
  const json::Value created = create("a");
  ASSERT_TRUE(wait(loop(), [&] { return runs_.size() == 1; }));
  const json::Value changed = merge("a", json::Object{{"spec", json::Object{{"size", 2}}}});

  const Result<json::Value> written =
      host_->session.run(shell.write_status(created, count(1), StatusOf::Spec, std::stop_token()));

  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().kind(), ErrorKind::Conflict) << written.error().message();
  EXPECT_EQ(shell.newest(key("a"))->resource_version(), version_of(changed));
  EXPECT_TRUE(wait(loop(), [&] { return runs_.back() == version_of(changed); }));
}

TEST_F(CustomResourceTest, RefusesAStatusOfAnotherVersionAsConflict) {
  CustomResource& shell = start({});
  const json::Value created = create("a");
  merge("a", json::Object{{"metadata", json::Object{{"labels", json::Object{{"a", "b"}}}}}});

  const Result<json::Value> written = host_->session.run(
      shell.write_status(created, count(1), StatusOf::Version, std::stop_token()));

  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().kind(), ErrorKind::Conflict) << written.error().message();
}

TEST_F(CustomResourceTest, TellsAStatusThatTheSchemaRefusesFromAConflict) {
  CustomResource& shell = start({});
  const json::Value created = create("a");

  const Result<json::Value> written = host_->session.run(shell.write_status(
      created, json::Object{{"count", "many"}}, StatusOf::Spec, std::stop_token()));

  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().kind(), ErrorKind::InvalidInput) << written.error().message();
}

TEST_F(CustomResourceTest, StartsNoRunForAChangeOfItsOwnWhicheverComesFirst) {
  CustomResource& shell = start({.predicate = [](const kube::Delta&) { return true; }});
  json::Value object = create("a");
  ASSERT_TRUE(wait(loop(), [&] { return !runs_.empty(); }));

  for (int count = 0; count < 30; ++count) {
    json::Value labels = json::Object{{"count", std::to_string(count)}};
    object = host_->session.must(
        shell.patch(key("a"), kube::PatchType::Merge,
                    json::Object{{"metadata", json::Object{{"labels", std::move(labels)}}}},
                    std::stop_token()));
  }
  ASSERT_TRUE(has_seen(object));
  EXPECT_EQ(runs_.size(), 1U);

  const json::Value others = merge("a", json::Object{{"spec", json::Object{{"size", 2}}}});
  EXPECT_TRUE(wait(loop(), [&] { return runs_.back() == version_of(others); }));
}

TEST_F(CustomResourceTest, HasNothingToSayOfAnObjectThatIsGone) {
  CustomResource& shell = start({});
  const json::Value created = create("a");
  remove("a");

  const Result<json::Value> written =
      host_->session.run(shell.write_status(created, count(1), StatusOf::Spec, std::stop_token()));

  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().kind(), ErrorKind::Cancelled) << written.error().message();
  EXPECT_TRUE(wait(loop(), [&] { return forgotten_ == std::vector<std::string>{"a"}; }));
}

TEST_F(CustomResourceTest, AnObjectWithoutRoomInItsNamespaceWaitsAndSaysSo) {
  start({.has_stalled = true});
  create("small");
  create("large", 60'000);

  ASSERT_TRUE(wait(loop(), [&] { return reason("large", "Ready") == "NamespaceMemory"; }));
  EXPECT_EQ(reason("large", "Stalled"), "NamespaceMemory");
  EXPECT_TRUE(wait(loop(), [&] { return runs_.size() == 1; })) << "the other one is not held up";

  const json::Value smaller = merge("large", json::Object{{"spec", json::Object{{"text", "x"}}}});
  EXPECT_TRUE(wait(loop(), [&] { return runs_.back() == version_of(smaller); }));
}

TEST_F(CustomResourceTest, AnObjectIsWorkedOnOnceOthersHaveMadeRoom) {
  std::vector<std::string> sizes;
  start({.reconcile = [&](kube::ObjectPtr newest, std::stop_token) -> CustomResource::OutcomeTask {
    if (newest->key().namespace_ != namespace_) co_return Outcome{};
    const json::Value value = newest->to_value();
    sizes.push_back(
        fmt::format("{} {}", newest->key().name, json::string_at(value, {"spec", "text"}).size()));
    co_return Outcome{};
  }});
  create("first", 30'000);
  ASSERT_TRUE(wait(loop(), [&] { return sizes.size() == 1; }));
  create("second", 30'000);
  ASSERT_TRUE(wait(loop(), [&] { return reason("second", "Ready") == "NamespaceMemory"; }));

  remove("first");

  EXPECT_TRUE(wait(loop(), [&] { return sizes.back() == "second 30000"; }));
}

TEST_F(CustomResourceTest, ADenseObjectWaitsUntilThereIsRoomForItsDocuments) {
  purse_bytes_ = 32'000'000;  // Each needs 2 x 10 MB.
  io::OneShot<bool> may_end(loop());
  std::vector<std::string> begun;
  start({.concurrency = 4,
         .documents = 2,
         .reconcile = [&](kube::ObjectPtr newest, std::stop_token) -> CustomResource::OutcomeTask {
           if (newest->key().namespace_ != namespace_) co_return Outcome{};
           begun.push_back(newest->key().name);
           if (newest->key().name == "first") (void)co_await may_end.wait();
           co_return Outcome{};
         }});
  create_dense("first", 150'000);
  ASSERT_TRUE(wait(loop(), [&] { return begun.size() == 1; }));
  create_dense("second", 150'000);
  ASSERT_TRUE(wait(loop(), [&] { return reason("second", "Ready") == "NamespaceMemory"; }));
  create("small");
  ASSERT_TRUE(wait(loop(), [&] { return begun.back() == "small"; })) << "is not held up";

  may_end.set(true);

  EXPECT_TRUE(wait(loop(), [&] { return begun.back() == "second"; }));
}

TEST_F(CustomResourceTest, ADenseObjectIsDeletedWithoutRoomForItsDocuments) {
  purse_bytes_ = 16'000'000;
  start({.documents = 2});
  create_dense("dense", 150'000);
  ASSERT_TRUE(wait(loop(), [&] { return reason("dense", "Ready") == "NamespaceMemory"; }));
  EXPECT_TRUE(runs_.empty());

  remove("dense");

  EXPECT_TRUE(wait(loop(), [&] { return forgotten_ == std::vector<std::string>{"dense"}; }));
}

TEST_F(CustomResourceTest, AnObjectWithoutRoomIsFinalizedAsAWhole) {
  std::vector<std::size_t> sizes;
  start({.finalizer = std::string(kFinalizer),
         .finalize = [&](kube::ObjectPtr newest, std::stop_token) -> CustomResource::OutcomeTask {
           const json::Value value = newest->to_value();
           sizes.push_back(json::string_at(value, {"spec", "text"}).size());
           co_return Outcome{};
         }});
  create("large", 60'000, json::Array{json::Value(kFinalizer)});
  ASSERT_TRUE(wait(loop(), [&] { return reason("large", "Ready") == "NamespaceMemory"; }));

  remove("large");

  EXPECT_TRUE(wait(loop(), [&] { return forgotten_ == std::vector<std::string>{"large"}; }));
  EXPECT_EQ(sizes, std::vector<std::size_t>{60'000});
}

TEST_F(CustomResourceTest, LetsAnObjectGoOnlyOnceItIsFinalized) {
  int asked = 0;
  start({.finalizer = std::string(kFinalizer),
         .finalize = [&asked](kube::ObjectPtr, std::stop_token) -> CustomResource::OutcomeTask {
           if (++asked == 1) co_return Outcome{.requeue_after = std::chrono::milliseconds(10)};
           co_return Outcome{};
         }});
  create("a");
  ASSERT_TRUE(wait(loop(), [&] { return !runs_.empty(); }));
  EXPECT_TRUE(kube::has_finalizer(live("a"), kFinalizer)) << "a run before there was a finalizer";

  remove("a");

  ASSERT_TRUE(wait(loop(), [&] { return forgotten_ == std::vector<std::string>{"a"}; }));
  EXPECT_EQ(asked, 2);
  const Result<json::Value> after =
      host_->session.run(host_->session.client.get(things(), key("a"), {}));
  ASSERT_FALSE(after.has_value());
  EXPECT_EQ(after.error().kind(), ErrorKind::NotFound);
}

TEST_F(CustomResourceTest, AnnouncesAStateOnceUntilItIsAnotherOne) {
  CustomResource& shell = start({});
  const json::Value created = create("a");
  const auto events = [this] {
    const kube::Resource kind{"", "v1", "events", "Event", true};
    return host_->session.run(host_->session.client.list(kind, {.namespace_ = namespace_}, {}))
        ->items.size();
  };
  const auto say = [&](const std::string& state) {
    shell.announce(created, state,
                   EventText{.reason = "Test", .message = fmt::format("it is {}", state)});
  };

  say("broken");
  say("broken");
  EXPECT_EQ(shell.announced(key("a")), "broken");
  shell.announce(created, "", {});
  EXPECT_EQ(shell.announced(key("a")), "");
  say("worse");

  finish(host_->events.stop());
  EXPECT_EQ(events(), 2U);
}

}  // namespace
}  // namespace hangar::reconcile
