"""Hosts that end in the middle of a workflow: nothing is done twice, nothing is lost, and delays go on."""
import base64
import collections
import contextlib
import gzip
import json
import pathlib
import re
import signal as signals
import threading
import time

import pytest
import yaml

import workflows
from cluster import ROOT, ApiError, condition, eventually, never
from conftest import control_plane
from host import Host
from operators import events_of
from registry import Registry
from workflows import CONDUCTOR, FAMILIES, REVISION, ROLLOUT, WORKFLOW, actors, bundle, copies, reaches, signal, stalls, state

# Points at which the host can be made to end as by kill -9 (src/workflows/crash_points.h).
POINTS = ["decided", "before-write", "after-write", "before-effect", "effect-done", "acknowledged", "signals-written"]
# The passage at which it ends. If a host has fewer passages, it ends normally.
PASSAGES = [1, 2, 4, 7]


@pytest.fixture(scope="module")
def rig():
    """A control plane of its own: other tests' hosts would take over what a dead one leaves."""
    made = control_plane("--with-kcm", "--with-scheduler", "--with-kwok=1", "--with-registry")
    yield made
    made.close()


@pytest.fixture
def namespace(rig, unique):
    name = f"ns-{unique}"
    rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    workflows.allow(rig, name)
    workflows.module(rig, name, "conductor", bundle(CONDUCTOR))
    workflows.module(rig, name, "rollout", bundle(ROLLOUT))
    yield name
    rig.delete("v1", "Namespace", name)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """For all hosts, so that the engine is compiled once."""
    return tmp_path_factory.mktemp("hosts")


class Seen:
    """All events of a watch of one kind in a namespace: every effect, whether or not its cause was told."""

    def __init__(self, cluster, api_version, kind, namespace):
        self.events = []
        path = cluster.path(api_version, kind, namespace)
        version = cluster.request("GET", path)["metadata"]["resourceVersion"]
        threading.Thread(target=self._watch, args=(cluster, path, version), daemon=True).start()

    def _watch(self, cluster, path, version):
        for event in cluster.watch(path, version):
            self.events.append((event["type"], event["object"]))

    def of(self, name, *types):
        return [kind for kind, manifest in list(self.events) if manifest["metadata"]["name"] == name and kind in (types or (kind,))]


def made(name):
    return {"type": "APPLY", "params": {"manifest": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"made": "yes"}}}}


