#include "modules/oci_manifest.h"

#include "base/result.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <variant>

namespace hangar::modules {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'b');

std::string descriptor(std::string_view type, std::string_view more = "") {
  return fmt::format(R"({{"mediaType": "{}", "digest": "{}", "size": 7{}}})", type, kDigest, more);
}
std::string image(std::string_view layers, std::string_view more = "") {
  return fmt::format(
      R"({{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
           "config": {{"mediaType": "application/vnd.oci.empty.v1+json"}}, "layers": [{}]{}}})",
      layers, more);
}
std::string index(std::string_view manifests) {
  return fmt::format(R"({{"schemaVersion": 2, "manifests": [{}]}})", manifests);
}
std::string platform(std::string_view os, std::string_view architecture) {
  return fmt::format(R"(, "platform": {{"os": "{}", "architecture": "{}"}})", os, architecture);
}

std::string refused(std::string_view text, ErrorKind kind = ErrorKind::InvalidInput) {
  const auto read = read_manifest(text);
  if (read) return "accepted";
  EXPECT_EQ(read.error().kind(), kind);
  return read.error().message();
}

TEST(OciManifest, TakesTheLayerOfEveryToolsArtifact) {
  for (const std::string_view type :
       {"application/vnd.yoke.wasm.gzip", "application/wasm",
        "application/vnd.wasm.content.layer.v1+wasm", "application/octet-stream", ""}) {
    const auto read = read_manifest(image(descriptor(type)));

    ASSERT_TRUE(read.has_value()) << type << ": " << read.error().message();
    const Descriptor& blob = std::get<ModuleLayer>(*read).blob;
    EXPECT_EQ(blob.digest, kDigest);
    EXPECT_EQ(blob.size_bytes, 7U);
  }
}

TEST(OciManifest, FindsTheModuleAmongOtherLayers) {
  const auto read =
      read_manifest(image(descriptor("text/markdown") + "," + descriptor("application/wasm") + "," +
                          descriptor("application/vnd.oci.image.layer.v1.tar+gzip")));

  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(std::get<ModuleLayer>(*read).blob.media_type, "application/wasm");
}

TEST(OciManifest, ReadsAnIndex) {
  const std::string manifest = "application/vnd.oci.image.manifest.v1+json";
  const std::string linux_entry =
      fmt::format(R"({{"mediaType": "{}", "digest": "sha256:{}", "size": 7{}}})", manifest,
                  std::string(64, 'c'), platform("linux", "amd64"));
  const std::string attestation =
      fmt::format(R"({{"mediaType": "{}", "digest": "sha256:{}", "size": 7{}}})", manifest,
                  std::string(64, 'd'), platform("unknown", "unknown"));
  const std::string cases[] = {
      index(descriptor(manifest)),
      index(linux_entry + "," + descriptor(manifest, platform("wasip1", "wasm"))),
      index(descriptor(manifest, platform("wasi", "wasm")) + "," + linux_entry),
      index(attestation + "," + descriptor(manifest)),
  };
  for (const std::string& text : cases) {
    const auto read = read_manifest(text);

    ASSERT_TRUE(read.has_value()) << text << ": " << read.error().message();
    EXPECT_EQ(std::get<ModuleManifest>(*read).manifest.digest, kDigest) << text;
  }
}

TEST(OciManifest, SaysWhyThereIsNoModule) {
  const std::string wasm = descriptor("application/wasm");
  const std::pair<std::string, std::string_view> cases[] = {
      {"<html>", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{}", "schema version 2"},
      {R"({"schemaVersion": 1, "layers": []})", "schema version 2"},
      {R"({"schemaVersion": 2})", "either layers or manifests"},
      {R"({"schemaVersion": 2, "layers": [], "manifests": []})", "either layers or manifests"},
      {R"({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
           "layers": []})",
       "calls itself application/vnd.oci.image.index.v1+json"},
      {image(""), "has no layers"},
      {image(wasm + "," + wasm), "2 of its layers"},
      {image(descriptor("text/a") + "," + descriptor("text/b")), "text/a, text/b"},
      {image(descriptor("application/vnd.docker.image.rootfs.diff.tar.gzip")), "container image"},
      {image(R"({"mediaType": "application/wasm", "size": 7})"), "no sha256 digest"},
      {image(R"({"mediaType": "application/wasm", "digest": "sha256:../x", "size": 7})"),
       "no sha256 digest"},
      {image(fmt::format(R"({{"mediaType": "application/wasm", "digest": "{}"}})", kDigest)),
       "no size"},
      {image(fmt::format(R"({{"mediaType": "application/wasm", "digest": "{}", "size": -1}})",
                         kDigest)),
       "no size"},
      {index(""), "0 entries"},
      {index(wasm + "," + wasm), "2 entries"},
      {index(descriptor("application/vnd.oci.image.index.v1+json")), "another index"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_NE(refused(text).find(why), std::string::npos) << text << ": " << refused(text);
  }
}

TEST(OciManifest, RefusesAHugeModuleBeforeItIsFetched) {
  const std::string huge = fmt::format(
      R"({{"mediaType": "application/wasm", "digest": "{}", "size": 300000000}})", kDigest);

  EXPECT_NE(refused(image(huge), ErrorKind::LimitExceeded).find("300000000"), std::string::npos);
}

}  // namespace
}  // namespace hangar::modules
