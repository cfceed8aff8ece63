#include "nodes/fleet.h"

#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::nodes {
namespace {

using namespace std::chrono_literals;

json::Value node(std::string_view name, std::string_view annotations) {
  return json::parse_yaml("{metadata: {name: " + std::string(name) +
                          ", annotations: " + std::string(annotations) + "}}")
      .value();
}

const Record kRecord = {
    .resource_version = "1",
    .slots = {"b"},
    .progress = {.standing = Standing::Halted, .message = "node b failed: exit code 1"},
    .version = "v2"};

const std::vector<json::Value> kNodes = {
    node("a", R"({kwasm.sh/kwasm-node: "true", nodes.hangar.dev/phase: Provisioned,
                  nodes.hangar.dev/version: v1, nodes.hangar.dev/since: "2026-01-01T00:00:00Z"})"),
    node("b", R"({kwasm.sh/kwasm-node: "true", nodes.hangar.dev/phase: Failed,
                  nodes.hangar.dev/since: "2026-01-01T23:00:00Z",
                  nodes.hangar.dev/last-error: exit code 1})"),
    node("c", R"({kwasm.sh/kwasm-node: "true"})"),
    node("d", R"({kwasm.sh/kwasm-node: "true", nodes.hangar.dev/skip: "true"})"),
    node("e", "{}"),
    node("f", R"({nodes.hangar.dev/phase: Failed, nodes.hangar.dev/action: uninstall,
                  nodes.hangar.dev/version: v2, nodes.hangar.dev/since: "2026-01-01T23:59:05Z",
                  nodes.hangar.dev/last-error: exit code 8})"),
    node("g", R"({kwasm.sh/kwasm-node: "true", nodes.hangar.dev/phase: Provisioned,
                  nodes.hangar.dev/version: v2, nodes.hangar.dev/since: "2026-01-02T00:00:00Z"})")};

// A node may write its own annotations, and a container chooses its last message.
TEST(FleetTable, LeavesATerminalAlone) {
  const std::vector<json::Value> nodes = {node("a", R"({nodes.hangar.dev/phase: Failed,
    nodes.hangar.dev/version: "v1\x1b[2J", nodes.hangar.dev/last-error: "\x1b]0;t\x07\x9b1m"})")};
  Record record = kRecord;
  record.progress.message = record.version = "\x1b[2J";

  const std::string text = fleet_table(fleet_rows(nodes, record), record, WallTime());

  for (const char letter : text)
    EXPECT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~')) << text;
  EXPECT_THAT(text, testing::HasSubstr("\\x1b]0;t\\x07"));
}

TEST(FleetTable, ShowsEachNodeAndWhyItDoesNotGetOn) {
  const WallTime now = parse_rfc3339("2026-01-02T00:00:05Z").value();

  EXPECT_EQ(fleet_table(fleet_rows(kNodes, kRecord), kRecord, now),
            "NODE   VERSION   PHASE         SINCE   LAST ERROR\n"
            "a      v1        Provisioned   24h     -\n"
            "b      -         Failed        60m     exit code 1\n"
            "c      -         Pending       -       -\n"
            "d      -         Skipped       -       -\n"
            "e      -         -             -       -\n"
            "f      v2        Failed        60s     uninstall: exit code 8\n"
            "g      v2        Provisioned   5s      -\n"
            "\n"
            "The rollout is Halted: 1 of 5 nodes are done with v2.\n"
            "node b failed: exit code 1\n");
}

TEST(FleetTable, SaysWhoIsAtWorkWithoutNamingHundreds) {
  Record record = {.resource_version = "1",
                   .slots = {"a", "b"},
                   .progress = {.standing = Standing::Rolling},
                   .version = "v2"};
  EXPECT_THAT(fleet_table({}, record, {}), testing::EndsWith("are done with v2. At work: a, b.\n"));

  for (const char* name : {"c", "d", "e", "f", "g"})
    record.slots.insert(name);
  EXPECT_THAT(fleet_table({}, record, {}),
              testing::EndsWith("At work: a, b, c, d, e and 2 more.\n"));
}

TEST(FleetTable, SaysThatItLooksInAPlaceWithoutARollout) {
  EXPECT_THAT(fleet_table({}, {}, {}), testing::HasSubstr("No rollout record in this namespace"));
}

