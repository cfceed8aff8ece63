#include "node_install/installer.h"

#include "node_install/files.h"
#include "node_install/outcome.h"
#include "node_install/test_doubles.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::node_install {
namespace {

constexpr std::string_view kConfig = "/etc/containerd/config.toml";
constexpr std::string_view kBefore = "version = 2\n# mine\n";
const std::map<std::string, std::string> kShim = {{"containerd-shim-wasmtime-v1", "a shim"}};

// The files of a node up to the n-th change: from then on every change fails, as on a disk that is
// full or has become read-only.
class FailingFiles final : public Files {
 public:
  FailingFiles(Files& files, int changes, std::string_view reason)
      : files_(files), left_(changes), reason_(reason) {}

  [[nodiscard]] bool has_failed() const { return has_failed_; }

  Result<std::string> read(std::string_view path, std::uint64_t bytes_max) const override {
    return files_.read(path, bytes_max);
  }
  Result<std::string> sha256(std::string_view path) const override { return files_.sha256(path); }
  bool exists(std::string_view path) const override { return files_.exists(path); }
  std::vector<std::string> list(std::string_view path) const override { return files_.list(path); }
  std::optional<std::string> find_in(std::string_view path,
                                     const std::vector<std::string>& needles) const override {
    return files_.find_in(path, needles);
  }
  Result<Reached> reach(std::string_view path) const override { return files_.reach(path); }
  Result<Descriptor> lock(std::string_view path) override { return files_.lock(path); }
  Result<> write(std::string_view path, std::string_view bytes, Access access) override {
    HANGAR_TRY(count());
    return files_.write(path, bytes, access);
  }
  Result<> install(std::string_view path, int source, std::string_view sha256) override {
    HANGAR_TRY(count());
    return files_.install(path, source, sha256);
  }
  Result<> remove(std::string_view path) override {
    HANGAR_TRY(count());
    return files_.remove(path);
  }
  Result<std::vector<std::string>> make_directories(std::string_view path) override {
    HANGAR_TRY(count());
    return files_.make_directories(path);
  }
  void remove_empty_directory(std::string_view path) override {
    files_.remove_empty_directory(path);
  }

 private:
  Result<> count() {
    if (left_-- > 0) return {};
    has_failed_ = true;
    return refuse(ErrorKind::Unavailable, reason_, "no more");
  }

  Files& files_;
  int left_;
  std::string_view reason_;
  bool has_failed_ = false;
};

class InstallerTest : public testing::Test {
 protected:
  InstallerTest() { root_.put(kConfig, kBefore); }

  Installer installer(InstallerOptions options = {}) {
    return {files_, service_, *report_, std::move(options)};
  }
  Result<> install(InstallerOptions options = {}) {
    return installer(std::move(options)).install(std::cref(runtimes_));
  }
  Result<> uninstall() { return installer().uninstall(); }
  Status::State state() { return installer().status().value().state; }

  TempRoot root_;
  NodeFiles files_ = NodeFiles::open(root_.path().string()).value();
  FakeService service_;
  SilentReport report_;
  const FakeRuntimes runtimes_{kShim};
};

TEST_F(InstallerTest, RestartsOnlyWhenTheConfigurationChanged) {
  ASSERT_TRUE(install());
  ASSERT_TRUE(install());
  EXPECT_EQ(service_.restarts, 1);

  // Another version of the same shim: containerd starts it by its path, and needs no restart.
  const FakeRuntimes newer({{"containerd-shim-wasmtime-v1", "a newer shim"}});
  ASSERT_TRUE(installer().install(std::cref(newer)));
  EXPECT_EQ(service_.restarts, 1);
  EXPECT_EQ(root_.get("/opt/hangar-node/bin/containerd-shim-wasmtime-v1"), "a newer shim");
}

TEST_F(InstallerTest, PutsTheConfigurationBackIfContainerdDoesNotComeBack) {
  service_.failures = 1;

  const auto installed = install();

  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().reason(), reason::kRestartFailed);
  EXPECT_EQ(root_.get(kConfig), kBefore);
  EXPECT_EQ(service_.restarts, 2);
  EXPECT_EQ(state(), Status::State::Incomplete);
}

TEST_F(InstallerTest, RestartsAgainAfterAFailedRestart) {
  service_.failures = 1;
  ASSERT_FALSE(install());

  ASSERT_TRUE(install());

  EXPECT_EQ(service_.restarts, 3);
  EXPECT_EQ(state(), Status::State::Installed);
}

TEST_F(InstallerTest, SaysThatContainerdStaysDownAndTriesAgainNextTime) {
  service_.failures = 2;

  const auto installed = install();

  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().reason(), reason::kRestoreFailed);
  EXPECT_EQ(root_.get(kConfig), kBefore);
  ASSERT_TRUE(uninstall());
  EXPECT_EQ(service_.restarts, 3) << "the restart that was due is due still";
}

