#include "domains/guest_processes.h"

#include "abi/flight/command.h"
#include "abi/flight/lookups.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "domains/test_processes.h"
#include "guest_protocol/messages.h"
#include "io/all.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/module.h"
#include "wasm/test_guests.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::domains {
namespace {

// ThreadSanitizer would not see what happens in a guest process, and needs seconds to make one.
#if !__has_feature(thread_sanitizer)

namespace flight = abi::flight;
namespace protocol = guest_protocol;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

class Answers final : public flight::Lookups {
 public:
  io::Task<flight::LookupAnswer> lookup(flight::LookupRequest /*request*/) override {
    ++asked;
    if (gate != nullptr) co_await gate->wait();
    co_return flight::LookupAnswer{.state = flight::LookupState::Ok, .body = "{}"};
  }
  io::Task<flight::LookupAnswer> rest_mapping(std::string /*group*/,
                                              std::string /*kind*/) override {
    co_return flight::LookupAnswer{.state = flight::LookupState::Ok, .body = "{}"};
  }

  int asked = 0;
  io::OneShot<bool>* gate = nullptr;  // Answers wait for it.
};

budget::Consumer consumer(const std::string& namespace_name) {
  return {.tenant = budget::Tenant::of_namespace(namespace_name), .name = "Backend/web"};
}

// Modules with the same behaviour and different digests: each is handed over separately.
std::vector<std::shared_ptr<const wasm::Module>> load_many(wasm::GuestRig& rig,
                                                           const std::string& guest,
                                                           std::size_t count) {
  std::vector<std::shared_ptr<const wasm::Module>> modules;
  const std::string bytes = *wasm::GuestRig::bytes_of(guest);
  for (std::size_t number = 0; number < count; ++number) {
    // A custom section with the number as its name.
    std::string other = bytes;
    other += std::string("\0\x02\x01", 3) + static_cast<char>(number);
    auto module = rig.try_load(std::make_shared<const std::string>(std::move(other)));
    EXPECT_TRUE(module.has_value()) << module.error().message();
    modules.push_back(*std::move(module));
  }
  return modules;
}

class GuestProcessesTest : public testing::Test {
 public:
  void TearDown() override {
    processes_.reset();
    end_waiting_tasks(rig_.loop());
  }
  void make(GuestProcesses::Options options = {}) {
    if (options.program.empty()) options.program = HANGAR_GUEST_PROGRAM;
    options.thread_count = 2;
    processes_ = std::make_unique<GuestProcesses>(
        GuestProcesses::Parts{.engine = rig_.engine(), .metrics = metrics_}, std::move(options),
        std::nullopt);
  }

  io::Task<Result<flight::Output>> begin(const std::string& guest, flight::Command command,
                                         std::stop_token stop = {}) {
    return processes_->run(rig_.load(guest), std::move(command), &answers_, std::move(stop));
  }
  Result<flight::Output> run(const std::string& guest, flight::Command command = {}) {
    return rig_.await(begin(guest, std::move(command)));
  }
  // Runs the loop until all have ended.
  std::vector<Result<flight::Output>> run_all(std::vector<io::Task<Result<flight::Output>>> tasks) {
    return rig_.await(io::all(rig_.loop(), std::move(tasks)));
  }
  void expect_exit(const std::string& guest, std::uint32_t code, flight::Command command = {}) {
    const auto output = run(guest, std::move(command));
    ASSERT_TRUE(output.has_value()) << output.error().message();
    EXPECT_EQ(output->exit_code, code);
  }
  // A run that is in progress while the test does something else.
  class Background {
   public:
    Background(GuestProcessesTest& test, const std::string& guest, flight::Command command) {
      test.rig_.loop().spawn(keep(test.begin(guest, std::move(command)), output_));
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;
    [[nodiscard]] bool has_ended() const { return output_.has_value(); }
    [[nodiscard]] const Result<flight::Output>& output() const { return *output_; }

   private:
    static io::Task<void> keep(io::Task<Result<flight::Output>> task,
                               std::optional<Result<flight::Output>>& into) {
      into.emplace(co_await std::move(task));
    }
    std::optional<Result<flight::Output>> output_;
  };

  void wait_until(const std::function<bool()>& done) {
    io::Loop::Timer timer;
    std::function<void()> again = [&] { timer = rig_.loop().after(milliseconds(5), again); };
    again();
    rig_.loop().run_until(done);
  }
  [[nodiscard]] std::vector<pid_t> guest_pids() const {
    return children_of(processes_->zygote_pid().value());
  }
  // Expects that the zygote forks nothing after this signal (tests/guest_probe/unprivileged.cc).
  void expect_no_fork_after(int signal, const std::string& reason) {
    make({.program = HANGAR_GUEST_UNPRIVILEGED_PROGRAM});
    expect_exit("exit_3", 3, {.consumer = consumer("a")});
    const pid_t zygote = processes_->zygote_pid().value();
    ASSERT_EQ(::kill(zygote, signal), 0);

    const auto output = run("exit_3", {.consumer = consumer("b")});

    ASSERT_FALSE(output.has_value());
    EXPECT_EQ(output.error().kind(), ErrorKind::Unavailable);
    EXPECT_THAT(output.error().message(),
                AllOf(HasSubstr("could not be forked"), HasSubstr(reason)));
    expect_exit("exit_3", 3, {.consumer = consumer("a")});  // A domain with a process goes on.
    ASSERT_EQ(::kill(zygote, SIGUSR2), 0);
    expect_exit("exit_3", 3, {.consumer = consumer("b")});
  }

