// What an action does to a cluster, also when it is repeated after a crash.
#include "workflows/executor.h"

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "reconcile/recording.h"
#include "simulation/api_server.h"
#include "simulation/statuses.h"
#include "simulation/test_host.h"
#include "workflows/actions.h"
#include "workflows/decision.h"
#include "workflows/ledger.h"
#include "workflows/limits.h"
#include "workflows/workflow.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::workflows {
namespace {

using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Done = Executor::Done;
using Failure = Decision::Failure;
using Pinned = Executor::Pinned;
using Waits = Executor::Waits;

const Owner kOwner{.key = {.namespace_ = "team", .name = "db"}, .uid = "u-db", .run = "r1"};
const kube::Resource kDeployment{.group = "apps",
                                 .version = "v1",
                                 .plural = "deployments",
                                 .kind = "Deployment",
                                 .namespaced = true};
const std::string kMaps = "/api/v1/namespaces/team/configmaps";
const std::string kDeployments = "/apis/apps/v1/namespaces/team/deployments";
const std::string kJobs = "/apis/batch/v1/namespaces/team/jobs";
const std::string kBindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings";

constexpr std::string_view kApplySettings =
    "{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: '1'}}}";
constexpr std::string_view kWaitForWeb =
    "{apiVersion: apps/v1, kind: Deployment, name: web, condition: Available}";
constexpr std::string_view kRunMigrate = "{name: migrate, image: tool}";

// The rest of an assignment.
struct Given {
  std::int64_t id = 3;
  bool is_fresh = false;
  std::string target = {};
  std::vector<OwnedResource> resources = {};
  std::vector<std::int64_t> others = {};
};

// A watch that shows nothing.
class Blind final : public kube::Cache::Subscription {
 public:
  bool is_synced() const override { return false; }
  kube::ObjectPtr get(const kube::ObjectKey&) const override { return nullptr; }
  std::vector<kube::ObjectPtr> list(std::string_view) const override { return {}; }
  std::vector<kube::ObjectPtr> owned_by(std::string_view) const override { return {}; }
  std::string_view resource_version() const override { return ""; }
  io::Task<Result<>> wait_synced(std::stop_token) override { co_return Result<>(); }
  std::optional<Error> last_error() const override { return std::nullopt; }
};

std::string describe(const Result<Executor::Ended>& ended) {
  if (!ended) return "an error: " + ended.error().message();
  if (const auto* const failure = std::get_if<Failure>(&*ended)) return failure->message;
  if (const auto* const waits = std::get_if<Waits>(&*ended)) return "waits: " + waits->what;
  return std::holds_alternative<Done>(*ended) ? "done" : "pinned";
}

// The result, which is expected to be of that kind.
template <class T>
T expect(Result<Executor::Ended> ended) {
  T* const found = ended ? std::get_if<T>(&*ended) : nullptr;
  EXPECT_TRUE(found != nullptr) << describe(ended);
  return found == nullptr ? T{} : std::move(*found);
}

class ExecutorTest : public simulation::HostTest {
 protected:
  ExecutorTest() {
    EXPECT_EQ(send("POST", "/api/v1/namespaces", "{metadata: {name: team}}").status, 201);
    EXPECT_EQ(send("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles",
                   "{metadata: {name: all}, rules: "
                   "[{verbs: ['*'], apiGroups: ['*'], resources: ['*']}]}")
                  .status,
              201);
    EXPECT_EQ(send("POST", kBindings,
                   "{metadata: {name: all}, roleRef: {kind: Role, name: all}, "
                   "subjects: [{kind: ServiceAccount, namespace: team, name: deployer}]}")
                  .status,
              201);
  }

  // The workflow's ServiceAccount has no rights any more.
  void withdraw_rights() { EXPECT_EQ(send("DELETE", kBindings + "/all").status, 200); }
  void make(const std::string& collection, std::string_view manifest) {
    EXPECT_EQ(send("POST", collection, manifest).status, 201);
  }
  void set_status(const std::string& object, std::string_view status_text) {
    EXPECT_EQ(
        send("PATCH", object + "/status", "{status: " + std::string(status_text) + "}").status,
        200);
  }
  [[nodiscard]] const json::Value* map(std::string_view name) const {
    return server_.find("configmaps", "team", name);
  }
  // Empty: there is no such object.
  [[nodiscard]] std::string uid_of(std::string_view collection, std::string_view name) const {
    const json::Value* const object = server_.find(collection, "team", name);
    return object == nullptr ? "" : std::string(json::string_at(*object, {"metadata", "uid"}));
  }
  static OwnedResource config_map(std::string name) {
    return {
        .api_version = "v1", .kind = "ConfigMap", .namespace_ = "team", .name = std::move(name)};
  }

