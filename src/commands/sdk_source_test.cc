#include "commands/sdk_source.h"

#include "base/result.h"
#include "commands/temporary_directory.h"
#include "io/file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::commands {
namespace {

constexpr std::uint64_t kFileBytesMax = 1 << 20;

class SdkSource : public testing::Test {
 protected:
  [[nodiscard]] std::string read(const std::string& name) const {
    const Result<std::string> content = io::read_file(directory_->path() / name, kFileBytesMax);
    return content ? *content : "error: " + content.error().message();
  }

  const std::unique_ptr<TemporaryDirectory> directory_ = *TemporaryDirectory::make();
};

TEST_F(SdkSource, HasTheGeneratorTheSdkAndTheirModules) {
  ASSERT_TRUE(write_files(sdk_source(), directory_->path()));

  for (const std::string name :
       {"go.mod", "go.sum", "flight/flight.go", "flight/wasi/internal/host/host_wasip1.go",
        "helm/go.mod", "helm/go.sum", "helm/helm.go", "helm/cmd/from-chart/main.go",
        "helm/internal/fromchart/template/main.go",
        "helm/internal/fromchart/template/chart/Chart.yaml"}) {
    const Result<std::string> there = io::read_file(directory_->path() / name, kFileBytesMax);
    const Result<std::string> want =
        io::read_file(std::filesystem::path(HANGAR_SDK_DIR) / name, kFileBytesMax);
    ASSERT_TRUE(there && want) << name;
    EXPECT_TRUE(*there == *want) << name << " is not what it is in the tree";
  }
}

TEST_F(SdkSource, HasNoTestsAndNoOperators) {
  ASSERT_TRUE(write_files(sdk_source(), directory_->path()));

  EXPECT_FALSE(std::filesystem::exists(directory_->path() / "hangar"));
  EXPECT_FALSE(std::filesystem::exists(directory_->path() / "helm/testdata"));
  EXPECT_FALSE(std::filesystem::exists(directory_->path() / "helm/helm_test.go"));
}

TEST_F(SdkSource, WritesFilesToTheByte) {
  const std::string_view text =
      "-- a/b.go --\npackage b\n--  --\n\n-- empty --\n-- c --\n-- d\n---- --\nno newline";

  ASSERT_TRUE(write_files(text, directory_->path()));

  EXPECT_EQ(read("a/b.go"), "package b\n--  --\n\n");
  EXPECT_EQ(read("empty"), "");
  EXPECT_EQ(read("c"), "-- d\n---- --\nno newline");
}

TEST_F(SdkSource, RefusesATextThatIsNotOne) {
  for (const std::string_view text :
       {"", "package b\n", "\n-- a --\n", "-- ../a --\n", "-- a/../../b --\nx", "-- /etc/a --\n"}) {
    const Result<> written = write_files(text, directory_->path());
    ASSERT_FALSE(written) << text;
    EXPECT_EQ(written.error().kind(), ErrorKind::Corrupt) << text;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_->path()));
}

}  // namespace
}  // namespace hangar::commands
