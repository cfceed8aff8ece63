"""Node provisioning for real: an annotated node gets a shim, containerd restarts, a Wasm container answers; after the
uninstall every byte is as before. And faults on the way, on a real node.

The tests of one node run in this order: each leaves it as it found it.
"""
import hashlib
import http.server
import pathlib
import subprocess
import tarfile
import threading

import pytest
import yaml

from charts import CHART, helm
from cluster import KINDS, ROOT, condition, eventually
from host import BINARY

import node as nodes
from node import ADDRESS, NAME, REGISTRY, build_image

KINDS.setdefault(("node.k8s.io/v1", "RuntimeClass"), ("/apis/node.k8s.io/v1", "runtimeclasses", False))

NAMESPACE = "hangar-system"
NODE = ("v1", "Node")
WISH = "kwasm.sh/kwasm-node"
LABEL = "kwasm.sh/kwasm-provisioned"
OURS = "nodes.hangar.dev/"
CONFIG = "/etc/containerd/config.toml"
ANSWER = "answered by a Wasm container\n"


@pytest.fixture(scope="session")
def shim():
    """containerd-shim-wasmi-v1, as tests/node/shim.sh builds it."""
    return pathlib.Path(subprocess.run([str(ROOT / "tests/node/shim.sh")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


@pytest.fixture(scope="session")
def archives(shim, tmp_path_factory):
    """Our images: the host, the installer with the shim, and the installer without runtimes."""
    directory = tmp_path_factory.mktemp("archives")
    runtimes = tmp_path_factory.mktemp("runtimes")
    (runtimes / shim.name).write_bytes(shim.read_bytes())
    build_image("host", directory / "host.tar", "hangar:test")
    build_image("installer", directory / "full.tar", "installer:full", f"--runtimes={runtimes}")
    build_image("installer", directory / "empty.tar", "installer:empty")
    return directory


@pytest.fixture(scope="module")
def wasm_image(node, tmp_path_factory):
    """An image whose entrypoint is a Wasm module, in the node's containerd."""
    directory = tmp_path_factory.mktemp("wasm")
    subprocess.run(["wat2wasm", str(ROOT / "tests/node/answer.wat"), "-o", str(directory / "answer.wasm")], check=True)
    directory.chmod(0o755)
    archive = tmp_path_factory.mktemp("image") / "answer.tar"
    nodes.image("localhost/answer:1", directory, ["/answer.wasm"], archive)
    node.load(archive)
    return "localhost/answer:1"


class Release:
    """The chart, installed by helm; its images come from a registry with a password."""

    def __init__(self, cluster, values):
        self.cluster, self.values = cluster, values
        self._helm("install", values)

    def upgrade(self, image, **of_nodes):
        self._helm("upgrade", {**self.values, "kwasmOperator": {"installerImage": image}, "nodes": {**self.values["nodes"], **of_nodes}})

    def _helm(self, verb, values):
        helm(verb, "hangar", str(CHART), "--namespace", NAMESPACE, "--wait", "--timeout", "120s", "--values", "-",
             stdin=yaml.safe_dump(values), env={"KUBECONFIG": self.cluster.kubeconfig})


@pytest.fixture(scope="module")
def installers(registry, archives):
    """References of the installer's images, by their content."""
    made = {what: registry.push_archive("installer", what, archives / f"{what}.tar") for what in ("full", "empty")}
    return {**made, "missing": f"{REGISTRY}/installer:missing"}


@pytest.fixture(scope="module")
def release(cluster, registry, archives, installers, wasm_image):
    host = registry.push_archive("hangar", "test", archives / "host.tar")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
    cluster.create(registry.pull_secret("pull", NAMESPACE))
    return Release(cluster, {
        "image": {"repository": host.rpartition(":")[0], "tag": "test"}, "imagePullSecrets": [{"name": "pull"}],
        "features": {"airways": False, "operators": False, "workflows": False},
        "kwasmOperator": {"installerImage": installers["full"]},
        "nodes": {"runtimeClasses": ["wasmi"], "probeImage": wasm_image},
        "settings": {"nodeReadyDelay": "1s", "nodeJobRetries": 0, "nodeRetryDelay": "1h"}})


@pytest.fixture(scope="module")
def shop(node, shim, tmp_path_factory):
    """A server that the node's pods reach, with the shim in an archive; (its address, the archive's SHA-256)."""
    directory = tmp_path_factory.mktemp("shop")
    with tarfile.open(directory / "wasmi.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(shim, f"wasmi-1.0/{shim.name}")
    handler = lambda *arguments: http.server.SimpleHTTPRequestHandler(*arguments, directory=str(directory))
    server = http.server.ThreadingHTTPServer((ADDRESS, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{ADDRESS}:{server.server_port}/wasmi.tar.gz", hashlib.sha256((directory / "wasmi.tar.gz").read_bytes()).hexdigest()
    server.shutdown()


def labels(cluster):
    return cluster.get(*NODE, NAME)["metadata"].get("labels", {})


def of(cluster, word):
    return cluster.get(*NODE, NAME)["metadata"].get("annotations", {}).get(OURS + word, "")


def wish(cluster, value):
    cluster.patch(*NODE, NAME, {"metadata": {"annotations": {WISH: value}}})


def until(cluster, phase, seconds=180):
    try:
        eventually(lambda: of(cluster, "phase") == phase, f"the node is {phase or 'untouched'}", seconds)
    except AssertionError as error:
        pods = cluster.kubectl("describe", "pods", "--namespace", NAMESPACE)
        raise AssertionError(f"{error}\n{cluster.get(*NODE, NAME)['metadata']['annotations']}\n{pods}") from None


def undo(cluster):
    wish(cluster, None)
    until(cluster, "")
    eventually(lambda: not cluster.list("batch/v1", "Job", NAMESPACE), "the Jobs are gone", 60)


def is_told(cluster, reason, words):
    """The Node soon has an Event with that reason and these words."""
    def look():
        listed = cluster.request("GET", "/api/v1/namespaces/default/events")["items"]
        return any(event["involvedObject"].get("name") == NAME and event["reason"] == reason and words in event["message"] for event in listed)
    return eventually(look, f"an Event {reason} says: {words}")


def run_pod(cluster, name, image, **spec):
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": image, "imagePullPolicy": "Never", **spec.pop("container", {})}],
        **spec}})
    eventually(lambda: (cluster.get("v1", "Pod", name)["status"]["phase"]) in ("Succeeded", "Failed"), f"the pod {name} ends", 60)
    assert cluster.get("v1", "Pod", name)["status"]["phase"] == "Succeeded", cluster.kubectl("describe", "pod", name)
    return cluster.kubectl("logs", name)


def run_as_usual(cluster, name):
    return run_pod(cluster, name, "localhost/hangar-node/busybox:1", container={"args": ["-c", "echo as usual"]}) == "as usual\n"


def test_an_annotated_node_runs_wasm_and_is_what_it_was_afterwards(cluster, node, release, wasm_image):
    before = node.files()
    configuration = node.read(CONFIG)
    process = node.read("/run/containerd.pid")

    wish(cluster, "true")
    until(cluster, "Provisioned")
    assert labels(cluster)[LABEL] == NAME
    assert node.read("/run/containerd.pid") != process, "containerd was not started anew"
    assert node.files() != before
    assert run_pod(cluster, "wasm", wasm_image, runtimeClassName="wasmi") == ANSWER
    assert run_as_usual(cluster, "usual")

    undo(cluster)
    assert LABEL not in labels(cluster)
    assert node.read(CONFIG) == configuration
    assert node.files() == before
    assert run_as_usual(cluster, "after")


def test_a_containerd_that_does_not_come_back_stops_it_until_the_node_is_mended(cluster, node, release, wasm_image):
    before = node.files()
    configuration = node.read(CONFIG)
    node.run("sh", "-c", "mv /usr/bin/systemctl /usr/bin/systemctl.whole && printf '#!/bin/sh\\necho no such unit >&2\\nexit 5\\n' >"
             "/usr/bin/systemctl && chmod 755 /usr/bin/systemctl")
    try:
        wish(cluster, "true")
        until(cluster, "Failed")
        assert of(cluster, "last-error").startswith("exit code 8: /usr/bin/systemctl restart containerd failed")
        assert "no such unit" in of(cluster, "last-error") and is_told(cluster, "InstallFailed", "no such unit")
        assert LABEL not in labels(cluster)
        assert node.read(CONFIG) == configuration
        table = subprocess.run([BINARY, "nodes", f"--kubeconfig={cluster.kubeconfig}", f"--namespace={NAMESPACE}"],
                               stdout=subprocess.PIPE, text=True, check=True).stdout
        print(table)
        assert "The rollout is Halted" in table and "no such unit" in table
    finally:
        node.run("mv", "/usr/bin/systemctl.whole", "/usr/bin/systemctl")
    cluster.patch(*NODE, NAME, {"metadata": {"annotations": {OURS + "retry": "true"}}})
    until(cluster, "Provisioned")
    assert run_pod(cluster, "mended", wasm_image, runtimeClassName="wasmi") == ANSWER
    undo(cluster)
    assert node.files() == before


def test_runtimes_are_downloaded_and_none_with_another_checksum(cluster, node, release, installers, shim, shop, wasm_image):
    address, checksum = shop
    source = {"file": shim.name, "architecture": "amd64", "url": address}
    other = {**source, "architecture": "arm64", "sha256": "1" * 64}
    before = node.files()
    process = node.read("/run/containerd.pid")

    release.upgrade(installers["empty"], runtimes=[{**source, "sha256": "0" * 64}, other])
    wish(cluster, "true")
    until(cluster, "Failed")
    wrong = f"{shim.name} from {address}: its sha256 is {checksum}, expected {'0' * 64}"
    assert of(cluster, "last-error") == f"exit code 1: {wrong}" and is_told(cluster, "InstallFailed", wrong)
    eventually(lambda: "its sha256 is" in condition(cluster.get(*NODE, NAME), "WasmProvisioned").get("message", ""), "the condition says so")
    assert node.files() == before and node.read("/run/containerd.pid") == process, "the node was touched"

    # Another checksum is another version: hangar tries it at once.
    release.upgrade(installers["empty"], runtimes=[{**source, "sha256": checksum}, other])
    until(cluster, "Provisioned")
    assert of(cluster, "version").startswith(installers["empty"] + "+runtimes.")
    assert run_pod(cluster, "fetched", wasm_image, runtimeClassName="wasmi") == ANSWER
    undo(cluster)
    assert node.files() == before


def test_an_installer_that_does_not_exist_is_told_at_once(cluster, node, release, installers):
    before = node.files()

    release.upgrade(installers["missing"])
    wish(cluster, "true")
    eventually(lambda: of(cluster, "last-error") == f"the image {installers['missing']} cannot be pulled", "it is told", 60)
    assert of(cluster, "phase") == "Installing"
    release.upgrade(installers["full"])
    undo(cluster)
    assert node.files() == before
