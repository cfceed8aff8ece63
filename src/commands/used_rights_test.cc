#include "commands/used_rights.h"

#include "commands/held_rights.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/client.h"
#include "recorder/record.h"
#include "seeing/uses.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {
namespace {

using recorder::Contract;
using recorder::Verb;
using seeing::FoundUses;
using seeing::Use;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Use use(Verb verb, std::string group, std::string resource, std::string namespace_ = "team") {
  return {.right = {.verb = verb,
                    .group = std::move(group),
                    .resource = std::move(resource),
                    .namespace_ = std::move(namespace_)},
          .count = 1};
}

Use named(Use use, std::string_view name) {
  use.names.emplace(name);
  return use;
}

FoundUses found(std::vector<Use> uses) {
  return {.user = "system:serviceaccount:team:mirror", .turns = 3, .uses = std::move(uses)};
}

UsedRights rights(const FoundUses& found, const RoleOptions& options = {},
                  const HeldRights& held = {}) {
  return used_rights({.namespace_ = "team", .name = "mirror"}, found, held, options);
}

// One line for each manifest: kind, namespace and rules.
std::vector<std::string> texts(const UsedRights& used) {
  std::vector<std::string> texts;
  for (const json::Value& manifest : used.manifests) {
    std::string text = fmt::format("{} {}", json::string_at(manifest, {"kind"}),
                                   json::string_at(manifest, {"metadata", "namespace"}));
    if (const json::Array* const rules = json::array_at(manifest, {"rules"})) {
      for (const json::Value& rule : *rules)
        text += " " + json::dump(rule);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(UsedRights, AreOneRoleOfItsNamespaceWithItsBinding) {
  const UsedRights used =
      rights(found({use(Verb::List, "", "configmaps"), use(Verb::Watch, "", "configmaps"),
                    use(Verb::List, "", "secrets"), use(Verb::Watch, "", "secrets"),
                    use(Verb::Patch, "apps", "deployments")}));

  EXPECT_THAT(
      texts(used),
      ElementsAre(
          R"(Role team {"apiGroups":[""],"resources":["configmaps","secrets"],"verbs":["list","watch"]})"
          R"( {"apiGroups":["apps"],"resources":["deployments"],"verbs":["patch"]})",
          "RoleBinding team"));
  const json::Value& binding = used.manifests[1];
  EXPECT_EQ(json::string_at(binding, {"metadata", "name"}), "hangar:used:team:mirror");
  EXPECT_EQ(json::string_at(binding, {"roleRef", "name"}), "hangar:used:team:mirror");
  EXPECT_EQ(json::dump(*json::find(binding, {"subjects"})),
            R"([{"kind":"ServiceAccount","name":"mirror","namespace":"team"}])");
  EXPECT_EQ(
      json::string_at(rights(found({use(Verb::List, "", "pods")}), {.role = "wide"}).manifests[0],
                      {"metadata", "name"}),
      "wide");
}

TEST(UsedRights, OfTheClusterAreAClusterRoleAndNotSaidAgain) {
  EXPECT_THAT(
      texts(rights(found({use(Verb::List, "", "pods", ""), use(Verb::List, "", "pods"),
                          use(Verb::Delete, "", "pods"), use(Verb::Get, "", "pods", "other")}))),
      ElementsAre(R"(ClusterRole  {"apiGroups":[""],"resources":["pods"],"verbs":["list"]})",
                  "ClusterRoleBinding ",
                  R"(Role other {"apiGroups":[""],"resources":["pods"],"verbs":["get"]})",
                  "RoleBinding other",
                  R"(Role team {"apiGroups":[""],"resources":["pods"],"verbs":["delete"]})",
                  "RoleBinding team"));
}

TEST(UsedRights, OfSubresourcesAreTheirOwn) {
  Use scale = use(Verb::Update, "apps", "deployments");
  scale.right.subresource = "scale";
  EXPECT_THAT(
      texts(rights(found({scale})))[0],
      HasSubstr(R"({"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["update"]})"));
}

TEST(UsedRights, HaveCreateWhereAPatchMadeTheObject) {
  Use patch = use(Verb::Patch, "", "configmaps");
  EXPECT_THAT(texts(rights(found({patch})))[0], HasSubstr(R"("verbs":["patch"])"));
  patch.created = 1;
  EXPECT_THAT(texts(rights(found({patch})))[0], HasSubstr(R"("verbs":["create","patch"])"));
}

TEST(UsedRights, OfFlightsHaveWhatHangarDoesForThem) {
  FoundUses flight = found({use(Verb::Patch, "", "configmaps")});
  flight.contract = Contract::Airway;
  EXPECT_THAT(texts(rights(flight))[0], HasSubstr(R"("verbs":["get","create","patch","delete"])"));
  flight.contract = Contract::Workflow;
  EXPECT_THAT(texts(rights(flight))[0], HasSubstr(R"("verbs":["create","patch"])"));
}

TEST(UsedRights, HaveNothingThatWasRefused) {
  Use refused = use(Verb::Delete, "", "configmaps");
  refused.count = 0;
  refused.refused = 4;
  const UsedRights used = rights(found({refused, use(Verb::Get, "", "configmaps")}));

  EXPECT_THAT(texts(used)[0], HasSubstr(R"("verbs":["get"])"));
  EXPECT_THAT(used.remarks, Contains(HasSubstr("delete configmaps in namespace team: 4 of 4")));
  const UsedRights nothing = rights(found({refused}));
  EXPECT_THAT(nothing.manifests, IsEmpty());
  EXPECT_THAT(nothing.remarks, Contains(HasSubstr("used nothing")));
}

TEST(UsedRights, HaveNoWildcardThatAGuestAskedFor) {
  Use path = use(Verb::Other, "", "", "");
  path.right.path = "/*";
  const UsedRights used = rights(
      found({use(Verb::Get, "*", "*"), use(Verb::Get, "", "*"), use(Verb::Get, "", "pods\\x0a"),
             use(Verb::Get, "", "pods", "*"), use(Verb::Get, "", "Pods: ["), path}));

  EXPECT_THAT(used.manifests, IsEmpty());
  EXPECT_THAT(used.remarks, Contains(HasSubstr("6 requests were for things with odd names")));
}

TEST(UsedRights, LeaveOutWhatEverybodyMay) {
  Use discovery = use(Verb::Other, "", "", "");
  discovery.right.path = "/apis/apps/v1";
  Use metrics = discovery;
  metrics.right.path = "/metrics";
  const UsedRights used =
      rights(found({discovery, metrics,
                    use(Verb::Create, "authorization.k8s.io", "selfsubjectaccessreviews", "")}));

  EXPECT_THAT(texts(used),
              ElementsAre(R"(ClusterRole  {"nonResourceURLs":["/metrics"],"verbs":["get"]})",
                          "ClusterRoleBinding "));
  EXPECT_THAT(used.remarks, Contains(HasSubstr("/apis/apps/v1, selfsubjectaccessreviews")));
}

TEST(UsedRights, HaveListBesideWatchWhereTheStartIsNotKnown) {
  FoundUses old = found({});
  old.uses.push_back(use(Verb::Watch, "", "configmaps"));
  old.uses[0].count = 0;
  old.uses[0].is_open = true;
  EXPECT_THAT(texts(rights(old))[0], HasSubstr(R"("verbs":["watch"])"));
  old.has_start = false;
  const UsedRights used = rights(old);
  EXPECT_THAT(texts(used)[0], HasSubstr(R"("verbs":["list","watch"])"));
  EXPECT_THAT(used.remarks, Contains(HasSubstr("The records do not cover its start")));
}

TEST(TouchedNames, AreInARoleThatIsAskedForThem) {
  const FoundUses uses = found({named(named(use(Verb::Get, "", "secrets"), "b"), "a"),
                                named(use(Verb::Update, "", "secrets"), "a")});
  EXPECT_THAT(texts(rights(uses))[0], Not(HasSubstr("resourceNames")));
  EXPECT_THAT(
      texts(rights(uses, {.names = RoleNames::Touched}))[0],
      HasSubstr(
          R"({"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"],"verbs":["update"]})"
          R"( {"apiGroups":[""],"resources":["secrets"],"resourceNames":["a","b"],"verbs":["get"]})"));
}

TEST(TouchedNames, AreNotWhereThereWillBeOthers) {
  const auto role = [](std::vector<Use> uses) {
    return texts(rights(found(std::move(uses)), {.names = RoleNames::Touched}))[0];
  };
  const Use get = named(use(Verb::Get, "", "secrets"), "a");
  EXPECT_THAT(role({get}), HasSubstr("resourceNames"));
  EXPECT_THAT(role({get, use(Verb::List, "", "secrets", "")}), Not(HasSubstr("resourceNames")));
  EXPECT_THAT(role({get, use(Verb::Create, "", "secrets")}), Not(HasSubstr("resourceNames")));
  Use status = get;
  status.right.subresource = "status";
  EXPECT_THAT(role({status, use(Verb::Watch, "", "secrets")}), Not(HasSubstr("resourceNames")));
  Use withheld = get;
  withheld.has_more_names = true;
  EXPECT_THAT(role({withheld}), Not(HasSubstr("resourceNames")));
  Use many = get;
  for (int index = 0; index < 20; ++index)
    many.names.insert(std::to_string(index));
  EXPECT_THAT(role({many}), Not(HasSubstr("resourceNames")));
}

TEST(UsedRights, OfTheHostItselfHaveNoBinding) {
  FoundUses flight = found({use(Verb::Patch, "", "configmaps")});
  flight.contract = Contract::Airway;
  flight.user.clear();
  const UsedRights used = rights(flight);
  EXPECT_THAT(used.manifests, SizeIs(1));
  EXPECT_THAT(used.remarks, Contains(HasSubstr("as hangar itself")));
}

HeldBinding held(std::string_view rules, std::string namespace_ = "team") {
  return {.namespace_ = std::move(namespace_),
          .name = "wide",
          .subject = "ServiceAccount mirror",
          .role_kind = "Role",
          .role_name = "all",
          .rules = json::parse(rules).value().as_array(),
          .problem = {}};
}

TEST(HeldRights, AreToldWithWhatOfThemIsUnused) {
  const FoundUses uses = found({use(Verb::Get, "", "configmaps"), use(Verb::List, "", "pods")});
  const auto remarks = [&uses](std::string_view rules) {
    return rights(uses, {}, {.bindings = {held(rules)}, .unread = {}}).remarks;
  };
  const auto told = remarks(R"([
      {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "delete"]},
      {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
      {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])");
  EXPECT_THAT(told, Contains("  RoleBinding team/wide gives Role all to ServiceAccount mirror"));
  EXPECT_THAT(told, Contains("    configmaps: unused delete"));
  EXPECT_THAT(told, Contains("    secrets: unused get, delete"));
  EXPECT_THAT(told, Contains("    pods: unused * but for list"));
  EXPECT_THAT(told, Contains("    *.*: unused * but for get, list"));

  EXPECT_THAT(remarks(R"([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}])"),
              Contains(HasSubstr("all of it was used")));
}

TEST(HeldRights, ThatCouldNotBeReadAreNamed) {
  HeldBinding unreadable = held("[]");
  unreadable.rules.reset();
  unreadable.problem = "forbidden";
  const auto remarks = rights(found({use(Verb::Get, "", "pods")}), {},
                              {.bindings = {unreadable}, .unread = {"ClusterRoleBindings: no"}})
                           .remarks;
  EXPECT_THAT(remarks, Contains(HasSubstr("which could not be read: forbidden")));
  EXPECT_THAT(remarks, Contains("What else it has was not read: ClusterRoleBindings: no"));
}

TEST(HeldRights, AreThoseOfItsAccountAndItsGroups) {
  const kube::Identity mirror = kube::service_account("team", "mirror");
  const auto subject_of = [&mirror](std::string_view subjects) -> std::string {
    const json::Value binding =
        json::parse(fmt::format(
                        R"({{"metadata": {{"name": "b", "namespace": "other"}}, "subjects": {},
             "roleRef": {{"kind": "ClusterRole", "name": "edit"}}}})",
                        subjects))
            .value();
    const auto held = held_binding(binding, mirror);
    return held ? held->subject : "";
  };
  EXPECT_EQ(subject_of(R"([{"kind": "ServiceAccount", "name": "mirror", "namespace": "team"}])"),
            "ServiceAccount mirror");
  EXPECT_EQ(subject_of(R"([{"kind": "ServiceAccount", "name": "mirror", "namespace": "other"}])"),
            "");
  EXPECT_EQ(subject_of(R"([{"kind": "User", "name": "jane"},
                           {"kind": "User", "name": "system:serviceaccount:team:mirror"}])"),
            "User system:serviceaccount:team:mirror");
  EXPECT_EQ(subject_of(R"([{"kind": "Group", "name": "system:serviceaccounts:team"}])"),
            "Group system:serviceaccounts:team");
  EXPECT_EQ(subject_of(R"([{"kind": "Group", "name": "system:authenticated"}])"), "");
  EXPECT_EQ(subject_of("null"), "");
}

}  // namespace
}  // namespace hangar::commands