 protected:
  // The memory of a small container.
  static constexpr std::uint64_t kMemoryBytesMax = 256 * limits::kMiB;

  budget::Accounts accounts_{{.host_bytes_max = kMemoryBytesMax}};
  wasm::GuestRig rig_{{.memory = &accounts_}};
  Metrics metrics_;
  Answers answers_;
  std::unique_ptr<GuestProcesses> processes_;
};

TEST_F(GuestProcessesTest, OneServesADomainAndAnotherTheNext) {
  make();

  for (int count = 0; count < 20; ++count)
    expect_exit("exit_3", 3, {.consumer = consumer("a")});
  EXPECT_EQ(processes_->process_count(), 1U);
  EXPECT_EQ(guest_pids().size(), 1U);

  expect_exit("exit_3", 3, {.consumer = consumer("b")});
  expect_exit("exit_3", 3);
  EXPECT_EQ(processes_->process_count(), 3U);
}

TEST_F(GuestProcessesTest, OneServesAllWhereThatIsAskedFor) {
  make({.isolation = Isolation::Shared});

  expect_exit("exit_3", 3, {.consumer = consumer("a")});
  expect_exit("exit_3", 3, {.consumer = consumer("b")});

  EXPECT_EQ(processes_->process_count(), 1U);
}

TEST_F(GuestProcessesTest, EndWhenTheyHaveBeenIdle) {
  make({.table = {.linger = milliseconds(50)}});
  expect_exit("exit_3", 3);
  const pid_t pid = guest_pids().at(0);

  wait_until([this] { return processes_->process_count() == 0; });

  EXPECT_EQ(state_of(pid).parent, -1);
  expect_exit("exit_3", 3);  // In a new process.
}

TEST_F(GuestProcessesTest, EndWhenMemoryIsShortAndTheyAreIdle) {
  make({});
  expect_exit("exit_3", 3);
  ASSERT_EQ(processes_->process_count(), 1U);

  EXPECT_EQ(processes_->give_back(), 1U);

  wait_until([this] { return processes_->process_count() == 0; });
  EXPECT_EQ(processes_->give_back(), 0U);
  expect_exit("exit_3", 3);  // In a new process.
}

TEST_F(GuestProcessesTest, MakeRoomForDomainsThatWait) {
  make({.table = {.processes_max = 2}});
  std::vector<io::Task<Result<flight::Output>>> tasks;
  for (int count = 0; count < 12; ++count) {
    tasks.push_back(begin("sleep_a_moment", {.consumer = consumer(std::to_string(count % 6))}));
  }

  for (const auto& output : run_all(std::move(tasks)))
    EXPECT_TRUE(output.has_value()) << output.error().message();
  EXPECT_LE(processes_->process_count(), 2U);
}

TEST_F(GuestProcessesTest, HoldAsManyModulesAsTheyMay) {
  make();
  const auto modules = load_many(rig_, "exit_3", protocol::kModulesMax + 5);

  for (int round = 0; round < 2; ++round) {
    for (const auto& module : modules) {
      const auto output = rig_.await(processes_->run(module, {}, &answers_, {}));
      ASSERT_TRUE(output.has_value()) << output.error().message();
      EXPECT_EQ(output->exit_code, 3U);
    }
  }

  const auto descriptors =
      std::filesystem::directory_iterator("/proc/" + std::to_string(guest_pids().at(0)) + "/fd");
  EXPECT_LE(std::distance(std::filesystem::begin(descriptors), std::filesystem::end(descriptors)),
            2 * static_cast<std::ptrdiff_t>(protocol::kModulesMax) + 32);
}

TEST_F(GuestProcessesTest, RefuseWhatNoMessageHolds) {
  make();
  flight::Command command;
  command.arguments.resize(protocol::kTextsMax + 1);

  const auto output = run("exit_3", std::move(command));

  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().kind(), ErrorKind::LimitExceeded);
}

TEST_F(GuestProcessesTest, GiveLargeInputAndOutputWhole) {
  make();
  std::string large(3 * limits::kMiB, 'x');
  for (std::size_t at = 0; at < large.size(); at += 1000)
    large[at] = static_cast<char>(at / 1000);

  const auto output = run("echo_large", {.stdin_bytes = large});

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_TRUE(output->stdout_bytes == large);
}

TEST_F(GuestProcessesTest, ThatAreStoppedEndTheirRuns) {
  make();
  std::stop_source stop;
  std::vector<io::Task<Result<flight::Output>>> tasks;
  tasks.push_back(begin("endless_loop", {.timeout = std::nullopt}, stop.get_token()));
  const io::Loop::Timer timer =
      rig_.loop().after(milliseconds(50), [&stop] { stop.request_stop(); });

  const auto outputs = run_all(std::move(tasks));

  ASSERT_FALSE(outputs.at(0).has_value());
  EXPECT_EQ(outputs.at(0).error().kind(), ErrorKind::Cancelled);
  expect_exit("exit_3", 3);
}

TEST(GuestProcessMemory, IsReservedAsItGrowsAndGivenBack) {
  budget::Accounts accounts({.host_bytes_max = 64 * limits::kMiB});
  wasm::GuestRig rig({.memory = &accounts});
  Metrics metrics;
  Answers answers;
  GuestProcesses processes({.engine = rig.engine(), .metrics = metrics},
                           {.program = HANGAR_GUEST_PROGRAM}, std::nullopt);
  const auto run = [&](std::uint64_t memory_bytes_max) {
    return rig.await(processes.run(rig.load("memory_bomb"), {.memory_bytes_max = memory_bytes_max},
                                   &answers, {}));
  };

  // A request within the guest's own limit is granted; one beyond the host's limit is refused, and
  // the guest continues.
  for (int round = 0; round < 2; ++round) {
    const auto within = run(16 * limits::kMiB);
    ASSERT_TRUE(within.has_value()) << within.error().message();
    EXPECT_EQ(within->exit_code, 42U);
    EXPECT_GT(within->memory_bytes, 14 * limits::kMiB);
    EXPECT_LE(within->memory_bytes, 16 * limits::kMiB);
  }
  const auto beyond = run(512 * limits::kMiB);
  ASSERT_TRUE(beyond.has_value()) << beyond.error().message();
  EXPECT_EQ(beyond->exit_code, 42U);
  EXPECT_GT(beyond->memory_bytes, 50 * limits::kMiB);
  EXPECT_LT(beyond->memory_bytes, 64 * limits::kMiB);

  EXPECT_EQ(guests_bytes(accounts), 0U);
}

TEST_F(GuestProcessesTest, CountWhatTheyTakeBesidesTheirGuestsUntilTheyExit) {
  make({.table = {.linger = std::chrono::hours(1)}});
  expect_exit("exit_3", 3, {.consumer = consumer("a")});
  const budget::Consumer own =
      GuestProcesses::consumer_of_own_memory(budget::Tenant::of_namespace("a"));

  wait_until([&] { return accounts_.held_bytes(own) > 0; });

  EXPECT_EQ(processes_->process_count(), 1U);
  ::kill(guest_pids().at(0), SIGKILL);
  wait_until([this] { return processes_->process_count() == 0; });
  EXPECT_EQ(accounts_.held_bytes(), 0U);
}

// Memory that the engine keeps from ended guests must not count for later ones.
TEST(GuestProcessMemory, IsThereForOneModuleAfterTheOther) {
  constexpr std::uint64_t kMost = 256 * limits::kMiB;
  budget::Accounts accounts({.host_bytes_max = kMost});
  wasm::GuestRig rig({.memory = &accounts});
  Metrics metrics;
  Answers answers;
  GuestProcesses processes({.engine = rig.engine(), .metrics = metrics},
                           {.program = HANGAR_GUEST_PROGRAM}, std::nullopt);

  for (const auto& module : load_many(rig, "memory_bomb", 30)) {
    const auto output =
        rig.await(processes.run(module, {.memory_bytes_max = 200 * limits::kMiB}, &answers, {}));
    ASSERT_TRUE(output.has_value()) << output.error().message();
    EXPECT_GT(output->memory_bytes, 190 * limits::kMiB);
  }
}

TEST_F(GuestProcessesTest, ThatCannotBeStartedSayWhy) {
  make({.program = "/nowhere/hangar-guest"});
  const auto missing = run("exit_3");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(missing.error().message(),
              AllOf(HasSubstr("/nowhere/hangar-guest"), HasSubstr("No such file")));

  make({.program = "/bin/true"});
  const auto other = run("exit_3");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind(), ErrorKind::Unavailable);
}

