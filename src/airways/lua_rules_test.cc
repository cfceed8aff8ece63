#include "airways/lua_rules.h"

#include "abi/statemachine/runtime.h"
#include "airways/readiness.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/all.h"
#include "io/task.h"
#include "json/value.h"
#include "json/yaml.h"
#include "wasm/engine.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using State = Readiness::State;

constexpr LuaRules::Limits kShort{.cpu_time_max = std::chrono::milliseconds(200)};

std::shared_ptr<const LuaScript> script_of(std::string text) {
  return std::make_shared<const LuaScript>(LuaScript{.name = "Widget.rules.dev",
                                                     .source = "host/rules",
                                                     .text = std::move(text),
                                                     .digest = "digest"});
}

std::shared_ptr<const LuaScript> body(std::string_view text) {
  return script_of("return function(resource)\n" + std::string(text) + "\nend");
}

const json::Value& widget() {
  static const json::Value kWidget =
      json::parse_yaml(
          "{apiVersion: rules.dev/v1, kind: Widget, metadata: {name: it, generation: 3}, "
          "status: {ready: true, text: \"quoted \\\" and \\u00e9\", observedGeneration: 3}}")
          .value();
  return kWidget;
}

class LuaRulesTest : public testing::Test {
 public:
  // One rig for all tests: the interpreter is compiled once.
  static void SetUpTestSuite() {
    rig = std::make_unique<wasm::GuestRig>(wasm::Engine::Options{.memory = &accounts});
    images = std::make_unique<wasm::TemporaryDirectory>();
    machines = std::make_unique<abi::statemachine::Runtime>(rig->cache(), images->path());
    rules = std::make_unique<LuaRules>(rig->loop(), rig->workers(), *machines);
    short_rules = std::make_unique<LuaRules>(rig->loop(), rig->workers(), *machines, kShort);
    ASSERT_TRUE(rig->await(short_rules->prepare({})).has_value());
  }
  static void TearDownTestSuite() {
    short_rules.reset();
    rules.reset();
    machines.reset();
    images.reset();
    rig.reset();
  }

  static LuaVerdict judge(const std::shared_ptr<const LuaScript>& script, LuaRules& by = *rules,
                          const budget::Consumer& consumer = budget::unnamed_consumer()) {
    Result<LuaVerdict> verdict = rig->await(by.judge(script, widget(), consumer, {}));
    EXPECT_TRUE(verdict.has_value()) << verdict.error().message();
    return verdict ? *std::move(verdict) : LuaVerdict{};
  }
  // Fails the test unless the script ends with a failure whose reason contains `text`.
  static void expect_failure(const std::shared_ptr<const LuaScript>& script,
                             const std::string& text) {
    SCOPED_TRACE(script->text);
    const LuaVerdict verdict = judge(script);
    EXPECT_EQ(verdict.readiness.state, State::Failed);
    EXPECT_THAT(verdict.readiness.why,
                AllOf(StartsWith("readiness rule Widget.rules.dev of ConfigMap host/rules: "),
                      HasSubstr(text), Not(HasSubstr("\n"))));
    EXPECT_FALSE(verdict.is_cut);
  }

 protected:
  inline static budget::Accounts accounts{{.host_bytes_max = 1024 * limits::kMiB}};
  inline static std::unique_ptr<wasm::GuestRig> rig;
  inline static std::unique_ptr<wasm::TemporaryDirectory> images;
  inline static std::unique_ptr<abi::statemachine::Runtime> machines;
  inline static std::unique_ptr<LuaRules> rules;
  inline static std::unique_ptr<LuaRules> short_rules;
};

TEST_F(LuaRulesTest, DecideByTheResource) {
  EXPECT_TRUE(judge(body("return resource.status.ready")).readiness.is_ready());
  EXPECT_TRUE(
      judge(body("return resource.status.observedGeneration == resource.metadata.generation"))
          .readiness.is_ready());
  EXPECT_TRUE(
      judge(body("return resource.status.text == 'quoted \" and \xc3\xa9'")).readiness.is_ready());

  const LuaVerdict verdict = judge(body("return resource.kind == 'Gadget'"));
  EXPECT_EQ(verdict.readiness.state, State::NotReady);
  EXPECT_EQ(verdict.readiness.why,
            "readiness rule Widget.rules.dev of ConfigMap host/rules is not met");
  EXPECT_EQ(judge(body("return nil")).readiness.state, State::NotReady);
}

