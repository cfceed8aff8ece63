// The client against a real API server: its claims hold for the real Kubernetes.
#include "kube/client.h"

#include "base/consumer.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/limits.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "objects.h"
#include "testing/session.h"
#include "testing/shared_control_plane.h"
#include "testing/wait.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::Session;

// Remembers the warnings of the client.
class WarningLog final : public LogSink {
 public:
  void write(LogLevel level, std::string_view /*component*/, std::string_view /*message*/,
             std::span<const LogField> fields) override {
    if (level != LogLevel::Warning) return;
    for (const LogField& field : fields) {
      if (field.key == "warning") seen.push_back(std::get<std::string>(field.value));
    }
  }
  std::vector<std::string> seen;
};

json::Value crd(std::string_view group, std::string_view plural, std::string_view kind) {
  return parse(fmt::format(
      R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{{"name":"{1}.{0}"}},"spec":{{"group":"{0}","scope":"Namespaced",
      "names":{{"plural":"{1}","kind":"{2}"}},"versions":[{{"name":"v1","served":true,
      "storage":true,"subresources":{{"status":{{}}}},"schema":{{"openAPIV3Schema":{{"type":"object",
      "properties":{{"spec":{{"type":"object","properties":{{"size":{{"type":"integer"}}}}}},
      "status":{{"type":"object","properties":{{"phase":{{"type":"string"}}}}}}}}}}}}}}]}}}})",
      group, plural, kind));
}

// Retries until it succeeds; some effects appear a moment after the request.
template <class F>
auto eventually(Session& session, F attempt) {
  const Instant until = io::Loop::now() + seconds(30);
  while (true) {
    auto result = session.run(attempt());
    if (result || io::Loop::now() > until) return result;
    EXPECT_TRUE(session.run(session.loop.sleep(std::chrono::milliseconds(50), {})).has_value());
  }
}

// TCP connections that this process holds to a port of this machine.
std::size_t connections_to(std::string_view url) {
  const int port = std::stoi(std::string(url.substr(url.rfind(':') + 1)));
  std::set<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    own.insert(std::filesystem::read_symlink(entry.path(), error).string());
  }
  std::ifstream table("/proc/self/net/tcp");
  std::string line;
  std::getline(table, line);
  std::size_t count = 0;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;)
      columns.push_back(word);
    const bool to_port = columns.at(2).ends_with(fmt::format(":{:04X}", port));
    if (to_port && own.contains(fmt::format("socket:[{}]", columns.at(9)))) ++count;
  }
  return count;
}

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_ = &HANGAR_SHARED_CONTROL_PLANE();
    session_.emplace(cluster_->kubeconfig(), Log(warnings_, "kube"));
    auto made = cluster_->unique_namespace("client");
    ASSERT_TRUE(made.has_value()) << made.error().message();
    namespace_ = *made;
  }

  Session& session() { return *session_; }
  const Client& client() { return session_->client; }
  json::Value create_config_map(std::string_view name, std::string_view data = "{}") {
    return session().must(client().create(kConfigMaps, config_map(namespace_, name, data), {}, {}));
  }
  ObjectKey key(std::string_view name) { return {namespace_, std::string(name)}; }
  // A custom resource for this test alone, once it is served.
  Resource make_resource(std::string_view kind) {
    std::string plural(kind);
    for (char& character : plural)
      character = static_cast<char>(std::tolower(character));
    plural += "s";
    const Resource resource{namespace_ + ".example.com", "v1", plural, std::string(kind), true};
    session().must(client().create(kCrds, crd(resource.group, plural, kind), {}, {}));
    const auto served = eventually(session(), [&] { return client().list(resource, {}, {}); });
    EXPECT_TRUE(served.has_value()) << served.error().message();
    return resource;
  }

  WarningLog warnings_;
  testing::ControlPlane* cluster_ = nullptr;
  std::optional<Session> session_;
  std::string namespace_;
};

