// tests/cases/node_install: a folder for each distribution and version, with the node's files
// before and after, and in `want` what hangar-node has to find, or the reason for which it has
// to refuse.
#include "node_install/files.h"
#include "node_install/installer.h"
#include "node_install/test_doubles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {
namespace {

const std::filesystem::path kCases = HANGAR_NODE_CASES_DIR;

constexpr auto kCopy =
    std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks;

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kCases))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::map<std::string, std::string> read_want(const std::filesystem::path& path) {
  std::map<std::string, std::string> want;
  std::ifstream file(path);
  std::string key;
  std::string value;
  while (file >> key >> value)
    want[key] = value;
  return want;
}

// Only the configuration, without the programs and the lock file.
std::map<std::string, std::string> configuration_in(const TempRoot& root) {
  std::map<std::string, std::string> tree = root.tree();
  std::erase_if(tree, [](const auto& entry) {
    return entry.first == "opt" || entry.first.contains("hangar-node/") ||
           entry.first.ends_with("hangar-node");
  });
  return tree;
}

std::map<std::string, std::string> without_directories(std::map<std::string, std::string> tree) {
  std::erase_if(tree, [](const auto& entry) { return entry.second == "directory"; });
  return tree;
}

class NodeCases : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::filesystem::copy(directory_ / "before", root_.path(), kCopy);
    before_ = root_.tree();
    files_ = std::make_unique<NodeFiles>(NodeFiles::open(root_.path().string()).value());
  }

  Installer installer() { return {*files_, service_, *report_, {}}; }

  const std::filesystem::path directory_ = kCases / GetParam();
  const std::map<std::string, std::string> want_ = read_want(directory_ / "want");
  const FakeRuntimes runtimes_{
      {{"containerd-shim-wasmtime-v1", "a shim"}, {"crun-wasmedge", "an OCI runtime"}}};
  TempRoot root_;
  std::map<std::string, std::string> before_;
  std::unique_ptr<NodeFiles> files_;
  FakeService service_;
  SilentReport report_;
};

TEST_P(NodeCases, IsInstalledAsWantedAndUninstalledToTheByte) {
  const Result<> installed = installer().install(std::cref(runtimes_));

  if (const auto reason = want_.find("refused"); reason != want_.end()) {
    ASSERT_FALSE(installed);
    EXPECT_EQ(installed.error().reason(), reason->second) << installed.error().message();
    EXPECT_EQ(root_.tree(), before_) << "refused, and yet changed something";
    EXPECT_EQ(service_.restarts, 0);
    return;
  }
  ASSERT_TRUE(installed) << installed.error().message();
  // To review and commit.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread.
  if (std::getenv("HANGAR_WRITE_CASES") != nullptr) {
    std::filesystem::remove_all(directory_ / "after");
    for (const auto& [name, bytes] : without_directories(configuration_in(root_))) {
      if (before_.contains(name) && before_.at(name) == bytes) continue;
      std::filesystem::create_directories((directory_ / "after" / name).parent_path());
      std::ofstream(directory_ / "after" / name, std::ios::binary) << bytes;
    }
  }
  std::map<std::string, std::string> expected = without_directories(before_);
  for (const auto& [name, bytes] : without_directories(TempRoot::tree_of(directory_ / "after")))
    expected[name] = bytes;
  EXPECT_EQ(without_directories(configuration_in(root_)), expected);
  EXPECT_EQ(service_.restarts, 1);
  const Result<Status> status = installer().status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, Status::State::Installed) << status->problem;
  EXPECT_EQ(status->distribution, want_.at("distribution"));
  EXPECT_EQ(status->config, want_.at("config"));

  const auto once = root_.tree();
  ASSERT_TRUE(installer().install(std::cref(runtimes_)));
  EXPECT_EQ(root_.tree(), once) << "installing again changed something";
  EXPECT_EQ(service_.restarts, 1) << "installing again restarted containerd";

  const Result<> uninstalled = installer().uninstall();
  ASSERT_TRUE(uninstalled) << uninstalled.error().message();
  EXPECT_EQ(root_.tree(), before_);
  EXPECT_EQ(service_.restarts, 2);
}

TEST_P(NodeCases, KeepsWhatOthersWriteAfterwards) {
  if (want_.contains("refused")) return;  // The other test covers it.
  ASSERT_TRUE(installer().install(std::cref(runtimes_)));
  const std::string theirs = "\n# theirs\n[plugins.\"com.example.v1.other\"]\n  key = 1\n";
  const std::string config = want_.at("config");
  const std::string with_part = files_->read(config, 1 << 20).value();
  const TempRoot fresh;
  std::filesystem::copy(directory_ / "before", fresh.path(), kCopy);
  const auto before = NodeFiles::open(fresh.path().string()).value().read(config, 1 << 20);
  ASSERT_TRUE(files_->write(config, with_part + theirs, Access::KeepOrPublic));

  ASSERT_TRUE(installer().uninstall());

  const std::string left = files_->read(config, 1 << 20).value();
  EXPECT_TRUE(left.ends_with(theirs));
  EXPECT_FALSE(left.contains("hangar-node"));
  if (before) {
    const bool was_ended = before->empty() || before->ends_with('\n');
    EXPECT_EQ(left, *before + (was_ended ? "" : "\n") + theirs);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NodeCases, testing::ValuesIn(case_names()), [](const auto& info) {
  std::string name;
  for (const char c : info.param)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace hangar::node_install
