// The cache against a real API server that goes away, closes connections, forgets its history, and
// loses a whole kind. A subscriber that believes nothing but deltas checks the cache's promises.
#include "kube/cache/cache.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/cache/ration.h"
#include "kube/client.h"
#include "kube/labels.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "objects.h"
#include "testing/control_plane.h"
#include "testing/own_control_plane.h"
#include "testing/session.h"
#include "testing/wait.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hangar::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Component;
using testing::Session;

using Content = std::map<std::string, std::string>;  // Name to resourceVersion.

const Resource kThings{"cache.example.com", "v1", "things", "Thing", true};

constexpr const char* kThingCrd = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.cache.example.com}
spec:
  group: cache.example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
)";

std::string thing(const std::string& namespace_, const std::string& name) {
  return fmt::format(
      "{{apiVersion: cache.example.com/v1, kind: Thing, metadata: {{namespace: {}, name: {}}}}}",
      namespace_, name);
}

double metric(const Metrics& metrics, const std::string& name) {
  double sum = 0;
  for (const Metrics::Family& family : metrics.collect())
    if (family.name == name)
      for (const Metrics::Sample& sample : family.samples)
        sum += sample.value;
  return sum;
}

// Applies deltas, and checks that they fit together.
struct Mirror {
  Cache::Handlers handlers() {
    return {.on_delta =
                [this](const Delta& delta) {
                  const std::string& name = delta.object->key().name;
                  const bool is_known = content.contains(name);
                  EXPECT_EQ(is_known, delta.type != Delta::Type::Added) << name;
                  EXPECT_FALSE(is_within) << "called within a call";
                  is_within = true;
                  ++deltas;
                  if (delta.type == Delta::Type::Deleted) {
                    content.erase(name);
                  } else {
                    content[name] = delta.object->resource_version();
                  }
                  if (also) also(delta);
                  is_within = false;
                },
            .on_synced =
                [this] {
                  EXPECT_FALSE(is_synced) << "told twice";
                  is_synced = true;
                }};
  }

  Content content;
  bool is_synced = false;
  bool is_within = false;
  int deltas = 0;
  std::function<void(const Delta&)> also;
};

class CacheTest : public testing::OwnControlPlane<CacheTest> {
 public:
  static testing::ControlPlaneOptions options() {
    return {.controller_manager = false, .proxy = true, .audit = true};
  }

 protected:
  void SetUp() override {
    OwnControlPlane::SetUp();
    if (is_absent()) return;
    auto name = own_->unique_namespace("cache");
    ASSERT_TRUE(name.has_value()) << name.error().message();
    namespace_ = *std::move(name);
    connect(own_->kubeconfig());
  }

  void TearDown() override {
    if (own_) EXPECT_TRUE(own_->heal().has_value());
    if (cache_) disconnect();
  }

  void connect(const std::string& kubeconfig, Cache::Options options = {}) {
    if (cache_) disconnect();
    session_ = std::make_unique<Session>(kubeconfig);
    cache_ = std::make_unique<Cache>(session_->loop, session_->client, session_->metrics, Log(),
                                     options);
  }
  void disconnect() {
    cache_.reset();
    EXPECT_TRUE(testing::wait_for_end_of_tasks(session_->loop)) << "a watch did not end";
    session_.reset();
  }

  bool wait(const std::function<bool()>& condition, seconds at_most = seconds(60)) {
    return testing::wait(session_->loop, condition, at_most);
  }

  void make(const std::string& name, const std::string& data = "{}") {
    session_->must(
        session_->client.create(kConfigMaps, config_map(namespace_, name, data), {}, {}));
  }
  void change(const std::string& name, const std::string& data) {
    session_->must(session_->client.apply(kConfigMaps, config_map(namespace_, name, data),
                                          {.force = true}, {}));
  }
  void remove(const std::string& name) {
    session_->must(session_->client.remove(kConfigMaps, {namespace_, name}, {}, {}));
  }

  void start_api_server() {
    const Result<> started = own_->start_again(Component::ApiServer);
    ASSERT_TRUE(started.has_value()) << started.error().message();
  }

  // The objects, read from the server.
  Content truth() {
    Session direct(own_->kubeconfig());
    const auto list = direct.run(direct.client.list(kConfigMaps, {.namespace_ = namespace_}, {}));
    EXPECT_TRUE(list.has_value());
    Content content;
    if (!list) return content;
    for (const ObjectPtr& object : list->items)
      content[object->key().name] = object->resource_version();
    return content;
  }

  Scope here() const { return {.resource = kConfigMaps, .namespace_ = namespace_}; }

  std::string namespace_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Cache> cache_;
};

TEST_F(CacheTest, TellsTheWholeListThenWhatChanges) {
  make("a");
  make("b");
  Mirror mirror;
  const auto subscription = cache_->subscribe(here(), mirror.handlers());
  EXPECT_TRUE(mirror.content.empty()) << "told within subscribe()";
  EXPECT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  EXPECT_EQ(mirror.content, truth());
  EXPECT_TRUE(mirror.is_synced);

  change("a", R"({"x":"1"})");
  make("c");
  remove("b");

  const Content expected = truth();
  EXPECT_TRUE(wait([&] { return mirror.content == expected; }));
  ASSERT_NE(subscription->get({namespace_, "a"}), nullptr);
  EXPECT_EQ(json::string_at(subscription->get({namespace_, "a"})->to_value(), {"data", "x"}), "1");
  EXPECT_EQ(subscription->get({namespace_, "b"}), nullptr);
  EXPECT_EQ(subscription->list().size(), expected.size());
}

