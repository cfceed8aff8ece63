#include "nodes/manifests.h"

#include "json/yaml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hangar::nodes {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

NodeView installing_node() {
  return {.name = "n1",
          .uid = "u1",
          .resource_version = "7",
          .state = {.phase = Phase::Installing, .attempt = 3}};
}

const JobOptions kJobs = {.namespace_ = "kwasm",
                          .image = "registry.example.com/installer:v1",
                          .uninstall_command = {"hangar-node", "uninstall"},
                          .probe_image = "registry.example.com/hello:v1",
                          .probe_runtime_class = "wasmtime-probe"};

TEST(Names, OfJobsAreThePublishedOnes) {
  EXPECT_EQ(job_name("n1", Action::Install), "n1-provision-kwasm");
  EXPECT_EQ(label_value("n1"), "n1");
}

TEST(Names, OfLongNodesFitAndStayApart) {
  const std::string common(60, 'a');
  for (const Action action : {Action::Install, Action::Uninstall, Action::Probe}) {
    const std::string one = job_name(common + ".one.example.com", action);
    const std::string two = job_name(common + ".two.example.com", action);

    EXPECT_LE(one.size(), 63U);
    EXPECT_NE(one, two);
    EXPECT_EQ(one, job_name(common + ".one.example.com", action));
  }
  EXPECT_EQ(label_value(std::string(63, 'a')), std::string(63, 'a'));
  EXPECT_EQ(label_value(std::string(64, 'a')).size(), 63U);
}

TEST(Names, AreNotCutBehindADot) {
  const std::string name = label_value(std::string(53, 'a') + "." + std::string(100, 'b'));

  EXPECT_THAT(name, testing::Not(HasSubstr(".-")));
  EXPECT_EQ(name.size(), 62U);
}

TEST(JobManifest, IsThePublishedOneAndWhatItLacked) {
  const json::Value job = job_manifest(installing_node(), Action::Install, kJobs);

  const json::Value wanted = yaml(R"({
    apiVersion: batch/v1, kind: Job,
    metadata: {
      name: n1-provision-kwasm, namespace: kwasm,
      labels: {kwasm.sh/job: "true", nodes.hangar.dev/action: install, nodes.hangar.dev/attempt: "3"},
      ownerReferences: [{apiVersion: v1, kind: Node, name: n1, uid: u1, controller: true}]},
    spec: {
      backoffLimit: 2, activeDeadlineSeconds: 600, ttlSecondsAfterFinished: 3600,
      template: {
        metadata: {labels: {kwasm.sh/job: "true", nodes.hangar.dev/action: install, nodes.hangar.dev/attempt: "3"}},
        spec: {
          nodeName: n1, restartPolicy: Never, hostPID: true, automountServiceAccountToken: false,
          enableServiceLinks: false, tolerations: [{operator: Exists}],
          volumes: [{name: root-mount, hostPath: {path: /}}],
          containers: [{
            name: kwasm-provision, image: registry.example.com/installer:v1,
            securityContext: {privileged: true},
            env: [{name: NODE_ROOT, value: /mnt/node-root}],
            volumeMounts: [{name: root-mount, mountPath: /mnt/node-root}],
            resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 512Mi}},
            terminationMessagePolicy: FallbackToLogsOnError}]}}}})");
  EXPECT_TRUE(json::equal(job, wanted)) << json::dump_pretty(job);
}

TEST(JobManifest, ThatUninstallsRunsAnotherCommandOfTheSameImage) {
  const json::Value job = job_manifest(installing_node(), Action::Uninstall, kJobs);

  const json::Array& containers = *json::array_at(job, {"spec", "template", "spec", "containers"});
  EXPECT_EQ(json::string_at(containers[0], {"image"}), kJobs.image);
  EXPECT_EQ(json::dump(*json::find(containers[0], {"command"})), R"(["hangar-node","uninstall"])");
}

