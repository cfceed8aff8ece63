"""Who may send a review: an API server that shows a client certificate, or anyone, who then learns less."""
import ssl

import pytest

import airways
from airways import OPEN_SCHEMA, flight
from cluster import ApiError, condition, eventually
from conftest import control_plane
from host import Host, free_port, to_its_end
from operators import OPERATOR, manifest
from webhooks import (CONVERSIONS, GROUP, Authority, allow_in_cluster, ask, host_with_webhooks, looking_up, refused, refused_airway, review, wait_registered,
                      webhook_flags)

NAMESPACE = "webhooks"
REVIEWS = "/validations/airways.yoke.cd"


@pytest.fixture(scope="module")
def cluster(authority):
    made = control_plane(authority.api_server_shows("kube-apiserver"))
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield made
    made.close()


@pytest.fixture(scope="module")
def webhook_host(cluster, authority, tmp_path_factory):
    yield from host_with_webhooks(cluster, tmp_path_factory.mktemp("webhooks"), NAMESPACE, f"--webhook-client-ca-file={authority.certificate}",
                                  "--webhook-client-names=kube-apiserver,another")


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


@pytest.fixture
def operator_host(cluster, authority, namespace, tmp_path):
    port = free_port()
    host = Host(cluster.kubeconfig, tmp_path / "operators", *webhook_flags(
        port, namespace, f"--webhook-client-ca-file={authority.certificate}", "--webhook-client-names=another", features="operators"))
    host.webhook_port = port
    yield from to_its_end(host)


def test_an_operators_reviews_are_taken_from_the_api_server_and_conversions_at_their_path_alone(cluster, operator_host, authority, namespace, unique, wat):
    name = f"notes.{unique}.hangar.dev"
    cluster.create({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": {
        "group": f"{unique}.hangar.dev", "scope": "Namespaced", "names": {"kind": "Note", "plural": "notes"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN_SCHEMA}}],
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/ok"}}}}})
    allow_in_cluster(cluster, namespace, ("apiextensions.k8s.io", "customresourcedefinitions", name))
    cluster.create(manifest("raw", namespace, module={"url": wat("kube_runtime_webhooks")}, webhooks=[{"kind": "CustomResourceDefinition", "name": name}]))
    eventually(lambda: condition(cluster.get(*OPERATOR, "raw", namespace), "WebhooksReady").get("status") == "True", "it is configured", 120)
    at = f"/operators/{namespace}/raw"

    eventually(lambda: ask(operator_host, f"{at}/ok", "{}") == (200, "ok"), "a conversion is taken from anyone", 120)
    status, words = ask(operator_host, f"{at}/other", review())
    assert status == 401 and "webhook-client-ca-file" in words
    assert ask(operator_host, f"{at}/other", review(), shown=authority.sign("another")) == (200, "ok")
    cluster.delete(*OPERATOR, "raw", namespace)
    cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)


def test_the_api_server_is_told_what_a_flight_says_of_what_it_looked_up(cluster, airway, unique, namespace):
    kind, spec = looking_up(cluster, airway, unique, namespace, NAMESPACE)

    assert "what the flight says" in refused(cluster, kind, "one", "lookup", namespace, **spec)


def test_an_airway_whose_module_cannot_be_had_is_refused(cluster, webhook_host, unique):
    missing = airways.airway(f"{unique}s", "Missing", "/nowhere/flight.wasm", group=GROUP)
    wrong = airways.airway(f"{unique}s", "Wrong", flight("basic"), group=GROUP)
    wrong["spec"]["wasmUrls"]["flightChecksum"] = "0" * 64

    assert "flight.wasm" in refused_airway(cluster, missing)
    assert "0" * 64 in refused_airway(cluster, wrong)


def test_an_airway_whose_converter_asks_for_what_converters_do_not_get_is_refused(cluster, webhook_host, unique):
    manifest = airways.airway(f"{unique}s", "Converted", flight("basic"), group=GROUP)
    manifest["spec"]["template"]["versions"] = [
        {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": OPEN_SCHEMA}} for name in ("v1", "v2")]
    manifest["spec"]["wasmUrls"]["converter"] = flight("behave")

    words = refused_airway(cluster, manifest)
    assert "spec.wasmUrls.converter: module imports" in words and "which a converter does not get" in words


def test_an_override_whose_module_cannot_be_had_is_refused(cluster, webhook_host, airway, unique, namespace):
    kind = f"O{unique}"
    made = airway(airways.airway(f"{kind.lower()}s", kind, flight("behave"), group=GROUP))
    wait_registered(cluster, NAMESPACE, made["metadata"]["name"])
    refused(cluster, kind, "probe", "basic", namespace, exitCode=1)

    with pytest.raises(ApiError, match="absent.wasm"):
        cluster.create(airways.instance(kind, "one", {"behaviour": "basic"}, namespace, group=GROUP,
                                        annotations={"overrides.yoke.cd/flight": f"{airways.GUESTS}/absent.wasm"}))
