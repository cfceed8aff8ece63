"""Node provisioning, seen from outside: simulated nodes, a real control plane, real Jobs.

The suffix of a node's or an image's name says how a Job's pod ends there ("-fail", ":run");
see dev/control-plane/stages.yaml.
"""
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import threading
import urllib.error
import urllib.request

import pytest
import yaml

import terminals
from cluster import KINDS, condition, eventually, never
from conftest import control_plane
from host import BINARY, Host

KINDS[("node.k8s.io/v1", "RuntimeClass")] = ("/apis/node.k8s.io/v1", "runtimeclasses", False)

NAMESPACE = "provisioning"
IMAGE = "registry.example.com/hangar-node:v1"
WISH = "kwasm.sh/kwasm-node"
PUBLISHED = "kwasm.sh/kwasm-provisioned"
PROVISIONED = "nodes.hangar.dev/provisioned"
OURS = "nodes.hangar.dev/"
IN_FLIGHT = ("Installing", "Verifying", "Uninstalling")
# Without all the waits of the defaults.
FAST = ("--features=nodes", "--node-ready-delay=0s", "--node-retry-delay=1s", "--node-job-retries=0")


@pytest.fixture(scope="module")
def rig():
    """A control plane of its own, because these tests create and delete nodes."""
    made = node_rig()
    yield made
    made.close()


@pytest.fixture
def large_rig():
    """Another one, ended with all that is in it: deleting 500 nodes takes longer than creating them."""
    made = node_rig()
    yield made
    made.close()


def node_rig():
    made = control_plane("--with-kcm", "--with-kwok=1")
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return made


def make_nodes(rig, names, **annotations):
    def one(name):
        rig.create({"apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake", **annotations},
                                 "labels": {"type": "kwok", "kubernetes.io/os": "linux"}},
                    "status": {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "1000"},
                               "capacity": {"cpu": "32", "memory": "256Gi", "pods": "1000"}}})

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, names))


