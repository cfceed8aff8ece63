#include "tenants/rules.h"

#include "base/limits.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "tenants/outbound_server.h"
#include "tenants/policy_set.h"
#include "tenants/tenant_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::tenants {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TenantPolicy policy(std::string_view name, std::string_view spec) {
  return parse_tenant_policy(
      json::parse(fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{}}})", name, spec)).value());
}

// The rules of policies `a`, `b`, ... in this order.
Rules rules(const std::vector<std::string_view>& specs) {
  Rules::Policies policies;
  char name = 'a';
  for (const std::string_view spec : specs) {
    policies.push_back(std::make_shared<const TenantPolicy>(policy({&name, 1}, spec)));
    EXPECT_EQ(policies.back()->problem, "");
    ++name;
  }
  return Rules(std::move(policies));
}

kube::ObjectPtr namespace_object(std::string_view labels) {
  return kube::Object::
      make(fmt::format(
               R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"n","labels":{}}}}})",
               labels))
          .value();
}

template <class T>
void expect_refused(const Result<T>& result, std::string_view policy, std::string_view why) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::Denied);
  EXPECT_EQ(result.error().reason(), kRefusedByPolicy);
  EXPECT_THAT(result.error().message(),
              AllOf(HasSubstr(fmt::format("TenantPolicy {} ", policy)), HasSubstr(why)));
}

modules::Source source(std::string reference) {
  return {.reference = std::move(reference)};
}

TEST(TenantPolicy, IsReadWithAllItsFields) {
  const TenantPolicy read = policy("strangers", R"({
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "budgets": {"guestMemory": "256Mi", "guestDisk": "1Gi", "moduleDisk": "2Gi", "cpu": "1500m", "output": "64Ki", "operators": 5, "feeds": 0, "ownWatches": 7,
                "upstreamRequests": 4, "fetches": 1},
    "modules": {"urls": ["oci://registry.example.com/*/*"], "http": false, "insecure": false,
                "privateAddresses": false},
    "outbound": {"hosts": ["acme.example.org"], "privateAddresses": true},
    "records": {"bodies": true},
    "serviceAccounts": ["mirror"]})");

  EXPECT_EQ(read.problem, "");
  EXPECT_EQ(read.name, "strangers");
  ASSERT_TRUE(read.outbound);
  EXPECT_TRUE(read.outbound->allows_private_addresses);
  EXPECT_EQ(read.namespaces.text(), "team=a");
  EXPECT_EQ(read.budgets, (Budgets{.guest_memory_bytes = 256 * limits::kMiB,
                                   .guest_disk_bytes = 1024 * limits::kMiB,
                                   .module_disk_bytes = 2048 * limits::kMiB,
                                   .cpu_millicores = 1500,
                                   .output_bytes_per_second = 64 * limits::kKiB,
                                   .operators = 5,
                                   .feeds = 0,
                                   .own_watches = 7,
                                   .upstream_requests = 4,
                                   .fetches = 1}));
  EXPECT_EQ(read.modules,
            (ModuleRules{.urls = std::vector<std::string>{"oci://registry.example.com/*/*"},
                         .allows_http = false,
                         .allows_insecure = false,
                         .allows_private_addresses = false}));
  EXPECT_EQ(read.records.bodies, true);
  EXPECT_EQ(read.service_accounts, std::vector<std::string>{"mirror"});
}

TEST(TenantPolicy, NarrowsNothingThatItDoesNotMention) {
  for (const std::string_view spec : {"{}", "null", R"({"budgets":{},"modules":null})"}) {
    const TenantPolicy read = policy("a", spec);
    EXPECT_EQ(read.problem, "") << spec;
    EXPECT_TRUE(read.namespaces.selects_all());
    EXPECT_EQ(read.budgets, Budgets());
    EXPECT_EQ(read.modules, ModuleRules());
    EXPECT_EQ(read.records, RecordRules());
    EXPECT_FALSE(read.service_accounts);
  }
}