TEST_F(ClientTest, CreatesReadsChangesAndRemovesACoreObject) {
  const json::Value created = create_config_map("a", R"({"x":"1"})");
  json::Value changed = created;
  json::set_at(changed, {"data", "x"}, "2");
  session().must(client().update(kConfigMaps, changed, {}, {}));
  session().must(client().patch(kConfigMaps, key("a"), PatchType::Merge,
                                parse(R"({"data":{"y":"3"}})"), {}, {}));
  session().must(client().patch(kConfigMaps, key("a"), PatchType::Json,
                                parse(R"([{"op":"add","path":"/data/z","value":"4"}])"), {}, {}));
  session().must(client().patch(kConfigMaps, key("a"), PatchType::Strategic,
                                parse(R"({"metadata":{"labels":{"l":"5"}}})"), {}, {}));

  const json::Value read = session().must(client().get(kConfigMaps, key("a"), {}));
  session().must(client().remove(kConfigMaps, key("a"), {}, {}));
  const auto gone = session().run(client().get(kConfigMaps, key("a"), {}));

  EXPECT_TRUE(json::equal(*json::find(read, {"data"}), parse(R"({"x":"2","y":"3","z":"4"})")));
  EXPECT_EQ(label_of(read, "l"), "5");
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().kind(), ErrorKind::NotFound);
  EXPECT_EQ(reason_of(gone.error()), "NotFound");
}

