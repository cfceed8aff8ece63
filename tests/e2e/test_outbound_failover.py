"""Requests to other servers of a leader that was stopped until another host led."""
import signal

import pytest

import operators
from cluster import eventually
from conftest import COMPILED
from test_leadership import QUICK, wait_until_leading
from test_outbound import LABEL, POLICY, Server, asker, certificate, start_host

AT_ONCE, WAITING = 16, 8  # limits::kOutboundRequestsPerTenantMax, and some more.

pytestmark = pytest.mark.xdist_group("outbound")


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


@pytest.fixture
def servers(certificate):
    """One server for each host: the hosts know the same name by different addresses."""
    first = Server(*certificate)
    made = [first, Server(*certificate, address="127.0.0.2", port=first.server_port)]
    yield made
    for server in made:
        server.ended.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def start(cluster, namespace, certificate, tmp_path):
    hosts = []

    def begin():
        number = len(hosts) + 1
        names = f"127.0.0.1 localhost\n127.0.0.{number} acme.example.org\n"
        hosts.append(start_host(cluster, tmp_path / f"host{number}", certificate, names, "--leader-elect", *QUICK, f"--namespace={namespace}",
                                "--features=operators"))
        return hosts[-1]

    yield begin
    for host in hosts:
        host.stop()


def test_a_leader_that_was_stopped_sends_other_servers_nothing_once_another_leads(cluster, namespace, start, servers, asker):
    first, second = servers
    port = first.server_port
    cluster.apply({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": namespace},
                   "spec": {"namespaceSelector": {"matchLabels": {LABEL: namespace}},
                            "outbound": {"hosts": [f"acme.example.org:{port}"], "privateAddresses": True}}})
    leader = start()
    wait_until_leading(cluster, namespace, leader)
    other = start()
    # The first of them have no answer yet, so the others wait in the host.
    cluster.create(operators.manifest("asker", namespace, f"MANY https://acme.example.org:{port}/slow {AT_ONCE + WAITING}", wasm="asker",
                                      limits={"memory": "256Mi"}))
    eventually(lambda: len(first.asked) == AT_ONCE, "the guest has sent what it may send at a time", COMPILED)
    leader.process.send_signal(signal.SIGSTOP)
    try:
        wait_until_leading(cluster, namespace, other)
        first.ended.set()  # The answers make room for what waits.
        eventually(lambda: len(second.asked) == AT_ONCE, "the guest sends the same on the other host", COMPILED)
    finally:
        leader.process.send_signal(signal.SIGCONT)
    leader.process.wait(60)

    assert first.asked == ["/slow"] * AT_ONCE
    assert leader.process.returncode == 1
    second.ended.set()
    eventually(lambda: len(second.asked) == AT_ONCE + WAITING, "the other host sends all of them", 60)
    assert other.stop() == 0
