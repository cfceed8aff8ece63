#include "domains/remote_guests.h"

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/output_lines.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "domains/guest_processes.h"
#include "domains/test_processes.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/test_full_disk.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::domains {
namespace {

// ThreadSanitizer: as in guest_processes_test.cc.
#if !__has_feature(thread_sanitizer)

namespace kube_runtime = abi::kube_runtime;
using kube_runtime::Guest;
using kube_runtime::GuestOptions;
using kube_runtime::TurnOutcome;
using kube_runtime::Wakeup;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

budget::Consumer operator_in(const std::string& namespace_name) {
  return {.tenant = budget::Tenant::of_namespace(namespace_name), .name = "operator/mirror"};
}

class RemoteGuestsTest : public testing::Test {
 public:
  RemoteGuestsTest() { make(); }
  void TearDown() override {
    guests_.reset();
    processes_.reset();
    end_waiting_tasks(rig_.loop());
  }

  void make(GuestProcesses::Options options = {}) {
    options.program = HANGAR_GUEST_PROGRAM;
    options.thread_count = 2;
    guests_.reset();
    processes_ = std::make_unique<GuestProcesses>(
        GuestProcesses::Parts{.engine = rig_.engine(), .metrics = metrics_}, std::move(options),
        std::nullopt);
    guests_ = std::make_unique<RemoteGuests>(*processes_, *store_);
  }

  std::shared_ptr<const wasm::SleepableModule> load(std::shared_ptr<const std::string> bytes) {
    auto module = rig_.await(wasm::SleepableModule::load(rig_.cache(), wasm::Digest::of(*bytes),
                                                         bytes, directory_.path() / "images", {}));
    EXPECT_TRUE(module.has_value()) << module.error().message();
    return module ? *std::move(module) : nullptr;
  }
  std::unique_ptr<Guest> make_guest(const std::string& name, GuestOptions options = {}) {
    return make_guest(load(wasm::GuestRig::bytes_of(name)), std::move(options));
  }
  std::unique_ptr<Guest> make_guest(std::shared_ptr<const wasm::SleepableModule> module,
                                    GuestOptions options = {}) {
    return guests_->make(
        std::move(module), std::move(options),
        {.on_lost = [this](const Error& error) { lost_.push_back(error.message()); },
         .on_notice = [this] { ++notices_; }});
  }
  void reserve(Guest& guest, const std::string& namespace_name) {
    if (const std::uint64_t bytes = guest.memory_bytes_needed(); bytes > 0) {
      guest.provide(
          rig_.await(rig_.engine().reserve(operator_in(namespace_name), bytes, {})).value());
    }
  }
  TurnOutcome start(Guest& guest, const std::string& namespace_name = "a",
                    std::stop_token stop = {}) {
    reserve(guest, namespace_name);
    return rig_.await(guest.start(std::move(stop), operator_in(namespace_name)));
  }
  TurnOutcome wake(Guest& guest, std::vector<Wakeup> wakeups,
                   const std::string& namespace_name = "a") {
    reserve(guest, namespace_name);
    return rig_.await(guest.wake(std::move(wakeups), {}, operator_in(namespace_name)));
  }
  void sleep(Guest& guest, const std::string& namespace_name = "a") {
    const Result<Duration> slept = rig_.await(guest.sleep(operator_in(namespace_name).tenant));
    ASSERT_TRUE(slept.has_value()) << slept.error().message();
    EXPECT_GT(*slept, Duration::zero()) << "the processor time of its process";
  }
  std::unique_ptr<Guest> make_waiting(const std::string& name, GuestOptions options = {}) {
    auto guest = make_guest(name, std::move(options));
    const TurnOutcome outcome = start(*guest);
    EXPECT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
    EXPECT_EQ(outcome.exit_code, std::nullopt);
    return guest;
  }
  static std::vector<std::string> texts_of(const TurnOutcome& outcome) {
    EXPECT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
    std::vector<std::string> texts;
    for (const kube_runtime::OutputLine& line : outcome.output)
      texts.push_back(line.text);
    return texts;
  }
  static void expect_error(const TurnOutcome& outcome, ErrorKind kind, const std::string& text) {
    ASSERT_FALSE(outcome.ended.has_value()) << text;
    EXPECT_EQ(name_of(outcome.ended.error().kind()), name_of(kind));
    EXPECT_THAT(outcome.ended.error().message(), HasSubstr(text));
    EXPECT_THAT(outcome.calls, IsEmpty());
  }

