// Lists that are too long for one turn of the loop, without a server: the test plays the watch.
#include "kube/cache/reflector.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "kube/auth/credentials.h"
#include "kube/auth/kubeconfig.h"
#include "kube/cache/cache.h"
#include "kube/cache/informer.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/limits.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/watch/watch_event.h"
#include "kube/watch/watcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::kube {
namespace {

// Many slices.
constexpr int kMany = 10 * static_cast<int>(limits::kCacheSliceObjects);

using Content = std::map<std::string, std::string>;  // Name to resourceVersion.

std::string name_of(int index) {
  return fmt::format("thing-{:06}", index);
}

ObjectPtr thing(int index, int version, const std::string& team = "a") {
  return Object::make(
             fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"namespace":"ns",)"
                         R"("name":"{}","uid":"u{}","resourceVersion":"{}",)"
                         R"("labels":{{"team":"{}"}},"ownerReferences":[{{"apiVersion":"v1",)"
                         R"("kind":"X","name":"x","uid":"owner"}}]}}}})",
                         name_of(index), index, version, team))
      .value();
}

std::vector<ObjectPtr> things(int count, int version) {
  std::vector<ObjectPtr> objects;
  for (int index = 0; index < count; ++index)
    objects.push_back(thing(index, version));
  return objects;
}

// A subscriber that knows only what its callbacks report.
struct Mirror {
  Cache::Handlers handlers() {
    return {.on_delta =
                [this](const Delta& delta) {
                  const std::string& name = delta.object->key().name;
                  EXPECT_EQ(content.contains(name), delta.type != Delta::Type::Added) << name;
                  if (delta.type == Delta::Type::Deleted) {
                    content.erase(name);
                  } else {
                    content[name] = delta.object->resource_version();
                  }
                  ++deltas;
                  ++deltas_of_round;
                  happened.push_back(std::string(delta.object->resource_version()));
                  if (also) also();
                },
            .on_synced =
                [this] {
                  EXPECT_FALSE(std::exchange(is_synced, true)) << "told twice";
                  happened.emplace_back("synced");
                },
            .on_progress =
                [this](std::string_view version, bool is_list) {
                  happened.push_back(fmt::format("{} {}", is_list ? "list" : "at", version));
                },
            .on_gone = [this] { happened.emplace_back("gone"); }};
  }

  Content content;
  bool is_synced = false;
  int deltas = 0;
  int deltas_of_round = 0;
  std::vector<std::string> happened;
  std::function<void()> also;
};

class ReflectorTest : public ::testing::Test {
 protected:
  ReflectorTest() {
    Login login;
    login.cluster.server = "http://127.0.0.1:1";
    client_.emplace(loop_, http_, std::make_shared<Credentials>(loop_, std::move(login), Log()),
                    metrics_, Log());
    platform_ = std::make_shared<Reflector::Platform>(loop_, *client_, metrics_, Log());
    reflector_ = std::make_shared<Reflector>(
        platform_, scope_,
        Reflector::Owner{.shared = [](ObjectPtr object, Detail) { return object; },
                         .kept = [](const Informer&, ObjectPtr object) { return object; },
                         .on_settled = [](Reflector&, Informer&) {},
                         .on_use = [](Reflector&, bool) {}});
    informer_ = make_informer(scope_);
    reflector_->join(informer_);
  }
  ~ReflectorTest() override {
    reflector_->stop();
    finish();
  }

