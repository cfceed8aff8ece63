#include "operators/operator.h"

#include "base/limits.h"
#include "json/yaml.h"
#include "operators/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Operator> parse(std::string_view spec) {
  const std::string manifest =
      "{apiVersion: hangar.dev/v1alpha1, kind: Operator, "
      "metadata: {name: mirror, namespace: team, uid: u-1, generation: 3}, spec: " +
      std::string(spec) + "}";
  return parse_operator(json::parse_yaml(manifest).value());
}

TEST(ParseOperator, GivesWhatIsNotSaidItsDefault) {
  const Operator parsed = parse("{module: {url: 'oci://r/mirror:v1'}}").value();

  EXPECT_EQ(parsed.key, (kube::ObjectKey{.namespace_ = "team", .name = "mirror"}));
  EXPECT_EQ(parsed.generation, 3);
  EXPECT_EQ(parsed.module, "oci://r/mirror:v1");
  EXPECT_EQ(parsed.service_account, "default");
  EXPECT_EQ(parsed.limits.memory_bytes, 64 * limits::kMiB);
  EXPECT_EQ(parsed.sleep.kind, SleepPolicy::Kind::Idle);
  EXPECT_EQ(parsed.sleep.after, 1s);
  EXPECT_EQ(parsed.isolation, Isolation::Namespace);
  EXPECT_EQ(parsed.record, Recording::Metadata);
}

TEST(ParseOperator, ReadsEveryField) {
  const Result<Operator> read = parse(R"({
    module: {configMap: {name: m, key: k}, sha256: ab, insecure: true}, args: [a, b],
    env: [{name: A, value: b}, {name: C, valueFrom: {secretKeyRef: {name: s, key: t, optional: true}}},
          {name: D, valueFrom: {configMapKeyRef: {name: cm, key: l}}}],
    files: [{path: /etc/app, configMap: {name: f}}, {path: /run/s, secret: {name: g, optional: true}}],
    serviceAccountName: robot,
    limits: {memory: 16Mi, cpuTimePerWake: 2s, requestsPerSecond: 5, logBytes: 4Ki},
    sleep: {policy: Never, after: 5m}, isolation: Operator, record: Bodies})");

  ASSERT_TRUE(read.has_value()) << read.error().message();
  const Operator& parsed = *read;

  EXPECT_EQ(parsed.module, "configmap://team/m/k");
  EXPECT_EQ(parsed.sha256, "ab");
  EXPECT_TRUE(parsed.insecure);
  EXPECT_THAT(parsed.args, ElementsAre("a", "b"));
  ASSERT_EQ(parsed.environment.size(), 3U);
  EXPECT_EQ(parsed.environment[1].source, EnvironmentEntry::Source::Secret);
  EXPECT_TRUE(parsed.environment[1].is_optional);
  EXPECT_EQ(parsed.environment[2].object, "cm");
  ASSERT_EQ(parsed.files.size(), 2U);
  EXPECT_TRUE(parsed.files[1].is_secret);
  EXPECT_EQ(parsed.service_account, "robot");
  EXPECT_EQ(parsed.limits.memory_bytes, 16 * limits::kMiB);
  EXPECT_EQ(parsed.limits.cpu_time_per_wake, 2s);
  EXPECT_EQ(parsed.limits.requests_per_second, 5);
  EXPECT_EQ(parsed.limits.log_bytes, 4 * limits::kKiB);
  EXPECT_EQ(parsed.sleep.kind, SleepPolicy::Kind::Never);
  EXPECT_EQ(parsed.sleep.after, 5min);
  EXPECT_EQ(parsed.isolation, Isolation::Operator);
  EXPECT_EQ(parsed.record, Recording::Bodies);
}

TEST(ParseOperator, ReadsFieldsOfItselfAsAPodDoes) {
  const json::Value manifest = json::parse_yaml(R"({
    apiVersion: hangar.dev/v1alpha1, kind: Operator,
    metadata: {name: mirror, namespace: team, uid: u-1, labels: {a.b/c: one}, annotations: {"it's": two}},
    spec: {module: {url: a}, env: [
      {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}},
      {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}},
      {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}},
      {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a.b/c']"}}},
      {name: ANNOTATION, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['it's']"}}},
      {name: NONE, valueFrom: {fieldRef: {fieldPath: "metadata.labels['none']"}}},
      {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}]}})")
                                   .value();

  const Result<Operator> parsed = parse_operator(manifest);

  ASSERT_TRUE(parsed) << parsed.error().message();
  std::vector<std::string> variables;
  for (const EnvironmentEntry& entry : parsed->environment) {
    EXPECT_EQ(entry.source, EnvironmentEntry::Source::Literal);
    variables.push_back(entry.name + "=" + entry.value);
  }
  EXPECT_THAT(variables, ElementsAre("NAME=mirror", "NAMESPACE=team", "UID=u-1", "LABEL=one",
                                     "ANNOTATION=two", "NONE=", "ACCOUNT=default"));
}

