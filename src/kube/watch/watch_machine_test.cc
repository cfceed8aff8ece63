#include "kube/watch/watch_machine.h"

#include "base/result.h"
#include "base/time.h"
#include "kube/cache/store.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const Instant kNow = Instant() + std::chrono::hours(1);

std::string json_of(const std::string& name, std::uint64_t version) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","namespace":"ns","uid":"uid-{}","resourceVersion":"{}"}}}})",
      name, name, version);
}

ObjectPtr object(const std::string& name, std::uint64_t version) {
  return Object::make(json_of(name, version)).value();
}

WatchEvent changed(Change::Type type, const std::string& name, std::uint64_t version) {
  return Change{type, object(name, version)};
}
WatchEvent added(const std::string& name, std::uint64_t version) {
  return changed(Change::Type::Added, name, version);
}
WatchEvent bookmark(const std::string& version) {
  return Bookmark{version, /*ends_initial_events=*/false};
}
WatchEvent end_of_list(const std::string& version) {
  return Bookmark{version, /*ends_initial_events=*/true};
}
WatchEvent error(ErrorKind kind) {
  return StreamError{Error(kind, "said the server")};
}

template <class T, class Action>
T expect(Action action) {
  EXPECT_TRUE(std::holds_alternative<T>(action)) << "another action: " << action.index();
  return std::holds_alternative<T>(action) ? std::get<T>(std::move(action)) : T();
}

bool resumes_at(const WatchMachine::Watch& watch, const std::string& version) {
  return watch.query.ends_with("&resourceVersion=" + version);
}
bool lists(const WatchMachine::Watch& watch) {
  return watch.query.contains("sendInitialEvents=true");
}

struct Fixture {
  ServerTraits traits;
  WatchMachine machine{traits, /*seed=*/1};
  Instant now = kNow;

  WatchMachine::Next start() { return machine.start(now); }
  WatchMachine::Effect event(Result<WatchEvent> event) {
    return machine.on_event(std::move(event), now);
  }
  WatchMachine::Next ended() { return machine.on_ended(std::nullopt, now); }
  WatchMachine::Next failed(ErrorKind kind) {
    return machine.on_ended(Error(kind, "said the server"), now);
  }
  WatchMachine::Next due(const WatchMachine::Wait& wait) {
    now += wait.delay;
    return machine.on_due(now);
  }
  // Opens a healthy stream whose list ended at version 10.
  void stream() {
    expect<WatchMachine::Watch>(start());
    expect<WatchMachine::Replace>(event(end_of_list("10")));
    now += seconds(10);
  }
};

TEST(WatchMachine, AsksForTheListAsEventsOfTheWatch) {
  Fixture fixture;

  const auto watch = expect<WatchMachine::Watch>(fixture.start());

  EXPECT_TRUE(watch.query.contains("allowWatchBookmarks=true")) << watch.query;
  EXPECT_TRUE(watch.query.contains("sendInitialEvents=true")) << watch.query;
  EXPECT_TRUE(watch.query.contains("resourceVersionMatch=NotOlderThan")) << watch.query;
  EXPECT_FALSE(watch.query.contains("resourceVersion=")) << watch.query;
  EXPECT_GT(watch.lifetime_max, minutes(5));
}

TEST(WatchMachine, HandsTheInitialListOverOnlyWhenItIsWhole) {
  Fixture fixture;
  expect<WatchMachine::Watch>(fixture.start());

  expect<WatchMachine::Nothing>(fixture.event(added("a", 3)));
  expect<WatchMachine::Nothing>(fixture.event(added("b", 4)));
  expect<WatchMachine::Nothing>(fixture.event(bookmark("4")));
  expect<WatchMachine::Nothing>(fixture.event(changed(Change::Type::Modified, "a", 5)));
  expect<WatchMachine::Nothing>(fixture.event(changed(Change::Type::Deleted, "b", 6)));
  const auto list = expect<WatchMachine::Replace>(fixture.event(end_of_list("9")));

  ASSERT_EQ(list.objects.size(), 1U);
  EXPECT_EQ(list.objects[0]->resource_version(), "5");
  const auto wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::Unavailable));
  EXPECT_TRUE(resumes_at(expect<WatchMachine::Watch>(fixture.due(wait)), "9"));
}

