#include "host/module_policy.h"

#include "base/base64.h"
#include "base/result.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/workers.h"
#include "modules/module_policy.h"
#include "modules/reference.h"
#include "schematics/cosign_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::host {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ModulePolicyFile : public testing::Test {
 protected:
  ModulePolicyFile() {
    std::string name = (std::filesystem::temp_directory_path() / "policy.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(root_ / "keys");
    std::filesystem::create_directories(root_ / "empty");
    EXPECT_TRUE(io::write_file(root_ / "a.pub", schematics::kMadeByCosign[0].public_key));
    EXPECT_TRUE(io::write_file(root_ / "keys/b.pem", schematics::kMadeByCosign[1].public_key));
    EXPECT_TRUE(io::write_file(root_ / "broken.pub", "no key"));
  }
  ~ModulePolicyFile() override { std::filesystem::remove_all(root_); }

  Result<PolicyFile> read(std::string_view text) { return parse_module_policy(text, root_); }
  // As a text between quotation marks in YAML.
  static std::string replaced(std::string pem) {
    for (std::size_t at = pem.find('\n'); at != std::string::npos; at = pem.find('\n', at))
      pem.replace(at, 1, "\\n");
    return pem;
  }
  std::string refusal(std::string_view text) {
    const Result<PolicyFile> file = read(text);
    return file ? "accepted" : file.error().message();
  }

  std::filesystem::path root_;
};

constexpr std::string_view kDefault = "\ndefault: {require: none}\n";

TEST_F(ModulePolicyFile, ReadsRulesAndTheirKeys) {
  const std::string pem(schematics::kMadeByCosign[2].public_key);
  const Result<PolicyFile> file = read(fmt::format(R"(
rules:
- prefix: OCI://R.example/team/
  require: cosign
  keys: [a.pub, keys, "{}"]
- {{prefix: "https://m.example", require: yoke, keys: [{}]}}
- {{prefix: "http://", require: deny}}
default: {{require: none}})",
                                                   replaced(pem), (root_ / "a.pub").string()));

  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->rules.size(), 3U);
  EXPECT_EQ(file->rules[0].prefix, "oci://r.example/team");
  EXPECT_EQ(file->rules[0].requirement, modules::Requirement::Cosign);
  EXPECT_EQ(file->rules[0].keys.size(), 3U);
  EXPECT_EQ(file->rules[1].requirement, modules::Requirement::Yoke);
  EXPECT_EQ(file->rules[2].requirement, modules::Requirement::Deny);
  EXPECT_EQ(file->otherwise.requirement, modules::Requirement::Nothing);
}

