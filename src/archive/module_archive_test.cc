#include "archive/module_archive.h"

#include "archive/limits.h"
#include "base/digest.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/module_store.h"
#include "testing/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::archive {
namespace {

// No API server: with these modules keep() returns before it needs one. A stored module that is a
// pipe keeps its writer busy until the test closes it.
class ModuleArchiveTest : public ::testing::Test {
 protected:
  ModuleArchiveTest() {
    std::string name = (std::filesystem::temp_directory_path() / "archive.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    store_ = modules::ModuleStore::open(root_ / "modules").value();
    archive_.emplace(ModuleArchive::Parts{
        .loop = session_.loop,
        .workers = workers_,
        .client = session_.client,
        .store = *store_,
        .format = {.label = "label", .name_prefix = "copy-", .field_manager = "test"}});
  }
  ~ModuleArchiveTest() override {
    session_.loop.run_until([&] { return running_ == 0; });
    std::filesystem::remove_all(root_);
  }

  // The digest of a module whose read blocks until end_of().
  std::string slow(const std::string& text) {
    std::string sha256 = sha256_hex(text);
    EXPECT_EQ(::mkfifo(path_of(sha256).c_str(), 0600), 0);
    return sha256;
  }
  void end_of(const std::string& sha256) {
    int pipe = -1;
    // Fails until its reader has opened it.
    while ((pipe = ::open(path_of(sha256).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
      run_ready();
    std::filesystem::remove(path_of(sha256));
    ASSERT_EQ(::close(pipe), 0);
  }

  void keep(const std::string& call, std::string namespace_name, std::string sha256,
            std::stop_token stop = {}) {
    ++running_;
    session_.loop.spawn([](ModuleArchiveTest& self, std::string name, ArchivedModule module,
                           std::stop_token token) -> io::Task<void> {
      const Result<> kept = co_await self.archive_->keep(std::move(module), std::move(token));
      self.ended_.emplace(std::move(name), kept ? std::nullopt : std::optional(kept.error()));
      --self.running_;
    }(*this, call, {.namespace_ = std::move(namespace_name), .sha256 = std::move(sha256)},
                                                  std::move(stop)));
  }
  void remove_unless(const std::string& call, std::string namespace_name, std::string sha256) {
    ++running_;
    session_.loop.spawn(
        [](ModuleArchiveTest& self, std::string name, ArchivedModule module) -> io::Task<void> {
          const auto is_needed = [&] { return self.ended_.emplace(name, std::nullopt).second; };
          EXPECT_TRUE(co_await self.archive_->remove_unless(std::move(module), is_needed, {}));
          --self.running_;
        }(*this, call, {.namespace_ = std::move(namespace_name), .sha256 = std::move(sha256)}));
  }
  void wait_for(const std::string& call) {
    session_.loop.run_until([&] { return ended_.contains(call); });
  }
  void run_ready() {
    for (int turn = 0; turn < 10; ++turn) {
      bool is_done = false;
      session_.loop.post([&] { is_done = true; });
      session_.loop.run_until([&] { return is_done; });
    }
  }
  ErrorKind kind_of(const std::string& call) { return ended_.at(call)->kind(); }

  [[nodiscard]] std::filesystem::path path_of(const std::string& sha256) const {
    return root_ / "modules" / (sha256 + ".wasm.gz");
  }

  // Not a digest: keep() waits only for a turn of its namespace.
  static constexpr const char* kQuick = "quick";

  hangar::testing::Session session_{
      kube::Login{.source = "test", .cluster = {.server = "http://127.0.0.1:1"}}};
  io::Workers workers_{session_.loop, 2};
  std::filesystem::path root_;
  std::unique_ptr<modules::ModuleStore> store_;
  std::optional<ModuleArchive> archive_;
  int running_ = 0;  // Calls that have not returned.
  std::map<std::string, std::optional<Error>> ended_;
};

TEST_F(ModuleArchiveTest, CopiesOfOneNamespaceHoldUpNoOther) {
  const std::string first = slow("first");
  const std::string second = slow("second");
  keep("first", "greedy", first);
  keep("second", "greedy", second);
  for (int index = 0; index < 10; ++index)
    keep("another", "greedy", kQuick);

  keep("mine", "team", kQuick);
  wait_for("mine");
  remove_unless("removed", "neighbour", sha256_hex("mine"));
  wait_for("removed");

  EXPECT_EQ(kind_of("mine"), ErrorKind::NotFound);
  EXPECT_FALSE(ended_.contains("first"));
  EXPECT_FALSE(ended_.contains("another"));
  end_of(first);
  wait_for("first");
  end_of(second);
  wait_for("another");
}

TEST_F(ModuleArchiveTest, NothingIsRemovedInANamespaceWhileACopyIsMadeThere) {
  const std::string module = slow("module");
  keep("kept", "team", module);

  remove_unless("removed", "team", module);
  run_ready();

  EXPECT_FALSE(ended_.contains("removed"));
  end_of(module);
  wait_for("removed");
  EXPECT_TRUE(ended_.contains("kept")) << "it was before";
}

TEST_F(ModuleArchiveTest, RefusesWhatWaitsBeyondItsBoundForNow) {
  const std::string module = slow("module");
  keep("kept", "team", module);
  for (std::size_t index = 0; index < limits::kArchiveWaitingMax; ++index)
    keep("waits", "team", kQuick);
  run_ready();
  EXPECT_FALSE(ended_.contains("waits"));

  keep("beyond", "team", kQuick);
  keep("neighbour", "other", kQuick);
  wait_for("beyond");
  wait_for("neighbour");

  EXPECT_EQ(kind_of("beyond"), ErrorKind::Unavailable);
  EXPECT_EQ(kind_of("neighbour"), ErrorKind::NotFound) << "which has a line of its own";
  end_of(module);
  wait_for("waits");
}

TEST_F(ModuleArchiveTest, WhatWaitsCanBeStopped) {
  const std::string module = slow("module");
  keep("kept", "team", module);
  std::stop_source stop;
  keep("stopped", "team", kQuick, stop.get_token());

  stop.request_stop();
  wait_for("stopped");

  EXPECT_EQ(kind_of("stopped"), ErrorKind::Cancelled);
  end_of(module);
  wait_for("kept");
}

}  // namespace
}  // namespace hangar::archive
