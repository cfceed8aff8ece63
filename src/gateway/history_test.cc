#include "gateway/history.h"

#include "gateway/gateway.h"
#include "gateway/limits.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/selector.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

using kube::Delta;
using kube::ObjectPtr;
using Type = Delta::Type;

ObjectPtr object(const std::string& name, std::uint64_t version, const std::string& label = "x",
                 const std::string& uid = "u") {
  return kube::Object::
      make(fmt::format(
               R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","namespace":"ns","uid":"{}","resourceVersion":"{}","labels":{{"l":"{}"}}}}}})",
               name, uid, version, label))
          .value();
}

std::vector<std::uint64_t> versions_after(const History& history, std::uint64_t version) {
  std::vector<std::uint64_t> out;
  history.for_each_after(version, [&](const Change& change) { out.push_back(change.version); });
  return out;
}

Change added(const std::string& name, std::uint64_t version) {
  return {.type = Type::Added, .object = object(name, version), .version = version};
}

TEST(History, KeepsNoLargeEarlierStates) {
  ObjectPtr large = object("a", 11, std::string(limits::kGatewayHistoryBytesMax / 2, 'x'));
  const std::weak_ptr<const kube::Object> known = large;
  History history;
  history.begin(11);
  history.append({.type = Type::Modified,
                  .object = object("a", 12),
                  .previous = std::move(large),
                  .version = 12});
  EXPECT_TRUE(history.covers(11));

  history.append(
      {.type = Type::Modified,
       .object = object("b", 13),
       .previous = object("b", 10, std::string(limits::kGatewayHistoryBytesMax / 2, 'x')),
       .version = 13});

  EXPECT_TRUE(known.expired());
  EXPECT_FALSE(history.covers(11));
  EXPECT_TRUE(history.covers(12));
}

TEST(History, CoversWhatCameAfterItsBeginning) {
  History history;
  history.begin(10);
  history.append(added("a", 12));
  history.append(added("b", 15));

  EXPECT_FALSE(history.covers(9));
  EXPECT_EQ(versions_after(history, 10), (std::vector<std::uint64_t>{12, 15}));
  EXPECT_EQ(versions_after(history, 12), (std::vector<std::uint64_t>{15}));
  EXPECT_TRUE(history.covers(14));
  EXPECT_TRUE(history.covers(100)) << "what is to come will all be there";
  history.advance(20);
  EXPECT_EQ(history.version(), 20U);
}

TEST(History, ReachesBackToAStateThatSomebodyHasComparedWith) {
  History history;
  history.begin(20);
  history.append(added("late", 25));
  EXPECT_FALSE(history.covers(10));

  history.reach_back({{.type = Type::Deleted,
                       .object = object("gone", 10),
                       .previous = object("gone", 5),
                       .version = 22},
                      {.type = Type::Added, .object = object("early", 15), .version = 22}},
                     10, 22);

  EXPECT_TRUE(history.covers(10));
  EXPECT_FALSE(history.covers(15)) << "only the net result is known";
  EXPECT_TRUE(history.covers(22));
  EXPECT_EQ(history.version(), 25U);
  EXPECT_EQ(versions_after(history, 10), (std::vector<std::uint64_t>{22, 22, 25}));
  EXPECT_EQ(versions_after(history, 22), (std::vector<std::uint64_t>{25}));
  // What is known already stays as it is.
  history.reach_back({added("other", 12)}, 12, 22);
  EXPECT_EQ(versions_after(history, 10), (std::vector<std::uint64_t>{22, 22, 25}));
}

// A watch from within the gap would miss what a list has not shown.
TEST(History, KeepsTheGapsAfterTheStateThatItReachesBackFrom) {
  History history;
  history.begin(20);
  history.append_list({added("listed", 40)}, 40);
  EXPECT_FALSE(history.covers(30));

  history.reach_back({added("early", 20)}, 10, 20);

  EXPECT_TRUE(history.covers(10));
  EXPECT_FALSE(history.covers(15));
  EXPECT_TRUE(history.covers(20));
  EXPECT_FALSE(history.covers(30));
  EXPECT_EQ(versions_after(history, 20), (std::vector<std::uint64_t>{40}));
}