@pytest.fixture
def nodes(rig):
    """Creates nodes with the annotation, or another value of it; afterwards none of them is left."""
    made = []

    def make(*names, wish="true"):
        made.extend(names)
        make_nodes(rig, names, **({WISH: wish} if wish else {}))

    yield make
    for name in made:
        rig.delete("v1", "Node", name)
    rig.request("DELETE", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", {"propagationPolicy": "Background"})
    rig.delete("v1", "ConfigMap", "hangar-nodes", NAMESPACE)
    eventually(lambda: not jobs(rig), "no Job is left", 60)


@pytest.fixture
def start(tmp_path, request):
    """Starts hosts, with the settings that KWasm's operator reads from its environment; ends them."""
    hosts = []

    def one(*flags, image=IMAGE, auto="", namespace=NAMESPACE, cluster=None):
        cluster = cluster or request.getfixturevalue("rig")
        given = {flag.split("=")[0]: flag for flag in (*FAST, *flags)}
        host = Host(cluster.kubeconfig, tmp_path / f"host-{len(hosts)}", *given.values(),
                    env={"INSTALLER_IMAGE": image, "AUTO_PROVISION_NODES": auto, "CONTROLLER_NAMESPACE": namespace})
        hosts.append(host)
        return host

    yield one
    for host in hosts:
        host.stop()


def jobs(rig, **labels):
    wanted = ",".join(f"{OURS}{key}={value}" for key, value in labels.items())
    return rig.list("batch/v1", "Job", NAMESPACE, wanted)


def node(rig, name):
    return rig.get("v1", "Node", name)


def of(manifest, word):
    """hangar's annotation on a node: of(node, "phase")."""
    return (manifest or {}).get("metadata", {}).get("annotations", {}).get(OURS + word, "")


def labels(manifest):
    found = manifest["metadata"]["labels"]
    return found.get(PUBLISHED), found.get(PROVISIONED)


def in_phase(rig, name, phase, seconds=60):
    def look():
        seen = node(rig, name)
        return seen if of(seen, "phase") == phase else None
    try:
        return eventually(look, f"{name} is {phase or 'untouched'}", seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}; it is {json.dumps((node(rig, name) or {}).get('metadata', {}).get('annotations'))}") from None


def wish(rig, name, value):
    rig.patch("v1", "Node", name, {"metadata": {"annotations": {WISH: value}}})


def events_of(rig, name):
    listed = rig.request("GET", "/api/v1/namespaces/default/events")["items"]
    return {event["reason"]: event["message"] for event in listed
            if event["involvedObject"]["kind"] == "Node" and event["involvedObject"]["name"] == name}


def hangar_nodes(rig, *flags):
    done = subprocess.run([str(BINARY), "nodes", f"--kubeconfig={rig.kubeconfig}", f"--namespace={NAMESPACE}", *flags],
                          stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    return done.stdout


def fleet(rig):
    document = json.loads(hangar_nodes(rig, "-o", "json"))
    return document["rollout"], {one["node"]: one for one in document["nodes"]}


class Watching:
    """All changes of nodes and Jobs since it began, in order, from the API server's own watch."""

    def __init__(self, rig):
        self.phases, self.begun, self.most_in_flight = {}, set(), 0
        self.installs = collections.Counter()
        for path, keep in (("/api/v1/nodes", self._node), (f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", self._job)):
            version = rig.request("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
            threading.Thread(target=self._follow, args=(rig.watch(path, version), keep), daemon=True).start()

    @staticmethod
    def _follow(events, keep):
        try:
            for event in events:
                keep(event["type"], event["object"])
        except (OSError, ValueError):
            pass  # The control plane has ended.

    def _node(self, kind, manifest):
        name = manifest["metadata"]["name"]
        phase = "" if kind == "DELETED" else of(manifest, "phase")
        if phase == self.phases.get(name, ""):
            return
        self.phases[name] = phase
        self.begun.add(name)
        self.most_in_flight = max(self.most_in_flight, sum(one in IN_FLIGHT for one in self.phases.values()))

    def _job(self, kind, manifest):
        if kind == "ADDED" and manifest["metadata"]["labels"].get(OURS + "action") == "install":
            self.installs[manifest["metadata"]["ownerReferences"][0]["name"]] += 1

    def count(self, phase):
        return sum(one == phase for one in list(self.phases.values()))


# The way there and back ---------------------------------------------------------------------------


def test_from_annotation_to_label_and_back(rig, nodes, start):
    nodes("there", wish=None)
    start("--node-runtime-classes=fast=wasmtime", "--node-probe-image=registry.example.com/hello:v1")
    never(lambda: jobs(rig), "a node is not touched without its annotation", 1)

    wish(rig, "there", "yes")
    never(lambda: jobs(rig), "only the exact text counts", 1)
    wish(rig, "there", "true")
    done = in_phase(rig, "there", "Provisioned")
    assert labels(done) == ("there", "true")
    assert of(done, "version") == IMAGE
    install = rig.get("batch/v1", "Job", "there-provision-kwasm", NAMESPACE)
    assert install["metadata"]["labels"]["kwasm.sh/job"] == "true"
    pod = install["spec"]["template"]["spec"]
    assert pod["nodeName"] == "there" and pod["hostPID"] and pod["tolerations"] == [{"operator": "Exists"}]
    container = pod["containers"][0]
    assert container["image"] == IMAGE and container["securityContext"]["privileged"] and "command" not in container
    assert container["env"] == [{"name": "NODE_ROOT", "value": "/mnt/node-root"}]
    assert install["spec"]["activeDeadlineSeconds"] == 600 and install["spec"]["ttlSecondsAfterFinished"] == 3600
    probe = jobs(rig, action="probe")[0]["spec"]["template"]["spec"]
    assert probe["runtimeClassName"] == "fast-probe" and probe["nodeName"] == "there"
    runtime_class = rig.get("node.k8s.io/v1", "RuntimeClass", "fast")
    assert runtime_class["handler"] == "wasmtime"
    assert runtime_class["scheduling"]["nodeSelector"] == {PROVISIONED: "true"}
    eventually(lambda: condition(node(rig, "there"), "WasmProvisioned").get("status") == "True", "the condition says so")
    eventually(lambda: "Provisioned" in events_of(rig, "there"), "an Event says so")
    table = hangar_nodes(rig).splitlines()
    assert table[0].split() == ["NODE", "VERSION", "PHASE", "SINCE", "LAST", "ERROR"]
    assert any(line.split()[:3] == ["there", IMAGE, "Provisioned"] for line in table)
    rollout, rows = fleet(rig)
    assert rollout["standing"] == "Done" and rows["there"]["since"] and rows["there"]["lastError"] == ""

    wish(rig, "there", None)
    in_phase(rig, "there", "Uninstalling")
    eventually(lambda: jobs(rig, action="uninstall"), "it is undone by a Job")
    command = jobs(rig, action="uninstall")[0]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command == ["hangar-node", "uninstall"]
    in_phase(rig, "there", "")
    eventually(lambda: not jobs(rig), "its Jobs are deleted")
    eventually(lambda: not condition(node(rig, "there"), "WasmProvisioned"), "the condition is gone")
    after = node(rig, "there")["metadata"]
    assert not [key for key in {**after["labels"], **after["annotations"]} if "hangar" in key or "kwasm" in key]
    eventually(lambda: fleet(rig)[0] == {**rollout, "standing": "Done"}, "nothing is left to do")


def watching_command(rig):
    return [str(BINARY), "nodes", "--watch", f"--kubeconfig={rig.kubeconfig}", f"--namespace={NAMESPACE}"]


def test_a_terminal_shows_a_rollout_until_it_is_done(rig, nodes, start):
    first = start()
    eventually(lambda: fleet(rig)[0]["version"], "the rollout is recorded")
    assert first.stop() == 0
    nodes("a", "b")

    def go_on(shown):
        eventually(lambda: "\r\x1b[K0 of 2 nodes\r" in shown(), "it is shown again and again", 60)
        start()
    status, out, shown = terminals.run(watching_command(rig), meanwhile=go_on)
    assert status == 0 and out.endswith(f"The rollout is Done: 2 of 2 nodes are done with {IMAGE}.\n"), out
    assert shown.endswith("\r\x1b[K"), shown


def test_a_watch_ends_when_the_rollout_is_halted(rig, nodes, start):
    nodes("a-fail", "b")
    start("--node-retry-delay=1h")
    eventually(lambda: fleet(rig)[0]["version"], "the rollout is recorded")

    done = subprocess.run(watching_command(rig), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "The rollout is Halted: 0 of 2 nodes are done" in done.stdout, done.stdout
    assert "\x1b" not in done.stderr and "of 2 nodes" not in done.stderr, "no progress in a file"


def test_runtime_classes_are_kept_and_those_of_others_stay(rig, start):
    rig.create({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "theirs"}, "handler": "theirs"})

    def classes():
        return {one["metadata"]["name"]: one["handler"] for one in rig.list("node.k8s.io/v1", "RuntimeClass")}

    first = start("--node-runtime-classes=theirs=ours,one,two")
    eventually(lambda: classes() == {"theirs": "theirs", "one": "one", "two": "two"}, "they are made")
    rig.delete("node.k8s.io/v1", "RuntimeClass", "two")
    eventually(lambda: "two" in classes(), "one that somebody deleted comes back")
    assert first.stop() == 0
    start("--node-runtime-classes=two=other")
    eventually(lambda: classes() == {"theirs": "theirs", "two": "other"}, "they follow the settings")
    rig.delete("node.k8s.io/v1", "RuntimeClass", "theirs")


# What goes wrong ----------------------------------------------------------------------------------


def test_a_failure_stops_the_rollout_until_the_node_is_skipped(rig, nodes, start):
    nodes("a", "b-fail", "c")
    start()
    in_phase(rig, "a", "Provisioned")
    broken = in_phase(rig, "b-fail", "Failed")
    assert of(broken, "last-error") == "exit code 1"
    assert labels(broken) == (None, None)
    eventually(lambda: condition(node(rig, "b-fail"), "WasmProvisioned").get("reason") == "InstallFailed", "the condition says so")
    eventually(lambda: "exit code 1" in events_of(rig, "b-fail").get("InstallFailed", ""), "an Event says so")
    eventually(lambda: int(of(node(rig, "b-fail"), "attempt")) >= 3, "it is tried again", 60)
    assert of(node(rig, "c"), "phase") == "", "a node was begun although another one had failed"
    rollout, rows = fleet(rig)
    assert rollout["standing"] == "Halted" and "node b-fail failed: exit code 1" in rollout["message"]
    assert rows["c"]["phase"] == "Pending" and rows["b-fail"]["lastError"] == "exit code 1"
    assert "The rollout is Halted: 1 of 3 nodes are done" in hangar_nodes(rig) and "\nnode b-fail failed" in hangar_nodes(rig)

    rig.patch("v1", "Node", "b-fail", {"metadata": {"annotations": {OURS + "skip": "true"}}})
    in_phase(rig, "c", "Provisioned")
    eventually(lambda: fleet(rig)[1]["b-fail"]["phase"] == "Skipped", "it is shown as skipped")


def test_a_node_that_cannot_be_undone_says_so_and_is_tried_again(rig, nodes, start):
    nodes("a")
    first = start()
    in_phase(rig, "a", "Provisioned")
    assert first.stop() == 0
    wish(rig, "a", None)
    start(image="registry.example.com/installer:fail")

    in_phase(rig, "a", "Failed")
    eventually(lambda: condition(node(rig, "a"), "WasmProvisioned").get("reason") == "UninstallFailed", "the condition says so")
    eventually(lambda: "exit code 1" in events_of(rig, "a").get("UninstallFailed", ""), "an Event says so")
    eventually(lambda: int(of(node(rig, "a"), "attempt")) >= 2, "it is tried again", 60)


def test_a_failed_node_is_mended_by_another_installer_and_the_others_follow(rig, nodes, start):
    nodes("a", "b")
    first = start(image="registry.example.com/installer:fail")
    in_phase(rig, "a", "Failed")
    assert first.stop() == 0
    second = start("--node-retry-delay=1h", image="registry.example.com/installer:v2")
    for name in ("a", "b"):
        assert of(in_phase(rig, name, "Provisioned"), "version") == "registry.example.com/installer:v2"
    assert second.stop() == 0
    watching = Watching(rig)
    start(image="registry.example.com/installer:v3")
    for name in ("a", "b"):
        eventually(lambda name=name: of(node(rig, name), "version").endswith(":v3"), f"{name} is provisioned anew", 60)
    assert watching.most_in_flight == 1


def test_an_installer_image_that_does_not_exist_is_told_and_given_up(rig, nodes, start):
    nodes("pulls")
    start("--node-job-timeout=6s", "--node-retry-delay=1h", image="nowhere.example.com/installer:missing")
    told = "the image nowhere.example.com/installer:missing cannot be pulled"
    eventually(lambda: of(node(rig, "pulls"), "last-error") == told, "what it waits for is told at once", 30)
    failed = in_phase(rig, "pulls", "Failed")
    assert told in of(failed, "last-error") and labels(failed) == (None, None)
    rig.patch("v1", "Node", "pulls", {"metadata": {"annotations": {OURS + "retry": "true"}}})
    eventually(lambda: of(node(rig, "pulls"), "attempt") == "2", "it is tried again when asked")
    assert OURS + "retry" not in node(rig, "pulls")["metadata"]["annotations"]


def test_a_node_deleted_during_its_job_makes_room_for_the_next(rig, nodes, start):
    nodes("a-run", "b")
    start()
    in_phase(rig, "a-run", "Installing")
    eventually(lambda: jobs(rig, action="install"), "its Job is there")
    assert of(node(rig, "b"), "phase") == ""
    rig.delete("v1", "Node", "a-run")
    in_phase(rig, "b", "Provisioned")
    nodes("a-run", wish=None)
    eventually(lambda: not [job for job in jobs(rig) if job["metadata"]["name"].startswith("a-run")], "its Job went with it", 60)
    never(lambda: of(node(rig, "a-run"), "phase"), "the new node of that name is another node", 1)


def test_an_annotation_that_flaps_ends_as_it_was_last(rig, nodes, start):
    nodes("flaps", wish=None)
    start()
    watching = Watching(rig)
    for index in range(40):
        wish(rig, "flaps", "true" if index % 2 == 0 else None)
    wish(rig, "flaps", "true")
    assert labels(in_phase(rig, "flaps", "Provisioned")) == ("flaps", "true")
    for index in range(40):
        wish(rig, "flaps", "true" if index % 2 == 1 else None)
    wish(rig, "flaps", None)
    in_phase(rig, "flaps", "")
    eventually(lambda: not jobs(rig), "no Job is left")
    assert labels(node(rig, "flaps")) == (None, None)
    assert watching.most_in_flight == 1


def test_somebody_who_writes_nodes_all_the_time_delays_nothing(rig, nodes, start):
    nodes("busy")
    ended = threading.Event()

    def write():
        count = 0
        while not ended.is_set():
            count += 1
            rig.patch("v1", "Node", "busy", {"metadata": {"annotations": {"example.com/count": str(count)}}})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        start()
        assert labels(in_phase(rig, "busy", "Provisioned")) == ("busy", "true")
    finally:
        ended.set()
        writer.join()


def test_long_names_of_nodes_are_cut_and_stay_apart(rig, nodes, start):
    common = "a" * 60
    names = [f"{common}.one.example.com", f"{common}.two.example.com", "x" * 48]
    nodes(*names)
    start("--node-max-unavailable=3")
    for name in names:
        published, provisioned = labels(in_phase(rig, name, "Provisioned"))
        assert len(published) <= 63 and name.startswith(published[:40]) and provisioned == "true"
    assert len({job["metadata"]["name"] for job in jobs(rig, action="install")}) == 3
    for name in names:
        wish(rig, name, None)
    for name in names:
        in_phase(rig, name, "")
    eventually(lambda: not jobs(rig), "Jobs of long names are deleted too")


def test_many_nodes_that_change_at_once_all_get_on(rig, nodes, start):
    """Each node that begins reads the rollout's record, while the rollout changes it for others."""
    names = [f"crowd-{number}" for number in range(24)]
    nodes(*names)
    start("--node-max-unavailable=100%")
    for name in names:
        in_phase(rig, name, "Provisioned", 120)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: wish(rig, name, None), names))
    for name in names:
        in_phase(rig, name, "", 120)


def test_the_published_installer_works_and_cannot_undo(rig, nodes, start):
    nodes("old")
    # KWasm's operator has left its label and its Job.
    rig.patch("v1", "Node", "old", {"metadata": {"labels": {PUBLISHED: "old"}}})
    uid = node(rig, "old")["metadata"]["uid"]
    rig.create({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "old-provision-kwasm", "namespace": NAMESPACE, "labels": {"kwasm.sh/job": "true"},
                             "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "old", "uid": uid}]},
                "spec": {"template": {"spec": {"nodeName": "old", "restartPolicy": "Never",
                                               "containers": [{"name": "kwasm-provision", "image": "installer:v0"}]}}}})
    start(image="registry.example.com/kwasm/kwasm-node-installer:main")
    assert labels(in_phase(rig, "old", "Provisioned")) == ("old", "true")
    assert rig.get("batch/v1", "Job", "old-provision-kwasm", NAMESPACE)["metadata"]["labels"][OURS + "action"] == "install"
    wish(rig, "old", None)
    in_phase(rig, "old", "")
    eventually(lambda: not jobs(rig), "the Job is deleted")
    assert labels(node(rig, "old")) == (None, None)
    eventually(lambda: "UninstallUnsupported" in events_of(rig, "old"), "an Event says that nothing was undone")


def test_auto_provision_takes_every_node_and_writes_nothing_for_heartbeats(rig, nodes, start):
    nodes("auto-a", "auto-b", wish=None)
    nodes("not-this", wish="false")
    host = start("--node-max-unavailable=100%", auto="True")
    for name in ("auto-a", "auto-b", "node-0"):
        in_phase(rig, name, "Provisioned")
    eventually(lambda: fleet(rig)[0]["standing"] == "Done", "all is done")
    assert fleet(rig)[1]["not-this"]["phase"] == "-"

    def writes():
        return sum(value for name, value in host.metrics().items()
                   if name.startswith("rest_client_requests_total") and 'method="GET"' not in name)

    written = eventually(lambda: (lambda one: one if not never(lambda: writes() != one, "quiet", 1) else None)(writes()), "it is quiet")
    for count in range(10):
        for name in ("auto-a", "auto-b"):
            rig.patch("v1", "Node", name, {"status": {"nodeInfo": {"kernelVersion": f"heartbeat-{count}"}}}, subresource="status")
    never(lambda: writes() > written, "a heartbeat is answered with a write", 2)
    assert host.stop() == 0

    start("--node-max-unavailable=100%")  # Without auto-provisioning hangar uninstalls unrequested nodes.
    for name in ("auto-a", "auto-b", "node-0"):
        in_phase(rig, name, "")


def test_another_image_ends_the_wait_for_one_that_does_not_exist(rig, nodes, start):
    nodes("stuck")
    first = start(image="nowhere.example.com/installer:missing")
    eventually(lambda: "cannot be pulled" in of(node(rig, "stuck"), "last-error"), "what it waits for is told", 30)
    assert first.stop() == 0
    start()
    assert of(in_phase(rig, "stuck", "Provisioned"), "version") == IMAGE
    assert "cannot be pulled" in events_of(rig, "stuck")["InstallFailed"]


def test_a_host_that_may_not_list_nodes_is_not_ready(rig, tmp_path):
    rig.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": NAMESPACE}})
    config = yaml.safe_load(pathlib.Path(rig.kubeconfig).read_text())
    token = rig.kubectl("create", "token", "nobody", "--namespace", NAMESPACE).strip()
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    host = Host(tmp_path / "kubeconfig", tmp_path / "host", *FAST, f"--installer-image={IMAGE}", wait=False)

    def answer(path):
        try:
            return urllib.request.urlopen(host.url + path, timeout=5).read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""
    try:
        eventually(lambda: answer("/healthz") == "ok", "it is alive", 30)
        assert "[-]nodes failed: the nodes and their Jobs have not been listed yet" in answer("/readyz")
    finally:
        host.stop()


def test_a_namespace_that_does_not_exist_is_waited_for(rig, nodes, start):
    nodes("refused")
    start(namespace="no-such-namespace-yet")
    never(lambda: of(node(rig, "refused"), "phase"), "nothing is begun that cannot be recorded", 2)
    rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "no-such-namespace-yet"}})
    in_phase(rig, "refused", "Provisioned", 90)


