#include "commands/argocd_parameters.h"

#include "airways/output.h"
#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using ArgoFiles = std::map<std::string, std::string>;

Result<ArgoParameters> read_parameters(std::string_view text, const ArgoFiles& files = {}) {
  return parse_argo_parameters(text, [&files](const std::string& path) -> Result<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return fail(ErrorKind::NotFound, "no such file");
    return found->second;
  });
}

std::string parameter_problem(std::string_view text, const ArgoFiles& files = {}) {
  const Result<ArgoParameters> parameters = read_parameters(text, files);
  return parameters ? "no error" : parameters.error().message();
}

// Compares the input as JSON; `more` are further parameters.
void expect_input(std::string_view more, std::string_view json, const ArgoFiles& files = {}) {
  SCOPED_TRACE(more);
  const Result<ArgoParameters> parameters =
      read_parameters(fmt::format("[{{name: wasm, string: main.wasm}}, {}]", more), files);
  ASSERT_TRUE(parameters.has_value()) << parameters.error().message();
  const Result<json::Value> input = json::parse(parameters->input);
  ASSERT_TRUE(input.has_value()) << parameters->input;
  EXPECT_TRUE(json::equal(*input, json::parse(json).value())) << parameters->input;
}

TEST(ArgocdParameters, AreReadByTheirNames) {
  const Result<ArgoParameters> read_ = read_parameters(R"([
      {"name": "wasm", "string": "//dir/main.wasm"},
      {"name": "wasm", "string": "the first one counts"},
      {"name": "input", "string": "a: b"},
      {"name": "args", "array": ["-v", "x"]},
      {"name": "refs", "map": {"token": {"secret": "registry", "namespace": "infra", "key": "t"}}},
      {"name": "resourceMatchers", "array": ["Secret"]},
      {"name": "clusterAccess", "string": "true"},
      {"name": "maxMemoryMib", "string": "64"},
      {"name": "timeout", "string": "5s"},
      {"name": "checksum", "string": "abc"},
      {"name": "insecure", "string": "1"},
      {"name": "unknown", "map": {"a": "b"}}])");

  ASSERT_TRUE(read_.has_value()) << read_.error().message();
  EXPECT_EQ(read_->wasm, "dir/main.wasm");
  EXPECT_EQ(read_->input, "a: b");
  EXPECT_THAT(read_->args, ElementsAre("-v", "x"));
  ASSERT_EQ(read_->refs.size(), 1U);
  EXPECT_EQ(read_->refs.at("token").secret, "registry");
  EXPECT_EQ(read_->refs.at("token").namespace_, "infra");
  EXPECT_EQ(read_->refs.at("token").key, "t");
  EXPECT_THAT(read_->resource_matchers, ElementsAre("Secret"));
  EXPECT_TRUE(read_->cluster_access);
  EXPECT_EQ(read_->memory_mib_max, 64U);
  EXPECT_EQ(read_->timeout, std::chrono::seconds(5));
  EXPECT_EQ(read_->checksum, "abc");
  EXPECT_TRUE(read_->insecure);
  EXPECT_FALSE(read_->build);
}

TEST(ArgocdParameters, HaveDefaults) {
  const Result<ArgoParameters> read_ = read_parameters("[{name: build, string: 'true'}]");

  ASSERT_TRUE(read_.has_value()) << read_.error().message();
  EXPECT_TRUE(read_->build);
  EXPECT_EQ(read_->input, "");
  EXPECT_FALSE(read_->cluster_access);
  EXPECT_EQ(read_->memory_mib_max, 0U);
  EXPECT_EQ(read_->timeout, Duration::zero());
}

