#include "modules/push.h"

#include "base/result.h"
#include "modules/oci_manifest.h"
#include "modules/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace hangar::modules {
namespace {

using testing::HasSubstr;

TEST(PushTarget, IsARegistryWithATag) {
  const Result<OciSource> target = read_push_target("oci://registry.example:5000/team/memo:v1");

  ASSERT_TRUE(target) << target.error().message();
  EXPECT_EQ(target->registry, "registry.example:5000");
  EXPECT_EQ(target->repository, "team/memo");
  EXPECT_EQ(target->tag, "v1");
  EXPECT_EQ(read_push_target("oci://registry.example/memo").value().tag, "latest");
}

TEST(PushTarget, IsNothingElse) {
  const std::string digest(64, 'a');
  for (const std::string& text :
       {std::string("https://registry.example/memo"), std::string("memo.wasm"), std::string(),
        std::string("oci://"), "oci://registry.example/memo@sha256:" + digest,
        "oci://registry.example/memo:v1@sha256:" + digest}) {
    const Result<OciSource> target = read_push_target(text);

    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().kind(), ErrorKind::InvalidInput) << text;
  }
}

TEST(ModuleManifest, IsOneThatIsFetchedAgain) {
  const std::string digest = "sha256:" + std::string(64, 'b');

  const auto read = read_manifest(module_manifest(digest, 123));

  ASSERT_TRUE(read) << read.error().message();
  ASSERT_TRUE(std::holds_alternative<ModuleLayer>(*read));
  const Descriptor& blob = std::get<ModuleLayer>(*read).blob;
  EXPECT_EQ(blob.digest, digest);
  EXPECT_EQ(blob.size_bytes, 123U);
  EXPECT_EQ(blob.media_type, "application/vnd.yoke.wasm.gzip");
}

}  // namespace
}  // namespace hangar::modules