TEST_F(ClientTest, TellsErrorsApart) {
  const json::Value created = create_config_map("a");
  json::Value stale = created;
  json::set_at(stale, {"data"}, json::Object{{"x", "1"}});
  session().must(client().update(kConfigMaps, stale, {}, {}));

  const auto exists =
      session().run(client().create(kConfigMaps, config_map(namespace_, "a"), {}, {}));
  const auto conflict = session().run(client().update(kConfigMaps, stale, {}, {}));
  const auto invalid =
      session().run(client().create(kConfigMaps, config_map(namespace_, "Not_A_Name"), {}, {}));
  const auto malformed = session().run(client().create(
      kConfigMaps,
      parse(fmt::format(R"({{"metadata":{{"namespace":"{}","name":"x"}},"data":7}})", namespace_)),
      {}, {}));
  const auto no_resource =
      session().run(client().list({"none.example.com", "v1", "nones", "None", true}, {}, {}));
  const auto no_name = session().run(client().get(kConfigMaps, key(""), {}));
  const auto no_namespace =
      session().run(client().create(kConfigMaps, config_map("", "a"), {}, {}));

  EXPECT_EQ(exists.error().kind(), ErrorKind::Conflict);
  EXPECT_EQ(reason_of(exists.error()), "AlreadyExists");
  EXPECT_EQ(conflict.error().kind(), ErrorKind::Conflict);
  EXPECT_EQ(reason_of(conflict.error()), "Conflict");
  EXPECT_EQ(invalid.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(reason_of(invalid.error()), "Invalid");
  EXPECT_THAT(invalid.error().message(), HasSubstr("metadata.name"));
  EXPECT_EQ(malformed.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(no_resource.error().kind(), ErrorKind::NotFound);
  EXPECT_EQ(no_name.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(no_namespace.error().kind(), ErrorKind::InvalidInput);
}

TEST_F(ClientTest, NeverLeavesThePathThatANameIsIn) {
  create_config_map("victim");
  for (const std::string_view name :
       {"x/../victim", "..", "%2e%2e/victim", "victim%2Fstatus", "victim/"}) {
    const auto removed = session().run(client().remove(kConfigMaps, key(name), {}, {}));

    ASSERT_FALSE(removed.has_value()) << name;
    EXPECT_EQ(removed.error().kind(), ErrorKind::InvalidInput) << name;
  }
  // Names that encoding makes harmless reach the server, which has no such objects.
  for (const std::string_view name : {"victim?x", "victim#x", "victim x", "victim\n"}) {
    const auto removed = session().run(client().remove(kConfigMaps, key(name), {}, {}));

    ASSERT_FALSE(removed.has_value()) << name;
    EXPECT_EQ(removed.error().kind(), ErrorKind::NotFound) << name;
  }
  session().must(client().get(kConfigMaps, key("victim"), {}));
}

TEST_F(ClientTest, AppliesWithOwnershipOfFields) {
  const auto apply = [&](std::string_view data, std::string manager, bool force) {
    return session().run(client().apply(kConfigMaps, config_map(namespace_, "a", data),
                                        {.field_manager = std::move(manager), .force = force}, {}));
  };
  ASSERT_TRUE(apply(R"({"x":"1","y":"1"})", "first", false).has_value());

  const auto conflict = apply(R"({"x":"2"})", "second", false);
  const auto forced = apply(R"({"x":"2"})", "second", true);
  const auto withdrawn = apply(R"({})", "first", false);

  ASSERT_FALSE(conflict.has_value());
  EXPECT_EQ(conflict.error().kind(), ErrorKind::Conflict);
  EXPECT_THAT(conflict.error().message(), HasSubstr("\"first\""));
  ASSERT_TRUE(forced.has_value());
  EXPECT_TRUE(json::equal(*json::find(*forced, {"data"}), parse(R"({"x":"2","y":"1"})")));
  ASSERT_TRUE(withdrawn.has_value());
  EXPECT_TRUE(json::equal(*json::find(*withdrawn, {"data"}), parse(R"({"x":"2"})")));
}

TEST_F(ClientTest, WorksOnCustomResourcesAndTheirStatus) {
  const Resource widgets = make_resource("Widget");
  const auto widget = [&](std::string_view rest) {
    return parse(fmt::format(
        R"({{"apiVersion":"{}/v1","kind":"Widget","metadata":{{"name":"w","namespace":"{}"}},{}}})",
        widgets.group, namespace_, rest));
  };

  session().must(
      client().apply(widgets, widget(R"("spec":{"size":1},"status":{"phase":"ignored"})"), {}, {}));
  session().must(client().apply(widgets, widget(R"("status":{"phase":"Ready"})"),
                                {.field_manager = "status", .subresource = "status"}, {}));
  session().must(client().patch(widgets, key("w"), PatchType::Merge,
                                parse(R"({"spec":{"size":2},"status":{"phase":"ignored"}})"), {},
                                {}));
  const auto strategic = session().run(client().patch(widgets, key("w"), PatchType::Strategic,
                                                      parse(R"({"spec":{"size":3}})"), {}, {}));
  const auto invalid = session().run(
      client().apply(widgets, widget(R"("spec":{"size":"big"})"), {.force = true}, {}));
  const json::Value read = session().must(client().get(widgets, key("w"), {}, "status"));

  EXPECT_EQ(json::int_at(read, {"spec", "size"}), 2);
  EXPECT_EQ(json::string_at(read, {"status", "phase"}), "Ready");
  EXPECT_EQ(strategic.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(invalid.error().kind(), ErrorKind::InvalidInput);
}

TEST_F(ClientTest, FollowsPagesToTheEnd) {
  std::vector<Client::ValueTask> creations;
  for (int index = 0; index < 25; ++index) {
    json::Value object = config_map(namespace_, fmt::format("c{:02}", index));
    json::set_at(object, {"metadata", "labels"},
                 json::Object{{"parity", index % 2 == 0 ? "even" : "odd"}});
    creations.push_back(client().create(kConfigMaps, std::move(object), {}, {}));
  }
  for (const auto& created : session().run_all(std::move(creations)))
    ASSERT_TRUE(created.has_value()) << created.error().message();
  const auto names = [&](ListOptions options) {
    options.namespace_ = namespace_;
    const auto list = session().run(client().list(kConfigMaps, options, {}));
    EXPECT_TRUE(list.has_value() && !list->resource_version.empty());
    std::set<std::string> out;
    for (const ObjectPtr& item : list.value_or(List()).items) {
      EXPECT_EQ(json::string_at(item->to_value(), {"kind"}), "ConfigMap");
      if (item->key().name.starts_with('c')) EXPECT_TRUE(out.insert(item->key().name).second);
    }
    return out;
  };
  const double before = requests(session().metrics, "GET", "200");

  EXPECT_EQ(names({.page_size = 10}).size(), 25);
  EXPECT_GE(requests(session().metrics, "GET", "200") - before, 3);
  EXPECT_EQ(names({.page_size = 0}).size(), 25);
  EXPECT_EQ(names({.label_selector = "parity in (odd),parity", .page_size = 5}).size(), 12);
  EXPECT_EQ(names({.field_selector = "metadata.name=c07"}), std::set<std::string>{"c07"});
}

TEST_F(ClientTest, ListsMetadataAlone) {
  for (const char* name : {"c1", "c2", "c3"})
    create_config_map(name, R"({"x":"1"})");

  const auto list = session().run(client().list(
      kConfigMaps, {.namespace_ = namespace_, .page_size = 2, .detail = Detail::Metadata}, {}));

  ASSERT_TRUE(list.has_value()) << list.error().message();
  EXPECT_GE(list->items.size(), 3);
  for (const ObjectPtr& item : list->items) {
    EXPECT_FALSE(item->uid().empty() || item->resource_version().empty()) << item->text().str();
    EXPECT_EQ(json::find(item->to_value(), {"data"}), nullptr) << item->text().str();
  }
}

TEST_F(ClientTest, RemovesOnlyWhatIsMeant) {
  const json::Value created = create_config_map("a");
  const std::string uid(json::string_at(created, {"metadata", "uid"}));
  const std::string version(json::string_at(created, {"metadata", "resourceVersion"}));

  const auto other = session().run(client().remove(kConfigMaps, key("a"), {.uid = "another"}, {}));
  const auto older =
      session().run(client().remove(kConfigMaps, key("a"), {.resource_version = "1"}, {}));
  const auto meant = session().run(
      client().remove(kConfigMaps, key("a"), {.uid = uid, .resource_version = version}, {}));

  EXPECT_EQ(other.error().kind(), ErrorKind::Conflict);
  EXPECT_EQ(older.error().kind(), ErrorKind::Conflict);
  EXPECT_TRUE(meant.has_value());
}

TEST_F(ClientTest, PropagatesDeletionAsAsked) {
  for (const auto& [name, propagation, finalizer] :
       {std::tuple{"fore", Propagation::Foreground, "foregroundDeletion"},
        std::tuple{"orphan", Propagation::Orphan, "orphan"}}) {
    // Our finalizer keeps the object for the test to look at.
    json::Value object = config_map(namespace_, name);
    json::set_at(object, {"metadata", "finalizers"}, json::Array{"example.com/hold"});
    session().must(client().create(kConfigMaps, object, {}, {}));

    const json::Value removed =
        session().must(client().remove(kConfigMaps, key(name), {.propagation = propagation}, {}));

    EXPECT_TRUE(has_finalizer(removed, finalizer)) << name;
    session().must(client().patch(kConfigMaps, key(name), PatchType::Merge,
                                  parse(R"({"metadata":{"finalizers":null}})"), {}, {}));
  }
}

TEST_F(ClientTest, ChangesNothingInADryRun) {
  create_config_map("a", R"({"x":"1"})");

  session().must(client().create(kConfigMaps, config_map(namespace_, "b"), {.dry_run = true}, {}));
  const json::Value applied =
      session().must(client().apply(kConfigMaps, config_map(namespace_, "a", R"({"x":"2"})"),
                                    {.force = true, .dry_run = true}, {}));
  session().must(client().remove(kConfigMaps, key("a"), {.dry_run = true}, {}));

  EXPECT_EQ(json::string_at(applied, {"data", "x"}), "2");
  EXPECT_EQ(json::string_at(session().must(client().get(kConfigMaps, key("a"), {})), {"data", "x"}),
            "1");
  EXPECT_FALSE(session().run(client().get(kConfigMaps, key("b"), {})).has_value());
}

TEST_F(ClientTest, ActsAsAServiceAccountUnderItsOwnRights) {
  create_config_map("a");
  const Client robot = client().as(service_account(namespace_, "robot"));

  const auto before = session().run(robot.get(kConfigMaps, key("a"), {}));
  // Granted to its group, which only the server itself can have given it.
  session().must(
      client().create(kRoleBindings,
                      parse(fmt::format(
                          R"({{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
      "metadata":{{"name":"view","namespace":"{0}"}},
      "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}},
      "subjects":[{{"kind":"Group","apiGroup":"rbac.authorization.k8s.io",
      "name":"system:serviceaccounts:{0}"}}]}})",
                          namespace_)),
                      {}, {}));
  const auto after = eventually(session(), [&] { return robot.get(kConfigMaps, key("a"), {}); });
  const auto write = session().run(robot.remove(kConfigMaps, key("a"), {}, {}));
  const json::Value review = session().must(robot.post_path(
      "/apis/authentication.k8s.io/v1/selfsubjectreviews",
      parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"), {}));

  ASSERT_FALSE(before.has_value());
  EXPECT_EQ(before.error().kind(), ErrorKind::Denied);
  EXPECT_THAT(before.error().message(),
              HasSubstr(fmt::format("system:serviceaccount:{}:robot", namespace_)));
  EXPECT_TRUE(after.has_value());
  EXPECT_EQ(write.error().kind(), ErrorKind::Denied);
  EXPECT_EQ(json::string_at(review, {"status", "userInfo", "username"}),
            service_account(namespace_, "robot").user);
  EXPECT_EQ(json::array_at(review, {"status", "userInfo", "groups"})->size(),
            service_account(namespace_, "robot").groups.size());
}

TEST_F(ClientTest, ActsAsAUserWithGroups) {
  const json::Value review = session().must(
      client()
          .as({.user = "alice", .groups = {"dev", "ops"}})
          .post_path(
              "/apis/authentication.k8s.io/v1/selfsubjectreviews",
              parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"),
              {}));
  const auto smuggled = session().run(
      client().as({.user = "alice\r\nImpersonate-Group: system:masters"}).get_path("/version", {}));

  EXPECT_EQ(json::string_at(review, {"status", "userInfo", "username"}), "alice");
  EXPECT_TRUE(json::equal(*json::find(review, {"status", "userInfo", "groups"}),
                          parse(R"(["dev","ops","system:authenticated"])")));
  EXPECT_EQ(smuggled.error().kind(), ErrorKind::InvalidInput);
}

TEST_F(ClientTest, LogsAWarningOfTheServerOnce) {
  const auto create = [&](std::string_view name, std::string validation) {
    json::Value object = config_map(namespace_, name);
    json::set_at(object, {"unknown"}, 1);
    return session().run(
        client().create(kConfigMaps, object, {.field_validation = std::move(validation)}, {}));
  };

  EXPECT_TRUE(create("a", "").has_value());
  EXPECT_TRUE(create("b", "Warn").has_value());
  const auto strict = create("c", "Strict");

  EXPECT_THAT(warnings_.seen, ::testing::ElementsAre(HasSubstr("unknown field \"unknown\"")));
  EXPECT_EQ(strict.error().kind(), ErrorKind::InvalidInput);
}

TEST_F(ClientTest, WatchesUntilItIsStopped) {
  const json::Value created = create_config_map("a");
  const std::string from(json::string_at(created, {"metadata", "resourceVersion"}));
  std::stop_source stop;
  std::vector<std::string> types;
  const auto on_line = [&](std::string_view line) -> Result<> {
    types.emplace_back(json::string_at(parse(line), {"type"}));
    if (types.size() == 2) stop.request_stop();
    return {};
  };
  const auto change = [](Client of, ObjectKey target) -> io::Task<Result<>> {
    HANGAR_CO_TRY(co_await of.patch(kConfigMaps, target, PatchType::Merge,
                                    parse(R"({"data":{"x":"1"}})"), {}, {}));
    HANGAR_CO_TRY(co_await of.remove(kConfigMaps, target, {}, {}));
    co_return Result<>();
  };

  std::vector<io::Task<Result<>>> both;
  both.push_back(client().watch(kConfigMaps, namespace_, "resourceVersion=" + from, on_line,
                                stop.get_token()));
  both.push_back(change(client(), key("a")));
  const auto ended = session().run_all(std::move(both));

  EXPECT_EQ(ended[0].error().kind(), ErrorKind::Cancelled);
  EXPECT_TRUE(ended[1].has_value());
  EXPECT_THAT(types, ::testing::ElementsAre("MODIFIED", "DELETED"));
}

TEST_F(ClientTest, ReturnsFromAWatchThatTheServerEnds) {
  const auto ignore = [](std::string_view) -> Result<> { return {}; };

  const auto ended =
      session().run(client().watch(kConfigMaps, namespace_, "timeoutSeconds=1", ignore, {}));
  const auto refused = session().run(
      client().watch({"none.example.com", "v1", "nones", "None", true}, "", "", ignore, {}));
  const auto denied =
      session().run(client().as({.user = "nobody"}).watch(kSecrets, "", "", ignore, {}));

  EXPECT_TRUE(ended.has_value()) << ended.error().message();
  EXPECT_EQ(refused.error().kind(), ErrorKind::NotFound);
  EXPECT_EQ(denied.error().kind(), ErrorKind::Denied);
  EXPECT_THAT(denied.error().message(), HasSubstr("cannot watch resource \"secrets\""));
}

TEST_F(ClientTest, SendsManyRequestsOverOneConnection) {
  create_config_map("a");
  // Opens the connection: otherwise the first request of a burst would be sent before it exists.
  session().must(client().get_path("/version", {}));
  // Below the hundred streams that the server allows a connection.
  for (int round = 0; round < 5; ++round) {
    std::vector<Client::ValueTask> reads;
    for (int index = 0; index < 90; ++index)
      reads.push_back(client().get(kConfigMaps, key("a"), {}));

    for (const auto& answer : session().run_all(std::move(reads)))
      ASSERT_TRUE(answer.has_value()) << answer.error().message();
  }

  EXPECT_EQ(connections_to(cluster_->url()), 1);
  EXPECT_EQ(requests(session().metrics, "GET", "200"), 451);
}

TEST_F(ClientTest, HoldsManyWatchesOnFewConnections) {
  struct Watcher {
    bool has_ended = false;
    std::set<std::string> seen;
  };
  const auto follow = [](Client on, std::string in, std::stop_token stop,
                         Watcher& watcher) -> io::Task<void> {
    (void)co_await on.watch(
        kConfigMaps, std::move(in), "resourceVersion=0",
        [&watcher](std::string_view line) {
          watcher.seen.insert(
              std::string(json::string_at(parse(line), {"object", "metadata", "name"})));
          return Result<>();
        },
        std::move(stop));
    watcher.has_ended = true;
  };
  std::stop_source stop;
  std::list<Watcher> watchers;
  const auto begin = [&](std::size_t count) {
    while (watchers.size() < count) {
      session().loop.spawn(follow(client(), namespace_, stop.get_token(), watchers.emplace_back()));
    }
  };
  const auto all_see = [&](std::string_view name) {
    return testing::wait(session().loop, [&] {
      return std::ranges::all_of(watchers, [&](const Watcher& watcher) {
        return watcher.seen.contains(std::string(name));
      });
    });
  };
  // Opens the connection: otherwise the first request of a burst would be sent before it exists.
  create_config_map("first");

  // Below the hundred streams that the server allows a connection.
  begin(90);
  EXPECT_TRUE(all_see("first"));
  EXPECT_EQ(connections_to(cluster_->url()), 1);
  create_config_map("second");
  EXPECT_TRUE(all_see("second"));
  EXPECT_EQ(connections_to(cluster_->url()), 1) << "a write has its stream among the watches";

  begin(1000);
  EXPECT_TRUE(all_see("second"));
  create_config_map("third");
  EXPECT_TRUE(all_see("third"));
  EXPECT_LE(connections_to(cluster_->url()), limits::kHttp2ConnectionsMax);

  // More than the streams of the usual connections: none of the last ones waits for another to end.
  begin(100 * static_cast<std::size_t>(limits::kHttp2ConnectionsMax) + 200);
  EXPECT_TRUE(all_see("third"));
  create_config_map("fourth");
  EXPECT_TRUE(all_see("fourth"));
  EXPECT_GT(connections_to(cluster_->url()), limits::kHttp2ConnectionsMax);
  EXPECT_TRUE(std::ranges::none_of(watchers, &Watcher::has_ended));

  stop.request_stop();
  EXPECT_TRUE(testing::wait_for_end_of_tasks(session().loop));
}

TEST_F(ClientTest, SurvivesFarMoreRequestsAtOnceThanOneConnectionTakes) {
  create_config_map("a");
  std::vector<Client::ValueTask> reads;
  for (int index = 0; index < 2000; ++index)
    reads.push_back(client().get(kConfigMaps, key("a"), {}));

  for (const auto& answer : session().run_all(std::move(reads)))
    ASSERT_TRUE(answer.has_value()) << answer.error().message();
}

TEST_F(ClientTest, ReplacesATokenThatTheServerRefuses) {
  session().must(client().create(
      kServiceAccounts,
      parse(fmt::format(
          R"({{"apiVersion":"v1","kind":"ServiceAccount","metadata":{{"name":"robot","namespace":"{}"}}}})",
          namespace_)),
      {}, {}));
  json::Value ask =
      parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})");
  json::set_at(ask, {"metadata"},
               json::Object{{"name", "robot"}, {"namespace", json::String(namespace_)}});
  const json::Value answer =
      session().must(client().create(kServiceAccounts, ask, {.subresource = "token"}, {}));
  std::string directory = (std::filesystem::temp_directory_path() / "hangar.XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::filesystem::path token_file = std::filesystem::path(directory) / "token";
  ASSERT_TRUE(io::write_file(token_file, "stale").has_value());
  Login login = find_login({.kubeconfig = cluster_->kubeconfig()}).value();
  login.user = {.token_file = token_file};
  Session robot(login);
  const auto review = [&] {
    return robot.client.post_path(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"), {});
  };
  auto stale = robot.run(review());
  // The server may close the connection right after its 401, and libcurl may see only the close.
  for (int again = 0; again < 3 && !stale && stale.error().kind() == ErrorKind::Unavailable;
       ++again)
    stale = robot.run(review());
  ASSERT_TRUE(io::write_file(token_file, json::string_at(answer, {"status", "token"})).has_value());

  // The 401 causes it: by its age alone the file would not be read again yet. The client does not
  // offer new credentials at once to a server that refuses everything, hence the wait.
  const auto after = eventually(robot, review);

  ASSERT_FALSE(stale.has_value());
  EXPECT_EQ(stale.error().kind(), ErrorKind::Denied);
  ASSERT_TRUE(after.has_value()) << after.error().message();
  EXPECT_EQ(json::string_at(*after, {"status", "userInfo", "username"}),
            service_account(namespace_, "robot").user);
  std::filesystem::remove_all(directory);
}

TEST_F(ClientTest, KeepsToItsOwnRate) {
  Session slow(find_login({.kubeconfig = cluster_->kubeconfig()}).value(), Log(),
               {.requests_per_second = 20, .burst = 5});
  const Instant begin = io::Loop::now();
  std::vector<Client::ValueTask> reads;
  for (int index = 0; index < 15; ++index)
    reads.push_back(slow.client.get_path("/version", {}));

  for (const auto& answer : slow.run_all(std::move(reads)))
    EXPECT_TRUE(answer.has_value());

  EXPECT_GE(io::Loop::now() - begin, std::chrono::milliseconds(450));
}

TEST_F(ClientTest, FindsAKindAsSoonAsItIsServed) {
  Discovery discovery(client());
  const std::string group = namespace_ + ".example.com";
  const GroupVersionKind gvk{group, "v1", "Gadget"};

  const auto missing = session().run(discovery.find(gvk, unnamed_consumer(), {}));
  make_resource("Gadget");
  const auto found =
      eventually(session(), [&] { return discovery.find(gvk, unnamed_consumer(), {}); });
  const double asked = requests(session().metrics, "GET", "200");
  const auto by_kind =
      session().run(discovery.find(GroupKind{group, "Gadget"}, unnamed_consumer(), {}));
  const auto by_plural =
      session().run(discovery.find_plural(group, "gadgets", unnamed_consumer(), {}));

  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind(), ErrorKind::NotFound);
  EXPECT_EQ(missing.error().message(),
            fmt::format("no matches for kind \"Gadget\" in version \"{}/v1\"", group));
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(*found, (Resource{group, "v1", "gadgets", "Gadget", true}));
  EXPECT_EQ(by_kind.value(), *found);
  EXPECT_EQ(by_plural.value(), *found);
  EXPECT_EQ(requests(session().metrics, "GET", "200"), asked);
}

TEST_F(ClientTest, ForgetsAKindThatIsGone) {
  Discovery discovery(client());
  const Resource resource = make_resource("Gizmo");
  ASSERT_TRUE(eventually(session(), [&] {
                return discovery.find(resource.gvk(), unnamed_consumer(), {});
              }).has_value());

  session().must(client().remove(kCrds, {"", "gizmos." + resource.group}, {}, {}));
  const auto gone = [&]() -> io::Task<Result<>> {
    discovery.forget(resource.group);
    auto found = co_await discovery.find(resource.gvk(), unnamed_consumer(), {});
    if (found) co_return fail(ErrorKind::Unavailable, "still there");
    co_return found.error().kind() == ErrorKind::NotFound
        ? Result<>()
        : Result<>(std::unexpected(std::move(found).error()));
  };
  const auto result = eventually(session(), gone);

  EXPECT_TRUE(result.has_value()) << result.error().message();
}

TEST_F(ClientTest, KnowsCoreAndGroupsWithTheirPreferredVersions) {
  Discovery discovery(client());

  const auto secret =
      session().run(discovery.find(GroupVersionKind{"", "v1", "Secret"}, unnamed_consumer(), {}));
  const auto deployment =
      session().run(discovery.find(GroupKind{"apps", "Deployment"}, unnamed_consumer(), {}));
  const auto crds = session().run(discovery.find_plural(
      "apiextensions.k8s.io", "customresourcedefinitions", unnamed_consumer(), {}));
  const auto none =
      session().run(discovery.find(GroupKind{"apps/../..", "Deployment"}, unnamed_consumer(), {}));

  EXPECT_EQ(secret.value(), kSecrets);
  EXPECT_EQ(deployment.value(), kDeployments);
  EXPECT_EQ(crds.value(), kCrds);
  EXPECT_EQ(none.error().kind(), ErrorKind::NotFound);
}

TEST_F(ClientTest, LosesNothingToAnAggregatedApiThatIsDown) {
  const std::string group = namespace_ + ".down.example.com";
  session().must(client().create(
      {"apiregistration.k8s.io", "v1", "apiservices", "APIService", false},
      parse(fmt::format(R"({{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService",
      "metadata":{{"name":"v1.{0}"}},"spec":{{"group":"{0}","version":"v1","groupPriorityMinimum":100,
      "versionPriority":100,"insecureSkipTLSVerify":true,
      "service":{{"name":"none","namespace":"{1}"}}}}}})",
                        group, namespace_)),
      {}, {}));
  Discovery discovery(client());

  const auto down =
      session().run(discovery.find(GroupVersionKind{group, "v1", "Thing"}, unnamed_consumer(), {}));
  const auto up = session().run(
      discovery.find(GroupVersionKind{"apps", "v1", "Deployment"}, unnamed_consumer(), {}));
  session().must(
      client().remove({"apiregistration.k8s.io", "v1", "apiservices", "APIService", false},
                      {"", "v1." + group}, {}, {}));

  ASSERT_FALSE(down.has_value());
  // Not "no such kind": the answer is unknown.
  EXPECT_EQ(down.error().kind(), ErrorKind::Unavailable) << down.error().message();
  EXPECT_TRUE(up.has_value());
}

}  // namespace
}  // namespace hangar::kube
