#include "workflows/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hangar::workflows {
namespace {

using testing::HasSubstr;
using testing::Not;

const char* const kDefinition = R"({"id":"db","initial":"idle","states":{
  "idle":{"id":"db.idle","type":"atomic","on":{"PROVISION":[{"target":["#db.work"]}]}},
  "work":{"id":"db.work","type":"compound","initial":"pvc","states":{
    "pvc":{"id":"db.work.pvc","type":"atomic","meta":{"actions":[{"type":"CREATE_PVC"}]},
           "after":{"5000":[{"target":["#db.ready"],"guard":"isLate"}]}}}},
  "ready":{"id":"db.ready","type":"final"}}})";

TEST(Drawing, ShowsWhereTheWorkflowIs) {
  EXPECT_EQ(draw_tree(*json::parse(kDefinition), R"({"work":"pvc"})"),
            "db\n"
            "├─ idle (initial)\n"
            "│      PROVISION -> work\n"
            "├─ ● work\n"
            "│  └─ ● pvc (initial) asks for CREATE_PVC\n"
            "│         after 5000 ms [isLate] -> ready\n"
            "└─ ready (final)\n");
}

TEST(Drawing, IsAMermaidDiagram) {
  EXPECT_EQ(draw_mermaid(*json::parse(kDefinition), R"({"work":"pvc"})"),
            "stateDiagram-v2\n"
            "  state \"idle\" as s1\n"
            "  [*] --> s1\n"
            "  state \"work\" as s2\n"
            "  state s2 {\n"
            "    state \"pvc\" as s3\n"
            "    [*] --> s3\n"
            "  }\n"
            "  state \"ready\" as s4\n"
            "  s4 --> [*]\n"
            "  s1 --> s2 : PROVISION\n"
            "  s3 --> s4 : after 5000 ms [isLate]\n"
            "  classDef active fill:#2f6fed,color:#fff\n"
            "  class s3 active\n");
}

TEST(Drawing, KeepsNamesInTheirPlace) {
  const json::Value definition = *json::parse(
      R"({"id":"m","states":{"a\" as s9\nstate x":{"on":{"E\u001b[31m":[{"target":["#nowhere"]}]}}}})");

  EXPECT_THAT(draw_mermaid(definition, "idle"), HasSubstr("state \"a#34; as s9?state x\" as s1\n"));
  EXPECT_THAT(draw_tree(definition, "idle"), Not(HasSubstr("\x1b")));
}

TEST(Drawing, LeavesOutWhatIsNoDefinition) {
  for (const char* const text :
       {"[]", "7", R"({"states":7})", R"({"states":{"a":7}})", R"({"states":{"a":{"on":[]}}})",
        R"({"states":{"a":{"on":{"E":7},"always":{}}}})",
        R"({"states":{"a":{"on":{"E":[{"target":7},{"target":[7]}]}}}})"}) {
    EXPECT_THAT(draw_tree(*json::parse(text), "a"), HasSubstr("machine")) << text;
    EXPECT_THAT(draw_mermaid(*json::parse(text), "a"), HasSubstr("stateDiagram")) << text;
  }
}

}  // namespace
}  // namespace hangar::workflows
