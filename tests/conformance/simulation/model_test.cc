// The model of the API server against a real one: the same random requests to both, in the same
// order, must get the same answers. A failure prints the seed; SIMULATION_SEED=N runs only that
// one, SIMULATION_SEEDS=N that many.
#include "base/time.h"
#include "http/client.h"
#include "io/loop.h"
#include "json/value.h"
#include "kube/client.h"
#include "simulation/api_server.h"
#include "testing/session.h"
#include "testing/shared_control_plane.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::simulation {
namespace {

using testing::Session;
using testing::SharedControlPlane;

// Without controllers, which would write of their own accord.
const SharedControlPlane kShared({.controller_manager = false});

constexpr int kRequestsPerSeed = 400;

constexpr std::string_view kCrd = R"({
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "widgets.sim.example.com"},
  "spec": {"group": "sim.example.com", "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
    "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
      "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})";

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Answered {
  int status = 0;
  json::Value body;
};

// A request whose text names versions and uids that each server has given: "$rv.KEY.N" is the N-th
// that was seen of the object KEY, counted from the last.
struct Template {
  std::string method;
  std::string target;
  std::string content_type = "application/json";
  std::string body;
  std::optional<kube::Identity> identity;
  std::string key;  // Of the object that the answer shows.
};

// One of the two servers, and what it has shown.
class Side {
 public:
  virtual ~Side() = default;
  virtual Answered ask(const Template& request) = 0;

  // The text with what this server has given.
  [[nodiscard]] std::string filled(std::string text) const {
    for (const std::string_view kind : {"$rv.", "$uid."}) {
      for (std::size_t at = 0; (at = text.find(kind, at)) != std::string::npos;) {
        const std::size_t dot = text.find('.', at + kind.size());
        const std::size_t end = text.find_first_of("\"&", dot);
        const std::string key = text.substr(at + kind.size(), dot - at - kind.size());
        const std::size_t back = std::stoul(text.substr(dot + 1, end - dot - 1));
        const auto& seen = kind == "$rv." ? versions_ : uids_;
        const auto found = seen.find(key);
        const std::string value =
            found == seen.end() || found->second.empty()
                ? "1"
                : found
                      ->second[found->second.size() - 1 - std::min(back, found->second.size() - 1)];
        text.replace(at, std::min(end, text.size()) - at, value);
      }
    }
    return text;
  }
  void learn(const std::string& key, const json::Value& body) {
    const auto add = [&](auto& seen, std::string_view value) {
      if (!value.empty() && (seen[key].empty() || seen[key].back() != value)) {
        seen[key].emplace_back(value);
      }
    };
    add(versions_, json::string_at(body, {"metadata", "resourceVersion"}));
    add(uids_, json::string_at(body, {"metadata", "uid"}));
  }

  // The answer without what the two servers may have different.
  json::Value normalized(const Answered& answered) {
    json::Value out = json::Object{{"http", answered.status}, {"body", answered.body}};
    json::Value& body = out.as_object()["body"];
    if (json::string_at(body, {"kind"}) == "Status") {
      body = normalized_status(body);
    } else if (json::Array* const items = items_of(body)) {
      for (json::Value& item : *items)
        normalize_object(item);
      json::erase_at(body, {"metadata", "resourceVersion"});
      if (!json::string_at(body, {"metadata", "continue"}).empty()) {
        json::set_at(body, {"metadata", "continue"}, "TOKEN");
      }
    } else if (body.is_object()) {
      normalize_object(body);
      // Why a review allows it: names of roles, for people. Nothing in the host reads it.
      if (json::string_at(body, {"kind"}) == "SubjectAccessReview") {
        json::erase_at(body, {"status", "reason"});
      }
    }
    return out;
  }
  void normalize_object(json::Value& object) {
    json::erase_at(object, {"metadata", "managedFields"});
    for (const char* name : {"creationTimestamp", "deletionTimestamp"}) {
      if (json::find(object, {"metadata", name}) != nullptr) {
        json::set_at(object, {"metadata", name}, "TIME");
      }
    }
    for (const char* name : {"resourceVersion", "uid"}) {
      const std::string value(json::string_at(object, {"metadata", name}));
      if (value.empty()) continue;
      const auto place = names_.try_emplace(value, names_.size()).first;
      json::set_at(object, {"metadata", name}, static_cast<std::int64_t>(place->second));
    }
  }

 private:
  static json::Array* items_of(json::Value& body) {
    json::Value* const items = json::find(body, {"items"});
    return items != nullptr && items->is_array() ? &items->as_array() : nullptr;
  }
  static json::Value normalized_status(const json::Value& body) {
    json::Object out;
    for (const char* name : {"status", "reason", "code"}) {
      if (const json::Value* const value = json::find(body, {name})) out[name] = *value;
    }
    const std::string_view reason = json::string_at(body, {"reason"});
    if (reason == "NotFound" || reason == "AlreadyExists" || reason == "Forbidden") {
      out["message"] = json::string_at(body, {"message"});
    }
    for (const char* name : {"name", "group", "kind"}) {
      out[name] = json::string_at(body, {"details", name});
    }
    std::vector<std::string> fields;
    if (const json::Array* const causes = json::array_at(body, {"details", "causes"})) {
      for (const json::Value& cause : *causes)
        fields.emplace_back(json::string_at(cause, {"field"}));
    }
    std::ranges::sort(fields);
    // The real server may report a field twice, from two validators. Nothing in the host counts.
    fields.erase(std::ranges::unique(fields).begin(), fields.end());
    out["fields"] = fmt::format("{}", fmt::join(fields, " "));
    return out;
  }

  std::map<std::string, std::vector<std::string>> versions_;
  std::map<std::string, std::vector<std::string>> uids_;
  std::map<std::string, std::size_t> names_;  // Versions and uids, in the order of appearance.
};

class RealSide final : public Side {
 public:
  explicit RealSide(const std::string& kubeconfig) : session_(kubeconfig) {}

  Answered ask(const Template& request) override {
    kube::Client client =
        request.identity ? session_.client.as(*request.identity) : session_.client;
    auto answered = session_.run(client.send({.method = request.method,
                                              .target = filled(request.target),
                                              .content_type = request.content_type,
                                              .body = filled(request.body)},
                                             std::stop_token()));
    EXPECT_TRUE(answered.has_value()) << answered.error().message();
    if (!answered) return {};
    return {.status = answered->status,
            .body = json::parse(answered->body).value_or(json::Value(answered->body))};
  }
  std::string text(const std::string& target) {
    auto answered = session_.run(session_.client.send({.target = target}, std::stop_token()));
    return answered ? answered->body : answered.error().message();
  }
  Session& session() { return session_; }

 private:
  Session session_;
};

class ModelSide final : public Side {
 public:
  explicit ModelSide(std::uint64_t seed) : server_(seed) {}

  Answered ask(const Template& request) override {
    ApiRequest out{.method = request.method,
                   .target = filled(request.target),
                   .content_type = request.content_type,
                   .body = filled(request.body)};
    if (request.identity) {
      out.impersonated = Caller{.user = request.identity->user, .groups = request.identity->groups};
    }
    ApiAnswer answer = server_.handle(out, WallTime());
    return {.status = answer.status, .body = std::move(answer.body)};
  }
  ApiServer& server() { return server_; }

 private:
  ApiServer server_;
};

// Draws requests.
class Requests {
 public:
  Requests(std::uint64_t seed, std::vector<std::string> namespaces)
      : random_(seed), namespaces_(std::move(namespaces)) {}

  Template next() {
    const Collection& collection = kCollections.at(draw(kCollections.size()));
    const std::string& namespace_ = namespaces_.at(draw(namespaces_.size()));
    const std::string name = fmt::format("{}{}", collection.plural[0], draw(4));
    const std::string all =
        fmt::format("{}/namespaces/{}/{}", collection.root, namespace_, collection.plural);
    Template out{.method = "GET",
                 .target = all + "/" + name,
                 .key = fmt::format("{}/{}/{}", collection.plural, namespace_, name)};
    switch (draw(14)) {
      case 0:
      case 1:
      case 2: {
        out.method = "POST";
        out.target = all + manager("?");
        json::Value object = content(collection, name);
        if (draw(20) == 0) json::set_at(object, {"metadata", "namespace"}, "another");
        out.body = json::dump(object);
        return out;
      }
      case 3:
        return out;
      case 4: {
        constexpr std::array<std::string_view, 6> kSelectors = {"",  "a%3D0", "a%21%3D0",
                                                                "a", "!a",    "a+in+%280%2C1%29"};
        out.target =
            fmt::format("{}?labelSelector={}", all, kSelectors.at(draw(kSelectors.size())));
        if (draw(3) == 0) out.target += "&limit=1";
        if (draw(6) == 0) out.target += "&fieldSelector=metadata.name%3D" + name;
        return out;
      }
      case 5:
      case 6: {
        out.method = "PUT";
        out.target += manager("?");
        json::Value object = content(collection, name);
        add_version(object, out.key);
        out.body = json::dump(object);
        return out;
      }
      case 7: {
        out.method = "PATCH";
        out.content_type = "application/merge-patch+json";
        out.target += manager("?");
        json::Value patch = content(collection, name);
        json::erase_at(patch, {"metadata", "name"});
        if (draw(2) == 0) json::set_at(patch, {"metadata", "labels"}, json::Value());
        if (draw(3) == 0) json::set_at(patch, {collection.field, "b"}, json::Value());
        if (draw(3) == 0) add_version(patch, out.key);
        out.body = json::dump(patch);
        return out;
      }
      case 8:
      case 9:
      case 10: {
        out.method = "PATCH";
        out.content_type = "application/apply-patch+yaml";
        out.target += manager("?") + (draw(3) == 0 ? "&force=true" : "");
        json::Value object = content(collection, name);
        if (draw(8) == 0) add_version(object, out.key);
        out.body = json::dump(object);
        return out;
      }
      case 11: {
        out.method = "DELETE";
        json::Value options = json::Object{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
        if (draw(4) == 0) {
          json::set_at(options, {"preconditions", "uid"},
                       json::String(fmt::format("$uid.{}.{}", out.key, draw(2))));
        }
        if (draw(4) == 0) {
          json::set_at(options, {"preconditions", "resourceVersion"},
                       json::String(fmt::format("$rv.{}.{}", out.key, draw(2))));
        }
        constexpr std::array<std::string_view, 4> kPolicies = {"", "Background", "Foreground",
                                                               "Orphan"};
        if (const auto policy = kPolicies.at(draw(kPolicies.size())); !policy.empty()) {
          json::set_at(options, {"propagationPolicy"}, json::String(policy));
        }
        out.body = json::dump(options);
        return out;
      }
      case 12: {
        // A status, as hangar writes it: only over the state that it was computed for.
        out.target = fmt::format("{}/namespaces/{}/widgets/w{}/status", kCollections[1].root,
                                 namespace_, draw(4));
        out.key =
            fmt::format("widgets/{}/{}", namespace_, out.target.substr(out.target.size() - 9, 2));
        out.method = "PATCH";
        out.content_type = "application/merge-patch+json";
        json::Value patch = json::Object{{"status", json::Object{{"phase", text()}}},
                                         {"spec", json::Object{{"a", text()}}}};
        if (draw(3) == 0) json::set_at(patch, {"status"}, json::Value());
        if (draw(2) == 0) add_version(patch, out.key);
        if (draw(2) == 0) {
          out.content_type = "application/json-patch+json";
          patch = json::Array{
              json::Object{{"op", "test"},
                           {"path", "/metadata/resourceVersion"},
                           {"value", fmt::format("$rv.{}.{}", out.key, draw(2))}},
              json::Object{
                  {"op", "add"}, {"path", "/status"}, {"value", json::Object{{"phase", text()}}}}};
        }
        out.body = json::dump(patch);
        return out;
      }
      default:
        break;
    }
    // Somebody with few rights, or a question about them.
    kube::Identity reader = kube::service_account(namespaces_.front(), "reader");
    if (draw(2) == 0) {
      constexpr std::array<std::string_view, 4> kVerbs = {"get", "list", "watch", "create"};
      json::Value review =
          json::Object{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}};
      json::set_at(review, {"spec", "user"}, json::String(reader.user));
      json::set_at(review, {"spec", "resourceAttributes"},
                   json::Object{{"verb", json::String(kVerbs.at(draw(kVerbs.size())))},
                                {"namespace", namespace_},
                                {"group", collection.group},
                                {"resource", collection.plural},
                                {"name", draw(2) == 0 ? "c0" : ""}});
      out.method = "POST";
      out.target = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
      out.body = json::dump(review);
      out.key.clear();
      return out;
    }
    out.identity = std::move(reader);
    if (draw(2) == 0) out.target = all;
    if (draw(4) == 0) {
      out.method = "POST";
      out.target = all;
      out.body = json::dump(content(collection, name));
    }
    return out;
  }

 private:
  struct Collection {
    std::string root;
    std::string group;
    std::string api_version;
    std::string kind;
    std::string plural;
    std::string_view field;  // The object with what the kind has.
  };
  static const std::vector<Collection> kCollections;

  std::size_t draw(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  std::string text() { return std::to_string(draw(3)); }
  std::string manager(std::string_view before) {
    constexpr std::array<std::string_view, 3> kManagers = {"one", "two", "three"};
    return fmt::format("{}fieldManager={}", before, kManagers.at(draw(kManagers.size())));
  }
  void add_version(json::Value& object, const std::string& key) {
    const std::size_t back = draw(4);
    if (back == 3) return;
    json::set_at(object, {"metadata", "resourceVersion"},
                 json::String(fmt::format("$rv.{}.{}", key, back == 2 ? 1 : 0)));
  }
  json::Value content(const Collection& collection, const std::string& name) {
    json::Value out =
        json::Object{{"apiVersion", collection.api_version}, {"kind", collection.kind}};
    json::set_at(out, {"metadata", "name"}, json::String(name));
    for (const char* label : {"a", "b"}) {
      if (draw(3) == 0) json::set_at(out, {"metadata", "labels", label}, json::String(text()));
    }
    if (draw(6) == 0) json::set_at(out, {"metadata", "annotations", "x/y"}, json::String(text()));
    if (draw(8) == 0) {
      json::set_at(out, {"metadata", "finalizers"},
                   json::Array{json::String(fmt::format("sim.example.com/{}", text()))});
    }
    if (collection.plural == "leases") {
      if (draw(4) != 0) {
        json::set_at(out, {"spec", "holderIdentity"}, json::String(text()));
        json::set_at(out, {"spec", "leaseDurationSeconds"}, 15);
      }
      return out;
    }
    for (const char* member : {"a", "b", "c"}) {
      if (draw(2) == 0) json::set_at(out, {collection.field, member}, json::String(text()));
    }
    if (collection.plural == "widgets") {
      if (draw(3) == 0) json::set_at(out, {"spec", "deep", "er"}, json::String(text()));
      if (draw(3) == 0) json::set_at(out, {"spec", "list"}, json::Array{json::String(text()), 1});
      if (draw(4) == 0) json::set_at(out, {"status", "phase"}, json::String(text()));
      if (draw(8) == 0) json::set_at(out, {"spec", "empty"}, json::Object{});
    }
    return out;
  }

  std::mt19937_64 random_;
  const std::vector<std::string> namespaces_;
};

const std::vector<Requests::Collection> Requests::kCollections = {
    {"/api/v1", "", "v1", "ConfigMap", "configmaps", "data"},
    {"/apis/sim.example.com/v1", "sim.example.com", "sim.example.com/v1", "Widget", "widgets",
     "spec"},
    {"/apis/coordination.k8s.io/v1", "coordination.k8s.io", "coordination.k8s.io/v1", "Lease",
     "leases", "spec"}};

class ModelTest : public ::testing::Test {
 protected:
  // Both servers get the same, and must accept it.
  static void set_up(Side& side, const std::vector<std::string>& namespaces) {
    for (const std::string& name : namespaces) {
      side.ask(
          {.method = "POST",
           .target = "/api/v1/namespaces",
           .body = fmt::format(
               R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", name)});
    }
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespaces[0];
    side.ask({.method = "POST", .target = rbac + "/roles", .body = R"({
      "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reads"},
      "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
                {"apiGroups": ["sim.example.com"], "resources": ["*"], "verbs": ["watch"]}]})"});
    side.ask({.method = "POST",
              .target = rbac + "/rolebindings",
              .body = fmt::format(R"({{
      "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {{"name": "reads"}},
      "roleRef": {{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"}},
      "subjects": [{{"kind": "ServiceAccount", "name": "reader", "namespace": "{}"}}]}})",
                                  namespaces[0])});
  }
  // The authorizer and a new kind come into effect a moment later.
  static void wait_until_served(RealSide& real, const std::string& namespace_) {
    const Template list{.target = fmt::format("/api/v1/namespaces/{}/configmaps", namespace_),
                        .identity = kube::service_account(namespace_, "reader")};
    Template request = list;
    request.method = "GET";
    const Template widgets{.method = "GET", .target = "/apis/sim.example.com/v1/widgets"};
    for (int i = 0; i < 600; ++i) {
      if (real.ask(request).status == 200 && real.ask(widgets).status == 200) return;
      (void)real.session().run(
          real.session().loop.sleep(std::chrono::milliseconds(50), std::stop_token()));
    }
    FAIL() << "the rights or the kind did not come into effect";
  }
};

void compare_seed(const std::string& kubeconfig, std::uint64_t seed, std::size_t& compared) {
  RealSide real(kubeconfig);
  ModelSide model(seed);
  const std::vector<std::string> namespaces = {fmt::format("sim-{}-a", seed),
                                               fmt::format("sim-{}-b", seed)};
  struct Access : ModelTest {
    using ModelTest::set_up;
    using ModelTest::wait_until_served;
  };
  for (Side* const side : {static_cast<Side*>(&real), static_cast<Side*>(&model)}) {
    side->ask({.method = "POST",
               .target = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
               .body = std::string(kCrd)});
    Access::set_up(*side, namespaces);
  }
  Access::wait_until_served(real, namespaces[0]);
  const std::string began_real(
      json::string_at(real.ask({.method = "GET", .target = "/api/v1/configmaps?limit=1"}).body,
                      {"metadata", "resourceVersion"}));
  const std::uint64_t began_model = model.server().revision();

  Requests requests(seed, namespaces);
  std::map<std::string, json::Value> shown_last;  // By the real server, with managedFields.
  for (int index = 0; index < kRequestsPerSeed; ++index) {
    const Template request = requests.next();
    const Answered real_answer = real.ask(request);
    const Answered model_answer = model.ask(request);
    ++compared;
    const json::Value from_real = real.normalized(real_answer);
    const json::Value from_model = model.normalized(model_answer);
    ASSERT_TRUE(json::equal(from_real, from_model))
        << "seed " << seed << ", request " << index << ": " << request.method << " "
        << real.filled(request.target) << "\n"
        << real.filled(request.body) << "\nreal:  " << json::dump(from_real)
        << "\nmodel: " << json::dump(from_model) << "\nin full: " << json::dump(real_answer.body)
        << "\nbefore:  " << json::dump(shown_last[request.key]);
    if (real_answer.status < 300 && !request.key.empty()) {
      shown_last[request.key] = real_answer.body;
      real.learn(request.key, real_answer.body);
      model.learn(request.key, model_answer.body);
    }
  }

  // What a watch shows of all this.
  for (const char* path :
       {"/api/v1/namespaces/{}/configmaps", "/apis/sim.example.com/v1/namespaces/{}/widgets"}) {
    for (const char* selector : {"", "&labelSelector=a%3D0"}) {
      const std::string target = fmt::format(fmt::runtime(path), namespaces[0]) +
                                 "?watch=true&timeoutSeconds=1" + selector;
      auto opened = model.server().open(
          {.method = "GET", .target = fmt::format("{}&resourceVersion={}", target, began_model)});
      auto* const watch = std::get_if<ApiServer::Watch>(&opened);
      ASSERT_NE(watch, nullptr);
      bool is_over = false;
      std::string model_text;
      for (const std::string& line : model.server().next_lines(*watch, is_over))
        model_text += line;
      const auto shown = [](Side& side, std::string_view lines) {
        std::string out;
        while (!lines.empty()) {
          const std::size_t end = lines.find('\n');
          json::Value event = json::parse(lines.substr(0, end)).value_or(json::Value());
          if (json::Value* const object = json::find(event, {"object"})) {
            side.normalize_object(*object);
            json::sort_keys(event);
          }
          out += json::dump(event) + "\n";
          if (end == std::string_view::npos) break;
          lines.remove_prefix(end + 1);
        }
        return out;
      };
      EXPECT_EQ(shown(real, real.text(fmt::format("{}&resourceVersion={}", target, began_real))),
                shown(model, model_text))
          << "seed " << seed << ": " << target;
      ++compared;
    }
  }
}

TEST_F(ModelTest, AnswersAsTheRealServerDoes) {
  testing::ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const std::uint64_t only = environment_number("SIMULATION_SEED", 0);
  const std::uint64_t count = only != 0 ? 1 : environment_number("SIMULATION_SEEDS", 10);
  std::size_t compared = 0;

  for (std::uint64_t i = 0; i < count && !HasFailure(); ++i)
    compare_seed(cluster.kubeconfig(), only != 0 ? only : i + 1, compared);

  fmt::print("seeds {}, answers compared: {}\n", count, compared);
}

}  // namespace
}  // namespace hangar::simulation
