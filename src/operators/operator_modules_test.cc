#include "operators/operator_modules.h"

#include "abi/kube_runtime/local_guest.h"
#include "base/base64.h"
#include "base/result.h"
#include "http/client.h"
#include "io/all.h"
#include "io/task.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/code_cache.h"
#include "wasm/test_guests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::operators {
namespace {

// Gives the same content for every ConfigMap.
class SameConfigMap final : public modules::ConfigMapReader {
 public:
  [[nodiscard]] io::Task<Result<modules::ConfigMapContent>> read(
      modules::ConfigMapAccess /*access*/, std::string name, std::stop_token /*stop*/) override {
    if (name == stopped_name) stop.request_stop();
    co_return content_;
  }

  void set(const std::string& guest) {
    content_ = {.binary_data = {{"m.wasm", base64_encode(*wasm::GuestRig::bytes_of(guest))}},
                .revision = fmt::format("1/{}", ++revision_)};
  }

  // Stops the task that reads the ConfigMap of this name, when the task has it.
  std::string stopped_name;
  std::stop_source stop;

 private:
  modules::ConfigMapContent content_;
  int revision_ = 0;
};

class OperatorModulesTest : public testing::Test {
 public:
  using Prepared = Result<OperatorModule>;

  static void SetUpTestSuite() { rig = std::make_unique<wasm::GuestRig>(); }
  static void TearDownTestSuite() { rig.reset(); }

  OperatorModulesTest() { EXPECT_TRUE(cache_.open().has_value()); }
  ~OperatorModulesTest() override {
    EXPECT_TRUE(rig->await([](modules::Supply& supply) -> io::Task<bool> {
      co_await supply.stop();
      co_return true;
    }(modules_.supply())));
  }

  io::Task<Prepared> preparing(const std::string& name, std::stop_token stop = {}) {
    return modules_.prepare(modules::Requester::in_namespace("team"),
                            {.reference = "configmap://team/" + name}, std::move(stop));
  }
  Prepared prepare(const std::string& name) { return rig->await(preparing(name)); }

  inline static std::unique_ptr<wasm::GuestRig> rig;
  wasm::TemporaryDirectory directory_;
  SameConfigMap config_map_;
  http::Client client_{rig->loop()};
  std::unique_ptr<modules::ModuleStore> store_ =
      modules::ModuleStore::open(directory_.path() / "modules").value();
  modules::Fetcher fetcher_{{.loop = rig->loop(),
                             .workers = rig->workers(),
                             .client = client_,
                             .store = *store_,
                             .config_maps = &config_map_}};
  wasm::CodeCache cache_{
      rig->engine(),
      {.directory = directory_.path() / "code", .compile_program = HANGAR_COMPILE_PROGRAM}};
  abi::kube_runtime::Runtime runtime_{rig->engine()};
  OperatorModules modules_{{.sources = {.loop = rig->loop(),
                                        .workers = rig->workers(),
                                        .fetcher = fetcher_,
                                        .store = *store_},
                            .code_cache = cache_,
                            .runtime = runtime_,
                            .image_directory = directory_.path() / "images"}};
};

TEST_F(OperatorModulesTest, OneModuleIsMadeOnceForAllWhoWantItAtTheSameTime) {
  config_map_.set("kube_runtime_journal");
  std::vector<io::Task<Prepared>> tasks;
  for (const std::string name : {"a", "a", "b"})
    tasks.push_back(preparing(name));

  const std::vector<Prepared> prepared = rig->await(io::all(rig->loop(), std::move(tasks)));

  for (const Prepared& each : prepared) {
    ASSERT_TRUE(each.has_value()) << each.error().message();
    EXPECT_EQ(each->code, prepared.front()->code);
  }
  EXPECT_EQ(prepared.back()->resolved, "configmap://team/b");
  EXPECT_EQ(cache_.compiled_count(), 1U);
}

TEST_F(OperatorModulesTest, WhoIsStoppedDoesNotStopOthers) {
  config_map_.set("kube_runtime_journal");
  config_map_.stopped_name = "a";
  std::vector<io::Task<Prepared>> tasks;
  tasks.push_back(preparing("a", config_map_.stop.get_token()));
  tasks.push_back(preparing("b"));

  const std::vector<Prepared> prepared = rig->await(io::all(rig->loop(), std::move(tasks)));

  const Prepared& other = prepared.back();
  ASSERT_TRUE(other.has_value()) << other.error().message();
  // The first task that has the bytes compiles them; all tasks share the result.
  const Prepared& stopped = prepared.front();
  if (stopped.has_value()) {
    EXPECT_EQ(stopped->code, other->code);
  } else {
    EXPECT_EQ(stopped.error().kind(), ErrorKind::Cancelled);
  }
}

TEST_F(OperatorModulesTest, WhoIsStoppedLeavesNothingBehind) {
  config_map_.set("kube_runtime_journal");
  config_map_.stopped_name = "a";

  const Prepared stopped = rig->await(preparing("a", config_map_.stop.get_token()));

  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().kind(), ErrorKind::Cancelled);
  EXPECT_TRUE(prepare("a").has_value());
}

TEST_F(OperatorModulesTest, AModuleInUseIsTheSameObjectWhateverItsReference) {
  config_map_.set("kube_runtime_journal");
  const Prepared first = prepare("a");
  ASSERT_TRUE(first.has_value()) << first.error().message();

  EXPECT_EQ(prepare("a")->code, first->code);
  EXPECT_EQ(prepare("b")->code, first->code);
}

TEST_F(OperatorModulesTest, AReferenceThatMovedLeadsToTheOtherModule) {
  config_map_.set("kube_runtime_journal");
  const Prepared first = prepare("a");
  config_map_.set("kube_runtime_exit_in_wakeup");

  const Prepared second = prepare("a");

  ASSERT_TRUE(second.has_value()) << second.error().message();
  EXPECT_NE(second->code->digest(), first->code->digest());
  EXPECT_EQ(prepare("a")->code, second->code);
}

TEST_F(OperatorModulesTest, AModuleThatNobodyHasIsMadeAgain) {
  config_map_.set("kube_runtime_journal");
  const auto digest = prepare("a")->code->digest();

  const Prepared again = prepare("a");

  ASSERT_TRUE(again.has_value()) << again.error().message();
  EXPECT_EQ(again->code->digest(), digest);
  EXPECT_EQ(cache_.compiled_count(), 1U);
}

TEST_F(OperatorModulesTest, AModuleOfAnotherContractIsRefusedAndNotKept) {
  config_map_.set("wrong_imports");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Prepared refused = prepare("a");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput) << refused.error().message();
  }
  config_map_.set("kube_runtime_journal");
  EXPECT_TRUE(prepare("a").has_value());
}

}  // namespace
}  // namespace hangar::operators
