"""A control plane with a real node: kubelet and containerd run real pods. Needs root and cgroups: `make test-node`."""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

from cluster import Cluster  # noqa: E402

from node import SCRIPT, Node, NodeRegistry  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def machine():
    """These tests are asked for by name, so what the machine lacks is a failure."""
    done = subprocess.run([SCRIPT, "check"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=["2", "1.6"])
def node(request, machine):
    """A node with containerd 2, then one with 1.6, each of a control plane of its own."""
    cluster = Cluster("--with-kcm", "--with-scheduler", "--with-proxy", "--with-registry")
    try:
        made = Node(cluster, request.param)
        yield made
        made.close()
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def cluster(node):
    return node.cluster


@pytest.fixture(scope="module")
def registry(cluster):
    return NodeRegistry(cluster)