TEST_F(GuestProcessesTest, ComeAgainAfterTheirZygoteWasKilled) {
  make();
  const Background a(*this, "endless_loop", {.timeout = std::nullopt, .consumer = consumer("a")});
  const Background b(*this, "sleep_for_ever", {.timeout = std::nullopt, .consumer = consumer("b")});
  wait_until([this] { return guest_pids().size() == 2; });
  const std::vector<pid_t> pids = guest_pids();

  ::kill(processes_->zygote_pid().value(), SIGKILL);
  wait_until([&] { return a.has_ended() && b.has_ended(); });

  for (const Background* const lost : {&a, &b}) {
    ASSERT_FALSE(lost->output().has_value());
    EXPECT_EQ(lost->output().error().kind(), ErrorKind::Unavailable);
    EXPECT_THAT(lost->output().error().message(), HasSubstr("hangar-guest has exited"));
  }
  for (const pid_t pid : pids)
    wait_until([pid] { return state_of(pid).state == 0 || state_of(pid).state == 'Z'; });
  // The zygote is restarted, though at most once a second.
  while (!run("exit_3")) {
    ASSERT_TRUE(rig_.await(rig_.loop().sleep(milliseconds(20), {})).has_value());
  }
}

TEST_F(GuestProcessesTest, CannotBeForkedWithoutDescriptorsAndCanLater) {
  make();
  expect_exit("exit_3", 3, {.consumer = consumer("a")});
  const pid_t zygote = processes_->zygote_pid().value();
  rlimit before{};
  const rlimit none{.rlim_cur = 4, .rlim_max = 1024};
  ASSERT_EQ(::prlimit(zygote, RLIMIT_NOFILE, &none, &before), 0);

  const auto output = run("exit_3", {.consumer = consumer("b")});

  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(output.error().message(),
              AllOf(HasSubstr("could not be forked"), HasSubstr("Too many open files")));
  expect_exit("exit_3", 3, {.consumer = consumer("a")});  // A domain with a process goes on.
  const rlimit some{.rlim_cur = 64, .rlim_max = 1024};
  ASSERT_EQ(::prlimit(zygote, RLIMIT_NOFILE, &some, nullptr), 0);
  expect_exit("exit_3", 3, {.consumer = consumer("b")});
}