TEST(TenantPolicy, TellsAnEmptyListFromNone) {
  const TenantPolicy read = policy("a", R"({"modules":{"urls":[]},"serviceAccounts":[]})");

  ASSERT_TRUE(read.modules.urls && read.service_accounts);
  EXPECT_TRUE(read.modules.urls->empty() && read.service_accounts->empty());
}

TEST(TenantPolicy, SaysWhichFieldMakesNoSense) {
  struct Case {
    std::string_view spec;
    std::string_view field;
  };
  for (
      const auto& [spec, field] : std::vector<Case>{
          {R"("all")", "spec"},
          {R"({"budgets":[]})", "spec.budgets"},
          {R"({"budgets":{"guestMemory":"much"}})", "spec.budgets.guestMemory"},
          {R"({"budgets":{"guestMemory":5}})", "spec.budgets.guestMemory"},
          {R"({"budgets":{"cpu":"much"}})", "spec.budgets.cpu"},
          {R"({"budgets":{"cpu":"0"}})", "spec.budgets.cpu"},
          {R"({"budgets":{"output":"loud"}})", "spec.budgets.output"},
          {R"({"budgets":{"operators":-1}})", "spec.budgets.operators"},
          {R"({"budgets":{"fetches":0}})", "spec.budgets.fetches"},
          {R"({"modules":{"http":"no"}})", "spec.modules.http"},
          {R"({"modules":{"urls":"oci://a/*"}})", "spec.modules.urls"},
          {R"({"serviceAccounts":[1]})", "spec.serviceAccounts"},
          {R"({"outbound":{}})", "spec.outbound.hosts"},
          {R"({"records":{"bodies":"yes"}})", "spec.records.bodies"},
          {R"({"outbound":{"hosts":["https://acme.example.org"]}})", "spec.outbound.hosts"},
          {R"({"outbound":{"hosts":["acme.example.org"],"privateAddresses":"no"}})",
           "spec.outbound.privateAddresses"},
          {R"({"namespaceSelector":{"matchLabels":{"a,b":"c"}}})",
           "spec.namespaceSelector.matchLabels"},
          {R"({"namespaceSelector":{"matchLabels":{"a":"b,!c"}}})",
           "spec.namespaceSelector.matchLabels.a"},
          {R"({"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}})",
           "spec.namespaceSelector.matchExpressions[0].values"},
          {R"({"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Exists",
               "values":["b"]}]}})",
           "spec.namespaceSelector.matchExpressions[0].values"},
          {R"({"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}})",
           "spec.namespaceSelector.matchExpressions[0]"},
          {R"x({"namespaceSelector":{"matchExpressions":[{"key":"a)","operator":"Exists"}]}})x",
           "spec.namespaceSelector.matchExpressions[0].key"}}) {
    EXPECT_THAT(policy("a", spec).problem, HasSubstr(field)) << spec;
  }
}

// After a downgrade, a policy may have a limit that this version cannot enforce.
TEST(TenantPolicy, ThatALaterVersionReadsAllowsNothing) {
  for (const auto& [spec, field] : std::vector<std::pair<std::string_view, std::string_view>>{
           {R"({"namespaceSelector":{"matchLabels":{"a":"b"}},"later":true})", "spec.later"},
           {R"({"budgets":{"guestMemory":"1Gi","later":1}})", "spec.budgets.later"},
           {R"({"modules":{"later":[]}})", "spec.modules.later"},
           {R"({"records":{"answers":true}})", "spec.records.answers"},
           {R"({"outbound":{"hosts":["a.example.org"],"later":1}})", "spec.outbound.later"}}) {
    const auto read = std::make_shared<const TenantPolicy>(policy("a", spec));
    EXPECT_EQ(read->problem,
              fmt::format("{}: this version of hangar does not know the field", field));
    const Rules of_it(Rules::Policies{read});
    expect_refused(of_it.check_service_account("default"), "a", field);
    expect_refused(of_it.check_module(source("https://example.com/a.wasm")), "a", field);
  }
  EXPECT_EQ(policy("a", R"({"later":null})").problem, "");
  EXPECT_EQ(
      policy("a", R"({"namespaceSelector":{"matchLabels":{"a":"b"}},"later":1})").namespaces.text(),
      "a=b")
      << "other namespaces are not stopped";
}

