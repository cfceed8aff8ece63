#include "workflows/workflow.h"

#include "base/result.h"
#include "json/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hangar::workflows {
namespace {

using testing::HasSubstr;

Result<Workflow> parsed(std::string_view spec) {
  json::Value manifest = json::parse(R"({"metadata":{"name":"orders","namespace":"team","uid":"u",
    "generation":3}})")
                             .value();
  manifest.as_object()["spec"] = json::parse(spec).value();
  return parse_workflow(manifest);
}

TEST(Workflow, TakesThePublishedSpec) {
  const Result<Workflow> workflow =
      parsed(R"({"moduleConfigMap":"provisioner","input":{"team":"orders"}})");

  ASSERT_TRUE(workflow.has_value()) << workflow.error().message();
  EXPECT_EQ(workflow->machine.module.reference, "configmap://team/provisioner");
  EXPECT_EQ(workflow->config_map, "provisioner");
  EXPECT_EQ(workflow->input, R"({"team":"orders"})");
  EXPECT_EQ(workflow->service_account, "default");
  EXPECT_EQ(workflow->generation, 3);
}

TEST(Workflow, HasAnEmptyInputWithoutOne) {
  EXPECT_EQ(parsed(R"({"moduleConfigMap":"provisioner"})")->input, "{}");
}

TEST(Workflow, TakesModulesFromElsewhere) {
  const Result<Workflow> workflow =
      parsed(R"({"module":{"url":"oci://registry.example.com/provisioner:v1","sha256":"abc"},
                 "timeouts":{"workflow":"24h","states":{"a.b":"10m"}}})");

  ASSERT_TRUE(workflow.has_value()) << workflow.error().message();
  EXPECT_EQ(workflow->machine.module.reference, "oci://registry.example.com/provisioner:v1");
  EXPECT_EQ(workflow->machine.module.sha256, "abc");
  EXPECT_FALSE(workflow->config_map.has_value());
  EXPECT_EQ(workflow->timeout, std::chrono::hours(24));
  EXPECT_EQ(workflow->state_timeouts.at("a.b"), std::chrono::minutes(10));
}

TEST(Workflow, FindsAPluginBesideTheModuleOrWhereItIsTold) {
  const auto plugin = [](const std::string& spec) {
    const Result<Workflow> workflow = parsed(spec);
    return workflow ? workflow->machine.plugin.value_or(modules::Source{.reference = "none"})
                    : modules::Source{.reference = workflow.error().message()};
  };

  EXPECT_EQ(plugin(R"({"moduleConfigMap":"m"})").reference, "configmap://team/m/plugin.wasm");
  EXPECT_EQ(plugin(R"({"module":{"url":"https://m"}})").reference, "none");
  EXPECT_EQ(plugin(R"({"module":{"url":"https://m"},"plugin":{"configMap":"javy","sha256":"ab"}})"),
            (modules::Source{.reference = "configmap://team/javy/plugin.wasm", .sha256 = "ab"}));
  EXPECT_EQ(plugin(R"({"moduleConfigMap":"m","plugin":{"url":"oci://r/javy","insecure":true}})"),
            (modules::Source{.reference = "oci://r/javy", .insecure = true}));
  EXPECT_EQ(parsed(R"({"moduleConfigMap":"m","plugin":{"configMap":"javy"}})")->plugin_config_map,
            "javy");
}

struct Refusal {
  std::string_view spec;
  std::string_view field;
};

// The host refuses input that the API server's schema refuses, because the cluster's schema may be
// older.
TEST(Workflow, RefusesWhatCannotBeAndNamesTheField) {
  for (const auto& [spec, field] : {
           Refusal{"{}", "spec.moduleConfigMap"},
           Refusal{R"({"moduleConfigMap":"a","module":{"url":"https://b"}})",
                   "spec.moduleConfigMap"},
           Refusal{R"({"moduleConfigMap":7})", "spec.moduleConfigMap"},
           Refusal{R"({"moduleConfigMap":"other/a"})", "spec.moduleConfigMap"},
           Refusal{R"({"module":{"url":"configmap://other/a"}})", "spec.module.url"},
           Refusal{R"({"module":{"url":"ConfigMap://other/a"}})", "spec.module.url"},
           Refusal{R"({"module":{"url":"CONFIGMAP://team/a"}})", "spec.module.url"},
           Refusal{R"({"module":{"url":"secret://other/a"}})", "spec.module.url"},
           Refusal{R"({"moduleConfigMap":"a","plugin":{}})", "spec.plugin"},
           Refusal{R"({"moduleConfigMap":"a","plugin":{"url":"https://b","configMap":"c"}})",
                   "spec.plugin"},
           Refusal{R"({"moduleConfigMap":"a","plugin":{"url":"configmap://other/a"}})",
                   "spec.plugin.url"},
           Refusal{R"({"moduleConfigMap":"a","plugin":{"url":"configMap://other/a"}})",
                   "spec.plugin.url"},
           Refusal{R"({"moduleConfigMap":"a","plugin":{"configMap":"other/a"}})",
                   "spec.plugin.configMap"},
           Refusal{R"({"moduleConfigMap":"a","input":"text"})", "spec.input"},
           Refusal{R"({"moduleConfigMap":"a","input":["list"]})", "spec.input"},
           Refusal{R"({"moduleConfigMap":"a","input":7})", "spec.input"},
           Refusal{R"({"moduleConfigMap":"a","serviceAccountName":"system:admin"})",
                   "spec.serviceAccountName"},
           Refusal{R"({"moduleConfigMap":"a","timeouts":{"workflow":"soon"}})",
                   "spec.timeouts.workflow"},
           Refusal{R"({"moduleConfigMap":"a","timeouts":{"states":{"b":"-1s"}}})",
                   "spec.timeouts.states.b"},
           Refusal{R"({"moduleConfigMap":"a","historyLimit":-1})", "spec.historyLimit"},
           Refusal{R"({"moduleConfigMap":"a","historyLimit":1000})", "spec.historyLimit"},
       }) {
    const Result<Workflow> workflow = parsed(spec);
    ASSERT_FALSE(workflow.has_value()) << spec;
    EXPECT_EQ(workflow.error().kind(), ErrorKind::InvalidInput) << spec;
    EXPECT_THAT(workflow.error().message(), HasSubstr(std::string(field))) << spec;
  }
}

}  // namespace
}  // namespace hangar::workflows