  [[nodiscard]] std::vector<pid_t> guest_pids() const {
    return children_of(processes_->zygote_pid().value());
  }
  void kill_guest_processes() {
    for (const pid_t pid : guest_pids())
      ::kill(pid, SIGKILL);
    wait_until([this] { return processes_->process_count() == 0; });
  }
  void wait_until(const std::function<bool()>& done) {
    io::Loop::Timer timer;
    std::function<void()> again = [&] { timer = rig_.loop().after(milliseconds(5), again); };
    again();
    rig_.loop().run_until(done);
  }

 protected:
  budget::Accounts accounts_{{.host_bytes_max = 256 * limits::kMiB}};
  wasm::TemporaryDirectory directory_;
  wasm::GuestRig rig_{{.memory = &accounts_}};
  Metrics metrics_;
  std::unique_ptr<wasm::SnapshotStore> store_ =
      wasm::SnapshotStore::open(directory_.path() / "snapshots").value();
  std::unique_ptr<GuestProcesses> processes_;
  std::unique_ptr<RemoteGuests> guests_;
  std::vector<std::string> lost_;
  int notices_ = 0;
};

TEST_F(RemoteGuestsTest, MakeTheCallsOfTheirContract) {
  const auto guest = make_guest("kube_runtime_journal");

  const TurnOutcome outcome = start(*guest);

  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  ASSERT_EQ(outcome.calls.size(), 2U);
  EXPECT_EQ(outcome.calls[0].request,
            (kube_runtime::HttpRequest{.method = "GET", .uri = "/", .headers = {}, .body = ""}));
  EXPECT_FALSE(outcome.calls[0].is_stream);
  EXPECT_TRUE(outcome.calls[1].is_stream);
  ASSERT_EQ(outcome.delays.size(), 1U);
  EXPECT_EQ(outcome.delays[0].duration, milliseconds(1500));
  EXPECT_EQ(guest_pids().size(), 1U);
  EXPECT_GT(guests_bytes(accounts_), 0U);
}

TEST_F(RemoteGuestsTest, AreWokenWithWhatTheyWaitFor) {
  const auto guest = make_waiting("kube_runtime_journal");

  EXPECT_THAT(texts_of(wake(*guest, {{.id = 0, .finished = true, .bytes = "x"},
                                     {.id = 1, .bytes = ""},
                                     {.id = 2, .finished = true, .is_null = true},
                                     {.id = 7, .bytes = "not asked for"}})),
              ElementsAre("1101bx", "2210b", "3321n"));
  EXPECT_GT(guest->resident_bytes(), 0U);
  // The guest has finished, so the answer resumes nothing.
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 0, .bytes = "x"}})), IsEmpty());
}

// More modules than a process keeps for later guests (guest_protocol::kModulesMax): guests that are
// awake keep theirs alive.
TEST_F(RemoteGuestsTest, StayAwakeInOneProcessWithAHundredModules) {
  const std::string original = *wasm::GuestRig::bytes_of("kube_runtime_journal");
  std::vector<std::unique_ptr<Guest>> guests;
  for (char number = 0; number < 100; ++number) {
    // A custom section that has nothing but a name of one byte.
    const std::string section{0, 2, 1, number};
    guests.push_back(make_guest(load(std::make_shared<const std::string>(original + section))));
    const TurnOutcome outcome = start(*guests.back());
    ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  }

  EXPECT_EQ(guest_pids().size(), 1U);
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_THAT(texts_of(wake(*guests.front(), {{.id = 1, .bytes = "x"}})), ElementsAre("1110bx"));
}