  std::shared_ptr<Informer> make_informer(const Scope& scope) {
    return std::make_shared<Informer>(
        loop_, platform_->slice, scope, Informer::selection_of(scope).value(),
        Informer::Owner{.linger = std::chrono::hours(1),
                        .on_delta =
                            [this](const Informer& of, const Delta& delta) {
                              std::set<const Object*>& objects = told_[&of];
                              if (delta.previous)
                                EXPECT_EQ(objects.erase(delta.previous.get()), 1U);
                              const bool is_held = delta.type != Delta::Type::Deleted;
                              if (is_held) objects.insert(delta.object.get());
                              EXPECT_EQ(of.told(delta.object->key()),
                                        is_held ? delta.object : nullptr);
                            },
                        .on_unused = [](const std::shared_ptr<Informer>&) {}});
  }
  // Subscribed until it is destroyed.
  struct Subscription {
    explicit Subscription(std::shared_ptr<Subscriber> of) : subscriber(std::move(of)) {}
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    ~Subscription() {
      subscriber->is_alive = false;
      subscriber->informer->remove_dead();
    }
    const std::shared_ptr<Subscriber> subscriber;
  };
  std::unique_ptr<Subscription> subscribe(Mirror& mirror, const std::shared_ptr<Informer>& to) {
    auto subscriber = std::make_shared<Subscriber>(loop_, mirror.handlers(), nullptr);
    to->add(subscriber);
    return std::make_unique<Subscription>(std::move(subscriber));
  }

  void begin_list(const std::vector<ObjectPtr>& objects) {
    watch().on_list_begin();
    for (const ObjectPtr& object : objects)
      watch().on_listed(object);
  }
  void list(const std::vector<ObjectPtr>& objects, int version) {
    begin_list(objects);
    watch().on_replace(std::to_string(version));
  }
  void change(ObjectPtr object, Change::Type type = Change::Type::Modified) {
    watch().on_change({.type = type, .object = std::move(object)});
  }

  // Runs the loop until no task is left. Calls `each_round` once in each round of the loop.
  void finish(const std::function<void()>& each_round = {}) {
    rounds_ = 0;
    bool is_quiet = false;
    const std::function<void()> round = [&] {
      ++rounds_;
      if (each_round) each_round();
      is_quiet = loop_.spawned_count() == 0;
      if (!is_quiet) loop_.post([&round] { round(); });
    };
    loop_.post([&round] { round(); });
    loop_.run_until([&] { return is_quiet; });
  }

  Watcher::Sink& watch() { return *reflector_; }

  const Scope scope_{.resource = {"", "v1", "configmaps", "ConfigMap", true}};
  io::Loop loop_;
  Metrics metrics_;
  http::Client http_{loop_};
  std::optional<Client> client_;
  std::shared_ptr<Reflector::Platform> platform_;
  std::shared_ptr<Reflector> reflector_;
  std::shared_ptr<Informer> informer_;
  std::map<const Informer*, std::set<const Object*>> told_;  // What each owner was told.
  int rounds_ = 0;
};

TEST_F(ReflectorTest, AShortListIsHandledAtOnce) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);

  list(things(3, 1), 10);

  EXPECT_TRUE(mirror.is_synced);
  EXPECT_EQ(mirror.content.size(), 3U);
  list(things(2, 2), 20);
  EXPECT_EQ(mirror.content, (Content{{name_of(0), "2"}, {name_of(1), "2"}}));
  EXPECT_EQ(mirror.happened.back(), "list 20");
}

TEST_F(ReflectorTest, OthersHaveTheirTurnsWhileALongListIsHandled) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);
  const auto check = [&] {
    EXPECT_LE(std::exchange(mirror.deltas_of_round, 0),
              static_cast<int>(limits::kCacheSliceObjects));
  };

  list(things(kMany, 1), 10);
  EXPECT_FALSE(mirror.is_synced);
  finish(check);
  // Comparing, counting and telling each take a step of every object.
  EXPECT_GE(rounds_, 30);
  EXPECT_TRUE(mirror.is_synced);
  EXPECT_EQ(mirror.deltas, kMany);

  list(things(kMany, 2), 20);
  finish(check);
  EXPECT_GE(rounds_, 30);
  EXPECT_EQ(mirror.deltas, 2 * kMany);

  watch().on_gone();
  finish(check);
  EXPECT_GE(rounds_, 20);
  EXPECT_TRUE(mirror.content.empty());
  EXPECT_EQ(std::ranges::count(mirror.happened, "gone"), 1);
}