TEST_F(GuestProcessesTest, CannotBeForkedBeyondTheNumberOfProcessesAndCanLater) {
  expect_no_fork_after(SIGUSR1, "Resource temporarily unavailable");
}

TEST_F(GuestProcessesTest, CannotBeForkedWithoutMemoryAndCanLater) {
  expect_no_fork_after(SIGHUP, "Cannot allocate memory");
}

TEST_F(GuestProcessesTest, HaveEachTheirOwnRandomness) {
  make();
  std::set<std::string> outputs;
  for (const std::string domain : {"a", "b", "c", "a"}) {
    const auto output = run("random", {.consumer = consumer(domain)});
    ASSERT_TRUE(output.has_value()) << output.error().message();
    EXPECT_THAT(output->stdout_bytes, testing::SizeIs(32));
    outputs.insert(output->stdout_bytes);
  }

  EXPECT_EQ(processes_->process_count(), 3U) << "all forked by the same zygote";
  EXPECT_THAT(outputs, testing::SizeIs(4));
}

TEST_F(GuestProcessesTest, CannotBeStartedWithoutDescriptorsOfTheHostAndCanLater) {
  make();
  expect_exit("exit_3", 3, {.consumer = consumer("a")});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  const auto module = rig_.load("exit_3");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);

  const auto output =
      rig_.await(processes_->run(module, {.consumer = consumer("b")}, &answers_, {}));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(output.error().message(), HasSubstr("Too many open files"));
  expect_exit("exit_3", 3, {.consumer = consumer("b")});
}

// Attacks by a guest that has escaped from WebAssembly -----------------------------------------

// Only where the sandbox exists: not in a sanitized build.
#if !__has_feature(address_sanitizer)

struct Call {
  std::string name;
  std::int64_t number = 0;
  std::array<std::uint64_t, 6> arguments = {};
  std::uint64_t mask = 0;  // Bits of arguments that point into `data`.
};
constexpr std::uint64_t kPeek = 64;
constexpr std::uint64_t kAbort = 128;
constexpr std::uint64_t kNoSignal = 0;
constexpr std::uint64_t kDataAt = 4096;
constexpr std::size_t kDataBytes = 4096;

class ProbeTest : public GuestProcessesTest {
 public:
  ProbeTest() {
    make({.program = HANGAR_GUEST_PROBE_PROGRAM,
          .patience = {.quiet_max = milliseconds(100),
                       .silence_max = milliseconds(3000),
                       .run_grace = milliseconds(3000)}});
  }