TEST(ParseOperator, NamesTheFieldThatIsWrong) {
  const struct {
    std::string_view spec;
    std::string_view message;
  } cases[] = {
      {"{}", "spec.module: is required"},
      {"{module: {}}", "exactly one of url and configMap"},
      {"{module: {url: a, configMap: {name: b}}}", "exactly one of url and configMap"},
      {"{module: {url: 'configmap://other/m'}}", "spec.module.url: must be http(s), oci or file"},
      {"{module: {url: 'ConfigMap://other/m'}}", "spec.module.url: must be http(s), oci or file"},
      {"{module: {url: 'CONFIGMAP://ns/m/k'}}", "spec.module.url: must be http(s), oci or file"},
      {"{module: {url: 'secret://other/m'}}", "spec.module.url: module reference secret://..."},
      {"{module: {configMap: {name: ../other/m}}}", "spec.module.configMap.name"},
      {"{module: {url: a}, env: [{value: b}]}", "spec.env[0].name: is required"},
      {"{module: {url: a}, env: [{name: 'A=B'}]}", "spec.env[0].name: must be the name"},
      {"{module: {url: a}, env: [{name: A, value: b, valueFrom: {secretKeyRef: {name: s, key: "
       "k}}}]}",
       "together with valueFrom"},
      {"{module: {url: a}, env: [{name: A, valueFrom: {}}]}",
       "one of configMapKeyRef, secretKeyRef, fieldRef"},
      {"{module: {url: a}, env: [{name: A, valueFrom: {fieldRef: {fieldPath: x}, secretKeyRef: "
       "{name: "
       "s, key: k}}}]}",
       "one of configMapKeyRef, secretKeyRef, fieldRef"},
      {"{module: {url: a}, env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}",
       "spec.env[0].valueFrom.fieldRef.fieldPath"},
      {"{module: {url: a}, env: [{name: A, valueFrom: {fieldRef: {fieldPath: "
       "\"metadata.labels[']\"}}}]}",
       "spec.env[0].valueFrom.fieldRef.fieldPath"},
      {"{module: {url: a}, files: [{path: etc, secret: {name: s}}]}", "spec.files[0].path"},
      {"{module: {url: a}, files: [{path: /a/../b, secret: {name: s}}]}", "without .."},
      {"{module: {url: a}, files: [{path: /a}]}", "one of configMap, secret"},
      {"{module: {url: a}, serviceAccountName: 'x:y'}", "spec.serviceAccountName"},
      {"{module: {url: a}, limits: {memory: much}}", "spec.limits.memory: \"much\""},
      {"{module: {url: a}, limits: {memory: 4Gi}}", "spec.limits.memory: must be"},
      {"{module: {url: a}, limits: {cpuTimePerWake: 1h}}", "spec.limits.cpuTimePerWake"},
      {"{module: {url: a}, limits: {requestsPerSecond: -1}}", "spec.limits.requestsPerSecond"},
      {"{module: {url: a}, sleep: {policy: Sometimes}}", "must be Idle, Predictive or Never"},
      {"{module: {url: a}, sleep: {after: soon}}", "spec.sleep.after"},
      {"{module: {url: a}, isolation: Pod}", "must be Namespace or Operator"},
      {"{module: {url: a}, webhooks: [{name: x}]}", "spec.webhooks[0].kind: is required"},
      {"{module: {url: a}, webhooks: [{kind: Service, name: x}]}",
       "spec.webhooks[0].kind: must be one of ValidatingWebhookConfiguration, Mutating"},
      {"{module: {url: a}, webhooks: [{kind: MutatingWebhookConfiguration}]}",
       "spec.webhooks[0].name: is required"},
      {"{module: {url: a}, webhooks: [{kind: MutatingWebhookConfiguration, name: ../x}]}",
       "spec.webhooks[0].name"},
      {"{module: {url: a}, webhooks: [{kind: CustomResourceDefinition, name: x}, "
       "{kind: CustomResourceDefinition, name: x}]}",
       "spec.webhooks[1].name"},
      {"{module: {url: a}, sleep: {policy: Predictive, wakeLatency: -1s}}", "0s or more"},
  };
  for (const auto& [spec, message] : cases) {
    const Result<Operator> parsed = parse(spec);
    ASSERT_FALSE(parsed.has_value()) << spec;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::InvalidInput) << spec;
    EXPECT_THAT(parsed.error().message(), HasSubstr(std::string(message)));
  }
}

