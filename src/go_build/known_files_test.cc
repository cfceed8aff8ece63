#include "go_build/known_files.h"

#include "base/digest.h"
#include "base/result.h"
#include "go_build/text_edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

namespace hangar::go_build {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(KnownFiles, AreEachOfAnotherDigest) {
  std::set<std::string_view> digests;
  for (const ChangedFile& file : changed_files()) {
    EXPECT_FALSE(file.versions.empty()) << file.name;
    for (const KnownVersion& version : file.versions) {
      EXPECT_TRUE(is_sha256_hex(version.sha256)) << file.name << " " << version.releases;
      EXPECT_TRUE(digests.insert(version.sha256).second) << file.name << " " << version.releases;
      EXPECT_NE(version.edit.line, version.edit.replacement);
    }
  }
}

TEST(KnownFiles, AreChangedWhereTheirDigestIsKnown) {
  constexpr std::string_view kText = "package queue\n\tgo loop()\n";
  const std::string digest = sha256_hex(kText);
  const std::array<KnownVersion, 1> versions = {
      KnownVersion{.releases = "1.0",
                   .sha256 = digest,
                   .edit = {.line = "\tgo loop()", .replacement = "\t// no loop"}}};
  const ChangedFile file{.module = "example.com/queue",
                         .directory = "util",
                         .name = "queue.go",
                         .why = "it wakes the program",
                         .versions = versions};

  const Result<Change> changed = change(file, "v1.0.3", kText);
  const Result<Change> other = change(file, "v1.1.0", "package queue\n\n\tgo loop()\n");

  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->text, "package queue\n\t// no loop\n");
  EXPECT_EQ(changed->file, "example.com/queue v1.0.3 util/queue.go");
  EXPECT_EQ(changed->line_number, 2U);
  EXPECT_EQ(changed->before, "\tgo loop()");
  EXPECT_EQ(changed->after, "\t// no loop");
  // The line exists, but the rest of the file is not known.
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(other.error().message(), AllOf(HasSubstr("example.com/queue v1.1.0 util/queue.go"),
                                             HasSubstr(std::string(known_releases())),
                                             HasSubstr("hangar.GetConfigOrDie()")));
}

TEST(KnownFiles, MayBeOfAModulesOwnPackage) {
  const ChangedFile inside{.module = "example.com/queue", .directory = "util"};
  const ChangedFile own{.module = "example.com/queue", .directory = "", .name = "queue.go"};

  EXPECT_EQ(inside.import_path(), "example.com/queue/util");
  EXPECT_EQ(own.import_path(), "example.com/queue");
  EXPECT_THAT(change(own, "v1.0.3", "package queue\n").error().message(),
              StartsWith("example.com/queue v1.0.3 queue.go is"));
}

// The lines as in the files of Go 1.26.
TEST(StandardFiles, AreChangedWhereTheLineIs) {
  for (const StandardFile& file : standard_files()) {
    const std::string text = std::string("package x\n") + std::string(file.edit.line) + "\n";

    const Result<Change> changed = change(file, "go1.26.8", text);
    const Result<Change> other = change(file, "go1.99.0", "package x\n");

    ASSERT_TRUE(changed) << changed.error().message();
    EXPECT_THAT(changed->text, HasSubstr(std::string(file.edit.replacement)));
    EXPECT_TRUE(changed->text.ends_with(file.appended));
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message(),
                AllOf(HasSubstr("go1.99.0"), HasSubstr(std::string(file.path))));
  }
}

}  // namespace
}  // namespace hangar::go_build
