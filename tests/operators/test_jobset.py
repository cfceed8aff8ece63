"""JobSet 0.10.1 (sigs.k8s.io/jobset) runs groups of Jobs. It has two controllers, field indexes, and webhooks for JobSets and for Pods."""
import base64
import calendar
import json
import time

import pytest

import seen
from cluster import ApiError, condition, eventually
from host import free_port
from published import WORK, AsProcess, InHangar, Published
from webhooks import Authority

JOBSET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
JOB, POD, SERVICE = ("batch/v1", "Job"), ("v1", "Pod"), ("v1", "Service")
KINDS = (JOBSET, JOB, POD, SERVICE)
ADMISSION = "admissionregistration.k8s.io/v1"
WEBHOOKS = [(ADMISSION, kind, f"jobset-{kind.removesuffix('WebhookConfiguration').lower()}-webhook-configuration")
            for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")]
CONFIGURATION = "jobset-manager-config"
FILE = "controller_manager_config.yaml"


def configure(cluster, published, **more):
    """The configuration of the module, without certificates of its own, as where cert-manager has them."""
    cluster.patch("v1", "ConfigMap", CONFIGURATION, {"data": {FILE: configuration(**more)}}, published.namespace)


def configuration(**more):
    return json.dumps({"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration", "leaderElection": {"leaderElect": True},
                       "internalCertManagement": {"enable": False}, **more})


@pytest.fixture(scope="module")
def jobset(cluster, tmp_path_factory):
    cluster.learn(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False)
    cluster.learn(*JOBSET, "jobsets")
    made = Published(cluster, "sigs.k8s.io/jobset", "v0.10.1", "config/default", tmp_path_factory.mktemp("jobset"))
    configure(cluster, made)
    # Its own ClusterRole lets it `update` them, for certificates of its own.
    prefix = "/apis/rbac.authorization.k8s.io/v1"
    cluster.request("POST", f"{prefix}/clusterroles", {"metadata": {"name": "jobset-webhooks"}, "rules": [
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": [f"{kind.lower()}s"], "resourceNames": [name], "verbs": ["get", "patch"]}
        for _, kind, name in WEBHOOKS]})
    cluster.request("POST", f"{prefix}/clusterrolebindings", {
        "metadata": {"name": "jobset-webhooks"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "jobset-webhooks"},
        "subjects": [{"kind": "ServiceAccount", "name": made.account, "namespace": made.namespace}]})
    return made


def jobs(name, replicas, parallelism, **more):
    # A pod of the control plane's simulated nodes runs until its test ends it, because of its image.
    return {"name": name, "replicas": replicas, **more, "template": {"spec": {
        "parallelism": parallelism, "completions": parallelism, "backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/train:run"}]}}}}}


def make(cluster, name, *groups, annotations=None, **spec):
    return cluster.create({"apiVersion": JOBSET[0], "kind": JOBSET[1], "metadata": {"name": name, "namespace": WORK, "annotations": annotations or {}},
                           "spec": {"replicatedJobs": list(groups), **spec}})


def get(cluster, name):
    return cluster.get(*JOBSET, name, WORK)


def ready(cluster):
    """How many jobs of each group are ready."""
    return {one["name"]: one["ready"] for one in get(cluster, "train").get("status", {}).get("replicatedJobsStatus", [])}