TEST_F(RemoteGuestsTest, ThatAreAloneShareWithNobodyAndWakeWithNobody) {
  const auto one = make_waiting("kube_runtime_journal", {.alone = "one"});
  const auto two = make_waiting("kube_runtime_journal", {.alone = "two"});
  const auto shared = make_waiting("kube_runtime_journal");
  const auto with_it = make_waiting("kube_runtime_journal");
  EXPECT_EQ(guest_pids().size(), 3U);

  sleep(*one);
  const TurnOutcome outcome = wake(*one, {{.id = 1, .bytes = "x"}});

  EXPECT_THAT(texts_of(outcome), ElementsAre("1110bx"));
  EXPECT_EQ(guest_pids().size(), 3U);
  kill_guest_processes();
  EXPECT_THAT(lost_, testing::UnorderedElementsAre(HasSubstr("operator one of namespace a"),
                                                   HasSubstr("operator two of namespace a"),
                                                   HasSubstr("the guest process of namespace a"),
                                                   HasSubstr("the guest process of namespace a")));
}

TEST_F(RemoteGuestsTest, ThatAreAloneWaitForOneOfTheirNamespaceAndAskItToSleep) {
  make({.table = {.alone_of_tenant_max = 1}});
  const auto first = make_waiting("kube_runtime_journal", {.alone = "first"});
  const auto second = make_guest("kube_runtime_journal", {.alone = "second"});
  std::optional<TurnOutcome> outcome;
  const auto keep = [](io::Task<TurnOutcome> task,
                       std::optional<TurnOutcome>& into) -> io::Task<void> {
    into.emplace(co_await std::move(task));
  };
  reserve(*second, "a");
  rig_.loop().spawn(keep(second->start({}, operator_in("a")), outcome));
  wait_until([this] { return notices_ > 0; });
  EXPECT_FALSE(outcome.has_value());

  sleep(*first);

  wait_until([&outcome] { return outcome.has_value(); });
  EXPECT_TRUE(outcome->ended.has_value()) << outcome->ended.error().message();
}

TEST_F(RemoteGuestsTest, SleepWithoutAProcessAndWakeInANewOne) {
  make({.table = {.linger = milliseconds(1)}});
  const auto guest = make_waiting("kube_runtime_journal");
  const pid_t first = guest_pids().at(0);

  for (const std::string times : {"1", "2", "3"}) {
    sleep(*guest);
    EXPECT_EQ(guest->resident_bytes(), 0U);
    EXPECT_GT(guest->disk_bytes(), 0U);
    EXPECT_EQ(guests_bytes(accounts_), 0U);
    wait_until([this] { return processes_->process_count() == 0; });
    const TurnOutcome outcome = wake(*guest, {{.id = 1, .bytes = "x"}});
    EXPECT_TRUE(outcome.was_asleep);
    EXPECT_THAT(texts_of(outcome), ElementsAre(times + times + "10bx"));
    EXPECT_EQ(store_->live_bytes(), 0U);
    EXPECT_NE(guest_pids().at(0), first);
  }
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(RemoteGuestsTest, ThatSleepGoOnInAnotherHost) {
  const auto module = load(wasm::GuestRig::bytes_of("kube_runtime_journal"));
  auto guest = make_guest(module);
  ASSERT_TRUE(start(*guest).ended.has_value());
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 1, .bytes = "x"}})), ElementsAre("1110bx"));
  EXPECT_FALSE(guest->carry().has_value()) << "it is awake";
  sleep(*guest);

  kube_runtime::CarriedGuest carried = guest->carry().value();
  guest.reset();
  EXPECT_EQ(store_->live_bytes(), 0U);
  // Another store of the same file, other processes, and an image that was made anew.
  const wasm::SnapshotStore::Extent extent{.offset = carried.snapshot_offset,
                                           .size_bytes = carried.snapshot_bytes};
  auto store = wasm::SnapshotStore::open_again(directory_.path() / "snapshots", {},
                                               store_->leave_file().value(), {extent})
                   .value();
  guests_.reset();
  store_ = std::move(store);
  make();
  const auto again = load(wasm::GuestRig::bytes_of("kube_runtime_journal"));
  EXPECT_EQ(again->image_number(), module->image_number());
  guest =
      guests_
          ->take_over(again, {},
                      {.on_lost = [this](const Error& error) { lost_.push_back(error.message()); },
                       .on_notice = [] {}},
                      operator_in("a").tenant, std::move(carried))
          .value();

  EXPECT_GT(guest->memory_bytes_needed(), 0U);
  // It counts its wakes in memory: this is the second.
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 2, .finished = true, .is_null = true}})),
              ElementsAre("2221n"));
  EXPECT_EQ(store_->live_bytes(), 0U);
}

