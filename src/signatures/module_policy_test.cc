#include "signatures/module_policy.h"

#include "base/base64.h"
#include "base/result.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/workers.h"
#include "json/value.h"
#include "modules/cosign.h"
#include "modules/module_policy.h"
#include "modules/reference.h"
#include "schematics/cosign_keys.h"
#include "sigstore/test_instance.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::signatures {
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
    EXPECT_TRUE(io::write_file(root_ / "root.json", json::dump(instance_.trust_root())));
  }
  ~ModulePolicyFile() override { std::filesystem::remove_all(root_); }

  Result<PolicyFile> read(std::string_view text) { return parse_module_policy(text, root_); }
  // Escapes the text for quotation marks in YAML.
  static std::string replaced(std::string pem) {
    for (std::size_t at = pem.find('\n'); at != std::string::npos; at = pem.find('\n', at))
      pem.replace(at, 1, "\\n");
    return pem;
  }
  std::string refusal(std::string_view text) {
    const Result<PolicyFile> file = read(text);
    return file ? "accepted" : file.error().message();
  }

  sigstore::TestInstance instance_;
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
  EXPECT_THAT(refusal("rules: []"), StartsWith("default: is required"));
  EXPECT_THAT(refusal("default: {require: none}"), StartsWith("rules: must be a list"));
  EXPECT_THAT(refusal(fmt::format("rules: []\nrule: []{}", kDefault)),
              StartsWith("rule: unknown field"));
  EXPECT_THAT(refusal("rules: []\ndefault: {require: none, prefix: x}"),
              StartsWith("default.prefix: unknown field"));
  EXPECT_THAT(refusal("rules: []\ndefault: {require: cosign}"), StartsWith("default.keys: must"));
  EXPECT_THAT(refusal("rules: []\ndefault: none"), StartsWith("default: must be an object"));
  EXPECT_THAT(refusal(rule("require: none")), StartsWith("rules[0].prefix: is required"));
  EXPECT_THAT(refusal(rule(kTeam)), StartsWith("rules[0].require: is required"));
  EXPECT_THAT(refusal(rule(fmt::format("{}, require: sigstore", kTeam))),
              StartsWith("rules[0].require: must be cosign, yoke, none or deny, not \"sigstore\""));
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