TEST_F(ModulePolicyFile, NamesTheFieldThatIsWrong) {
  const auto rule = [](std::string_view members) {
    return fmt::format("rules: [{{{}}}]{}", members, kDefault);
  };
  constexpr std::string_view kTeam = R"(prefix: "oci://r.example/team")";

  EXPECT_THAT(refusal("- a"), HasSubstr("must be a mapping"));
  EXPECT_THAT(refusal("rules: []"), StartsWith("default: is missing"));
  EXPECT_THAT(refusal("default: {require: none}"), StartsWith("rules: must be a list"));
  EXPECT_THAT(refusal(fmt::format("rules: []\nrule: []{}", kDefault)),
              StartsWith("rule: unknown field"));
  EXPECT_THAT(refusal("rules: []\ndefault: {require: none, prefix: x}"),
              StartsWith("default.prefix: unknown field"));
  EXPECT_THAT(refusal("rules: []\ndefault: {require: cosign}"), StartsWith("default.keys: must"));
  EXPECT_THAT(refusal("rules: []\ndefault: none"), StartsWith("default: must be a mapping"));
  EXPECT_THAT(refusal(rule("require: none")), StartsWith("rules[0].prefix: is missing"));
  EXPECT_THAT(refusal(rule(kTeam)), StartsWith("rules[0].require: is missing"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: sigstore", kTeam))),
              StartsWith("rules[0].require: \"sigstore\" is not one of cosign, yoke, none, deny"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: none, key: a.pub", kTeam))),
              StartsWith("rules[0].key: unknown field"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: cosign", kTeam))),
              StartsWith("rules[0].keys: must be a list"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: cosign, keys: []", kTeam))),
              StartsWith("rules[0].keys: must be a list"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: yoke, keys: [a.pub, none.pub]", kTeam))),
              StartsWith("rules[0].keys[1]: failed to stat"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: yoke, keys: [broken.pub]", kTeam))),
              StartsWith("rules[0].keys[0]: failed to parse public key"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: yoke, keys: [empty]", kTeam))),
              StartsWith("rules[0].keys[0]: empty has no key"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: yoke, keys: ['']", kTeam))),
              StartsWith("rules[0].keys[0]: is empty"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: deny, keys: [a.pub]", kTeam))),
              StartsWith("rules[0].keys: has no meaning with require: deny"));
  EXPECT_THAT(refusal(rule(R"(prefix: "r.example/team", require: none)")),
              StartsWith("rules[0].prefix: \"r.example/team\" must begin with oci://"));
  EXPECT_THAT(refusal(rule(R"(prefix: "https://m.example", require: cosign, keys: [a.pub])")),
              StartsWith("rules[0].require: cosign signs artifacts in registries"));
  EXPECT_THAT(refusal(fmt::format(R"(rules:
- {{prefix: "oci://r.example/team", require: none}}
- {{prefix: "oci://R.example/team/", require: deny}}{})",
                                  kDefault)),
              StartsWith("rules[1].prefix: there is another rule for oci://r.example/team"));
}

TEST_F(ModulePolicyFile, NamesTheFile) {
  const std::filesystem::path path = root_ / "policy.yaml";
  EXPECT_THAT(read_module_policy(path).error().message(),
              HasSubstr("module-policy " + path.string()));
  ASSERT_TRUE(io::write_file(path, "rules: {}"));
  EXPECT_EQ(read_module_policy(path).error().message(),
            fmt::format("module-policy {}: rules: must be a list of rules", path.string()));
  ASSERT_TRUE(
      io::write_file(path, R"({"rules": [], "default": {"require": "yoke", "keys": ["keys"]}})"));
  EXPECT_TRUE(read_module_policy(path)) << "JSON, and a path that starts at the file's directory";
}

TEST_F(ModulePolicyFile, MakesRulesThatKnowTheirKeys) {
  const Result<PolicyFile> file = read(fmt::format(R"(rules:
- {{prefix: "oci://r.example/team", require: cosign, keys: [a.pub]}}
- {{prefix: "https://m.example", require: yoke, keys: [a.pub]}}{})",
                                                   kDefault));
  ASSERT_TRUE(file) << file.error().message();
  io::Loop loop;
  io::Workers workers(loop, 1);
  const modules::ModulePolicy policy = make_module_policy(
      *file,
      {.loop = loop, .workers = workers, .program = "none", .directory = root_ / "verified"});
  const auto rule_for = [&](std::string_view reference) {
    return policy.rule(policy.find(modules::Reference::parse(reference).value()).value());
  };

  const modules::PolicyRule cosign = rule_for("oci://r.example/team/web:v1");
  ASSERT_TRUE(cosign.signers);
  const std::string signature = base64_decode(schematics::kMadeByCosign[0].signature).value();
  EXPECT_TRUE(cosign.signers->have_signed(schematics::kCosignPayload, signature));
  EXPECT_FALSE(cosign.signers->have_signed("other bytes", signature));
  EXPECT_FALSE(cosign.signers->have_signed(
      schematics::kCosignPayload, base64_decode(schematics::kMadeByCosign[1].signature).value()));
  EXPECT_TRUE(rule_for("https://m.example/x.wasm").verifier);
  EXPECT_EQ(rule_for("oci://other.example/web").requirement, modules::Requirement::Nothing);
}

}  // namespace
}  // namespace hangar::host
