#include "sigstore/log_entry.h"

#include "base/base64.h"
#include "base/result.h"
#include "json/value.h"
#include "sigstore/test_instance.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::sigstore {
namespace {

using testing::HasSubstr;

TEST(LogEntry, AProofLeadsFromEachLeafOfEachTreeToItsRoot) {
  constexpr std::size_t kLeavesMax = 17;
  std::vector<std::string> leaves;
  for (std::size_t count = 1; count <= kLeavesMax; ++count) {
    leaves.push_back(fmt::format("leaf {}", count));
    for (std::size_t at = 0; at < count; ++at) {
      InclusionProof proof{
          .index = at, .tree_size = count, .hashes = tree_path(at, leaves), .checkpoint = {}};
      EXPECT_EQ(root_of(proof, leaves[at]), tree_root(leaves)) << at << " of " << count;
      EXPECT_NE(root_of(proof, "another leaf"), tree_root(leaves));
      proof.hashes.push_back(digest_bytes("one more"));
      EXPECT_NE(root_of(proof, leaves[at]), tree_root(leaves));
      proof.hashes.resize(proof.hashes.size() - 1);
      if (count == 1) continue;
      proof.hashes.pop_back();
      EXPECT_NE(root_of(proof, leaves[at]), tree_root(leaves));
    }
  }
  EXPECT_FALSE(root_of({.index = 1, .tree_size = 1, .hashes = {}, .checkpoint = {}}, "leaf"));
  EXPECT_FALSE(root_of({.index = 0, .tree_size = 0, .hashes = {}, .checkpoint = {}}, "leaf"));
}

TEST(LogEntry, TakesNoInnerNodeForALeaf) {
  const std::vector<std::string> leaves = {"a", "b"};
  const std::string inner =
      digest_bytes(std::string(1, '\0') + "a") + digest_bytes(std::string(1, '\0') + "b");
  const InclusionProof proof{.index = 0, .tree_size = 1, .hashes = {}, .checkpoint = {}};
  EXPECT_NE(root_of(proof, inner), tree_root(leaves));
}

TEST(LogEntry, ReadsEntriesOfAnnotationsAndBundles) {
  const TestInstance instance;
  const Result<LogEntry> annotated = read_annotated_entry(instance.annotated_entry("{}"));
  ASSERT_TRUE(annotated) << annotated.error().message();
  EXPECT_EQ(annotated->log_id, digest_bytes(instance.log.der()));
  EXPECT_EQ(annotated->integrated_time, kSigned);
  EXPECT_FALSE(annotated->proof);

  const auto bundled = read_bundled_entries(
      json::Object{{"tlogEntries", json::Array{instance.bundled_entry("{}")}}});
  ASSERT_TRUE(bundled) << bundled.error().message();
  ASSERT_EQ(bundled->size(), 1U);
  EXPECT_EQ(bundled->front().index, 7);
  EXPECT_EQ(bundled->front().integrated_time, kSigned);
  ASSERT_TRUE(bundled->front().proof);
  EXPECT_EQ(bundled->front().proof->tree_size, 7U);
  EXPECT_TRUE(read_bundled_entries(json::Object()).value().empty());
}

TEST(LogEntry, NamesTheMemberThatIsWrong) {
  const TestInstance instance;
  const auto refusal = [&instance](const std::function<void(json::Value & entry)>& change) {
    json::Value entry = instance.bundled_entry("{}");
    change(entry);
    const auto read = read_bundled_entries(json::Object{{"tlogEntries", json::Array{entry}}});
    return read ? std::string("accepted") : read.error().message();
  };
  const auto with = [&refusal](json::Path path, const json::Value& value) {
    return refusal([&](json::Value& entry) { json::set_at(entry, path, value); });
  };
  EXPECT_THAT(with({"logId", "keyId"}, "AAAA"), HasSubstr("valid logId"));
  EXPECT_THAT(with({"canonicalizedBody"}, ""), HasSubstr("valid canonicalizedBody"));
  EXPECT_THAT(with({"integratedTime"}, "-1"), HasSubstr("valid integratedTime"));
  EXPECT_THAT(with({"logIndex"}, "7x"), HasSubstr("valid logIndex"));
  EXPECT_THAT(with({"logIndex"}, "99999999999999999999"), HasSubstr("valid logIndex"));
  EXPECT_THAT(with({"inclusionPromise", "signedEntryTimestamp"}, "!"),
              HasSubstr("valid inclusionPromise"));
  EXPECT_THAT(with({"inclusionProof", "treeSize"}, "0"), HasSubstr("size of the tree"));
  EXPECT_THAT(with({"inclusionProof", "hashes"}, json::Array(65, json::Value("AAAA"))),
              HasSubstr("number of hashes"));
  EXPECT_THAT(with({"inclusionProof", "hashes"}, json::Array{json::Value("AAAA")}),
              HasSubstr("hashes in its proof"));
  EXPECT_THAT(with({"inclusionProof", "checkpoint", "envelope"}, ""), HasSubstr("checkpoint"));
  EXPECT_THAT(read_bundled_entries(
                  json::Object{{"tlogEntries", json::Array(kLogEntriesMax + 1, json::Value())}})
                  .error()
                  .message(),
              HasSubstr("more than 4 entries"));
  for (const std::string_view text : {"", "{}", "[]", R"({"Payload": {}})"})
    EXPECT_FALSE(read_annotated_entry(text)) << text;
}

TEST(LogEntry, KnowsTheKindsOfBothVersionsOfTheLog) {
  const TestInstance instance;
  const TestCertificate certificate = instance.issue(instance.leaf());
  const std::string der = certificate.der();
  const LoggedSignature logged{
      .bytes = "bytes", .payload = "payload", .signature = "signature", .certificate = der};
  const auto verdict = [&logged](const std::string& body) {
    LogEntry entry;
    entry.body = body;
    const Result<> checked = check_entry(entry, logged);
    return checked ? std::string("it is") : checked.error().message();
  };
  const auto record = [&der](std::string_view of) {
    return fmt::format(
        R"({{"kind":"hashedrekord","apiVersion":"0.0.2","spec":{{"hashedRekordV002":{{
             "data":{{"algorithm":"SHA2_256","digest":"{}"}},"signature":{{"content":"{}",
             "verifier":{{"x509Certificate":{{"rawBytes":"{}"}}}}}}}}}}}})",
        base64_encode(digest_bytes(of)), base64_encode("signature"), base64_encode(der));
  };
  const auto envelope = [&der](std::string_view of) {
    return fmt::format(
        R"({{"kind":"dsse","apiVersion":"0.0.2","spec":{{"dsseV002":{{
             "payloadHash":{{"algorithm":"SHA2_256","digest":"{}"}},"signatures":[{{"content":"{}",
             "verifier":{{"x509Certificate":{{"rawBytes":"{}"}}}}}}]}}}}}})",
        base64_encode(digest_bytes(of)), base64_encode("signature"), base64_encode(der));
  };
  EXPECT_EQ(verdict(record("bytes")), "it is");
  EXPECT_THAT(verdict(record("payload")), HasSubstr("of another signature"));
  EXPECT_EQ(verdict(envelope("payload")), "it is");
  EXPECT_THAT(verdict(envelope("bytes")), HasSubstr("of another signature"));
  EXPECT_THAT(verdict(R"({"kind":"intoto","apiVersion":"0.0.2","spec":{}})"),
              HasSubstr("of another kind"));
  EXPECT_THAT(verdict(R"({"kind":"dsse","apiVersion":"0.0.1","spec":{}})"),
              HasSubstr("of another signature"));
  EXPECT_THAT(verdict("no JSON"), HasSubstr("no valid body"));
}

}  // namespace
}  // namespace hangar::sigstore