  static PendingAction action(std::string type, json::Value params, const Given& given) {
    return {.id = given.id,
            .type = std::move(type),
            .params = std::move(params),
            .requested_at = *parse_rfc3339("2026-04-08T12:00:00Z"),
            .target = given.target};
  }
  Assignment assignment(const PendingAction& pending, const Given& given) {
    return {.owner = kOwner,
            .service_account = "deployer",
            .action = pending,
            .plan = plan_action(kOwner, pending).value(),
            .is_fresh = given.is_fresh,
            .resources = given.resources,
            .others = given.others,
            .recording = recording_};
  }
  Result<Executor::Ended> execute(std::string type, std::string_view params, Given given = {}) {
    const PendingAction pending = action(std::move(type), yaml(params), given);
    return await(executor_.execute(assignment(pending, given), {}));
  }
  void run_until_woken() {
    run_until([this] { return !woken_.empty(); });
    woken_.clear();
  }

  std::vector<kube::ObjectKey> woken_;
  Watches watches_{
      host_->cache,
      {.child_selector = std::string(kUidLabel), .child_detail = kube::Detail::Metadata},
      {.on_object =
           [this](const reconcile::SingleObject&, const kube::Delta*,
                  const std::vector<kube::ObjectKey>& holders) {
             woken_.insert(woken_.end(), holders.begin(), holders.end());
           },
       .on_child = [](const kube::GroupKind&, const kube::Delta&) {}}};
  Executor executor_{host_->client, host_->discovery, watches_};
  reconcile::GuestRecorder recorder_{nullptr, recorder::Contract::Workflow};
  reconcile::GuestRecording recording_{
      recorder_, workflow_resource(),
      json::Object{{"metadata", json::Object{{"namespace", "team"}, {"name", "db"}}}}};
};

// APPLY and CREATE_... ----------------------------------------------------------------------------

TEST_F(ExecutorTest, AppliesWhatTheWorkflowOwnsAsItsServiceAccount) {
  std::vector<std::string> users;
  on_arrival_ = [&users](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method == "PATCH") {
      users.push_back(request.impersonated ? request.impersonated->user : request.caller.user);
    }
    return std::nullopt;
  };

  const Done done = expect<Done>(execute("APPLY", kApplySettings));

  EXPECT_THAT(users, ElementsAre("system:serviceaccount:team:deployer"));
  const json::Value* const made = map("settings");
  ASSERT_TRUE(made != nullptr);
  EXPECT_EQ(kube::label_of(*made, kUidLabel), kOwner.uid);
  const json::Array* const owners = json::array_at(*made, {"metadata", "ownerReferences"});
  ASSERT_TRUE(owners != nullptr);
  EXPECT_EQ(json::string_at(owners->at(0), {"uid"}), kOwner.uid);
  EXPECT_EQ(type_of(done.event), "K8S_RESOURCE_CREATED");
  EXPECT_EQ(json::string_at(done.event, {"resourceName"}), "settings");
  EXPECT_EQ(done.seen, json::string_at(*made, {"metadata", "resourceVersion"}));
}

TEST_F(ExecutorTest, AppliesOnceIfTheAnswerWasLost) {
  lose_next_answer("PATCH", "/configmaps/settings");
  EXPECT_EQ(expect<Failure>(execute("APPLY", kApplySettings, {.is_fresh = true})).kind,
            "Unavailable");
  const std::uint64_t revision = server_.revision();
  writes_.clear();

  const Done done = expect<Done>(execute("APPLY", kApplySettings));

  EXPECT_THAT(writes_, IsEmpty());
  EXPECT_EQ(server_.revision(), revision);
  EXPECT_EQ(done.seen, json::string_at(*map("settings"), {"metadata", "resourceVersion"}));
}

TEST_F(ExecutorTest, AppliesAgainForTheNextAction) {
  expect<Done>(execute("APPLY", kApplySettings, {.id = 3}));
  writes_.clear();

  expect<Done>(execute("APPLY", kApplySettings, {.id = 4}));

  EXPECT_THAT(writes_, ElementsAre("PATCH " + kMaps + "/settings"));
}