TEST(JobManifest, FetchesRuntimesWithoutPowerOverTheNode) {
  JobOptions options = kJobs;
  options.runtimes = {"crun=https://example.com/crun#sha256:aa", "crun-x=http://x#sha256:bb"};
  options.checksums = {"crun=sha256:aa", "crun-x=sha256:bb"};
  options.fetch_image = "registry.example.com/hangar:v1";

  const json::Value spec = *json::find(job_manifest(installing_node(), Action::Install, options),
                                       {"spec", "template", "spec"});

  EXPECT_TRUE(json::equal(*json::find(spec, {"initContainers"}), yaml(R"([{
    name: fetch-runtimes, image: registry.example.com/hangar:v1,
    command: [hangar-node-fetch, --to, /runtimes,
              "crun=https://example.com/crun#sha256:aa", "crun-x=http://x#sha256:bb"],
    securityContext: {
      runAsNonRoot: true, runAsUser: 2000065532, runAsGroup: 2000065532, allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}},
    volumeMounts: [{name: runtimes, mountPath: /runtimes}],
    resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 512Mi}},
    terminationMessagePolicy: FallbackToLogsOnError}])")));
  EXPECT_TRUE(json::equal(*json::find(spec, {"volumes"}), yaml(R"([
    {name: root-mount, hostPath: {path: /}}, {name: runtimes, emptyDir: {}}])")));
  const json::Value& installer = (*json::array_at(spec, {"containers"}))[0];
  EXPECT_TRUE(json::equal(*json::find(installer, {"volumeMounts"}), yaml(R"([
    {name: root-mount, mountPath: /mnt/node-root},
    {name: runtimes, mountPath: /runtimes, readOnly: true}])")));
  // The checksums come from the configuration; the installer does not trust a list of the
  // other container.
  EXPECT_TRUE(json::equal(*json::find(installer, {"command"}), yaml(R"(
    [hangar-node, install, --runtimes-dir, /runtimes,
     --checksum, "crun=sha256:aa", --checksum, "crun-x=sha256:bb"])")));
  for (const Action other : {Action::Uninstall, Action::Probe}) {
    EXPECT_EQ(json::find(job_manifest(installing_node(), other, options),
                         {"spec", "template", "spec", "initContainers"}),
              nullptr);
  }
}

TEST(JobManifest, FetchesThroughAProxyAndTrustsTheCasThatAreNamed) {
  JobOptions options = kJobs;
  options.runtimes = {"crun=https://example.com/crun#sha256:aa"};
  options.fetch_image = "registry.example.com/hangar:v1";
  options.fetch_proxy = "http://proxy:3128";
  options.fetch_no_proxy = ".example.com";
  options.fetch_ca_config_map = "our-ca";

  const json::Value spec = *json::find(job_manifest(installing_node(), Action::Install, options),
                                       {"spec", "template", "spec"});

  const json::Value& fetch = (*json::array_at(spec, {"initContainers"}))[0];
  EXPECT_TRUE(json::equal(*json::find(fetch, {"command"}), yaml(R"(
    [hangar-node-fetch, --to, /runtimes, --ca-file, /etc/hangar-ca/ca.crt,
     "crun=https://example.com/crun#sha256:aa"])")));
  EXPECT_TRUE(json::equal(*json::find(fetch, {"env"}), yaml(R"([
    {name: http_proxy, value: "http://proxy:3128"}, {name: HTTPS_PROXY, value: "http://proxy:3128"},
    {name: NO_PROXY, value: .example.com}])")));
  EXPECT_TRUE(json::equal(*json::find(fetch, {"volumeMounts"}), yaml(R"([
    {name: runtimes, mountPath: /runtimes}, {name: ca, mountPath: /etc/hangar-ca, readOnly: true}])")));
  EXPECT_TRUE(json::equal(*json::find(spec, {"volumes"}), yaml(R"([
    {name: root-mount, hostPath: {path: /}}, {name: runtimes, emptyDir: {}},
    {name: ca, configMap: {name: our-ca, items: [{key: ca.crt, path: ca.crt}]}}])")));
  // The container with power over the node opens no connection.
  const json::Value& installer = (*json::array_at(spec, {"containers"}))[0];
  EXPECT_EQ(json::dump(*json::find(installer, {"env"})),
            R"([{"name":"NODE_ROOT","value":"/mnt/node-root"}])");
}

TEST(JobManifest, PullsWithTheSecretsThatAreNamed) {
  JobOptions options = kJobs;
  options.pull_secrets = {"one", "two"};

  for (const Action action : {Action::Install, Action::Uninstall, Action::Probe}) {
    const json::Value job = job_manifest(installing_node(), action, options);
    EXPECT_EQ(json::dump(*json::find(job, {"spec", "template", "spec", "imagePullSecrets"})),
              R"([{"name":"one"},{"name":"two"}])");
  }
}

TEST(VersionOf, ChangesWithTheRuntimesAndNotWithWhereTheyComeFrom) {
  EXPECT_EQ(version_of("i:v1", {}), "i:v1");
  const std::string version =
      version_of("i:v1", {"a=https://x/y=z#sha256:11", "b@arm64=https://x#sha256:22"});

  EXPECT_THAT(version, testing::MatchesRegex("i:v1\\+runtimes\\.[0-9a-f]{8}"));
  EXPECT_EQ(version, version_of("i:v1", {"b@arm64=http://mirror/x#y#sha256:22",
                                         "a=http://mirror#sha256:11"}));
  EXPECT_NE(version,
            version_of("i:v1", {"a=https://x/y=z#sha256:12", "b@arm64=https://x#sha256:22"}));
  EXPECT_NE(version,
            version_of("i:v1", {"a=https://x/y=z#sha256:11", "b@amd64=https://x#sha256:22"}));
  EXPECT_NE(version,
            version_of("i:v2", {"a=https://x/y=z#sha256:11", "b@arm64=https://x#sha256:22"}));
}

TEST(VersionOf, AnArchiveIsTheProgramInIt) {
  const auto of = [](const std::string& archive, const std::string& program) {
    return version_of("i", {"a=https://x/a.tgz#sha256:" + archive + "#program-sha256:" + program});
  };
  EXPECT_EQ(of("11", "33"), of("22", "33"));
  EXPECT_NE(of("11", "33"), of("11", "44"));
}

TEST(JobManifest, OfAProbeHasNoPrivilege) {
  const json::Value job = job_manifest(installing_node(), Action::Probe, kJobs);

  const json::Value& spec = *json::find(job, {"spec", "template", "spec"});
  EXPECT_EQ(json::string_at(spec, {"runtimeClassName"}), "wasmtime-probe");
  EXPECT_EQ(json::find(spec, {"hostPID"}), nullptr);
  EXPECT_EQ(json::find(spec, {"volumes"}), nullptr);
  EXPECT_EQ(json::find((*json::array_at(spec, {"containers"}))[0], {"securityContext"}), nullptr);
}

TEST(JobView, IsReadFromWhatWeMakeOfANode) {
  json::Value job = job_manifest(installing_node(), Action::Install, kJobs);
  json::set_at(job, {"metadata", "uid"}, "j1");
  json::set_at(job, {"status"}, yaml(R"({conditions: [
    {type: FailureTarget, status: "True", message: no},
    {type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often, lastTransitionTime: "2026-01-02T03:04:05Z"}]})"));

  const JobView view = job_view(job);

  EXPECT_EQ(view.node, "n1");
  EXPECT_EQ(view.state, JobState::Failed);
  EXPECT_EQ(view.problem, "too often");
  EXPECT_EQ(to_rfc3339(view.finished_at), "2026-01-02T03:04:05Z");
  EXPECT_TRUE(is_for(view, Action::Install, installing_node()));
}

TEST(JobView, OfThePublishedOperatorIsForNobody) {
  const JobView view = job_view(yaml(R"({
    metadata: {name: n1-provision-kwasm, labels: {kwasm.sh/job: "true"},
               ownerReferences: [{apiVersion: v1, kind: Node, name: n1, uid: u1}]}})"));

  EXPECT_EQ(view.node, "n1");
  EXPECT_FALSE(is_for(view, Action::Install, installing_node()));
}

TEST(PodProblem, IsTheLastWordsOfItsContainer) {
  EXPECT_EQ(pod_problem(yaml(R"({status: {phase: Failed, containerStatuses: [
    {image: i, state: {terminated: {exitCode: 3, message: "first line\nno containerd here\n"}}}]}})")),
            "exit code 3: first line no containerd here");
  EXPECT_EQ(pod_problem(yaml(R"({status: {phase: Pending, containerStatuses: [
    {image: "nowhere:v1", state: {waiting: {reason: ImagePullBackOff, message: "Back-off 10s"}}}]}})")),
            "the image nowhere:v1 cannot be pulled");
  EXPECT_EQ(pod_problem(yaml("{status: {phase: Failed, reason: Evicted}}")), "Evicted");
  EXPECT_EQ(pod_problem(yaml(R"({status: {phase: Succeeded, containerStatuses: [
    {state: {terminated: {exitCode: 0}}}]}})")),
            "");
}

TEST(PodProblem, IsWhyTheKubeletCannotStartAContainer) {
  const auto waiting = [](std::string_view reason) {
    return pod_problem(yaml(fmt::format(
        R"({{status: {{phase: Pending, containerStatuses: [
          {{image: "i:v1", state: {{waiting: {{reason: {}, message: "why\nnot"}}}}}}]}}}})",
        reason)));
  };

  EXPECT_EQ(waiting("ErrImagePull"), "the image i:v1 cannot be pulled");
  EXPECT_EQ(waiting("InvalidImageName"), "i:v1 is not the name of an image");
  for (const std::string_view reason : {"ErrImageNeverPull", "CreateContainerConfigError",
                                        "CreateContainerError", "RunContainerError"}) {
    EXPECT_EQ(waiting(reason), fmt::format("{}: why not", reason));
  }
  EXPECT_EQ(waiting("ContainerCreating"), "");
}

