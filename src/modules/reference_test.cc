#include "modules/reference.h"

#include "base/result.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::modules {
namespace {

const std::string kDigest(64, 'a');

Reference parsed(std::string_view text) {
  Result<Reference> reference = Reference::parse(text);
  EXPECT_TRUE(reference.has_value()) << text << ": " << reference.error().message();
  return *reference;
}

std::string refused(std::string_view text) {
  const Result<Reference> reference = Reference::parse(text);
  if (reference) return "accepted";
  EXPECT_EQ(reference.error().kind(), ErrorKind::InvalidInput);
  return reference.error().message();
}

TEST(Reference, ReadsUrls) {
  const auto source =
      std::get<HttpSource>(parsed("HTTPS://files.example:8443/a/flight.wasm.gz#x").source());

  EXPECT_EQ(source.url, "https://files.example:8443/a/flight.wasm.gz");
  EXPECT_TRUE(source.user.empty());
}

TEST(Reference, HasOneSpellingForAServer) {
  EXPECT_EQ(std::get<HttpSource>(parsed("http://u:p@H.Example.:8080?x").source()).url,
            "http://h.example.:8080/?x");
  EXPECT_EQ(std::get<HttpSource>(parsed("https://[FD00:0::01]/f").source()).url,
            "https://[fd00::1]/f");
  EXPECT_EQ(std::get<OciSource>(parsed("oci://[0:0::1]:5000/a").source()).registry, "[::1]:5000");
}

TEST(Reference, ReadsTheHostBehindTheLastAtSign) {
  const auto source =
      std::get<HttpSource>(parsed("https://good.example:443@evil.example@h.example/f").source());

  EXPECT_EQ(source.url, "https://h.example/f");
  EXPECT_EQ(source.user, "good.example");
}

TEST(Reference, KeepsSecretsOfAUrlOutOfWhatIsShown) {
  const Reference reference = parsed("https://me:p%40ss@files.example/f.wasm?signature=secret");

  const auto source = std::get<HttpSource>(reference.source());
  EXPECT_EQ(source.url, "https://files.example/f.wasm?signature=secret");
  EXPECT_EQ(source.user, "me");
  EXPECT_EQ(source.password, "p@ss");
  EXPECT_EQ(reference.display(), "https://files.example/f.wasm?...");
}

TEST(Reference, KeysTellUrlsApartThatAreShownAlike) {
  EXPECT_NE(parsed("https://h.example/f?a=1").key(), parsed("https://h.example/f?a=2").key());
  EXPECT_EQ(parsed("https://h.example/f?a=1").key(), parsed("https://h.example/f?a=1").key());
}

TEST(Reference, ReadsOci) {
  struct Case {
    std::string text;
    std::string registry;
    std::string repository;
    std::string tag;
    std::string digest;
  };
  const std::string digest = "sha256:" + kDigest;
  const Case cases[] = {
      {"oci://r.example/team/f:v1", "r.example", "team/f", "v1", ""},
      {"oci://R.example:5000/f", "r.example:5000", "f", "latest", ""},
      {"oci://127.0.0.1:5000/f@" + digest, "127.0.0.1:5000", "f", "", digest},
      {"oci://r.example/f:v1@" + digest, "r.example", "f", "v1", digest},
      {"oci://localhost/f", "localhost", "f", "latest", ""},
      {"oci://[::1]:5000/a/b", "[::1]:5000", "a/b", "latest", ""},
      {"oci://team/f:v2", "docker.io", "team/f", "v2", ""},
      {"oci://f", "docker.io", "library/f", "latest", ""},
      {"oci://index.docker.io/f", "docker.io", "library/f", "latest", ""},
      {"oci://r.example/a__b/c-d.e", "r.example", "a__b/c-d.e", "latest", ""},
  };
  for (const Case& one : cases) {
    const auto source = std::get<OciSource>(parsed(one.text).source());

    EXPECT_EQ(source.registry, one.registry) << one.text;
    EXPECT_EQ(source.repository, one.repository) << one.text;
    EXPECT_EQ(source.tag, one.tag) << one.text;
    EXPECT_EQ(source.digest, one.digest) << one.text;
  }
}

TEST(Reference, IsPinnedByAnOciDigestOnly) {
  EXPECT_TRUE(parsed("oci://r.example/f:v1@sha256:" + kDigest).is_pinned());
  EXPECT_FALSE(parsed("oci://r.example/f:sha256_" + kDigest).is_pinned());
  EXPECT_FALSE(parsed("https://r.example/f@sha256:" + kDigest).is_pinned());
}

TEST(Reference, HasThePlaceOfItsTagsDigestsAndQueries) {
  for (const std::string& text : {std::string("oci://R.example:5000/team/f:v1"),
                                  "oci://r.example:5000/team/f@sha256:" + kDigest}) {
    EXPECT_EQ(parsed(text).place(), "oci://r.example:5000/team/f");
  }
  EXPECT_EQ(parsed("oci://f:v1").place(), "oci://docker.io/library/f");
  for (const std::string_view text : {"https://me:secret@h.example/f.wasm?token=secret",
                                      "HTTPS://H.example/f.wasm?...", "https://h.example/f.wasm"}) {
    EXPECT_EQ(parsed(text).place(), "https://h.example/f.wasm");
  }
  EXPECT_EQ(parsed("configmap://ns/f/key").place(), "configmap://ns/f/key");
  EXPECT_EQ(parsed("file:///a/my%20f.wasm").place(), parsed("/a/my f.wasm").place());
}

TEST(Reference, ReadsConfigMaps) {
  const auto whole = std::get<ConfigMapSource>(parsed("configmap://ns/flights").source());
  EXPECT_EQ(whole.namespace_name, "ns");
  EXPECT_EQ(whole.name, "flights");
  EXPECT_EQ(whole.key, "");

  const auto one = std::get<ConfigMapSource>(parsed("configmap://ns/flights/a_B.wasm").source());
  EXPECT_EQ(one.key, "a_B.wasm");
}

TEST(Reference, ReadsFiles) {
  EXPECT_EQ(std::get<FileSource>(parsed("./my flight.wasm").source()).path, "./my flight.wasm");
  EXPECT_EQ(std::get<FileSource>(parsed("file:///a/my%20flight.wasm").source()).path,
            "/a/my flight.wasm");
  EXPECT_EQ(std::get<FileSource>(parsed("file://localhost/a.wasm").source()).path, "/a.wasm");
}

TEST(Reference, SaysWhatIsWrong) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "is empty"},
      {"https://", "has no valid host"},
      {"https:///path", "has no valid host"},
      {"https://host:port/x", "has no valid host"},
      {"https://host:0443/x", "has no valid host: the port"},
      {"https://host:99999/x", "has no valid host: the port"},
      {"https://127.1/x", "has no valid host"},
      {"https://2130706433/x", "has no valid host"},
      {"https://h%2eexample/x", "has no valid host"},
      {"https://good.example:443\\@/x", "has no valid host"},
      {"https://good.example\\.evil.example/x", "has no valid host"},
      {"https://[::1%25eth0]/x", "not an IPv6 address"},
      {"oci://r.example:05000/f", "has no valid registry host: the port"},
      {"oci://0x7f.1/f", "has no valid registry host"},
      {"https://a b/x", "a space or a control character"},
      {"https://h.example/x\r\nHost: other", "a space or a control character"},
      {"ftp://h.example/x", "unknown scheme"},
      {"oci://", "a repository is"},
      {"oci://r.example/", "a repository is"},
      {"oci://r.example/UPPER", "a repository is"},
      {"oci://r.example/a/../b", "a repository is"},
      {"oci://r.example/a/", "a repository is"},
      {"oci://r.example/a:", "a tag has"},
      {"oci://r.example/a:-x", "a tag has"},
      {"oci://r.example/a:" + std::string(129, 'x'), "a tag has"},
      {"oci://r.example/a@sha256:12", "64 hexadecimal digits"},
      {"oci://r.example/a@sha512:" + kDigest, "64 hexadecimal digits"},
      {"configmap://only", "write configmap://namespace/name"},
      {"configmap://Ns/name", "write configmap://namespace/name"},
      {"configmap://ns/name/", "write configmap://namespace/name"},
      {"configmap://ns/name/a/b", "write configmap://namespace/name"},
      {"file://host/path", "names another host"},
      {"file:///a%zz", "not percent-encoded"},
      {"file:///a%00b", "not percent-encoded"},
      {"https://h.example/" + std::string(9000, 'x'), "longer than"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_NE(refused(text).find(why), std::string::npos) << text << ": " << refused(text);
  }
}

