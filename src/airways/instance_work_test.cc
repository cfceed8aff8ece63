// What becomes of a release whose instance is deleted, and of an instance that nobody may act for:
// without the flight, and after a host that stopped.
#include "airways/instance_work.h"

#include "abi/flight/evaluation.h"
#include "abi/statemachine/runtime.h"
#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/airway_instances.h"
#include "airways/binding.h"
#include "airways/conditions.h"
#include "airways/flight_modules.h"
#include "airways/instance.h"
#include "airways/live_view.h"
#include "airways/lua_rules.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/platform.h"
#include "airways/readiness.h"
#include "airways/release_work.h"
#include "airways/request_view.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/tracker.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "gateway/authorizer.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/object.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
#include "output/log_files.h"
#include "output/log_writer.h"
#include "reconcile/recording.h"
#include "recorder/record.h"
#include "simulation/api_server.h"
#include "simulation/statuses.h"
#include "simulation/test_host.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::minutes;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";
const std::string kWidgets = "/apis/test.example/v1/namespaces/default/widgets";

// What the controllers of instances share on one host, without webhooks.
struct Parts {
  Parts(simulation::TestHost& on, wasm::GuestRig& guests, const abi::flight::Runtime& runtime,
        abi::statemachine::Runtime& machines)
      : host(on),
        store(modules::ModuleStore::open(directory.path() / "modules").value()),
        fetcher({.loop = host.loop, .workers = host.workers, .client = host.http, .store = *store}),
        modules({.sources = {.loop = host.loop,
                             .workers = host.workers,
                             .fetcher = fetcher,
                             .store = *store},
                 .code_cache = guests.cache(),
                 .runtime = runtime}),
        lua(host.loop, host.workers, machines),
        platform{.shared = host.platform,
                 .view = view,
                 .tracker = tracker,
                 .modules = modules,
                 .store = *store,
                 .runtime = runtime,
                 .custom_readiness = readiness,
                 .lua = lua,
                 .authorizer = authorizer,
                 .acting_by_default = {},
                 .evaluations = host.metrics.counter("hangar_evaluations_total", "Runs."),
                 .evaluation_cpu_seconds = host.metrics.histogram(
                     "hangar_evaluation_cpu_seconds", "Of each run.", latency_buckets()),
                 .host_version = "1",
                 .namespace_ = "kube-system",
                 .output = output,
                 .recorder = recorder,
                 .pod = "",
                 .means = {},
                 .webhook_address = [](std::string_view) { return std::nullopt; },
                 .check_protection = [](std::string_view) { return Result<>(); }} {}

  simulation::TestHost& host;
  wasm::TemporaryDirectory directory;
  wasm::TemporaryDirectory printed;
  Tracker tracker;
  LiveView view{host.cache,
                host.discovery,
                host.client,
                {.on_child =
                     [this](const ResourceRef& child, Change change, const kube::Object& object) {
                       const std::optional<ResourceRef> instance = instance_of(object.to_value());
                       if (instance && instances) {
                         instances->controller().on_child(instance->key(), child, change, object);
                       }
                     },
                 .on_external = [](const ResourceRef&, Change, const kube::Object&) {}}};
  std::unique_ptr<modules::ModuleStore> store;
  modules::Fetcher fetcher;
  FlightModules modules;
  const CustomReadiness readiness;
  LuaRules lua;
  gateway::Authorizer authorizer{host.client};
  output::LogWriter output{host.loop, output::LogFiles(printed.path()), Log()};
  reconcile::GuestRecorder recorder{nullptr, recorder::Contract::Airway};
  const Platform platform;
  std::unique_ptr<AirwayInstances> instances;
};

class InstanceWorkTest : public simulation::HostTest {
 public:
  static void SetUpTestSuite() {
    rig = std::make_unique<wasm::GuestRig>();
    images = std::make_unique<wasm::TemporaryDirectory>();
    runtime = std::make_unique<abi::flight::Runtime>(rig->engine());
    machines = std::make_unique<abi::statemachine::Runtime>(rig->cache(), images->path());
  }
  static void TearDownTestSuite() {
    machines.reset();
    runtime.reset();
    images.reset();
    rig.reset();
  }