TEST_F(RemoteGuestsTest, AreToldApartByTheDomainOfTheirProcess) {
  const auto one = make_guest("kube_runtime_journal");
  const auto other = make_guest("kube_runtime_journal");
  ASSERT_TRUE(start(*one, "a").ended.has_value());
  ASSERT_TRUE(start(*other, "b").ended.has_value());

  EXPECT_EQ(processes_->process_count(), 2U);
}

TEST_F(RemoteGuestsTest, ThatSleepNoticeNothingOfTheEndOfTheirProcess) {
  const auto guest = make_waiting("kube_runtime_journal");
  sleep(*guest);
  kill_guest_processes();

  EXPECT_THAT(texts_of(wake(*guest, {{.id = 1, .bytes = "x"}})), ElementsAre("1110bx"));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(RemoteGuestsTest, ThatAreAwakeAreLostWithTheirProcess) {
  const auto guest = make_waiting("kube_runtime_journal");
  kill_guest_processes();

  EXPECT_THAT(lost_, ElementsAre(HasSubstr("signal 9")));
  EXPECT_EQ(guest->resident_bytes(), 0U);
  EXPECT_EQ(guests_bytes(accounts_), 0U);
  expect_error(wake(*guest, {{.id = 1, .bytes = "x"}}), ErrorKind::InvalidInput,
               "no longer exists");
}

TEST_F(RemoteGuestsTest, ThatHaveATurnFailWithTheirProcess) {
  const auto guest = make_waiting("kube_runtime_wakeup_loops");
  const io::Loop::Timer timer = rig_.loop().after(milliseconds(50), [this] {
    for (const pid_t pid : guest_pids())
      ::kill(pid, SIGKILL);
  });

  expect_error(wake(*guest, {{.id = 0, .bytes = "abc"}}), ErrorKind::GuestFault, "signal 9");
  EXPECT_THAT(lost_, IsEmpty());  // The result of the turn has reported it.
}

TEST_F(RemoteGuestsTest, EndAsTheyWouldInTheHost) {
  expect_error(wake(*make_waiting("kube_runtime_wakeup_traps"), {{.id = 0, .bytes = "abc"}}),
               ErrorKind::GuestFault, "unreachable");
  expect_error(wake(*make_waiting("kube_runtime_wakeup_loops", {.cpu_time_max = milliseconds(50)}),
                    {{.id = 0, .bytes = "abc"}}),
               ErrorKind::LimitExceeded, "50ms");
  const auto leaves = make_guest("kube_runtime_exit_in_start");
  EXPECT_EQ(start(*leaves).exit_code, 3U);
  expect_error(wake(*leaves, {{.id = 0, .bytes = "x"}}), ErrorKind::InvalidInput,
               "no longer exists");
  EXPECT_EQ(guests_bytes(accounts_), 0U);
}

TEST_F(RemoteGuestsTest, StopInTheMiddleOfATurn) {
  std::stop_source source;
  const auto guest = make_waiting("kube_runtime_wakeup_loops");
  const io::Loop::Timer timer =
      rig_.loop().after(milliseconds(50), [&source] { source.request_stop(); });

  expect_error(
      rig_.await(guest->wake({{.id = 0, .bytes = "abc"}}, source.get_token(), operator_in("a"))),
      ErrorKind::Cancelled, "");
}

TEST_F(RemoteGuestsTest, AnswerRequestsThatAreHandedIn) {
  const auto guest = make_waiting("kube_runtime_serves");
  ASSERT_TRUE(guest->listens(kube_runtime::Listener::Metrics));
  sleep(*guest);  // Its process numbers the request as the host does.
  const Result<Guest::Inbound> inbound =
      guest->hand_in(kube_runtime::Listener::Metrics, {.method = "GET", .uri = "/metrics"});
  ASSERT_TRUE(inbound.has_value()) << inbound.error().message();

  const TurnOutcome outcome = wake(*guest, {inbound->wakeup});

  ASSERT_TRUE(outcome.ended.has_value()) << outcome.ended.error().message();
  ASSERT_EQ(outcome.answers.size(), 1U);
  EXPECT_EQ(outcome.answers[0].id, inbound->id);
}

TEST_F(RemoteGuestsTest, HaveNoMoreMemoryThanTheHostGivesThem) {
  const auto guest =
      make_waiting("kube_runtime_memory_bomb", {.memory_bytes_max = 16 * limits::kMiB});

  static_cast<void>(wake(*guest, {{.id = 0, .bytes = "abc"}}));

  EXPECT_LE(guests_bytes(accounts_), 16 * limits::kMiB + wasm::kInstanceBytes);
}

// A line that is cut has more pieces than ends.
TEST_F(RemoteGuestsTest, PrintLongLinesWithoutAnEnd) {
  constexpr std::uint64_t kMost = 4 * limits::kOperatorLineBytesMax;
  const auto neighbour = make_waiting("kube_runtime_journal");
  const auto guest = make_waiting("kube_runtime_long_line", {.output_bytes_max = kMost});

  const TurnOutcome outcome = wake(*guest, {{.id = 0, .finished = true, .is_null = true}});

  EXPECT_THAT(texts_of(outcome), testing::Each(std::string(limits::kOperatorLineBytesMax, 'x')));
  EXPECT_EQ(outcome.output.size(), 4U);
  EXPECT_EQ(outcome.output_dropped_bytes, 100'000 - kMost);
  EXPECT_THAT(texts_of(wake(*neighbour, {{.id = 1, .bytes = "x"}})), ElementsAre("1110bx"));
}

TEST_F(RemoteGuestsTest, MakeLargeRequestsWhereThereIsMemoryForThem) {
  EXPECT_EQ(start(*make_guest("kube_runtime_large_requests")).calls.size(), 10U);

  EXPECT_EQ(guests_bytes(accounts_), 0U);
}

TEST_F(RemoteGuestsTest, FailIfThereIsNoMemoryForWhatTheirTurnRequests) {
  const budget::Reservation others =
      accounts_
          .reserve({.tenant = budget::Tenant::of_namespace("b"), .name = "x"}, 225 * limits::kMiB)
          .value();
  const auto neighbour = make_waiting("kube_runtime_journal");

  expect_error(start(*make_guest("kube_runtime_large_requests")), ErrorKind::LimitExceeded,
               "no memory for the requests and answers of the guest's turn");

  EXPECT_THAT(texts_of(wake(*neighbour, {{.id = 1, .bytes = "x"}})), ElementsAre("1110bx"));
}

TEST_F(RemoteGuestsTest, StayWhereTheDiskHasNoRoomForThem) {
  const auto tiny =
      wasm::SnapshotStore::open(directory_.path() / "tiny", {.file_bytes_max = 64}).value();
  RemoteGuests guests(*processes_, *tiny);
  const auto guest = guests.make(load(wasm::GuestRig::bytes_of("kube_runtime_journal")), {}, {});
  ASSERT_TRUE(start(*guest).ended.has_value());

  const Result<Duration> slept = rig_.await(guest->sleep(operator_in("a").tenant));

  ASSERT_FALSE(slept.has_value());
  EXPECT_EQ(name_of(slept.error().kind()), name_of(ErrorKind::Unavailable));
  EXPECT_THAT(slept.error().message(), HasSubstr("no room"));
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 1, .bytes = "x"}})), ElementsAre("1110bx"));
  EXPECT_EQ(tiny->live_bytes(), 0U);
}

