// The basis of every other conformance test: that the control plane of tests behaves as a real one,
// that its faults are faults, and that no part of it stays behind.
#include "testing/control_plane.h"

#include "testing/shared_control_plane.h"
#include "testing/subprocess.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hangar::testing {
namespace {

const SharedControlPlane kShared(
    {.simulated_nodes = 1, .proxy = true, .registry = true, .audit = true});

constexpr const char* kJob = R"(
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {hangar.dev/test-outcome: OUTCOME}}
    spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
)";

std::string job_that_ends(const std::string& outcome) {
  std::string job = kJob;
  return job.replace(job.find("OUTCOME"), 7, outcome);
}

#define ASSERT_OK(...)                                     \
  do {                                                     \
    const auto& ok_ = (__VA_ARGS__);                       \
    ASSERT_TRUE(ok_.has_value()) << ok_.error().message(); \
  } while (false)

TEST(ControlPlane, CompletesJobsOnSimulatedNodes) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const auto name = cluster.unique_namespace();
  ASSERT_OK(name);

  ASSERT_OK(cluster.kubectl({"apply", "-n", *name, "-f", "-"}, job_that_ends("well")));

  ASSERT_OK(cluster.kubectl(
      {"wait", "-n", *name, "--for=condition=Complete", "job/job", "--timeout=50s"}));
}

TEST(ControlPlane, FailsAJobThatIsToFail) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const auto name = cluster.unique_namespace();
  ASSERT_OK(name);

  ASSERT_OK(cluster.kubectl({"apply", "-n", *name, "-f", "-"}, job_that_ends("fail")));

  ASSERT_OK(
      cluster.kubectl({"wait", "-n", *name, "--for=condition=Failed", "job/job", "--timeout=50s"}));
}

TEST(ControlPlane, KubectlReportsItsOwnMessage) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();

  const auto got = cluster.kubectl({"get", "configmap", "absent"});

  ASSERT_FALSE(got.has_value());
  EXPECT_NE(got.error().message().find("configmaps \"absent\" not found"), std::string::npos)
      << got.error().message();
}

TEST(ControlPlane, ProxyCanBeCutAndRestored) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const Command readyz = {.arguments = {"curl", "-sS", "--noproxy", "*", "--cacert",
                                        cluster.ca_file(), cluster.proxied_url() + "/readyz"}};

  ASSERT_OK(cluster.cut());
  const auto while_cut = run(readyz);
  ASSERT_OK(cluster.restore());
  const auto restored = run(readyz);

  ASSERT_OK(while_cut);
  EXPECT_NE(while_cut->exit_code, 0);
  ASSERT_OK(restored);
  EXPECT_EQ(restored->output, "ok");
}

TEST(ControlPlane, ProxyResetsConnectionsUntilHealed) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const Command readyz = {.arguments = {"curl", "-sS", "--noproxy", "*", "--cacert",
                                        cluster.ca_file(), cluster.proxied_url() + "/readyz"}};

  ASSERT_OK(cluster.reset_connections(std::chrono::milliseconds(0)));
  const auto while_faulty = run(readyz);
  ASSERT_OK(cluster.heal());
  const auto healed = run(readyz);

  ASSERT_OK(while_faulty);
  EXPECT_NE(while_faulty->exit_code, 0);
  ASSERT_OK(healed);
  EXPECT_EQ(healed->output, "ok");
}

TEST(ControlPlane, KeepsItsStateWhenTheApiServerIsKilled) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const auto name = cluster.unique_namespace();
  ASSERT_OK(name);
  const std::string url_before = cluster.url();

  ASSERT_OK(cluster.kill(Component::ApiServer));
  EXPECT_FALSE(cluster.kubectl({"get", "namespace", *name}).has_value());
  ASSERT_OK(cluster.start_again(Component::ApiServer));

  ASSERT_OK(cluster.kubectl({"get", "namespace", *name}));
  EXPECT_EQ(cluster.url(), url_before);
}

TEST(ControlPlane, RegistryTakesModulesInBothForms) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const std::string file = ::testing::TempDir() + "module.wasm";
  std::ofstream(file) << std::string("\0asm\1\0\0\0", 8);

  const auto oras = cluster.push("flights/oras:v1", file, ControlPlane::PushForm::Oras);
  const auto stow = cluster.push("flights/stow:v1", file, ControlPlane::PushForm::Stow);
  const auto anonymous =
      run({.arguments = {"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--noproxy", "*",
                         cluster.registry_address() + "/v2/"}});

  ASSERT_OK(oras);
  EXPECT_TRUE(oras->starts_with("sha256:")) << *oras;
  ASSERT_OK(stow);
  EXPECT_TRUE(stow->starts_with("sha256:")) << *stow;
  ASSERT_OK(anonymous);
  EXPECT_EQ(anonymous->output, "401");
}

TEST(ControlPlane, AuditLogNamesEveryRequest) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
  const auto name = cluster.unique_namespace("audited");
  ASSERT_OK(name);

  std::ifstream log(cluster.audit_log());
  const std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());

  EXPECT_NE(text.find("\"name\":\"" + *name + "\""), std::string::npos);
}

TEST(ControlPlane, LeavesNothingBehind) {
  auto second = ControlPlane::start({.controller_manager = false});
  if (!second && SharedControlPlane::may_be_absent(second.error()))
    GTEST_SKIP() << second.error().message();
  ASSERT_OK(second);
  const std::filesystem::path directory =
      std::filesystem::path((*second)->kubeconfig()).parent_path();
  ASSERT_TRUE(std::filesystem::exists(directory));

  second->reset();

  EXPECT_FALSE(std::filesystem::exists(directory));
  // Every component has the instance's directory on its command line.
  const auto left = run({.arguments = {"pgrep", "-f", directory.string() + "/"}});
  ASSERT_OK(left);
  EXPECT_EQ(left->output, "");
}

TEST(ControlPlane, EndsWithAProgramThatIsKilled) {
  ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();  // Only to know that the programs exist.
  (void)cluster;
  const std::string directory = ::testing::TempDir() + "orphan-" + std::to_string(::getpid());
  const std::string up = "sleep 1000 & bash " HANGAR_SOURCE_DIR
                         "/dev/control-plane.sh up --watch-pid=$! --dir=" +
                         directory + " >/dev/null && kill -9 $!";

  const auto killed = run({.arguments = {"sh", "-c", up}, .deadline = std::chrono::seconds(120)});

  ASSERT_OK(killed);
  ASSERT_EQ(killed->exit_code, 0) << killed->errors;
  const auto gone =
      run({.arguments = {"sh", "-c", "while [ -e " + directory + " ]; do sleep 0.1; done"}});
  ASSERT_OK(gone);
  EXPECT_EQ(gone->exit_code, 0);
}

}  // namespace
}  // namespace hangar::testing