TEST(TenantPolicy, SelectsAsTheServersSelectorsDo) {
  struct Case {
    std::string_view selector;
    std::string_view labels;
    bool is_selected;
  };
  for (
      const auto& [selector, labels, is_selected] : std::vector<Case>{
          {"{}", "{}", true},
          {R"({"matchLabels":{"team":"a"}})", R"({"team":"a","more":"x"})", true},
          {R"({"matchLabels":{"team":"a"}})", R"({"team":"b"})", false},
          {R"({"matchLabels":{"team":"a","zone":"1"}})", R"({"team":"a"})", false},
          {R"({"matchLabels":{"example.com/team":""}})", R"({"example.com/team":""})", true},
          {R"({"matchExpressions":[{"key":"team","operator":"In","values":["a","b"]}]})",
           R"({"team":"b"})", true},
          {R"({"matchExpressions":[{"key":"team","operator":"NotIn","values":["a","b"]}]})",
           R"({"team":"b"})", false},
          {R"({"matchExpressions":[{"key":"team","operator":"NotIn","values":["a"]}]})", "{}",
           true},
          {R"({"matchExpressions":[{"key":"team","operator":"Exists"}]})", "{}", false},
          {R"({"matchExpressions":[{"key":"team","operator":"DoesNotExist"}]})", "{}", true},
          {R"({"matchLabels":{"team":"a"},"matchExpressions":[{"key":"old","operator":"DoesNotExist"}]})",
           R"({"team":"a","old":"1"})", false}}) {
    PolicySet set;
    set.put(policy("a", fmt::format(R"({{"namespaceSelector":{}}})", selector)));
    const kube::ObjectPtr object = namespace_object(labels);
    EXPECT_EQ(!set.rules_of(object.get()).empty(), is_selected) << selector << " " << labels;
  }
}

TEST(PolicySet, CountsAPolicyForANamespaceWhoseLabelsAreNotKnown) {
  PolicySet set;
  set.put(policy("a", R"({"namespaceSelector":{"matchLabels":{"team":"a"}}})"));
  EXPECT_TRUE(set.needs_labels());

  EXPECT_FALSE(set.rules_of(nullptr).empty());
  EXPECT_TRUE(set.rules_of(namespace_object("{}").get()).empty());
}

TEST(PolicySet, GivesNoRightsToANamespaceWhoseLabelsAreNotKnown) {
  constexpr std::string_view kRights =
      R"("outbound":{"hosts":["acme.example.org"]},"records":{"bodies":true})";
  const OutboundServer acme{.host = "acme.example.org"};
  PolicySet set;
  set.put(policy(
      "a", fmt::format(R"({{"namespaceSelector":{{"matchLabels":{{"team":"a"}}}},{}}})", kRights)));
  const kube::ObjectPtr known = namespace_object(R"({"team":"a"})");
  EXPECT_TRUE(set.rules_of(known.get()).check_outbound(acme));
  EXPECT_TRUE(set.rules_of(known.get()).check_recorded_bodies());

  const Result<Rules::Addresses> addresses = set.rules_of(nullptr).check_outbound(acme);
  ASSERT_FALSE(addresses);
  EXPECT_EQ(addresses.error().reason(), kRefusedByPolicy);
  EXPECT_THAT(addresses.error().message(), HasSubstr("does not know the labels"));
  EXPECT_FALSE(set.rules_of(nullptr).check_recorded_bodies());

  set.put(policy("all", fmt::format("{{{}}}", kRights)));
  EXPECT_TRUE(set.rules_of(nullptr).check_outbound(acme));
  EXPECT_TRUE(set.rules_of(nullptr).check_recorded_bodies());
  EXPECT_FALSE(set.rules_of(nullptr).check_outbound({.host = "other.example.org"}));
}

TEST(PolicySet, ForgetsWhatIsReplacedOrRemoved) {
  PolicySet set;
  set.put(policy("a", R"({"serviceAccounts":[]})"));
  EXPECT_FALSE(set.needs_labels());
  EXPECT_FALSE(set.rules_of(nullptr).check_service_account("x"));

  set.put(policy("a", R"({"serviceAccounts":["x"]})"));
  EXPECT_TRUE(set.rules_of(nullptr).check_service_account("x"));
  set.remove("a");
  EXPECT_TRUE(set.rules_of(nullptr).empty());
}