TEST_F(LuaRulesTest, SayWhatIsWrongWithAScriptAndWhere) {
  expect_failure(script_of("return function("), "failed to load lua script: Widget.rules.dev");
  expect_failure(script_of(""), "expected script to return a function but got: nil");
  expect_failure(body("\nreturn resource.absent.ready"), "Widget.rules.dev:3: attempt to index");
  expect_failure(body("error('no\\nwidget')"), "Widget.rules.dev:2: no widget");
  expect_failure(body("return 'true'"), "expected result to be a boolean but got: string");
  expect_failure(body("return io.open('/etc/passwd')"), "attempt to index");
  expect_failure(body("local function again() return 1 + again() end return again()"),
                 "stack overflow");
}

TEST_F(LuaRulesTest, TakeNothingThatIsPrintedForAnAnswer) {
  EXPECT_EQ(judge(body("print('{\"ready\":true}') return false")).readiness.state, State::NotReady);
}

TEST_F(LuaRulesTest, EndWhenTheirTimeIsUp) {
  const LuaVerdict verdict = judge(body("while true do end"), *short_rules);

  EXPECT_EQ(verdict.readiness.state, State::Failed);
  EXPECT_THAT(verdict.readiness.why,
              HasSubstr("execution timeout (200ms of processor time) exceeded"));
  EXPECT_TRUE(verdict.is_cut);
}

TEST_F(LuaRulesTest, EndWhenTheirMemoryIsFull) {
  // Each of them exhausts the memory in another way.
  for (const std::string_view text :
       {"local all = {} while true do all[#all + 1] = string.rep('x', 100000) end",
        "local text = 'x' while true do text = text .. text end"}) {
    SCOPED_TRACE(text);
    const LuaVerdict verdict = judge(body(text));
    EXPECT_EQ(verdict.readiness.state, State::Failed);
    EXPECT_THAT(verdict.readiness.why, HasSubstr("it needs more than 64 MiB of memory"));
    EXPECT_TRUE(verdict.is_cut);
  }
  // The stack of the program or of the engine overflows first.
  EXPECT_EQ(judge(script_of("return " + std::string(200'000, '('))).readiness.state, State::Failed);
}

TEST_F(LuaRulesTest, SeeNothingOfEachOther) {
  EXPECT_TRUE(judge(script_of("kept = 1 string.kept = 1 return function() return kept == 1 end"))
                  .readiness.is_ready());
  EXPECT_TRUE(judge(body("return kept == nil and string.kept == nil")).readiness.is_ready());
}

// Accounts show the memory of an instance that waits for the next answer.
TEST_F(LuaRulesTest, FindAWarmInstance) {
  const auto held_after = [](const std::string& namespace_name, std::string_view text,
                             LuaRules& by) {
    const budget::Consumer consumer{.tenant = budget::Tenant::of_namespace(namespace_name),
                                    .name = "w"};
    judge(body(text), by, consumer);
    return accounts.held_bytes(consumer.tenant);
  };
  const std::uint64_t kept = held_after("warm", "return resource.status.ready", *rules);
  EXPECT_GT(kept, 0U);
  EXPECT_EQ(held_after("warm", "return resource.status.text", *rules), kept) << "the same one";
  EXPECT_EQ(held_after("warm", "return error('x')", *rules), kept) << "also after an error of Lua";

  EXPECT_EQ(held_after("cold", "while true do end", *short_rules), 0U);
  EXPECT_EQ(held_after("cold", "return #string.rep('x', 16000000) > 0", *rules), 0U);
}

TEST_F(LuaRulesTest, GoOnWhileAnotherOneIsEndless) {
  std::vector<io::Task<Result<LuaVerdict>>> tasks;
  tasks.push_back(
      short_rules->judge(body("while true do end"), widget(), budget::unnamed_consumer(), {}));
  tasks.push_back(rules->judge(body("return true"), widget(), budget::unnamed_consumer(), {}));
  const auto gathered = [](std::vector<io::Task<Result<LuaVerdict>>> all)
      -> io::Task<std::vector<Result<LuaVerdict>>> {
    co_return co_await io::all(rig->loop(), std::move(all));
  };
  const std::vector<Result<LuaVerdict>> verdicts = rig->await(gathered(std::move(tasks)));

  ASSERT_TRUE(verdicts[0] && verdicts[1]);
  EXPECT_EQ(verdicts[0]->readiness.state, State::Failed);
  EXPECT_TRUE(verdicts[1]->readiness.is_ready()) << verdicts[1]->readiness.why;
}

TEST_F(LuaRulesTest, EndWhenTheyAreTold) {
  std::stop_source stop;
  stop.request_stop();

  const Result<LuaVerdict> verdict = rig->await(rules->judge(
      body("while true do end"), widget(), budget::unnamed_consumer(), stop.get_token()));

  ASSERT_FALSE(verdict.has_value());
  EXPECT_EQ(verdict.error().kind(), ErrorKind::Cancelled);
}

}  // namespace
}  // namespace hangar::airways
