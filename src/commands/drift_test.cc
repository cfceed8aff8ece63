#include "commands/drift.h"

#include "json/yaml.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hangar::commands {
namespace {

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

TEST(WithoutAdditions, KeepsWhatIsWantedAndDropsTheRest) {
  EXPECT_EQ(without_additions(
                yaml("{a: 1, b: {c: 2, gone: 3}, l: [{x: 1}, {y: 2}], s: text}"),
                yaml("{a: 9, b: {c: 2, added: 4}, l: [{x: 1, d: 0}, {z: 1}, {w: 1}], s: 5, n: 1}")),
            yaml("{a: 9, b: {c: 2}, l: [{x: 1}, {}, {w: 1}], s: 5}"));
}

TEST(WithoutAdditions, LeavesWhatIsOfAnotherKind) {
  EXPECT_EQ(without_additions(yaml("{a: {}, b: [], c: 1}"), yaml("{a: [1], b: {k: 1}, c: {k: 1}}")),
            yaml("{a: [1], b: {k: 1}, c: {k: 1}}"));
}

TEST(WithoutBookkeeping, DropsWhatTheServerKeepsForItself) {
  EXPECT_EQ(without_bookkeeping(yaml("{metadata: {name: a, uid: u, generation: 1, resourceVersion: "
                                     "'2', managedFields: [], creationTimestamp: now}, status: "
                                     "{}, spec: {}}")),
            yaml("{metadata: {name: a, uid: u}, spec: {}}"));
}

}  // namespace
}  // namespace hangar::commands
