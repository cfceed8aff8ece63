// The gateway in front of a real API server: through it a guest sees what it would see directly,
// and never more. Where that means "the same answer", the test asks both and compares.

#include "../kube/objects.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "gateway/feeds.h"
#include "gateway/limits.h"
#include "gateway/tenant_bounds.h"
#include "guest.h"
#include "http/client.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "testing/control_plane.h"
#include "testing/own_control_plane.h"
#include "testing/session.h"
#include "testing/wait.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

using kube::Identity;
using std::chrono::seconds;
using testing::Component;
using testing::Session;

constexpr const char* kRingCrd = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rings.gateway.example.com}
spec:
  group: gateway.example.com
  scope: Namespaced
  names: {plural: rings, kind: Ring}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
)";
const kube::Resource kRings{"gateway.example.com", "v1", "rings", "Ring", true};

// May do everything with ConfigMaps, Secrets and Rings in its namespace, and nothing else.
std::string rbac(const std::string& namespace_) {
  return fmt::format(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: guest, namespace: {0}}}
rules:
- {{apiGroups: [""], resources: [configmaps, secrets], verbs: ["*"]}}
- {{apiGroups: [gateway.example.com], resources: [rings], verbs: ["*"]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: guest, namespace: {0}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: guest}}
subjects: [{{kind: ServiceAccount, name: guest, namespace: {0}}}]
)",
                     namespace_);
}

// As client-go's informers ask for the initial state.
constexpr const char* kNewestState =
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

constexpr const char* kMetadataOfServer =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
// As client-go's metadata client asks.
constexpr const char* kMetadataOfClientGo =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

// The lines of a watch without managedFields, which the cache drops.
std::vector<std::string> documents(const std::string& lines) {
  std::vector<std::string> out;
  std::istringstream rest(lines);
  for (std::string line; std::getline(rest, line);) {
    json::Value event = json::parse(line).value_or(json::Value());
    json::erase_at(event, {"object", "metadata", "managedFields"});
    out.push_back(json::dump(event));
  }
  return out;
}

Identity guest_of(const std::string& namespace_) {
  return kube::service_account(namespace_, "guest");
}

class GatewayTest : public testing::OwnControlPlane<GatewayTest> {
 public:
  static testing::ControlPlaneOptions options() {
    return {.controller_manager = false,
            .proxy = true,
            .apiserver_arguments = {"--etcd-compaction-interval=5s"}};
  }

 protected:
  static void SetUpTestSuite() {
    OwnControlPlane::SetUpTestSuite();
    if (is_absent()) return;
    ASSERT_TRUE(own_->kubectl({"apply", "-f", "-"}, kRingCrd).has_value());
    ASSERT_TRUE(own_->kubectl({"wait", "--for=condition=Established",
                               "crd/rings.gateway.example.com", "--timeout=30s"})
                    .has_value());
  }

  void SetUp() override {
    OwnControlPlane::SetUp();
    if (is_absent()) return;
    mine_ = make_namespace();
    other_ = make_namespace();
    connect(own_->kubeconfig());
  }
  void TearDown() override {
    if (!own_) return;
    EXPECT_TRUE(own_->heal().has_value());
    disconnect();
  }

  static std::string make_namespace() {
    auto name = own_->unique_namespace("gateway");
    EXPECT_TRUE(name.has_value());
    const auto applied = own_->kubectl({"apply", "-f", "-"}, rbac(*name));
    EXPECT_TRUE(applied.has_value()) << applied.error().message();
    return *name;
  }

  void connect(const std::string& kubeconfig, Identity host = {}) {
    disconnect();
    session_ = std::make_unique<Session>(kubeconfig);
    client_ = std::make_unique<kube::Client>(session_->client.as(std::move(host)));
    cache_ = std::make_unique<kube::Cache>(session_->loop, *client_, session_->metrics, Log());
    discovery_ = std::make_unique<kube::Discovery>(*client_);
    make_gateway();
  }
  // The same, but the cache's watches go through the proxy.
  void connect_cache_by_proxy() {
    connect(own_->kubeconfig());
    gateway_.reset();
    cache_.reset();
    kube::Login login = kube::find_login({.kubeconfig = own_->proxied_kubeconfig()}).value();
    distant_ = std::make_unique<kube::Client>(
        session_->loop, session_->http,
        std::make_shared<kube::Credentials>(session_->loop, std::move(login), Log()),
        session_->metrics, Log(), kube::ClientOptions());
    cache_ = std::make_unique<kube::Cache>(session_->loop, *distant_, session_->metrics, Log());
    make_gateway();
  }
  void make_gateway() {
    gateway_ = std::make_unique<Gateway>(
        Gateway::Parts{.loop = session_->loop,
                       .client = *client_,
                       .cache = *cache_,
                       .discovery = *discovery_,
                       .metrics = session_->metrics,
                       .log = Log(),
                       .care_period = seconds(1),
                       .feed_memory = std::make_shared<budget::Accounts>(feed_memory_),
                       .rates = &rates_});
  }
  void disconnect() {
    guests_.clear();
    if (!session_) return;
    gateway_.reset();
    cache_.reset();
    EXPECT_TRUE(testing::wait_for_end_of_tasks(session_->loop)) << "something does not end";
    discovery_.reset();
    distant_.reset();
    client_.reset();
    session_.reset();
  }

  bool wait(const std::function<bool()>& condition, seconds at_most = seconds(60)) {
    return testing::wait(session_->loop, condition, at_most);
  }

  template <class... Rest>
  Guest& begin(const Identity& identity, Rest... rest) {
    guests_.push_back(std::make_unique<Guest>(*gateway_, identity, std::move(rest)...));
    return *guests_.back();
  }
  template <class... Rest>
  Guest& ask(const Identity& identity, Rest... rest) {
    Guest& guest = begin(identity, std::move(rest)...);
    EXPECT_TRUE(wait([&] { return guest.has_ended; })) << "no answer";
    return guest;
  }
  // The same request without a gateway in between.
  http::Response ask_directly(const Identity& identity, const std::string& target,
                              const std::string& method = "GET", const std::string& body = {}) {
    const auto response = session_->run(
        session_->client.as(identity).send({.method = method, .target = target, .body = body}, {}));
    EXPECT_TRUE(response.has_value());
    return response.value_or(http::Response());
  }
  Guest& watch(const Identity& identity, const std::string& collection,
               const std::string& query = {}) {
    Guest& guest = begin(identity, collection + "?watch=true" + query);
    EXPECT_TRUE(wait([&] { return guest.status != 0; }));
    return guest;
  }

  static std::string rings(const std::string& namespace_) {
    return "/apis/gateway.example.com/v1/namespaces/" + namespace_ + "/rings";
  }
  static std::string config_maps(const std::string& namespace_) {
    return "/api/v1/namespaces/" + namespace_ + "/configmaps";
  }

