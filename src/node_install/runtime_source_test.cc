#include "node_install/runtime_source.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {
namespace {

const std::string kSum(64, 'a');
const std::string kProgram = "#program-sha256:" + std::string(64, 'b');

TEST(ParseRuntimeSource, ReadsFileArchitectureUrlAndChecksum) {
  const auto source = parse_runtime_source(
      "containerd-shim-spin-v2@arm64=https://example.com/a=b/spin.tar.gz?x=#y#sha256:" + kSum +
      kProgram);

  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(source->file, "containerd-shim-spin-v2");
  EXPECT_EQ(source->architecture, "arm64");
  EXPECT_EQ(source->url, "https://example.com/a=b/spin.tar.gz?x=#y");
  EXPECT_EQ(source->sha256, kSum);
  EXPECT_EQ(source->program_sha256, std::string(64, 'b'));
  EXPECT_TRUE(source->is_archive());
}

TEST(ParseRuntimeSource, TakesTheChecksumOfAProgramThatIsNoArchiveForIt) {
  const auto source = parse_runtime_source("crun=https://example.com/crun#sha256:" + kSum);

  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(source->program_sha256, kSum);
  EXPECT_FALSE(parse_runtime_source("crun=https://example.com/crun#sha256:" + kSum + kProgram));
}

TEST(ParseRuntimeSource, RefusesAnArchiveWithoutItsProgramsChecksum) {
  const std::string archive = "crun=https://example.com/crun.tar.gz#sha256:" + kSum;

  EXPECT_FALSE(parse_runtime_source(archive));
  EXPECT_FALSE(parse_runtime_source(archive + kProgram.substr(0, kProgram.size() - 1)));
  EXPECT_TRUE(parse_runtime_source(archive + kProgram));
}

TEST(ChecksumArgument, SaysWhatTheProgramHasToBe) {
  for (const std::string& name : {std::string("crun"), std::string("crun-x@arm64")}) {
    const auto source =
        parse_runtime_source(name + "=https://example.com/x.tgz#sha256:" + kSum + kProgram);
    ASSERT_TRUE(source) << source.error().message();
    const std::string text = checksum_argument(*source);
    EXPECT_EQ(text, name + "=sha256:" + std::string(64, 'b'));

    const auto read = parse_checksum_argument(text);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->file, source->file);
    EXPECT_EQ(read->architecture, source->architecture);
    EXPECT_EQ(read->program_sha256, source->program_sha256);
  }
}

TEST(ChecksumArgument, RefusesEverythingElse) {
  for (const std::string& text :
       {std::string(), std::string("crun"), "crun=" + kSum, "crun=sha256:" + kSum.substr(1),
        "runc=sha256:" + kSum, "../crun=sha256:" + kSum, "crun@s390x=sha256:" + kSum})
    EXPECT_FALSE(parse_checksum_argument(text)) << text;
}

TEST(ParseRuntimeSource, RefusesWhatHasNoChecksumOrNoUsableName) {
  for (const std::string& text :
       {std::string("crun=https://example.com/crun"),
        "crun=https://example.com/crun#sha256:" + kSum.substr(1),
        "runc=https://example.com/runc#sha256:" + kSum,
        "crun@s390x=https://example.com/crun#sha256:" + kSum,
        "crun=file:///etc/shadow#sha256:" + kSum, "../crun=https://example.com/#sha256:" + kSum,
        "https://example.com/crun#sha256:" + kSum, std::string()})
    EXPECT_FALSE(parse_runtime_source(text)) << text;
}

// A Job has the URL, and a failure of it is written on the Node.
TEST(ParseRuntimeSource, RefusesAPasswordAndDoesNotRepeatIt) {
  for (const std::string_view url : {"https://me:hunter2@example.com/crun", "http://hunter2@e"}) {
    const auto source = parse_runtime_source("crun=" + std::string(url) + "#sha256:" + kSum);

    ASSERT_FALSE(source) << url;
    EXPECT_FALSE(source.error().message().contains("hunter2")) << source.error().message();
  }
  EXPECT_TRUE(parse_runtime_source("crun=https://example.com/a@b?c=d@e#sha256:" + kSum));
}

TEST(ChooseSources, PrefersTheOneForTheArchitecture) {
  const std::vector<RuntimeSource> all = {
      {.file = "crun", .url = "any"},
      {.file = "crun", .architecture = "arm64", .url = "arm64"},
      {.file = "crun-wasmedge", .architecture = "amd64", .url = "amd64"}};

  const auto chosen = choose_sources(all, "arm64");
  EXPECT_FALSE(chosen) << "crun-wasmedge has none for arm64";

  const auto other = choose_sources(all, "amd64");
  ASSERT_TRUE(other);
  ASSERT_EQ(other->size(), 2);
  EXPECT_EQ((*other)[0].url, "any");
  EXPECT_EQ((*other)[1].url, "amd64");
}

TEST(ChooseSources, RefusesTwoForOne) {
  EXPECT_FALSE(
      choose_sources(std::vector<RuntimeSource>{{.file = "crun"}, {.file = "crun"}}, "amd64"));
}

}  // namespace
}  // namespace hangar::node_install