  // Adds `text`, with a zero byte, to the guest's memory, and returns its address.
  std::uint64_t put(const std::string& text) {
    const std::uint64_t at = kDataAt + data_.size();
    data_ += text + '\0';
    data_.resize((data_.size() + 7) / 8 * 8);
    return at;
  }
  flight::Command command(const std::vector<Call>& calls, const std::string& namespace_name) {
    std::string input = data_;
    input.resize(kDataBytes);
    const auto add = [&input](std::uint64_t number) {
      input.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    for (const Call& call : calls) {
      add(static_cast<std::uint64_t>(call.number));
      for (const std::uint64_t argument : call.arguments)
        add(argument);
      add(call.mask);
    }
    return {.stdin_bytes = std::move(input), .consumer = consumer(namespace_name)};
  }
  // The results of the calls; negative ones are error numbers.
  Result<std::vector<std::int64_t>> probe(const std::vector<Call>& calls,
                                          const std::string& namespace_name = "evil") {
    const auto output = HANGAR_TRY(run("probe", command(calls, namespace_name)));
    std::vector<std::int64_t> results(output.stdout_bytes.size() / sizeof(std::int64_t));
    std::memcpy(results.data(), output.stdout_bytes.data(), results.size() * sizeof(std::int64_t));
    return results;
  }
  // Expects that the host kills a process that sends these bytes in the middle of a run.
  void expect_breach(const std::string& bytes, const std::string& text) {
    SCOPED_TRACE(text);
    data_.clear();
    const std::uint64_t at = put(bytes);
    // A run in another process is in progress, and continues.
    std::vector<io::Task<Result<flight::Output>>> tasks;
    tasks.push_back(begin("probe", command({{"write", SYS_write, {0, at, bytes.size()}, 0b10},
                                            {"sleep", SYS_nanosleep, {put(long_sleep()), 0}, 1}},
                                           "evil")));
    tasks.push_back(begin("sleep_a_moment", {.consumer = consumer("good")}));

    const auto outputs = run_all(std::move(tasks));

    ASSERT_FALSE(outputs.at(0).has_value());
    EXPECT_EQ(outputs.at(0).error().kind(), ErrorKind::GuestFault);
    EXPECT_THAT(outputs.at(0).error().message(),
                AllOf(HasSubstr("the guest process of namespace evil"), HasSubstr(text)));
    EXPECT_TRUE(outputs.at(1).has_value()) << outputs.at(1).error().message();
    expect_exit("exit_3", 3, {.consumer = consumer("evil")});  // In a new process.
  }

 protected:
  static std::string long_sleep() {
    const timespec time{.tv_sec = 60, .tv_nsec = 0};
    return {reinterpret_cast<const char*>(&time), sizeof time};
  }

  std::string data_;
  std::uint64_t run_ = 0;  // The number of the last run.
};

TEST_F(ProbeTest, ReachesNoFileNoNetworkAndNoOtherProcess) {
  const std::string secret = wasm::shared_code_directory() / "token";
  {
    std::ofstream file(secret);
    file << "a credential";
  }
  expect_exit("exit_3", 3, {.consumer = consumer("neighbour")});
  const auto host = static_cast<std::uint64_t>(::getpid());
  const auto zygote = static_cast<std::uint64_t>(processes_->zygote_pid().value());
  const auto neighbour = static_cast<std::uint64_t>(guest_pids().at(0));
  const auto here = static_cast<std::uint64_t>(AT_FDCWD);
  const std::uint64_t buffer = put(std::string(64, '\0'));
  const std::uint64_t path = put(secret);
  std::vector<Call> calls = {
      {"open a file", SYS_openat, {here, path, O_RDONLY}, 0b10},
      {"open the token",
       SYS_openat,
       {here, put("/var/run/secrets/kubernetes.io/serviceaccount/token"), O_RDONLY},
       0b10},
#ifdef __x86_64__
      {"open by the old call", SYS_open, {path, O_RDONLY}, 0b1},
      {"fork by the old call", SYS_fork, {}},
#endif
      {"open by the new call", SYS_openat2, {here, path, buffer, 24}, 0b110},
      {"make a file", SYS_openat, {here, put("/tmp/made"), O_CREAT | O_WRONLY, 0600}, 0b10},
      {"list a directory", SYS_openat, {here, put("/"), O_RDONLY | O_DIRECTORY}, 0b10},
      {"look whether a file is there", SYS_newfstatat, {here, path, buffer, 0}, 0b110},
      {"look by statx", SYS_statx, {here, path, 0, 0, buffer}, 0b10010},
      {"ask for access", SYS_faccessat, {here, path, 0}, 0b10},
      {"delete", SYS_unlinkat, {here, path, 0}, 0b10},
      {"rename", SYS_renameat2, {here, path, here, put("/tmp/other"), 0}, 0b1010},
      {"link", SYS_linkat, {here, path, here, put("/tmp/other"), 0}, 0b1010},
      {"read the host's environment",
       SYS_openat,
       {here, put("/proc/" + std::to_string(host) + "/environ"), O_RDONLY},
       0b10},
      {"write to the host's memory",
       SYS_openat,
       {here, put("/proc/" + std::to_string(host) + "/mem"), O_RDWR},
       0b10},
      {"write to its own memory by the file",
       SYS_openat,
       {here, put("/proc/self/mem"), O_RDWR},
       0b10},
      {"make a socket", SYS_socket, {AF_INET, SOCK_STREAM, 0}},
      {"make a local socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
      {"make a pair of sockets", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, buffer}, 0b1000},
      {"connect", SYS_connect, {0, buffer, 16}, 0b10},
      {"be told who is there", SYS_getpeername, {0, buffer, buffer}, 0b110},
      {"ask for options of its socket",
       SYS_getsockopt,
       {0, SOL_SOCKET, 17, buffer, buffer},
       0b11000},
      {"trace the host", SYS_ptrace, {16, host, 0, 0}},
      {"trace its neighbour", SYS_ptrace, {16, neighbour, 0, 0}},
      {"be traced", SYS_ptrace, {0, 0, 0, 0}},
      {"read the host's memory", SYS_process_vm_readv, {host, buffer, 1, buffer, 1, 0}, 0b1010},
      {"read its neighbour's memory",
       SYS_process_vm_readv,
       {neighbour, buffer, 1, buffer, 1, 0},
       0b1010},
      {"write its neighbour's memory",
       SYS_process_vm_writev,
       {neighbour, buffer, 1, buffer, 1, 0},
       0b1010},
      {"get a handle of the host", SYS_pidfd_open, {host, 0}},
      {"take a descriptor of the host", SYS_pidfd_getfd, {0, 0, 0}},
      // Asks only whether the signal would be allowed: if the sandbox has a hole, the test fails
      // and not the machine.
      {"signal the host", SYS_kill, {host, kNoSignal}},
      {"signal the zygote", SYS_kill, {zygote, kNoSignal}},
      {"signal its neighbour", SYS_kill, {neighbour, kNoSignal}},
      {"signal everybody", SYS_kill, {static_cast<std::uint64_t>(-1), kNoSignal}},
      {"signal a thread of the host", SYS_tgkill, {host, host, kNoSignal}},
      {"signal a thread of its neighbour", SYS_tgkill, {neighbour, neighbour, kNoSignal}},
      {"signal a thread by its number", SYS_tkill, {neighbour, kNoSignal}},
      {"queue a signal", SYS_rt_sigqueueinfo, {host, kNoSignal, buffer}, 0b100},
      {"signal by a handle", SYS_pidfd_send_signal, {0, kNoSignal, 0, 0}},
      {"change the host's limits", SYS_prlimit64, {host, RLIMIT_NOFILE, buffer, 0}, 0b100},
      {"read the host's limits", SYS_prlimit64, {host, RLIMIT_NOFILE, 0, buffer}, 0b1000},
      {"raise its own limits", SYS_prlimit64, {0, RLIMIT_DATA, buffer, 0}, 0b100},
      {"change the host's priority", SYS_setpriority, {0, host, 19}},
      {"pin the host", SYS_sched_setaffinity, {host, 8, buffer}, 0b100},
      {"fork by clone", SYS_clone, {SIGCHLD, 0, 0, 0, 0}},
      {"have more threads",
       SYS_clone,
       {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, buffer + 1024, 0, 0, 0},
       0b10},
      {"have memory that is not counted",
       SYS_mmap,
       {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, static_cast<std::uint64_t>(-1),
        0}},
      {"have a namespace", SYS_unshare, {CLONE_NEWUSER}},
      {"enter a namespace", SYS_setns, {0, 0}},
      {"execute", SYS_execve, {put("/bin/true"), 0, 0}, 0b1},
      {"mount", SYS_mount, {path, path, 0, 0, 0}, 0b11},
      {"change its root", SYS_chroot, {put("/")}, 0b1},
      {"become another user", SYS_setuid, {0}},
      {"have memory dumped", SYS_prctl, {PR_SET_DUMPABLE, 1, 0, 0, 0}},
      {"outlive its parent", SYS_prctl, {PR_SET_PDEATHSIG, 0, 0, 0, 0}},
      {"have io_uring", SYS_io_uring_setup, {1, buffer}, 0b10},
      {"have a program in the kernel", SYS_bpf, {0, buffer, 64}, 0b10},
      {"watch performance", SYS_perf_event_open, {buffer, host, 0, 0, 0}, 0b1},
      {"handle page faults", SYS_userfaultfd, {0}},
      {"have a key", SYS_keyctl, {0, 0, 0, 0, 0}},
      {"change another filter", SYS_seccomp, {1, 0, buffer}, 0b100},
      {"share memory by a key", SYS_shmget, {1, 4096, 0600 | 01000}},
      {"make a memory file", SYS_memfd_create, {put("m"), 0}, 0b1},
      {"control its socket", SYS_ioctl, {0, 0x5411, buffer}, 0b100},
      {"put descriptors in flight", SYS_sendmsg, {0, buffer, 0}, 0b10},
      {"send to an address", SYS_sendto, {0, buffer, 1, 0, buffer, 16}, 0b10010},
  };

  const auto results = probe(calls);

  ASSERT_TRUE(results.has_value()) << results.error().message();
  ASSERT_EQ(results->size(), calls.size());
  for (std::size_t index = 0; index < calls.size(); ++index) {
    EXPECT_TRUE(results->at(index) == -EPERM || results->at(index) == -EACCES)
        << calls[index].name << ": " << results->at(index);
  }
  EXPECT_TRUE(std::filesystem::exists(secret));
  EXPECT_EQ(state_of(static_cast<pid_t>(neighbour)).parent, static_cast<pid_t>(zygote));
  expect_exit("exit_3", 3, {.consumer = consumer("neighbour")});
}

TEST_F(ProbeTest, ChangesNoCodeThatOthersRun) {
  std::vector<Call> calls;
  const std::uint64_t text = put("changed");
  for (std::uint64_t descriptor = 3; descriptor < 40; ++descriptor) {
    calls.push_back({"map for writing",
                     SYS_mmap,
                     {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0}});
    calls.push_back({"write", SYS_write, {descriptor, text, 7}, 0b10});
    calls.push_back({"cut", SYS_ftruncate, {descriptor, 0}});
    calls.push_back({"open again",
                     SYS_openat,
                     {static_cast<std::uint64_t>(AT_FDCWD),
                      put("/proc/self/fd/" + std::to_string(descriptor)), O_RDWR},
                     0b10});
    calls.push_back({"change its mode", SYS_fchmod, {descriptor, 0777}});
    if (data_.size() > kDataBytes - 64) break;
  }

  const auto results = probe(calls);

  ASSERT_TRUE(results.has_value()) << results.error().message();
  ASSERT_EQ(results->size(), calls.size());
  for (std::size_t index = 0; index < calls.size(); ++index) {
    // The process's own eventfd accepts a number.
    if (calls[index].number == SYS_write && results->at(index) == -EINVAL) continue;
    EXPECT_LT(results->at(index), 0) << calls[index].name << " " << calls[index].arguments.at(0);
  }
  // All its descriptors are sockets, its own code files, or its own memory.
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(guest_pids().at(0)) + "/fd")) {
    const std::string target = std::filesystem::read_symlink(entry.path());
    EXPECT_TRUE(target.starts_with("socket:") || target.starts_with("anon_inode:") ||
                target.ends_with("/pagemap") || target.ends_with("/statm") ||
                target == "/dev/null" || target.find(".cwasm") != std::string::npos)
        << target;
  }
}