  static json::Value ring(const std::string& namespace_, const std::string& name,
                          const std::string& label, std::uint64_t nonce) {
    return json::parse(fmt::format(R"({{"apiVersion":"gateway.example.com/v1","kind":"Ring",
        "metadata":{{"namespace":"{}","name":"{}","labels":{{"l":"{}"}}}},"spec":{{"nonce":{}}}}})",
                                   namespace_, name, label, nonce))
        .value();
  }
  std::string put(const std::string& namespace_, const std::string& name,
                  const std::string& label = "x", std::uint64_t nonce = 0) {
    const json::Value made = session_->must(
        session_->client.apply(kRings, ring(namespace_, name, label, nonce), {.force = true}, {}));
    return std::string(json::string_at(made, {"metadata", "resourceVersion"}));
  }
  void put_config_map(const std::string& namespace_, const std::string& name,
                      const std::string& text) {
    session_->must(session_->client.apply(
        kube::kConfigMaps,
        kube::config_map(namespace_, name, fmt::format(R"({{"text":"{}"}})", text)),
        {.force = true}, {}));
  }
  // Watches of `shared_rings()` have one feed for all tenants that may see Rings everywhere.
  static void may_see_all_rings(const std::string& namespace_) {
    const auto applied = own_->kubectl({"apply", "-f", "-"}, fmt::format(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: all-rings}}
rules:
- {{apiGroups: [gateway.example.com], resources: [rings], verbs: [list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: all-rings-{0}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all-rings}}
subjects: [{{kind: ServiceAccount, name: guest, namespace: {0}}}]
)",
                                                                         namespace_));
    ASSERT_TRUE(applied.has_value()) << applied.error().message();
  }
  [[nodiscard]] std::string shared_rings() const {
    return "/apis/gateway.example.com/v1/rings?watch=true&labelSelector=l%3D" + mine_;
  }
  void put_large_rings(int from, int to) {
    for (int index = from; index < to; ++index) {
      json::Value large = ring(mine_, fmt::format("large-{}", index), mine_, 0);
      json::set_at(large, {"spec", "text"}, std::string(100 * limits::kKiB, 'x').c_str());
      session_->must(session_->client.apply(kRings, large, {.force = true}, {}));
    }
  }
  Guest& watch_shared_rings(const std::string& namespace_) {
    Guest& guest = begin(guest_of(namespace_), shared_rings());
    EXPECT_TRUE(wait([&] { return guest.status != 0; }));
    return guest;
  }
  // Makes the namespace hold so much with a watch of its own.
  void fill_account_of(const std::string& namespace_, int large_count) {
    for (int index = 0; index < large_count; ++index)
      put_config_map(namespace_, fmt::format("large-{:02}", index),
                     std::string(100 * limits::kKiB, 'x'));
    const std::uint64_t before = gateway_->use_of(namespace_).feed_bytes;
    watch(guest_of(namespace_), config_maps(namespace_));
    const std::uint64_t filled = (static_cast<std::uint64_t>(large_count) - 1) * 100 * limits::kKiB;
    EXPECT_TRUE(wait([&] { return gateway_->use_of(namespace_).feed_bytes >= before + filled; }));
  }

  void remove(const std::string& namespace_, const std::string& name) {
    session_->must(session_->client.remove(kRings, {namespace_, name}, {}, {}));
  }
  std::string version_now(const std::string& namespace_) {
    const auto list = session_->run(session_->client.list(kRings, {.namespace_ = namespace_}, {}));
    EXPECT_TRUE(list.has_value());
    return list ? list->resource_version : "0";
  }
  // Names and versions from the server.
  std::map<std::string, std::string> truth(const std::string& namespace_) {
    Session direct(own_->kubeconfig());
    const auto list = direct.run(direct.client.list(kRings, {.namespace_ = namespace_}, {}));
    EXPECT_TRUE(list.has_value());
    std::map<std::string, std::string> content;
    if (list)
      for (const kube::ObjectPtr& object : list->items)
        content[object->key().name] = object->resource_version();
    return content;
  }

  // Open watches of Rings, as the server counts them.
  double watches_at_server() {
    const auto response =
        session_->run(session_->client.send({.target = "/metrics", .accept = "text/plain"}, {}));
    EXPECT_TRUE(response.has_value());
    std::istringstream lines(response ? response->body : "");
    double sum = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("apiserver_longrunning_requests{") ||
          !line.contains(R"(resource="rings")") || !line.contains(R"(verb="WATCH")")) {
        continue;
      }
      sum += std::stod(line.substr(line.rfind(' ')));
    }
    return sum;
  }

  std::string mine_;
  std::string other_;
  budget::Accounts::Limits feed_memory_;  // Of the next gateway.
  budget::Rates rates_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<kube::Client> distant_;  // Of connect_cache_by_proxy().
  std::unique_ptr<kube::Cache> cache_;
  std::unique_ptr<kube::Discovery> discovery_;
  std::unique_ptr<Gateway> gateway_;
  std::vector<std::unique_ptr<Guest>> guests_;
};

using Lines = std::vector<Line>;

// The objects that a guest would know if it believed every event.
std::map<std::string, std::string> believe(const Lines& lines,
                                           std::map<std::string, std::string> content = {}) {
  for (const Line& line : lines) {
    if (line.type == "DELETED") {
      content.erase(line.name);
    } else if (line.type == "ADDED" || line.type == "MODIFIED") {
      content[line.name] = line.resource_version;
    }
  }
  return content;
}

TEST_F(GatewayTest, HundredWatchersAreOneWatchANamespaceAndSeeTheirOwnOnly) {
  // Earlier test programs may have left a watch that the server is about to end.
  ASSERT_TRUE(wait([this] { return watches_at_server() == 0; }));
  put(mine_, "old");
  put(other_, "foreign");
  const std::string version = version_now(mine_);
  std::vector<Guest*> watchers;
  for (int index = 0; index < 50; ++index) {
    watchers.push_back(&watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + version));
    watchers.push_back(&watch(guest_of(other_), rings(other_), "&resourceVersion=" + version));
  }
  EXPECT_EQ(watches_at_server(), 2);

  const std::string changed = put(mine_, "new");
  const auto is_there = [&] {
    for (std::size_t index = 0; index < watchers.size(); index += 2)
      if (watchers[index]->pieces.empty()) return false;
    return true;
  };
  ASSERT_TRUE(wait(is_there));
  for (std::size_t index = 0; index < watchers.size(); ++index) {
    const Lines expected = index % 2 == 0 ? Lines{{"ADDED", "new", changed}} : Lines{};
    EXPECT_EQ(watchers[index]->lines(), expected) << index;
    EXPECT_EQ(watchers[index]->status, 200);
  }
  EXPECT_EQ(watches_at_server(), 2);
}

TEST_F(GatewayTest, ChangesArePaidForByTheNamespacesThatWatch) {
  const auto paid_by = [this](const std::string& namespace_) {
    return rates_.use_of(budget::Tenant::of_namespace(namespace_), io::Loop::now()).total;
  };
  const std::string version = version_now(mine_);
  Guest& guest = watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + version);
  const Duration before = paid_by(mine_);
  const Duration before_of_other = paid_by(other_);

  put(mine_, "new");
  ASSERT_TRUE(wait([&] { return !guest.pieces.empty(); }));

  EXPECT_TRUE(wait([&] { return paid_by(mine_) > before; }));
  EXPECT_EQ(paid_by(other_), before_of_other);
}

TEST_F(GatewayTest, ChangesThatNobodyIsShownArePaidForByTheNamespaceThatOpenedTheFeed) {
  const auto paid = [this] {
    return rates_.use_of(budget::Tenant::of_namespace(mine_), io::Loop::now()).total;
  };
  Guest& first = watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + version_now(mine_));
  put(mine_, "new");
  ASSERT_TRUE(wait([&] { return !first.pieces.empty(); }));
  first.leave();
  const Duration before = paid();

  put(mine_, "newer");

  EXPECT_TRUE(wait([&] { return paid() > before; }));
}

TEST_F(GatewayTest, ManyNamespacesAreOneWatch) {
  ASSERT_TRUE(wait([this] { return watches_at_server() == 0; }));
  std::vector<std::string> namespaces = {mine_, other_};
  while (namespaces.size() < 6)
    namespaces.push_back(make_namespace());
  for (const std::string& one : namespaces)
    put(one, "thing");
  put(make_namespace(), "unseen");
  std::vector<Guest*> guests;
  for (const std::string& one : namespaces)
    guests.push_back(&watch(guest_of(one), rings(one)));
  EXPECT_TRUE(
      wait([this] { return cache_->statistics().watches == 1 && watches_at_server() == 1; }));
  EXPECT_EQ(cache_->statistics().objects, namespaces.size()) << "what no guest sees is not kept";
  for (std::size_t index = 0; index < namespaces.size(); ++index) {
    const std::string changed = put(namespaces[index], "thing", "x", 1);
    EXPECT_TRUE(wait([&] {
      return !guests[index]->pieces.empty() &&
             guests[index]->lines().back().resource_version == changed;
    }));
    for (const Line& line : guests[index]->lines())
      EXPECT_EQ(line.name, "thing");
  }
}

TEST_F(GatewayTest, AGuestMakesTheHostHoldItsOwnNamespaceOnly) {
  for (int index = 0; index < 5; ++index)
    put(other_, fmt::format("foreign-{}", index));
  put(mine_, "own");
  Guest& guest = watch(guest_of(mine_), rings(mine_));
  ASSERT_TRUE(wait([&] { return guest.pieces.size() == 1; }));
  EXPECT_EQ(cache_->statistics().objects, 1U);
  // A selector that only the server evaluates needs a watch of the guest's own at the server.
  std::vector<Guest*> selecting;
  for (int index = 0; index < 20; ++index) {
    selecting.push_back(&watch(guest_of(mine_), "/api/v1/namespaces/" + mine_ + "/secrets",
                               fmt::format("&fieldSelector=type%3Dexample.com%2F{}", index)));
  }
  for (const Guest* one : selecting)
    EXPECT_EQ(one->status, 200);
  EXPECT_EQ(cache_->statistics().watches, 1U);
  session_->must(session_->client.create(
      kube::kSecrets,
      json::parse(fmt::format(
                      R"({{"apiVersion":"v1","kind":"Secret","type":"example.com/7",
                          "metadata":{{"namespace":"{}","name":"seventh"}}}})",
                      mine_))
          .value(),
      {}, {}));
  ASSERT_TRUE(wait([&] { return !selecting[7]->pieces.empty(); }));
  EXPECT_EQ(selecting[7]->lines().front().name, "seventh");
  EXPECT_TRUE(selecting[6]->pieces.empty());
}

