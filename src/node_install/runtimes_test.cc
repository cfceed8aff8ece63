#include "node_install/runtimes.h"

#include "base/digest.h"
#include "node_install/outcome.h"
#include "node_install/runtime_source.h"
#include "node_install/test_doubles.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {
namespace {

class RuntimesTest : public testing::Test {
 protected:
  void list(std::string_view file, std::string_view bytes, std::string_view directory = "/") {
    directory_.put(std::string(directory) + std::string(file), bytes);
    const std::string sums = std::string(directory) + "SHA256SUMS";
    directory_.put(sums,
                   directory_.get(sums) + sha256_hex(bytes) + "  " + std::string(file) + "\n");
  }
  auto found(const std::vector<RuntimeSource>& expected = {}) {
    return runtimes_in(directory_.path().string(), "/opt/x", expected);
  }
  static RuntimeSource expect(std::string_view file, std::string_view bytes) {
    return {.file = std::string(file), .program_sha256 = sha256_hex(bytes)};
  }
  void expect_refused(std::string_view reason, const std::vector<RuntimeSource>& expected = {}) {
    const auto runtimes = found(expected);
    ASSERT_FALSE(runtimes);
    EXPECT_EQ(runtimes.error().reason(), reason) << runtimes.error().message();
  }

  TempRoot directory_;
};

TEST_F(RuntimesTest, AreWhatTheListNames) {
  list("containerd-shim-spin-v2", "a shim");
  list("crun-wasmedge", "crun");
  directory_.put("/notes.txt", "not listed");

  const auto runtimes = found();

  ASSERT_TRUE(runtimes) << runtimes.error().message();
  ASSERT_EQ(runtimes->size(), 2);
  EXPECT_EQ((*runtimes)[0].handler,
            (Handler{.name = "spin", .program = "/opt/x/bin/containerd-shim-spin-v2"}));
  EXPECT_EQ((*runtimes)[1].handler, (Handler{.name = "wasmedge",
                                             .kind = Handler::Kind::Oci,
                                             .program = "/opt/x/bin/crun-wasmedge"}));
}

TEST_F(RuntimesTest, OfThisArchitectureComeFirst) {
  list("crun", "for none");
  list("crun", "for this one", "/" + std::string(architecture()) + "/");

  const auto runtimes = found();

  ASSERT_TRUE(runtimes);
  EXPECT_EQ(runtimes->front().sha256, sha256_hex("for this one"));
}

TEST_F(RuntimesTest, WithAnotherChecksumAreRefused) {
  list("crun", "promised");
  directory_.put("/crun", "delivered");

  expect_refused(reason::kChecksumMismatch);
}

TEST_F(RuntimesTest, ThatAreExpectedNeedNoList) {
  directory_.put("/crun", "a runtime");
  directory_.put("/containerd-shim-spin-v2", "not expected");

  const auto runtimes = found({expect("crun", "a runtime")});

  ASSERT_TRUE(runtimes) << runtimes.error().message();
  ASSERT_EQ(runtimes->size(), 1);
  EXPECT_EQ(runtimes->front().sha256, sha256_hex("a runtime"));
}

TEST_F(RuntimesTest, ThatAreExpectedAreNotWhatTheListSaysTheyAre) {
  list("crun", "swapped, and listed by who swapped it");

  EXPECT_TRUE(found());
  expect_refused(reason::kChecksumMismatch, {expect("crun", "promised")});
}

TEST_F(RuntimesTest, ThatAreExpectedMustBeThere) {
  list("crun", "listed");

  expect_refused(reason::kRuntimeInvalid, {expect("crun", "listed"), expect("crun-x", "")});
}

TEST_F(RuntimesTest, ExpectedForOtherArchitecturesOnlyAreRefused) {
  list("crun", "listed");
  RuntimeSource other = expect("crun", "listed");
  other.architecture = architecture() == "amd64" ? "arm64" : "amd64";

  EXPECT_FALSE(found({other}));
}

TEST_F(RuntimesTest, ForAnotherArchitectureAreRefused) {
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, &header.e_ident[0]);
  header.e_machine = EM_S390;
  list("crun", {reinterpret_cast<const char*>(&header), sizeof header});

  expect_refused(reason::kRuntimeInvalid);
}

TEST_F(RuntimesTest, WithoutAListAreRefused) {
  directory_.put("/crun", "");

  expect_refused(reason::kRuntimeInvalid);
}

TEST_F(RuntimesTest, ThatTheListHasAndTheDirectoryHasNotAreRefused) {
  directory_.put("/SHA256SUMS", sha256_hex("") + "  crun\n");

  expect_refused(reason::kRuntimeInvalid);
}

TEST_F(RuntimesTest, MayNotLieElsewhere) {
  directory_.put("/SHA256SUMS", sha256_hex("") + "  ../crun\n");

  expect_refused(reason::kRuntimeInvalid);
}

TEST_F(RuntimesTest, ForOneHandlerTwiceAreRefused) {
  list("containerd-shim-wasmedge-v1", "a shim");
  list("crun-wasmedge", "crun");

  expect_refused(reason::kRuntimeInvalid);
}

TEST(HandlerOf, RefusesNamesThatSayNothing) {
  for (const std::string_view name : {"", "runc", "containerd-shim-", "containerd-shim-x",
                                      "containerd-shim-x-v", "containerd-shim--v1", "crun-",
                                      "crun-{{x}}", "crun-A", "crun-\"", "containerd-shim-x-v1.sh"})
    EXPECT_FALSE(handler_of(name, "/x")) << name;
}

}  // namespace
}  // namespace hangar::node_install