TEST_F(ProbeTest, ThatTakesMoreMemoryThanItsGuestsMayHaveIsEnded) {
  std::vector<io::Task<Result<flight::Output>>> tasks;
  tasks.push_back(begin("sleep_a_moment", {.consumer = consumer("good")}));
  tasks.push_back(begin("probe", command({{"take memory",
                                           SYS_mmap,
                                           {0, 3 * kMemoryBytesMax, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                                            static_cast<std::uint64_t>(-1), 0}},
                                          {"sleep", SYS_nanosleep, {put(long_sleep()), 0}, 1}},
                                         "evil")));

  const auto outputs = run_all(std::move(tasks));

  EXPECT_TRUE(outputs.at(0).has_value()) << outputs.at(0).error().message();
  ASSERT_FALSE(outputs.at(1).has_value());
  EXPECT_EQ(outputs.at(1).error().kind(), ErrorKind::LimitExceeded);
  // On a busy machine, the host may read its memory before it has taken all of it.
  EXPECT_THAT(outputs.at(1).error().message(),
              AllOf(HasSubstr("the guest process of namespace evil: killed for using"),
                    testing::AnyOf(HasSubstr("more than its guests may have"),
                                   HasSubstr("for which there is no room"))));
}

// The zygote's bound is all memory that guests may have, and so much more: here the host has it
// counted as far as there is room.
TEST_F(ProbeTest, ThatTakesMoreThanThereIsRoomForBesidesItsGuestsIsEnded) {
  const auto output = run(
      "probe",
      command({{"take memory",
                SYS_mmap,
                {0, kMemoryBytesMax + 64 * limits::kMiB, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, static_cast<std::uint64_t>(-1), 0}},
               {"sleep", SYS_nanosleep, {put(long_sleep()), 0}, 1}},
              "evil"));

  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(output.error().message(),
              AllOf(HasSubstr("the guest process of namespace evil: killed for using 3"),
                    HasSubstr("besides that of its guests")));
  expect_exit("exit_3", 3, {.consumer = consumer("evil")});  // In a new process.
}