TEST_F(CacheTest, ListsByEventsOfTheWatchAndNotInPages) {
  make("a");
  Mirror mirror;
  const auto subscription = cache_->subscribe(here(), mirror.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  // The server writes its log when a request is done: end the request.
  disconnect();

  const std::string collection = "/api/v1/namespaces/" + namespace_ + "/configmaps?";
  bool has_watch_list = false;
  bool has_page = false;
  const Instant until = io::Loop::now() + seconds(20);
  while (!has_watch_list && io::Loop::now() < until) {
    std::ifstream log(own_->audit_log());
    for (std::string line; std::getline(log, line);) {
      if (!line.contains(collection)) continue;
      has_watch_list = has_watch_list || line.contains("sendInitialEvents=true");
      has_page = has_page || line.contains(R"("verb":"list")");
    }
  }
  EXPECT_TRUE(has_watch_list);
  EXPECT_FALSE(has_page);
}

TEST_F(CacheTest, SharesOneWatchAndReplaysForWhoComesLater) {
  make("a");
  Mirror early;
  const auto first = cache_->subscribe(here(), early.handlers());
  ASSERT_TRUE(session_->run(first->wait_synced({})).has_value());

  Mirror late;
  auto second = cache_->subscribe(here(), late.handlers());
  EXPECT_FALSE(second->is_synced());
  EXPECT_EQ(second->get({namespace_, "a"}), nullptr) << "nothing or everything";
  ASSERT_TRUE(session_->run(second->wait_synced({})).has_value());
  EXPECT_EQ(late.content, early.content);
  EXPECT_EQ(cache_->statistics().watches, 1U);
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_watches"), 1);
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_objects"), 1);
  EXPECT_EQ(first->get({namespace_, "a"}), second->get({namespace_, "a"})) << "one object for both";

  second.reset();
  make("b");
  EXPECT_TRUE(wait([&] { return early.content.contains("b"); }));
  EXPECT_FALSE(late.content.contains("b"));
}

TEST_F(CacheTest, KeepsMetadataAloneForWhoAsksForNoMore) {
  make("a", R"({"x":"1"})");
  Mirror mirror;
  Scope scope = here();
  scope.detail = Detail::Metadata;
  const auto subscription = cache_->subscribe(scope, mirror.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());

  change("a", R"({"x":"2"})");

  const Content expected = truth();
  EXPECT_TRUE(wait([&] { return mirror.content == expected; }));
  const ObjectPtr kept = subscription->get({namespace_, "a"});
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(json::find(kept->to_value(), {"data"}), nullptr) << kept->text().str();
  const auto whole = cache_->subscribe(here(), {});
  ASSERT_TRUE(session_->run(whole->wait_synced({})).has_value());
  EXPECT_EQ(json::string_at(whole->get({namespace_, "a"})->to_value(), {"data", "x"}), "2");
}

TEST_F(CacheTest, LetsSubscribersComeAndGoWithinCallbacks) {
  make("a");
  make("b");
  Mirror leaver;
  Mirror stayer;
  Mirror comer;
  std::unique_ptr<Cache::Subscription> leaving;
  std::unique_ptr<Cache::Subscription> coming;
  leaver.also = [&](const Delta&) { leaving.reset(); };
  stayer.also = [&](const Delta&) {
    if (!coming) coming = cache_->subscribe(here(), comer.handlers());
    EXPECT_FALSE(comer.is_synced) << "told within the callback of another";
  };

  leaving = cache_->subscribe(here(), leaver.handlers());
  const auto staying = cache_->subscribe(here(), stayer.handlers());
  ASSERT_TRUE(wait([&] { return coming && coming->is_synced(); }));
  stayer.also = nullptr;

  EXPECT_EQ(leaver.deltas, 1);
  EXPECT_FALSE(leaver.is_synced);
  EXPECT_EQ(stayer.content, truth());
  EXPECT_EQ(comer.content, truth());
}

TEST_F(CacheTest, StopsWithinACallback) {
  make("a");
  make("b");
  Mirror mirror;
  mirror.also = [&](const Delta&) { cache_->stop(); };
  const auto subscription = cache_->subscribe(here(), mirror.handlers());

  const Result<> synced = session_->run(subscription->wait_synced({}));

  ASSERT_FALSE(synced.has_value());
  EXPECT_EQ(synced.error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ(mirror.deltas, 1);
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_objects"), 0);
}

TEST_F(CacheTest, OneWhoReturnsSoonCostsNoNewWatch) {
  make("a");
  Mirror first;
  auto subscription = cache_->subscribe(here(), first.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  subscription.reset();
  EXPECT_EQ(cache_->statistics().watches, 1U);
  const double before = requests(session_->metrics, "GET", "200");

  Mirror second;
  subscription = cache_->subscribe(here(), second.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());

  EXPECT_EQ(second.content, first.content);
  EXPECT_EQ(requests(session_->metrics, "GET", "200"), before);
}

TEST_F(CacheTest, ServesOneNamespaceFromTheWatchOfAll) {
  make("a");
  const std::string other = own_->unique_namespace("cache").value();
  session_->must(session_->client.create(kConfigMaps, config_map(other, "elsewhere"), {}, {}));
  const auto all = cache_->subscribe({.resource = kConfigMaps}, {});
  ASSERT_TRUE(session_->run(all->wait_synced({})).has_value());

  Mirror mirror;
  const auto narrow = cache_->subscribe(here(), mirror.handlers());
  ASSERT_TRUE(session_->run(narrow->wait_synced({})).has_value());

  EXPECT_EQ(cache_->statistics().watches, 1U);
  EXPECT_EQ(mirror.content, truth());
  EXPECT_EQ(narrow->list().size(), mirror.content.size());
  EXPECT_TRUE(narrow->list(other).empty());
  EXPECT_EQ(narrow->get({other, "elsewhere"}), nullptr);
  EXPECT_NE(all->get({other, "elsewhere"}), nullptr);
}

TEST_F(CacheTest, WatchesTwiceAtMostWhateverIsLookedAt) {
  const std::string other = own_->unique_namespace("cache").value();
  session_->must(session_->client.create(kConfigMaps, config_map(other, "elsewhere"), {}, {}));
  for (int index = 0; index < 30; ++index)
    make(fmt::format("unwanted-{}", index));
  std::vector<std::unique_ptr<Mirror>> mirrors;
  std::vector<std::unique_ptr<Cache::Subscription>> subscriptions;
  const auto look_at = [&](Scope scope) {
    mirrors.push_back(std::make_unique<Mirror>());
    subscriptions.push_back(cache_->subscribe(std::move(scope), mirrors.back()->handlers()));
  };
  const auto named = [&](const std::string& name) {
    Scope scope = here();
    scope.field_selector = "metadata.name=" + name;
    return scope;
  };
  for (int index = 0; index < 10; ++index) {
    const std::string name = fmt::format("n{}", index);
    if (index % 2 == 0) make(name);
    look_at(named(name));
    if (index == 5) {  // The others join watches that work already.
      ASSERT_TRUE(session_->run(subscriptions.back()->wait_synced({})).has_value());
    }
  }
  look_at({.resource = kConfigMaps, .label_selector = "team=a"});
  look_at({.resource = kConfigMaps, .namespace_ = other});
  for (const auto& subscription : subscriptions)
    ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  EXPECT_TRUE(wait([&] { return cache_->statistics().watches <= 2; }));
  // Five of ten, and the objects that Kubernetes puts into a new namespace.
  const std::size_t wanted = 5 + mirrors.back()->content.size();
  EXPECT_TRUE(wait([&] { return cache_->statistics().objects == wanted; }))
      << cache_->statistics().objects << " objects are kept";
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_objects"), static_cast<double>(wanted));
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_watches"),
            static_cast<double>(cache_->statistics().watches));

  const auto label = [&](const std::string& name, const std::string& team) {
    json::Value object = config_map(namespace_, name);
    json::set_at(object, {"metadata", "labels"}, json::Object{{"team", team}});
    session_->must(session_->client.apply(kConfigMaps, object, {.force = true}, {}));
  };
  for (int index = 0; index < 10; ++index) {
    const std::string name = fmt::format("n{}", index);
    label(name, index < 3 ? "a" : "b");
  }
  label("n3", "a");
  label("n0", "b");
  remove("n1");
  label("unwanted-1", "a");
  const Content there = truth();
  const Content of_team = {
      {"n2", there.at("n2")}, {"n3", there.at("n3")}, {"unwanted-1", there.at("unwanted-1")}};

  EXPECT_TRUE(wait([&] { return mirrors[10]->content == of_team; }));
  for (int index = 0; index < 10; ++index) {
    const std::string name = fmt::format("n{}", index);
    const Content expected = index == 1 ? Content{} : Content{{name, there.at(name)}};
    EXPECT_TRUE(wait([&] { return mirrors[static_cast<std::size_t>(index)]->content == expected; }))
        << name;
  }
  EXPECT_EQ(subscriptions[2]->get({namespace_, "n2"}), subscriptions[10]->get({namespace_, "n2"}))
      << "one object for both";
}

TEST_F(CacheTest, WatchesNarrowlyAgainWhenFewerAreLookedAt) {
  connect(own_->kubeconfig(), {.linger = milliseconds(10), .narrow_after = milliseconds(300)});
  std::vector<std::unique_ptr<Mirror>> mirrors;
  std::vector<std::unique_ptr<Cache::Subscription>> subscriptions;
  for (int index = 0; index < 4; ++index) {
    const std::string name = fmt::format("n{}", index);
    make(name);
    mirrors.push_back(std::make_unique<Mirror>());
    Scope scope = here();
    scope.field_selector = "metadata.name=" + name;
    subscriptions.push_back(cache_->subscribe(scope, mirrors.back()->handlers()));
  }
  for (const auto& subscription : subscriptions)
    ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  EXPECT_TRUE(wait([&] { return cache_->statistics().watches == 1; }));

  subscriptions.resize(2);
  EXPECT_TRUE(wait([&] { return cache_->statistics().watches == 2; })) << "one for each again";
  EXPECT_EQ(cache_->statistics().objects, 2U);
  change("n1", R"({"x":"1"})");
  remove("n0");
  make("n0");
  const Content there = truth();
  EXPECT_TRUE(wait([&] { return mirrors[0]->content == Content{{"n0", there.at("n0")}}; }));
  EXPECT_TRUE(wait([&] { return mirrors[1]->content == Content{{"n1", there.at("n1")}}; }));
  EXPECT_EQ(mirrors[1]->deltas, 2) << "what a watch is exchanged for is not told";
}

TEST_F(CacheTest, WatchesAsWidelyAsItMay) {
  std::vector<std::string> namespaces = {namespace_};
  for (int index = 0; index < 2; ++index)
    namespaces.push_back(own_->unique_namespace("cache").value());
  const std::string user = "narrow-" + namespace_;
  for (const std::string& one : namespaces) {
    ASSERT_TRUE(own_->kubectl({"create", "role", "reader", "--verb=get,list,watch",
                               "--resource=configmaps", "-n", one})
                    .has_value());
    ASSERT_TRUE(own_->kubectl({"create", "rolebinding", "reader", "--role=reader", "--user=" + user,
                               "-n", one})
                    .has_value());
  }
  const Client narrow = session_->client.as({.user = user});
  Cache cache(session_->loop, narrow, session_->metrics, Log());
  std::vector<std::unique_ptr<Cache::Subscription>> subscriptions;
  for (const std::string& one : namespaces) {
    for (int index = 0; index < 4; ++index) {
      const std::string name = fmt::format("n{}", index);
      session_->must(session_->client.create(kConfigMaps, config_map(one, name), {}, {}));
      subscriptions.push_back(cache.subscribe(
          {.resource = kConfigMaps, .namespace_ = one, .field_selector = "metadata.name=" + name},
          {}));
    }
  }
  for (const auto& subscription : subscriptions) {
    const Result<> synced = session_->run(subscription->wait_synced({}));
    ASSERT_TRUE(synced.has_value()) << synced.error().message();
    EXPECT_EQ(subscription->list().size(), 1U);
  }
  EXPECT_TRUE(wait([&] { return cache.statistics().watches == namespaces.size(); }))
      << cache.statistics().watches << " watches";
  EXPECT_EQ(cache.statistics().objects, subscriptions.size());
}

// The refusal of an API server that has just started, and has not read its roles yet.
TEST_F(CacheTest, ARefusalThatPassesLeavesTheWideWatch) {
  const std::string user = "wide-" + namespace_;
  ASSERT_TRUE(own_->kubectl({"create", "clusterrole", user, "--verb=get,list,watch",
                             "--resource=configmaps"})
                  .has_value());
  const auto grant = [&] {
    return own_->kubectl(
        {"create", "clusterrolebinding", user, "--clusterrole=" + user, "--user=" + user});
  };
  ASSERT_TRUE(grant().has_value());
  connect(own_->proxied_kubeconfig());
  const Client wide = session_->client.as({.user = user});
  ASSERT_TRUE(wait([&] { return session_->run(wide.list(kConfigMaps, {}, {})).has_value(); }));
  Cache cache(session_->loop, wide, session_->metrics, Log());
  std::vector<std::string> namespaces;
  std::vector<std::unique_ptr<Cache::Subscription>> subscriptions;
  for (int index = 0; index < 5; ++index) {
    namespaces.push_back(own_->unique_namespace("cache").value());
    subscriptions.push_back(
        cache.subscribe({.resource = kConfigMaps, .namespace_ = namespaces.back()}, {}));
  }
  ASSERT_TRUE(wait([&] { return cache.statistics().watches == 1; }));
  for (const auto& subscription : subscriptions)
    ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());

  ASSERT_TRUE(own_->cut().has_value());
  ASSERT_TRUE(own_->kubectl({"delete", "clusterrolebinding", user}).has_value());
  ASSERT_TRUE(own_->restore().has_value());
  ASSERT_TRUE(wait([&] {
    const auto error = subscriptions.front()->last_error();
    return error && error->kind() == ErrorKind::Denied;
  }));
  EXPECT_EQ(cache.statistics().watches, 1U);
  ASSERT_TRUE(grant().has_value());
  const ObjectKey key{namespaces.back(), "later"};
  ASSERT_TRUE(own_->kubectl({"create", "configmap", key.name, "-n", key.namespace_}).has_value());

  EXPECT_TRUE(wait([&] { return subscriptions.back()->get(key) != nullptr; }));
  EXPECT_FALSE(subscriptions.front()->last_error().has_value());
  EXPECT_EQ(cache.statistics().watches, 1U);
}

TEST_F(CacheTest, KeepsNoMoreOfASecretThanSomebodyLooksAt) {
  std::vector<std::unique_ptr<Cache::Subscription>> subscriptions;
  for (int index = 0; index < 6; ++index) {
    const std::string name = fmt::format("s{}", index);
    make(name, R"({"x":"1"})");
    subscriptions.push_back(
        cache_->subscribe({.resource = kConfigMaps,
                           .namespace_ = namespace_,
                           .field_selector = "metadata.name=" + name,
                           .detail = index < 3 ? Detail::Metadata : Detail::Whole},
                          {}));
  }
  // The whole objects of the namespace, as metadata too.
  const auto labelled = cache_->subscribe(
      {.resource = kConfigMaps, .label_selector = "team=a", .detail = Detail::Metadata}, {});
  for (const auto& subscription : subscriptions)
    ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  EXPECT_TRUE(wait([&] { return cache_->statistics().watches <= 2; }));

  for (int round = 1; round <= 2; ++round) {
    for (int index = 0; index < 6; ++index) {
      const ObjectPtr kept = subscriptions[static_cast<std::size_t>(index)]->get(
          {namespace_, fmt::format("s{}", index)});
      ASSERT_NE(kept, nullptr);
      EXPECT_EQ(json::find(kept->to_value(), {"data"}) != nullptr, index >= 3)
          << kept->text().str();
    }
    for (int index = 0; round == 1 && index < 6; ++index)
      change(fmt::format("s{}", index), R"({"x":"2"})");
    const Content there = truth();
    for (int index = 0; index < 6; ++index) {
      const std::string name = fmt::format("s{}", index);
      EXPECT_TRUE(wait([&] {
        return subscriptions[static_cast<std::size_t>(index)]
                   ->get({namespace_, name})
                   ->resource_version() == there.at(name);
      }));
    }
  }
}

// Allows so many bytes, and remembers how many were held at most.
class Purse final : public Allowance {
 public:
  explicit Purse(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  Result<> resize(std::uint64_t bytes) override {
    if (bytes > bytes_max_ && bytes > held) return fail(ErrorKind::LimitExceeded, "no more");
    held = bytes;
    most = std::max(most, held);
    return {};
  }

  std::uint64_t held = 0;
  std::uint64_t most = 0;

 private:
  const std::uint64_t bytes_max_;
};

std::string data_of(std::size_t bytes) {
  return fmt::format(R"({{"x":"{}"}})", std::string(bytes, 'x'));
}

TEST_F(CacheTest, ReadsNoMoreThanAScopeMayHold) {
  for (int index = 0; index < 20; ++index)
    make(fmt::format("large-{:02}", index), data_of(100'000));
  const auto purse = std::make_shared<Purse>(1'000'000);
  std::optional<Error> failed;
  Mirror mirror;
  Cache::Handlers handlers = mirror.handlers();
  handlers.on_failed = [&failed](const Error& error) { failed = error; };
  auto subscription = cache_->subscribe(here(), std::move(handlers), purse);

  const Result<> synced = session_->run(subscription->wait_synced({}));

  ASSERT_FALSE(synced.has_value());
  EXPECT_EQ(synced.error().message(), "no more");
  ASSERT_TRUE(failed.has_value());
  EXPECT_FALSE(mirror.is_synced);
  EXPECT_EQ(mirror.deltas, 0);
  EXPECT_GT(purse->most, 500'000U);
  EXPECT_EQ(purse->held, 0U);
  EXPECT_TRUE(subscription->list().empty());
  // It reads no more once nobody waits for it.
  subscription.reset();
  EXPECT_TRUE(wait([&] { return cache_->statistics().watches == 0; }));
  EXPECT_EQ(cache_->statistics().bytes, 0U);
}

TEST_F(CacheTest, KeepsObjectsBareForWhichTheirNamespaceHasNoRoom) {
  const auto ration = std::make_shared<const Ration>(
      [](const std::string&) { return std::make_unique<Purse>(250'000); });
  connect(own_->kubeconfig(), {.ration = ration});
  for (int index = 0; index < 5; ++index)
    make(fmt::format("large-{:02}", index), data_of(100'000));
  Scope scope = here();
  scope.keep = Keep::Rationed;
  Mirror mirror;
  const auto rationed = cache_->subscribe(scope, mirror.handlers());
  const auto whole = cache_->subscribe(here(), {});
  ASSERT_TRUE(session_->run(rationed->wait_synced({})).has_value());
  ASSERT_TRUE(session_->run(whole->wait_synced({})).has_value());

  const auto bare_count = [](const Cache::Subscription& of) {
    return std::ranges::count_if(of.list(), [](const ObjectPtr& one) { return one->is_bare(); });
  };
  EXPECT_EQ(mirror.content, truth());
  EXPECT_EQ(bare_count(*rationed), 3);
  EXPECT_EQ(bare_count(*whole), 0);
  EXPECT_EQ(cache_->statistics().watches, 1U);

  // Changes, too, and what becomes smaller is whole again.
  make("later", data_of(100'000));
  ASSERT_TRUE(wait([&] { return rationed->get({namespace_, "later"}) != nullptr; }));
  EXPECT_TRUE(rationed->get({namespace_, "later"})->is_bare());
  change("later", R"({"x":"1"})");
  ASSERT_TRUE(wait([&] { return !rationed->get({namespace_, "later"})->is_bare(); }));
  EXPECT_EQ(mirror.content, truth());
}

TEST_F(CacheTest, ReadsAScopeAgainForASubscriberThatMayHoldIt) {
  for (int index = 0; index < 5; ++index)
    make(fmt::format("large-{:02}", index), data_of(100'000));
  const auto poor = cache_->subscribe(here(), {}, std::make_shared<Purse>(300'000));
  ASSERT_FALSE(session_->run(poor->wait_synced({})).has_value());
  const auto purse = std::make_shared<Purse>(1'000'000);

  const auto rich = cache_->subscribe(here(), {}, purse);

  ASSERT_TRUE(session_->run(rich->wait_synced({})).has_value());
  EXPECT_EQ(rich->list().size(), 5U);
  EXPECT_GT(purse->held, 500'000U);
  EXPECT_TRUE(poor->list().empty());
  make("later");
  EXPECT_TRUE(wait([&] { return rich->get({namespace_, "later"}) != nullptr; }));
}

TEST_F(CacheTest, DropsAScopeThatGrowsBeyondWhatItMayHold) {
  make("small");
  const auto purse = std::make_shared<Purse>(300'000);
  std::optional<Error> failed;
  Mirror mirror;
  Cache::Handlers handlers = mirror.handlers();
  handlers.on_failed = [&failed](const Error& error) { failed = error; };
  const auto subscription = cache_->subscribe(here(), std::move(handlers), purse);
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  EXPECT_GT(purse->held, 0U);
  make("large", data_of(200'000));
  ASSERT_TRUE(wait([&] { return mirror.content.size() == 2; }));
  EXPECT_GT(purse->held, 200'000U);

  make("too-large", data_of(200'000));

  EXPECT_TRUE(wait([&] { return failed.has_value(); }));
  EXPECT_TRUE(subscription->list().empty());
  EXPECT_FALSE(subscription->is_synced());
  EXPECT_EQ(purse->held, 0U);
  EXPECT_EQ(cache_->statistics().bytes, 0U);
}

TEST_F(CacheTest, WhatOneScopeMayNotHoldOthersKeep) {
  for (int index = 0; index < 10; ++index)
    make(fmt::format("large-{:02}", index), data_of(100'000));
  // A watch of everything, which has them; the bounded scope joins it, and lists by itself.
  const auto everything = cache_->subscribe({.resource = kConfigMaps}, {});
  ASSERT_TRUE(session_->run(everything->wait_synced({})).has_value());
  const auto some = cache_->subscribe(
      {.resource = kConfigMaps, .namespace_ = namespace_, .label_selector = "none=none"}, {},
      std::make_shared<Purse>(0));
  ASSERT_TRUE(session_->run(some->wait_synced({})).has_value());
  const auto purse = std::make_shared<Purse>(300'000);
  const auto bounded = cache_->subscribe(here(), {}, purse);
  EXPECT_FALSE(session_->run(bounded->wait_synced({})).has_value());
  EXPECT_LE(purse->most, 300'000U);

  make("later");
  EXPECT_TRUE(wait([&] { return everything->get({namespace_, "later"}) != nullptr; }));
  EXPECT_EQ(everything->list(namespace_).size(), 11U);
  // A subscriber without a bound has the scope whole, whoever else looks at it.
  const auto unbounded = cache_->subscribe(
      {.resource = kConfigMaps, .namespace_ = namespace_, .label_selector = "!none"}, {});
  const auto beside = cache_->subscribe(
      {.resource = kConfigMaps, .namespace_ = namespace_, .label_selector = "!none"}, {},
      std::make_shared<Purse>(1));
  EXPECT_TRUE(session_->run(unbounded->wait_synced({})).has_value());
  EXPECT_TRUE(session_->run(beside->wait_synced({})).has_value());
}

TEST_F(CacheTest, AListThatIsReadAgainCountsWhatIsNewOnly) {
  connect(own_->proxied_kubeconfig());
  for (int index = 0; index < 5; ++index)
    make(fmt::format("large-{:02}", index), data_of(100'000));
  const auto purse = std::make_shared<Purse>(700'000);
  Mirror mirror;
  const auto subscription = cache_->subscribe(here(), mirror.handlers(), purse);
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  const std::uint64_t held = purse->held;
  const ObjectPtr before = subscription->get({namespace_, "large-00"});

  // A restarted API server has no history in its watch cache.
  ASSERT_TRUE(own_->cut().has_value());
  ASSERT_TRUE(wait([&] { return subscription->last_error().has_value(); }));
  ASSERT_TRUE(own_->kubectl({"create", "configmap", "small", "-n", namespace_}).has_value());
  ASSERT_TRUE(own_->kill(Component::ApiServer).has_value());
  start_api_server();
  ASSERT_TRUE(own_->restore().has_value());

  ASSERT_TRUE(wait([&] { return mirror.content.contains("small"); }));
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_relists_total"), 1);
  EXPECT_EQ(subscription->get({namespace_, "large-00"}), before);
  EXPECT_LT(purse->most, held + 100'000);
}

// Whichever subscribers come and go, and whatever happens to the connection: each sees deltas that
// fit together.
TEST_F(CacheTest, TellsEachWhatHappensThoughWatchesAreWidenedAndNarrowedUnderIt) {
  connect(own_->proxied_kubeconfig(),
          {.linger = milliseconds(100), .narrow_after = milliseconds(200)});
  Session direct(own_->kubeconfig());
  const auto seed = static_cast<std::uint32_t>(io::Loop::now().time_since_epoch().count());
  SCOPED_TRACE(seed);
  std::mt19937 dice(seed);
  const auto below = [&](std::uint32_t count) { return dice() % count; };
  // Namespaces of this test alone: some subscribers look at all namespaces.
  const auto team = [&] { return fmt::format("{}-{}", namespace_, "abc"[below(3)]); };
  struct Look {
    std::string name;  // Or a team.
    Mirror mirror;
    std::unique_ptr<Cache::Subscription> subscription;
  };
  std::vector<std::unique_ptr<Look>> looks;
  for (int round = 0; round < 150; ++round) {
    const std::string name = fmt::format("n{}", below(8));
    switch (below(6)) {
      case 0:
        (void)direct.run(direct.client.remove(kConfigMaps, {namespace_, name}, {}, {}));
        break;
      case 1: {
        auto look = std::make_unique<Look>();
        Scope scope = here();
        if (below(3) == 0) {
          look->name = "team=" + team();
          scope.label_selector = look->name;
          if (below(2) == 0) scope.namespace_.clear();
        } else if (below(8) > 0) {
          look->name = name;
          scope.field_selector = "metadata.name=" + name;
        }
        if (below(3) == 0) scope.detail = Detail::Metadata;
        look->subscription = cache_->subscribe(scope, look->mirror.handlers());
        looks.push_back(std::move(look));
        break;
      }
      case 2:
        if (!looks.empty() && below(2) == 0) {
          std::swap(looks[dice() % looks.size()], looks.back());
          looks.pop_back();
        }
        break;
      default: {
        json::Value object = config_map(namespace_, name, fmt::format(R"({{"x":"{}"}})", round));
        json::set_at(object, {"metadata", "labels"}, json::Object{{"team", team()}});
        direct.must(direct.client.apply(kConfigMaps, object, {.force = true}, {}));
      }
    }
    if (round % 25 == 24) {
      ASSERT_TRUE(own_->cut().has_value());
      ASSERT_TRUE(own_->restore().has_value());
    }
    if (below(2) == 0) (void)session_->run(session_->loop.sleep(milliseconds(below(120)), {}));
  }

  const auto list = direct.run(direct.client.list(kConfigMaps, {.namespace_ = namespace_}, {}));
  ASSERT_TRUE(list.has_value());
  for (const auto& look : looks) {
    Content expected;
    for (const ObjectPtr& object : list->items) {
      const std::string& name = object->key().name;
      const auto of_team = Labels(*object).find("team").value_or("");
      if (look->name.empty() || look->name == name || look->name == fmt::format("team={}", of_team))
        expected[name] = object->resource_version();
    }
    EXPECT_TRUE(wait([&] { return look->mirror.is_synced && look->mirror.content == expected; }))
        << look->name;
  }
  EXPECT_TRUE(wait([&] { return cache_->statistics().watches <= 2; }))
      << cache_->statistics().watches << " watches";
}

TEST_F(CacheTest, NarrowsByLabelAndFindsByOwner) {
  json::Value labelled = config_map(namespace_, "web");
  json::set_at(labelled, {"metadata", "labels"}, json::Object{{"app", "web"}});
  session_->must(session_->client.create(kConfigMaps, labelled, {}, {}));
  make("plain");
  Scope scope = here();
  scope.label_selector = "app in (web,db)";
  Mirror mirror;
  const auto narrow = cache_->subscribe(scope, mirror.handlers());
  ASSERT_TRUE(session_->run(narrow->wait_synced({})).has_value());

  ASSERT_EQ(mirror.content.size(), 1U);
  EXPECT_TRUE(mirror.content.contains("web"));
  EXPECT_TRUE(narrow->owned_by("nobody").empty());
}

TEST_F(CacheTest, SaysThatItMayNotLook) {
  const Client nobody = session_->client.as({.user = "nobody"});
  Cache cache(session_->loop, nobody, session_->metrics, Log());
  const auto subscription = cache.subscribe(here(), {});

  const Result<> synced = session_->run(subscription->wait_synced({}));

  ASSERT_FALSE(synced.has_value());
  EXPECT_EQ(synced.error().kind(), ErrorKind::Denied);
  EXPECT_EQ(subscription->last_error()->kind(), ErrorKind::Denied);
}

TEST_F(CacheTest, FollowsAnApiServerThatWasKilled) {
  make("stays");
  make("goes");
  Mirror mirror;
  const auto subscription = cache_->subscribe(here(), mirror.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());

  ASSERT_TRUE(own_->kill(Component::ApiServer).has_value());
  ASSERT_TRUE(wait([&] { return subscription->last_error().has_value(); }));
  EXPECT_NE(subscription->get({namespace_, "stays"}), nullptr) << "old news are better than none";
  start_api_server();
  ASSERT_TRUE(own_->kubectl({"delete", "configmap", "goes", "-n", namespace_}).has_value());
  ASSERT_TRUE(own_->kubectl({"create", "configmap", "comes", "-n", namespace_}).has_value());

  const Content expected = truth();
  EXPECT_TRUE(wait([&] { return mirror.content == expected; }));
  EXPECT_TRUE(wait([&] { return !subscription->last_error().has_value(); }));
}

TEST_F(CacheTest, SeesEverythingThoughItsWatchIsCutEverySecond) {
  connect(own_->proxied_kubeconfig());
  Mirror mirror;
  const auto subscription = cache_->subscribe(here(), mirror.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());

  Session direct(own_->kubeconfig());
  for (int round = 0; round < 40; ++round) {
    const std::string name = fmt::format("n{}", round % 7);
    if (round % 5 == 4) {
      (void)direct.run(direct.client.remove(kConfigMaps, {namespace_, name}, {}, {}));
    } else {
      direct.must(direct.client.apply(
          kConfigMaps, config_map(namespace_, name, fmt::format(R"({{"x":"{}"}})", round)), {},
          {}));
    }
    if (round % 4 == 0) {
      ASSERT_TRUE(own_->cut().has_value());
      ASSERT_TRUE(own_->restore().has_value());
    }
    (void)session_->run(session_->loop.sleep(milliseconds(250), {}));
  }

  const Content expected = truth();
  EXPECT_TRUE(wait([&] { return mirror.content == expected; }));
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_relists_total"), 0)
      << "a cut watch is resumed, not begun anew";
}

TEST_F(CacheTest, ListsAgainWhenTheServerForgotItsPlace) {
  connect(own_->proxied_kubeconfig());
  make("stays");
  make("goes");
  make("changes");
  Mirror mirror;
  const auto subscription = cache_->subscribe(here(), mirror.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  const int deltas_before = mirror.deltas;

  // A restarted API server has no history in its watch cache.
  ASSERT_TRUE(own_->cut().has_value());
  ASSERT_TRUE(wait([&] { return subscription->last_error().has_value(); }));
  ASSERT_TRUE(own_->kubectl({"delete", "configmap", "goes", "-n", namespace_}).has_value());
  ASSERT_TRUE(
      own_->kubectl({"label", "configmap", "changes", "-n", namespace_, "x=y"}).has_value());
  ASSERT_TRUE(own_->kill(Component::ApiServer).has_value());
  start_api_server();
  ASSERT_TRUE(own_->restore().has_value());

  const Content expected = truth();
  EXPECT_TRUE(wait([&] { return mirror.content == expected; }));
  EXPECT_EQ(mirror.deltas, deltas_before + 2) << "what did not change is not told again";
  EXPECT_EQ(metric(session_->metrics, "hangar_cache_relists_total"), 1);
}

TEST_F(CacheTest, LosesAKindAndFindsItAgain) {
  const std::vector<std::string> established = {"wait", "--for=condition=Established",
                                                "crd/things.cache.example.com", "--timeout=30s"};
  ASSERT_TRUE(own_->kubectl({"apply", "-f", "-"}, kThingCrd).has_value());
  ASSERT_TRUE(own_->kubectl(established).has_value());
  const auto make_thing = [&](const std::string& name) {
    const Instant until = io::Loop::now() + seconds(30);
    while (!own_->kubectl({"apply", "-f", "-"}, thing(namespace_, name)).has_value())
      ASSERT_LT(io::Loop::now(), until);
  };
  make_thing("old");
  Mirror mirror;
  const auto subscription = cache_->subscribe({.resource = kThings}, mirror.handlers());
  ASSERT_TRUE(session_->run(subscription->wait_synced({})).has_value());
  ASSERT_TRUE(mirror.content.contains("old"));

  ASSERT_TRUE(own_->kubectl({"delete", "crd", "things.cache.example.com"}).has_value());
  EXPECT_TRUE(wait([&] { return mirror.content.empty(); }));
  // The cache does not believe a single answer: until the second one, a late subscriber finds an
  // empty list.
  std::unique_ptr<Cache::Subscription> late;
  Result<> synced;
  const Instant until = io::Loop::now() + seconds(30);
  while (synced.has_value() && io::Loop::now() < until) {
    late = cache_->subscribe({.resource = kThings}, {});
    synced = session_->run(late->wait_synced({}));
    (void)session_->run(session_->loop.sleep(milliseconds(50), {}));
  }
  ASSERT_FALSE(synced.has_value());
  EXPECT_EQ(synced.error().kind(), ErrorKind::NotFound);

  ASSERT_TRUE(own_->kubectl({"apply", "-f", "-"}, kThingCrd).has_value());
  ASSERT_TRUE(own_->kubectl(established).has_value());
  make_thing("new");
  cache_->kick(kThings.group);
  EXPECT_TRUE(
      wait([&] { return mirror.content.contains("new") && late->is_synced(); }, seconds(20)))
      << "a kick does not wait for the slow retry";
}

}  // namespace
}  // namespace hangar::kube