TEST_F(ExecutorTest, ReadsNothingBeforeTheFirstAttemptUnderANameOfItsOwn) {
  const auto object_reads = Contains(HasSubstr("/namespaces/team/"));
  expect<Done>(execute("CREATE_DEPLOYMENT", "{imageName: postgres}", {.is_fresh = true}));
  EXPECT_THAT(reads_, Not(object_reads));

  expect<Done>(execute("CREATE_DEPLOYMENT", "{imageName: postgres}"));

  EXPECT_THAT(reads_, object_reads) << "an earlier attempt may have made it";
  EXPECT_THAT(server_.all("deployments.apps"), SizeIs(1));
}

TEST_F(ExecutorTest, DoesNotTakeOverAnObjectThatItIsToCreate) {
  make(kDeployments, "{metadata: {name: web}, spec: {replicas: 7}}");

  const Failure failure = expect<Failure>(
      execute("CREATE_DEPLOYMENT", "{name: web, imageName: postgres}", {.is_fresh = true}));

  EXPECT_EQ(failure.reason, "AlreadyExists");
  EXPECT_TRUE(failure.is_final);
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(ExecutorTest, AppliesToAnObjectOfOthersWithoutOwningIt) {
  make(kMaps, "{metadata: {name: settings}, data: {b: '2'}}");

  expect<Done>(execute("APPLY", kApplySettings));

  const json::Value& live = *map("settings");
  EXPECT_EQ(json::string_at(live, {"data", "a"}), "1");
  EXPECT_EQ(json::string_at(live, {"data", "b"}), "2");
  EXPECT_EQ(kube::label_of(live, kUidLabel), "");
  EXPECT_EQ(kube::annotation_of(live, kNameAnnotation), "");
  EXPECT_TRUE(json::array_at(live, {"metadata", "ownerReferences"}) == nullptr);
  writes_.clear();
  expect<Done>(execute("APPLY", kApplySettings));
  EXPECT_THAT(writes_, IsEmpty()) << "the object remembers the action all the same";
}

TEST_F(ExecutorTest, TakesFieldsFromOthersOnlyIfTheMachineForcesIt) {
  make(kMaps, "{metadata: {name: settings}, data: {a: '0'}}");

  EXPECT_EQ(expect<Failure>(execute("APPLY", kApplySettings)).kind, "Conflict");
  EXPECT_EQ(json::string_at(*map("settings"), {"data", "a"}), "0");

  expect<Done>(execute("APPLY",
                       "{force: true, manifest: {apiVersion: v1, kind: ConfigMap, "
                       "metadata: {name: settings}, data: {a: '1'}}}"));
  EXPECT_EQ(json::string_at(*map("settings"), {"data", "a"}), "1");
}

TEST_F(ExecutorTest, SaysWhichServiceAccountLacksARight) {
  withdraw_rights();

  const Failure failure = expect<Failure>(execute("APPLY", kApplySettings));

  EXPECT_EQ(failure.kind, "Denied");
  EXPECT_EQ(failure.reason, "Forbidden");
  EXPECT_FALSE(failure.is_final) << "the right may be given";
  EXPECT_THAT(failure.message, HasSubstr("the ServiceAccount deployer of namespace team"));
  EXPECT_TRUE(map("settings") == nullptr);
}

TEST_F(ExecutorTest, WritesNothingAfterItsHostHasLostTheLease) {
  host_->stop_leading();

  const Failure failure = expect<Failure>(execute("APPLY", kApplySettings));

  EXPECT_EQ(failure.kind, "Unavailable");
  EXPECT_FALSE(failure.is_final) << "the next leader repeats it";
  EXPECT_TRUE(map("settings") == nullptr);
}

TEST_F(ExecutorTest, IsCancelledAndDoesNotFailWhenItsHostStops) {
  std::stop_source stop;
  stop.request_stop();
  const Given given;
  const PendingAction pending = action("APPLY", yaml(kApplySettings), given);

  const Result<Executor::Ended> ended =
      await(executor_.execute(assignment(pending, given), stop.get_token()));

  ASSERT_FALSE(ended.has_value()) << describe(ended);
  EXPECT_EQ(ended.error().kind(), ErrorKind::Cancelled);
}

// PATCH -------------------------------------------------------------------------------------------

TEST_F(ExecutorTest, PatchesOnceWhateverOthersDoToThePatchedField) {
  constexpr std::string_view kPatch =
      "{apiVersion: v1, kind: ConfigMap, name: settings, patch: {data: {a: '1'}}}";
  make(kMaps, "{metadata: {name: settings}, data: {a: '0'}}");
  expect<Done>(execute("PATCH", kPatch, {.is_fresh = true}));
  EXPECT_EQ(json::string_at(*map("settings"), {"data", "a"}), "1");
  send("PATCH", kMaps + "/settings", "{data: {a: '2'}}");

  expect<Done>(execute("PATCH", kPatch));

  EXPECT_EQ(json::string_at(*map("settings"), {"data", "a"}), "2");
}

TEST_F(ExecutorTest, FailsToPatchWhatIsMissing) {
  const Failure failure = expect<Failure>(
      execute("PATCH", "{apiVersion: v1, kind: ConfigMap, name: none, patch: {data: {a: '1'}}}"));

  EXPECT_EQ(failure.kind, "NotFound");
  EXPECT_TRUE(map("none") == nullptr);
}

// DELETE ------------------------------------------------------------------------------------------

constexpr std::string_view kDeleteSettings = "{apiVersion: v1, kind: ConfigMap, name: settings}";

TEST_F(ExecutorTest, FindsOutWhichObjectToDeleteBeforeItDeletes) {
  make(kMaps, "{metadata: {name: settings}}");

  const Pinned pinned = expect<Pinned>(execute("DELETE", kDeleteSettings));
  EXPECT_EQ(pinned.uid, uid_of("configmaps", "settings"));
  EXPECT_THAT(writes_, IsEmpty());

  expect<Done>(execute("DELETE", kDeleteSettings, {.target = pinned.uid}));
  EXPECT_TRUE(map("settings") == nullptr);
}

TEST_F(ExecutorTest, DoesNotDeleteALaterObjectOfTheSameName) {
  make(kMaps, "{metadata: {name: settings}}");
  const Pinned pinned = expect<Pinned>(execute("DELETE", kDeleteSettings));
  EXPECT_EQ(send("DELETE", kMaps + "/settings").status, 200);
  make(kMaps, "{metadata: {name: settings}, data: {made: later}}");

  expect<Done>(execute("DELETE", kDeleteSettings, {.target = pinned.uid}));

  EXPECT_TRUE(map("settings") != nullptr);
}

TEST_F(ExecutorTest, HasNothingToDeleteWhereNothingIs) {
  expect<Done>(execute("DELETE", kDeleteSettings));
  expect<Done>(execute("DELETE", kDeleteSettings, {.target = "gone-meanwhile"}));
}

// DELETE_RESOURCES --------------------------------------------------------------------------------

class DeleteResourcesTest : public ExecutorTest {
 protected:
  DeleteResourcesTest() {
    for (const char* const name : {"first", "last"}) {
      expect<Done>(execute("APPLY",
                           fmt::format("{{manifest: {{apiVersion: v1, kind: ConfigMap, "
                                       "metadata: {{name: {}}}}}}}",
                                       name),
                           {.id = 1}));
    }
    writes_.clear();
  }
  Result<Executor::Ended> remove_made() {
    return execute("DELETE_RESOURCES", "{}",
                   {.resources = {config_map("first"), config_map("last")}});
  }
};

TEST_F(DeleteResourcesTest, BeginsWithTheLastOneMade) {
  EXPECT_EQ(type_of(expect<Done>(remove_made()).event), "K8S_RESOURCES_DELETED");
  EXPECT_THAT(writes_, ElementsAre("DELETE " + kMaps + "/last", "DELETE " + kMaps + "/first"));

  writes_.clear();
  expect<Done>(remove_made());
  EXPECT_THAT(writes_, IsEmpty()) << "repeated";
}

TEST_F(DeleteResourcesTest, AFailureToDeleteOneDoesNotKeepTheOthers) {
  on_next("DELETE", "/configmaps/last", [](const ApiRequest&) { return std::optional(failure()); });

  EXPECT_EQ(expect<Failure>(remove_made()).kind, "Unavailable");
  EXPECT_TRUE(map("last") != nullptr);
  EXPECT_TRUE(map("first") == nullptr);

  expect<Done>(remove_made());
  EXPECT_TRUE(map("last") == nullptr);
}

TEST_F(DeleteResourcesTest, LeavesWhatAnotherOwnerHasMadeUnderThatName) {
  EXPECT_EQ(send("DELETE", kMaps + "/last").status, 200);
  make(kMaps, "{metadata: {name: last}}");

  expect<Done>(remove_made());

  EXPECT_TRUE(map("last") != nullptr);
  EXPECT_TRUE(map("first") == nullptr);
}

TEST_F(DeleteResourcesTest, AKindThatIsNotServedHasNoObjects) {
  expect<Done>(execute(
      "DELETE_RESOURCES", "{}",
      {.resources = {
           {.api_version = "example.com/v1", .kind = "Widget", .namespace_ = "team", .name = "w"},
           config_map("first")}}));

  EXPECT_TRUE(map("first") == nullptr);
}

TEST_F(DeleteResourcesTest, FailsWithoutTheRightToReadWhatTheWorkflowHasMade) {
  withdraw_rights();

  EXPECT_EQ(expect<Failure>(remove_made()).kind, "Denied");

  EXPECT_TRUE(map("first") != nullptr);
}

// The host reads in the account's place, and acts on nothing that it reads.
TEST_F(DeleteResourcesTest, NeedsNoRightsIfNothingIsTheWorkflows) {
  make(kMaps, "{metadata: {name: foreign}}");
  withdraw_rights();

  expect<Done>(execute("DELETE_RESOURCES", "{}",
                       {.resources = {config_map("foreign"), config_map("none")}}));

  EXPECT_TRUE(map("foreign") != nullptr);
}

// WAIT_FOR ----------------------------------------------------------------------------------------

TEST_F(ExecutorTest, WaitsForAnObjectAndItsConditionAndIsWokenByEither) {
  EXPECT_THAT(expect<Waits>(execute("WAIT_FOR", kWaitForWeb)).what,
              HasSubstr("Deployment team/web: there is none"));
  make(kDeployments, "{metadata: {name: web}}");
  run_until_woken();
  EXPECT_THAT(expect<Waits>(execute("WAIT_FOR", kWaitForWeb)).what,
              HasSubstr("the condition Available is not True"));
  set_status(kDeployments + "/web",
             "{observedGeneration: 1, conditions: [{type: Available, status: 'True'}]}");
  run_until_woken();

  EXPECT_EQ(type_of(expect<Done>(execute("WAIT_FOR", kWaitForWeb)).event), "CONDITION_MET");
}

TEST_F(ExecutorTest, WatchesAnObjectBeforeItReadsTheState) {
  std::vector<std::string> was_watched;
  on_arrival_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method == "GET" && path_of(request) == kDeployments + "/web") {
      const bool is_held = watches_.is_held(
          kOwner.key, {.resource = kDeployment, .key = {.namespace_ = "team", .name = "web"}});
      was_watched.emplace_back(is_held ? "watched" : "not watched");
    }
    return std::nullopt;
  };

  expect<Waits>(execute("WAIT_FOR", kWaitForWeb));

  EXPECT_THAT(was_watched, ElementsAre("not watched", "watched"))
      << "the first read asks for the right";
}

