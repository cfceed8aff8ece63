"""A host's webhooks, as the API server knows and calls them."""
import base64
import http.client
import json
import ssl

import pytest

from airways import airway as manifest_of
from airways import flight, instance
from cluster import ApiError, eventually, when_compiled

CONFIGURATION = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
# The kinds of create() and refused(); their flight is `behave`.
GROUP = "admission.hangar.dev"
CONVERSIONS = "/crdconvert/"


def webhook_flags(port, namespace, *more, reached=None):
    """`reached`: the port for the API server, if it is another one than the host's."""
    return (f"--webhook-bind-address=127.0.0.1:{port}", f"--webhook-url=https://127.0.0.1:{reached or port}", f"--namespace={namespace}",
            "--webhook-drain=0s", "--features=airways", *more)


def configurations(cluster, namespace):
    return {one["metadata"]["name"]: one for one in cluster.list(*CONFIGURATION, selector=f"hangar.dev/kept-by={namespace}")}


def wait_registered(cluster, namespace, name="hangar-airways"):
    return eventually(lambda: configurations(cluster, namespace).get(name), f"the configuration {name} is there", 60)


def remove_configurations(cluster, namespace):
    for name in configurations(cluster, namespace):
        cluster.delete(*CONFIGURATION, name)


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


def authorities_of(cluster, namespace):
    secret = cluster.get("v1", "Secret", "hangar-webhook", namespace)
    return base64.b64decode(secret["data"]["ca.crt"]).decode()


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


def looking_up(cluster, airway, unique, namespace, host_namespace):
    """A kind, and fields of an instance's spec with which its flight looks up a Secret, prints a text, and fails."""
    kind = f"A{unique}"
    made = airway(manifest_of(f"{kind.lower()}s", kind, flight("behave"), group=GROUP, clusterAccess=True, resourceAccessMatchers=["*"]))
    wait_registered(cluster, host_namespace, made["metadata"]["name"])
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "namespace": namespace}})
    resource = {"apiVersion": "v1", "kind": "Secret", "name": "secret", "namespace": namespace}
    return kind, {"lookup": resource, "exitCode": 1, "stderr": "what the flight says"}