def attempts(cluster):
    return {one["metadata"]["name"]: one["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for one in cluster.list(*JOB, WORK)}


def pods_of(cluster, job):
    return [one for one in cluster.list(*POD, WORK, f"batch.kubernetes.io/job-name={job}") if "deletionTimestamp" not in one["metadata"]]


def end(cluster, pod, outcome):
    """As a kubelet reports it."""
    cluster.patch(*POD, pod["metadata"]["name"], {"status": {"phase": outcome}}, WORK, subresource="status")


def wait_until_gone(cluster, name):
    eventually(lambda: get(cluster, name) is None, f"{name} is gone", 60)
    eventually(lambda: not any(cluster.list(*kind, WORK) for kind in KINDS), f"what belongs to {name} is gone", 120)


def refusal(cluster):
    """The message with which its webhook refuses a JobSet; None as long as the API server does not reach the webhook."""
    try:
        make(cluster, "wrong", jobs("first", 1, 1, dependsOn=[{"name": "first", "status": "Ready"}]))
    except ApiError as error:
        return str(error) if "denied the request" in str(error) else None
    raise AssertionError("a wrong JobSet was accepted")


def scenario(cluster, program):
    """The life of a JobSet with a failure in it, and one whose pods must not share nodes with those of other jobs."""
    record = {"refusal": eventually(lambda: refusal(cluster), "its webhooks answer", 120)}

    # Workers start when the driver is ready. A failure restarts all. It is done when the workers are.
    make(cluster, "train", jobs("driver", 1, 1), jobs("workers", 2, 2, dependsOn=[{"name": "driver", "status": "Ready"}]), suspend=True,
         failurePolicy={"maxRestarts": 2}, successPolicy={"operator": "All", "targetReplicatedJobs": ["workers"]})
    eventually(lambda: condition(get(cluster, "train"), "Suspended").get("status") == "True", "it is suspended", 60)
    program.rest()
    assert not cluster.list(*POD, WORK)
    cluster.patch(*JOBSET, "train", {"spec": {"suspend": False}}, WORK)
    eventually(lambda: ready(cluster) == {"driver": 1, "workers": 2}, "all of its jobs run", 120)
    program.was_woken()
    record["running"] = seen.settled(cluster, WORK, KINDS)
    program.rest()

    def fail_one():
        end(cluster, pods_of(cluster, "train-workers-0")[0], "Failed")
        eventually(lambda: condition(cluster.get(*JOB, "train-workers-0", WORK), "Failed").get("status") == "True", "its job has failed", 60)
    program.interrupt(fail_one)
    eventually(lambda: attempts(cluster) == dict.fromkeys(("train-driver-0", "train-workers-0", "train-workers-1"), "1") and
               ready(cluster) == {"driver": 1, "workers": 2}, "all of its jobs run again", 240)
    record["restarted"] = seen.settled(cluster, WORK, KINDS)
    program.rest()

    for job in ("train-workers-0", "train-workers-1"):
        for pod in pods_of(cluster, job):
            end(cluster, pod, "Succeeded")
    eventually(lambda: get(cluster, "train")["status"].get("terminalState") == "Completed", "it is done", 120)
    program.was_woken()
    eventually(lambda: cluster.get(*JOB, "train-driver-0", WORK) is None, "the driver is ended", 60)
    record["completed"] = seen.settled(cluster, WORK, KINDS)
    record["events"] = seen.events(cluster, WORK, {get(cluster, "train")["metadata"]["uid"]}, "train-workers")
    program.rest()

    # Its own timer wakes it.
    finished = calendar.timegm(time.strptime(condition(get(cluster, "train"), "Completed")["lastTransitionTime"], "%Y-%m-%dT%H:%M:%SZ"))
    cluster.patch(*JOBSET, "train", {"spec": {"ttlSecondsAfterFinished": int(time.time()) - finished + 20}}, WORK)
    time.sleep(3)
    program.rest()
    assert "deletionTimestamp" not in get(cluster, "train")["metadata"]
    wait_until_gone(cluster, "train")
    program.was_woken()

    # Its webhook for pods refuses a job's second pod until the first has a node, and then gives it the same one.
    make(cluster, "apart", jobs("rack", 2, 2), annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"})
    eventually(lambda: len(running := [pod for pod in cluster.list(*POD, WORK) if pod["status"].get("phase") == "Running"]) == 4 and running,
               "its pods run", 240)
    places = [{pod["spec"]["nodeName"] for pod in pods_of(cluster, f"apart-rack-{index}")} for index in (0, 1)]
    assert [len(one) for one in places] == [1, 1] and places[0] != places[1]
    record["apart"] = seen.settled(cluster, WORK, KINDS)
    cluster.delete(*JOBSET, "apart", WORK)
    wait_until_gone(cluster, "apart")
    return record


@pytest.fixture(scope="module")
def in_hangar(cluster, host, jobset):
    # A Deployment may mount one file; an Operator has a directory.
    directory = "/etc/jobset"
    arguments = [one.replace(f"--config=/{FILE}", f"--config={directory}/{FILE}") for one in jobset.container["args"]]
    assert arguments != jobset.container["args"]
    with InHangar(jobset, host, args=arguments, files=[{"path": directory, "configMap": {"name": CONFIGURATION}}],
                  webhooks=[{"kind": kind, "name": name} for _, kind, name in WEBHOOKS]) as program:
        record = scenario(cluster, program)
        record["operator"] = program.status()
    return record


def test_it_does_its_work_and_sleeps_in_between(in_hangar):
    assert "DependsOn can't be set for the first ReplicatedJob" in in_hangar["refusal"]
    defaulted, = in_hangar["running"]["JobSet"]
    assert defaulted["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert {one["spec"]["completionMode"] for one in in_hangar["running"]["Job"]} == {"Indexed"}
    completed, = in_hangar["completed"]["JobSet"]
    assert (completed["status"]["terminalState"], completed["status"]["restarts"]) == ("Completed", 1)
    reasons = {reason for _, reason, _ in in_hangar["events"]}
    assert {"SuspendedJobs", "ResumeJobs", "RestartJobSetFailurePolicyAction", "AllJobsCompleted"} <= reasons
    assert "podAntiAffinity" in json.dumps(in_hangar["apart"]["Pod"])
    assert in_hangar["operator"]["restarts"] == 0 and "lastError" not in in_hangar["operator"]


def test_nothing_of_it_was_changed_but_the_known_lines(jobset):
    changed = [line for line in jobset.said.splitlines() if line.startswith(("k8s.io/", "sigs.k8s.io/")) and ".go:" in line]
    assert [line.split(":")[0] for line in changed] == [
        "k8s.io/client-go v0.34.1 util/workqueue/queue.go", "k8s.io/client-go v0.34.1 util/workqueue/delaying_queue.go",
        "sigs.k8s.io/controller-runtime v0.22.1 pkg/manager/manager.go"]


def test_the_same_version_as_a_process_makes_the_same_objects(cluster, jobset, in_hangar, tmp_path):
    port = free_port()
    certificates = Authority(tmp_path, "webhooks").serve(tmp_path / "certificates")
    authority = base64.b64encode((certificates / "ca.crt").read_bytes()).decode()
    for configuration_of in WEBHOOKS:
        webhooks = cluster.get(*configuration_of)["webhooks"]
        for webhook in webhooks:
            path = webhook["clientConfig"]["url"].partition("/operators/")[2].split("/", 2)[2]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": authority}
        cluster.patch(*configuration_of, {"webhooks": webhooks})
    settings = tmp_path / FILE
    settings.write_text(configuration(webhook={"host": "127.0.0.1", "port": port, "certDir": str(certificates)}))

    with AsProcess(jobset, f"--config={settings}", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=false") as program:
        as_process = scenario(cluster, program)

    assert as_process == {key: value for key, value in in_hangar.items() if key != "operator"}, program.log.read_text()
