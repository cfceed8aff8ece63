#include "archive/copy_format.h"

#include "base/digest.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

namespace hangar::archive {
namespace {

const CopyFormat kFormat{
    .label = "label", .name_prefix = "copy-", .field_manager = "test", .parts_max = 8};

std::set<std::string> objects_of(const std::string& sha256, std::size_t parts) {
  std::set<std::string> names;
  for (std::size_t index = 0; index < parts; ++index)
    names.insert(name_of(kFormat, sha256, index));
  return names;
}

TEST(CopyFormat, NamesOfOneFormatAreNoNamesOfAnother) {
  const std::string sha256 = sha256_hex("module");
  CopyFormat other = kFormat;
  other.name_prefix = "copy-other-";

  EXPECT_EQ(name_of(kFormat, sha256, 0), "copy-" + sha256);
  EXPECT_EQ(name_of(kFormat, sha256, 2), "copy-" + sha256 + "-2");
  EXPECT_EQ(digest_of(kFormat, name_of(kFormat, sha256, 0)), sha256);
  EXPECT_EQ(digest_of(kFormat, name_of(kFormat, sha256, 7)), sha256);
  EXPECT_EQ(digest_of(kFormat, name_of(other, sha256, 0)), "") << "although the prefix begins it";
  EXPECT_EQ(digest_of(other, name_of(kFormat, sha256, 0)), "");
  EXPECT_EQ(digest_of(kFormat, "copy-of-something"), "");
}

TEST(CopyFormat, ACopyIsWholeWithItsFirstObjectAndAllParts) {
  const std::string sha256 = sha256_hex("module");

  EXPECT_EQ(state_of(kFormat, {}, sha256, 1), CopyState::Wanted);
  EXPECT_EQ(state_of(kFormat, objects_of(sha256, 1), sha256, 1), CopyState::Whole);
  EXPECT_EQ(state_of(kFormat, objects_of(sha256, 3), sha256, 3), CopyState::Whole);
  EXPECT_EQ(state_of(kFormat, objects_of(sha256, 2), sha256, 3), CopyState::Wanted);
  std::set<std::string> parts = objects_of(sha256, 3);
  parts.erase(name_of(kFormat, sha256, 0));
  EXPECT_EQ(state_of(kFormat, parts, sha256, 3), CopyState::Wanted) << "it was never finished";
  EXPECT_EQ(state_of(kFormat, objects_of(sha256_hex("other"), 3), sha256, 1), CopyState::Wanted);
}

TEST(CopyFormat, ANamespaceHasRoomForSoManyObjects) {
  CopyFormat bounded = kFormat;
  bounded.objects_max = 5;
  const std::string sha256 = sha256_hex("module");
  const std::set<std::string> others = objects_of(sha256_hex("other"), 3);

  EXPECT_EQ(state_of(bounded, others, sha256, 2), CopyState::Wanted) << "exactly";
  EXPECT_EQ(state_of(bounded, others, sha256, 3), CopyState::NoRoom);
  std::set<std::string> begun = others;
  begun.insert(name_of(bounded, sha256, 1));
  EXPECT_EQ(state_of(bounded, begun, sha256, 2), CopyState::Wanted)
      << "its own parts are not counted twice";
  std::set<std::string> whole = objects_of(sha256_hex("another"), 4);
  whole.merge(objects_of(sha256, 2));
  EXPECT_EQ(state_of(bounded, whole, sha256, 2), CopyState::Whole) << "what is there may stay";
}

}  // namespace
}  // namespace hangar::archive