 protected:
  InstanceWorkTest() {
    EXPECT_EQ(send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                   "{metadata: {name: widgets.test.example}, spec: {group: test.example, "
                   "scope: Namespaced, names: {plural: widgets, kind: Widget}, "
                   "versions: [{name: v1, subresources: {status: {}}}]}}")
                  .status,
              201);
  }
  ~InstanceWorkTest() override { stop(); }

  // The controller of the instances, as an Airway runs it; without a flight.
  void start(std::optional<Acting> acting = Acting{}) {
    parts_ = std::make_unique<Parts>(*host_, *rig, *runtime, *machines);
    parts_->instances = std::make_unique<AirwayInstances>(parts_->platform, "widgets.test.example",
                                                          kube::Resource{.group = "test.example",
                                                                         .version = "v1",
                                                                         .plural = "widgets",
                                                                         .kind = "Widget",
                                                                         .namespaced = true});
    if (acting) parts_->instances->act_as(*acting);
    parts_->instances->start();
  }
  void stop() {
    if (!parts_) return;
    await(parts_->instances->stop());
    await(parts_->output.flush());
    parts_.reset();
  }
  // Another host takes over, which knows no more than the cluster does.
  void restart() {
    stop();
    host_.reset();
    host_ = std::make_unique<simulation::TestHost>("next");
    start();
  }

  // An instance with the release of `name`, as an earlier host left it.
  void make_instance_with_release_of(std::string_view name) {
    make_instance("[yoke.cd/mayday.flight]");
    const Release release = release_of(*instance());
    Instance memory;
    memory.history.emplace(host_->workers, host_->client, release);
    EXPECT_TRUE(await(memory.history->load({})).has_value());
    RequestView view(host_->client);
    const CustomReadiness readiness;
    ReleaseWork work(
        {.loop = host_->loop, .view = view, .client = host_->client, .custom_readiness = readiness},
        host_->client, release, memory, {.rehearse = Rehearse::Nothing}, {});
    Stages stages(1);
    stages.front().push_back(
        yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + std::string(name) + "}}"));
    EXPECT_TRUE(await(work.prepare(stages)).has_value());
    const Result<Progress> applied =
        await(work.apply(stages, Source{.url = "oci://registry/app:v1", .checksum = "abc"}));
    ASSERT_TRUE(applied.has_value()) << applied.error().message();
    EXPECT_TRUE(applied->done) << applied->waiting_for;
    EXPECT_TRUE(await(memory.history->activate(io::Loop::wall_now(), {}, {})).has_value());
    ASSERT_TRUE(map(name) != nullptr);
    ASSERT_THAT(server_.all("secrets"), Not(IsEmpty())) << "the history";
    writes_.clear();
  }
  void make_instance(std::string_view finalizers) {
    EXPECT_EQ(send("POST", kWidgets,
                   "{apiVersion: test.example/v1, kind: Widget, metadata: {name: web, "
                   "finalizers: " +
                       std::string(finalizers) + "}, spec: {}}")
                  .status,
              201);
  }
  void remove_instance() { EXPECT_EQ(send("DELETE", kWidgets + "/web").status, 200); }

  [[nodiscard]] const json::Value* instance() const {
    return server_.find("widgets.test.example", "default", "web");
  }
  [[nodiscard]] const json::Value* map(std::string_view name) const {
    return server_.find("configmaps", "default", name);
  }
  // The message of the instance's Ready condition.
  [[nodiscard]] std::string ready_message() const {
    const json::Value* const status =
        instance() == nullptr ? nullptr : json::find(*instance(), {"status"});
    const json::Value* const condition =
        status == nullptr ? nullptr : find_condition(*status, kReady);
    return condition == nullptr ? "" : std::string(json::string_at(*condition, {"message"}));
  }
  [[nodiscard]] bool has_event(std::string_view reason) const {
    return std::ranges::any_of(server_.all("events"), [reason](const json::Value* event) {
      return json::string_at(*event, {"reason"}) == reason;
    });
  }
  void run_until_instance_is_gone() {
    run_until([this] {
      server_.collect_garbage(time_.wall_now());
      return instance() == nullptr;
    });
  }
  // Requests as a service account are refused, because the host may not act as it.
  void forbid_impersonation() {
    on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
      if (!request.impersonated) return std::nullopt;
      return simulation::status(403, "Forbidden",
                                "serviceaccounts \"deployer\" is forbidden: User \"host\" cannot "
                                "impersonate resource \"serviceaccounts\"");
    };
  }

  inline static std::unique_ptr<wasm::GuestRig> rig;
  inline static std::unique_ptr<wasm::TemporaryDirectory> images;
  inline static std::unique_ptr<abi::flight::Runtime> runtime;
  inline static std::unique_ptr<abi::statemachine::Runtime> machines;

  std::unique_ptr<Parts> parts_;
};

TEST_F(InstanceWorkTest, RemovesTheReleaseOfADeletedInstanceWithoutItsFlight) {
  make_instance_with_release_of("a");
  start();
  run_for(minutes(1));
  EXPECT_TRUE(map("a") != nullptr) << "nothing is done without a flight while it lives";

  remove_instance();
  run_until_instance_is_gone();

  EXPECT_TRUE(map("a") == nullptr);
  EXPECT_THAT(server_.all("secrets"), IsEmpty()) << "the history";
}

TEST_F(InstanceWorkTest, WaitsUntilTheReleaseIsGone) {
  make_instance_with_release_of("a");
  start();
  remove_instance();

  // The object stays until the garbage collector has done its work.
  run_for(minutes(1));

  ASSERT_TRUE(instance() != nullptr);
  EXPECT_THAT(server_.all("secrets"), Not(IsEmpty()));
  EXPECT_EQ(std::ranges::count(writes_, "DELETE " + kMaps + "/a"), 1) << "deleted once";
  run_until_instance_is_gone();
}