# Many ---------------------------------------------------------------------------------------------


def test_two_leaders_keep_to_one_node_at_a_time(rig, nodes, start):
    names = [f"two-{index:02}" for index in range(8)]
    nodes(*names)
    watching = Watching(rig)
    start()
    start()
    for name in names:
        in_phase(rig, name, "Provisioned", 120)
    assert watching.most_in_flight == 1
    assert watching.installs == {name: 1 for name in names}


def test_500_nodes_one_broken_and_the_leader_killed_half_way(large_rig, start):
    rig, allowed = large_rig, 60
    names = [f"many-{index:03}" + ("-fail" if index == 250 else "") for index in range(500)]
    good = [name for name in names if not name.endswith("-fail")]
    broken = names[250]
    make_nodes(rig, names, **{WISH: "true"})
    watching = Watching(rig)

    flags = ("--leader-elect", f"--node-max-unavailable={allowed}", "--node-retry-delay=5s")
    hosts = [start(*flags, cluster=rig), start(*flags, cluster=rig)]
    eventually(lambda: watching.count("Provisioned") >= 120, "a quarter is done", 400)
    leader = next(host for host in hosts if host.metrics().get("hangar_nodes{phase=\"Provisioned\"}"))
    leader.kill()
    in_phase(rig, broken, "Failed", 240)
    eventually(lambda: fleet(rig)[0]["standing"] == "Halted", "the rollout says that it has stopped", 30)
    eventually(lambda: int(of(node(rig, broken), "attempt")) >= 2, "the broken one is tried again", 60)
    begun = set(watching.begun)
    never(lambda: watching.begun - begun, "a node is begun after a failure", 3)
    assert len(begun) < 400
    rig.patch("v1", "Node", broken, {"metadata": {"annotations": {OURS + "skip": "true"}}})
    eventually(lambda: watching.count("Provisioned") == len(good), "none is skipped", 400)

    assert 1 < watching.most_in_flight <= allowed
    installs = watching.installs
    assert {name: installs[name] for name in good} == {name: 1 for name in good}, "a node was installed twice"
    for one in rig.list("v1", "Node", selector=f"{PROVISIONED}=true"):
        assert one["metadata"]["name"] in good