TEST(PodProblem, BeforeAnythingHasRunMeansThatThePodIsStuck) {
  EXPECT_TRUE(is_pod_stuck(yaml(R"({status: {phase: Pending, initContainerStatuses: [
    {image: i, state: {waiting: {reason: ErrImagePull}}}]}})")));
  EXPECT_FALSE(is_pod_stuck(yaml(R"({status: {phase: Pending, containerStatuses: [
    {image: i, state: {waiting: {reason: ContainerCreating}}}]}})")));
  EXPECT_FALSE(is_pod_stuck(yaml(R"({status: {phase: Failed, containerStatuses: [
    {image: i, state: {terminated: {exitCode: 1}}}]}})")));
}

TEST(PodProblem, IsShortAndPrintableWhateverAnInstallerPrints) {
  const json::Value pod = json::Object{
      {"status",
       json::Object{
           {"containerStatuses",
            json::Array{json::Object{
                {"state",
                 json::Object{{"terminated", json::Object{{"exitCode", 1},
                                                          {"message", std::string(9000, 'x') +
                                                                          "\x01\xC3\xA9"}}}}}}}}}}};

  const std::string problem = pod_problem(pod);

  EXPECT_LT(problem.size(), 600U);
  EXPECT_THAT(problem, testing::EndsWith("x \xC3\xA9"));
}

