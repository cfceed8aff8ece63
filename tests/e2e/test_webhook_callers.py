"""Who may send a review: an API server that shows a client certificate, or anyone, who then learns less."""
import ssl

import pytest

from conftest import control_plane
from host import Host, free_port, to_its_end
from webhooks import CONVERSIONS, Authority, ask, looking_up, refused, remove_configurations, review, wait_registered, webhook_flags

NAMESPACE = "webhooks"
REVIEWS = "/validations/airways.yoke.cd"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("clients"), "clients")


@pytest.fixture(scope="module")
def cluster(authority):
    made = control_plane(authority.api_server_shows("kube-apiserver"))
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield made
    made.close()


@pytest.fixture(scope="module")
def webhook_host(cluster, authority, tmp_path_factory):
    port = free_port()
    host = Host(cluster.kubeconfig, tmp_path_factory.mktemp("webhooks"), *webhook_flags(
        port, NAMESPACE, f"--webhook-client-ca-file={authority.certificate}", "--webhook-client-names=kube-apiserver,another"))
    host.webhook_port = port
    wait_registered(cluster, NAMESPACE)
    yield from to_its_end(host)
    remove_configurations(cluster, NAMESPACE)


def test_a_review_is_taken_from_the_api_server_alone(webhook_host, authority, tmp_path):
    status, words = ask(webhook_host, REVIEWS, review())
    assert status == 401 and "webhook-client-ca-file" in words
    assert ask(webhook_host, REVIEWS, review(), shown=authority.sign("somebody"))[0] == 401
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(webhook_host, REVIEWS, review(), shown=Authority(tmp_path, "others").sign("kube-apiserver"))

    assert ask(webhook_host, REVIEWS, review(), shown=authority.sign("another"))[0] == 200
    # For probes of the API server or a kubelet, which show no certificate.
    assert ask(webhook_host, "/ready", None, "GET")[0] == 200
    assert ask(webhook_host, f"{CONVERSIONS}nobodys", "{}")[0] == 400


def test_the_api_server_is_told_what_a_flight_says_of_what_it_looked_up(cluster, airway, unique, namespace):
    kind, spec = looking_up(cluster, airway, unique, namespace, NAMESPACE)

    assert "what the flight says" in refused(cluster, kind, "one", "lookup", namespace, **spec)