@pytest.mark.parametrize("point", POINTS)
def test_a_host_killed_between_two_steps_repeats_nothing_and_loses_nothing(rig, namespace, directory, point):
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one"}
    rounds = [
        [made("one"), made("two")],
        [{"type": "PATCH", "params": {**target, "patch": {"data": {"patched": "yes"}}}}],
        [{"type": "RUN_JOB", "params": {"name": "job", "image": "busybox", "command": ["true"]}}],
        [{"type": "EMIT", "params": {"reason": "Noted", "message": "once"}},
         {"type": "SEND", "params": {"workflow": "listener", "event": "GREETING"}}],
        [{"type": "DELETE", "params": target}],
        [made("one")],
        [{"type": "RUN_JOB", "params": {"name": "job", "image": "busybox", "command": ["true"]}}],
    ]
    config_maps = Seen(rig, "v1", "ConfigMap", namespace)
    jobs = Seen(rig, "batch/v1", "Job", namespace)
    emitted = Seen(rig, "v1", "Event", namespace)
    rig.create(workflows.workflow("listener", namespace, "conductor", input={"rounds": [[
        {"type": "WAIT_FOR", "params": {**target, "name": "nobody-makes-this", "jsonPath": "{.data.ready}"}}]]}))
    rig.create(workflows.workflow("it", namespace, "conductor", input={"rounds": rounds}))
    for number in range(3):
        signal(rig, namespace, "it", f"{number}", f"S{number}")

    killed = 0
    for passage in PASSAGES:
        host = Host(rig.kubeconfig, directory, "--features=workflows", wait=False, env={"HANGAR_CRASH_AT": f"{point}:{passage}"})
        try:
            eventually(lambda: host.process.poll() is not None or done(rig, namespace), f"the host ends at {point}:{passage}", 60)
            if host.process.poll() is None:
                break
            assert host.process.returncode == -signals.SIGKILL, host.tail()
            killed += 1
        finally:
            host.stop()
    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        one = reaches(rig, namespace, "it", "done", 90)
        heard = state(reaches_waiting(rig, namespace, "listener"))["context"]["seen"]
    finally:
        host.stop()

    assert killed > 0, "no host has passed this point"
    told = [event for event in state(one)["context"]["seen"] if not event.startswith(("change: ", "S"))]
    assert [event.split(" ")[0] for event in told] == [
        "PROVISION", "K8S_RESOURCE_CREATED", "K8S_RESOURCE_CREATED", "K8S_RESOURCE_PATCHED", "JOB_SUCCEEDED",
        "EVENT_EMITTED", "EVENT_SENT", "K8S_RESOURCE_DELETED", "K8S_RESOURCE_CREATED", "JOB_SUCCEEDED"], told
    assert [event for event in state(one)["context"]["seen"] if event.startswith("S")] == ["S0", "S1", "S2"]
    assert heard.count("GREETING") == 1, heard
    # The effects that the API server shows.
    eventually(lambda: config_maps.of("one").count("ADDED") == 2, "the watch has come so far")
    assert config_maps.of("one") == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert config_maps.of("two") == ["ADDED"]
    eventually(lambda: jobs.of("job").count("ADDED") == 2, "the watch has come so far")
    assert jobs.of("job", "ADDED", "DELETED") == ["ADDED", "DELETED", "ADDED"]
    noted = collections.Counter(manifest["metadata"]["name"] for _, manifest in emitted.events if manifest["reason"] == "Noted")
    assert list(noted.values()) == [1], noted
    asked = [action for entry in one["history"] for action in entry.get("actions", [])]
    assert len(asked) == len(set(asked)) == sum(map(len, rounds)), asked


def done(cluster, namespace):
    one = workflows.status(cluster, namespace, "it")
    return one.get("value") == "done" and not one.get("outbox")


def reaches_waiting(cluster, namespace, name):
    def there():
        one = workflows.status(cluster, namespace, name)
        return one if "GREETING" in state(one).get("context", {}).get("seen", []) else None
    return eventually(there, f"{name} was told", 30)


def test_delays_go_on_while_no_host_runs(rig, namespace, directory):
    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        for name, soak in (("over", 1000), ("running", 6000)):
            rig.create(workflows.workflow(name, namespace, "rollout", input={"soakMilliseconds": soak}))
            signal(rig, namespace, name, "1", "DRAINED")
        before = {name: eventually(lambda: workflows.status(rig, namespace, name) if "updated" in workflows.status(
            rig, namespace, name).get("value", "") else None, f"{name} waits", 60) for name in ("over", "running")}
        began = time.monotonic()
    finally:
        host.kill()
    time.sleep(1.5)

    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        reaches(rig, namespace, "over", "released")
        assert workflows.status(rig, namespace, "running")["timers"] == before["running"]["timers"], "its deadline stays"
        reaches(rig, namespace, "running", "released")
        assert time.monotonic() - began > 3, "the other one was waited for"
    finally:
        assert host.stop() == 0


@pytest.mark.parametrize("machine", FAMILIES)
def test_a_delay_of_an_invoked_machine_goes_on_while_no_host_runs(rig, namespace, directory, machine):
    module = machine.replace("_", "-")
    workflows.module(rig, namespace, module, bundle(machine))
    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        for name, rest in (("over", 1000), ("running", 6000)):
            rig.create(workflows.workflow(name, namespace, module, input={"name": f"{name}-made", "rest": rest}))
        before = {name: eventually(lambda: workflows.status(rig, namespace, name) if "resting" in actors(workflows.status(
            rig, namespace, name)).values() else None, f"{name}: its worker rests", 60) for name in ("over", "running")}
        began = time.monotonic()
    finally:
        host.kill()
    time.sleep(1.5)

    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        one = reaches(rig, namespace, "over", "watching")
        assert state(one)["context"]["made"] == "over-made"
        now = workflows.status(rig, namespace, "running")
        assert now["timers"] == before["running"]["timers"] and now["actors"] == before["running"]["actors"], "as they were"
        reaches(rig, namespace, "running", "watching")
        assert time.monotonic() - began > 3, "the other one was waited for"
    finally:
        assert host.stop() == 0