TEST_F(ProbeTest, HasNothingOfTheHostsEnvironment) {
  expect_exit("exit_3", 3);
  const pid_t pid = guest_pids().at(0);

  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  const std::string text{std::istreambuf_iterator<char>(file), {}};

  EXPECT_EQ(text, "");
}

TEST_F(ProbeTest, ThatCrashesCostsItsDomainItsRunsAndNobodyElseAnything) {
  struct Case {
    Call call;
    std::string how;
  };
  const auto module = rig_.load("exit_3");
  // Makes short runs of another domain, one after the other, and returns the time of the longest.
  const auto longest_run = [&](const std::function<bool()>& is_over) {
    Duration longest{};
    for (int count = 0; count < 100 || !is_over(); ++count) {
      const Instant began = io::Loop::now();
      const auto output =
          rig_.await(processes_->run(module, {.consumer = consumer("good")}, &answers_, {}));
      longest = std::max(longest, io::Loop::now() - began);
      EXPECT_TRUE(output.has_value()) << output.error().message();
    }
    return std::chrono::duration<double, std::milli>(longest).count();
  };
  for (const Case& one : {Case{{"crash", 0, {8}, kPeek}, "killed by signal 11"},
                          Case{{"abort", 0, {}, kAbort}, "killed by signal 6"}}) {
    SCOPED_TRACE(one.how);
    expect_exit("exit_3", 3, {.consumer = consumer("good")});
    const double before = longest_run([] { return true; });
    const Background waits(*this, "sleep_for_ever",
                           {.timeout = std::nullopt, .consumer = consumer("evil")});
    const Background crashes(*this, "probe", command({one.call}, "evil"));

    const double meanwhile = longest_run([&] { return waits.has_ended() && crashes.has_ended(); });

    std::cout << "the longest of the short runs of another domain: " << before << " ms, "
              << meanwhile << " ms during the crash\n";
    for (const Background* const lost : {&waits, &crashes}) {
      ASSERT_FALSE(lost->output().has_value());
      EXPECT_EQ(lost->output().error().kind(), ErrorKind::GuestFault);
      EXPECT_THAT(lost->output().error().message(),
                  HasSubstr("the guest process of namespace evil: " + one.how));
    }
    expect_exit("exit_3", 3, {.consumer = consumer("evil")});
  }
}

