"""docs/tutorials/from-yoke.md: hangar goes on with what yoke's Air Traffic Controller (ATC) has made, and makes nothing again.

The objects here are as the ATC stores them: by its field managers and in its order, with its annotations, owners, finalizers and history.
"""
import base64
import hashlib
import json
import pathlib

import pytest

import flights
from airways import OPEN_SCHEMA, airway, flight
from cluster import ApiError, condition, eventually, is_ready, try_to
from conftest import COMPILED
from host import Host, free_port
from webhooks import CONFIGURATION, Authority, wait_registered, webhook_flags
from yoke_releases import config_map, hangar, history, marked, record

GROUP = "fromyoke.hangar.dev"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
AIRWAY = ("yoke.cd/v1alpha1", "Airway")
BACKEND, FLEET, PAGE = (f"{GROUP}/v1", "Backend"), (f"{GROUP}/v1", "Fleet"), (f"{GROUP}/v2", "Page")
OLD_PAGE = (f"{GROUP}/v1", "Page")
AIRWAYS = {BACKEND: f"backends.{GROUP}", FLEET: f"fleets.{GROUP}", PAGE: f"pages.{GROUP}"}
# The ATC writes as one manager, and applies as another.
WRITES, APPLIES = "yoke.cd/atc", "yoke"
# Those that it deletes when it ends, unless it is killed.
OF_THE_ATC = ("atc-airway", "atc-flight", "atc-resources", "atc-external-resources")
HOSTS = "default"
SOMEBODY = {"Impersonate-User": "somebody", "Impersonate-Group": "system:masters"}
CONDITIONS = {"type": "array", "items": {"type": "object", "required": ["type", "status", "lastTransitionTime", "reason", "message"], "properties": {
    **{name: {"type": "string"} for name in ("type", "status", "reason", "message")},
    "lastTransitionTime": {"type": "string", "format": "date-time"}, "observedGeneration": {"type": "integer", "format": "int64"}}}}