TEST_F(ExecutorTest, WaitsUntilAnObjectIsGone) {
  constexpr std::string_view kGone =
      "{apiVersion: apps/v1, kind: Deployment, name: web, deleted: true}";
  make(kDeployments, "{metadata: {name: web}}");
  EXPECT_THAT(expect<Waits>(execute("WAIT_FOR", kGone)).what, HasSubstr("it is still there"));

  EXPECT_EQ(send("DELETE", kDeployments + "/web").status, 200);

  expect<Done>(execute("WAIT_FOR", kGone));
}

// The time of a wake-up alone would reveal changes.
TEST_F(ExecutorTest, WatchesNothingThatTheServiceAccountMayNotRead) {
  make(kDeployments, "{metadata: {name: web}}");
  withdraw_rights();

  EXPECT_EQ(expect<Failure>(execute("WAIT_FOR", kWaitForWeb)).kind, "Denied");

  EXPECT_EQ(watches_.object_count(), 0U);
}

TEST_F(ExecutorTest, WatchesItsOwnObjectsWithTheWatchOfAllWorkflows) {
  const Given given{.resources = {config_map("settings")}};
  expect<Done>(execute("APPLY", kApplySettings, given));

  expect<Waits>(execute("WAIT_FOR",
                        "{apiVersion: v1, kind: ConfigMap, name: settings, deleted: true}", given));

  EXPECT_EQ(watches_.object_count(), 0U);
}

