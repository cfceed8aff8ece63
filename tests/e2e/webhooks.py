"""A host's webhooks, as the API server knows and calls them."""
import base64
import contextlib
import http.client
import json
import ssl
import subprocess
import time

import pytest

from airways import airway as manifest_of
from airways import flight, instance
from cluster import ApiError, eventually, when_compiled
from host import Host, free_port, to_its_end
from users import openssl

CONFIGURATION = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
POLICY, BINDING = ((CONFIGURATION[0], kind) for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"))
# The kinds of create() and refused(); their flight is `behave`.
GROUP = "admission.hangar.dev"
CONVERSIONS = "/crdconvert/"


def webhook_flags(port, namespace, *more, reached=None, features="airways", drain="0s"):
    """`reached`: the port for the API server, if it is another one than the host's."""
    return (f"--webhook-bind-address=127.0.0.1:{port}", f"--webhook-url=https://127.0.0.1:{reached or port}", f"--namespace={namespace}",
            f"--webhook-drain={drain}", f"--features={features}", *more)


def configurations(cluster, namespace):
    return {one["metadata"]["name"]: one for one in cluster.list(*CONFIGURATION, selector=f"hangar.dev/kept-by={namespace}")}


def kept_by(cluster, namespace, kind):
    """The names of the objects of that kind that the namespace's host keeps."""
    return {one["metadata"]["name"] for one in cluster.list(*kind, selector=f"hangar.dev/kept-by={namespace}")}


def make_policy(cluster, name, keeper):
    """A policy and its binding, for no object, as the host of that namespace keeps them."""
    metadata = {"name": name, "labels": {"hangar.dev/kept-by": keeper}}
    rule = {"apiGroups": ["nowhere.hangar.dev"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"]}
    cluster.create({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": metadata, "spec": {
        "failurePolicy": "Ignore", "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}})
    cluster.create({"apiVersion": BINDING[0], "kind": BINDING[1], "metadata": metadata, "spec": {"policyName": name, "validationActions": ["Deny"]}})


def wait_registered(cluster, namespace, name="hangar-airways"):
    return eventually(lambda: configurations(cluster, namespace).get(name), f"the configuration {name} is there", 60)


def allow_in_cluster(cluster, namespace, *rules):
    """Lets the ServiceAccount of the namespace read and change single objects of the cluster: (group, resource, name)."""
    prefix = "/apis/rbac.authorization.k8s.io/v1"
    cluster.request("POST", f"{prefix}/clusterroles", {"metadata": {"name": f"hooks-{namespace}"}, "rules": [
        {"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": ["get", "patch"]} for group, resource, name in rules]})
    cluster.request("POST", f"{prefix}/clusterrolebindings", {
        "metadata": {"name": f"hooks-{namespace}"}, "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"hooks-{namespace}"}})


def remove_configurations(cluster, namespace):
    for name in configurations(cluster, namespace):
        cluster.delete(*CONFIGURATION, name)


def host_with_webhooks(cluster, directory, namespace, *more, features="airways"):
    """For a fixture's `yield from`: a host whose webhooks are registered. It has to exit cleanly after its tests; its configurations are then removed, which
    would otherwise refuse writes."""
    port = free_port()
    host = Host(cluster.kubeconfig, directory, *webhook_flags(port, namespace, *more, features=features))
    host.webhook_port, host.namespace = port, namespace
    wait_registered(cluster, namespace, f"hangar-{features}")
    yield from to_its_end(host)
    remove_configurations(cluster, namespace)


@contextlib.contextmanager
def standby(cluster, namespace, directory):
    """A host of that namespace, with an empty cache, that answers but does not lead: somebody else has the Lease."""
    lease = ("coordination.k8s.io/v1", "Lease", "hangar", namespace)
    cluster.create({"apiVersion": lease[0], "kind": lease[1], "metadata": {"name": lease[2], "namespace": namespace}, "spec": {
        "holderIdentity": "somebody", "leaseDurationSeconds": 3600, "leaseTransitions": 0, "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())}})
    port = free_port()
    other = Host(cluster.kubeconfig, directory / "standby", *webhook_flags(port, namespace, "--leader-elect"), wait=False)
    try:
        other.wait_ready()
        other.webhook_port = port
        yield other
    finally:
        other.stop()
        cluster.delete(*lease)


def ask(host, path, body, method="POST", authorities=None, shown=None):
    """Calls the server as the API server does. `shown`: a file with a certificate of the client, and its key."""
    context = ssl.create_default_context(cadata=authorities) if authorities else ssl._create_unverified_context()
    if shown:
        context.load_cert_chain(shown)
    connection = http.client.HTTPSConnection("127.0.0.1", host.webhook_port, context=context, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def is_trusted(host, authorities):
    """The host shows a certificate of one of these authorities."""
    try:
        return ask(host, "/live", None, "GET", authorities)[0] == 200
    except OSError:
        return False


def authorities_of(cluster, namespace):
    secret = cluster.get("v1", "Secret", "hangar-webhook", namespace)
    return base64.b64decode(secret["data"]["ca.crt"]).decode()


def bundle_of(webhook):
    """The authorities that the API server trusts for a webhook of a configuration, or for the conversion of a CRD."""
    return base64.b64decode(webhook["clientConfig"].get("caBundle", "")).decode()


def review(**request):
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "object": {"metadata": {"name": "x"}}, **request}})


def create(cluster, kind, name, behaviour, namespace, **spec):
    return cluster.create(instance(kind, name, {"behaviour": behaviour, **spec}, namespace, group=GROUP))


def refused(cluster, kind, name, behaviour, namespace, **spec):
    """The message of the refusal. Waits until the webhook is in force: objects accepted before are deleted."""
    def attempt():
        try:
            create(cluster, kind, name, behaviour, namespace, **spec)
        except ApiError as error:
            if "denied the request" in str(error):
                return str(error)
            raise
        cluster.delete(f"{GROUP}/v1", kind, name, namespace)
        eventually(lambda: cluster.get(f"{GROUP}/v1", kind, name, namespace) is None, "the instance is gone", 60)
        return None
    return eventually(attempt, f"{name} is refused", 30)


def refused_airway(cluster, manifest):
    with pytest.raises(ApiError) as refusal:
        when_compiled(lambda: cluster.create(manifest))
    assert 'admission webhook "airways.yoke.cd" denied the request' in str(refusal.value)
    return str(refusal.value)


def looking_up(cluster, airway, unique, namespace, host_namespace, matchers=("*",)):
    """A kind, and fields of an instance's spec with which its flight looks up a Secret, prints a text, and fails."""
    kind = f"A{unique}"
    made = airway(manifest_of(f"{kind.lower()}s", kind, flight("behave"), group=GROUP, clusterAccess=True, resourceAccessMatchers=list(matchers)))
    wait_registered(cluster, host_namespace, made["metadata"]["name"])
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "namespace": namespace}})
    resource = {"apiVersion": "v1", "kind": "Secret", "name": "secret", "namespace": namespace}
    return kind, {"lookup": resource, "exitCode": 1, "stderr": "what the flight says"}


def warnings_of(cluster, manifest):
    """What kubectl shows of the warnings when the manifest is sent as a dry run; None when it is refused."""
    done = subprocess.run([cluster.env["HANGAR_CP_KUBECTL"], "--kubeconfig", cluster.kubeconfig, "apply", "--dry-run=server", "-f", "-"],
                          input=json.dumps(manifest), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stderr if done.returncode == 0 else None


def as_user(cluster, method, path, body=None, content_type="application/merge-patch+json"):
    """As a user who may do everything, and is not the account that applies a release."""
    return cluster.request(method, path, body, content_type, {"Impersonate-User": "alice", "Impersonate-Group": "system:masters"})


class Authority:
    """Signs certificates of clients and servers."""

    def __init__(self, directory, name):
        self.directory, self.certificate, self.key = directory, directory / f"{name}.crt", directory / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", str(self.key), "-out", str(self.certificate))

    def _sign(self, name, key, certificate, *extensions):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-CA", str(self.certificate), "-CAkey", str(self.key), "-addext", "basicConstraints=critical,CA:FALSE",
                *(word for extension in extensions for word in ("-addext", extension)), "-keyout", str(key), "-out", str(certificate))

    def sign(self, name):
        """A file with the certificate of a client and its key."""
        key, certificate, both = (self.directory / f"{self.certificate.stem}-{name}.{end}" for end in ("key", "crt", "pem"))
        self._sign(name, key, certificate, "extendedKeyUsage=clientAuth")
        both.write_text(certificate.read_text() + key.read_text())
        return both

    def serve(self, directory):
        """Fills the directory with the certificate of a server at 127.0.0.1, as a mounted Secret of cert-manager has it."""
        directory.mkdir()
        self._sign("webhooks", directory / "tls.key", directory / "tls.crt", "extendedKeyUsage=serverAuth", "subjectAltName=IP:127.0.0.1")
        (directory / "ca.crt").write_text(self.certificate.read_text())
        return directory

    def api_server_shows(self, name):
        """The control plane's option by which its API server shows such a certificate to every webhook, as an AdmissionConfiguration says."""
        shown = self.sign(name)
        kubeconfig = self.directory / "kubeconfig.json"
        kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": [
            {"name": "*", "user": {"client-certificate": str(shown), "client-key": str(shown)}}]}))
        configuration = self.directory / "admission.json"
        configuration.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
            {"name": "ValidatingAdmissionWebhook", "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}}]}))
        return f"--apiserver-arg=--admission-control-config-file={configuration}"