class Installation:
    """What an ATC leaves that was killed: three Airways with instances, and a Flight."""

    def __init__(self, cluster, namespace, authority):
        self.cluster, self.namespace = cluster, namespace
        self.ca = base64.b64encode(pathlib.Path(authority.certificate).read_bytes()).decode()
        self.url = flight("behave")
        self.checksum = hashlib.sha1(pathlib.Path(self.url).read_bytes()).hexdigest()
        self.releases = {}  # Name of a release's history -> its namespace.
        for kind, spec in ((BACKEND, {}), (FLEET, {"scope": "Cluster", "mode": "dynamic"}), (PAGE, {"mode": "static"})):
            self.make_airway(kind, **spec)
        self.make(BACKEND, "shop", namespace, config_map("shop", color="red"), config_map("shop-extra", a="b"))
        self.make(BACKEND, "blog", namespace, config_map("blog", color="blue"))
        self.make(FLEET, "north", None, config_map("north", namespace, ships="3"))
        self.make(PAGE, "home", namespace, config_map("home", title="<Home> & more"), img="x", replicas=1)
        self.make_flight("web", config_map("web", color="green"))
        # Nobody answers at these, so they come last.
        self.register()

    def write(self, manifest, subresource=None):
        return self.cluster.request("PUT", self.cluster.path_of(manifest, subresource=subresource) + f"?fieldManager={WRITES}", manifest)

    def reach(self, path):
        return {"caBundle": self.ca, "service": {"namespace": "atc", "name": "atc-atc", "port": 80, "path": path}}

    def make_airway(self, kind, scope="Namespaced", **spec):
        plural = AIRWAYS[kind].split(".")[0]
        manifest = airway(plural, kind[1], self.url, group=GROUP, scope=scope, **spec)
        template = manifest["spec"]["template"]
        if kind == PAGE:
            manifest["spec"]["wasmUrls"]["converter"] = flight("converter")
            template["versions"] = [{**template["versions"][0], "name": name, "storage": name == "v2"} for name in ("v1", "v2")]
            self.cluster.learn(*OLD_PAGE, plural)
        self.cluster.learn(*kind, plural, scope == "Namespaced")
        made = self.cluster.create(manifest)
        made["metadata"]["finalizers"] = ["yoke.cd/strip.airway"]
        made = self.write(made)
        schema = {**OPEN_SCHEMA, "properties": {"status": {"type": "object", "properties": {"conditions": CONDITIONS}}}}
        crd = {"apiVersion": CRD[0], "kind": CRD[1], "metadata": {"name": AIRWAYS[kind], "ownerReferences": [self.owner(made, blockOwnerDeletion=True)]},
               "spec": {**template, "versions": [{**version, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}} for version in template["versions"]]}}
        if kind == PAGE:
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {
                "clientConfig": self.reach(f"/crdconvert/{AIRWAYS[kind]}"), "conversionReviewVersions": ["v1"]}}
        self.cluster.request("PATCH", self.cluster.path_of(crd) + f"?fieldManager={APPLIES}", crd, "application/apply-patch+yaml")
        eventually(lambda: condition(self.cluster.get(*CRD, AIRWAYS[kind]), "Established").get("status") == "True", f"{kind[1]} is established")
        eventually(lambda: isinstance(try_to(self.cluster.list, *kind), list), f"{kind[1]} is served")
        self.say_ready(made, "Flight-Controller launched")

    def say_ready(self, made, message):
        made["status"] = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": message, "lastTransitionTime": "2026-04-08T12:00:00Z",
                                          "observedGeneration": made["metadata"]["generation"]}]}
        self.write(made, "status")

    @staticmethod
    def owner(one, **more):
        return {"apiVersion": one["apiVersion"], "kind": one["kind"], "name": one["metadata"]["name"], "uid": one["metadata"]["uid"], **more}

    def make(self, kind, name, namespace, *resources, **spec):
        """An instance whose flight prints these resources; they are there, and so is their revision."""
        parent = self.cluster.get(*AIRWAY, AIRWAYS[kind])
        made = self.cluster.create({"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
                                    "spec": {"behaviour": "raw", "stdout": json.dumps(resources), **spec}})
        made["metadata"]["finalizers"] = ["yoke.cd/mayday.flight"]
        made = self.write(made)
        made["metadata"]["ownerReferences"] = [self.owner(parent, blockOwnerDeletion=True)]
        made = self.write(made)
        release = ".".join([GROUP, kind[1], *([namespace] if namespace else []), name])
        self.release(made, release, release, resources, instance=f"{namespace or ''}/{kind[1]}.{GROUP}:{name}")
        self.say_ready(made, "Successfully deployed")

    def make_flight(self, name, *resources):
        manifest = flights.manifest(name, self.namespace, inputObject=flights.behaving(name, "raw", stdout=json.dumps(resources)))
        made = self.cluster.create(manifest)
        made["metadata"]["finalizers"] = ["yoke.cd/mayday.flight"]
        made = self.write(made)
        self.release(made, name, f"{self.namespace}/Flight.yoke.cd:{name}", resources)
        self.say_ready(made, "Successfully deployed")

    def release(self, made, release, recorded, resources, instance=None):
        namespace = made["metadata"].get("namespace", "default")
        stage = []
        for one in resources:
            one = marked(one, release, namespace)
            one["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "atc.yoke"
            if instance:
                one["metadata"]["annotations"]["instance.atc.yoke.cd/instanceRef"] = instance
            one["metadata"]["ownerReferences"] = [self.owner(made)]
            self.cluster.apply(one, APPLIES)
            stage.append(one)
        record(self.cluster, namespace, recorded, [stage], 1, url=self.url, sha=self.checksum)
        self.releases[recorded] = namespace

    def register(self):
        """The webhook configurations: one of each Airway, and the ATC's own."""
        everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
        yokes = {"apiGroups": ["yoke.cd"], "apiVersions": ["v1alpha1"]}
        labelled = {"matchLabels": {"app.kubernetes.io/managed-by": "atc.yoke"}}
        for name, webhook, operations, rule, policy, more in (
                ("atc-external-resources", "external.resources.yoke.cd", ["CREATE", "UPDATE", "DELETE"], everything, "Ignore", {"timeoutSeconds": 1}),
                ("atc-resources", "resources.yoke.cd", ["UPDATE", "DELETE"], everything, "Ignore", {"objectSelector": labelled}),
                ("atc-flight", "flights.yoke.cd", ["CREATE", "UPDATE"], {**yokes, "resources": ["flights", "clusterflights"]}, "Fail", {"timeoutSeconds": 30}),
                ("atc-airway", "airways.yoke.cd", ["CREATE", "UPDATE"], {**yokes, "resources": ["airways"]}, "Fail", {"timeoutSeconds": 30})):
            self.apply_configuration({"name": name}, webhook, [{**rule, "operations": operations}], failurePolicy=policy, **more)
        for kind, name in AIRWAYS.items():
            parent = self.cluster.get(*AIRWAY, name)
            rule = {"apiGroups": [GROUP], "apiVersions": [kind[0].split("/")[1]], "resources": [name.split(".")[0]], "operations": ["CREATE", "UPDATE"],
                    "scope": "Cluster" if kind == FLEET else "Namespaced"}
            self.apply_configuration({"name": name, "ownerReferences": [self.owner(parent)]}, name, [rule], matchPolicy="Exact", matchConditions=[{
                "name": "not-atc-service-account", "expression": 'request.userInfo.username != "system:serviceaccount:atc:atc-atc-service-account"'}])

    def apply_configuration(self, metadata, webhook, rules, **more):
        manifest = {"apiVersion": CONFIGURATION[0], "kind": CONFIGURATION[1], "metadata": metadata, "webhooks": [{
            "name": webhook, "rules": rules, "clientConfig": self.reach(f"/validations/{webhook}"), "sideEffects": "None", "admissionReviewVersions": ["v1"], **more}]}
        self.cluster.request("PATCH", self.cluster.path_of(manifest) + f"?fieldManager={WRITES}", manifest, "application/apply-patch+yaml")

    def uids(self):
        """(kind, name) -> uid of all that was made."""
        kinds = (AIRWAY, None), (CRD, None), (BACKEND, self.namespace), (FLEET, None), (PAGE, self.namespace), (flights.FLIGHT, self.namespace), \
            (("v1", "ConfigMap"), self.namespace)
        return {(kind[1], one["metadata"]["name"]): one["metadata"]["uid"] for kind, place in kinds for one in self.cluster.list(*kind, place)}

    def histories(self):
        return {release: history(self.cluster, namespace, release) for release, namespace in self.releases.items()}


@pytest.fixture
def atc(own_cluster, own_namespace, tmp_path):
    return Installation(own_cluster, own_namespace, Authority(tmp_path, "atc"))


def data(cluster, name, namespace):
    return (cluster.get("v1", "ConfigMap", name, namespace) or {}).get("data")


def has_taken_over(cluster, host):
    """All Airways have a module by hangar's status, and each of the four instances and the Flight was evaluated."""
    airways = [cluster.get(*AIRWAY, name) for name in AIRWAYS.values()]
    return all(is_ready(one) and one["status"].get("flight", {}).get("sha256") for one in airways) and host.metrics().get("hangar_evaluations_total", 0) >= 5


def refusal(cluster, namespace):
    """Of a write of an instance; None where it is accepted."""
    try:
        cluster.patch(*BACKEND, "shop", {"metadata": {"labels": {"a": "b"}}}, namespace)
    except ApiError as error:
        return str(error)
    return None


def test_an_installation_with_three_airways_goes_on_and_nothing_is_made_again(own_cluster, own_namespace, atc, tmp_path):
    cluster, namespace = own_cluster, own_namespace
    flights.allow(cluster, namespace)
    before, histories = atc.uids(), atc.histories()
    eventually(lambda: "failed calling webhook" in (refusal(cluster, namespace) or ""), "what the ATC has left refuses writes")

    # The tutorial's second step.
    cluster.kubectl("delete", "validatingwebhookconfigurations", *OF_THE_ATC, *AIRWAYS.values())
    eventually(lambda: refusal(cluster, namespace) is None, "writes are accepted again")

    host = Host(cluster.kubeconfig, tmp_path / "host", *webhook_flags(free_port(), HOSTS, features="airways,flights"))
    try:
        for name in ("hangar-airways", "hangar-flights", *AIRWAYS.values()):
            wait_registered(cluster, HOSTS, name)
        eventually(lambda: has_taken_over(cluster, host), "hangar has evaluated everything", COMPILED)
        for kind, name, place in ((BACKEND, "shop", namespace), (BACKEND, "blog", namespace), (FLEET, "north", None), (PAGE, "home", namespace), (flights.FLIGHT, "web", namespace)):
            eventually(lambda: is_ready(cluster.get(*kind, name, place)), f"{kind[1]} {name} is Ready", 60)
        now = atc.uids()
        assert {key: now.get(key) for key in before} == before and len(now) == len(before)
        flights_release = f"{namespace}/Flight.yoke.cd:web"
        unchanged = {release: revisions for release, revisions in atc.histories().items() if release != flights_release}
        assert unchanged == {release: revisions for release, revisions in histories.items() if release != flights_release}, "no revision is new"
        assert cluster.get("v1", "ConfigMap", "web", namespace)["metadata"]["annotations"]["instance.atc.yoke.cd/instanceRef"] == flights_release

        goes_on(cluster, namespace, before)
        is_taken_down(cluster, namespace)
        assert host.stop() == 0
    finally:
        if host.process.poll() is None:
            host.kill()


def goes_on(cluster, namespace, uids):
    """Changes, pruning, rollback, the modes and conversions, of what the ATC has made."""
    release = f"{GROUP}.Backend.{namespace}.shop"
    eventually(lambda: try_to(cluster.patch, *BACKEND, "shop", {"spec": {"stdout": json.dumps([config_map("shop", color="black")])}}, namespace), "the change is accepted", 60)
    eventually(lambda: data(cluster, "shop", namespace) == {"color": "black"}, "the resource has changed", 60)
    assert cluster.get("v1", "ConfigMap", "shop", namespace)["metadata"]["uid"] == uids["ConfigMap", "shop"]
    eventually(lambda: data(cluster, "shop-extra", namespace) is None, "what only the ATC's revision has is pruned", 60)
    eventually(lambda: [one["active"] for one in history(cluster, namespace, release)] == [False, True], "the ATC's revision has a successor", 60)
    shown = hangar(cluster, "blackbox", "-namespace", namespace, release, "1")
    assert shown.returncode == 0 and "color: red" in shown.stdout

    cluster.delete("v1", "ConfigMap", "north", namespace)
    eventually(lambda: data(cluster, "north", namespace) == {"ships": "3"}, "in mode dynamic it is made again", 60)

    home = cluster.path("v1", "ConfigMap", namespace, "home")

    def is_protected():
        try:
            cluster.request("PATCH", f"{home}?dryRun=All", {"data": {"title": "forged"}}, "application/merge-patch+json", SOMEBODY)
        except ApiError as error:
            return "cannot modify flight sub-resources" in str(error)
    eventually(is_protected, "in mode static it cannot be changed", 60)
    eventually(lambda: (try_to(cluster.get, *OLD_PAGE, "home", namespace) or {}).get("spec", {}).get("image") == "x", "the older version is converted", 60)


def is_taken_down(cluster, namespace):
    """Deletion takes with it what the ATC has made, and nothing is left that waits for it."""
    cluster.delete(*BACKEND, "blog", namespace)
    eventually(lambda: cluster.get(*BACKEND, "blog", namespace) is None, "the instance is gone", 60)
    assert data(cluster, "blog", namespace) is None
    cluster.delete(*flights.FLIGHT, "web", namespace)
    for name in AIRWAYS.values():
        cluster.delete(*AIRWAY, name)
    for name in AIRWAYS.values():
        eventually(lambda: cluster.get(*AIRWAY, name) is None and cluster.get(*CRD, name) is None, f"the Airway {name} and its kind are gone", 60)
    eventually(lambda: cluster.get(*flights.FLIGHT, "web", namespace) is None, "the Flight is gone", 60)
    assert not [name for name in ("shop", "north", "home", "web") if data(cluster, name, namespace)]
    for place in (namespace, "default"):
        assert not cluster.list("v1", "Secret", place, "internal.yoke/kind=revision")
    eventually(lambda: not {one["metadata"]["name"] for one in cluster.list(*CONFIGURATION)} & set(AIRWAYS.values()), "and their webhooks", 60)