// The ledger lists what an action was asked to make, also if it did not.
TEST_F(ExecutorTest, AnObjectIsNotItsOwnBecauseItsLedgerSaysSo) {
  make(kMaps, "{metadata: {name: settings}}");
  const Given given{.resources = {config_map("settings")}};

  expect<Waits>(execute("WAIT_FOR",
                        "{apiVersion: v1, kind: ConfigMap, name: settings, deleted: true}", given));
  EXPECT_EQ(watches_.object_count(), 1U);

  watches_.release(kOwner.key);
  withdraw_rights();
  EXPECT_EQ(expect<Failure>(
                execute("WAIT_FOR",
                        "{apiVersion: v1, kind: ConfigMap, name: settings, deleted: true}", given))
                .kind,
            "Denied");
  EXPECT_EQ(watches_.object_count(), 0U);
}

TEST_F(ExecutorTest, LooksAgainForAKindThatIsNotServed) {
  const Waits waits =
      expect<Waits>(execute("WAIT_FOR", "{apiVersion: example.com/v1, kind: Widget, name: w}"));

  ASSERT_TRUE(waits.look_again.has_value());
  EXPECT_EQ(*waits.look_again, seconds(15));
  EXPECT_THAT(waits.problem, HasSubstr("no matches for kind \"Widget\""));
  EXPECT_EQ(
      expect<Failure>(execute("DELETE", "{apiVersion: example.com/v1, kind: Widget, name: w}"))
          .kind,
      "NotFound")
      << "only a wait expects the kind to appear";
}