TEST(WatchMachine, BeginsTheListAnewWhenItsStreamEnds) {
  Fixture fixture;
  expect<WatchMachine::Watch>(fixture.start());
  expect<WatchMachine::Nothing>(fixture.event(added("a", 3)));
  fixture.now += seconds(5);

  const auto wait = expect<WatchMachine::Wait>(fixture.ended());
  EXPECT_TRUE(lists(expect<WatchMachine::Watch>(fixture.due(wait))));

  const auto list = expect<WatchMachine::Replace>(fixture.event(end_of_list("9")));
  EXPECT_TRUE(list.objects.empty()) << "half of the broken list was kept";
}

TEST(WatchMachine, ListsInPagesWhereTheServerHasNoWatchList) {
  Fixture fixture;
  expect<WatchMachine::Watch>(fixture.start());

  expect<WatchMachine::List>(fixture.failed(ErrorKind::InvalidInput));
  EXPECT_TRUE(fixture.traits.has_watch_list) << "it may have been the selector";
  const auto watch = expect<WatchMachine::Watch>(fixture.machine.on_listed("20", fixture.now));

  EXPECT_TRUE(resumes_at(watch, "20"));
  EXPECT_FALSE(fixture.traits.has_watch_list);
  WatchMachine other(fixture.traits, /*seed=*/2);
  expect<WatchMachine::List>(other.start(fixture.now));
}

TEST(WatchMachine, BlamesNoServerForASelectorThatIsWrong) {
  Fixture fixture;
  expect<WatchMachine::Watch>(fixture.start());
  expect<WatchMachine::List>(fixture.failed(ErrorKind::InvalidInput));

  const auto wait = expect<WatchMachine::Wait>(fixture.machine.on_list_failed(
      Error(ErrorKind::InvalidInput, "unable to parse requirement"), fixture.now));

  EXPECT_TRUE(wait.cause.has_value());
  EXPECT_TRUE(fixture.traits.has_watch_list);
}

TEST(WatchMachine, ListsInPagesWhereTheListAsEventsNeverEnds) {
  Fixture fixture;
  expect<WatchMachine::Watch>(fixture.start());
  expect<WatchMachine::Nothing>(fixture.event(added("a", 3)));
  fixture.now += seconds(29);
  EXPECT_FALSE(fixture.machine.is_stalled(fixture.now));
  fixture.now += seconds(1);
  ASSERT_TRUE(fixture.machine.is_stalled(fixture.now));

  expect<WatchMachine::List>(fixture.ended());
}

TEST(WatchMachine, ResumesAfterTheLastChange) {
  Fixture fixture;
  fixture.stream();
  expect<Change>(fixture.event(added("a", 11)));

  const auto wait = expect<WatchMachine::Wait>(fixture.ended());

  EXPECT_FALSE(wait.cause.has_value());
  EXPECT_LE(wait.delay, milliseconds(200));
  EXPECT_TRUE(resumes_at(expect<WatchMachine::Watch>(fixture.due(wait)), "11"));
}

TEST(WatchMachine, ResumesAfterTheLastBookmark) {
  Fixture fixture;
  fixture.stream();
  expect<Change>(fixture.event(added("a", 11)));
  expect<WatchMachine::Nothing>(fixture.event(bookmark("40")));

  const auto wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::Unavailable));

  EXPECT_TRUE(wait.cause.has_value());
  EXPECT_TRUE(resumes_at(expect<WatchMachine::Watch>(fixture.due(wait)), "40"));
}

TEST(WatchMachine, ListsAgainWhenTheServerForgotOurPlace) {
  for (const bool as_event : {true, false}) {
    SCOPED_TRACE(as_event ? "as an event" : "as a status");
    Fixture fixture;
    fixture.stream();
    if (as_event) expect<WatchMachine::Close>(fixture.event(error(ErrorKind::Expired)));

    const auto wait =
        expect<WatchMachine::Wait>(as_event ? fixture.ended() : fixture.failed(ErrorKind::Expired));

    EXPECT_LE(wait.delay, milliseconds(200)) << "the server is well";
    EXPECT_TRUE(lists(expect<WatchMachine::Watch>(fixture.due(wait))));
    EXPECT_EQ(fixture.machine.relist_count(), 1U);
  }
}

