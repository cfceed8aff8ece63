"""Reviews of an operator while another host becomes the leader.

The API server finds the leader by the EndpointSlice of a Service, as in a cluster: it resolves Services itself here.
"""
import socket
import threading

import pytest

from cluster import ApiError, eventually
from conftest import control_plane
from hooks import MUTATING, all_rights, built, configurations, make, refused, run, webhooks_ready
from host import Host, free_port
from operators import OPERATOR, lines
from webhooks import ask, review

HOSTS = "webhooks"
SERVICE = "hangar-operators"
SLICE = ("discovery.k8s.io/v1", "EndpointSlice")
LEASE = ("coordination.k8s.io/v1", "Lease", "hangar")
# As short as a busy machine allows.
QUICK = ("--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s")

pytestmark = pytest.mark.xdist_group("operator_webhooks")


@pytest.fixture(scope="module")
def address():
    """One of this machine: an EndpointSlice may not have one of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as prober:
        try:
            prober.connect(("192.0.2.1", 9))  # Sends nothing.
        except OSError:
            pytest.skip("this machine has no address except on loopback")
        return prober.getsockname()[0]


@pytest.fixture(scope="module")
def cluster():
    made = control_plane("--with-kcm", "--apiserver-arg=--enable-aggregator-routing=true")
    made.learn(*MUTATING, "mutatingwebhookconfigurations", False)
    made.learn(*SLICE, "endpointslices")
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOSTS}})
    # As the chart has it: without a selector.
    made.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": HOSTS},
                 "spec": {"ports": [{"name": "webhooks", "port": 443}]}})
    yield made
    made.close()


@pytest.fixture
def start(cluster, address, tmp_path):
    """Starts a host at a port of its own of the address; the first one leads before this returns."""
    hosts = []

    def begin():
        port = free_port()
        host = Host(cluster.kubeconfig, tmp_path / f"host{len(hosts)}", "--leader-elect", *QUICK, f"--webhook-bind-address=0.0.0.0:{port}",
                    f"--webhook-url=https://127.0.0.1:{port}", f"--webhook-leader-service={HOSTS}/{SERVICE}", f"--webhook-leader-address={address}",
                    f"--namespace={HOSTS}", "--webhook-drain=0s", "--features=operators")
        host.webhook_port = port
        hosts.append(host)
        if len(hosts) == 1:
            eventually(lambda: leads(cluster, host), "the first host leads", 60)
        return host

    yield begin
    for host in hosts:
        host.stop()


def leads(cluster, host):
    lease = cluster.get(*LEASE, HOSTS) or {}
    return lease.get("spec", {}).get("holderIdentity", "").endswith(f"_{host.process.pid}")


def endpoint_of(one):
    """Address and port to which an EndpointSlice leads, or None."""
    endpoints = (one or {}).get("endpoints") or []
    return (endpoints[0]["addresses"][0], one["ports"][0]["port"]) if endpoints else None


def endpoint(cluster):
    return endpoint_of(cluster.get(*SLICE, f"{SERVICE}-ipv4", HOSTS))


class Endpoints(threading.Thread):
    """The endpoints that the Service had, one after the other."""

    PATH = f"/apis/discovery.k8s.io/v1/namespaces/{HOSTS}/endpointslices"

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.seen = [endpoint(cluster)]
        self._events = cluster.watch(self.PATH, cluster.request("GET", self.PATH)["metadata"]["resourceVersion"])
        self.start()

    def run(self):
        for event in self._events:
            now = endpoint_of(event["object"]) if event["type"] != "DELETED" else None
            if now != self.seen[-1]:
                self.seen.append(now)


class UnderWay(threading.Thread):
    """The creation of an object that the operator thinks about for four seconds."""

    def __init__(self, cluster, namespace):
        super().__init__(daemon=True)
        self._cluster, self._namespace = cluster, namespace
        self.refusal = None
        self.start()

    def run(self):
        try:
            make(self._cluster, self._namespace, "under-way", "validate", do="slow")
        except ApiError as error:
            self.refusal = str(error)


@pytest.fixture
def leader(cluster, start, namespace, built, configurations):
    """A host that leads and answers the reviews of the API server."""
    host = start()
    all_rights(cluster, namespace)
    run(cluster, namespace)
    eventually(lambda: webhooks_ready(cluster, namespace).get("status") == "True", "the configurations name the Service", 60)
    eventually(lambda: denies(cluster, namespace), "the API server asks the operator", 60)
    yield host
    cluster.delete(*OPERATOR, "hooks", namespace)


def denies(cluster, namespace):
    """Whether the API server has the answer of the operator; an object is never let past it."""
    return "this is not allowed" in refused(cluster, namespace, "bad", "quick", do="deny")


def answers_until_it_runs(host, namespace):
    """What a host answers to reviews before its operator does."""
    answers = set()

    def is_answered():
        status, text = ask(host, f"/operators/{namespace}/hooks/validate", review())
        if status != 200:
            answers.add((status, text))
        return status == 200
    eventually(is_answered, "the operator answers on the other host", 120)
    return answers


@pytest.mark.parametrize("end", ["killed", "ended"])
def test_reviews_follow_the_leader(cluster, address, start, namespace, leader, end):
    other = start()
    history = Endpoints(cluster)
    assert history.seen == [(address, leader.webhook_port)]
    under_way = UnderWay(cluster, namespace)
    eventually(lambda: "waiting under-way" in lines(leader, "hooks", namespace), "the operator has the review", 60)

    if end == "killed":
        leader.kill()
    else:
        assert leader.stop() == 0
    answers = answers_until_it_runs(other, namespace)

    under_way.join(30)
    assert not under_way.is_alive()
    if end == "killed":
        assert 'failed calling webhook "validate.hooks.hangar.dev"' in under_way.refusal
        assert any("does not lead" in text for _, text in answers)
    else:
        assert under_way.refusal is None, "a host that ends lets the reviews that it has be answered"
    # Nothing that a client could take for an operator that does not exist.
    assert {status for status, _ in answers} <= {503}
    assert all(text.strip() for _, text in answers)

    eventually(lambda: endpoint(cluster) == (address, other.webhook_port), "the Service leads to the other host", 60)
    eventually(lambda: denies(cluster, namespace), "the API server asks the operator there", 60)
    assert make(cluster, namespace, "good", "validate")["metadata"]["name"] == "good"
    between = [] if end == "killed" else [None]
    eventually(lambda: history.seen == [(address, leader.webhook_port), *between, (address, other.webhook_port)], "it had these endpoints")

    leader.start()
    status, text = ask(leader, f"/operators/{namespace}/hooks/validate", review())
    assert (status, text) == (503, "this replica does not lead, and runs no operators\n")
    assert endpoint(cluster) == (address, other.webhook_port)
    assert denies(cluster, namespace)


def test_a_leader_that_ends_leaves_no_endpoint_behind(cluster, namespace, leader):
    assert leader.stop() == 0

    assert endpoint(cluster) is None
    eventually(lambda: "no endpoints available" in refused(cluster, namespace, "nobody", "quick"), "the API server says at once that nobody answers", 60)
