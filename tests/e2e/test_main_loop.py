"""Long work for one object does not delay all others."""
import pytest

from airways import airway as manifest_of
from airways import flight, instance
from cluster import condition, eventually
from host import Host

GROUP = "loop.hangar.dev"


@pytest.fixture(scope="module")
def cluster(own_cluster):
    """Of its own: a second host on the shared one would work on the same instances."""
    return own_cluster


@pytest.fixture
def own_host(cluster, tmp_path):
    host = Host(cluster.kubeconfig, tmp_path / "host", "--features=airways", "--guest-threads=2")
    yield host
    assert host.stop() == 0


def test_a_large_document_of_one_flight_holds_up_no_other(cluster, own_host, airway, namespace, unique):
    kind = f"M{unique}"
    airway(manifest_of(f"{kind.lower()}s", kind, flight("behave"), group=GROUP))
    large = {"behaviour": "repeat", "stdout": "- a\n", "count": 3_000_000}
    cluster.create(instance(kind, "large", large, namespace, GROUP))
    eventually(lambda: own_host.metrics().get("hangar_evaluations_total"), "the flight has printed it", 60)

    cluster.create(instance(kind, "small", {"behaviour": "basic", "data": {"a": "b"}}, namespace, GROUP))
    eventually(lambda: cluster.get("v1", "ConfigMap", "small", namespace), "another instance is served")

    def verdict():
        return condition(cluster.get(f"{GROUP}/v1", kind, "large", namespace)).get("reason")
    assert verdict() != "Error", "the large document was read first"
    eventually(lambda: verdict() == "Error", "it is read, and is not what a flight prints", 300)