TEST(Rules, WithoutPoliciesNarrowNothing) {
  const Rules none;

  EXPECT_TRUE(none.check_service_account("any"));
  EXPECT_TRUE(none.check_module({.reference = "http://example.com/a.wasm", .insecure = true}));
  EXPECT_TRUE(none.check_operator_count(1'000'000));
  EXPECT_FALSE(none.guest_memory_bytes() || none.guest_disk_bytes() || none.module_disk_bytes() ||
               none.cpu_millicores() || none.output_bytes_per_second() || none.operators() ||
               none.feeds() || none.own_watches() || none.upstream_requests() || none.fetches());
  EXPECT_EQ(none.requester("n").public_because(), "");
}

TEST(Rules, AModuleHasToFitEachPolicysList) {
  const Rules both = rules({R"({"modules":{"urls":["oci://r.example.com/*/*","configmap://*/*"]}})",
                            R"({"modules":{"urls":["oci://r.example.com/team/*"]}})"});

  EXPECT_TRUE(both.check_module(source("oci://r.example.com/team/a:1")));
  EXPECT_TRUE(both.check_module(source("OCI://r.example.com/team/a:1"))) << "by its meaning";
  expect_refused(both.check_module(source("oci://r.example.com/other/a:1")), "b",
                 "oci://r.example.com/team/*");
  expect_refused(both.check_module(source("configmap://n/a")), "b", "configmap://n/a");
  expect_refused(both.check_module(source("https://example.com/a.wasm")), "a", "does not allow");
}

TEST(Rules, ALoadedModuleIsRefusedBySourceWhateverItsDefinitionNamesNow) {
  const Rules both = rules({"{}", R"({"modules":{"urls":["oci://r.example.com/team/*",
      "https://h.example/new/*", "configmap://n/new"],"http":false}})"});
  const modules::Source allowed = source("oci://r.example.com/team/new:2");
  ASSERT_TRUE(both.check_module(allowed));

  for (const std::string& old :
       {"oci://r.example.com/banned/a@sha256:" + std::string(64, 'a'),
        std::string("https://h.example/old/a.wasm?..."), std::string("configmap://n/old"),
        std::string("http://h.example/new/a.wasm")}) {
    expect_refused(both.check_loaded_module(old, allowed), "b",
                   old.substr(0, old.find_first_of("@?")));
  }
  const std::string team = "oci://r.example.com/team/a@sha256:" + std::string(64, 'a');
  EXPECT_TRUE(both.check_loaded_module(team, allowed));
  EXPECT_TRUE(both.check_loaded_module("", allowed)) << "it is not known";
  EXPECT_TRUE(Rules().check_loaded_module("configmap://n/old", allowed));
  expect_refused(rules({R"({"modules":{"urls":[]}})"}).check_loaded_module(team, allowed), "a",
                 "it allows none");
}