TEST_F(ExecutorTest, LooksAgainWhereTheHostMayNotWatch) {
  make(kDeployments, "{metadata: {name: web}}");
  on_arrival_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.impersonated || !request.target.contains("/deployments")) return std::nullopt;
    return simulation::status(403, "Forbidden", "the host may not do that");
  };
  EXPECT_EQ(expect<Waits>(execute("WAIT_FOR", kWaitForWeb)).problem, "") << "not known yet";
  run_until_woken();

  const Waits waits = expect<Waits>(execute("WAIT_FOR", kWaitForWeb));

  ASSERT_TRUE(waits.look_again.has_value());
  EXPECT_EQ(*waits.look_again, seconds(15));
  EXPECT_THAT(waits.problem, HasSubstr("rbac.workflowResources"));
}

TEST_F(ExecutorTest, ANamespaceWatchesABoundedNumberOfObjects) {
  Watches watches([](kube::Scope, kube::Cache::Handlers) { return std::make_unique<Blind>(); },
                  {.child_selector = std::string(kUidLabel)},
                  {.on_object = [](const reconcile::SingleObject&, const kube::Delta*,
                                   const std::vector<kube::ObjectKey>&) {}});
  Executor executor(host_->client, host_->discovery, watches);
  const auto wait_for_web = [&] {
    const Given given;
    const PendingAction pending = action("WAIT_FOR", yaml(kWaitForWeb), given);
    return await(executor.execute(assignment(pending, given), {}));
  };
  const auto hold = [&watches](const kube::ObjectKey& holder, std::size_t number) {
    watches.hold(holder, {.resource = kDeployment,
                          .key = {.namespace_ = "team", .name = fmt::format("other-{}", number)}});
  };
  const kube::ObjectKey neighbour{.namespace_ = "team", .name = "neighbour"};
  for (std::size_t i = 0; i + 1 < limits::kWorkflowWatchesMax; ++i)
    hold(neighbour, i);
  for (std::size_t i = 0; i < limits::kWorkflowWatchesMax; ++i)
    hold({.namespace_ = "elsewhere", .name = "db"}, i);

  expect<Waits>(wait_for_web());
  watches.release(kOwner.key);
  hold(neighbour, limits::kWorkflowWatchesMax);

  const Failure failure = expect<Failure>(wait_for_web());
  EXPECT_EQ(failure.kind, "LimitExceeded");
  EXPECT_THAT(failure.message, HasSubstr("the workflows of namespace team watch 1024 objects"));
}

// RUN_HEALTH_CHECK --------------------------------------------------------------------------------