TEST(WatchMachine, ListsAgainEverSlowerWhenEveryPlaceIsForgotten) {
  Fixture fixture;
  fixture.stream();
  Duration longest{};
  for (int round = 0; round < 10; ++round) {
    const auto wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::Expired));
    longest = std::max(longest, wait.delay);
    expect<WatchMachine::Watch>(fixture.due(wait));
    expect<WatchMachine::Replace>(fixture.event(end_of_list("10")));
  }
  EXPECT_GE(longest, seconds(15));
}

TEST(WatchMachine, ListsAgainAfterAnEventThatItCannotRead) {
  Fixture fixture;
  fixture.stream();

  expect<WatchMachine::Close>(fixture.event(fail(ErrorKind::InvalidInput, "no JSON")));
  expect<WatchMachine::Close>(fixture.event(added("a", 11)));

  const auto wait = expect<WatchMachine::Wait>(fixture.ended());
  EXPECT_TRUE(lists(expect<WatchMachine::Watch>(fixture.due(wait))));
}

TEST(WatchMachine, ResumesAfterOtherErrorsOfTheServer) {
  Fixture fixture;
  fixture.stream();
  expect<WatchMachine::Close>(fixture.event(error(ErrorKind::Unavailable)));

  const auto wait = expect<WatchMachine::Wait>(fixture.ended());

  EXPECT_TRUE(resumes_at(expect<WatchMachine::Watch>(fixture.due(wait)), "10"));
}

TEST(WatchMachine, BacksOffFromTheFirstDelayToTheLast) {
  Fixture fixture;
  fixture.stream();
  Duration last{};
  for (int failure = 0; failure < 40; ++failure) {
    const auto wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::Unavailable));
    EXPECT_GE(wait.delay,
              failure == 0 ? milliseconds(800) : std::min<Duration>(last / 2, seconds(15)));
    EXPECT_LE(wait.delay, seconds(30));
    last = wait.delay;
    expect<WatchMachine::Watch>(fixture.due(wait));
  }
  EXPECT_GE(last, seconds(15));

  // A working stream resets the back-off.
  expect<Change>(fixture.event(added("a", 11)));
  const auto wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::Unavailable));
  EXPECT_LE(wait.delay, milliseconds(1600));
}

TEST(WatchMachine, DoesNotReconnectInALoopToAServerThatHangsUp) {
  Fixture fixture;
  fixture.stream();
  WatchMachine::Next next = fixture.ended();
  const Instant begin = fixture.now;
  for (int count = 0; count < 20; ++count) {
    next = fixture.due(expect<WatchMachine::Wait>(next));
    expect<WatchMachine::Watch>(next);
    next = fixture.ended();
  }
  EXPECT_GT(fixture.now - begin, minutes(3));
}

TEST(WatchMachine, ReportsADenialAndTriesSlowly) {
  Fixture fixture;
  expect<WatchMachine::Watch>(fixture.start());

  const auto wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::Denied));

  ASSERT_TRUE(wait.cause.has_value());
  EXPECT_EQ(wait.cause->kind(), ErrorKind::Denied);
  EXPECT_GE(wait.delay, seconds(15));
  EXPECT_FALSE(wait.is_gone);
}

TEST(WatchMachine, BelievesThatAResourceIsGoneWhenItIsSaidTwice) {
  Fixture fixture;
  fixture.stream();

  const auto doubt = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::NotFound));
  EXPECT_FALSE(doubt.is_gone);
  EXPECT_GE(doubt.delay, seconds(2));
  expect<WatchMachine::Watch>(fixture.due(doubt));
  const auto gone = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::NotFound));
  EXPECT_TRUE(gone.is_gone);

  // The resource is back: the machine lists instead of resuming at the old place.
  EXPECT_TRUE(lists(expect<WatchMachine::Watch>(fixture.due(gone))));
  expect<WatchMachine::Replace>(fixture.event(end_of_list("50")));
  EXPECT_FALSE(expect<WatchMachine::Wait>(fixture.failed(ErrorKind::NotFound)).is_gone);
}