TEST(Rules, ALoadedModuleIsAllowedByAnyTagOrQueryOfItsPlace) {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  const Rules tags = rules({R"({"modules":{"urls":["oci://r.example.com:5000/team/a:1.*",
      "oci://r.example.com/*/b", "https://h.example/get?name=*"]}})"});
  const modules::Source other = source("oci://r.example.com/team/b");

  EXPECT_TRUE(tags.check_loaded_module("oci://r.example.com:5000/team/a" + digest, other));
  EXPECT_TRUE(tags.check_loaded_module("https://h.example/get?...", other));
  expect_refused(tags.check_loaded_module("oci://r.example.com:5000/team/c" + digest, other), "a",
                 "team/c");

  const Rules by_suffix = rules({R"({"modules":{"urls":["oci://r.example.com/*-stable"]}})"});
  const std::string pinned = "oci://r.example.com/a" + digest;
  EXPECT_TRUE(by_suffix.check_loaded_module(pinned, source("oci://r.example.com/a:v1-stable")))
      << "check_module() is about that";
  expect_refused(by_suffix.check_loaded_module(pinned, source("oci://r.example.com/b:v1-stable")),
                 "a", "oci://r.example.com/a");
}

TEST(Rules, AnEmptyListAllowsNoModuleAndNoServiceAccount) {
  const Rules closed = rules({R"({"modules":{"urls":[]},"serviceAccounts":[]})"});

  expect_refused(closed.check_module(source("oci://r.example.com/a/b")), "a", "it allows none");
  expect_refused(closed.check_service_account("default"), "a", "it allows none");
}

TEST(Rules, AServerIsReachedIfEachPolicyWithAListNamesIt) {
  const OutboundServer acme{.host = "acme.example.org"};
  const OutboundServer vault{.host = "a.vault.example.org", .port = 8200};
  const Rules both = rules({"{}",
                            R"({"outbound":{"hosts":["acme.example.org","*.vault.example.org:8200"],
                               "privateAddresses":true}})",
                            R"({"outbound":{"hosts":["*.example.org"]}})"});

  const Result<Rules::Addresses> addresses = both.check_outbound(acme);
  ASSERT_TRUE(addresses);
  EXPECT_EQ(*addresses, Rules::Addresses::Public) << "one of them says so";
  expect_refused(both.check_outbound(vault), "c", "does not list it: it allows *.example.org");
  expect_refused(both.check_outbound({.host = "example.org"}), "b", "does not list it");
}

TEST(Rules, PrivateAddressesAreReachedIfEachPolicyWithAListSaysSo) {
  const Rules both =
      rules({R"({"outbound":{"hosts":["vault.example.org"],"privateAddresses":true}})",
             R"({"outbound":{"hosts":["*.example.org"],"privateAddresses":true}})", "{}"});

  const Result<Rules::Addresses> addresses = both.check_outbound({.host = "vault.example.org"});
  ASSERT_TRUE(addresses);
  EXPECT_EQ(*addresses, Rules::Addresses::AsHostSays);
}

TEST(Rules, NoServerIsReachedThatNoPolicyLists) {
  const OutboundServer acme{.host = "acme.example.org"};
  for (const Rules& none : {Rules(), rules({"{}", R"({"modules":{"urls":[]}})"}),
                            rules({R"({"outbound":{"hosts":[]}})"})}) {
    const Result<Rules::Addresses> addresses = none.check_outbound(acme);
    ASSERT_FALSE(addresses);
    EXPECT_EQ(addresses.error().kind(), ErrorKind::Denied);
    EXPECT_EQ(addresses.error().reason(), kRefusedByPolicy);
  }
}

TEST(Rules, WhatOnePolicyForbidsNoOtherAllows) {
  const Rules both = rules({R"({"modules":{"http":true,"insecure":true,"privateAddresses":true}})",
                            R"({"modules":{"http":false}})", R"({"modules":{"insecure":false}})",
                            R"({"modules":{"privateAddresses":false}})"});

  expect_refused(both.check_module(source("http://example.com/a.wasm")), "b", "use https");
  expect_refused(both.check_module(source("HTTP://example.com/a.wasm")), "b", "use https");
  expect_refused(both.check_module({.reference = "oci://r.example.com/a/b", .insecure = true}), "c",
                 "insecure");
  EXPECT_TRUE(both.check_module(source("https://example.com/a.wasm")));
  EXPECT_EQ(both.requester("n").public_because(), "TenantPolicy d");
  EXPECT_EQ(both.requester("n").id(), "n");
}