TEST_F(ModulePolicyFile, NamesTheFieldOfAKeylessRuleThatIsWrong) {
  const auto keyless = [](std::string_view members, std::string_view more = "") {
    return fmt::format(
        R"(rules: [{{prefix: "oci://r.example/team", require: cosign, keyless: {{{}}}{}}}]{})",
        members, more, kDefault);
  };
  const auto identity = [&keyless](std::string_view members) {
    return keyless(fmt::format("trustRoot: root.json, identities: [{{{}}}]", members));
  };
  constexpr std::string_view kGood = R"(issuer: "https://login.example", subject: ci@example.com)";

  EXPECT_EQ(refusal(identity(kGood)), "accepted");
  EXPECT_THAT(refusal(keyless("trustRoot: root.json")),
              StartsWith("rules[0].keyless.identities: must be a list of 1 to 64"));
  EXPECT_THAT(refusal(keyless("trustRoot: root.json, identities: []")),
              StartsWith("rules[0].keyless.identities: must be a list of 1 to 64"));
  EXPECT_THAT(refusal(keyless(fmt::format("identities: [{{{}}}]", kGood))),
              StartsWith("rules[0].keyless.trustRoot: must be a file"));
  EXPECT_THAT(refusal(keyless("trustRoot: none.json")), StartsWith("rules[0].keyless.trustRoot: "));
  EXPECT_THAT(refusal(keyless("trustRoot: ''")),
              StartsWith("rules[0].keyless.trustRoot: is empty"));
  EXPECT_THAT(refusal(keyless("trustRoot: {tlogs: []}")),
              StartsWith("rules[0].keyless.trustRoot: mediaType: must be"));
  EXPECT_THAT(refusal(keyless("url: x")), StartsWith("rules[0].keyless.url: unknown field"));
  EXPECT_THAT(refusal(identity("subject: a")),
              StartsWith("rules[0].keyless.identities[0].issuer: either this or issuerRegExp"));
  EXPECT_THAT(refusal(identity("issuer: a, subject: a, subjectRegExp: ^a$")),
              StartsWith("rules[0].keyless.identities[0].subject: either this or subjectRegExp"));
  EXPECT_THAT(refusal(identity("issuer: a, subjectRegExp: a")),
              StartsWith("rules[0].keyless.identities[0].subjectRegExp: must begin with ^"));
  EXPECT_THAT(refusal(identity("issuer: '', subject: a")),
              StartsWith("rules[0].keyless.identities[0].issuer: is required"));
  EXPECT_THAT(
      refusal(fmt::format(
          R"(rules: [{{prefix: "https://m.example", require: yoke, keyless: {{}}}}]{})", kDefault)),
      StartsWith("rules[0].keyless: has no meaning with require: yoke"));
  EXPECT_THAT(refusal(keyless(fmt::format("trustRoot: root.json, identities: [{{{}}}]", kGood),
                              ", keys: []")),
              StartsWith("rules[0].keys: must be a list"));
}

TEST_F(ModulePolicyFile, NamesTheFile) {
  const std::filesystem::path path = root_ / "policy.yaml";
  EXPECT_THAT(read_module_policy(path).error().message(),
              HasSubstr("module-policy " + path.string()));
  ASSERT_TRUE(io::write_file(path, "rules: {}"));
  EXPECT_EQ(read_module_policy(path).error().message(),
            fmt::format("module-policy {}: rules: must be a list of objects", path.string()));
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
  const auto is_by_them = [&](std::string_view bytes, std::string_view by) {
    return cosign.signers->find_signer({.bytes = bytes, .signature = by, .payload = bytes})
        .has_value();
  };
  EXPECT_TRUE(is_by_them(schematics::kCosignPayload, signature));
  EXPECT_FALSE(is_by_them("other bytes", signature));
  EXPECT_FALSE(is_by_them(schematics::kCosignPayload,
                          base64_decode(schematics::kMadeByCosign[1].signature).value()));
  EXPECT_TRUE(rule_for("https://m.example/x.wasm").verifier);
  EXPECT_EQ(rule_for("oci://other.example/web").requirement, modules::Requirement::Nothing);
}

TEST_F(ModulePolicyFile, AcceptsSignaturesByIdentitiesOrKeys) {
  const std::string identity =
      fmt::format(R"({{issuer: "{}", subject: "{}"}})", sigstore::kOidcIssuer, sigstore::kSubject);
  // The trust root in a file, in place, and as a text.
  const std::string in_place = json::dump(instance_.trust_root());
  const Result<PolicyFile> file = read(fmt::format(
      R"(rules:
- {{prefix: "oci://r.example/file", require: cosign, keyless: {{trustRoot: root.json, identities: [{0}]}}}}
- {{prefix: "oci://r.example/both", require: cosign, keys: [a.pub], keyless: {{trustRoot: {1}, identities: [{0}]}}}}
- {{prefix: "oci://r.example/text", require: cosign, keyless: {{trustRoot: '{1}', identities: [{0}]}}}}{2})",
      identity, in_place, kDefault));
  ASSERT_TRUE(file) << file.error().message();
  io::Loop loop;
  io::Workers workers(loop, 1);
  const modules::ModulePolicy policy = make_module_policy(
      *file,
      {.loop = loop, .workers = workers, .program = "none", .directory = root_ / "verified"});
  const auto signers_for = [&](std::string_view repository) {
    const std::string reference = fmt::format("oci://r.example/{}:v1", repository);
    return policy.rule(policy.find(modules::Reference::parse(reference).value()).value()).signers;
  };
  const sigstore::KeylessSignature keyless =
      instance_.sign(std::string(schematics::kCosignPayload), instance_.issue(instance_.leaf()));
  const modules::KeylessAnnotations none;
  const std::string by_key = base64_decode(schematics::kMadeByCosign[0].signature).value();
  const modules::Claim by_key_claim{.bytes = schematics::kCosignPayload,
                                    .signature = by_key,
                                    .payload = schematics::kCosignPayload,
                                    .annotations = &none};
  modules::Claim by_nobody = by_key_claim;
  by_nobody.signature = "another";

  for (const std::string_view repository : {"file", "both", "text"})
    EXPECT_TRUE(signers_for(repository)->find_signer(keyless.claim())) << repository;
  EXPECT_EQ(signers_for("file")->id(), signers_for("text")->id());
  EXPECT_NE(signers_for("file")->id(), signers_for("both")->id());
  EXPECT_THAT(signers_for("file")->find_signer(by_key_claim).error().message(),
              HasSubstr("it was made with a key"));
  EXPECT_EQ(signers_for("both")->find_signer(by_key_claim).value(), "one of the rule's keys");
  EXPECT_EQ(signers_for("both")->find_signer(by_nobody).error().message(),
            "the signature was made by none of the rule's keys");
  EXPECT_THAT(signers_for("both")->advice(), HasSubstr("cosign sign --key"));
}

}  // namespace
}  // namespace hangar::signatures