TEST(WatchMachine, AsksSoonAgainForAResourceThatIsExpected) {
  Fixture fixture;
  fixture.stream();
  auto wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::NotFound));
  const auto asked_again = [&] {
    expect<WatchMachine::Watch>(fixture.due(wait));
    wait = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::NotFound));
    return wait.delay;
  };
  ASSERT_GE(asked_again(), seconds(30));

  fixture.machine.expect_resource(fixture.now + wait.delay);
  for (int i = 0; i < 10; ++i)
    EXPECT_LE(asked_again(), seconds(3));
  fixture.now += seconds(30);
  EXPECT_GE(asked_again(), seconds(30)) << "it never came";
}

TEST(WatchMachine, ResumesWhenOnlyOneAnswerSaidThatTheResourceIsGone) {
  Fixture fixture;
  fixture.stream();
  const auto doubt = expect<WatchMachine::Wait>(fixture.failed(ErrorKind::NotFound));

  EXPECT_TRUE(resumes_at(expect<WatchMachine::Watch>(fixture.due(doubt)), "10"));
}

TEST(WatchMachine, NoticesThatNobodyIsThere) {
  Fixture fixture;
  fixture.stream();
  fixture.now += minutes(30);
  EXPECT_FALSE(fixture.machine.is_stalled(fixture.now)) << "it never sent bookmarks";
  expect<WatchMachine::Nothing>(fixture.event(bookmark("12")));
  fixture.now += seconds(179);
  EXPECT_FALSE(fixture.machine.is_stalled(fixture.now));
  fixture.now += seconds(1);
  ASSERT_TRUE(fixture.machine.is_stalled(fixture.now));

  const auto wait = expect<WatchMachine::Wait>(fixture.ended());

  EXPECT_TRUE(wait.cause.has_value());
  EXPECT_TRUE(resumes_at(expect<WatchMachine::Watch>(fixture.due(wait)), "12"));
}

TEST(WatchMachine, TakesNoListWithoutAVersion) {
  Fixture fixture;
  fixture.traits.has_watch_list = false;
  expect<WatchMachine::List>(fixture.start());
  expect<WatchMachine::Wait>(fixture.machine.on_listed("", fixture.now));

  Fixture streaming;
  expect<WatchMachine::Watch>(streaming.start());
  expect<WatchMachine::Close>(streaming.event(end_of_list("")));
}

TEST(ParseWatchEvent, ReadsWhatTheServerWrites) {
  const auto change =
      parse_watch_event(R"({"type":"MODIFIED","object":)" + json_of("a", 7) + "}\n");
  ASSERT_TRUE(change.has_value()) << change.error().message();
  EXPECT_EQ(std::get<Change>(*change).type, Change::Type::Modified);
  EXPECT_EQ(std::get<Change>(*change).object->text().str(), json_of("a", 7));

  const auto end = parse_watch_event(
      R"({"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"99","annotations":{"k8s.io/initial-events-end":"true"}}}})");
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(std::get<Bookmark>(*end).resource_version, "99");
  EXPECT_TRUE(std::get<Bookmark>(*end).ends_initial_events);

  const auto gone = parse_watch_event(
      R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410
}
})");
  ASSERT_TRUE(gone.has_value());
  EXPECT_EQ(std::get<StreamError>(*gone).error.kind(), ErrorKind::Expired);
}

TEST(ParseWatchEvent, ReadsUnusualSpellings) {
  const auto change = parse_watch_event(R"( { "object" : )" + json_of("a", 7) +
                                        R"( , "type" : "ADDED" , "more" : {} } )");
  ASSERT_TRUE(change.has_value()) << change.error().message();
  EXPECT_EQ(std::get<Change>(*change).object->key().name, "a");
  const auto more =
      parse_watch_event(R"({"type":"ADDED","object":)" + json_of("a", 7) + R"(,"more":{}})");
  ASSERT_TRUE(more.has_value()) << more.error().message();
  EXPECT_EQ(std::get<Change>(*more).object->text().str(), json_of("a", 7));
}