@pytest.mark.parametrize("point", ["decided", "before-write", "after-write", "effect-done"])
def test_a_host_killed_while_machines_below_work_repeats_nothing(rig, namespace, directory, point):
    workflows.module(rig, namespace, "family-v5", bundle("family_v5"))
    config_maps = Seen(rig, "v1", "ConfigMap", namespace)
    rig.create(workflows.workflow("it", namespace, "family-v5", input={"name": "made-once", "rest": 100}))
    signal(rig, namespace, "it", "1", "LATER")

    killed = 0
    for passage in (1, 2, 3):
        host = Host(rig.kubeconfig, directory, "--features=workflows", wait=False, env={"HANGAR_CRASH_AT": f"{point}:{passage}"})
        try:
            eventually(lambda: host.process.poll() is not None or workflows.status(rig, namespace, "it").get("value") == "watching",
                       f"the host ends at {point}:{passage}", 60)
            if host.process.poll() is None:
                break
            assert host.process.returncode == -signals.SIGKILL, host.tail()
            killed += 1
        finally:
            host.stop()
    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        one = reaches(rig, namespace, "it", "watching")
        signal(rig, namespace, "it", "2", "ADD")
        eventually(lambda: state(workflows.status(rig, namespace, "it"))["context"]["seen"] == ["counted 1"], "it counts once")
    finally:
        assert host.stop() == 0

    assert killed > 0, "no host has passed this point"
    assert state(one)["context"]["made"] == "made-once" and set(actors(one)) == {"watcher#2", "watcher/clock#3"}
    assert one["nextAction"] == 2, "it was asked for once"
    eventually(lambda: config_maps.of("made-once"), "the watch has come so far")
    assert config_maps.of("made-once") == ["ADDED"]


def test_two_changes_at_once_do_not_overwrite_each_other(rig, namespace, directory):
    """Another client changes the workflow while the host does: the host's write is refused, and the host decides again."""
    host = Host(rig.kubeconfig, directory, "--features=workflows")
    stop = threading.Event()

    def meddle():
        while not stop.wait(0.05):
            rig.patch(*WORKFLOW, "it", {"metadata": {"annotations": {"somebody": str(time.monotonic())}}}, namespace)

    meddler = threading.Thread(target=meddle)
    config_maps = Seen(rig, "v1", "ConfigMap", namespace)
    try:
        rig.create(workflows.workflow("it", namespace, "conductor", input={"rounds": [[made(f"made-{number}")] for number in range(8)]}))
        meddler.start()
        one = reaches(rig, namespace, "it", "done", 90)
    finally:
        stop.set()
        meddler.join()
        assert host.stop() == 0

    told = [event for event in state(one)["context"]["seen"] if event.startswith("K8S_RESOURCE_CREATED")]
    assert told == [f"K8S_RESOURCE_CREATED made-{number}" for number in range(8)]
    for number in range(8):
        eventually(lambda: config_maps.of(f"made-{number}"), "the watch has come so far")
        assert config_maps.of(f"made-{number}") == ["ADDED"]


# Hosts that have never seen a module --------------------------------------------------------------------


def waits(cluster, namespace, name):
    """The workflow's digest, once its first delay runs."""
    return eventually(lambda: workflows.status(cluster, namespace, name) if workflows.status(cluster, namespace, name).get("timers") else None,
                      f"{name} waits", 60)["revision"]["sha256"]


def begun_on_a_lost_host(rig, namespace, directory, *arguments, flags=("--features=workflows",), **options):
    """The digest with which the workflow `it` began, on a host that was killed and whose cache no other host has."""
    host = Host(rig.kubeconfig, directory / "first", *flags)
    try:
        rig.create(workflows.workflow("it", namespace, *arguments, input={"soakMilliseconds": 600000}, **options))
        return waits(rig, namespace, "it")
    finally:
        host.kill()