TEST_F(GatewayTest, OfWhatASelectorLeavesOutNothingIsHeld) {
  for (int index = 0; index < 5; ++index)
    put(mine_, fmt::format("unseen-{}", index), "y");
  put(mine_, "seen", "x");
  Guest& guest = watch(guest_of(mine_), rings(mine_), "&labelSelector=l%3Dx");
  ASSERT_TRUE(wait([&] { return guest.pieces.size() == 1; }));
  EXPECT_EQ(cache_->statistics().objects, 1U);

  // An object that enters the selection is Added, one that leaves it is Deleted, in its old state.
  const std::string entered = put(mine_, "unseen-1", "x");
  const std::string left = put(mine_, "seen", "y");
  ASSERT_TRUE(wait([&] { return guest.pieces.size() == 3; }));
  Lines lines = guest.lines();
  lines.erase(lines.begin());
  EXPECT_EQ(lines, (Lines{{"ADDED", "unseen-1", entered}, {"DELETED", "seen", left}}));
  EXPECT_TRUE(guest.pieces.back().contains(R"("l":"x")")) << guest.pieces.back();
  EXPECT_EQ(cache_->statistics().objects, 1U);

  // The same selector shares a feed; a selector of one name has its own.
  const auto feeds_before = gateway_->use_of(mine_).feeds;
  watch(guest_of(mine_), rings(mine_), "&labelSelector=l%3Dx");
  EXPECT_EQ(gateway_->use_of(mine_).feeds, feeds_before);
  watch(guest_of(mine_), rings(mine_), "&fieldSelector=metadata.name%3Dunseen-2");
  EXPECT_TRUE(wait([&] { return cache_->statistics().objects == 2; }));
}

TEST_F(GatewayTest, ManySelectorsInOnePlaceShareOneFeed) {
  ASSERT_TRUE(wait([this] { return watches_at_server() == 0; }));
  std::vector<Guest*> guests;
  for (std::size_t index = 0; index < 5 * kSelectingFeedsPerPlaceMax; ++index) {
    put(mine_, fmt::format("thing-{}", index), fmt::format("l{}", index));
    guests.push_back(
        &watch(guest_of(mine_), rings(mine_), fmt::format("&labelSelector=l%3Dl{}", index)));
  }
  EXPECT_EQ(gateway_->use_of(mine_).feeds, kSelectingFeedsPerPlaceMax + 1);
  EXPECT_TRUE(
      wait([this] { return cache_->statistics().watches == 1 && watches_at_server() == 1; }));
  for (std::size_t index = 0; index < guests.size(); ++index) {
    const std::string name = fmt::format("thing-{}", index);
    const std::string changed = put(mine_, name, fmt::format("l{}", index), 1);
    ASSERT_TRUE(wait([&] { return guests[index]->pieces.size() == 2; })) << index;
    EXPECT_EQ(guests[index]->lines().back(), (Line{"MODIFIED", name, changed}));
  }
}

TEST_F(GatewayTest, WatchesOfBareMetadataShareAWatchAndHoldNothingElse) {
  ASSERT_TRUE(wait([this] { return watches_at_server() == 0; }));
  json::Value large = ring(mine_, "large", "x", 0);
  constexpr std::size_t kLargeBytes = 100'000;
  json::set_at(large, {"spec", "text"}, json::String(std::string(kLargeBytes, 'a')));
  session_->must(session_->client.apply(kRings, large, {.force = true}, {}));
  put(mine_, "stays", "y");
  put(mine_, "goes");
  put(mine_, "leaves");
  const std::string then = version_now(mine_);
  const auto watch_metadata = [&](const Identity& identity, const std::string& place,
                                  const std::string& query) -> Guest& {
    Guest& guest = begin(identity, rings(place) + "?watch=true" + query, std::string("GET"),
                         std::string(), http::Headers{{"Accept", kMetadataOfClientGo}});
    EXPECT_TRUE(wait([&] { return guest.status != 0; }));
    return guest;
  };
  std::vector<Guest*> all;
  for (int index = 0; index < 20; ++index) {
    all.push_back(&watch_metadata(guest_of(mine_), mine_, "&resourceVersion=" + then));
    watch_metadata(guest_of(other_), other_, std::string(kNewestState));
  }
  Guest& selected =
      watch_metadata(guest_of(mine_), mine_, "&labelSelector=l%3Dx&resourceVersion=" + then);
  Guest& initial = watch_metadata(guest_of(mine_), mine_, kNewestState);
  ASSERT_TRUE(wait([&] { return initial.pieces.size() == 5; }));
  EXPECT_EQ(watches_at_server(), 2);
  EXPECT_LT(cache_->statistics().bytes, kLargeBytes / 2);
  EXPECT_TRUE(initial.pieces.back().contains(
      R"("object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",)"))
      << initial.pieces.back();

  put(mine_, "large", "x", 1);  // A change of the spec alone is one too.
  put(mine_, "leaves", "y");
  remove(mine_, "goes");
  put(mine_, "made");
  ASSERT_TRUE(wait([&] {
    return selected.pieces.size() == 4 &&
           std::ranges::all_of(all, [](const Guest* one) { return one->pieces.size() == 4; });
  }));
  for (const std::string selector : {"", "&labelSelector=l%3Dx"}) {
    const auto direct = session_->run(session_->client.as(guest_of(mine_))
                                          .send({.target = rings(mine_) +
                                                           "?watch=true&timeoutSeconds=2"
                                                           "&resourceVersion=" +
                                                           then + selector,
                                                 .accept = kMetadataOfServer},
                                                {}));
    ASSERT_TRUE(direct.has_value());
    const std::vector<std::string> expected = documents(direct->body);
    ASSERT_EQ(expected.size(), 4U) << direct->body;
    EXPECT_EQ(documents(selector.empty() ? all.front()->body() : selected.body()), expected);
  }
  for (const Guest* one : all)
    EXPECT_EQ(one->lines(), all.front()->lines());
}

TEST_F(GatewayTest, BareMetadataIsShownFromAFeedOfWholeObjectsIfThereIsOne) {
  const std::string a = put(mine_, "a");
  Guest& whole = watch(guest_of(mine_), rings(mine_));
  const auto feeds = gateway_->use_of(mine_).feeds;
  Guest& metadata = begin(guest_of(mine_), rings(mine_) + "?watch=true", std::string("GET"),
                          std::string(), http::Headers{{"Accept", kMetadataOfClientGo}});
  ASSERT_TRUE(wait([&] { return metadata.pieces.size() == 1 && whole.pieces.size() == 1; }));
  EXPECT_EQ(gateway_->use_of(mine_).feeds, feeds);
  EXPECT_EQ(metadata.lines(), (Lines{{"ADDED", "a", a}}));
  EXPECT_FALSE(metadata.body().contains("spec")) << metadata.body();
  EXPECT_TRUE(whole.body().contains("spec")) << whole.body();

  // The other way round, whole objects need a feed of their own.
  begin(guest_of(other_), rings(other_) + "?watch=true", std::string("GET"), std::string(),
        http::Headers{{"Accept", kMetadataOfClientGo}});
  const std::string b = put(other_, "b");
  Guest& complete = watch(guest_of(other_), rings(other_));
  ASSERT_TRUE(wait([&] { return !complete.pieces.empty(); }));
  EXPECT_EQ(gateway_->use_of(other_).feeds, 2U);
  EXPECT_TRUE(complete.body().contains("spec")) << complete.body();
}

TEST_F(GatewayTest, WatchesThatFailAreBoundedForANamespace) {
  std::vector<Guest*> failing;
  for (int index = 0; index < 30; ++index) {
    failing.push_back(&ask(
        guest_of(mine_), fmt::format("/apis/gateway.example.com/v{}/namespaces/{}/rings?watch=true",
                                     index + 2, mine_)));
  }
  for (const Guest* one : failing)
    EXPECT_EQ(one->status, 404);
  // Failed watches stay in the cache for half a minute.
  EXPECT_LE(cache_->statistics().watches, kFailedFeedsPerTenantMax);
  // Another namespace has room of its own.
  put(other_, "a");
  Guest& other = watch(guest_of(other_), rings(other_));
  ASSERT_TRUE(wait([&] { return other.pieces.size() == 1; }));
  EXPECT_LE(cache_->statistics().watches, kFailedFeedsPerTenantMax + 1);
}

TEST_F(GatewayTest, WatchesOfItsOwnAreBoundedForANamespace) {
  const std::string secrets = "/api/v1/namespaces/" + mine_ + "/secrets";
  std::vector<Guest*> guests;
  for (std::uint32_t index = 0; index < limits::kGatewayRequestsOpenMax + 3; ++index) {
    guests.push_back(&begin(guest_of(mine_),
                            secrets + fmt::format("?watch=true&fieldSelector=type%3Da{}", index)));
  }
  ASSERT_TRUE(wait([&] {
    return std::ranges::all_of(guests, [](const Guest* one) { return one->status != 0; });
  }));
  const auto with = [&](int status) {
    return std::ranges::count(guests, status, [](const Guest* one) { return one->status; });
  };
  EXPECT_EQ(with(200), limits::kGatewayRequestsOpenMax);
  EXPECT_EQ(with(429), 3);
  // A watch that ends makes room.
  guests.front()->leave();
  ASSERT_TRUE(wait([&] {
    Guest& next = begin(guest_of(mine_), secrets + "?watch=true&fieldSelector=type%3Db");
    return wait([&] { return next.status != 0; }) && next.status == 200;
  }));
}