TEST(History, ForgetsTheOldestAndSaysSo) {
  History history;
  history.begin(0);
  for (std::uint64_t version = 1; version <= limits::kGatewayHistoryMax + 5; ++version)
    history.append(added("a", version));
  EXPECT_LE(history.size(), limits::kGatewayHistoryMax);
  EXPECT_FALSE(history.covers(1));
  const std::uint64_t oldest = versions_after(history, 0).front();
  EXPECT_FALSE(history.covers(oldest - 2));
  EXPECT_TRUE(history.covers(oldest - 1));
}

TEST(History, ForgetsWhatIsOldAndNoMore) {
  const Instant begin{std::chrono::hours(1)};
  History history;
  history.begin(10);
  history.append(added("a", 12));
  history.append(added("b", 13));
  history.age(begin);
  history.append(added("c", 15));
  history.age(begin + limits::kGatewayHistoryAge - std::chrono::seconds(1));
  EXPECT_EQ(history.size(), 3U);
  EXPECT_TRUE(history.covers(10));

  history.age(begin + limits::kGatewayHistoryAge);
  EXPECT_EQ(versions_after(history, 0), (std::vector<std::uint64_t>{15}));
  EXPECT_FALSE(history.covers(12));
  EXPECT_TRUE(history.covers(13));

  // Where nothing changes, a watch misses nothing, however old its version is.
  history.advance(900);
  history.age(begin + 2 * limits::kGatewayHistoryAge);
  history.age(begin + 4 * limits::kGatewayHistoryAge);
  EXPECT_EQ(history.size(), 0U);
  EXPECT_FALSE(history.covers(14));
  EXPECT_TRUE(history.covers(15));
}

TEST(History, HasAGapWhereTheServerForgotOurPlace) {
  History history;
  history.begin(10);
  history.append(added("a", 12));
  history.append_list({{.type = Type::Added, .object = object("b", 15), .version = 20}}, 20);

  EXPECT_EQ(versions_after(history, 10), (std::vector<std::uint64_t>{12, 20}));
  EXPECT_TRUE(history.covers(12));
  for (const std::uint64_t within : {13U, 15U, 19U})
    EXPECT_FALSE(history.covers(within)) << within;
  EXPECT_TRUE(history.covers(20));
  EXPECT_TRUE(versions_after(history, 20).empty());
}

TEST(History, WithManyGapsCoversNoneOfThem) {
  History history;
  history.begin(0);
  for (std::uint64_t list = 1; list <= 3 * limits::kGatewayGapsMax; ++list)
    history.append_list({}, list * 10);
  EXPECT_FALSE(history.covers(5));
  EXPECT_FALSE(history.covers(30 * limits::kGatewayGapsMax - 5));
  EXPECT_TRUE(history.covers(30 * limits::kGatewayGapsMax - 10));
}

TEST(InOrder, NeverSaysMoreThanWasTold) {
  std::vector<Delta> differences;
  differences.push_back(
      {.type = Type::Modified, .object = object("m", 30), .previous = object("m", 5)});
  differences.push_back(
      {.type = Type::Deleted, .object = object("d", 7), .previous = object("d", 7)});
  differences.push_back({.type = Type::Added, .object = object("a", 20)});
  const auto changes = in_order(std::move(differences), 10, 40);

  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].type, Type::Deleted);
  EXPECT_EQ(changes[0].object->resource_version(), "10");
  EXPECT_EQ(changes[1].object->resource_version(), "20");
  EXPECT_EQ(changes[2].object->resource_version(), "30");
  for (const Change& change : changes)
    EXPECT_EQ(change.version, 40U);
}

TEST(InOrder, OfDeletionsOnlyEndsAtTheList) {
  std::vector<Delta> differences;
  for (const char* name : {"a", "b"})
    differences.push_back(
        {.type = Type::Deleted, .object = object(name, 7), .previous = object(name, 7)});
  const auto changes = in_order(std::move(differences), 10, 40);
  EXPECT_EQ(changes[0].object->resource_version(), "10");
  EXPECT_EQ(changes[1].object->resource_version(), "40");
}