TEST(FleetTable, OfAnAutomaticRolloutHasEveryNodePending) {
  Record record = kRecord;
  record.auto_provision = true;

  EXPECT_EQ(fleet_rows(kNodes, record).at(4).phase, "Pending");
}

Record record_at(Standing standing, Slots slots = {}) {
  return {.resource_version = "1",
          .slots = std::move(slots),
          .progress = {.standing = standing},
          .version = "v2"};
}
json::Value ready_node(std::string_view name, std::string_view annotations) {
  json::Value value = node(name, annotations);
  json::set_at(value, {"status"},
               json::parse_yaml(R"({conditions: [{type: Ready, status: "True"}]})").value());
  return value;
}
const json::Value kProvisioned =
    ready_node("a", R"({kwasm.sh/kwasm-node: "true", nodes.hangar.dev/phase: Provisioned,
             nodes.hangar.dev/version: v2})");
const json::Value kPending = ready_node("b", R"({kwasm.sh/kwasm-node: "true"})");
const json::Value kFailed =
    ready_node("c", R"({kwasm.sh/kwasm-node: "true", nodes.hangar.dev/phase: Failed,
             nodes.hangar.dev/failures: "1"})");
const json::Value kInstalling =
    ready_node("d", R"({kwasm.sh/kwasm-node: "true", nodes.hangar.dev/phase: Installing,
             nodes.hangar.dev/failures: "1"})");
const json::Value kUntouched = ready_node("e", "{}");

TEST(FleetProgress, IsOverWhenAllNodesAreDoneAndTheRecordSaysSo) {
  const std::vector<json::Value> nodes = {kProvisioned, kUntouched};

  const FleetProgress done = fleet_progress(nodes, record_at(Standing::Done));
  EXPECT_EQ(done, (FleetProgress{.done = 1, .asked = 1}));
  EXPECT_EQ(progress_text(done), "1 of 1 nodes");
  EXPECT_TRUE(fleet_progress(nodes, record_at(Standing::Rolling)).is_moving);
  EXPECT_TRUE(fleet_progress(nodes, record_at(Standing::Done, {"a"})).is_moving);
}

TEST(FleetProgress, GoesOnBeforeTheHostHasRecordedANewNode) {
  const FleetProgress progress =
      fleet_progress({kProvisioned, kPending}, record_at(Standing::Done));

  EXPECT_EQ(
      progress,
      (FleetProgress{.done = 1, .asked = 2, .standing = Standing::Rolling, .is_moving = true}));
}

TEST(FleetProgress, IsOverAtAFailureOnceNoNodeIsAtWork) {
  const FleetProgress halted =
      fleet_progress({kProvisioned, kPending, kFailed}, record_at(Standing::Halted, {"c"}));
  EXPECT_EQ(halted,
            (FleetProgress{.done = 1, .asked = 3, .failed = 1, .standing = Standing::Halted}));
  EXPECT_EQ(progress_text(halted), "1 of 3 nodes, 1 failed");
  EXPECT_TRUE(fleet_progress({kFailed}, record_at(Standing::Rolling)).is_moving);
  EXPECT_TRUE(fleet_progress({kFailed, kInstalling}, record_at(Standing::Halted)).is_moving);
}

TEST(FleetProgress, DoesNotWaitForAHostThatHasNoInstaller) {
  EXPECT_FALSE(fleet_progress({kPending}, {}).is_moving);
}

TEST(FleetDocument, HasTheSameForPrograms) {
  const json::Value document = fleet_document(fleet_rows(kNodes, kRecord), kRecord);

  EXPECT_EQ(json::string_at(document, {"rollout", "standing"}), "Halted");
  EXPECT_EQ(json::dump(*json::find(document, {"rollout", "active"})), R"(["b"])");
  const json::Array& nodes = *json::array_at(document, {"nodes"});
  EXPECT_EQ(json::string_at(nodes[0], {"since"}), "2026-01-01T00:00:00Z");
  EXPECT_TRUE(json::find(nodes[2], {"since"})->is_null());
  EXPECT_EQ(json::string_at(nodes[1], {"lastError"}), "exit code 1");
  EXPECT_EQ(json::string_at(nodes[1], {"action"}), "install");
  EXPECT_EQ(json::string_at(nodes[5], {"action"}), "uninstall");
}

}  // namespace
}  // namespace hangar::nodes