TEST_F(GatewayTest, ANamespaceWithBoundsOfItsOwnHasNoMoreWatches) {
  gateway_->limit_tenants([this](const std::string& tenant) {
    return tenant == mine_
               ? TenantBounds{.feeds = 1, .own_watches = 1, .own_watches_set_by = "TenantPolicy a"}
               : TenantBounds();
  });
  watch(guest_of(mine_), rings(mine_));
  ASSERT_TRUE(wait([&] { return gateway_->use_of(mine_).feeds == 1; }));
  const std::string config_map_watch = config_maps(mine_) + "?watch=true";

  Guest& own = begin(guest_of(mine_), config_map_watch);
  ASSERT_TRUE(wait([&] { return own.status == 200; })) << "beyond the feeds, upstream";
  EXPECT_EQ(gateway_->use_of(mine_).own_watches, 1U);
  Guest& refused = begin(guest_of(mine_), config_map_watch);
  ASSERT_TRUE(wait([&] { return refused.status != 0; }));
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(
      refused.body().contains("1 watches that only the API server can answer, which is the "
                              "most (TenantPolicy a)"))
      << refused.body();
  // Another namespace has the same limit of its own.
  Guest& other = begin(guest_of(other_), config_maps(other_) + "?watch=true");
  EXPECT_TRUE(wait([&] { return other.status == 200; }));
}

TEST_F(GatewayTest, RequestsAtTheServerAreBoundedForANamespace) {
  connect(own_->proxied_kubeconfig());
  gateway_->limit_tenants([this](const std::string& tenant) {
    return tenant == other_ ? TenantBounds{.upstream_requests = 2} : TenantBounds();
  });
  ASSERT_TRUE(own_->delay_answers(seconds(20)).has_value());
  std::vector<Guest*> guests;
  for (std::size_t index = 0; index < kUpstreamRequestsPerTenantMax + 5; ++index)
    guests.push_back(&begin(guest_of(mine_), config_maps(mine_)));
  for (std::size_t index = 0; index < 3; ++index)
    guests.push_back(&begin(guest_of(other_), config_maps(other_)));
  Guest* const last_of_other = guests.back();

  ASSERT_TRUE(wait([&] { return gateway_->use_of(other_).upstream_requests_waiting == 1; }));
  EXPECT_EQ(gateway_->use_of(other_).upstream_requests, 2U);
  // hangar run: all its operators act as the user who started it.
  for (std::size_t index = 0; index < kUpstreamRequestsPerTenantMax + 5; ++index)
    guests.push_back(&begin(Identity(), config_maps(mine_)));
  const Gateway::Use mine = gateway_->use_of(mine_);
  EXPECT_EQ(mine.upstream_requests, kUpstreamRequestsPerTenantMax);
  EXPECT_EQ(mine.upstream_requests_waiting, 5U);
  // A waiting request that is cancelled lets the others go on.
  last_of_other->leave();
  std::erase(guests, last_of_other);
  EXPECT_TRUE(wait([&] { return gateway_->use_of(other_).upstream_requests_waiting == 0; }));
  EXPECT_EQ(gateway_->use_of({}).upstream_requests + gateway_->use_of({}).upstream_requests_waiting,
            0U);
  ASSERT_TRUE(own_->heal().has_value());
  EXPECT_TRUE(wait([&] {
    return std::ranges::all_of(guests, [](const Guest* one) { return one->status == 200; });
  }));
  EXPECT_TRUE(wait([&] { return gateway_->use_of(mine_).upstream_requests == 0; }));
}

TEST_F(GatewayTest, ObjectsThatAreTooManyToBeHeldAreRefusedWithWords) {
  feed_memory_ = {.tenant_bytes_max = limits::kMiB};
  connect(own_->kubeconfig());
  const std::string large(100 * limits::kKiB, 'x');
  for (int index = 0; index < 20; ++index)
    put_config_map(mine_, fmt::format("large-{:02}", index), large);
  put_config_map(other_, "small", "x");

  const Guest& refused = ask(guest_of(mine_), config_maps(mine_) + "?watch=true");
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.body().contains("1 MiB of its namespace")) << refused.body();
  EXPECT_EQ(refused.bound, json::string_at(json::parse(refused.body()).value(), {"message"}));
  EXPECT_EQ(gateway_->use_of(mine_).feed_bytes, 0U);
  EXPECT_TRUE(wait([this] { return cache_->statistics().watches == 0; })) << "it is read no more";
  // It is not tried again at once.
  const double before = kube::requests(session_->metrics, "GET", "200");
  for (int index = 0; index < 20; ++index)
    EXPECT_EQ(ask(guest_of(mine_), config_maps(mine_) + "?watch=true").status, 429);
  EXPECT_EQ(kube::requests(session_->metrics, "GET", "200"), before);

  // What needs no memory of the host is served, and so is what fits, and who holds little.
  EXPECT_EQ(ask(guest_of(mine_), config_maps(mine_) + "?limit=1").status, 200);
  const Guest& one =
      watch(guest_of(mine_), config_maps(mine_), "&fieldSelector=metadata.name%3Dlarge-00");
  EXPECT_EQ(one.status, 200);
  EXPECT_TRUE(wait([&] { return one.pieces.size() == 1; }));
  EXPECT_GT(gateway_->use_of(mine_).feed_bytes, 0U);
  EXPECT_EQ(watch(guest_of(other_), config_maps(other_)).status, 200);
}

TEST_F(GatewayTest, AWatchWhoseObjectsGrowBeyondWhatMayBeHeldEnds) {
  feed_memory_ = {.tenant_bytes_max = limits::kMiB};
  connect(own_->kubeconfig());
  const Guest& guest = watch(guest_of(mine_), config_maps(mine_));
  const std::string large(300 * limits::kKiB, 'x');
  for (int index = 0; index < 5; ++index)
    put_config_map(mine_, fmt::format("large-{}", index), large);

  ASSERT_TRUE(wait([&] { return guest.has_ended; }));
  EXPECT_EQ(guest.lines().back().type, "ERROR");
  EXPECT_TRUE(guest.pieces.back().contains("1 MiB of its namespace")) << guest.pieces.back();
  EXPECT_EQ(ask(guest_of(mine_), config_maps(mine_) + "?watch=true").status, 429);
  EXPECT_EQ(gateway_->use_of(mine_).feed_bytes, 0U);
}

TEST_F(GatewayTest, ASharedWatchGoesOnWhereAnotherNamespaceThatWatchesHasRoom) {
  feed_memory_ = {.tenant_bytes_max = limits::kMiB};
  connect(own_->kubeconfig());
  may_see_all_rings(mine_);
  may_see_all_rings(other_);
  put_large_rings(0, 2);
  const Guest& opener = watch_shared_rings(mine_);
  const Guest& other = watch_shared_rings(other_);
  ASSERT_TRUE(wait([&] { return opener.pieces.size() == 2 && other.pieces.size() == 2; }));
  EXPECT_EQ(gateway_->use_of(other_).feed_bytes, 0U) << "the one that opened it pays";
  fill_account_of(mine_, 7);

  put_large_rings(2, 5);

  ASSERT_TRUE(wait([&] { return opener.pieces.size() == 5 && other.pieces.size() == 5; }));
  EXPECT_FALSE(opener.has_ended);
  EXPECT_FALSE(other.has_ended);
  EXPECT_GT(gateway_->use_of(other_).feed_bytes, 400 * limits::kKiB);
  EXPECT_EQ(gateway_->use_of(other_).feeds, 1U);
  EXPECT_LT(gateway_->use_of(mine_).feed_bytes, 800 * limits::kKiB);
}

TEST_F(GatewayTest, WhatIsTooLargeForOneNamespaceIsReadForAnother) {
  feed_memory_ = {.tenant_bytes_max = limits::kMiB};
  connect(own_->kubeconfig());
  may_see_all_rings(mine_);
  may_see_all_rings(other_);
  put_large_rings(0, 5);
  fill_account_of(mine_, 7);
  const Guest& refused = begin(guest_of(mine_), shared_rings());
  ASSERT_TRUE(wait([&] { return gateway_->use_of(mine_).feeds == 2; }));
  // It waits for the feed that the first one has opened.
  const Guest& other = begin(guest_of(other_), shared_rings());
  ASSERT_TRUE(wait([&] { return refused.has_ended && other.status != 0; }));
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.body().contains("1 MiB of its namespace")) << refused.body();
  EXPECT_EQ(other.status, 200);
  ASSERT_TRUE(wait([&] { return other.pieces.size() == 5; }));

  EXPECT_EQ(watch_shared_rings(mine_).status, 200) << "of the other one's feed";
}

TEST_F(GatewayTest, ARefusalTellsANamespaceOfItsOwnBoundOnlyAndStays) {
  feed_memory_ = {.tenant_bytes_max = limits::kMiB};
  connect(own_->kubeconfig());
  may_see_all_rings(mine_);
  may_see_all_rings(other_);
  put_large_rings(0, 7);
  fill_account_of(mine_, 8);
  fill_account_of(other_, 6);

  const std::string mine = ask(guest_of(mine_), shared_rings()).body();
  const std::string other = ask(guest_of(other_), shared_rings()).body();

  EXPECT_TRUE(mine.contains("1 MiB of its namespace")) << mine;
  EXPECT_TRUE(other.contains("1 MiB of its namespace")) << other;
  // Beside the feed of ConfigMaps, each has one that failed on its own account.
  EXPECT_EQ(gateway_->use_of(mine_).feeds, 2U);
  EXPECT_EQ(gateway_->use_of(other_).feeds, 2U);
  // The objects are not read again at once, however the two take turns.
  const double before = kube::requests(session_->metrics, "GET", "200");
  for (int index = 0; index < 5; ++index) {
    EXPECT_EQ(ask(guest_of(mine_), shared_rings()).body(), mine);
    EXPECT_EQ(ask(guest_of(other_), shared_rings()).body(), other);
  }
  EXPECT_EQ(kube::requests(session_->metrics, "GET", "200"), before);
}