TEST_F(ReflectorTest, NobodySeesTheEmptyStateOfALostResourceWithoutKnowing) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);
  list(things(kMany, 1), 10);
  finish();
  int empty_rounds = 0;

  watch().on_gone();
  finish([&] {
    if (informer_->store().object_count() > 0) return;
    ++empty_rounds;
    EXPECT_EQ(std::ranges::count(mirror.happened, "gone"), 1);
  });

  EXPECT_GT(empty_rounds, 5) << "the deletions are told later";
  EXPECT_TRUE(mirror.content.empty());
}

TEST_F(ReflectorTest, WhatTheWatchTellsMeanwhileComesAfterTheList) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);
  list(things(kMany, 1), 10);
  finish();
  mirror.happened.clear();

  list(things(kMany, 2), 20);
  change(thing(kMany - 1, 21));
  change(thing(0, 22), Change::Type::Deleted);
  change(thing(kMany, 23), Change::Type::Added);
  watch().on_bookmark("30");
  EXPECT_LT(mirror.happened.size(), static_cast<std::size_t>(kMany)) << "it is under way";
  change(thing(kMany, 31));
  finish();

  const std::vector<std::string> end(mirror.happened.end() - 6, mirror.happened.end());
  EXPECT_EQ(end, (std::vector<std::string>{"list 20", "21", "22", "23", "at 30", "31"}));
  EXPECT_EQ(std::ranges::count(mirror.happened, "2"), kMany);
  EXPECT_EQ(mirror.content.size(), static_cast<std::size_t>(kMany));
  EXPECT_EQ(informer_->resource_version(), "31");
  EXPECT_EQ(informer_->store().get({"ns", name_of(kMany - 1)})->resource_version(), "21");
  EXPECT_EQ(informer_->store().get({"ns", name_of(0)}), nullptr);
}

TEST_F(ReflectorTest, QueriesAnswerWithTheStateBeforeOrWithTheList) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);
  list(things(kMany, 1), 10);
  finish();
  ASSERT_EQ(informer_->store().owned_by("owner").size(), static_cast<std::size_t>(kMany));

  std::vector<ObjectPtr> objects = things(kMany / 2, 2);
  objects.push_back(thing(kMany, 2));
  list(objects, 20);
  int old_rounds = 0;
  int new_rounds = 0;
  finish([&] {
    const bool is_new = informer_->resource_version() == "20";
    ++(is_new ? new_rounds : old_rounds);
    const std::size_t count = is_new ? objects.size() : static_cast<std::size_t>(kMany);
    ASSERT_EQ(informer_->store().object_count(), count);
    EXPECT_EQ(informer_->store().owned_by("owner").size(), count);
    EXPECT_EQ(informer_->store().get({"ns", name_of(0)})->resource_version(), is_new ? "2" : "1");
    EXPECT_EQ(informer_->store().get({"ns", name_of(kMany)}) != nullptr, is_new);
    EXPECT_EQ(told_[informer_.get()].size(), mirror.content.size());
  });

  EXPECT_GT(old_rounds, 5);
  EXPECT_GT(new_rounds, 5) << "the differences are told later";
  EXPECT_EQ(mirror.content.size(), objects.size());
}

TEST_F(ReflectorTest, AListThatWaitsGivesWayToANewerOne) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);
  list(things(kMany, 1), 10);
  list(things(kMany, 2), 20);
  change(thing(0, 21));
  list(things(kMany / 2, 3), 30);
  change(thing(0, 31));
  finish();

  EXPECT_EQ(std::ranges::count(mirror.happened, "2"), 0);
  EXPECT_EQ(std::ranges::count(mirror.happened, "21"), 0) << "the newer list includes it";
  EXPECT_EQ(mirror.content.size(), static_cast<std::size_t>(kMany / 2));
  EXPECT_EQ(mirror.content[name_of(0)], "31");
  EXPECT_EQ(mirror.content[name_of(1)], "3");
}