TEST_F(ExecutorTest, ADeploymentIsHealthyOnceItsReplicasAre) {
  constexpr std::string_view kCheck = "{deploymentName: web}";
  const Failure missing = expect<Failure>(execute("RUN_HEALTH_CHECK", kCheck));
  EXPECT_EQ(missing.kind, "NotFound");
  EXPECT_THAT(missing.message, HasSubstr("there is no Deployment team/web"));
  make(kDeployments, "{metadata: {name: web}, spec: {replicas: 1}}");
  EXPECT_THAT(expect<Waits>(execute("RUN_HEALTH_CHECK", kCheck)).what,
              HasSubstr("generation 1 is not observed yet"));
  set_status(kDeployments + "/web",
             "{observedGeneration: 1, replicas: 1, availableReplicas: 1, readyReplicas: 1, "
             "updatedReplicas: 1, conditions: [{type: Available, status: 'True'}]}");

  const Done done = expect<Done>(execute("RUN_HEALTH_CHECK", kCheck));

  EXPECT_EQ(type_of(done.event), "HEALTH_CHECK_PASSED");
  EXPECT_EQ(json::string_at(done.event, {"deploymentName"}), "web");
}

// RUN_JOB -----------------------------------------------------------------------------------------

class RunJobTest : public ExecutorTest {
 protected:
  std::string begin() {
    const Pinned pinned = expect<Pinned>(execute("RUN_JOB", kRunMigrate));
    EXPECT_EQ(pinned.uid, uid_of("jobs.batch", "migrate"));
    return pinned.uid;
  }
  Result<Executor::Ended> go_on(std::string uid) {
    return execute("RUN_JOB", kRunMigrate, {.target = std::move(uid)});
  }
};

TEST_F(RunJobTest, WaitsForTheJobThatItCreated) {
  const std::string uid = begin();
  EXPECT_THAT(expect<Waits>(go_on(uid)).what, HasSubstr("it has not finished"));
  set_status(kJobs + "/migrate", "{conditions: [{type: Complete, status: 'True'}]}");

  EXPECT_EQ(type_of(expect<Done>(go_on(uid)).event), "JOB_SUCCEEDED");
}

