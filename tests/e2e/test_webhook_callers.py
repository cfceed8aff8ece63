"""Who may send a review: an API server that shows a client certificate, or anyone, who then learns less."""
import json
import ssl
import subprocess

import pytest

from conftest import control_plane
from host import Host, free_port, to_its_end
from webhooks import CONVERSIONS, GROUP, ask, looking_up, refused, remove_configurations, review, wait_registered, webhook_flags

NAMESPACE = "webhooks"
REVIEWS = "/validations/airways.yoke.cd"


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Authority:
    """Signs certificates of clients. Each is a file with the certificate and its key."""

    def __init__(self, directory, name):
        self.directory, self.certificate, self.key = directory, directory / f"{name}.crt", directory / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", str(self.key), "-out", str(self.certificate))

    def sign(self, name):
        key, certificate, both = (self.directory / f"{self.certificate.stem}-{name}.{end}" for end in ("key", "crt", "pem"))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-CA", str(self.certificate), "-CAkey", str(self.key), "-addext", "basicConstraints=critical,CA:FALSE",
                "-addext", "extendedKeyUsage=clientAuth", "-keyout", str(key), "-out", str(certificate))
        both.write_text(certificate.read_text() + key.read_text())
        return both


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("clients"), "clients")


@pytest.fixture(scope="module")
def cluster(authority):
    """Its API server shows a certificate to every webhook, as an AdmissionConfiguration says."""
    shown = authority.sign("kube-apiserver")
    kubeconfig = authority.directory / "kubeconfig.json"
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": [
        {"name": "*", "user": {"client-certificate": str(shown), "client-key": str(shown)}}]}))
    configuration = authority.directory / "admission.json"
    configuration.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
        {"name": "ValidatingAdmissionWebhook", "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}}]}))
    made = control_plane(f"--apiserver-arg=--admission-control-config-file={configuration}")
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