TEST(Rules, NeverRepeatASecretOfAUrl) {
  const Rules closed = rules({R"({"modules":{"urls":[]}})"});

  const Result<> refused =
      closed.check_module(source("https://me:secret@example.com/a.wasm?token=secret"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message().find("secret"), std::string::npos);
}

TEST(Rules, AServiceAccountHasToBeInEachPolicysList) {
  const Rules both = rules({R"({"serviceAccounts":["mirror","copier"]})", "{}",
                            R"({"serviceAccounts":["copier","other"]})"});

  EXPECT_TRUE(both.check_service_account("copier"));
  expect_refused(both.check_service_account("mirror"), "c", "copier, other");
  expect_refused(both.check_service_account("other"), "a", "mirror, copier");
}

TEST(Rules, OfNumbersTheLeastCountsAndNamesItsPolicy) {
  const Rules both = rules(
      {R"({"budgets":{"guestMemory":"64Mi","guestDisk":"1Gi","moduleDisk":"3Gi","cpu":"2","output":"1k","operators":9,"feeds":3}})",
       R"({"budgets":{"guestMemory":"32Mi","cpu":"1.5","operators":9,"fetches":2}})",
       R"({"budgets":{"cpu":"1600m"}})"});

  EXPECT_EQ(both.guest_memory_bytes(), (Bound{.value = 32 * limits::kMiB, .policy = "b"}));
  EXPECT_EQ(both.module_disk_bytes(), (Bound{.value = 3072 * limits::kMiB, .policy = "a"}));
  EXPECT_EQ(both.guest_disk_bytes(), (Bound{.value = 1024 * limits::kMiB, .policy = "a"}));
  EXPECT_EQ(both.cpu_millicores(), (Bound{.value = 1500, .policy = "b"}));
  EXPECT_EQ(both.output_bytes_per_second(), (Bound{.value = 1000, .policy = "a"}));
  EXPECT_EQ(both.operators(), (Bound{.value = 9, .policy = "a"})) << "the first of two equals";
  EXPECT_EQ(both.feeds(), (Bound{.value = 3, .policy = "a"}));
  EXPECT_EQ(both.fetches(), (Bound{.value = 2, .policy = "b"}));
}

TEST(Rules, AsManyOperatorsRunAsTheStrictestPolicyAllows) {
  const Rules both = rules({R"({"budgets":{"operators":2}})", R"({"budgets":{"operators":1}})"});

  EXPECT_TRUE(both.check_operator_count(0));
  expect_refused(both.check_operator_count(1), "b", "allows 1 Operators");
  expect_refused(both.check_operator_count(2), "b", "allows 1 Operators");
  expect_refused(rules({R"({"budgets":{"operators":0}})"}).check_operator_count(0), "a", "0");
}

TEST(Rules, OfAPolicyThatCannotBeReadAllowNothing) {
  PolicySet set;
  set.put(policy("broken", R"({"budgets":{"operators":"many"}})"));
  const Rules broken = set.rules_of(nullptr);

  expect_refused(broken.check_service_account("default"), "broken", "spec.budgets.operators");
  expect_refused(broken.check_module(source("oci://r.example.com/a/b")), "broken", "fix or delete");
  EXPECT_EQ(broken.requester("n").public_because(), "TenantPolicy broken");
}

TEST(Rules, LeaveAReferenceThatMakesNoSenseToWhoeverReadsIt) {
  EXPECT_TRUE(rules({R"({"modules":{"urls":[]}})"}).check_module(source("nonsense://")));
}

TEST(Rules, AllowRecordedBodiesIfAPolicyDoesAndNoneForbidsIt) {
  const std::string_view allows = R"({"records":{"bodies":true}})";
  const std::string_view forbids = R"({"records":{"bodies":false}})";
  EXPECT_TRUE(rules({allows, "{}"}).check_recorded_bodies());
  expect_refused(rules({allows, forbids}).check_recorded_bodies(), "b", "records.bodies");
  const Rules unreadable(
      Rules::Policies{std::make_shared<const TenantPolicy>(policy("a", allows)),
                      std::make_shared<const TenantPolicy>(policy("b", R"({"later":1})"))});
  expect_refused(unreadable.check_recorded_bodies(), "b", "spec.later");
  for (const Rules& none : {Rules(), rules({"{}"}), rules({R"({"records":{}})"})}) {
    const Result<> refused = none.check_recorded_bodies();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::Denied);
    EXPECT_EQ(refused.error().reason(), kRefusedByPolicy);
    EXPECT_THAT(refused.error().message(), HasSubstr("no TenantPolicy"));
  }
}

}  // namespace
}  // namespace hangar::tenants
