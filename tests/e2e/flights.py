"""Flights and ClusterFlights of the test flights, as manifests, and rights for the accounts that they act as."""
import operators
from airways import flight
from cluster import condition, eventually, is_ready
from conftest import COMPILED

API = "yoke.cd/v1alpha1"
FLIGHT, CLUSTER_FLIGHT = (API, "Flight"), (API, "ClusterFlight")
ANNOTATION = "hangar.dev/service-account"
MAKES = ("get", "create", "patch", "delete")


def manifest(name, namespace, wasm="behave", kind="Flight", account=None, **spec):
    """`wasm`: a test flight, or a URL. Without inputObject its standard input is empty."""
    spec.setdefault("wasmUrl", wasm if ":" in wasm or "/" in wasm else flight(wasm))
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    if account:
        metadata["annotations"] = {ANNOTATION: account}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def behaving(name, behaviour, **spec):
    """The inputObject that makes `behave` show this behaviour, for a resource of this name."""
    return {"metadata": {"name": name}, "spec": {"behaviour": behaviour, **spec}}


def greeting(name, namespace, text="hi"):
    """The inputObject that makes one of the flights greeting_* print a ConfigMap with the name of the Flight."""
    return {"apiVersion": API, "kind": "Flight", "metadata": {"name": name, "namespace": namespace}, "spec": {"text": text}}


def allow(cluster, namespace, *verbs, resources=("configmaps",), account="default"):
    operators.allow(cluster, namespace, *(verbs or MAKES), resources=resources, account=account)


class Flights:
    """The Flights of one namespace."""

    kind = FLIGHT

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace, self.made = cluster, namespace, []

    def create(self, name, behaviour=None, wasm="behave", account=None, does=None, **spec):
        """`does`: the spec that `behave` reads; `spec`: the Flight's own."""
        if behaviour:
            spec["inputObject"] = behaving(name, behaviour, **(does or {}))
        self.made.append(name)
        return self.cluster.create(manifest(name, self.namespace, wasm, self.kind[1], account, **spec))

    def get(self, name):
        return self.cluster.get(*self.kind, name, self.namespace)

    def patch(self, name, **spec):
        return self.cluster.patch(*self.kind, name, {"spec": spec}, self.namespace)

    def behave(self, name, behaviour, **spec):
        """Replaces the behaviour of the Flight and its parameters."""
        path = self.cluster.path(*self.kind, self.namespace, name)
        return self.cluster.request("PATCH", path + "?fieldManager=e2e", [
            {"op": "replace", "path": "/spec/inputObject", "value": behaving(name, behaviour, **spec)}], "application/json-patch+json")

    def delete(self, name):
        self.cluster.delete(*self.kind, name, self.namespace)

    def ready(self, name, seconds=COMPILED):
        try:
            return eventually(lambda: (lambda one: one if is_ready(one) else None)(self.get(name)), f"Flight {name} is Ready", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {condition(self.get(name))}") from None

    def says(self, name, *words, reason="Error", seconds=COMPILED):
        """The message of the condition Ready with that reason, once it has the words."""
        def look():
            ready = condition(self.get(name))
            return ready.get("reason") == reason and all(word in ready["message"] for word in words) and ready["message"]
        try:
            return eventually(look, f"{name} says {words}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {condition(self.get(name))}") from None

    def goes(self, name, seconds=60):
        eventually(lambda: self.get(name) is None, f"Flight {name} is gone", seconds)

    def data(self, name):
        return (self.cluster.get("v1", "ConfigMap", name, self.namespace) or {}).get("data")