TEST(Differences, AreFewUpToWhatAHistoryKeeps) {
  const auto added = [](std::uint32_t index) {
    return Delta{.type = Type::Added, .object = object(fmt::format("o{}", index), index + 1)};
  };
  Differences many;
  EXPECT_TRUE(many.are_few());
  for (std::uint32_t index = 0; many.are_few(); ++index) {
    ASSERT_LT(index, limits::kGatewayHistoryMax + 1);
    many.add(added(index));
  }
  many.drop_one();
  EXPECT_FALSE(many.are_few()) << "the bytes of all that were added count";

  History history;
  history.begin(1);
  history.append({.type = Type::Added, .object = object("a", 5), .version = 5});
  history.skip_list(100'000);
  EXPECT_EQ(history.version(), 100'000U);
  EXPECT_EQ(history.size(), 0U);
  EXPECT_FALSE(history.covers(5)) << "what the list has shown is not here";
  EXPECT_TRUE(history.covers(100'000));
}

TEST(Differences, AreTakenOneByOneInOrder) {
  Differences differences;
  differences.add({.type = Type::Added, .object = object("b", 20)});
  differences.add({.type = Type::Deleted, .object = object("d", 7), .previous = object("d", 7)});
  differences.add({.type = Type::Added, .object = object("a", 15)});
  differences.set_range(10, 40);

  EXPECT_EQ(differences.take().object->resource_version(), "10");
  EXPECT_EQ(differences.take().object->resource_version(), "15");
  EXPECT_EQ(differences.take().object->resource_version(), "20");
  EXPECT_TRUE(differences.empty());
}

TEST(WithVersion, ChangesNothingElse) {
  const ObjectPtr changed = with_version(object("a", 9), 1234567);
  EXPECT_EQ(changed->text().str(), object("a", 1234567)->text().str());
}

TEST(View, TellsWhatEntersAndLeavesItsSelector) {
  const View view({"ns", ""}, kube::LabelSelector::parse("l=x").value(), {});
  struct Row {
    Type type;
    const char* before;  // Label; null: no object.
    const char* now;
    std::optional<WatchLine::Type> seen;
  };
  const std::vector<Row> rows = {
      {Type::Added, nullptr, "x", WatchLine::Type::Added},
      {Type::Added, nullptr, "y", std::nullopt},
      {Type::Modified, "x", "x", WatchLine::Type::Modified},
      {Type::Modified, "y", "x", WatchLine::Type::Added},
      {Type::Modified, "x", "y", WatchLine::Type::Deleted},
      {Type::Modified, "y", "y", std::nullopt},
      {Type::Deleted, "x", "x", WatchLine::Type::Deleted},
      {Type::Deleted, "y", "y", std::nullopt},
      {Type::Deleted, "x", "y", WatchLine::Type::Deleted},
      {Type::Deleted, "y", "x", std::nullopt},
  };
  for (const Row& row : rows) {
    const Change change{.type = row.type,
                        .object = object("a", 9, row.now),
                        .previous = row.before == nullptr ? nullptr : object("a", 8, row.before),
                        .version = 9};
    Sight sight(change);
    const auto line = view.see(sight);
    ASSERT_EQ(line.has_value(), row.seen.has_value());
    if (!line) continue;
    EXPECT_EQ(line->type, *row.seen);
    EXPECT_EQ(line->object->resource_version(), "9");
    // For an object that has left, the API server shows the state that was selected.
    const bool is_there = *row.seen != WatchLine::Type::Deleted;
    EXPECT_EQ(line->object->text().str(),
              object("a", 9, is_there ? row.now : row.before)->text().str());
  }
}

TEST(View, SeesItsNamespaceAndName) {
  const auto fields = kube::FieldSelector::parse("metadata.name=a,metadata.namespace=ns").value();
  const View view({}, {}, fields);
  EXPECT_EQ(view.namespace_(), "ns");
  EXPECT_EQ(view.name(), "a");
  EXPECT_TRUE(view.sees(*object("a", 1)));
  EXPECT_FALSE(view.sees(*object("b", 1)));
  EXPECT_FALSE(View({"other", ""}, {}, {}).sees(*object("a", 1)));
}

TEST(View, KnowsItsSelectorsAsTheyWereWritten) {
  const View view({"ns", ""}, kube::LabelSelector::parse("a in (b, c)").value(),
                  kube::FieldSelector::parse("status.phase==Running,metadata.name=x").value());
  EXPECT_EQ(view.label_selector(), "a in (b, c)");
  EXPECT_EQ(view.field_selector(), "status.phase==Running,metadata.name=x");
  // A selector that selects everything is kept as written.
  EXPECT_EQ(View({"ns", ""}, kube::LabelSelector::parse(" ").value(), {}).label_selector(), " ");
  EXPECT_EQ(View({"ns", ""}, {}, {}).label_selector(), "");
}

// A watcher that is cut off after any event, and resumes from the version that it saw last, ends up
// with the server's state, through streams and lists.
TEST(History, LosesNothingToAWatcherThatIsCutAnywhere) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto chance = [&](std::uint32_t one_in) { return random() % one_in == 0; };

  for (int round = 0; round < 200; ++round) {
    History history;
    kube::Store known;                         // The host's.
    std::map<std::string, ObjectPtr> cluster;  // The server's.
    std::map<std::uint64_t, std::map<std::string, ObjectPtr>> states;
    std::uint64_t version = 1;
    states[version] = cluster;
    history.begin(version);
    std::map<std::string, std::uint64_t> believed;  // The guest's.
    std::uint64_t place = version;
    bool is_host_away = false;

    const auto believe = [&](const Change& change) {
      const std::string& name = change.object->key().name;
      if (change.type == Type::Deleted) {
        believed.erase(name);
      } else {
        believed[name] = kube::parse_version(change.object->resource_version()).value();
      }
      place = kube::parse_version(change.object->resource_version()).value();
      return !chance(3);  // Cut off here.
    };
    const auto list_of = [](const std::map<std::string, ObjectPtr>& state) {
      std::vector<ObjectPtr> objects;
      objects.reserve(state.size());
      for (const auto& [name, one] : state)
        objects.push_back(one);
      return objects;
    };
    // One connection, until it is cut or has received everything.
    const auto watch_once = [&] {
      std::vector<Change> changes;
      if (history.covers(place)) {
        history.for_each_after(place, [&](const Change& change) { changes.push_back(change); });
      } else {
        kube::Store then;
        std::vector<Delta> differences;
        then.replace(list_of(std::prev(states.upper_bound(place))->second), [](const Delta&) {});
        then.replace(known.list({}), [&](const Delta& delta) { differences.push_back(delta); });
        changes = in_order(std::move(differences), place, history.version());
      }
      for (const Change& change : changes)
        if (!believe(change)) return false;
      return true;
    };

    for (int step = 0; step < 40; ++step) {
      const std::string name(1, static_cast<char>('a' + random() % 5));
      ++version;
      kube::Change change{.type = kube::Change::Type::Added,
                          .object = object(name, version, "x", fmt::format("u{}", version))};
      if (const auto known_object = cluster.find(name); known_object != cluster.end()) {
        const bool is_deletion = chance(2);
        change.type = is_deletion ? kube::Change::Type::Deleted : kube::Change::Type::Modified;
        change.object = object(name, version, "x", std::string(known_object->second->uid()));
        if (is_deletion) cluster.erase(known_object);
      }
      if (change.type != kube::Change::Type::Deleted) cluster[name] = change.object;
      states[version] = cluster;

      if (chance(8)) is_host_away = !is_host_away;
      if (!is_host_away && history.version() + 1 == version) {
        known.apply(change, [&](const Delta& delta) {
          history.append({delta.type, delta.object, delta.previous, version});
        });
      } else if (!is_host_away) {  // The host is back: it lists.
        std::vector<Delta> differences;
        known.replace(list_of(cluster), [&](const Delta& delta) { differences.push_back(delta); });
        history.append_list(in_order(std::move(differences), history.version(), version), version);
      }
      if (chance(3)) (void)watch_once();
    }
    if (history.version() < version) {
      std::vector<Delta> differences;
      known.replace(list_of(cluster), [&](const Delta& delta) { differences.push_back(delta); });
      history.append_list(in_order(std::move(differences), history.version(), version), version);
    }
    while (!watch_once()) {
    }
    std::map<std::string, std::uint64_t> truth;
    for (const auto& [name, one] : cluster)
      truth[name] = kube::parse_version(one->resource_version()).value();
    ASSERT_EQ(believed, truth) << "round " << round;
  }
}

}  // namespace
}  // namespace hangar::gateway
