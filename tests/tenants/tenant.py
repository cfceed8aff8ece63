"""The attacker: a user with the rights that a namespace's administrator gives to a team.

It acts only under its own identity: as a user with rights in its namespaces, or by operators and workflows there.
"""
import base64
import contextlib
import gzip
import json
import pathlib
import subprocess
import threading

import operators
import workflows
from airways import flight
from cluster import ROOT, ApiError, Cluster
from stage import config_map

# The objects that every new namespace contains.
RULES = [{"apiGroups": ["hangar.dev", "workflows.example.com", "tenants.hangar.dev"], "resources": ["*"], "verbs": ["*"]},
         {"apiGroups": ["", "batch", "apps"], "resources": ["*"], "verbs": ["*"]}]
COLLECTIONS = ("/apis/hangar.dev/v1alpha1/namespaces/{}/operators", "/apis/workflows.example.com/v1/namespaces/{}/statefulworkflows",
               "/apis/tenants.hangar.dev/v1/namespaces/{}/greetings", "/apis/apps/v1/namespaces/{}/controllerrevisions",
               "/api/v1/namespaces/{}/configmaps", "/api/v1/namespaces/{}/secrets", "/apis/batch/v1/namespaces/{}/jobs",
               "/api/v1/namespaces/{}/events")
POLICIES = "/apis/hangar.dev/v1alpha1/tenantpolicies"


class ActingAs(Cluster):
    """The same control plane, as another user."""

    def __init__(self, cluster, user):  # Starts nothing: it belongs to another object.
        self.__dict__.update(cluster.__dict__)
        self._user = user

    def request(self, method, path, body=None, content_type="application/json", headers=None):
        return super().request(method, path, body, content_type, {**(headers or {}), "Impersonate-User": self._user})


class Tenant:
    def __init__(self, stage, victim, name):
        self.stage, self.victim, self.name, self.namespace = stage, victim, name, name
        self.namespaces = []
        self._is_bounded = False
        self._admin = stage.cluster
        self.cluster = ActingAs(stage.cluster, name)
        self._threads, self._over = [], threading.Event()
        self.add_namespace(name)

    # What he has --------------------------------------------------------------------------------

    def add_namespace(self, name):
        """Makes it the attacker's: his user may do everything in it, and so may its service account."""
        self.stage.add_tenant(name)
        self._grant(name, "tenant", RULES)
        self.namespaces.append(name)
        self.module("puppet", pathlib.Path(flight(operators.BEHAVE)).read_bytes(), namespace=name)

    def may_do_everything(self):
        """The administrator gives the attacker all rights in its namespace, for all API groups, also those that do not exist."""
        self._grant(self.namespace, "everything", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])

    def _grant(self, namespace, name, rules):
        prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        self._admin.request("POST", f"{prefix}/roles", {"metadata": {"name": name}, "rules": rules})
        self._admin.request("POST", f"{prefix}/rolebindings", {
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": self.name},
                         {"kind": "ServiceAccount", "name": "default", "namespace": namespace}]})

    def bounded(self, **budgets):
        """The administrator gives the attacker's namespace a TenantPolicy with these budgets; it goes with him."""
        self._admin.request("POST", POLICIES, {
            "apiVersion": "hangar.dev/v1alpha1", "kind": "TenantPolicy", "metadata": {"name": self.name},
            "spec": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}, "budgets": budgets}})
        self._is_bounded = True

    def module(self, name, binary=None, packed=None, namespace=None):
        """A ConfigMap with a module; `packed` is already compressed by gzip."""
        manifest = config_map(name, namespace or self.namespace, {"module": packed or gzip.compress(binary, compresslevel=6)})
        self.cluster.apply(manifest)
        return {"configMap": {"name": name, "key": "module"}}

    def machine(self, name, text):
        self.cluster.apply(config_map(name, self.namespace, **{"machine.js": text}))
        return name

    def config_map(self, name, **data):
        return self.cluster.create(config_map(name, self.namespace, **data))

    def operator(self, name, *steps, module=None, namespace=None, metadata=None, **spec):
        """An Operator, of the puppet unless a module is given."""
        return self.cluster.create({
            "apiVersion": operators.OPERATOR[0], "kind": operators.OPERATOR[1],
            "metadata": {"name": name, "namespace": namespace or self.namespace, **(metadata or {})},
            "spec": {"module": module or {"configMap": {"name": "puppet"}}, "args": list(steps), **spec}})

    def workflow(self, name, config_map=None, **spec):
        return self.cluster.create(workflows.workflow(name, self.namespace, config_map, **spec))

    # What he sees -------------------------------------------------------------------------------

    def printed(self, name):
        return operators.lines(self.stage.host, name, self.namespace)

    def get(self, name, namespace=None):
        return self.cluster.get(*operators.OPERATOR, name, namespace or self.namespace) or {}

    def is_noticed(self, name, namespace=None):
        """The host has reported something about that Operator."""
        return bool(operators.phase(self.get(name, namespace)))

    def workflow_status(self, name):
        return workflows.status(self.cluster, self.namespace, name)

    def everything_he_can_read(self):
        """All objects of his namespaces, and his operators' output; without what he wrote himself."""
        texts = []
        for namespace in self.namespaces:
            for collection in COLLECTIONS:
                for one in self._admin.request("GET", collection.format(namespace))["items"]:
                    texts.append(json.dumps(unpacked(one)))
            for one in self._admin.request("GET", COLLECTIONS[0].format(namespace))["items"]:
                texts.append(operators.logs(self.stage.host, one["metadata"]["name"], namespace))
        return texts

    # What he does ---------------------------------------------------------------------------------

    def meanwhile(self, act):
        """Calls `act` again and again on a thread until the attack is over; refusals by the API server are part of it.
        Returns a function that says how often it was called."""
        count = [0]

        def run():
            while not self._over.is_set():
                with contextlib.suppress(ApiError, AssertionError, OSError):
                    act()
                count[0] += 1
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()
        return lambda: count[0]

    def stops(self):
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def leaves(self):
        """Deletes all that is his; a deleted operator ends, however busy it is."""
        self.stops()
        for namespace in self.namespaces:
            for one in self._admin.request("GET", COLLECTIONS[0].format(namespace))["items"]:
                if one["metadata"].get("finalizers"):
                    self._admin.patch(*operators.OPERATOR, one["metadata"]["name"], {"metadata": {"finalizers": None}}, namespace)
            for collection in COLLECTIONS:
                self._admin.request("DELETE", collection.format(namespace))
            self._admin.delete("v1", "Namespace", namespace)
        if self._is_bounded:
            self._admin.request("DELETE", f"{POLICIES}/{self.name}")
            self._is_bounded = False


def unpacked(manifest):
    """A copy of a module is kept compressed: he could read its content."""
    for key, value in (manifest.get("data") or {}).items():
        with contextlib.suppress(Exception):
            manifest["data"][key] = gzip.decompress(base64.b64decode(value)).decode("latin-1")
    return manifest


def wat(name):
    """One of tests/guests/*.wat as bytes."""
    return assembled((ROOT / f"tests/guests/{name}.wat").read_text())


def assembled(text):
    return subprocess.run(["wat2wasm", "-", "-o", "/dev/stdout"], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