TEST(NodePatch, IsReadBackAsTheStateThatWasWritten) {
  NodeView node = installing_node();
  const NodeState state = {.phase = Phase::Failed,
                           .action = Action::Uninstall,
                           .attempt = 4,
                           .failures = 2,
                           .since = WallTime(1'800'000'000s),
                           .version = "v1",
                           .target = "v2",
                           .last_error = "no"};

  json::Value patch = node_patch(node, {.state = state, .labels = LabelChange::Set});
  json::set_at(patch, {"metadata", "name"}, "n1");
  const NodeView read = node_view(patch);

  EXPECT_EQ(read.state, state);
  EXPECT_EQ(read.resource_version, "7");
  EXPECT_TRUE(read.has_published_label);
  EXPECT_TRUE(read.has_provisioned_label);
}

TEST(NodePatch, OfNoStateLeavesNothing) {
  const json::Value patch =
      node_patch(installing_node(), {.labels = LabelChange::Remove, .is_retry_over = true});

  for (const std::string_view part : {"annotations", "labels"}) {
    for (const auto& member : *json::object_at(patch, {"metadata", part}))
      EXPECT_TRUE(member.value().is_null()) << member.key();
  }
  EXPECT_EQ(json::object_at(patch, {"metadata", "annotations"})->size(), 9U);
}

TEST(NodeView, TakesWhatItCannotReadAsNotWritten) {
  const NodeView node = node_view(yaml(R"({metadata: {name: n1, annotations: {
    kwasm.sh/kwasm-node: "yes", nodes.hangar.dev/phase: Exploded, nodes.hangar.dev/attempt: "-3",
    nodes.hangar.dev/failures: "99999999999999999999", nodes.hangar.dev/since: yesterday}},
    status: {conditions: [1, {type: Ready}]}})"));

  EXPECT_EQ(node.wish, Wish::Unsaid);
  EXPECT_EQ(node.state, NodeState{});
  EXPECT_FALSE(node.is_ready);
}