TEST_F(ProbeTest, ThatSpeaksOfAnotherRunIsEnded) {
  expect_breach(protocol::encode(protocol::FromGuest(protocol::EndRun{.run = 1'000'000})),
                "a run that is not in progress");
}

TEST_F(ProbeTest, ThatEndsARunTwiceIsEnded) {
  // Only the first EndRun counts; the second one would end the domain's next run.
  const auto end = protocol::encode(protocol::FromGuest(protocol::EndRun{.run = 1}));
  const std::uint64_t at = put(end);
  std::vector<io::Task<Result<flight::Output>>> tasks;
  tasks.push_back(begin("sleep_for_ever", {.timeout = std::nullopt, .consumer = consumer("evil")}));
  tasks.push_back(begin("probe", command({{"write", SYS_write, {0, at, end.size()}, 0b10},
                                          {"write", SYS_write, {0, at, end.size()}, 0b10}},
                                         "evil")));

  const auto outputs = run_all(std::move(tasks));

  EXPECT_TRUE(outputs.at(0).has_value());  // Its end was reported.
  ASSERT_FALSE(outputs.at(1).has_value());
  EXPECT_THAT(outputs.at(1).error().message(), HasSubstr("a run that is not in progress"));
}

TEST_F(ProbeTest, SaysNothingOfWhatTheHostIsToDo) {
  for (const ErrorKind said : {ErrorKind::Conflict, ErrorKind::Corrupt, ErrorKind::Cancelled}) {
    data_.clear();
    const auto end = protocol::encode(
        protocol::FromGuest(protocol::EndRun{.run = ++run_, .is_error = true, .kind = said}));
    const std::uint64_t at = put(end);

    const auto output =
        run("probe", command({{"write", SYS_write, {0, at, end.size()}, 0b10}}, "evil"));

    ASSERT_FALSE(output.has_value());
    EXPECT_EQ(output.error().kind(), ErrorKind::GuestFault) << name_of(said);
    // The process itself ends the run once more.
    wait_until([this] { return processes_->process_count() == 0; });
  }
}

TEST_F(ProbeTest, ThatSendsHalfAMessageAndWaitsIsEnded) {
  const std::string whole =
      protocol::encode(protocol::FromGuest(protocol::EndRun{.run = 1, .reason = "half of it"}));
  expect_breach(whole.substr(0, whole.size() / 2), "did not answer");
}

TEST_F(ProbeTest, ThatSendsNoMessageIsEnded) {
  expect_breach(std::string(64, '\xff'), "a message of 4294967295 bytes");
  std::string unknown = protocol::encode(protocol::FromGuest(protocol::Pong{}));
  unknown.back() = 99;
  expect_breach(unknown, "no message of type 99");
}

TEST_F(ProbeTest, ThatStandsStillIsEnded) {
  const Background evil(*this, "sleep_for_ever",
                        {.timeout = std::nullopt, .consumer = consumer("evil")});
  wait_until([this] { return guest_pids().size() == 1; });
  const pid_t stopped = guest_pids().at(0);
  ::kill(stopped, SIGSTOP);

  expect_exit("sleep_a_moment", 0, {.consumer = consumer("good")});
  wait_until([&evil] { return evil.has_ended(); });

  ASSERT_FALSE(evil.output().has_value());
  EXPECT_THAT(evil.output().error().message(), HasSubstr("did not answer"));
  wait_until([stopped] { return state_of(stopped).parent == -1; });
}

#endif
#endif

}  // namespace
}  // namespace hangar::domains