// Numbers that kube_runtime_pages writes: `value` to `count` pages from `first` on.
Wakeup stores(std::uint32_t first, std::uint32_t count, std::uint32_t value) {
  std::string bytes;
  for (const std::uint32_t number : {first, count, value}) {
    for (unsigned shift = 0; shift < 32; shift += 8)
      bytes += static_cast<char>(number >> shift & 0xffU);
  }
  return {.id = 0, .bytes = std::move(bytes)};
}

constexpr std::uint32_t kLayerPagesMin = limits::kLayerBytesMin / wasm::kPageBytes;
constexpr std::uint32_t kBesidePagesMax = limits::kBesideLayerBytesMax / wasm::kPageBytes;

TEST_F(RemoteGuestsTest, WithALayerAreLikeThoseThatNeverSleep) {
  make({.table = {.linger = milliseconds(1)}});
  const auto module = load(wasm::GuestRig::bytes_of("kube_runtime_pages"));
  const auto awake = make_guest(module);
  auto sleeper = make_guest(module);
  ASSERT_TRUE(start(*awake, "b").ended.has_value());
  ASSERT_TRUE(start(*sleeper).ended.has_value());
  sleep(*sleeper);
  EXPECT_LT(sleeper->disk_bytes(), limits::kLayerBytesMin) << "it has not woken yet";
  for (const auto& [what, wakeup] : std::vector<std::pair<std::string, Wakeup>>{
           {"it gets a layer", stores(20, kLayerPagesMin, 1)},
           {"it writes to the layer", stores(30, 9, 2)},
           {"it writes nothing", stores(0, 0, 0)},
           {"it writes beside the layer", stores(600, 3, 3)},
           {"the same again", stores(602, 1, 4)},
           {"it gets a layer of several messages", stores(200, 8 * kBesidePagesMax, 5)},
           {"it writes to all of that", stores(200, 8 * kBesidePagesMax, 6)},
           {"it gets another piece", stores(3000, 2 * kBesidePagesMax, 7)},
           {"it writes across pieces", stores(20, 3500, 8)},
           {"it writes nothing again", stores(0, 0, 0)}}) {
    SCOPED_TRACE(what);
    wait_until([this] { return processes_->process_count() == 1; });
    const TurnOutcome outcome = wake(*sleeper, {wakeup});
    EXPECT_TRUE(outcome.was_asleep);
    EXPECT_EQ(texts_of(outcome), texts_of(wake(*awake, {wakeup}, "b")));
    sleep(*sleeper);
    EXPECT_GE(sleeper->disk_bytes(), limits::kLayerBytesMin);
    EXPECT_GE(store_->live_bytes(), sleeper->disk_bytes());
  }

  EXPECT_THAT(lost_, IsEmpty());
  sleeper.reset();
  EXPECT_EQ(store_->live_bytes(), 0U);
}