TEST_F(InstanceWorkTest, SaysWhyAReleaseCannotBeRemoved) {
  make_instance_with_release_of("a");
  on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "DELETE" || path_of(request) != kMaps + "/a") return std::nullopt;
    return simulation::status(403, "Forbidden", "a policy protects it");
  };
  start();
  remove_instance();

  run_until([this] { return ready_message().contains("a policy protects it"); });
  EXPECT_THAT(ready_message(), HasSubstr("cannot remove the flight's resources"));
  run_until([this] { return has_event("RemovalFailed"); });
  EXPECT_TRUE(map("a") != nullptr);

  on_arrival_ = nullptr;
  run_until_instance_is_gone();
  EXPECT_TRUE(map("a") == nullptr);
}

TEST_F(InstanceWorkTest, ARemovalGoesOnWhenItsStatusCannotBeWritten) {
  make_instance_with_release_of("a");
  on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (path_of(request) != kWidgets + "/web/status") return std::nullopt;
    return failure();
  };
  start();

  remove_instance();

  run_until_instance_is_gone();
  EXPECT_TRUE(map("a") == nullptr);
}

TEST_F(InstanceWorkTest, TheNextHostRemovesWhatOneThatHasLostTheLeaseLeaves) {
  make_instance_with_release_of("a");
  start();
  run_until([this] { return parts_->instances->controller().is_synced(); });
  host_->stop_leading();
  remove_instance();

  run_for(minutes(1));
  EXPECT_THAT(writes_, IsEmpty());
  EXPECT_TRUE(map("a") != nullptr);

  restart();
  run_until_instance_is_gone();
  EXPECT_TRUE(map("a") == nullptr);
}

TEST_F(InstanceWorkTest, AHostThatStopsInTheMiddleOfARemovalLosesNothing) {
  make_instance_with_release_of("a");
  // The object is deleted, and the host does not learn of it.
  on_next("DELETE", "/configmaps/a", [this](const ApiRequest& request) -> std::optional<ApiAnswer> {
    (void)server_.handle(request, time_.wall_now());
    host_->stop_leading();
    return failure();
  });
  start();
  remove_instance();
  run_until([this] { return json::find(*map("a"), {"metadata", "deletionTimestamp"}) != nullptr; });
  run_for(minutes(1));
  EXPECT_TRUE(instance() != nullptr);

  restart();

  run_until_instance_is_gone();
  EXPECT_TRUE(map("a") == nullptr);
  EXPECT_THAT(server_.all("secrets"), IsEmpty());
}

TEST_F(InstanceWorkTest, NeedsNoActorWhereNothingWasMade) {
  make_instance("[yoke.cd/mayday.flight]");
  start(std::nullopt);

  remove_instance();

  run_until_instance_is_gone();
}

TEST_F(InstanceWorkTest, SaysThatTheHostMayNotActInTheNamespaceBeforeItClaimsTheInstance) {
  forbid_impersonation();
  make_instance("[]");
  start(Acting{.name = "deployer"});

  parts_->instances->bind(std::make_shared<const Binding>(
      Binding{.terms = {.flight = {.reference = "https://modules.example/app.wasm"}},
              .airway = std::make_shared<const Airway>()}));
  run_until([this] { return ready_message().contains("hangar tenant allow default"); });

  EXPECT_TRUE(json::array_at(*instance(), {"metadata", "finalizers"}) == nullptr);
}

TEST_F(InstanceWorkTest, AReleaseStaysWhereTheHostMayNotAct) {
  make_instance_with_release_of("a");
  forbid_impersonation();
  start(Acting{.name = "deployer"});

  remove_instance();
  run_until([this] { return ready_message().contains("hangar tenant allow default"); });

  run_for(minutes(1));
  EXPECT_TRUE(instance() != nullptr);
  EXPECT_TRUE(map("a") != nullptr);

  on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (!request.impersonated || request.method != "DELETE") return std::nullopt;
    return simulation::status(403, "Forbidden",
                              "User \"system:serviceaccount:default:deployer\" cannot delete it");
  };
  run_until([this] {
    return ready_message().contains("the flight acts as the ServiceAccount deployer");
  });
  EXPECT_TRUE(map("a") != nullptr);
}

// Nobody can act in a namespace that is being deleted, and nobody needs to.
TEST_F(InstanceWorkTest, AnInstanceGoesWithItsNamespaceWhereTheHostMayNotAct) {
  make_instance_with_release_of("a");
  EXPECT_EQ(send("PATCH", "/api/v1/namespaces/default",
                 "{metadata: {finalizers: [example.com/contents]}}")
                .status,
            200);
  EXPECT_EQ(send("DELETE", "/api/v1/namespaces/default").status, 200);
  forbid_impersonation();
  start(Acting{.name = "deployer"});

  remove_instance();

  run_until([this] { return instance() == nullptr; });
  EXPECT_TRUE(map("a") != nullptr) << "it is deleted with the namespace";
}

}  // namespace
}  // namespace hangar::airways
