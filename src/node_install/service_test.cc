#include "node_install/service.h"

#include "node_install/distribution.h"
#include "node_install/files.h"
#include "node_install/outcome.h"
#include "node_install/test_doubles.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hangar::node_install {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

bool nothing() {
  return true;
}

TEST(RunCommand, GivesTheEndOfWhatAFailedOneSaid) {
  const auto run = run_command({"/bin/sh", "-c", "echo no such unit >&2; exit 5"},
                               steady_clock::now() + seconds(60), nothing);

  ASSERT_FALSE(run);
  EXPECT_TRUE(run.error().message().contains("status 5")) << run.error().message();
  EXPECT_TRUE(run.error().message().contains("no such unit"));
}

TEST(RunCommand, DoesNotWaitForServicesThatItStarted) {
  // The service keeps the output open for longer than the test may take.
  const auto run = run_command({"/bin/sh", "-c", "sleep 300 & echo $!"},
                               steady_clock::now() + seconds(60), nothing);

  EXPECT_TRUE(run);
}

TEST(RunCommand, EndsWhatIsLate) {
  const auto run = run_command({"/bin/sh", "-c", "exec sleep 300"}, steady_clock::now(), nothing);

  ASSERT_FALSE(run);
  EXPECT_TRUE(run.error().message().contains("did not exit in time"));
}

TEST(RunCommand, SaysThatThereIsNoSuchProgram) {
  EXPECT_FALSE(run_command({"/absent"}, steady_clock::now() + seconds(60), nothing));
}

class NodeServiceTest : public testing::Test {
 protected:
  NodeService service(std::string command = "") {
    return {files_, {.root = root_.path().string(), .restart_command = std::move(command)}};
  }

  TempRoot root_;
  NodeFiles files_ = NodeFiles::open(root_.path().string()).value();
  const Node node_{.socket = "/run/containerd/containerd.sock", .services = {"containerd"}};
};

TEST_F(NodeServiceTest, RefusesToRestartAnotherRootsContainerd) {
  root_.put("/usr/bin/systemctl", "");

  const auto checked = service().check(node_);

  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().reason(), reason::kUsage);
  EXPECT_TRUE(checked.error().message().contains("process 1")) << checked.error().message();
}

TEST_F(NodeServiceTest, RefusesWhatNothingCanRestart) {
  const auto checked = service().check(node_);

  ASSERT_FALSE(checked);
  EXPECT_TRUE(checked.error().message().contains("--restart-command"));
}

TEST_F(NodeServiceTest, IsNotBackWhileNobodyListens) {
  EXPECT_TRUE(service("true").check(node_));

  const auto back = service("true").wait_until_back(node_, steady_clock::now());

  ASSERT_FALSE(back);
  EXPECT_TRUE(back.error().message().contains("not back")) << back.error().message();
}

TEST_F(NodeServiceTest, TakesTheUnitThatIsEnabled) {
  root_.put("/usr/bin/systemctl", "");
  root_.put("/usr/local/lib/systemd/system/rke2-agent.service", "");
  root_.put("/usr/local/lib/systemd/system/rke2-server.service", "");
  root_.put("/etc/systemd/system/multi-user.target.wants/rke2-server.service", "");

  EXPECT_EQ(service().command_for({.services = {"rke2-agent", "rke2-server"}}).value(),
            (NodeService::Command{"/usr/bin/systemctl", "restart", "rke2-server"}));
}

TEST_F(NodeServiceTest, TakesTheUnitThatIsThere) {
  root_.put("/bin/systemctl", "");
  root_.put("/etc/systemd/system/k3s-agent.service", "");

  EXPECT_EQ(service().command_for({.services = {"k3s", "k3s-agent"}}).value(),
            (NodeService::Command{"/bin/systemctl", "restart", "k3s-agent"}));
}

TEST_F(NodeServiceTest, FindsAK3sOfAnotherName) {
  root_.put("/bin/systemctl", "");
  root_.put("/etc/systemd/system/k3s-edge.service", "");

  EXPECT_EQ(service()
                .command_for({.distribution = Distribution::K3s, .services = {"k3s", "k3s-agent"}})
                .value(),
            (NodeService::Command{"/bin/systemctl", "restart", "k3s-edge"}));
}

TEST_F(NodeServiceTest, UsesOpenRcWithoutSystemd) {
  root_.put("/etc/init.d/k3s", "");

  EXPECT_EQ(service().command_for({.services = {"k3s", "k3s-agent"}}).value(),
            (NodeService::Command{"/etc/init.d/k3s", "restart"}));
}

}  // namespace
}  // namespace hangar::node_install