TEST_F(RemoteGuestsTest, LoseTheirLayerWithTheirProcess) {
  const auto guest = make_waiting("kube_runtime_pages");
  sleep(*guest);
  ASSERT_TRUE(wake(*guest, {stores(20, kLayerPagesMin, 1)}).ended.has_value());
  sleep(*guest);
  kill_guest_processes();
  const std::vector<std::string> before = texts_of(wake(*guest, {stores(0, 0, 0)}));
  EXPECT_THAT(before, testing::SizeIs(1)) << "asleep it notices nothing";
  EXPECT_GE(store_->live_bytes(), limits::kLayerBytesMin);

  kill_guest_processes();

  EXPECT_THAT(lost_, ElementsAre(HasSubstr("signal 9")));
  EXPECT_EQ(store_->live_bytes(), 0U);
}

TEST_F(RemoteGuestsTest, AreLostIfTheirProcessEndsWhileItHandsOverALayer) {
  const auto guest = make_waiting("kube_runtime_pages");
  sleep(*guest);
  ASSERT_TRUE(wake(*guest, {stores(20, 8 * kLayerPagesMin, 1)}).ended.has_value());
  std::optional<Result<Duration>> slept;
  rig_.loop().spawn([](Guest& sleeper, std::optional<Result<Duration>>& into) -> io::Task<void> {
    into = co_await sleeper.sleep(operator_in("a").tenant);
  }(*guest, slept));
  // The pages follow once the loop runs again.
  rig_.loop().run_until([this] { return store_->live_bytes() >= limits::kLayerBytesMin; });
  ASSERT_FALSE(slept.has_value());

  kill_guest_processes();

  wait_until([&slept] { return slept.has_value(); });
  EXPECT_FALSE(slept->has_value());
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("signal 9")));
  EXPECT_EQ(store_->live_bytes(), 0U);
}

