#include "commands/tenant_rights.h"

#include "commands/test_hostile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ServiceAccount kHost{.namespace_ = "hangar-system", .name = "hangar"};

TenantRights rights_of(std::string namespace_) {
  return {.namespace_ = std::move(namespace_), .host = kHost};
}

// The verbs of all rules for that resource, in any group.
std::vector<std::string> verbs_on(const json::Value& role, std::string_view resource) {
  std::vector<std::string> verbs;
  for (const json::Value& rule : *json::array_at(role, {"rules"})) {
    for (const json::Value& one : *json::array_at(rule, {"resources"})) {
      if (std::string_view(one.get_string()) != resource) continue;
      for (const json::Value& verb : *json::array_at(rule, {"verbs"}))
        verbs.emplace_back(verb.get_string());
    }
  }
  return verbs;
}

TEST(TenantRights, ActingIsLimitedToAllowedNamespacesUnlessAskedOtherwise) {
  const json::Value role = tenant_role(rights_of("team"));

  EXPECT_THAT(verbs_on(role, "serviceaccounts"), ElementsAre("impersonate:serviceaccount"));
  for (const std::string& verb : verbs_on(role, "*"))
    EXPECT_TRUE(verb.starts_with("impersonate-on:serviceaccount:")) << verb;
}

TEST(TenantRights, TheLegacyVerbNeedsNoOther) {
  TenantRights rights = rights_of("team");
  rights.impersonation = Impersonation::Legacy;
  const json::Value role = tenant_role(rights);

  EXPECT_THAT(verbs_on(role, "serviceaccounts"), ElementsAre("impersonate"));
  EXPECT_THAT(verbs_on(role, "*"), IsEmpty());
}

TEST(TenantRights, OnlyNamedServiceAccountsCanBeActedAs) {
  TenantRights rights = rights_of("team");
  rights.service_accounts = {"mirror"};
  const json::Value role = tenant_role(rights);

  const json::Value& acting = json::array_at(role, {"rules"})->front();
  EXPECT_EQ(json::dump(*json::find(acting, {"resourceNames"})), R"(["mirror"])");
}

TEST(TenantRights, AFeatureThatIsOffGetsNothing) {
  TenantRights rights = rights_of("team");
  rights.features = {host::Feature::Airways};
  const json::Value role = tenant_role(rights);

  EXPECT_THAT(verbs_on(role, "serviceaccounts"), IsEmpty());
  EXPECT_THAT(verbs_on(role, "controllerrevisions"), IsEmpty());
  EXPECT_THAT(verbs_on(role, "secrets"), ElementsAre("list", "create", "patch", "delete"));
}

TEST(TenantRights, FlightsActAsAnyAccountOfTheNamespaceAndHaveAHistoryThere) {
  TenantRights rights = rights_of("team");
  rights.features = {host::Feature::Flights};
  const json::Value role = tenant_role(rights);

  EXPECT_THAT(verbs_on(role, "serviceaccounts"), ElementsAre("impersonate:serviceaccount"));
  EXPECT_EQ(json::find(json::array_at(role, {"rules"})->front(), {"resourceNames"}), nullptr);
  EXPECT_THAT(verbs_on(role, "configmaps"), ElementsAre("get", "list", "watch"));
  EXPECT_THAT(verbs_on(role, "secrets"), ElementsAre("list", "create", "patch", "delete"));
  EXPECT_THAT(verbs_on(role, "controllerrevisions"),
              ElementsAre("get", "list", "create", "delete"));
}

TEST(TenantRights, InstancesFlightsActAsAccountsThatAreNamed) {
  TenantRights rights = rights_of("team");
  rights.features = {host::Feature::Airways};
  rights.service_accounts = {"flights"};
  const json::Value role = tenant_role(rights);

  EXPECT_THAT(verbs_on(role, "serviceaccounts"), ElementsAre("impersonate:serviceaccount"));
  const json::Value& acting = json::array_at(role, {"rules"})->front();
  EXPECT_EQ(json::dump(*json::find(acting, {"resourceNames"})), R"(["flights"])");
}

