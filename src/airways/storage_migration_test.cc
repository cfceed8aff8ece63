#include "airways/storage_migration.h"

#include "json/yaml.h"

#include <gtest/gtest.h>

namespace hangar::airways {
namespace {

TEST(StorageMigration, IsNeededWhileAnotherVersionMayBeStored) {
  const auto needed = [](const char* crd) {
    return has_other_stored_versions(json::parse_yaml(crd).value());
  };
  const char* const kNone = "{spec: {versions: [{name: v1, storage: true}]}}";
  EXPECT_FALSE(needed(kNone)) << "nothing is established yet";
  EXPECT_FALSE(
      needed("{spec: {versions: [{name: v1}, {name: v2, storage: true}]}, "
             "status: {storedVersions: [v2]}}"));
  EXPECT_TRUE(
      needed("{spec: {versions: [{name: v1}, {name: v2, storage: true}]}, "
             "status: {storedVersions: [v1, v2]}}"));
  EXPECT_TRUE(
      needed("{spec: {versions: [{name: v1, storage: true}, {name: v2}]}, "
             "status: {storedVersions: [v2]}}"));
}

}  // namespace
}  // namespace hangar::airways