TEST_F(InstallerTest, OwesTheRestartThatItWasToldToLeave) {
  ASSERT_TRUE(install({.restart = Restart::Never}));
  EXPECT_EQ(service_.restarts, 0);
  EXPECT_EQ(state(), Status::State::Incomplete);

  ASSERT_TRUE(install());

  EXPECT_EQ(service_.restarts, 1);
  EXPECT_EQ(state(), Status::State::Installed);
}

TEST_F(InstallerTest, TakesItsPartOutIfTheOwedRestartFails) {
  ASSERT_TRUE(install({.restart = Restart::Never}));
  service_.failures = 1;

  const auto installed = install();

  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().reason(), reason::kRestartFailed);
  EXPECT_EQ(root_.get(kConfig), kBefore);
}

TEST_F(InstallerTest, PutsItsPartBackIfContainerdDoesNotComeBackFromAnUninstall) {
  ASSERT_TRUE(install());
  const std::string with_part = root_.get(kConfig);
  service_.failures = 1;

  const auto uninstalled = uninstall();

  ASSERT_FALSE(uninstalled);
  EXPECT_EQ(root_.get(kConfig), with_part);
  EXPECT_EQ(state(), Status::State::Installed);
  ASSERT_TRUE(uninstall());
  EXPECT_EQ(root_.get(kConfig), kBefore);
}

TEST_F(InstallerTest, RemovesRuntimesThatAreNoLongerWanted) {
  ASSERT_TRUE(install());
  const FakeRuntimes others({{"crun-wasmedge", "crun"}});

  ASSERT_TRUE(installer().install(std::cref(others)));

  EXPECT_FALSE(root_.has("/opt/hangar-node/bin/containerd-shim-wasmtime-v1"));
  EXPECT_TRUE(root_.has("/opt/hangar-node/bin/crun-wasmedge"));
  EXPECT_FALSE(root_.get(kConfig).contains("wasmtime"));
}

TEST_F(InstallerTest, MovesItsPartWhenAnotherFileCounts) {
  ASSERT_TRUE(install());
  root_.put("/etc/containerd/cri.toml",
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"x\"\n");
  root_.put(kConfig, "imports = [\"cri.toml\"]\n" + root_.get(kConfig));

  ASSERT_TRUE(install());

  EXPECT_EQ(root_.get(kConfig), "imports = [\"cri.toml\"]\n" + std::string(kBefore));
  EXPECT_TRUE(root_.get("/etc/containerd/cri.toml").contains("wasmtime"));
  EXPECT_EQ(state(), Status::State::Installed);
}

TEST_F(InstallerTest, LeavesHandlersOfOthersIfToldTo) {
  const std::string theirs =
      std::string(kBefore) +
      "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.wasmtime]\n"
      "  runtime_type = \"/opt/theirs/containerd-shim-wasmtime-v1\"\n";
  root_.put(kConfig, theirs);
  const auto before = root_.tree();

  const auto refused = install();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), reason::kConfigConflict);
  EXPECT_TRUE(refused.error().message().contains("/opt/theirs/")) << refused.error().message();
  EXPECT_EQ(root_.tree(), before);

  const FakeRuntimes both({{"containerd-shim-wasmtime-v1", "ours"}, {"crun-wasmedge", "crun"}});
  ASSERT_TRUE(installer({.existing = Existing::Keep}).install(std::cref(both)));
  EXPECT_TRUE(root_.get(kConfig).starts_with(theirs));
  EXPECT_FALSE(root_.has("/opt/hangar-node/bin/containerd-shim-wasmtime-v1"));
  ASSERT_TRUE(uninstall());
  EXPECT_EQ(root_.tree(), before);
}

TEST_F(InstallerTest, IsContentWhereKWasmHasInstalledEverythingAlready) {
  root_.put(kConfig, std::string(kBefore) +
                         "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.wasmtime]\n"
                         "  runtime_type = \"/opt/kwasm/bin/containerd-shim-wasmtime-v1\"\n");
  const auto before = root_.tree();

  ASSERT_TRUE(install());

  EXPECT_EQ(root_.get(kConfig), before.at(std::string(kConfig.substr(1))));
  EXPECT_EQ(service_.restarts, 0);
  EXPECT_EQ(state(), Status::State::Installed);
  ASSERT_TRUE(uninstall());
  EXPECT_EQ(root_.tree(), before);
}

TEST_F(InstallerTest, ChangesNothingInADryRun) {
  const auto before = root_.tree();

  ASSERT_TRUE(install({.run = Run::Dry}));

  EXPECT_EQ(root_.tree(), before);
  EXPECT_EQ(service_.restarts, 0);
}

