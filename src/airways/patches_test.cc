#include "airways/patches.h"

#include "airways/airway.h"
#include "json/value.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

namespace hangar::airways {
namespace {

json::Value parse(std::string_view text) {
  return json::parse(text).value();
}

const Airway kAirway{.name = "backends.examples.com", .uid = "airway-uid"};

TEST(ClaimPatch, PutsFinalizerAndOwnerOntoANewInstance) {
  const std::optional<json::Value> patch =
      claim_patch(parse(R"({"metadata": {"name": "a", "resourceVersion": "7"}})"), &kAirway);

  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(*patch, parse(R"({"metadata": {"resourceVersion": "7",
      "finalizers": ["yoke.cd/mayday.flight"],
      "ownerReferences": [{"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway",
          "name": "backends.examples.com", "uid": "airway-uid", "blockOwnerDeletion": true}]}})"));
}

TEST(ClaimPatch, KeepsTheEntriesOfOthersAndReplacesAnEarlierAirway) {
  const std::optional<json::Value> patch = claim_patch(parse(R"({"metadata": {
      "resourceVersion": "7", "finalizers": ["other/one"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"},
        {"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "name": "backends.examples.com",
         "uid": "earlier"}]}})"),
                                                       &kAirway);

  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(*json::find(*patch, {"metadata", "finalizers"}),
            parse(R"(["other/one", "yoke.cd/mayday.flight"])"));
  const json::Array& owners = *json::array_at(*patch, {"metadata", "ownerReferences"});
  ASSERT_EQ(owners.size(), 2);
  EXPECT_EQ(json::string_at(owners[0], {"uid"}), "1");
  EXPECT_EQ(json::string_at(owners[1], {"uid"}), "airway-uid");
}

TEST(ClaimPatch, IsNothingForAnInstanceThatIsClaimed) {
  const json::Value instance = parse(R"({"metadata": {"finalizers": ["yoke.cd/mayday.flight"],
      "ownerReferences": [{"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway",
                           "name": "backends.examples.com", "uid": "airway-uid"}]}})");

  EXPECT_FALSE(claim_patch(instance, &kAirway).has_value());
}

TEST(ClaimPatch, PutsTheFinalizerAloneOntoWhatHasNoAirway) {
  const std::optional<json::Value> patch =
      claim_patch(parse(R"({"metadata": {"name": "a", "resourceVersion": "7"}})"), nullptr);

  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(*patch, parse(R"({"metadata": {"resourceVersion": "7",
      "finalizers": ["yoke.cd/mayday.flight"]}})"));
  EXPECT_FALSE(
      claim_patch(parse(R"({"metadata": {"finalizers": ["yoke.cd/mayday.flight"]}})"), nullptr));
}

}  // namespace
}  // namespace hangar::airways
