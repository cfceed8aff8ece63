#include "sigstore/trust_root.h"

#include "base/result.h"
#include "json/value.h"
#include "sigstore/test_instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

namespace hangar::sigstore {
namespace {

using testing::StartsWith;

std::string refusal(const std::function<void(json::Value& root)>& change) {
  json::Value root = TestInstance().trust_root();
  change(root);
  const Result<TrustRoot> read = read_trust_root(root);
  return read ? "accepted" : read.error().message();
}

TEST(TrustRoot, ReadsAuthoritiesAndLogs) {
  const TestInstance instance;
  const Result<TrustRoot> root = read_trust_root(instance.trust_root());

  ASSERT_TRUE(root) << root.error().message();
  ASSERT_EQ(root->certificate_authorities.size(), 1U);
  EXPECT_EQ(root->certificate_authorities[0].chain.size(), 2U);
  EXPECT_EQ(root->certificate_authorities[0].chain.back(), instance.root.der());
  EXPECT_EQ(root->timestamp_authorities.size(), 1U);
  ASSERT_NE(find_log(root->logs, digest_bytes(instance.log.der())), nullptr);
  EXPECT_EQ(find_log(root->logs, digest_bytes(instance.certificate_log.der())), nullptr);
  ASSERT_NE(find_log(root->certificate_logs, digest_bytes(instance.certificate_log.der())),
            nullptr);
  const Period& valid = root->logs[0].valid;
  EXPECT_TRUE(valid.contains(TestInstance::at(kSigned + 3600)));
  EXPECT_FALSE(valid.contains(TestInstance::at(kSigned + 3601)));
  EXPECT_FALSE(valid.contains(TestInstance::at(kSigned - 3601)));
}

TEST(TrustRoot, APeriodMayHaveNoEnd) {
  json::Value document = TestInstance().trust_root();
  document.at("tlogs").at(0).at("publicKey").at("validFor").as_object().erase("end");
  document.as_object().erase("timestampAuthorities");
  const Result<TrustRoot> root = read_trust_root(document);

  ASSERT_TRUE(root) << root.error().message();
  EXPECT_TRUE(root->logs[0].valid.contains(TestInstance::at(9'000'000'000)));
  EXPECT_TRUE(root->timestamp_authorities.empty());
}

TEST(TrustRoot, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(refusal([](json::Value& root) { root.as_object().erase("mediaType"); }),
              StartsWith("mediaType: must be"));
  EXPECT_THAT(refusal([](json::Value& root) { root.as_object().erase("tlogs"); }),
              StartsWith("tlogs: has no log"));
  EXPECT_THAT(refusal([](json::Value& root) { root.as_object()["ctlogs"] = json::Array(); }),
              StartsWith("ctlogs: has no log"));
  EXPECT_THAT(refusal([](json::Value& root) { root.as_object().erase("certificateAuthorities"); }),
              StartsWith("certificateAuthorities: has no authority"));
  EXPECT_THAT(refusal([](json::Value& root) {
                root.as_object()["tlogs"] = json::Array(kTrustedMax + 1, json::Value());
              }),
              StartsWith("tlogs: must be a list of at most 32"));
  EXPECT_THAT(refusal([](json::Value& root) {
                json::set_at(root.at("tlogs").at(0), {"logId", "keyId"}, "AAAA");
              }),
              StartsWith("tlogs[0].logId.keyId: must have 32 bytes"));
  EXPECT_THAT(refusal([](json::Value& root) {
                json::set_at(root.at("ctlogs").at(0), {"publicKey", "rawBytes"}, "AAAA");
              }),
              StartsWith("ctlogs[0].publicKey.rawBytes: "));
  EXPECT_THAT(refusal([](json::Value& root) {
                json::set_at(root.at("tlogs").at(0), {"publicKey", "validFor", "start"}, "once");
              }),
              StartsWith("tlogs[0].publicKey.validFor.start: must be a time"));
  EXPECT_THAT(refusal([](json::Value& root) {
                json::set_at(root.at("certificateAuthorities").at(0), {"certChain", "certificates"},
                             json::Array());
              }),
              StartsWith("certificateAuthorities[0].certChain.certificates: must be a list"));
  EXPECT_THAT(refusal([](json::Value& root) {
                json::set_at(
                    root.at("timestampAuthorities").at(0).at("certChain").at("certificates").at(1),
                    {"rawBytes"}, "AAAA");
              }),
              StartsWith("timestampAuthorities[0].certChain.certificates[1].rawBytes: is not"));
  EXPECT_THAT(refusal([](json::Value& root) { root = json::Array(); }), StartsWith("mediaType"));
}

TEST(TrustRoot, IsNamedByItsContents) {
  const json::Value document = TestInstance().trust_root();
  EXPECT_EQ(read_trust_root(document)->id, read_trust_root(document)->id);
  EXPECT_NE(read_trust_root(document)->id, read_trust_root(TestInstance().trust_root())->id);
}

}  // namespace
}  // namespace hangar::sigstore