TEST(ParseOperator, BoundsHowManyInputsItNames) {
  const auto with_files = [](std::size_t count) {
    std::string files;
    for (std::size_t index = 0; index < count; ++index)
      files += "{path: /f" + std::to_string(index) + ", configMap: {name: c}}, ";
    return parse("{module: {url: a}, env: [{name: A, value: b}], files: [" + files + "]}");
  };

  EXPECT_TRUE(with_files(limits::kOperatorInputsMax - 1));
  const Result<Operator> more = with_files(limits::kOperatorInputsMax);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message(), HasSubstr("spec.env and spec.files: may have 256 entries"));
}

TEST(ParseOperator, NamesTheWebhookConfigurationsThatItAnswers) {
  const Result<Operator> parsed = parse(
      "{module: {url: a}, webhooks: [{kind: ValidatingWebhookConfiguration, name: memo.example}, "
      "{kind: MutatingWebhookConfiguration, name: memo}, "
      "{kind: CustomResourceDefinition, name: memos.example.com}]}");

  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->webhooks,
            (std::vector<WebhookSource>{{WebhookKind::Validating, "memo.example"},
                                        {WebhookKind::Mutating, "memo"},
                                        {WebhookKind::Conversion, "memos.example.com"}}));
}

TEST(ParseWasmConfig, ReadsThePublishedDocuments) {
  const auto parsed = parse_wasm_config(
      "name: ring0\nwasm: ./ring.wasm\nenv:\n- name: RUST_LOG\n  value: \"info\"\nargs: []\n"
      "---\nname: ring1\nwasm: /opt/ring.wasm\n---\n",
      "/dir", {.kind = SleepPolicy::Kind::Idle, .after = 0s});

  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  ASSERT_EQ(parsed->size(), 2U);
  EXPECT_EQ((*parsed)[0].key.name, "ring0");
  EXPECT_EQ((*parsed)[0].module, "/dir/./ring.wasm");
  EXPECT_EQ((*parsed)[0].environment[0].value, "info");
  EXPECT_EQ((*parsed)[1].module, "/opt/ring.wasm");
  EXPECT_EQ((*parsed)[1].sleep.after, 0s);
}

TEST(ParseWasmConfig, NamesTheDocumentThatIsWrong) {
  const struct {
    std::string_view yaml;
    std::string_view message;
  } cases[] = {
      {"", "has no document"},
      {"name: a\n", "document 1: wasm: is required"},
      {"{name: a, wasm: b}\n---\n[1]\n", "document 2: must be an object"},
      {"{name: a, wasm: b}\n---\n{name: a, wasm: b}\n", "document 2: name: there is another"},
      {"{name: ../a, wasm: b}\n", "document 1: name: must be a name"},
      {"{name: a, wasm: b, env: [{value: c}]}\n", "document 1: env[0].name: is required"},
      {"{name: a, wasm: b}\n---\n{name: c, wasm: b, env: [{name: LOG, value: info}, {name: TOKEN, "
       "valueFrom: {secretKeyRef: {name: s, key: k}}}]}\n",
       "document 2: env[1].valueFrom: TOKEN cannot come from a cluster object here; give its "
       "value"},
      {"{name: a, wasm: b, arg: [c]}\n",
       "document 1: arg: is not known here; a document has name, wasm, env, args"},
      {"{name: a, wasm: b, limits: {memory: 1Mi}}\n", "document 1: limits: is not known here"},
  };
  for (const auto& [yaml, message] : cases) {
    const auto parsed = parse_wasm_config(yaml, "/dir", {});
    ASSERT_FALSE(parsed.has_value()) << yaml;
    EXPECT_THAT(parsed.error().message(), HasSubstr(std::string(message)));
  }
}

}  // namespace
}  // namespace hangar::operators