TEST_F(GatewayTest, ASharedWatchThatNobodyHasRoomForEnds) {
  feed_memory_ = {.tenant_bytes_max = limits::kMiB};
  connect(own_->kubeconfig());
  may_see_all_rings(mine_);
  may_see_all_rings(other_);
  put_large_rings(0, 1);
  const Guest& opener = watch_shared_rings(mine_);
  const Guest& other = watch_shared_rings(other_);
  fill_account_of(mine_, 7);
  fill_account_of(other_, 8);

  put_large_rings(1, 5);

  ASSERT_TRUE(wait([&] { return opener.has_ended && other.has_ended; }));
  EXPECT_TRUE(opener.pieces.back().contains("1 MiB of its namespace")) << opener.pieces.back();
  EXPECT_TRUE(other.pieces.back().contains("the watch of this resource has ended"))
      << other.pieces.back();
  const Guest& refused = ask(guest_of(other_), shared_rings());
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.body().contains("1 MiB of its namespace")) << refused.body();
}

TEST_F(GatewayTest, WhoGoesOnWatchingPaysOnceTheOpenerHasLeft) {
  feed_memory_ = {.tenant_bytes_max = limits::kMiB};
  connect(own_->kubeconfig());
  const std::string full = make_namespace();
  for (const std::string& one : {mine_, other_, full})
    may_see_all_rings(one);
  put_large_rings(0, 4);
  fill_account_of(full, 8);
  Guest& opener = watch_shared_rings(mine_);
  Guest& other = watch_shared_rings(other_);
  const Guest& last = watch_shared_rings(full);
  ASSERT_TRUE(wait([&] { return other.pieces.size() == 4 && last.pieces.size() == 4; }));

  opener.leave();

  EXPECT_TRUE(wait([&] { return gateway_->use_of(mine_).feed_bytes == 0; }));
  EXPECT_GT(gateway_->use_of(other_).feed_bytes, 300 * limits::kKiB);
  EXPECT_EQ(gateway_->use_of(mine_).feeds, 0U);
  put_large_rings(4, 5);
  ASSERT_TRUE(wait([&] { return other.pieces.size() == 5 && last.pieces.size() == 5; }));

  // The last one has no room for them.
  other.leave();

  ASSERT_TRUE(wait([&] { return last.has_ended; }));
  EXPECT_TRUE(last.pieces.back().contains("the watch of this resource has ended"))
      << last.pieces.back();
  const Guest& refused = ask(guest_of(full), shared_rings());
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.body().contains("1 MiB of its namespace")) << refused.body();
}

TEST_F(GatewayTest, AWatchGoesOnExactlyFromWhereItWas) {
  for (const std::string selector : {"", "&labelSelector=l%3Dx"}) {
    const std::string start = version_now(mine_);
    Lines direct;
    std::stop_source stop;
    bool is_over = false;
    const auto follow = [](kube::Client client, std::string namespace_, std::string query,
                           Lines& lines, bool& over, std::stop_token token) -> io::Task<void> {
      (void)co_await client.watch(
          kRings, std::move(namespace_), std::move(query),
          [&lines](std::string_view line) {
            lines.push_back(read_line(line));
            return Result<>();
          },
          std::move(token));
      over = true;
    };
    session_->loop.spawn(follow(session_->client, mine_, "resourceVersion=" + start + selector,
                                direct, is_over, stop.get_token()));

    // The guest is cut off again and again, and continues from the last version that it saw.
    std::mt19937 random(7);
    Lines seen;
    std::string place = start;
    Guest* guest = &watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + place + selector);
    const auto cut = [&] {
      const Lines lines = guest->lines();
      guest->leave();
      seen.insert(seen.end(), lines.begin(), lines.end());
      if (!lines.empty()) place = lines.back().resource_version;
    };
    for (std::uint64_t step = 0; step < 80; ++step) {
      const std::string name(1, static_cast<char>('a' + random() % 4));
      if (random() % 4 == 0) {
        (void)session_->run(session_->client.remove(kRings, {mine_, name}, {}, {}));
      } else {
        put(mine_, name, random() % 2 == 0 ? "x" : "y", step);
      }
      if (random() % 5 == 0) {
        cut();
        guest = &watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + place + selector);
      }
    }
    put(mine_, "last", "x", 1000 + seen.size());
    const auto has_last = [](const Lines& lines) {
      return std::ranges::any_of(lines, [](const Line& line) { return line.name == "last"; });
    };
    ASSERT_TRUE(wait([&] { return has_last(direct) && has_last(guest->lines()); }));
    cut();
    EXPECT_EQ(seen, direct) << selector;
    EXPECT_GT(seen.size(), 20U);
    remove(mine_, "last");
    stop.request_stop();
    ASSERT_TRUE(wait([&] { return is_over; }));
  }
}

TEST_F(GatewayTest, AWatchWithoutAVersionBeginsWithWhatThereIs) {
  const std::string a = put(mine_, "a");
  put(mine_, "b", "other");
  for (const std::string version : {"", "&resourceVersion=0"}) {
    Guest& guest = watch(guest_of(mine_), rings(mine_), version + "&labelSelector=l%3Dx");
    ASSERT_TRUE(wait([&] { return !guest.pieces.empty(); }));
    EXPECT_EQ(guest.lines(), (Lines{{"ADDED", "a", a}}));
  }
  // As new as on the server, though the cache may not have received it.
  const std::string c = put(mine_, "c");
  Guest& initial =
      watch(guest_of(mine_), rings(mine_),
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            "&labelSelector=l%3Dx");
  ASSERT_TRUE(wait([&] { return initial.pieces.size() >= 3; }));
  const Lines lines = initial.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(believe(lines), (std::map<std::string, std::string>{{"a", a}, {"c", c}}));
  EXPECT_EQ(lines.back().type, "BOOKMARK");
  EXPECT_TRUE(initial.pieces.back().contains(R"("k8s.io/initial-events-end":"true")"));
  const std::string d = put(mine_, "d");
  ASSERT_TRUE(wait([&] { return initial.pieces.size() >= 4; }));
  EXPECT_EQ(initial.lines().back(), (Line{"ADDED", "d", d}));
}

TEST_F(GatewayTest, WatchesThatBeginWithTheNewestStateAskForItOnce) {
  for (int index = 0; index < 10; ++index)
    put(mine_, fmt::format("ring-{}", index));
  watch(guest_of(mine_), rings(mine_));
  const double before = kube::requests(session_->metrics, "GET", "200");
  std::vector<Guest*> guests;
  for (std::uint32_t index = 0; index < limits::kGatewayRequestsOpenMax; ++index)
    guests.push_back(&begin(guest_of(mine_), rings(mine_) + "?watch=true" + kNewestState));

  ASSERT_TRUE(wait([&] {
    return std::ranges::all_of(guests, [](const Guest* one) { return one->pieces.size() == 11; });
  }));
  // One request for those that came before it was sent, and one for the others.
  EXPECT_LE(kube::requests(session_->metrics, "GET", "200") - before, 2);
}

TEST_F(GatewayTest, AWatchThatBeginsWithTheNewestStateHasWhatIsThereAtTheServer) {
  connect_cache_by_proxy();
  put(mine_, "stays");
  watch(guest_of(mine_), rings(mine_));
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time.
  for (std::uint64_t round = 0; round < 40; ++round) {
    // The feed is behind by the time that the proxy takes.
    ASSERT_TRUE(own_->heal().has_value());
    ASSERT_TRUE(own_->delay_answers(std::chrono::milliseconds(1 + random() % 50)).has_value());
    for (int change = 0; change < 3; ++change) {
      const std::string name = fmt::format("ring-{}", random() % 4);
      if (random() % 3 == 0) {
        (void)session_->run(session_->client.remove(kRings, {mine_, name}, {}, {}));
      } else {
        put(mine_, name, "x", round * 10 + static_cast<std::uint64_t>(change));
      }
    }
    Guest& guest = watch(guest_of(mine_), rings(mine_), kNewestState);
    ASSERT_TRUE(wait([&] {
      return !guest.pieces.empty() && guest.pieces.back().contains("initial-events-end");
    })) << round;
    ASSERT_EQ(believe(guest.lines()), truth(mine_)) << round;
  }
  // None of them is told anything twice, or too little.
  ASSERT_TRUE(own_->heal().has_value());
  put(mine_, "last");
  const std::map<std::string, std::string> now = truth(mine_);
  for (const auto& guest : guests_)
    EXPECT_TRUE(wait([&] { return believe(guest->lines()) == now; })) << guest->body();
}