@pytest.mark.parametrize("then", ["edited", "deleted"])
def test_a_host_with_an_empty_cache_goes_on_with_the_module_that_a_workflow_began_with(rig, namespace, tmp_path, then):
    pinned = begun_on_a_lost_host(rig, namespace, tmp_path, "rollout")
    if then == "edited":
        workflows.module(rig, namespace, "rollout", bundle(ROLLOUT).replace("canary", "sparrow"))
    else:
        rig.delete("v1", "ConfigMap", "rollout", namespace)
    # Not even an administrator changes the copy.
    with pytest.raises(ApiError) as refused:
        rig.patch(*REVISION, f"machine-{pinned}", {"data": {"gzip": "H4sIAAAAAAAA/wMAAAAAAAAAAAA="}}, namespace)
    assert refused.value.status == 422

    second = Host(rig.kubeconfig, tmp_path / "second", "--features=workflows")
    try:
        signal(rig, namespace, "it", "1", "ABORT")
        one = reaches(rig, namespace, "it", "aborted")
    finally:
        assert second.stop() == 0

    assert one["revision"]["sha256"] == pinned


def test_a_tag_that_has_moved_still_leads_to_the_artifact_that_a_workflow_began_with(rig, namespace, tmp_path):
    registry = Registry(rig)
    flags = ("--features=workflows", f"--docker-config={registry.docker_config(tmp_path, registry.password)}",
             "--module-address-allow-list=127.0.0.1")
    registry.push("machines/rollout", "v1", workflows.built("rollout.js"))
    moved = tmp_path / "moved.js"
    moved.write_text(bundle(ROLLOUT).replace("canary", "sparrow"))
    module = {"url": registry.url("machines/rollout", "v1"), "insecure": True}
    pinned = begun_on_a_lost_host(rig, namespace, tmp_path, flags=flags, module=module)
    registry.push("machines/rollout", "v1", moved)
    rig.delete(*REVISION, f"machine-{pinned}", namespace)
    signal(rig, namespace, "it", "1", "ABORT")

    second = Host(rig.kubeconfig, tmp_path / "second", *flags)
    try:
        one = reaches(rig, namespace, "it", "aborted")
    finally:
        assert second.stop() == 0

    assert one["revision"]["sha256"] == pinned and "@sha256:" in one["revision"]["resolved"]


def test_a_copy_that_is_not_the_module_is_not_used(rig, namespace, tmp_path):
    pinned = begun_on_a_lost_host(rig, namespace, tmp_path, "rollout")
    rig.delete(*REVISION, f"machine-{pinned}", namespace)
    forged = base64.b64encode(gzip.compress(bundle(CONDUCTOR).encode())).decode()
    rig.create({"apiVersion": REVISION[0], "kind": REVISION[1], "revision": 1, "data": {"gzip": forged},
                "metadata": {"name": f"machine-{pinned}", "namespace": namespace, "labels": {"workflows.example.com/machine": "kept"}}})
    rig.delete("v1", "ConfigMap", "rollout", namespace)
    signal(rig, namespace, "it", "1", "ABORT")

    second = Host(rig.kubeconfig, tmp_path / "second", "--features=workflows")
    try:
        message = stalls(rig, namespace, "it", pinned, reason="ModuleGone")
        workflows.module(rig, namespace, "rollout", bundle(ROLLOUT))
        reaches(rig, namespace, "it", "aborted")
    finally:
        assert second.stop() == 0

    assert "restore it" in message and "migrate" in message


