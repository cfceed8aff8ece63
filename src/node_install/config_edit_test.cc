#include "node_install/config_edit.h"

#include "node_install/outcome.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {
namespace {

constexpr std::string_view kConfig =
    "version = 2 # yes\n"
    "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\n"
    "  runtime_type = \"io.containerd.runc.v2\"\n";

const std::vector<Handler> kHandlers = {
    {.name = "wasmtime", .program = "/opt/hangar-node/bin/containerd-shim-wasmtime-v1"}};

std::string body() {
  return render_handlers("io.containerd.grpc.v1.cri", kHandlers, false);
}

TEST(PutPart, LeavesEveryByteOfOthersWhereItWas) {
  const auto after = put_part(kConfig, "", body(), Dialect::Toml);

  ASSERT_TRUE(after);
  EXPECT_TRUE(after->starts_with(kConfig));
  EXPECT_EQ(take_part(*after, Dialect::Toml), std::optional(std::string(kConfig)));
}

TEST(PutPart, ReplacesItsOwnPartWhereItIs) {
  const std::string first = put_part(kConfig, "", body(), Dialect::Toml).value();
  const std::string between = first + "[debug]\n  level = \"info\"\n";
  const std::vector<Handler> others = {{.name = "spin", .program = "/opt/hangar-node/bin/spin"}};

  const auto second = put_part(
      between, "", render_handlers("io.containerd.grpc.v1.cri", others, true), Dialect::Toml);

  ASSERT_TRUE(second);
  EXPECT_FALSE(second->contains("wasmtime"));
  EXPECT_TRUE(second->ends_with("[debug]\n  level = \"info\"\n"));
  EXPECT_EQ(take_part(*second, Dialect::Toml).value(),
            std::string(kConfig) + "[debug]\n  level = \"info\"\n");
}

TEST(PutPart, TwiceIsOnce) {
  const std::string once = put_part(kConfig, "", body(), Dialect::Toml).value();

  EXPECT_EQ(put_part(once, "", body(), Dialect::Toml), once);
}

TEST(PutPart, RefusesAHandlerThatIsThere) {
  const std::string theirs = std::string(kConfig) + body();

  const auto after = put_part(theirs, "", body(), Dialect::Toml);

  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().reason(), reason::kConfigConflict);
}

TEST(PutPart, OfMalformedTextSaysWhere) {
  const auto after = put_part("version = 2\nx = \n", "", body(), Dialect::Toml);

  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().reason(), reason::kConfigInvalid);
  EXPECT_TRUE(after.error().message().contains("line 2")) << after.error().message();
}

TEST(PutPart, TakesTemplatesAsTheyAre) {
  const std::string theirs = "{{ template \"base\" . }}\n{{ if .X }}\n[a]\n{{ end }}";

  const auto after = put_part(theirs, "", body(), Dialect::GoTemplate);

  ASSERT_TRUE(after);
  EXPECT_EQ(take_part(*after, Dialect::GoTemplate).value(), theirs);
}

TEST(PutPart, MakesAFileThatGoesAgain) {
  const std::string made = put_part(std::nullopt, kVersion3, body(), Dialect::Toml).value();

  EXPECT_TRUE(made.starts_with(kVersion3));
  EXPECT_EQ(take_part(made, Dialect::Toml), std::optional<std::string>());
}

TEST(TakePart, KeepsAFileItMadeOnceOthersHaveWrittenIntoIt) {
  const std::string made =
      put_part(std::nullopt, kBaseTemplate, body(), Dialect::GoTemplate).value();

  const auto left = take_part(made + "[theirs]\n", Dialect::GoTemplate);

  // Without the base template k3s would have nothing else in its configuration.
  EXPECT_EQ(left.value(), std::string(kBaseTemplate) + "[theirs]\n");
}

TEST(TakePart, EndsTheLineThatItEndedIfOthersHaveWrittenBehindIt) {
  const std::string theirs = "version = 2\n[debug]\n  level = \"info\"";
  const std::string after = put_part(theirs, "", body(), Dialect::Toml).value();

  EXPECT_EQ(take_part(after, Dialect::Toml).value(), theirs);
  EXPECT_EQ(take_part(after + "[more]\n", Dialect::Toml).value(), theirs + "\n[more]\n");
}

TEST(TakePart, KeepsACarriageReturnAtTheEnd) {
  for (const std::string theirs : {"{{ x }}\r", "{{ x }}\n\r", "\r"}) {
    const std::string after = put_part(theirs, "", body(), Dialect::GoTemplate).value();
    EXPECT_EQ(take_part(after, Dialect::GoTemplate).value(), theirs);
  }
}

TEST(TakePart, RefusesToGiveAnotherMeaningToLinesOfOthers) {
  // Another program has added a key after the part, and so to its last table.
  const std::string after = put_part(kConfig, "", body(), Dialect::Toml).value() + "theirs = 1\n";

  const auto left = take_part(after, Dialect::Toml);

  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().reason(), reason::kConfigConflict);
}

TEST(TakePart, RefusesWithOneMarkerWithoutTheOther) {
  for (const std::string_view text : {"# hangar-node: begin\n", "# hangar-node: end\n",
                                      "# hangar-node: begin\n# hangar-node: begin\n"
                                      "# hangar-node: end\n"}) {
    const auto left = take_part(text, Dialect::Toml);
    ASSERT_FALSE(left) << text;
    EXPECT_EQ(left.error().reason(), reason::kConfigInvalid);
  }
}

TEST(TakePart, UnderstandsAFileWhoseLineEndingsWereChanged) {
  std::string after = put_part(kConfig, "", body(), Dialect::Toml).value();
  std::string changed;
  for (const char c : after)
    changed += c == '\n' ? std::string("\r\n") : std::string(1, c);

  const auto left = take_part(changed, Dialect::Toml);

  ASSERT_TRUE(left);
  EXPECT_FALSE(left->value().contains("hangar-node"));
}

TEST(RenderHandlers, GivesAnOciRuntimeThroughContainerdsOwnShim) {
  const std::string text = render_handlers(
      "io.containerd.cri.v1.runtime",
      {{.name = "wasmedge", .kind = Handler::Kind::Oci, .program = "/opt/hangar-node/bin/crun"}},
      true);

  EXPECT_TRUE(text.contains("runtime_type = \"io.containerd.runc.v2\""));
  EXPECT_TRUE(text.contains("BinaryName = \"/opt/hangar-node/bin/crun\""));
  EXPECT_TRUE(text.contains("SystemdCgroup = true"));
  EXPECT_TRUE(text.contains("pod_annotations"));
}

TEST(PluginOf, FollowsTheVersionOfTheFile) {
  EXPECT_EQ(plugin_of(0, {}).value(), "cri");
  EXPECT_EQ(plugin_of(0, {"io.containerd.grpc.v1.cri"}).value(), "io.containerd.grpc.v1.cri");
  EXPECT_EQ(plugin_of(1, {}).value(), "cri");
  EXPECT_EQ(plugin_of(2, {}).value(), "io.containerd.grpc.v1.cri");
  EXPECT_EQ(plugin_of(3, {}).value(), "io.containerd.cri.v1.runtime");
  EXPECT_EQ(plugin_of(4, {}).value(), "io.containerd.cri.v1.runtime");
  EXPECT_FALSE(plugin_of(5, {}));
  EXPECT_FALSE(plugin_of(-1, {}));
}

}  // namespace
}  // namespace hangar::node_install