TEST_F(GatewayTest, AWatchFromBeforeTheHistoryIsToldWhatChangedSince) {
  put(mine_, "stays");
  put(mine_, "goes");
  put(mine_, "changes");
  const std::string then = version_now(mine_);
  remove(mine_, "goes");
  const std::string changed = put(mine_, "changes", "x", 2);
  const std::string made = put(mine_, "made");
  // There was no watch so far, so the cache has no history of this.
  Guest& guest = watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + then);
  ASSERT_TRUE(wait([&] { return guest.pieces.size() >= 3; }));
  EXPECT_EQ(guest.status, 200);
  EXPECT_EQ(guest.lines(), (Lines{{"DELETED", "goes", then},
                                  {"MODIFIED", "changes", changed},
                                  {"ADDED", "made", made}}));
}

TEST_F(GatewayTest, AVersionThatTheServerForgotIsGone) {
  put(mine_, "a");
  const std::string then = version_now(mine_);
  // Compaction depends on time, and needs a write.
  const Instant until = io::Loop::now() + seconds(60);
  std::uint64_t nonce = 0;
  Guest* guest = nullptr;
  do {
    ASSERT_LT(io::Loop::now(), until) << "never compacted";
    put(mine_, "a", "x", ++nonce);
    (void)session_->run(session_->loop.sleep(seconds(1), {}));
    connect(own_->kubeconfig());  // A host without a history.
    guest = &watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + then);
    ASSERT_TRUE(wait([&] { return !guest->pieces.empty(); }));
  } while (guest->lines().front().type != "ERROR");
  EXPECT_EQ(guest->status, 200) << "as the API server has it: the watch begins, then ends";
  EXPECT_TRUE(guest->has_ended);
  const json::Value event = json::parse(guest->pieces.front()).value();
  EXPECT_EQ(json::int_at(event, {"object", "code"}), 410);
  EXPECT_EQ(json::string_at(event, {"object", "reason"}), "Expired");
  EXPECT_EQ(json::string_at(event, {"object", "kind"}), "Status");
}

TEST_F(GatewayTest, AWatchFromTheFutureWaits) {
  watch(guest_of(mine_), rings(mine_));
  const std::string ahead = version_now(mine_);
  Guest& guest = watch(guest_of(mine_), rings(mine_),
                       fmt::format("&resourceVersion={}", std::stoull(ahead) + 2));
  const std::string first = put(mine_, "a");
  std::string last = first;
  for (std::uint64_t nonce = 1; nonce < 6; ++nonce)
    last = put(mine_, "a", "x", nonce);
  ASSERT_TRUE(
      wait([&] { return !guest.pieces.empty() && guest.lines().back().resource_version == last; }));
  for (const Line& line : guest.lines())
    EXPECT_GT(std::stoull(line.resource_version), std::stoull(ahead) + 2);
}

TEST_F(GatewayTest, AWatchEndsInOrderAfterItsTimeWithABookmark) {
  watch({}, "/apis/gateway.example.com/v1/rings");  // So that changes elsewhere count too.
  std::string start;
  const Guest* guest = nullptr;
  // On a busy machine the event comes after the end of a short watch.
  for (int time = 1; time <= 64 && (guest == nullptr || guest->bookmarks.empty()); time *= 4) {
    start = version_now(mine_);
    guest = &watch(
        guest_of(mine_), rings(mine_),
        fmt::format("&timeoutSeconds={}&allowWatchBookmarks=true&resourceVersion={}", time, start));
    put(other_, fmt::format("elsewhere-{}", time));
    ASSERT_TRUE(wait([&] { return guest->has_ended; }, seconds(180)));
    EXPECT_TRUE(guest->pieces.empty());
  }
  ASSERT_FALSE(guest->bookmarks.empty());
  const Line last = read_line(guest->bookmarks.back());
  EXPECT_EQ(last.type, "BOOKMARK");
  EXPECT_GT(std::stoull(last.resource_version), std::stoull(start));
}

TEST_F(GatewayTest, ReadsComeFromTheCacheOnlyWhenTheyMay) {
  const std::string a = put(mine_, "a");
  put(mine_, "b", "other");
  const auto from_cache = [this] {
    double sum = 0;
    for (const Metrics::Family& family : session_->metrics.collect()) {
      if (family.name != "hangar_gateway_requests_total") continue;
      for (const Metrics::Sample& sample : family.samples)
        for (const auto& [label, value] : sample.labels)
          if (label == "source" && value == "cache") sum += sample.value;
    }
    return sum;
  };
  watch(guest_of(mine_), rings(mine_));
  ASSERT_EQ(from_cache(), 1);

  const Guest& any = ask(guest_of(mine_), rings(mine_) + "?resourceVersion=0&labelSelector=l%3Dx");
  const json::Value list = json::parse(any.body()).value();
  EXPECT_EQ(json::string_at(list, {"kind"}), "RingList");
  ASSERT_EQ(json::array_at(list, {"items"})->size(), 1U);
  const Guest& one = ask(guest_of(mine_), rings(mine_) + "/a?resourceVersion=0");
  EXPECT_EQ(json::string_at(json::parse(one.body()).value(), {"metadata", "resourceVersion"}), a);
  const Guest& none = ask(guest_of(mine_), rings(mine_) + "/none?resourceVersion=0");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(json::string_at(json::parse(none.body()).value(), {"message"}),
            json::string_at(
                json::parse(ask_directly(guest_of(mine_), rings(mine_) + "/none").body).value(),
                {"message"}));
  EXPECT_EQ(from_cache(), 4);

  for (const std::string& target :
       {rings(mine_), rings(mine_) + "/a", rings(mine_) + "?limit=1",
        rings(mine_) + "?resourceVersion=" + a + "&resourceVersionMatch=Exact"}) {
    const Guest& fresh = ask(guest_of(mine_), target);
    EXPECT_EQ(fresh.status, 200) << target;
    EXPECT_EQ(from_cache(), 4) << target;
  }
  // Only the server can render a Table.
  const Guest& table = ask(
      guest_of(mine_), rings(mine_) + "?resourceVersion=0", std::string("GET"), std::string(),
      http::Headers{{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}});
  EXPECT_TRUE(table.body().contains(R"("kind":"Table")"));
  const Guest& binary =
      ask(guest_of(mine_), rings(mine_) + "?watch=true", std::string("GET"), std::string(),
          http::Headers{{"Accept", "application/vnd.kubernetes.protobuf"}});
  EXPECT_EQ(binary.status, 406);
}

// As many writes as HANGAR_OWN_WRITES says, or 200.
TEST_F(GatewayTest, AGuestReadsItsOwnWritesFromACacheThatIsFiveSecondsBehind) {
  connect_cache_by_proxy();
  const char* const asked = std::getenv("HANGAR_OWN_WRITES");
  const int count = asked != nullptr ? std::stoi(asked) : 200;
  const Identity me = guest_of(mine_);
  const std::string one = rings(mine_) + "/one";
  const std::string any = "?resourceVersion=0";
  // Ways to ask for a state that may be old, and for the newest.
  const std::vector<std::string> forms = {
      any,
      "",
      "?resourceVersion=1",
      "?resourceVersion=0&resourceVersionMatch=NotOlderThan",
      "?resourceVersion=1&resourceVersionMatch=NotOlderThan",
      "?resourceVersion=0&limit=500",
      "?resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=500",
      "?limit=500"};
  const auto nonce_of = [](const json::Value& object) {
    return json::int_at(object, {"spec", "nonce"}, -1);
  };
  put(mine_, "one");
  put(mine_, "two");
  const Guest& watching = watch(me, rings(mine_));
  ASSERT_TRUE(wait([&] { return watching.pieces.size() == 2; }));
  ASSERT_TRUE(own_->delay_answers(seconds(5)).has_value());

  int stale = 0;
  for (int written = 1; written <= count; ++written) {
    const Guest& change =
        ask(me, one, std::string("PATCH"), fmt::format(R"({{"spec":{{"nonce":{}}}}})", written),
            http::Headers{{"Content-Type", "application/merge-patch+json"}});
    ASSERT_EQ(change.status, 200) << change.body();
    const std::string& form = forms[static_cast<std::size_t>(written) % forms.size()];
    const Guest& read = ask(me, one + form);
    ASSERT_EQ(read.status, 200) << form << ": " << read.body();
    if (nonce_of(json::parse(read.body()).value()) != written) ++stale;
    const Guest& list = ask(me, rings(mine_) + form);
    ASSERT_EQ(list.status, 200) << form << ": " << list.body();
    const json::Value all = json::parse(list.body()).value();
    for (const json::Value& object : *json::array_at(all, {"items"})) {
      if (json::string_at(object, {"metadata", "name"}) == "one" && nonce_of(object) != written) {
        ++stale;
      }
    }
    if (guests_.size() > 100) guests_.erase(guests_.begin() + 1, guests_.end());
  }
  EXPECT_EQ(stale, 0);

  // The deleted object is gone, and the later one is there.
  EXPECT_EQ(ask(me, rings(mine_) + "/two", std::string("DELETE")).status, 200);
  EXPECT_EQ(ask(me, rings(mine_) + "/two" + any).status, 404);
  EXPECT_FALSE(ask(me, rings(mine_) + any).body().contains(R"("two")"));
  EXPECT_EQ(
      ask(me, rings(mine_), std::string("POST"), json::dump(ring(mine_, "two", "x", 1))).status,
      201);
  EXPECT_EQ(ask(me, rings(mine_) + "/two" + any).status, 200);

  // It does not delay reads of other guests, and the watch delivers all of it in time.
  const Guest& other = ask(Identity(), one + any);
  EXPECT_LT(nonce_of(json::parse(other.body()).value()), count);
  ASSERT_TRUE(own_->heal().has_value());
  EXPECT_TRUE(wait(
      [&] { return nonce_of(json::parse(ask(Identity(), one + any).body()).value()) == count; }));
  const Histogram& lag =
      session_->metrics.histogram("hangar_gateway_own_write_lag_seconds", {}, {});
  EXPECT_TRUE(wait([&] { return lag.snapshot().cumulative_counts.back() > 0; }));
}