TEST(ArgocdParameters, NameWhatIsWrong) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"[]", "wasm parameter must be provided or build enabled"},
      {"[{name: wasm, string: /}]", "wasm parameter must be provided or build enabled"},
      {"[{name: wasm, string: a}, {name: build, string: 'true'}]",
       "wasm asset cannot be present and build enabled"},
      {"[{name: build, string: maybe}]",
       "parsing parameter build: strconv.ParseBool: parsing \"maybe\": invalid syntax"},
      {"[{name: wasm, string: a}, {name: maxMemoryMib, string: much}]",
       "failed to parse parameter maxMemoryMib: strconv.Atoi: parsing \"much\": invalid syntax"},
      {"[{name: wasm, string: a}, {name: maxMemoryMib, string: '64x'}]", "maxMemoryMib"},
      {"[{name: wasm, string: a}, {name: timeout, string: 5 seconds}]",
       "failed to parse parameter timeout"},
      {"[{name: wasm, string: a}, {name: refs, map: {a: {secret: s}}}]",
       "parameter refs: a needs the members secret and key"},
      {"[{name: wasm, string: a}, {name: args, array: [1]}]",
       "parameter args: array is not a list of strings"},
      {"[{name: wasm, string: 1}]", "parameter wasm: string is not a string"},
      {"[{name: wasm, string: a}, {name: input, map: [a]}]", "parameter input: map is not a map"},
      {"[a]", "a parameter is not an object"},
      {"{name: wasm}", "the parameters are not a list"},
      {"[{name: wasm, string: a}, {name: inputFiles, array: [x.yaml]}]",
       "could not read file 'x.yaml': no such file"},
      {"[{name: wasm, string: a}, {name: input, map: {'a.*': b}}]",
       "could not set input map entry a.*: a path cannot contain '*'"},
      {"[{name: wasm, string: a}, {name: input, map: {'a.10001': b}}]", "larger than 10000"},
      {"[{name: wasm, string: a}, {name: input, map: {'a.99999999999999999999': b}}]",
       "larger than 10000"},
      {"[{name: wasm, string: a}, {name: input, map: {a: 1}}]",
       "could not parse map input: the value of a is not a string"},
      {"[{name: wasm, string: a}, {name: input, map: {a: '['}}]",
       "could not parse the input map entry a"}};

  for (const auto& [text, words] : cases) {
    EXPECT_THAT(parameter_problem(text), HasSubstr(words)) << text;
    EXPECT_TRUE(parameter_problem(text).starts_with("invalid config: ")) << text;
  }
  EXPECT_THAT(parameter_problem("[{name: wasm, string: a}, {name: inputFiles, array: [x]}]",
                                {{"x", "text"}}),
              HasSubstr("could not parse YAML or JSON file 'x': it is not an object"));
}

TEST(ArgocdParameters, TooMuchMemoryMeansTheDefaultAsWithYoke) {
  for (const std::string_view text : {"4097", "-1"}) {
    const Result<ArgoParameters> read_ = read_parameters(
        fmt::format("[{{name: wasm, string: a}}, {{name: maxMemoryMib, string: '{}'}}]", text));
    ASSERT_TRUE(read_.has_value()) << read_.error().message();
    EXPECT_EQ(read_->memory_mib_max, 0U) << text;
  }
}

TEST(ArgocdParameters, InputFilesAreMergedAndValuesAreSetInThem) {
  const ArgoFiles files = {{"values.yaml", "a: &x 1\nb: {c: *x, d: [1, 2]}\n"},
                           {"over.json", R"({"b": {"d": [3], "e": null}, "a": false})"}};

  expect_input("{name: inputFiles, array: [values.yaml]}", R"({"a":1,"b":{"c":1,"d":[1,2]}})",
               files);
  expect_input("{name: inputFiles, array: [values.yaml, over.json]}",
               R"({"a":false,"b":{"c":1,"d":[3],"e":null}})", files);
  expect_input(
      "{name: inputFiles, array: [values.yaml]}, {name: input, map: {'b.d.-1': '{f: 3}', a: x}}",
      R"({"a":"x","b":{"c":1,"d":[1,2,{"f":3}]}})", files);
}

TEST(ArgocdParameters, ValuesOfTheInputMapAreDocumentsAtPaths) {
  expect_input("{name: input, map: {a: foo, b: '42', c: '\"42\"', d: 'true', e: 'x: [1]', f: ''}}",
               R"({"a":"foo","b":42,"c":"42","d":true,"e":{"x":[1]},"f":null})");
  expect_input(
      "{name: input, map: {'a.b': '1', 'a.c.1.d': '2', 'a.c.-1': '3', 'x\\.y': '4', 'z.:0': '5'}}",
      R"({"a":{"b":1,"c":[null,{"d":2},3]},"x.y":4,"z":{"0":5}})");
  // A value on the way that is not an object is replaced.
  expect_input("{name: input, map: {a: text, 'a.b': '1'}}", R"({"a":{"b":1}})");
}

