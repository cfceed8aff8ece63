#include "reconcile/dependents.h"

#include "base/result.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::reconcile {
namespace {

const kube::Resource kSecrets{"", "v1", "secrets", "Secret", true};
const SingleObject kA{.resource = kSecrets, .key = {"ns", "a"}};
const SingleObject kB{.resource = kSecrets, .key = {"ns", "b"}};

// The cache's side: which watches are open, and what they deliver.
struct Watches {
  struct One : kube::Cache::Subscription {
    One(Watches& all, std::string selector) : watches(all), name(std::move(selector)) {}
    ~One() override { watches.open.erase(name); }
    bool is_synced() const override { return true; }
    kube::ObjectPtr get(const kube::ObjectKey&) const override { return nullptr; }
    std::vector<kube::ObjectPtr> list(std::string_view) const override { return {}; }
    std::vector<kube::ObjectPtr> owned_by(std::string_view) const override { return {}; }
    std::string_view resource_version() const override { return "1"; }
    io::Task<Result<>> wait_synced(std::stop_token) override { co_return Result<>(); }
    std::optional<Error> last_error() const override { return watches.error; }

    Watches& watches;
    const std::string name;
  };

  Dependents<std::string>::Subscribe subscribe() {
    return [this](kube::Scope scope, kube::Cache::Handlers handlers) {
      std::string name = scope.field_selector + scope.label_selector;
      ++opened;
      details[name] = scope.detail;
      open[name] = std::move(handlers);
      return std::make_unique<One>(*this, std::move(name));
    };
  }
  void change(const std::string& name) { open.at("metadata.name=" + name).on_delta({}); }
  void fail(const std::string& name) {
    error = Error(ErrorKind::Denied, "no");
    open.at("metadata.name=" + name).on_failed(*error);
  }

  std::map<std::string, kube::Cache::Handlers> open;  // By selector.
  std::map<std::string, kube::Detail> details;        // Of all that were opened, by selector.
  std::optional<Error> error;
  int opened = 0;
};

struct DependentsTest : ::testing::Test {
  Watches watches;
  std::vector<std::string> told;
  Dependents<std::string> dependents{
      watches.subscribe(),
      {.child_selector = "ours"},
      {.on_object =
           [this](const SingleObject&, const kube::Delta* delta,
                  const std::vector<std::string>& holders) {
             for (const std::string& holder : holders)
               told.push_back(delta == nullptr ? holder + "!" : holder);
           },
       .on_child = [this](const kube::GroupKind& kind,
                          const kube::Delta&) { told.push_back(kind.to_string()); }}};
};

using Told = std::vector<std::string>;

TEST_F(DependentsTest, WatchAnObjectOnceForAllWhoHoldIt) {
  dependents.hold("x", kA);
  dependents.hold("y", kA);
  dependents.hold("y", kB);
  EXPECT_EQ(watches.opened, 2);

  watches.change("a");
  watches.change("b");

  EXPECT_EQ(told, (Told{"x", "y", "y"}));
}

TEST_F(DependentsTest, EndAWatchWithItsLastHolder) {
  dependents.hold("x", kA);
  dependents.hold("y", kA);

  dependents.release("x");
  EXPECT_TRUE(watches.open.contains("metadata.name=a"));
  watches.change("a");
  EXPECT_EQ(told, Told{"y"});
  dependents.release("y");

  EXPECT_TRUE(watches.open.empty());
  EXPECT_EQ(dependents.object_count(), 0U);
}

TEST_F(DependentsTest, CountWhatIsHeldByHolder) {
  dependents.hold("x", kA);
  dependents.hold("x", kB);
  dependents.hold("y", kA);

  EXPECT_EQ(dependents.held_count([](const std::string& holder) { return holder == "x"; }), 2U);
  EXPECT_EQ(dependents.held_count([](const std::string&) { return true; }), 3U);
  EXPECT_TRUE(dependents.is_held("y", kA));
  EXPECT_FALSE(dependents.is_held("y", kB));
  EXPECT_FALSE(dependents.is_held("z", kA));
}

TEST_F(DependentsTest, LetGoOfWhatIsNotHeldAgain) {
  dependents.hold("x", kA);
  dependents.hold("x", kB);

  dependents.begin("x");
  dependents.hold("x", kB);
  EXPECT_EQ(dependents.object_count(), 2U) << "until end() nothing is let go";
  dependents.end("x");

  EXPECT_FALSE(watches.open.contains("metadata.name=a"));
  EXPECT_TRUE(watches.open.contains("metadata.name=b"));
  EXPECT_EQ(watches.opened, 2) << "what is held on is not watched anew";
}

TEST_F(DependentsTest, TellOnceThatAnObjectCannotBeWatched) {
  dependents.hold("x", kA);

  watches.fail("a");
  watches.fail("a");
  EXPECT_EQ(told, Told{"x!"});

  // The holder has seen the error, and that it is over.
  watches.error.reset();
  dependents.hold("x", kA);
  watches.fail("a");
  EXPECT_EQ(told, (Told{"x!", "x!"}));
}

TEST_F(DependentsTest, MayBeLetGoOfWhileTheyAreTold) {
  Dependents<std::string>* self = nullptr;
  int count = 0;
  Dependents<std::string> one(watches.subscribe(), {},
                              {.on_object = [&](const SingleObject&, const kube::Delta*,
                                                const std::vector<std::string>& holders) {
                                for (const std::string& holder : holders)
                                  self->release(holder);
                                count += static_cast<int>(holders.size());
                              }});
  self = &one;
  one.hold("x", kA);
  one.hold("y", kA);

  const kube::Cache::Handlers handlers = watches.open.at("metadata.name=a");
  handlers.on_delta({});
  handlers.on_delta({});

  EXPECT_EQ(count, 2);
  EXPECT_EQ(one.object_count(), 0U);
}

TEST_F(DependentsTest, WatchChildrenOfAKindTogetherWhateverTheVersion) {
  EXPECT_EQ(dependents.children(kube::GroupKind{"apps", "Deployment"}), nullptr);
  dependents.children({"apps", "v1", "deployments", "Deployment", true});
  dependents.children({"apps", "v2", "deployments", "Deployment", true});

  EXPECT_EQ(watches.opened, 1);
  EXPECT_NE(dependents.children(kube::GroupKind{"apps", "Deployment"}), nullptr);
  watches.open.at("ours").on_delta({});
  EXPECT_EQ(told, Told{"Deployment.apps"});
}

TEST_F(DependentsTest, KeepNoMoreOfChildrenThanIsAskedFor) {
  Dependents<std::string> few(
      watches.subscribe(), {.child_selector = "few", .child_detail = kube::Detail::Metadata},
      {.on_object = [](const SingleObject&, const kube::Delta*, const std::vector<std::string>&) {},
       .on_child = [](const kube::GroupKind&, const kube::Delta&) {}});
  few.children(kSecrets);
  dependents.children(kSecrets);

  EXPECT_EQ(watches.details.at("few"), kube::Detail::Metadata);
  EXPECT_EQ(watches.details.at("ours"), kube::Detail::Whole);
}

}  // namespace
}  // namespace hangar::reconcile
