#include "go_build/packages.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::go_build {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// The output of `go list -deps -json`.
constexpr std::string_view kListing = R"({
	"Dir": "/go/src/net/http",
	"ImportPath": "net/http",
	"Name": "http",
	"Standard": true,
	"GoFiles": [
		"client.go"
	]
}
{
	"Dir": "/mod/k8s.io/client-go@v0.37.0/util/workqueue",
	"ImportPath": "k8s.io/client-go/util/workqueue",
	"Name": "workqueue",
	"Module": {
		"Path": "k8s.io/client-go",
		"Version": "v0.37.0",
		"Dir": "/mod/k8s.io/client-go@v0.37.0"
	},
	"GoFiles": [
		"queue.go"
	],
	"IgnoredGoFiles": [
		"queue_windows.go"
	]
}
{
	"Dir": "/fork",
	"ImportPath": "example.com/library",
	"Name": "library",
	"Module": {
		"Path": "example.com/library",
		"Version": "v1.0.0",
		"Replace": {
			"Path": "../fork",
			"Dir": "/fork"
		},
		"Dir": "/fork"
	},
	"GoFiles": [
		"library.go"
	]
}
{
	"Dir": "/src/cmd",
	"ImportPath": "example.com/operator/cmd",
	"Name": "main",
	"Module": {
		"Path": "example.com/operator",
		"Main": true,
		"Dir": "/src"
	},
	"GoFiles": [
		"main.go"
	],
	"Imports": [
		"net/http"
	]
}
)";

TEST(Packages, AreReadOneAfterTheOther) {
  const Result<std::vector<Package>> packages = read_packages(kListing);

  ASSERT_TRUE(packages) << packages.error().message();
  ASSERT_EQ(packages->size(), 4U);
  EXPECT_TRUE(packages->at(0).is_standard);
  const Package& queue = packages->at(1);
  EXPECT_EQ(queue.module, "k8s.io/client-go");
  EXPECT_EQ(queue.version, "v0.37.0");
  EXPECT_EQ(queue.module_directory, "/mod/k8s.io/client-go@v0.37.0");
  EXPECT_THAT(queue.ignored_files, ElementsAre("queue_windows.go"));
  EXPECT_EQ(packages->at(2).version, "=> ../fork");
  EXPECT_EQ(packages->at(2).module_directory, "/fork");
  const Package& program = packages->at(3);
  EXPECT_TRUE(program.is_of_main_module);
  EXPECT_EQ(program.name, "main");
  EXPECT_THAT(program.imports, ElementsAre("net/http"));
  EXPECT_EQ(read_packages("").value().size(), 0U);
}

TEST(Packages, ThatAreCutOffAreAnError) {
  const std::string_view cut = kListing.substr(0, kListing.size() - 3);

  EXPECT_EQ(read_packages(cut).error().kind(), ErrorKind::InvalidInput);
}

class CheckPackages : public testing::Test {
 protected:
  // The message of the refusal; empty when all packages are accepted.
  std::string check(std::vector<Package> packages) {
    packages.push_back({.import_path = "example.com/operator",
                        .name = "main",
                        .directory = "/src",
                        .is_of_main_module = true,
                        .has_go_files = true});
    const Result<> checked = check_packages(packages, read_);
    if (checked) return {};
    EXPECT_EQ(checked.error().kind(), ErrorKind::InvalidInput);
    return checked.error().message();
  }

  std::map<std::filesystem::path, std::string> files_;
  ReadFile read_ = [this](const std::filesystem::path& path) -> Result<std::string> {
    const auto found = files_.find(path);
    if (found == files_.end()) return fail(ErrorKind::NotFound, "no such file");
    return found->second;
  };
};

TEST_F(CheckPackages, LetsAProgramPass) {
  EXPECT_EQ(check({}), "");
}

TEST_F(CheckPackages, RefusesOneThatNeedsCgoByItsFiles) {
  files_["/sqlite/sqlite.go"] = "package sqlite\n\n// #include <sqlite.h>\nimport \"C\"\n";
  files_["/sqlite/doc.go"] = "//go:build ignore\n\npackage sqlite\n";

  EXPECT_THAT(
      check({{.import_path = "example.com/sqlite",
              .directory = "/sqlite",
              .ignored_files = {"doc.go", "sqlite.go", "sqlite_test.go"},
              .error = "build constraints exclude all Go files in /sqlite"}}),
      AllOf(HasSubstr("example.com/sqlite needs cgo (sqlite.go)"), HasSubstr("no C in a guest")));
}

// For example, a package that also has a file in plain Go for builds without cgo.
TEST_F(CheckPackages, TakesCgoThatIsAChoice) {
  files_["/dns/cgo.go"] = "package dns\n\nimport \"C\"\n";

  EXPECT_EQ(check({{.import_path = "example.com/dns",
                    .directory = "/dns",
                    .has_go_files = true,
                    .ignored_files = {"cgo.go"}}}),
            "");
}

TEST_F(CheckPackages, TellsCgoFromOtherConstraints) {
  files_["/x/tagged.go"] = "//go:build cgo && linux\n\npackage x\n\nimport \"C\"\n";
  files_["/x/comment.go"] = "package x\n\n// like import \"C\"\n";
  const Package package{.import_path = "example.com/x",
                        .directory = "/x",
                        .ignored_files = {"comment.go", "gone.go", "tagged.go"},
                        .error = "build constraints exclude all Go files"};

  EXPECT_TRUE(cgo_files(package, read_).empty());
  EXPECT_THAT(check({package}), HasSubstr("example.com/x: build constraints exclude"));
}

TEST_F(CheckPackages, RefusesPluginsButNotGosOwn) {
  EXPECT_THAT(check({{.import_path = "example.com/loader",
                      .has_go_files = true,
                      .imports = {"fmt", "plugin"}}}),
              HasSubstr("example.com/loader imports plugin"));
  EXPECT_EQ(check({{.import_path = "plugin", .is_standard = true}}), "");
}

TEST_F(CheckPackages, RefusesAPackageThatIsNotAProgram) {
  const std::vector<Package> library = {
      {.import_path = "example.com/operator/api", .name = "api", .has_go_files = true}};

  EXPECT_THAT(check_packages(library, read_).error().message(),
              HasSubstr("example.com/operator/api is package api and not a program"));
  EXPECT_FALSE(check_packages({}, read_));
}

}  // namespace
}  // namespace hangar::go_build