// A host that stopped before the uid was written.
TEST_F(RunJobTest, GoesOnWithTheJobThatItHasCreatedBefore) {
  const std::string uid = begin();
  writes_.clear();

  EXPECT_EQ(begin(), uid);

  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(RunJobTest, FailsForGoodWithTheJob) {
  const std::string uid = begin();
  set_status(kJobs + "/migrate",
             "{conditions: [{type: Failed, status: 'True', message: it ran out of time}]}");

  const Failure failure = expect<Failure>(go_on(uid));

  EXPECT_EQ(failure.reason, "JobFailed");
  EXPECT_TRUE(failure.is_final);
  EXPECT_THAT(failure.message, HasSubstr("the Job migrate failed: it ran out of time"));
}

TEST_F(RunJobTest, DoesNotRunAJobAgainThatSomebodyDeleted) {
  const std::string uid = begin();
  EXPECT_EQ(send("DELETE", kJobs + "/migrate").status, 200);
  writes_.clear();

  EXPECT_EQ(expect<Failure>(go_on(uid)).reason, "JobDeleted");
  make(kJobs, "{metadata: {name: migrate}, spec: {}}");
  const Failure failure = expect<Failure>(go_on(uid));

  EXPECT_EQ(failure.reason, "JobDeleted") << "another one of that name";
  EXPECT_TRUE(failure.is_final);
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(RunJobTest, ReplacesTheJobOfAnEarlierAction) {
  expect<Pinned>(execute("RUN_JOB", kRunMigrate, {.id = 2}));
  const std::string earlier = uid_of("jobs.batch", "migrate");
  writes_.clear();

  EXPECT_NE(begin(), earlier);

  EXPECT_THAT(writes_, ElementsAre("DELETE " + kJobs + "/migrate", "PATCH " + kJobs + "/migrate"));
}

TEST_F(RunJobTest, LetsAnEarlierActionOfThatNameFinish) {
  expect<Pinned>(execute("RUN_JOB", kRunMigrate, {.id = 2}));
  const std::string earlier = uid_of("jobs.batch", "migrate");
  writes_.clear();

  const Waits waits = expect<Waits>(execute("RUN_JOB", kRunMigrate, {.id = 3, .others = {2}}));

  EXPECT_THAT(waits.what, HasSubstr("an earlier action of that name has not finished"));
  EXPECT_EQ(uid_of("jobs.batch", "migrate"), earlier);
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(RunJobTest, WaitsUntilTheEarlierJobIsGone) {
  expect<Pinned>(execute("RUN_JOB", kRunMigrate, {.id = 2}));
  const std::string earlier = uid_of("jobs.batch", "migrate");
  send("PATCH", kJobs + "/migrate", "{metadata: {finalizers: [example.com/slow]}}");

  EXPECT_THAT(expect<Waits>(execute("RUN_JOB", kRunMigrate)).what,
              HasSubstr("it is being deleted"));
  writes_.clear();
  EXPECT_THAT(expect<Waits>(execute("RUN_JOB", kRunMigrate)).what,
              HasSubstr("it is being deleted"));
  EXPECT_THAT(writes_, IsEmpty()) << "it is deleted once";
  send("PATCH", kJobs + "/migrate", "{metadata: {finalizers: null}}");
  run_until_woken();

  EXPECT_NE(begin(), earlier);
}

// SEND and EMIT -----------------------------------------------------------------------------------

class SendTest : public ExecutorTest {
 protected:
  SendTest() {
    make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         "{metadata: {name: statefulworkflows.workflows.example.com}, spec: {"
         "group: workflows.example.com, scope: Namespaced, "
         "names: {plural: statefulworkflows, kind: StatefulWorkflow}, "
         "versions: [{name: v1, subresources: {status: {}}}]}}");
    make("/apis/workflows.example.com/v1/namespaces/team/statefulworkflows",
         "{metadata: {name: receiver}}");
  }
  [[nodiscard]] const json::Value& receiver() const {
    return *server_.find("statefulworkflows.workflows.example.com", "team", "receiver");
  }
};

TEST_F(SendTest, AnEventReachesItsReceiverOnceHoweverOftenItIsSent) {
  constexpr std::string_view kSend = "{workflow: receiver, event: GO}";
  expect<Done>(execute("SEND", kSend));

  const std::string key =
      std::string(kSignalPrefix) + signal_id(kOwner, action("SEND", yaml(kSend), {}));
  const json::Value event = json::parse(kube::annotation_of(receiver(), key)).value();
  EXPECT_EQ(type_of(event), "GO");
  EXPECT_EQ(json::string_at(event, {"sender"}), "team/db");
  const std::uint64_t revision = server_.revision();
  expect<Done>(execute("SEND", kSend));
  EXPECT_EQ(server_.revision(), revision);
}

TEST_F(SendTest, TheSenderIsTheWorkflowWhateverItsMachineSays) {
  constexpr std::string_view kSend =
      "{workflow: receiver, event: {type: GO, sender: someone/else}}";

  expect<Done>(execute("SEND", kSend));

  const std::string key =
      std::string(kSignalPrefix) + signal_id(kOwner, action("SEND", yaml(kSend), {}));
  const json::Value event = json::parse(kube::annotation_of(receiver(), key)).value();
  EXPECT_EQ(json::string_at(event, {"sender"}), "team/db");
}

TEST_F(SendTest, AnEventThatIsTooLargeFailsForGood) {
  const Given given;
  const PendingAction pending = action(
      "SEND",
      json::Object{
          {"workflow", "receiver"},
          {"event", json::Object{{"type", "GO"},
                                 {"text", std::string(limits::kWorkflowEventBytesMax, 'x')}}}},
      given);

  const Failure failure = expect<Failure>(await(executor_.execute(assignment(pending, given), {})));

  EXPECT_EQ(failure.reason, "TooLarge");
  EXPECT_TRUE(failure.is_final);
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(ExecutorTest, EmitsOneEventHoweverOftenTheActionIsRepeated) {
  constexpr std::string_view kEmit = "{reason: Ready, message: all is well}";

  expect<Done>(execute("EMIT", kEmit));
  expect<Done>(execute("EMIT", kEmit));

  const std::vector<const json::Value*> events = server_.all("events");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(json::string_at(*events.front(), {"reason"}), "Ready");
  EXPECT_EQ(json::string_at(*events.front(), {"involvedObject", "uid"}), kOwner.uid);
}

TEST_F(ExecutorTest, EmitsOnlyWithTheRightsOfTheServiceAccount) {
  withdraw_rights();

  EXPECT_EQ(expect<Failure>(execute("EMIT", "{reason: Ready}")).kind, "Denied");

  EXPECT_THAT(server_.all("events"), IsEmpty());
}

}  // namespace
}  // namespace hangar::workflows