TEST(ArgocdParameters, ComeFromTheEnvironment) {
  const std::vector<std::string> variables = {
      "PATH=/bin",
      "ARGOCD_APP_NAME=web",
      "ARGOCD_ENV_COLOR=a=b",
      "ARGOCD_APP_NAMESPACE=shop",
      "ARGOCD_NAMESPACE=cd",
      "ARGOCD_APP_PARAMETERS=[{name: wasm, string: main.wasm}]"};
  const auto no_files = [](const std::string&) -> Result<std::string> { return std::string(); };

  const Result<ArgoEnvironment> read_ = read_argo_environment(variables, no_files);
  ASSERT_TRUE(read_.has_value()) << read_.error().message();
  EXPECT_EQ(read_->name, "web");
  EXPECT_EQ(read_->namespace_, "shop");
  EXPECT_EQ(read_->argo_namespace, "cd");
  EXPECT_THAT(read_->flight_variables, ElementsAre("COLOR=a=b"));
  EXPECT_EQ(read_->parameters.wasm, "main.wasm");

  const std::vector<std::string> few = {"ARGOCD_APP_NAME=", "ARGOCD_APP_PARAMETERS=[]"};
  const Result<ArgoEnvironment> wrong = read_argo_environment(few, no_files);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().message(),
            "failed to parse variable(s): ARGOCD_APP_NAME: field is declared but empty: cannot be "
            "empty; ARGOCD_APP_NAMESPACE: field is required; ARGOCD_APP_PARAMETERS: invalid "
            "config: wasm parameter must be provided or build enabled");
}

TEST(ArgocdParameters, SecretsAreFilledIntoUrls) {
  const std::map<std::string, std::string> values = {{"user", "ada"}, {"token", "{{.user}}"}};

  EXPECT_EQ(fill_in_url("https://{{ .user }}:{{.token}}@host/x", values).value(),
            "https://ada:{{.user}}@host/x");
  EXPECT_EQ(fill_in_url("https://host/x", values).value(), "https://host/x");
  EXPECT_THAT(fill_in_url("https://{{ .other }}/", values).error().message(),
              HasSubstr("refs has no entry \"other\""));
  EXPECT_THAT(fill_in_url("https://{{ printf .user }}/", values).error().message(),
              HasSubstr("invalid template: {{printf .user}}"));
  EXPECT_FALSE(fill_in_url("https://{{ .user /", values).has_value());
}

TEST(ArgocdParameters, StagesBecomeSyncWaves) {
  const auto marked = [](std::string_view text) {
    airways::Output output = airways::parse_output(text).value();
    mark_for_argo(output.stages, "web", "shop");
    std::vector<std::string> waves;
    for (const airways::Stage& stage : output.stages) {
      for (const json::Value& one : stage) {
        EXPECT_EQ(json::string_at(one, {"metadata", "labels", "app.kubernetes.io/managed-by"}),
                  "yokecd");
        EXPECT_EQ(json::string_at(one, {"metadata", "annotations", "instance.atc.yoke.cd/release"}),
                  "web");
        EXPECT_EQ(
            json::string_at(one, {"metadata", "annotations", "instance.atc.yoke.cd/namespace"}),
            "shop");
        waves.emplace_back(
            json::string_at(one, {"metadata", "annotations", "argocd.argoproj.io/sync-wave"}));
      }
    }
    return waves;
  };
  constexpr std::string_view kOne =
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}})";
  constexpr std::string_view kWave =
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"b","annotations":{"argocd.argoproj.io/sync-wave":"9"}}})";

  EXPECT_THAT(marked(fmt::format("[{},{}]", kOne, kWave)), ElementsAre("", "9"));
  EXPECT_THAT(marked(fmt::format("[[{}],[{}]]", kOne, kWave)), ElementsAre("0", "1"));
}

}  // namespace
}  // namespace hangar::commands
