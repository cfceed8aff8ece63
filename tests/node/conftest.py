"""A control plane with a real node: kubelet and containerd run real pods. Needs root and cgroups: `make test-node`."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

from cluster import Cluster  # noqa: E402

from node import NAME, SCRIPT, Node, NodeRegistry  # noqa: E402


def machine_state():
    """Everything that nodes could leave on this machine: mounts, network devices and namespaces, and cgroups, which exist as
    long as processes are in them."""
    mounts = {line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()}
    namespaces = pathlib.Path("/run/netns")
    cgroups = {directory for directory, _, _ in os.walk("/sys/fs/cgroup") if NAME in directory}
    return {"mounts": mounts, "network devices": set(os.listdir("/sys/class/net")), "cgroups": cgroups,
            "network namespaces": set(os.listdir(namespaces)) if namespaces.is_dir() else set()}


@pytest.fixture(scope="session", autouse=True)
def machine():
    """These tests run only by name, so a machine without their requirements is a failure. They leave the machine as it was."""
    done = subprocess.run([SCRIPT, "check"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    before = machine_state()
    yield

    def left():
        return {what: sorted(those - before[what]) for what, those in machine_state().items() if those - before[what]}
    deadline = time.monotonic() + 30  # The kernel needs a moment for cgroups.
    while left() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left() == {}, "the nodes left something behind"


@pytest.fixture(scope="module", params=["2", "1.6"])
def node(request, machine):
    """A node with containerd 2, then one with 1.6, each of a control plane of its own."""
    cluster = Cluster("--with-kcm", "--with-scheduler", "--with-proxy", "--with-registry")
    try:
        made = Node(cluster, request.param)
        try:
            yield made
        finally:
            made.close()
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def cluster(node):
    return node.cluster


@pytest.fixture(scope="module")
def registry(cluster):
    return NodeRegistry(cluster)