TEST(RuntimeClassManifest, SchedulesToProvisionedNodes) {
  const RuntimeClass fast = parse_runtime_class("fast=wasmtime").value();

  EXPECT_TRUE(json::equal(runtime_class_manifest(fast, Scheduling::Provisioned), yaml(R"({
    apiVersion: node.k8s.io/v1, kind: RuntimeClass, handler: wasmtime,
    metadata: {name: fast, labels: {app.kubernetes.io/managed-by: hangar-nodes}},
    scheduling: {nodeSelector: {nodes.hangar.dev/provisioned: "true"}}})")));
  EXPECT_TRUE(json::equal(runtime_class_manifest(fast, Scheduling::Anywhere), yaml(R"({
    apiVersion: node.k8s.io/v1, kind: RuntimeClass, handler: wasmtime,
    metadata: {name: fast-probe, labels: {app.kubernetes.io/managed-by: hangar-nodes}}})")));
}

TEST(ParseRuntimeClass, RefusesWhatIsNoName) {
  for (const std::string_view text : {"", "=", "a=", "=a", "A", "a=b=c", "a b"})
    EXPECT_FALSE(parse_runtime_class(text)) << text;
  EXPECT_EQ(parse_runtime_class("wasmtime").value().handler, "wasmtime");
}

TEST(Record, IsReadBackAsItWasWritten) {
  const Record record = {.resource_version = "5",
                         .slots = {"a", "b.example.com"},
                         .leaving = {"a"},
                         .progress = {.standing = Standing::Halted, .message = "node a failed"},
                         .version = "v1",
                         .auto_provision = true};

  EXPECT_EQ(parse_record(record_manifest(record, "kwasm")), record);
  EXPECT_EQ(parse_record(record_manifest(Record{}, "kwasm")), Record{});
}

TEST(NewSlots, AreThoseThatTheRecordBeforeDidNotHave) {
  EXPECT_THAT(new_slots({}, {.slots = {"n1", "n2"}}), ElementsAre("n1", "n2"));
  EXPECT_THAT(new_slots({.slots = {"n1"}}, {.slots = {"n1", "n2"}}), ElementsAre("n2"));
}

TEST(NewSlots, ANodeThatIsLeavingHasNone) {
  EXPECT_THAT(new_slots({}, {.slots = {"n1"}, .leaving = {"n1"}}), testing::IsEmpty());
  // The slot is no longer given up: no other event would reconcile the node.
  EXPECT_THAT(new_slots({.slots = {"n1"}, .leaving = {"n1"}}, {.slots = {"n1"}}),
              ElementsAre("n1"));
}

}  // namespace
}  // namespace hangar::nodes