TEST(Reference, NeverRepeatsAPasswordInAnError) {
  EXPECT_EQ(refused("https://me:hunter2@/x").find("hunter2"), std::string::npos);
  EXPECT_EQ(refused("git://me:hunter2@h.example/x").find("hunter2"), std::string::npos);
}

TEST(ExpectedSha256, IsTheExplicitOneElseTheTagElseTheFileName) {
  const std::pair<std::string, std::optional<std::string>> cases[] = {
      {"oci://r.example/f:sha256_" + kDigest, kDigest},
      {"oci://r.example/f:v1", std::nullopt},
      {"oci://r.example/f:v1_sha256_" + kDigest, std::nullopt},
      {"oci://r.example/sha256_aa:v1", std::nullopt},
      {"https://h.example/sha256_" + kDigest + ".wasm", kDigest},
      {"https://h.example/f_sha256_" + kDigest + ".wasm.gz?x=/sha256_bb", kDigest},
      {"https://h.example/sha256_aa/f.wasm", std::nullopt},
      {"https://h.example/fsha256_aa.wasm", std::nullopt},
      {"https://h.example/f_sha256_.wasm", std::nullopt},
      {"https://h.example/f_sha256_a_sha256_b.wasm", "a_sha256_b"},
      // Mistyped: refused, and not taken for a name without a digest.
      {"https://h.example/sha256_applebottomjeans", "applebottomjeans"},
      {"oci://r.example/f:sha256_12o4", "12o4"},
      {"oci://r.example/f:sha256_..", ".."},
      {"/dir/f_sha256_AB.wasm", "ab"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(expected_sha256(parsed(text), ""), expected) << text;
    EXPECT_EQ(expected_sha256(parsed(text), "C0FFEE"), "c0ffee") << text;
  }
}

TEST(VerifySha256, FailsInTheWordsOfTheOriginal) {
  EXPECT_TRUE(verify_sha256(kDigest, kDigest).has_value());

  const Result<> verified = verify_sha256("applebottomjeans", kDigest);

  ASSERT_FALSE(verified.has_value());
  EXPECT_EQ(verified.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(verified.error().message(),
            "cannot verify module against expected checksum: wanted \"applebottomjeans\" but got "
            "\"" +
                kDigest + "\"");
}

TEST(WithoutReference, LeavesOnlyTheReferenceOut) {
  const Reference reference = parsed("oci://registry.example.com/web:v1");
  const Error named = Error(ErrorKind::Denied, "module oci://registry.example.com/web:v1: unsigned")
                          .with_reason("R");
  const Error other(ErrorKind::Denied, "module oci://registry.example.com/web:v10: unsigned");

  EXPECT_EQ(without_reference(named, reference).message(), "unsigned");
  EXPECT_EQ(without_reference(named, reference).reason(), "R");
  EXPECT_EQ(without_reference(other, reference).message(), other.message());
}

}  // namespace
}  // namespace hangar::modules
