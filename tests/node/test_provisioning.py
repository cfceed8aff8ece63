"""Node provisioning for real: an annotated node gets a shim, containerd comes back, a Wasm container answers; undone, every
byte is as before."""
import pathlib
import subprocess

import pytest
import yaml

from charts import CHART, helm
from cluster import ROOT, eventually

import node as nodes
from node import NAME, build_image

NAMESPACE = "hangar-system"
NODE = ("v1", "Node")
WISH = "kwasm.sh/kwasm-node"


@pytest.fixture(scope="module")
def shim():
    """containerd-shim-wasmi-v1, as tests/node/shim.sh builds it."""
    return pathlib.Path(subprocess.run([str(ROOT / "tests/node/shim.sh")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


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


@pytest.fixture(scope="module")
def release(cluster, registry, shim, wasm_image, tmp_path_factory):
    """The chart, with our installer in it, on a cluster whose node nobody has annotated yet."""
    images = tmp_path_factory.mktemp("images")
    runtimes = tmp_path_factory.mktemp("runtimes")
    (runtimes / shim.name).write_bytes(shim.read_bytes())
    build_image("host", images / "host.tar", "hangar:test")
    build_image("installer", images / "installer.tar", "installer:test", f"--runtimes={runtimes}")
    host = registry.push_archive("hangar", "test", images / "host.tar")
    installer = registry.push_archive("installer", "test", images / "installer.tar")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
    cluster.create(registry.pull_secret("pull", NAMESPACE))
    # The Jobs run as the namespace's own service account: that is who may pull the installer.
    eventually(lambda: cluster.get("v1", "ServiceAccount", "default", NAMESPACE), "the namespace has its service account")
    cluster.patch("v1", "ServiceAccount", "default", {"imagePullSecrets": [{"name": "pull"}]}, NAMESPACE)
    values = {
        "image": {"repository": host.rpartition(":")[0], "tag": "test"}, "imagePullSecrets": [{"name": "pull"}],
        "features": {"airways": False, "operators": False, "workflows": False},
        "kwasmOperator": {"installerImage": installer},
        "nodes": {"runtimeClasses": ["wasmi"], "probeImage": wasm_image},
        "settings": {"nodeReadyDelay": "1s"}}
    helm("install", "hangar", str(CHART), "--namespace", NAMESPACE, "--wait", "--timeout", "120s", "--values", "-",
         stdin=yaml.safe_dump(values), env={"KUBECONFIG": cluster.kubeconfig})


def labels(cluster):
    return cluster.get(*NODE, NAME)["metadata"].get("labels", {})


def wish(cluster, value):
    cluster.patch(*NODE, NAME, {"metadata": {"annotations": {WISH: value}}})


def run_pod(cluster, name, image, **spec):
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": image, "imagePullPolicy": "Never", **spec.pop("container", {})}],
        **spec}})
    eventually(lambda: (cluster.get("v1", "Pod", name)["status"]["phase"]) in ("Succeeded", "Failed"), f"the pod {name} ends", 60)
    assert cluster.get("v1", "Pod", name)["status"]["phase"] == "Succeeded", cluster.kubectl("describe", "pod", name)
    return cluster.kubectl("logs", name)


def test_an_annotated_node_runs_wasm_and_is_what_it_was_afterwards(cluster, node, release, wasm_image):
    before = node.files()
    configuration = node.read("/etc/containerd/config.toml")
    process = node.read("/run/containerd.pid")

    wish(cluster, "true")
    eventually(lambda: labels(cluster).get("kwasm.sh/kwasm-provisioned") == NAME, "the node is provisioned", 180)
    assert node.read("/run/containerd.pid") != process, "containerd was not started anew"
    assert node.files() != before
    assert run_pod(cluster, "wasm", wasm_image, runtimeClassName="wasmi") == "answered by a Wasm container\n"
    assert run_pod(cluster, "usual", "localhost/hangar-node/busybox:1", container={"args": ["-c", "echo as usual"]}) == "as usual\n"

    wish(cluster, None)
    eventually(lambda: "kwasm.sh/kwasm-provisioned" not in labels(cluster), "the node is as it was", 180)
    eventually(lambda: not cluster.list("batch/v1", "Job", NAMESPACE), "the Jobs are gone", 60)
    assert node.read("/etc/containerd/config.toml") == configuration
    assert node.files() == before
    assert run_pod(cluster, "after", "localhost/hangar-node/busybox:1", container={"args": ["-c", "echo as usual"]}) == "as usual\n"