TEST(TenantRights, OperatorsAloneMayNotListSecrets) {
  TenantRights rights = rights_of("team");
  rights.features = {host::Feature::Operators, host::Feature::Workflows};

  EXPECT_THAT(verbs_on(tenant_role(rights), "secrets"), ElementsAre("get"));
}

TEST(TenantRights, NothingIsGivenThatChangesRights) {
  const json::Value role = tenant_role(rights_of("team"));
  const std::string text = json::dump(*json::find(role, {"rules"}));

  for (const std::string_view word : {"rbac", "escalate", "\"bind\"", "\"*\",\"verbs\":[\"*\"]"})
    EXPECT_FALSE(text.contains(word)) << word;
}

TEST(TenantRights, TheHostsOwnServiceAccountCannotBeActedAs) {
  TenantRights rights = rights_of("hangar-system");
  EXPECT_FALSE(check_tenant(rights));
  rights.service_accounts = {"mirror", "hangar"};
  EXPECT_FALSE(check_tenant(rights));
  rights.service_accounts = {"mirror"};
  EXPECT_TRUE(check_tenant(rights));
}

TEST(TenantRights, AServiceAccountIsANamespaceAndAName) {
  EXPECT_EQ(parse_service_account("hangar-system:hangar").value(), kHost);
  for (const char* const text :
       {"", "hangar", ":hangar", "hangar-system:", "a:b:c", "a:B", "a/b:c"})
    EXPECT_FALSE(parse_service_account(text)) << text;
}

TEST(TenantRights, ConstrainedImpersonationIsKnownFrom136On) {
  const auto knows = [](std::string_view major, std::string_view minor) {
    return knows_constrained_impersonation(
        json::Object{{"major", json::String(major)}, {"minor", json::String(minor)}});
  };
  EXPECT_TRUE(knows("1", "36"));
  EXPECT_TRUE(knows("1", "36+"));
  EXPECT_TRUE(knows("2", "0"));
  EXPECT_FALSE(knows("1", "35"));
  EXPECT_FALSE(knows("", ""));
  EXPECT_FALSE(knows("1", "x"));
}

TEST(TenantRows, SayWhoMayActWhereAndHowFar) {
  TenantRights other = rights_of("a-team");
  other.impersonation = Impersonation::Legacy;
  other.service_accounts = {"mirror", "copier"};
  const std::vector<TenantRow> rows =
      tenant_rows({tenant_role(rights_of("team")), tenant_role(other)},
                  {tenant_role_binding(rights_of("team")), tenant_role_binding(other)});

  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].namespace_, "a-team");
  EXPECT_THAT(rows[0].service_accounts, ElementsAre("copier", "mirror"));
  EXPECT_EQ(rows[1].host, kHost);
  const std::string table = tenant_table(rows);
  EXPECT_THAT(table, HasSubstr("a-team      copier,mirror      cluster     hangar-system:hangar"));
  EXPECT_THAT(table, HasSubstr("team        *                  namespace   hangar-system:hangar"));
}

// Members of a namespace may write Roles and RoleBindings there.
TEST(TenantTable, LeavesATerminalAlone) {
  TenantRights rights = rights_of("team");
  rights.service_accounts = {hostile_text()};
  json::Value binding = tenant_role_binding(rights);
  binding.as_object()["subjects"].as_array().front().as_object()["name"] = hostile_text();

  const std::string table = tenant_table(tenant_rows({tenant_role(rights)}, {binding}));

  EXPECT_TRUE(is_plain(table)) << table;
}

TEST(TenantRows, ABindingWithoutItsRoleOrOurLabelAllowsNothing) {
  json::Value unlabeled = tenant_role_binding(rights_of("team"));
  json::erase_at(unlabeled, {"metadata", "labels"});

  EXPECT_THAT(tenant_rows({}, {tenant_role_binding(rights_of("team"))}), IsEmpty());
  EXPECT_THAT(tenant_rows({tenant_role(rights_of("team"))}, {unlabeled}), IsEmpty());
  EXPECT_THAT(tenant_rows({tenant_role(rights_of("team"))}, {json::Value("text"), json::Object{}}),
              IsEmpty());
}

}  // namespace
}  // namespace hangar::commands