@contextlib.contextmanager
def a_host_with_few_rights(rig, namespace, directory, *rules):
    """A host that may watch workflows and read their modules, and has the rights in `rules`."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "host", "namespace": namespace}}
    rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": namespace}, "rules": [
        {"apiGroups": ["workflows.example.com"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps", "events", "serviceaccounts"], "verbs": ["*"]}, *rules]}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": namespace},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
               "subjects": [{"kind": "ServiceAccount", "name": "host", "namespace": namespace}]}
    rig.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [account, rights, binding]}))
    config = yaml.safe_load(pathlib.Path(rig.kubeconfig).read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": rig.kubectl("create", "token", "host", "-n", namespace).strip()}}]
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))

    host = Host(directory / "kubeconfig", directory / "host", "--features=workflows")
    try:
        yield host
    finally:
        assert host.stop() == 0
        rig.kubectl("delete", "clusterrole,clusterrolebinding", namespace)


def test_a_host_that_may_not_keep_copies_says_so_and_goes_on(rig, namespace, tmp_path):
    with a_host_with_few_rights(rig, namespace, tmp_path):
        rig.create(workflows.workflow("it", namespace, "rollout", input={"soakMilliseconds": 600000}))
        waits(rig, namespace, "it")
        (event,) = eventually(lambda: [event for event in events_of(rig, "it", namespace) if event["reason"] == "ModuleNotKept"], "it is told")
        signal(rig, namespace, "it", "1", "ABORT")
        reaches(rig, namespace, "it", "aborted")

    assert "controllerrevisions" in event["message"] and "cache" in event["message"], event["message"]
    assert copies(rig, namespace) == []


def test_a_host_that_may_not_watch_what_a_workflow_waits_for_says_so_and_looks_again(rig, namespace, tmp_path):
    held = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"suspend": True, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}}}}
    copies_too = {"apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": ["*"]}
    with a_host_with_few_rights(rig, namespace, tmp_path, copies_too):
        rig.create(workflows.workflow("it", namespace, "conductor", input={"rounds": [[{"type": "RUN_JOB", "params": {"manifest": held}}]]}))

        def told():
            message = condition(rig.get(*WORKFLOW, "it", namespace), "Progressing").get("message", "")
            return message if "rbac.workflowResources" in message else None
        message = eventually(told, "people are told", 60)
        assert "RUN_JOB#1: the host may not watch jobs.batch" in message and "forbidden" in message, message
        (action,) = workflows.status(rig, namespace, "it")["outbox"]
        assert not action.get("attempts") and action["lastError"] in message, action

        rig.patch("batch/v1", "Job", "job", {"spec": {"suspend": False}}, namespace)
        one = reaches(rig, namespace, "it", "done")

    assert [event for event in state(one)["context"]["seen"] if event.startswith("JOB_")] == ["JOB_SUCCEEDED job"]


def test_a_copy_stays_for_as_long_as_a_workflow_needs_it(rig, namespace, directory):
    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        for name in ("one", "two"):
            rig.create(workflows.workflow(name, namespace, "rollout", input={"soakMilliseconds": 600000}))
        name = f"machine-{waits(rig, namespace, 'one')}"
        waits(rig, namespace, "two")
        assert copies(rig, namespace) == [name], "one for both"

        rig.delete(*WORKFLOW, "one", namespace)
        never(lambda: copies(rig, namespace) != [name], "the other one needs it", 1)
        rig.delete(*WORKFLOW, "two", namespace)
        eventually(lambda: copies(rig, namespace) == [], "nobody needs it")

        rig.create(workflows.workflow("three", namespace, "rollout", input={"soakMilliseconds": 600000}))
        waits(rig, namespace, "three")
        assert copies(rig, namespace) == [name], "it is made anew"

        workflows.module(rig, namespace, "rollout", bundle(ROLLOUT).replace('"paused"]', '"held"]'))
        rig.patch(*WORKFLOW, "three", {"metadata": {"annotations": {"workflows.example.com/migrate": "now"}}}, namespace)
        eventually(lambda: len(copies(rig, namespace)) == 1 and copies(rig, namespace) != [name], "one that is migrated needs another")
    finally:
        assert host.stop() == 0
    rig.delete(*WORKFLOW, "three", namespace)

    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        eventually(lambda: copies(rig, namespace) == [], "a workflow that went while no host was there leaves no copy")
    finally:
        assert host.stop() == 0


# The kind as it was published --------------------------------------------------------------------------


CRD_FILE = ROOT / "deploy/crds/statefulworkflows.workflows.example.com.yaml"
PUBLISHED_CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: statefulworkflows.workflows.example.com
spec:
  group: workflows.example.com
  names: {kind: StatefulWorkflow, listKind: StatefulWorkflowList, plural: statefulworkflows, singular: statefulworkflow}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              input: {type: object, x-kubernetes-preserve-unknown-fields: true}
              moduleConfigMap: {type: string}
          status:
            type: object
            properties:
              state: {type: string}
              conditions:
                type: array
                items:
                  type: object
                  properties:
                    type: {type: string}
                    status: {type: string}
                    lastTransitionTime: {type: string}
                    reason: {type: string}
                    message: {type: string}
    subresources:
      status: {}
"""


