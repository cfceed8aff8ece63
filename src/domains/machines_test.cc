// Machines of workflows that run in guest processes.
#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "domains/guest_processes.h"
#include "domains/test_processes.h"
#include "guest_protocol/messages.h"
#include "io/all.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/plugin.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::domains {
namespace {

// ThreadSanitizer would not see what happens in a guest process, and needs seconds to make one.
#if !__has_feature(thread_sanitizer)

namespace statemachine = abi::statemachine;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kAllMemoryBytes = 1024 * limits::kMiB;
constexpr std::string_view kEvent = R"({"type":"GO"})";

statemachine::Asker asker_of(const std::string& namespace_name,
                             statemachine::Cost* cost = nullptr) {
  return {.consumer = {.tenant = budget::Tenant::of_namespace(namespace_name), .name = "w"},
          .cost = cost};
}

// A bundle that counts its steps in its state. A different `text` makes it a different bundle.
std::string counting_bundle(const std::string& text = "") {
  return "globalThis.handle_event = (state) => JSON.stringify({newState: (JSON.parse(state) ?? 0) "
         "+ 1}); //" +
         text;
}

class RemoteMachineTest : public testing::Test {
 public:
  // One rig for all tests: QuickJS is compiled once.
  static void SetUpTestSuite() {
    rig = std::make_unique<wasm::GuestRig>(wasm::Engine::Options{.memory = &accounts});
    directory = std::make_unique<wasm::TemporaryDirectory>();
    here = std::make_unique<statemachine::Runtime>(rig->cache(), directory->path() / "images");
  }
  static void TearDownTestSuite() {
    here.reset();
    directory.reset();
    rig.reset();
  }

  void TearDown() override {
    elsewhere_.reset();
    processes_.reset();
    end_waiting_tasks(rig->loop());
  }
  void SetUp() override {
    processes_ = std::make_unique<GuestProcesses>(
        GuestProcesses::Parts{.engine = rig->engine(), .metrics = metrics_},
        GuestProcesses::Options{.program = HANGAR_GUEST_PROGRAM, .thread_count = 2}, std::nullopt);
    elsewhere_ = std::make_unique<statemachine::Runtime>(rig->cache(), directory->path() / "images",
                                                         processes_.get());
  }

  static std::shared_ptr<statemachine::Machine> load(statemachine::Runtime& runtime,
                                                     std::string bytes,
                                                     statemachine::MachineLimits limits = {}) {
    auto machine =
        rig->await(runtime.load(std::make_shared<const std::string>(std::move(bytes)), limits, {}));
    EXPECT_TRUE(machine.has_value()) << machine.error().message();
    return machine ? *std::move(machine) : nullptr;
  }
  std::shared_ptr<statemachine::Machine> load(std::string bytes,
                                              statemachine::MachineLimits limits = {}) {
    return load(*elsewhere_, std::move(bytes), limits);
  }
  static std::string built(const std::string& file) {
    auto bytes =
        io::read_file(std::filesystem::path(HANGAR_MACHINES_DIR) / file, limits::kModuleBytesMax);
    EXPECT_TRUE(bytes.has_value()) << file;
    return bytes ? *std::move(bytes) : std::string();
  }

  static Result<statemachine::Step> start(statemachine::Machine& machine,
                                          const std::string& namespace_name = "team") {
    return rig->await(machine.start("{}", {}, asker_of(namespace_name)));
  }
  static Result<statemachine::Step> step(statemachine::Machine& machine, std::string state,
                                         std::string event = std::string(kEvent),
                                         const std::string& namespace_name = "team") {
    return rig->await(
        machine.step(std::move(state), std::move(event), {}, asker_of(namespace_name)));
  }

  [[nodiscard]] std::vector<pid_t> process_ids() const {
    return children_of(processes_->zygote_pid().value_or(0));
  }