TEST(ParseWatchEvent, RefusesWhatIsNoEvent) {
  for (const std::string line :
       {"", "{", "[]", "null", R"({"type":"ADDED"})", R"({"type":"ADDED","object":3})",
        R"({"type":"ADDED","object":{}})", R"({"type":"SURPRISE","object":{}})",
        R"({"type":"ADDED","object":{"a":1}}})"}) {
    const auto event = parse_watch_event(line);
    EXPECT_FALSE(event.has_value()) << line;
  }
}

// A server with a history, as far as the protocol needs one: it forgets old versions, cuts streams,
// and sometimes loses the whole resource.
class Server {
 public:
  explicit Server(std::mt19937_64& random) : random_(random) {}

  void change_something() {
    const std::string name(1, static_cast<char>('a' + random_() % 8));
    const bool exists = objects_.contains(name);
    ++version_;
    if (exists && random_() % 3 == 0) {
      objects_.erase(name);
      history_.push_back({version_, changed(Change::Type::Deleted, name, version_)});
    } else {
      objects_[name] = version_;
      const auto type = exists ? Change::Type::Modified : Change::Type::Added;
      history_.push_back({version_, changed(type, name, version_)});
    }
  }
  void forget() { forgotten_ = version_; }
  void vanish() {
    objects_.clear();
    history_.clear();
    forgotten_ = ++version_;
    is_gone_ = true;
  }
  void come_back() { is_gone_ = false; }

  // The next event after `place`; std::nullopt when there is none.
  std::optional<WatchEvent> after(std::uint64_t place) const {
    for (const auto& [version, event] : history_)
      if (version > place) return event;
    return std::nullopt;
  }

  std::mt19937_64& random_;
  std::uint64_t version_ = 1;
  std::uint64_t forgotten_ = 0;
  bool is_gone_ = false;
  std::map<std::string, std::uint64_t> objects_;
  std::vector<std::pair<std::uint64_t, WatchEvent>> history_;
};