@contextlib.contextmanager
def another_schema(rig, namespace, crd, field, value):
    """The kind as in `crd`, whose status lacks `field`; as in the tree afterwards."""
    def keeps():
        """Whether the API server keeps the field."""
        try:
            probe = rig.create(workflows.workflow(f"probe-{time.monotonic_ns()}", namespace, "nothing"))["metadata"]["name"]
            rig.patch(*WORKFLOW, probe, {"status": {field: value}}, namespace, "status")
            kept = workflows.status(rig, namespace, probe).get(field) == value
            rig.delete(*WORKFLOW, probe, namespace)
            return "yes" if kept else "no"
        except ApiError as error:  # While the schema changes.
            return str(error)

    rig.kubectl("apply", "--server-side", "-f", "-", stdin=crd)
    try:
        eventually(lambda: keeps() == "no", "the other schema is in force")
        yield
    finally:
        rig.kubectl("apply", "--server-side", "-f", str(CRD_FILE))
        eventually(lambda: keeps() == "yes", "the schema of the tree is in force")


def test_a_cluster_with_the_published_kind_is_told_what_it_lacks_and_nothing_is_done(rig, namespace, directory):
    with another_schema(rig, namespace, PUBLISHED_CRD, "run", "x"):
        host = Host(rig.kubeconfig, directory, "--features=workflows")
        try:
            rig.create(workflows.workflow("it", namespace, "conductor", input={"rounds": [[made("made")]]}))
            message = stalls(rig, namespace, "it", "deploy/crds", reason="SchemaOutdated")
            never(lambda: rig.get("v1", "ConfigMap", "made", namespace), "something is done", 1)
            assert "state" not in workflows.status(rig, namespace, "it"), message
        finally:
            assert host.stop() == 0

    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        reaches(rig, namespace, "it", "done")
    finally:
        assert host.stop() == 0


def test_a_schema_that_knows_nothing_of_machines_below_is_outdated_for_one_that_has_some(rig, namespace, directory):
    older = re.sub(r"^ +actor: \{type: string.*\n", "", CRD_FILE.read_text(), flags=re.MULTILINE)
    assert older != CRD_FILE.read_text()
    workflows.module(rig, namespace, "family-v5", bundle("family_v5"))
    action = {"id": 1, "type": "X", "params": {}, "requestedAt": "2026-01-01T00:00:00Z", "actor": "w#1"}

    with another_schema(rig, namespace, older, "outbox", [action]):
        host = Host(rig.kubeconfig, directory, "--features=workflows")
        try:
            rig.create(workflows.workflow("plain", namespace, "conductor", input={"rounds": [[made("plain")]]}))
            rig.create(workflows.workflow("it", namespace, "family-v5", input={"name": "made-late", "rest": 100}))
            reaches(rig, namespace, "plain", "done")
            stalls(rig, namespace, "it", "deploy/crds", reason="SchemaOutdated")
            never(lambda: rig.get("v1", "ConfigMap", "made-late", namespace), "something is done", 1)
        finally:
            assert host.stop() == 0

    host = Host(rig.kubeconfig, directory, "--features=workflows")
    try:
        one = reaches(rig, namespace, "it", "watching")
    finally:
        assert host.stop() == 0
    assert state(one)["context"]["made"] == "made-late"