TEST_F(InstallerTest, SeesWhatOthersHaveChanged) {
  const std::map<std::string, std::string> changes = {
      {"/opt/hangar-node/bin/containerd-shim-wasmtime-v1", "altered"},
      {std::string(kConfig), std::string(kBefore)}};
  for (const auto& [path, bytes] : changes) {
    ASSERT_TRUE(install());
    ASSERT_EQ(state(), Status::State::Installed);
    root_.put(path, bytes);
    EXPECT_EQ(state(), Status::State::Incomplete) << path;
  }
  ASSERT_TRUE(install());
  EXPECT_EQ(state(), Status::State::Installed);
}

TEST_F(InstallerTest, UndoesWithoutItsLockFileToo) {
  ASSERT_TRUE(install());
  root_.put("/opt/hangar-node/lock.json", "{ cut o");

  ASSERT_TRUE(uninstall());

  EXPECT_EQ(root_.get(kConfig), kBefore);
}

TEST_F(InstallerTest, HasNothingToUndoWhereNothingIs) {
  const auto before = root_.tree();

  ASSERT_TRUE(uninstall());

  EXPECT_EQ(root_.tree(), before);
  EXPECT_EQ(service_.restarts, 0);
  EXPECT_EQ(state(), Status::State::NotInstalled);
}

// Whatever the n-th change is: if the disk is full from there on, containerd's configuration is
// whole, and as soon as there is space again the next run finishes or rolls back everything.
class InstallerOnAFullDisk : public InstallerTest,
                             public testing::WithParamInterface<std::string_view> {
 protected:
  // Runs `act` with 0, 1, 2... possible changes until it succeeds; `check` after every failure.
  template <class Act, class Check>
  void sweep(const Act& act, const Check& check) {
    for (int changes = 0;; ++changes) {
      ASSERT_LT(changes, 100);
      FailingFiles failing(files_, changes, GetParam());
      Installer installer(failing, service_, *report_, {});
      const Result<> done = act(installer);
      if (!failing.has_failed()) {
        ASSERT_TRUE(done);
        ASSERT_GT(changes, 2);
        return;
      }
      ASSERT_FALSE(done) << "nothing may be called done with " << changes << " changes";
      check(done.error());
    }
  }
};

TEST_P(InstallerOnAFullDisk, LeavesANodeThatCanBeUninstalledToTheByte) {
  const auto before = root_.tree();
  const std::string after = [&] {
    EXPECT_TRUE(install());
    std::string text = root_.get(kConfig);
    EXPECT_TRUE(uninstall());
    return text;
  }();

  sweep([&](Installer& some) { return some.install(std::cref(runtimes_)); },
        [&](const Error& error) {
          EXPECT_NE(exit_status_of(error), kExitDone);
          const std::string now = root_.get(kConfig);
          EXPECT_TRUE(now == kBefore || now == after) << now;
          const bool has_program = root_.has("/opt/hangar-node/bin/containerd-shim-wasmtime-v1");
          EXPECT_TRUE(now == kBefore || has_program) << "a handler without its program";
          ASSERT_TRUE(uninstall());
          ASSERT_EQ(root_.get(kConfig), kBefore);
          auto left = root_.tree();
          // Directories that were created before the lock file could be written are not on
          // any list.
          std::erase_if(left, [&](const auto& entry) {
            return entry.second == "directory" && !before.contains(entry.first);
          });
          ASSERT_EQ(left, before);
        });
}

TEST_P(InstallerOnAFullDisk, LeavesANodeThatTheNextRunFinishes) {
  sweep([&](Installer& some) { return some.install(std::cref(runtimes_)); },
        [&](const Error&) {
          ASSERT_TRUE(install());
          ASSERT_EQ(state(), Status::State::Installed);
          ASSERT_TRUE(uninstall());
        });
}

TEST_P(InstallerOnAFullDisk, OwesTheRestartOfAChangeThatWasMade) {
  // The change is on disk and the process was killed before the restart: as with --no-restart.
  ASSERT_TRUE(install({.restart = Restart::Never}));

  sweep([&](Installer& some) { return some.install(std::cref(runtimes_)); },
        [&](const Error&) {
          service_.restarts = 0;
          ASSERT_TRUE(install());
          ASSERT_TRUE(uninstall());
          ASSERT_TRUE(install({.restart = Restart::Never}));
        });
}

TEST_P(InstallerOnAFullDisk, FinishesAnUninstallLater) {
  ASSERT_TRUE(uninstall());
  const auto before = root_.tree();
  ASSERT_TRUE(install());

  sweep([&](Installer& some) { return some.uninstall(); },
        [&](const Error&) {
          ASSERT_TRUE(uninstall());
          ASSERT_EQ(root_.tree(), before);
          ASSERT_TRUE(install());
        });
  EXPECT_EQ(root_.tree(), before);
}

INSTANTIATE_TEST_SUITE_P(All, InstallerOnAFullDisk,
                         testing::Values(reason::kNoSpace, reason::kReadOnly),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hangar::node_install