TEST_F(GatewayTest, ALargeListIsMadeWhileOthersHaveTheirTurn) {
  constexpr int kCount = 20;
  const std::string payload(300'000, 'x');
  for (int index = 0; index < kCount; ++index) {
    session_->must(
        session_->client.create(kube::kConfigMaps,
                                json::parse(fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap",
            "metadata":{{"namespace":"{}","name":"c{}","labels":{{"app":"x"}}}},"data":{{"a":"{}"}}}})",
                                                        mine_, index, payload))
                                    .value(),
                                {}, {}));
  }
  Guest& watcher = watch(guest_of(mine_), config_maps(mine_));
  ASSERT_TRUE(wait([&] { return watcher.pieces.size() >= kCount; }));

  // Work that needs the loop again and again, as the Lease does.
  std::uint64_t rounds = 0;
  bool is_over = false;
  std::function<void()> tick = [&] {
    ++rounds;
    if (!is_over) session_->loop.post([&] { tick(); });
  };
  session_->loop.post([&] { tick(); });
  // Records when the pieces came.
  class Listener final : public Answer {
   public:
    explicit Listener(const std::uint64_t& rounds) : rounds_(rounds) {}
    void on_head(int, http::Headers) override {}
    void on_piece(Piece piece) override {
      const std::string text = text_of(piece);
      EXPECT_LE(text.size(), 1'500'000U);
      EXPECT_TRUE(body.empty() || rounds_ > last_) << "two pieces in one round of the loop";
      last_ = rounds_;
      body += text;
    }
    void on_bookmark(std::string) override {}
    void on_end() override { has_ended = true; }

    std::string body;
    bool has_ended = false;

   private:
    const std::uint64_t& rounds_;
    std::uint64_t last_ = 0;
  };
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (const char* query : {"?resourceVersion=0", "?resourceVersion=0&labelSelector=app%3Dx"}) {
    listeners.push_back(std::make_unique<Listener>(rounds));
    exchanges.push_back(gateway_->begin(guest_of(mine_),
                                        {.method = "GET", .target = config_maps(mine_) + query},
                                        *listeners.back()));
  }
  EXPECT_TRUE(wait([&] {
    return std::ranges::all_of(listeners, [](const auto& one) { return one->has_ended; });
  }));
  is_over = true;
  const std::uint64_t last = rounds;
  ASSERT_TRUE(wait([&] { return rounds > last; }));
  for (const auto& listener : listeners) {
    const json::Value list = json::parse(listener->body).value_or(json::Value());
    const json::Array* const items = json::array_at(list, {"items"});
    ASSERT_NE(items, nullptr);
    EXPECT_EQ(
        std::ranges::count_if(
            *items, [](const json::Value& item) { return kube::label_of(item, "app") == "x"; }),
        kCount);
  }
}

TEST_F(GatewayTest, ShowsAGuestNothingThatTheServerWouldNot) {
  put(other_, "foreign");
  session_->must(
      session_->client.create(kube::kSecrets,
                              json::parse(fmt::format(R"({{"apiVersion":"v1","kind":"Secret",
        "metadata":{{"namespace":"{}","name":"secret"}},"stringData":{{"a":"hidden-value"}}}})",
                                                      other_))
                                  .value(),
                              {}, {}));
  // The cache has all objects that are requested below: the host may read them.
  for (const char* all : {"/apis/gateway.example.com/v1/rings", "/api/v1/secrets",
                          "/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/serviceaccounts"}) {
    Guest& warm = watch({}, all);
    ASSERT_EQ(warm.status, 200) << all;
  }
  const Identity guest = guest_of(mine_);
  std::vector<std::pair<std::string, std::string>> forbidden;  // Method and target.
  const std::vector<std::string> collections = {rings(other_),
                                                "/apis/gateway.example.com/v1/rings",
                                                "/api/v1/namespaces/" + other_ + "/secrets",
                                                "/api/v1/secrets",
                                                "/api/v1/namespaces/" + other_ + "/configmaps",
                                                "/api/v1/namespaces/" + mine_ + "/serviceaccounts",
                                                "/api/v1/namespaces"};
  for (const std::string& collection : collections) {
    for (const char* query :
         {"", "?resourceVersion=0", "?resourceVersion=1&resourceVersionMatch=NotOlderThan",
          "?watch=true", "?watch=true&resourceVersion=0", "?watch=true&resourceVersion=1",
          "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
          "?watch=true&labelSelector=a", "?watch=true&fieldSelector=metadata.name%3Dx",
          "?fieldSelector=metadata.namespace%3Dx&resourceVersion=0"}) {
      forbidden.emplace_back("GET", collection + query);
    }
    forbidden.emplace_back("DELETE", collection);
    forbidden.emplace_back("POST", collection);
    forbidden.emplace_back("PUT", collection + "/foreign");
    forbidden.emplace_back("PATCH", collection + "/foreign");
    forbidden.emplace_back("GET", collection + "/foreign/status");
    forbidden.emplace_back("PATCH", collection + "/foreign/status");
    forbidden.emplace_back("GET", collection + "/foreign");
    forbidden.emplace_back("GET", collection + "/foreign?resourceVersion=0");
    forbidden.emplace_back("DELETE", collection + "/foreign");
  }
  forbidden.emplace_back("GET", "/api/v1/watch/secrets");
  forbidden.emplace_back("GET", "/api/v1/watch/namespaces/" + other_ + "/secrets/secret");
  forbidden.emplace_back("GET", "/api/v1/namespaces/" + other_ + "?resourceVersion=0");
  // The namespace of the path counts, whatever the selector says.
  forbidden.emplace_back("GET",
                         "/api/v1/secrets?watch=true&fieldSelector=metadata.namespace%3D" + mine_);
  for (const auto& [method, target] : forbidden) {
    const Guest& answer = ask(guest, target, method);
    const http::Response direct = ask_directly(guest, target, method);
    EXPECT_EQ(direct.status, 403) << "the table is wrong: " << method << " " << target;
    EXPECT_EQ(answer.status, 403) << method << " " << target;
    EXPECT_EQ(answer.body(), direct.body) << method << " " << target;
  }
  const std::string body = json::dump(ring(other_, "new", "x", 0));
  for (const auto& [method, target] : std::vector<std::pair<std::string, std::string>>{
           {"POST", rings(other_)}, {"PUT", rings(other_) + "/foreign"}}) {
    const Guest& answer = ask(guest, target, method, body);
    EXPECT_EQ(answer.status, 403) << method;
  }
  // Only the host says who the guest is.
  const Guest& pretender =
      ask(guest, std::string("/api/v1/secrets"), std::string("GET"), std::string(),
          http::Headers{{"Impersonate-User", "admin"},
                        {"Impersonate-Group", "system:masters"},
                        {"Impersonate-Uid", "1"},
                        {"Impersonate-Extra-Scopes", "all"},
                        {"X-Remote-User", "admin"},
                        {"X-Remote-Group", "system:masters"},
                        {"Authorization", "Bearer x"}});
  EXPECT_EQ(pretender.status, 403);
  EXPECT_TRUE(pretender.body().contains("system:serviceaccount:" + mine_ + ":guest"));
  for (const auto& one : guests_)
    if (one->status == 403) EXPECT_FALSE(one->body().contains("hidden-value"));
}