// Runs the machine and a store against the server with its faults, and a subscriber that sees
// only deltas.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : random_(seed), server_(random_), machine_(traits_, seed), next_(machine_.start(now_)) {
    open();
  }

  void step() {
    now_ += milliseconds(random_() % 3000);
    const std::uint64_t chance = random_() % 100;
    if (chance < 30 && !server_.is_gone_) server_.change_something();
    if (chance == 40) server_.forget();
    if (chance == 41) server_.vanish();
    if (chance >= 42 && chance < 52) server_.come_back();
    progress(/*with_faults=*/true);
  }

  void settle() {
    server_.come_back();
    for (int count = 0; count < 2000; ++count) {
      now_ += seconds(1);
      progress(/*with_faults=*/false);
    }
  }

  void check() const {
    std::map<std::string, std::uint64_t> seen;
    for (const auto& [name, version] : believed_)
      seen[name] = version;
    EXPECT_EQ(seen, server_.objects_);
    EXPECT_EQ(store_.object_count(), server_.objects_.size());
  }

 private:
  void progress(bool with_faults) {
    const bool is_fault = with_faults && random_() % 8 == 0;
    if (const auto* wait = std::get_if<WatchMachine::Wait>(&next_)) {
      if (now_ >= waits_until_) {
        take(machine_.on_due(now_));
      } else if (wait->is_gone && !server_.is_gone_ && random_() % 4 == 0) {
        take(machine_.on_due(now_));  // Kicked.
      }
    } else if (std::holds_alternative<WatchMachine::List>(next_)) {
      list(is_fault);
    } else {
      stream(is_fault);
    }
  }

  void list(bool is_fault) {
    if (is_fault || server_.is_gone_) {
      const auto kind = server_.is_gone_ ? ErrorKind::NotFound : ErrorKind::Unavailable;
      take(machine_.on_list_failed(Error(kind, "fault"), now_));
      return;
    }
    std::vector<ObjectPtr> objects;
    for (const auto& [name, version] : server_.objects_)
      objects.push_back(object(name, version));
    take(machine_.on_listed(std::to_string(server_.version_), now_));
    store_.replace(std::move(objects), believe());
  }

  void stream(bool is_fault) {
    if (server_.is_gone_) {
      take(machine_.on_ended(Error(ErrorKind::NotFound, "gone"), now_));
    } else if (is_fault) {
      fail_stream();
    } else if (!initial_.empty()) {
      give(initial_.back());
      initial_.pop_back();
    } else if (is_initial_) {
      is_initial_ = false;
      give(end_of_list(std::to_string(place_)));
    } else if (place_ < server_.forgotten_) {
      give(error(ErrorKind::Expired));
    } else if (const auto event = server_.after(place_)) {
      place_ = std::stoull(std::string(std::get<Change>(*event).object->resource_version()));
      give(*event);
    } else if (random_() % 4 == 0) {
      place_ = server_.version_;
      give(bookmark(std::to_string(place_)));
    }
  }

  void fail_stream() {
    switch (random_() % 5) {
      case 0:
        take(machine_.on_ended(std::nullopt, now_));
        break;
      case 1:
        give(fail(ErrorKind::InvalidInput, "garbage"));
        break;
      case 2:
        give(error(ErrorKind::Unavailable));
        break;
      case 3:
        if (is_initial_) {
          take(machine_.on_ended(Error(ErrorKind::InvalidInput, "no such parameter"), now_));
          break;
        }
        [[fallthrough]];
      default:
        take(machine_.on_ended(Error(ErrorKind::Unavailable, "reset"), now_));
    }
  }

  void give(Result<WatchEvent> event) {
    auto effect = machine_.on_event(std::move(event), now_);
    if (std::holds_alternative<WatchMachine::Close>(effect)) {
      take(machine_.on_ended(std::nullopt, now_));
    } else if (auto* replace = std::get_if<WatchMachine::Replace>(&effect)) {
      store_.replace(std::move(replace->objects), believe());
    } else if (auto* change = std::get_if<Change>(&effect)) {
      store_.apply(*change, believe());
    }
  }

  void take(WatchMachine::Next next) {
    next_ = std::move(next);
    open();
  }

  // The server's reaction when the request arrives.
  void open() {
    if (const auto* wait = std::get_if<WatchMachine::Wait>(&next_)) {
      waits_until_ = now_ + wait->delay;
      if (wait->is_gone) store_.replace({}, believe());
    }
    const auto* watch = std::get_if<WatchMachine::Watch>(&next_);
    if (watch == nullptr) return;
    initial_.clear();
    is_initial_ = lists(*watch);
    if (is_initial_) {
      for (const auto& [name, version] : server_.objects_)
        initial_.push_back(added(name, version));
      place_ = server_.version_;
    } else {
      place_ = std::stoull(watch->query.substr(watch->query.rfind('=') + 1));
    }
  }

  Store::OnDelta believe() {
    return [this](const Delta& delta) {
      const std::string& name = delta.object->key().name;
      const bool is_known = believed_.contains(name);
      if (delta.type == Delta::Type::Deleted) {
        EXPECT_TRUE(is_known) << name;
        believed_.erase(name);
        return;
      }
      EXPECT_EQ(is_known, delta.type == Delta::Type::Modified) << name;
      const auto version = std::stoull(std::string(delta.object->resource_version()));
      if (is_known) EXPECT_GT(version, believed_[name]) << "went back in time: " << name;
      believed_[name] = version;
    };
  }

  std::mt19937_64 random_;
  Instant now_ = kNow;
  Server server_;
  ServerTraits traits_;
  WatchMachine machine_;
  Store store_;
  std::map<std::string, std::uint64_t> believed_;
  WatchMachine::Next next_;
  Instant waits_until_;
  std::vector<WatchEvent> initial_;
  bool is_initial_ = false;
  std::uint64_t place_ = 0;
};

TEST(WatchMachine, EndsUpWithWhatTheServerHasWhateverHappensOnTheWay) {
  const std::uint64_t first_seed = std::random_device()();
  for (std::uint64_t seed = first_seed; seed < first_seed + 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed);
    for (int count = 0; count < 1000; ++count)
      simulation.step();
    simulation.settle();
    simulation.check();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace hangar::kube