 protected:
  inline static budget::Accounts accounts{{.host_bytes_max = kAllMemoryBytes}};
  inline static std::unique_ptr<wasm::GuestRig> rig;
  inline static std::unique_ptr<wasm::TemporaryDirectory> directory;
  inline static std::unique_ptr<statemachine::Runtime> here;
  Metrics metrics_;
  std::unique_ptr<GuestProcesses> processes_;
  std::unique_ptr<statemachine::Runtime> elsewhere_;
};

// The published example in all its shapes, and linked dynamically with a QuickJS plugin.
TEST_F(RemoteMachineTest, DecidesInEveryShapeAsInThisProcess) {
  const std::string module = *wasm::GuestRig::bytes_of("machine_prefixed");
  for (const std::string& bytes :
       {built("database_provisioner.js"), built("provisioner_handle_event.wasm"),
        built("provisioner_command.wasm"), built("everything_v5.js"),
        wasm::carry_plugin(std::as_bytes(std::span<const char>(built("provisioner_dynamic.wasm"))),
                           std::as_bytes(std::span<const char>(built("javy_plugin.wasm"))))
            .value(),
        module}) {
    const auto expected = load(*here, bytes);
    const auto machine = load(bytes);
    ASSERT_NE(expected, nullptr);
    ASSERT_NE(machine, nullptr);
    EXPECT_EQ(machine->shape(), expected->shape());
    const auto began = rig->await(expected->start("{}", {}));
    ASSERT_TRUE(began.has_value()) << began.error().message();

    const auto first = start(*machine);
    ASSERT_TRUE(first.has_value()) << first.error().message();
    EXPECT_EQ(first->value, began->value);
    EXPECT_EQ(first->actions.size(), began->actions.size());
    const auto next = step(*machine, began->state, R"({"type":"PROVISION"})");
    const auto expected_next =
        rig->await(expected->step(began->state, R"({"type":"PROVISION"})", {}));
    ASSERT_TRUE(next.has_value()) << next.error().message();
    ASSERT_TRUE(expected_next.has_value()) << expected_next.error().message();
    EXPECT_EQ(next->value, expected_next->value);
    EXPECT_EQ(next->is_handled, expected_next->is_handled);
    EXPECT_EQ(next->actions.size(), expected_next->actions.size());
    const auto definition = rig->await(machine->definition({}, asker_of("team")));
    const auto expected_definition = rig->await(expected->definition({}));
    EXPECT_EQ(definition.has_value(), expected_definition.has_value());
    if (definition) EXPECT_EQ(*definition, *expected_definition);
  }
  EXPECT_EQ(processes_->process_count(), 1U);
}

TEST_F(RemoteMachineTest, TellsTheActorsOfAState) {
  const auto machine = load(built("family_v5.js"));
  ASSERT_NE(machine, nullptr);
  const auto began = start(*machine);
  ASSERT_TRUE(began.has_value()) << began.error().message();
  const auto making = step(*machine, began->state, R"({"type":"PROVISION"})");
  ASSERT_TRUE(making.has_value()) << making.error().message();

  const auto actors = rig->await(machine->actors(making->state, {}, asker_of("team")));

  ASSERT_TRUE(actors.has_value()) << actors.error().message();
  EXPECT_EQ(actors->size(), making->actors.size());
  EXPECT_FALSE(actors->empty());
}

TEST_F(RemoteMachineTest, KeepsNothingFromOneQuestionToTheNext) {
  const auto machine =
      load("let calls = 0; globalThis.handle_event = () => JSON.stringify({newState: ++calls})");
  ASSERT_NE(machine, nullptr);
  for (int time = 0; time < 3; ++time) {
    const auto answer = step(*machine, "{}");
    ASSERT_TRUE(answer.has_value()) << answer.error().message();
    EXPECT_EQ(answer->state, "1");
  }
}

TEST_F(RemoteMachineTest, SaysWhatItsBundlePrintsAndCosts) {
  const auto machine =
      load("globalThis.handle_event = () => { console.log('seen'); return '{\"newState\":1}'; }");
  ASSERT_NE(machine, nullptr);
  statemachine::Cost cost;

  const auto answer =
      rig->await(machine->step("{}", std::string(kEvent), {}, asker_of("team", &cost)));

  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(answer->log, "seen\n");
  EXPECT_GT(cost.cpu, Duration::zero());
  EXPECT_GT(cost.memory_bytes, 0U);
}

TEST_F(RemoteMachineTest, TriesOutWhatLoadingItHereWouldRefuse) {
  const auto problem_of = [&](const std::string& bundle, statemachine::MachineLimits limits = {}) {
    const auto machine = load(bundle, limits);
    return machine == nullptr ? Error(ErrorKind::Corrupt, "not loaded")
                              : rig->await(machine->try_out({}, asker_of("team"))).error();
  };
  EXPECT_THAT(problem_of("const a = ;").message(), HasSubstr("SyntaxError: "));
  EXPECT_THAT(problem_of("export const a = 1;").message(), HasSubstr("has no machine"));
  const Error thrown = problem_of("throw new TypeError('at home')");
  EXPECT_EQ(thrown.kind(), ErrorKind::GuestFault);
  EXPECT_THAT(thrown.message(), HasSubstr("at home"));
  EXPECT_EQ(problem_of("while (true) {}", {.cpu_time_max = milliseconds(50)}).kind(),
            ErrorKind::LimitExceeded);
  const auto good = load(counting_bundle());
  ASSERT_NE(good, nullptr);
  EXPECT_TRUE(rig->await(good->try_out({}, asker_of("team"))).has_value());
}

TEST_F(RemoteMachineTest, EndsWhatGoesTooFarAndGoesOn) {
  const auto machine = load(
      "globalThis.handle_event = (state, event) => { const type = JSON.parse(event).type;"
      "if (type === 'LOOP') while (true) {}"
      "if (type === 'GROW') { let a = []; while (true) a.push(new Array(100000).fill(0)); }"
      "if (type === 'LONG') return JSON.stringify({newState: 'x'.repeat(2000000)});"
      "if (type === 'THROW') throw new Error('not today');"
      "return '{\"newState\":1}'; }",
      {.cpu_time_max = milliseconds(200), .memory_bytes_max = 32 * limits::kMiB});
  ASSERT_NE(machine, nullptr);
  for (const auto& [type, kind] :
       {std::pair{"LOOP", ErrorKind::LimitExceeded}, std::pair{"GROW", ErrorKind::LimitExceeded},
        std::pair{"LONG", ErrorKind::LimitExceeded}, std::pair{"THROW", ErrorKind::GuestFault}}) {
    SCOPED_TRACE(type);
    const auto answer = step(*machine, "{}", std::string(R"({"type":")") + type + R"("})");
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(name_of(answer.error().kind()), name_of(kind)) << answer.error().message();
    EXPECT_TRUE(step(*machine, "{}").has_value());
  }
  EXPECT_EQ(processes_->process_count(), 1U);
}

TEST_F(RemoteMachineTest, IsAskedAgainWhenItsProcessWasLost) {
  const auto machine = load(
      "globalThis.handle_event = (state, event) => { if (JSON.parse(event).type === 'LOOP') while "
      "(true) {} return '{\"newState\":1}'; }",
      {.cpu_time_max = std::chrono::minutes(10)});
  ASSERT_NE(machine, nullptr);
  ASSERT_TRUE(start(*machine).has_value());
  ASSERT_EQ(process_ids().size(), 1U);
  const pid_t process = process_ids().front();
  std::optional<Result<statemachine::Step>> lost;
  const auto keep = [](io::Task<Result<statemachine::Step>> task,
                       std::optional<Result<statemachine::Step>>& into) -> io::Task<void> {
    into.emplace(co_await std::move(task));
  };
  rig->loop().spawn(keep(machine->step("{}", R"({"type":"LOOP"})", {}, asker_of("team")), lost));
  // Another question was answered meanwhile, so the first one has started.
  ASSERT_TRUE(step(*machine, "{}").has_value());
  ASSERT_FALSE(lost.has_value());

  ASSERT_EQ(::kill(process, SIGKILL), 0);
  // Until the host notices the loss, questions go to the lost process.
  while (!lost)
    static_cast<void>(step(*machine, "{}"));
  const auto again = step(*machine, "{}");

  ASSERT_TRUE(again.has_value()) << again.error().message();
  ASSERT_FALSE(lost->has_value());
  EXPECT_EQ(name_of(lost->error().kind()), name_of(ErrorKind::Unavailable));
  EXPECT_THAT(lost->error().message(), HasSubstr("the guest process of namespace team"));
  // The host hears of the loss by the end of a stream; the zygote may wait for the process later.
  while (std::ranges::count(process_ids(), process) > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(process_ids().size(), 1U);
  EXPECT_NE(process_ids().front(), process);
}

TEST_F(RemoteMachineTest, IsAskedInAProcessOfItsNamespace) {
  const auto machine = load(counting_bundle());
  ASSERT_NE(machine, nullptr);

  for (const char* const name : {"one", "other", "one"}) {
    const auto answer = step(*machine, "4", std::string(kEvent), name);
    ASSERT_TRUE(answer.has_value()) << answer.error().message();
    EXPECT_EQ(answer->state, "5");
  }

  EXPECT_EQ(processes_->process_count(), 2U);
}

TEST_F(RemoteMachineTest, CountsItsMemoryForItsNamespaceWhileItIsAsked) {
  const auto machine = load(
      "globalThis.handle_event = (state, event) => { let a = []; if (JSON.parse(event).type === "
      "'GROW') for (let i = 0; i < 64; ++i) a.push(new Uint8Array(1 << 20).fill(1));"
      "return '{\"newState\":1}'; }");
  ASSERT_NE(machine, nullptr);
  ASSERT_TRUE(step(*machine, "{}").has_value());
  const std::uint64_t before = guests_bytes(accounts);
  {
    // All but some MiB are reserved.
    const auto rest = rig->await(
        rig->engine().reserve({.tenant = budget::Tenant::of_namespace("other"), .name = "o"},
                              kAllMemoryBytes - before - 24 * limits::kMiB, {}));
    ASSERT_TRUE(rest.has_value()) << rest.error().message();

    const auto refused = step(*machine, "{}", R"({"type":"GROW"})");

    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(name_of(refused.error().kind()), name_of(ErrorKind::Unavailable))
        << refused.error().message();
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("the machine cannot get memory: "));
  }
  EXPECT_TRUE(step(*machine, "{}", R"({"type":"GROW"})").has_value());
  EXPECT_LE(guests_bytes(accounts), before) << "between questions it holds nothing";
}

TEST_F(RemoteMachineTest, KeepsLittleBetweenQuestionsWhileSomebodyWaitsForMemory) {
  constexpr std::uint64_t kKeptBytes = 16 * limits::kMiB;
  const budget::Consumer own =
      GuestProcesses::consumer_of_own_memory(budget::Tenant::of_namespace("team"));
  const auto machine = load(
      "globalThis.kept = []; for (let i = 0; i < 16; ++i) kept.push(new Uint8Array(1 << 20)"
      ".fill(1)); " +
      counting_bundle());
  ASSERT_NE(machine, nullptr);
  const auto first = step(*machine, "4");
  ASSERT_TRUE(first.has_value()) << first.error().message();
  io::Loop::Timer timer;
  const std::function<void()> again = [&] { timer = rig->loop().after(milliseconds(5), again); };
  again();
  rig->loop().run_until([&own] { return accounts.held_bytes(own) >= kKeptBytes; });

  {
    // More than is free.
    const auto reserved = rig->await(
        rig->engine().reserve({.tenant = budget::Tenant::of_namespace("other"), .name = "o"},
                              kAllMemoryBytes - accounts.held_bytes() + kKeptBytes / 2, {}));
    ASSERT_TRUE(reserved.has_value()) << reserved.error().message();
  }
  const auto again_begun = step(*machine, "4");
  EXPECT_TRUE(again_begun.has_value()) << again_begun.error().message();
}

// A process holds a bounded number of machines: others are handed over again.
TEST_F(RemoteMachineTest, IsOneOfMoreThanAProcessHolds) {
  std::vector<std::shared_ptr<statemachine::Machine>> machines;
  for (std::size_t number = 0; number < guest_protocol::kMachinesMax + 2; ++number)
    machines.push_back(load(counting_bundle(std::to_string(number))));
  for (int round = 0; round < 2; ++round) {
    for (const auto& machine : machines) {
      ASSERT_NE(machine, nullptr);
      const auto answer = step(*machine, "1");
      ASSERT_TRUE(answer.has_value()) << answer.error().message();
      EXPECT_EQ(answer->state, "2");
    }
  }
}

TEST_F(RemoteMachineTest, MayHaveALargeBundle) {
  std::vector<std::shared_ptr<statemachine::Machine>> machines;
  for (const char text : {'a', 'b', 'c'}) {
    const std::string begin = counting_bundle();
    machines.push_back(
        load(begin + std::string(limits::kMachineBundleBytesMax - begin.size(), text)));
  }
  for (const auto& machine : machines) {
    ASSERT_NE(machine, nullptr);
    const auto answer = step(*machine, "1");
    ASSERT_TRUE(answer.has_value()) << answer.error().message();
  }
}

TEST_F(RemoteMachineTest, IsAskedByManyAtOnce) {
  const auto machine = load(counting_bundle());
  ASSERT_NE(machine, nullptr);
  std::vector<io::Task<Result<statemachine::Step>>> tasks;
  for (int number = 0; number < 40; ++number) {
    tasks.push_back(
        machine->step(std::to_string(number), std::string(kEvent), {}, asker_of("team")));
  }

  const auto answers = rig->await(io::all(rig->loop(), std::move(tasks)));

  for (std::size_t number = 0; number < answers.size(); ++number) {
    ASSERT_TRUE(answers[number].has_value()) << answers[number].error().message();
    EXPECT_EQ(answers[number]->state, std::to_string(number + 1));
  }
}

TEST_F(RemoteMachineTest, EndsWhenItIsTold) {
  const auto machine = load("globalThis.handle_event = () => { while (true) {} }",
                            {.cpu_time_max = std::chrono::minutes(10)});
  ASSERT_NE(machine, nullptr);
  std::stop_source stop;
  const auto timer = rig->loop().after(milliseconds(300), [&stop] { stop.request_stop(); });

  const auto answer =
      rig->await(machine->step("{}", std::string(kEvent), stop.get_token(), asker_of("team")));

  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(name_of(answer.error().kind()), name_of(ErrorKind::Cancelled));
}

#endif

}  // namespace
}  // namespace hangar::domains