TEST_F(GatewayTest, RightsInANamespaceShowNothingOfTheCluster) {
  // This guest may do everything within its namespace, and see nothing of the cluster.
  ASSERT_TRUE(own_->kubectl({"apply", "-f", "-"}, fmt::format(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: all, namespace: {0}}}
rules: [{{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: all, namespace: {0}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: all}}
subjects: [{{kind: ServiceAccount, name: guest, namespace: {0}}}]
---
apiVersion: v1
kind: Node
metadata: {{name: node-of-{0}}}
)",
                                                              mine_))
                  .has_value());
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"/api/v1", "namespaces"},
      {"/api/v1", "nodes"},
      {"/apis/rbac.authorization.k8s.io/v1", "clusterroles"},
      {"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"}};
  for (const auto& [prefix, plural] : kinds)
    ASSERT_EQ(watch({}, prefix + "/" + plural).status, 200) << plural;
  const Identity guest = guest_of(mine_);
  ASSERT_TRUE(wait([&] {  // The authorizer reads its rules from a watch.
    return ask_directly(guest, "/api/v1/namespaces/" + mine_ + "/services").status == 200;
  }));
  const std::vector<std::string> names = {"/" + other_, "/" + mine_, "/node-of-" + mine_,
                                          "/cluster-admin", "/rings.gateway.example.com"};
  for (const auto& [prefix, plural] : kinds) {
    const std::string within = prefix + "/namespaces/" + mine_ + "/" + plural;
    std::vector<std::string> targets;
    for (const char* query : {"?resourceVersion=0", "?watch=true&resourceVersion=0", "?watch=true",
                              "?resourceVersion=0&fieldSelector=metadata.namespace%3D",
                              "?resourceVersion=0&fieldSelector=metadata.namespace%21%3Dx",
                              "?resourceVersion=1&resourceVersionMatch=NotOlderThan", ""}) {
      targets.push_back(within + query);
    }
    for (const std::string& name : names)
      targets.push_back(within + name + "?resourceVersion=0");
    for (const std::string& target : targets) {
      const http::Response direct = ask_directly(guest, target);
      const Guest& answer = ask(guest, target);
      EXPECT_EQ(direct.status, 404) << "the table is wrong: " << target;
      EXPECT_EQ(answer.status, direct.status) << target;
      EXPECT_EQ(answer.body(), direct.body) << target;
    }
  }
}

TEST_F(GatewayTest, ARuleForOneNameIsHeldTo) {
  ASSERT_TRUE(own_->kubectl({"apply", "-f", "-"}, fmt::format(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: one, namespace: {0}}}
rules: [{{apiGroups: [""], resources: [secrets], resourceNames: [mine], verbs: [get, list, watch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: one, namespace: {0}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}}
subjects: [{{kind: ServiceAccount, name: guest, namespace: {1}}}]
)",
                                                              other_, mine_))
                  .has_value());
  const std::string secrets = "/api/v1/namespaces/" + other_ + "/secrets";
  const Identity guest = guest_of(mine_);
  ASSERT_TRUE(wait([&] {  // The authorizer reads its rules from a watch.
    return ask_directly(guest, secrets + "?fieldSelector=metadata.name%3Dmine").status == 200;
  }));
  EXPECT_EQ(watch(guest, secrets, "&fieldSelector=metadata.name%3Dmine").status, 200);
  EXPECT_EQ(watch(guest, secrets, "&fieldSelector=metadata.name%3Dother").status, 403);
  EXPECT_EQ(watch(guest, secrets).status, 403);
}

TEST_F(GatewayTest, AWatchWhosePermissionIsTakenAwayEnds) {
  Guest& guest = watch(guest_of(mine_), rings(mine_));
  Guest& another = watch(guest_of(other_), rings(other_));
  ASSERT_EQ(guest.status, 200);
  ASSERT_TRUE(own_->kubectl({"delete", "rolebinding", "guest", "-n", mine_}).has_value());
  ASSERT_TRUE(wait([&] { return guest.has_ended; }));
  EXPECT_FALSE(another.has_ended);
  const std::string target = rings(mine_) + "?watch=true";
  EXPECT_EQ(ask(guest_of(mine_), target).body(), ask_directly(guest_of(mine_), target).body);
}

TEST_F(GatewayTest, PassesTheRestOnAndBringsBackWhatTheServerSays) {
  const Identity guest = guest_of(mine_);
  const std::string body = json::dump(ring(mine_, "made", "x", 1));
  EXPECT_EQ(ask(guest, rings(mine_), std::string("POST"), body).status, 201);
  EXPECT_EQ(ask(guest, rings(mine_), std::string("POST"), body).status, 409);
  EXPECT_EQ(ask(guest, rings(mine_) + "/made", std::string("PATCH"),
                std::string(R"({"spec":{"nonce":2}})"),
                http::Headers{{"Content-Type", "application/merge-patch+json"}})
                .status,
            200);
  EXPECT_EQ(ask(guest, rings(mine_) + "/made", std::string("PATCH"), std::string("{}")).status,
            415);
  EXPECT_EQ(ask(guest, rings(mine_) + "/made", std::string("DELETE")).status, 200);
  for (const std::string& target :
       {std::string("/version"), std::string("/apis/none.example.com/v1/things"),
        rings(mine_) + "?watch=true&labelSelector=%21%21",
        rings(mine_) + "?watch=true&resourceVersion=x",
        rings(mine_) + "?watch=true&fieldSelector=spec.none%3D1", rings(mine_) + "?limit=x"}) {
    const Guest& answer = ask(guest, target);
    const http::Response direct = ask_directly(guest, target);
    EXPECT_EQ(answer.status, direct.status) << target;
    EXPECT_EQ(answer.body(), direct.body) << target;
  }
  EXPECT_EQ(ask(guest, rings("..")).status, 400);
  EXPECT_EQ(ask(guest, std::string("/api/v1/namespaces/" + mine_ + "/pods/x/exec?command=sh"),
                std::string("POST"))
                .status,
            400);
  EXPECT_EQ(ask(guest, std::string("/api"), std::string("TRACE")).status, 405);
}

TEST_F(GatewayTest, AHostOfOneNamespaceServesThat) {
  ASSERT_TRUE(own_->kubectl({"apply", "-f", "-"}, fmt::format(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: reviews-{0}}}
rules:
- {{apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: reviews-{0}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reviews-{0}}}
subjects: [{{kind: ServiceAccount, name: guest, namespace: {0}}}]
)",
                                                              mine_))
                  .has_value());
  connect(own_->kubeconfig(), guest_of(mine_));
  ASSERT_TRUE(wait([&] {
    const auto review = session_->run(client_->post_path(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        json::parse(R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",
                        "spec":{"user":"x","nonResourceAttributes":{"path":"/","verb":"get"}}})")
            .value(),
        {}));
    return review.has_value();
  }));
  const std::string a = put(mine_, "a");
  Guest& first = watch(guest_of(mine_), rings(mine_));
  Guest& second = watch(guest_of(mine_), rings(mine_));
  ASSERT_TRUE(wait([&] { return !first.pieces.empty() && !second.pieces.empty(); }));
  EXPECT_EQ(first.lines(), (Lines{{"ADDED", "a", a}}));
  EXPECT_EQ(cache_->statistics().watches, 1U);
}

TEST_F(GatewayTest, NothingIsMissedWhileTheServerIsAway) {
  connect(own_->proxied_kubeconfig());
  put(mine_, "stays");
  put(mine_, "goes");
  put(mine_, "changes");
  Guest& guest = watch(guest_of(mine_), rings(mine_));
  ASSERT_TRUE(wait([&] { return guest.pieces.size() == 3; }));
  // Waits for a change that the host can only learn by listing again.
  Guest& ahead = watch(guest_of(mine_), rings(mine_),
                       fmt::format("&resourceVersion={}", std::stoull(version_now(mine_)) + 1));

  ASSERT_TRUE(own_->cut().has_value());
  // Further back than the server's history reaches after it was killed.
  ASSERT_TRUE(
      own_->kubectl({"delete", "rings.gateway.example.com", "goes", "-n", mine_}).has_value());
  ASSERT_TRUE(own_->kubectl({"label", "rings.gateway.example.com", "changes", "z=1", "-n", mine_})
                  .has_value());
  ASSERT_TRUE(
      own_->kubectl({"apply", "-f", "-"}, json::dump(ring(mine_, "comes", "x", 1))).has_value());
  const Guest& away = ask(guest_of(mine_), rings(mine_), std::string("POST"),
                          json::dump(ring(mine_, "never", "x", 1)));
  EXPECT_EQ(away.status, 503);
  EXPECT_TRUE(away.body().contains("ServiceUnavailable"));
  ASSERT_TRUE(own_->kill(Component::ApiServer).has_value());
  ASSERT_TRUE(own_->start_again(Component::ApiServer).has_value());
  ASSERT_TRUE(own_->restore().has_value());

  const auto expected = truth(mine_);
  EXPECT_TRUE(wait([&] { return believe(guest.lines()) == expected; }));
  EXPECT_EQ(guest.pieces.size(), 6U) << "nothing twice";
  EXPECT_FALSE(guest.has_ended);
  EXPECT_TRUE(wait([&] {
    const Lines heard = ahead.lines();
    // The server compacts so often here that it may have forgotten that version by now.
    if (ahead.has_ended) return ahead.pieces.back().contains(R"("code":410)");
    return std::ranges::find(heard, Line{"MODIFIED", "changes", expected.at("changes")}) !=
               heard.end() &&
           std::ranges::find(heard, Line{"ADDED", "comes", expected.at("comes")}) != heard.end();
  })) << ahead.body();

  // A watch from any of these versions delivers all later changes.
  const Lines lines = guest.lines();
  for (std::size_t at = 2; at < lines.size(); ++at) {
    const Lines before(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    Guest& again =
        watch(guest_of(mine_), rings(mine_), "&resourceVersion=" + lines[at].resource_version);
    EXPECT_TRUE(wait([&] {
      const Lines heard = again.lines();
      if (!heard.empty() && heard.back().type == "ERROR") return true;  // It lists again.
      return believe(heard, believe(before)) == expected;
    })) << at;
  }
}

}  // namespace
}  // namespace hangar::gateway
