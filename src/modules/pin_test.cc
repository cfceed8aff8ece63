#include "modules/pin.h"

#include "modules/reference.h"
#include "modules/supply.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules {
namespace {

const std::string kDigest(64, 'a');

Upgrade of(std::string_view reference, std::string_view sha256 = "") {
  return upgrade_of(Reference::parse(reference).value(), sha256);
}

TEST(UpgradeOf, IsDeliberateUnderANameThatPromisesToStayTheSame) {
  for (const std::string_view reference :
       {"oci://registry/repo/mod:v1.2.3", "oci://registry/repo/mod:1.2.3",
        "oci://registry/repo/mod:v1", "oci://registry/repo/mod:1",
        "oci://registry/repo/mod:v1.2.3-prerelease", "oci://registry:5000/repo/mod:1.2.3",
        "http://domain.io/module.wasm.gz", "https://domain.io/module.wasm"}) {
    EXPECT_EQ(of(reference), Upgrade::Deliberate) << reference;
  }
}

TEST(UpgradeOf, FollowsWhatIsThereToBeChanged) {
  for (const std::string_view reference :
       {"oci://registry/repo/mod", "oci://registry:5000/repo/mod", "oci://registry/repo/mod:latest",
        "oci://registry/repo/mod:stable", "oci://registry/repo/mod:v1.2.3.4",
        "oci://registry/repo/mod:v01", "oci://registry/repo/mod:v1-rc",
        "oci://registry/repo/mod:v1.2.3-", "file:///main.wasm", "./main.wasm",
        "configmap://flights/one"}) {
    EXPECT_EQ(of(reference), Upgrade::Followed) << reference;
  }
}

TEST(UpgradeOf, IsNeverWhereTheBytesAreSaid) {
  EXPECT_EQ(of("oci://registry/repo/mod:latest@sha256:" + kDigest), Upgrade::Never);
  EXPECT_EQ(of("oci://registry/repo/mod:sha256_" + kDigest), Upgrade::Never);
  EXPECT_EQ(of("https://domain.io/sha256_" + kDigest + ".wasm"), Upgrade::Never);
  EXPECT_EQ(of("https://domain.io/module.wasm", kDigest), Upgrade::Never);
  EXPECT_EQ(of("configmap://flights/one", kDigest), Upgrade::Never);
}

TEST(DefinitionOf, ChangesWithWhatTheAuthorNames) {
  const Source source{.reference = "https://me:secret@domain.io/module.wasm"};
  EXPECT_EQ(definition_of(source), definition_of(source));
  EXPECT_NE(definition_of(source), definition_of({.reference = "https://domain.io/other.wasm"}));
  EXPECT_NE(definition_of(source),
            definition_of({.reference = source.reference, .sha256 = kDigest}));
  EXPECT_EQ(definition_of(source).find("secret"), std::string::npos);
}

TEST(NextPin, RemembersWhatItReplaces) {
  const Source source{.reference = "https://domain.io/1.wasm"};
  const Pin first = next_pin(std::nullopt, source, {.product = {}, .sha256 = "1", .resolved = "r"});
  EXPECT_EQ(
      first,
      (Pin{.definition = definition_of(source), .sha256 = "1", .resolved = "r", .replaces = ""}));
  const Source other{.reference = "https://domain.io/2.wasm"};
  const Pin second = next_pin(first, other, {.product = {}, .sha256 = "2", .resolved = ""});
  EXPECT_EQ(second.replaces, "1");
  const Pin same = next_pin(second, source, {.product = {}, .sha256 = "2", .resolved = ""});
  EXPECT_EQ(same.replaces, "1") << "the same bytes under another name replace nothing";
  EXPECT_EQ(same.definition, first.definition);
}

}  // namespace
}  // namespace hangar::modules
