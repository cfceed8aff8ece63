#include "signatures/module_verifier.h"

#include "base/digest.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/workers.h"
#include "json/value.h"
#include "modules/limits.h"
#include "schematics/keys.h"
#include "schematics/signature.h"
#include "schematics/test_keys.h"
#include "signatures/verification_keys.h"
#include "wasm/custom_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::signatures {
namespace {

using testing::HasSubstr;

schematics::PublicKeys keys_of(std::string_view pem) {
  schematics::PublicKeys keys;
  EXPECT_TRUE(keys.add(*schematics::PublicKey::parse(pem)));
  return keys;
}

std::string signed_by(std::string_view pem) {
  return schematics::sign_module(std::as_bytes(std::span(schematics::kPlain)),
                                 *schematics::PrivateKey::parse(pem), schematics::Signed::Refuse)
      .value();
}

class ModuleVerifierTest : public testing::Test {
 protected:
  ModuleVerifierTest() {
    std::string name = (std::filesystem::temp_directory_path() / "verifier.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    make_verifier(limits::kModuleReferencesMax);
  }
  ~ModuleVerifierTest() override { std::filesystem::remove_all(root_); }

  void make_verifier(std::size_t verdicts_max) {
    verifier_ =
        std::make_unique<ModuleVerifier>(ModuleVerifier::Parts{.loop = loop_,
                                                               .workers = workers_,
                                                               .program = HANGAR_COMPILE_PROGRAM,
                                                               .directory = root_ / "verified",
                                                               .verdicts_max = verdicts_max});
  }

  // The error message; empty: the module may run.
  std::string refusal(const std::string& module) {
    const Result<> verified = io::run_to_end(
        loop_, verifier_->verify(sha256_hex(module), std::make_shared<const std::string>(module),
                                 budget::unnamed_consumer(), std::stop_token()));
    return verified ? "" : verified.error().message();
  }

  io::Loop loop_;
  io::Workers workers_{loop_, 1};
  std::filesystem::path root_;
  std::unique_ptr<ModuleVerifier> verifier_;
};

TEST_F(ModuleVerifierTest, LetsRunWhatOneOfTheKeysHasSigned) {
  for (const std::string_view pem :
       {schematics::kEd25519Private, schematics::kEcPrivate, schematics::kP384Private}) {
    verifier_->use(keys_of(pem));
    EXPECT_EQ(refusal(signed_by(pem)), "");
  }
  for (const schematics::MadeByYoke& made : schematics::kMadeByYoke) {
    std::string module(schematics::kPlain);
    wasm::append_custom_section(module, "yoke.schematics:signature", made.payload);
    verifier_->use(keys_of(made.public_key));
    EXPECT_EQ(refusal(module), "") << made.name;
  }
}

TEST_F(ModuleVerifierTest, RefusesTheRestWithTheReason) {
  verifier_->use(keys_of(schematics::kEcPrivate));
  std::string grown = signed_by(schematics::kEcPrivate);
  wasm::append_custom_section(grown, "hangar:plugin", "late");

  EXPECT_EQ(refusal(std::string(schematics::kPlain)),
            "failed to verify module: module is unsigned");
  EXPECT_EQ(refusal(signed_by(schematics::kEd25519Private)),
            "failed to verify module: module's key fingerprint does not match provided key(s)");
  EXPECT_EQ(refusal(grown), "failed to verify module: invalid signature");
  EXPECT_THAT(refusal("no module"), HasSubstr("is not a WebAssembly module"));
}

TEST_F(ModuleVerifierTest, ForgetsItsVerdictsWithTheKeys) {
  const std::string module = signed_by(schematics::kEcPrivate);
  verifier_->use(keys_of(schematics::kEcPrivate));
  int changes = 0;
  verifier_->on_change([&changes] { ++changes; });
  ASSERT_EQ(refusal(module), "");
  ASSERT_TRUE(verifier_->verdict(sha256_hex(module)));
  const auto generation = verifier_->generation();

  verifier_->use(keys_of(schematics::kEcPrivate));
  EXPECT_TRUE(verifier_->verdict(sha256_hex(module))) << "the same keys change nothing";
  EXPECT_EQ(changes, 0);

  verifier_->use(keys_of(schematics::kP384Private));
  EXPECT_FALSE(verifier_->verdict(sha256_hex(module)));
  EXPECT_NE(verifier_->generation(), generation);
  EXPECT_EQ(changes, 1);
  EXPECT_NE(refusal(module), "");
}

TEST_F(ModuleVerifierTest, ForgetsNoApprovalForManyRefusals) {
  make_verifier(/*verdicts_max=*/2);
  verifier_->use(keys_of(schematics::kEcPrivate));
  const std::string module = signed_by(schematics::kEcPrivate);
  ASSERT_EQ(refusal(module), "");

  std::vector<std::string> refused;
  for (const std::string_view section : {"one", "two", "three"}) {
    refused.emplace_back(schematics::kPlain);
    wasm::append_custom_section(refused.back(), section, "");
    EXPECT_NE(refusal(refused.back()), "");
  }

  EXPECT_TRUE(verifier_->verdict(sha256_hex(module)));
  EXPECT_TRUE(verifier_->verdict(sha256_hex(refused.back())));
  EXPECT_FALSE(verifier_->verdict(sha256_hex(refused.front()))) << "there are two at most";
}

TEST_F(ModuleVerifierTest, RefusesEverythingWithoutAKeyAndWaitsForTheFirstOnes) {
  const std::string module = signed_by(schematics::kEcPrivate);

  EXPECT_EQ(refusal(module), "failed to verify module: the keys have not been read yet");
  EXPECT_FALSE(verifier_->verdict(sha256_hex(module))) << "that is no verdict";
  verifier_->use({});

  EXPECT_EQ(refusal(module), "failed to verify module: there is no key");
}

TEST(VerificationKeys, OfASecretAreItsPems) {
  const auto secret_with = [](json::Object data) {
    return json::Value(json::Object{{"data", std::move(data)}});
  };
  // "no key"
  EXPECT_EQ(keys_in_secret(secret_with({{"README", "bm8ga2V5"}}))->size(), 0U);
  EXPECT_EQ(keys_in_secret(json::Value(json::Object{}))->size(), 0U);
  const auto bad = keys_in_secret(secret_with({{"a.pem", "bm8ga2V5"}}));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message(), "a.pem: failed to decode PEM");
  EXPECT_FALSE(keys_in_secret(secret_with({{"a.pem", "%"}})));
}

}  // namespace
}  // namespace hangar::signatures