TEST_F(RemoteGuestsTest, SleepCompressedWithoutRoomForALayer) {
  const auto small = wasm::SnapshotStore::open(directory_.path() / "small",
                                               {.file_bytes_max = limits::kLayerBytesMin})
                         .value();
  RemoteGuests guests(*processes_, *small);
  const auto guest = guests.make(load(wasm::GuestRig::bytes_of("kube_runtime_pages")), {}, {});
  ASSERT_TRUE(start(*guest).ended.has_value());
  for (std::uint32_t turn = 0; turn < 3; ++turn) {
    sleep(*guest);
    EXPECT_LT(guest->disk_bytes(), limits::kLayerBytesMin / 2);
    EXPECT_THAT(texts_of(wake(*guest, {stores(20, kLayerPagesMin, turn)})), testing::SizeIs(1));
  }
}

TEST_F(RemoteGuestsTest, StayAwakeOnceIfTheDiskFailsForTheirLayer) {
  const auto module = load(wasm::GuestRig::bytes_of("kube_runtime_pages"));
  const auto awake = make_guest(module);
  const auto guest = make_guest(module);
  ASSERT_TRUE(start(*awake, "b").ended.has_value());
  ASSERT_TRUE(start(*guest).ended.has_value());
  const auto expect_same = [&](const Wakeup& wakeup) {
    EXPECT_EQ(texts_of(wake(*guest, {wakeup})), texts_of(wake(*awake, {wakeup}, "b")));
  };
  sleep(*guest);
  expect_same(stores(20, 2 * kLayerPagesMin, 1));
  {
    const io::NoRoomForFiles full(limits::kLayerBytesMin);
    const Result<Duration> slept = rig_.await(guest->sleep(operator_in("a").tenant));
    ASSERT_FALSE(slept.has_value());
    EXPECT_EQ(name_of(slept.error().kind()), name_of(ErrorKind::Unavailable));
    expect_same(stores(40, 3, 2));
    sleep(*guest);
    EXPECT_LT(guest->disk_bytes(), limits::kLayerBytesMin);
    expect_same(stores(50, 3, 3));
  }
  sleep(*guest);
  EXPECT_GE(guest->disk_bytes(), limits::kLayerBytesMin);
  expect_same(stores(60, 3, 4));
  {
    // The disk takes no page of its layer: its memory is as before.
    const io::NoRoomForFiles full(1);
    for (std::uint32_t attempt = 0; attempt < 2; ++attempt) {
      EXPECT_FALSE(rig_.await(guest->sleep(operator_in("a").tenant)).has_value());
      expect_same(stores(70 + attempt, 2, 5));
    }
  }
  sleep(*guest);
  expect_same(stores(80, 1, 6));
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(RemoteGuestsTest, LeaveTheirProcessWhenTheyAreDestroyed) {
  make({.table = {.linger = milliseconds(1)}});
  auto guest = make_waiting("kube_runtime_journal");

  guest.reset();

  wait_until([this] { return processes_->process_count() == 0; });
  EXPECT_EQ(guests_bytes(accounts_), 0U);
}

TEST_F(RemoteGuestsTest, AreAskedToMakeRoomForOtherDomains) {
  make({.table = {.processes_max = 1}});
  const auto guest = make_waiting("kube_runtime_journal");
  const auto other = make_guest("kube_runtime_journal");
  reserve(*other, "b");
  std::optional<TurnOutcome> outcome;
  rig_.loop().spawn([](Guest& waiting, std::optional<TurnOutcome>& into) -> io::Task<void> {
    into = co_await waiting.start({}, operator_in("b"));
  }(*other, outcome));

  wait_until([this] { return notices_ > 0; });
  EXPECT_FALSE(outcome.has_value());
  sleep(*guest);
  wait_until([&] { return outcome.has_value(); });

  EXPECT_TRUE(outcome->ended.has_value()) << outcome->ended.error().message();
}

TEST_F(RemoteGuestsTest, DoNotWaitForEverForAProcess) {
  make({.table = {.processes_max = 1}, .process_wait = milliseconds(50)});
  const auto guest = make_waiting("kube_runtime_journal", {.may_sleep = false});
  const auto other = make_guest("kube_runtime_journal");

  expect_error(start(*other, "b"), ErrorKind::Unavailable, "no guest process has become free");
  EXPECT_EQ(notices_, 0);  // The guest stays in its process.
  EXPECT_THAT(texts_of(wake(*guest, {{.id = 1, .bytes = "x"}})), ElementsAre("1110bx"));
}

#endif

}  // namespace
}  // namespace hangar::domains
