"""Silent name servers: the host goes on with everything that needs no name."""
import random
import socket

import pytest

from cluster import condition, eventually
from confined import mounting
from conftest import control_plane
from host import Host, to_its_end
from operators import OPERATOR, phase

LEASE = ("coordination.k8s.io/v1", "Lease")


class SilentNameServer:
    """Receives queries at the only port that /etc/resolv.conf can name, and answers none."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # An address of its own on loopback: other tests may run beside this one.
        self.address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        try:
            self.socket.bind((self.address, 53))
        except PermissionError:
            pytest.skip("port 53 is for root")
        self.socket.settimeout(60)

    def wait_for(self, name):
        """Waits until a client asks for that name."""
        wanted = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        while wanted not in self.socket.recv(512):
            pass


@pytest.fixture
def name_server():
    made = SilentNameServer()
    yield made
    made.socket.close()


@pytest.fixture(scope="module")
def cluster():
    """A control plane of its own, and with it the Lease."""
    made = control_plane()
    yield made
    made.close()


@pytest.fixture
def host(cluster, tmp_path, name_server):
    """A host that knows this name server only, and by /etc/resolv.conf would wait for it for minutes."""
    configuration = tmp_path / "resolv.conf"
    configuration.write_text(f"nameserver {name_server.address}\noptions timeout:30 attempts:5\n")
    yield from to_its_end(Host(cluster.kubeconfig, tmp_path / "host", "--leader-elect", "--namespace=default",
                               inside=mounting(f"mount --bind {configuration} /etc/resolv.conf")))


def test_a_name_server_that_says_nothing_holds_up_one_module_and_nothing_else(cluster, host, namespace, operator, name_server):
    operator("away", module={"url": "http://registry.silent.example/module.wasm"})
    name_server.wait_for("registry.silent.example")

    # The lookup is under way, and is cancelled.
    cluster.delete(*OPERATOR, "away", namespace)
    eventually(lambda: cluster.get(*OPERATOR, "away", namespace) is None, "the operator is deleted")
    operator("late", module={"url": "http://registry.silent.example/other.wasm"})
    name_server.wait_for("registry.silent.example")

    # While another lookup is under way, other work goes on.
    operator("near", "print=hello", "exit=0")
    eventually(lambda: phase(cluster.get(*OPERATOR, "near", namespace)) == "Completed", "the operator next to it has run", 60)

    # Until its time is up, which the status reports.
    def why():
        stalled = condition(cluster.get(*OPERATOR, "late", namespace), "Ready") or {}
        return "the module's server cannot be reached" in stalled.get("message", "")
    eventually(why, "the status says what is missing", 60)
    assert host.process.poll() is None, f"the host lost its Lease:\n{host.tail()}"
    assert cluster.get(*LEASE, "hangar", "default")["spec"]["leaseTransitions"] == 0