TEST_F(ReflectorTest, AListThatIsBegunAgainLeavesNothingOfTheFirstOne) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);
  begin_list(things(kMany, 1));

  begin_list(things(2, 2));
  watch().on_listed(thing(2, 2));
  watch().on_unlisted({"ns", name_of(0)});
  watch().on_replace("20");
  finish();

  EXPECT_EQ(mirror.content, (Content{{name_of(1), "2"}, {name_of(2), "2"}}));
}

TEST_F(ReflectorTest, OneWhoComesWhileAListIsHandledSeesEachObjectOnce) {
  Mirror early;
  Mirror late;
  const auto first = subscribe(early, informer_);
  list(things(kMany, 1), 10);
  std::unique_ptr<Subscription> second;
  early.also = [&] {
    if (!second) second = subscribe(late, informer_);
  };
  change(thing(0, 11));
  finish();
  EXPECT_EQ(late.content, early.content);

  Mirror later;
  const auto third = subscribe(later, informer_);
  bool has_changed = false;
  finish([&] {
    if (later.deltas == 0 || std::exchange(has_changed, true)) return;
    EXPECT_FALSE(later.is_synced);
    change(thing(1, 12));
    change(thing(kMany - 1, 13), Change::Type::Deleted);
  });
  EXPECT_TRUE(has_changed);
  EXPECT_EQ(later.content, early.content);
  EXPECT_EQ(later.content[name_of(1)], "12");
}

TEST_F(ReflectorTest, NothingIsToldOnceItIsStopped) {
  Mirror mirror;
  auto subscriber = subscribe(mirror, informer_);
  list(things(kMany, 1), 10);
  finish();
  list(things(kMany, 2), 20);
  finish([&] {
    if (mirror.deltas == kMany || informer_->is_stopped()) return;
    // The cache's end, in the middle of the list.
    reflector_->stop();
    informer_->stop();
    mirror.deltas = 0;
  });

  EXPECT_TRUE(informer_->is_stopped());
  EXPECT_EQ(mirror.deltas, 0);
  const std::weak_ptr<Informer> ended = informer_;
  subscriber.reset();
  informer_.reset();
  EXPECT_TRUE(ended.expired());
}

TEST_F(ReflectorTest, OneThatIsEmptiedTellsItsOwnerOfEachObject) {
  Mirror mirror;
  auto subscriber = subscribe(mirror, informer_);
  list(things(kMany, 1), 10);
  finish();
  list(things(kMany, 2), 20);
  change(thing(0, 21));
  bool is_empty = false;
  bool has_begun = false;
  finish([&] {
    if (mirror.deltas < kMany + 10 || std::exchange(has_begun, true)) return;
    subscriber.reset();
    reflector_->leave(*informer_);
    informer_->empty([&] { is_empty = true; });
    EXPECT_FALSE(is_empty) << "that takes several turns";
  });

  EXPECT_TRUE(is_empty);
  EXPECT_TRUE(told_[informer_.get()].empty());
  EXPECT_EQ(informer_->store().object_count(), 0U);
}

TEST_F(ReflectorTest, OneThatJoinsWhileAListIsHandledGetsWhatTheOthersHave) {
  Mirror mirror;
  const auto subscriber = subscribe(mirror, informer_);
  list(things(kMany, 1), 10);
  Scope narrow = scope_;
  narrow.label_selector = "team=a";
  const std::shared_ptr<Informer> joining = make_informer(narrow);
  Mirror joined;
  const auto other = subscribe(joined, joining);
  reflector_->join(joining);
  bool has_changed = false;
  finish([&] {
    if (std::exchange(has_changed, true)) return;
    change(thing(0, 11));
    change(thing(1, 12, "b"));
    change(thing(2, 13), Change::Type::Deleted);
  });

  Content expected = mirror.content;
  expected.erase(name_of(1));
  EXPECT_EQ(joined.content, expected);
  EXPECT_EQ(joined.content.size(), static_cast<std::size_t>(kMany - 2));
  EXPECT_EQ(joined.content[name_of(0)], "11");
  reflector_->leave(*joining);
  joining->stop();
}

}  // namespace
}  // namespace hangar::kube
