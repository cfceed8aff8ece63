"""Uninstalling hangar: in the order of docs/operating/lifecycle.md, and with the host removed first."""
import subprocess

import pytest

import flights
from airways import OPEN_SCHEMA, airway, flight, instance
from cluster import ROOT, eventually, is_ready, try_to, when_compiled
from conftest import COMPILED, control_plane
from host import Host, free_port
from operators import OPERATOR, lines, manifest
from workflows import WORKFLOW, allow, bundle, module, reaches, signal, workflow

GROUP = "uninstall.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway", f"planes.{GROUP}")
PLANE = (f"{GROUP}/v1", "Plane", "one")
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
ADMISSION = ("ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


@pytest.fixture(scope="module")
def rig(own_cluster):
    return own_cluster


@pytest.fixture
def namespace(rig, unique):
    name = f"ns-{unique}"
    rig.apply_crds(ROOT / "deploy/crds")
    rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    eventually(lambda: rig.get("v1", "ServiceAccount", "default", name), "the namespace has its service account")
    return name


def host_with_webhooks(cluster, directory):
    port = free_port()
    return Host(cluster.kubeconfig, directory, f"--webhook-bind-address=127.0.0.1:{port}", f"--webhook-url=https://127.0.0.1:{port}", "--webhook-drain=0s")


def planes():
    """An Airway with a converter. Its instances are stored in v1; kubectl and the garbage collector read them in v2."""
    made = airway("planes", "Plane", flight("basic"), group=GROUP)
    made["spec"]["wasmUrls"]["converter"] = flight("converter")
    made["spec"]["template"]["versions"] = [{"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": OPEN_SCHEMA}}
                                            for name in ("v1", "v2")]
    return made


def plane(rig, namespace):
    """Makes the instance, as soon as its kind is served and the host answers its webhook."""
    def make():
        return try_to(rig.create, instance("Plane", "one", {"image": "x", "replicas": 1}, namespace, GROUP))
    eventually(make, "the instance is accepted", 120)
    eventually(lambda: is_ready(rig.get(*PLANE, namespace)), "the instance is ready", 60)
    assert rig.get("v1", "ConfigMap", "one", namespace)["data"]["image"] == "x"


@pytest.fixture
def at_work(rig, namespace, tmp_path):
    """A host with webhooks, and one of each: an Airway with an instance, a Flight, an Operator, and a workflow that waits."""
    host = host_with_webhooks(rig, tmp_path / "host")
    eventually(lambda: try_to(rig.create, planes()), "the Airway is accepted", COMPILED)
    rig.learn(f"{GROUP}/v1", "Plane", "planes")
    eventually(lambda: is_ready(rig.get(*AIRWAY)), "the Airway is ready", 120)
    plane(rig, namespace)
    eventually(lambda: rig.kubectl("get", f"planes.v2.{GROUP}", "-n", namespace, "-o", "jsonpath={.items[*].spec.img}") == "x", "it is converted", 60)
    flights.allow(rig, namespace)
    web = flights.Flights(rig, namespace)
    when_compiled(lambda: web.create("web", "basic", does={"data": {"a": "b"}}))
    web.ready("web")
    rig.create(manifest("one", namespace, "print=began", "wait"))
    eventually(lambda: lines(host, "one", namespace) == ["began"], "the operator works", 120)
    allow(rig, namespace, ("", "configmaps"))
    module(rig, namespace, "machine", bundle("responder"))
    rig.create(workflow("one", namespace, "machine", input={"answer": "answer"}))
    reaches(rig, namespace, "one", "waiting", 120)
    yield host
    if host.process.poll() is None:
        host.kill()


def reads(rig, namespace):
    """The instance in the version that is not stored. A list may come from the API server's cache, where it is converted already."""
    try:
        return rig.kubectl("get", f"planes.v2.{GROUP}", "one", "-n", namespace)
    except subprocess.CalledProcessError:
        return None


def take_down_webhooks(rig):
    rig.kubectl("delete", "validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings", "--selector=hangar.dev/kept-by")


def remove_kinds(rig):
    rig.kubectl("delete", "--timeout=60s", "-f", str(ROOT / "deploy/crds"))


def nothing_is_left(rig, namespace):
    assert not [one for one in rig.list(*CRD) if one["spec"]["group"] in (GROUP, "yoke.cd", "hangar.dev", "workflows.example.com")]
    for kind in ADMISSION:
        assert not rig.list("admissionregistration.k8s.io/v1", kind, selector="hangar.dev/kept-by")
    rig.delete("v1", "Namespace", namespace)
    eventually(lambda: rig.get("v1", "Namespace", namespace) is None, "the namespace goes: nothing in it waits for a host", 90)


def test_in_its_order_nothing_is_left(rig, namespace, at_work):
    rig.kubectl("delete", "--timeout=60s", "flights,clusterflights", "--all", "--all-namespaces")
    rig.kubectl("delete", "--timeout=60s", "airways", "--all")
    rig.kubectl("delete", "--timeout=60s", "operators.hangar.dev,statefulworkflows", "--all", "--all-namespaces")

    assert rig.get("v1", "ConfigMap", "one", namespace) is None, "what the instance made went with it"
    assert not rig.list("v1", "Secret", namespace), "and its history"
    eventually(lambda: not rig.list("apps/v1", "ControllerRevision", namespace), "copies of modules are collected with their workflows", 60)
    assert at_work.stop() == 0
    take_down_webhooks(rig)
    remove_kinds(rig)
    nothing_is_left(rig, namespace)


def test_a_kind_that_is_deleted_takes_its_instances_along_and_comes_again_until_its_airway_goes(rig, namespace, at_work):
    uid = rig.get(*CRD, AIRWAY[2], None)["metadata"]["uid"]
    rig.kubectl("delete", "--timeout=60s", "crd", AIRWAY[2])

    assert rig.get("v1", "ConfigMap", "one", namespace) is None, "what the instance made went with it"
    assert GROUP not in str([one["metadata"].get("annotations") for one in rig.list("v1", "Secret", namespace)]), "and its history"
    eventually(lambda: (rig.get(*CRD, AIRWAY[2], None) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid, "the host makes the kind again", 60)
    eventually(lambda: is_ready(rig.get(*AIRWAY)), "the Airway is ready", 60)
    plane(rig, namespace)

    rig.kubectl("delete", "--timeout=60s", "airways", "--all")
    assert rig.get(*CRD, AIRWAY[2], None) is None and rig.get("v1", "ConfigMap", "one", namespace) is None
    rig.kubectl("delete", "--timeout=60s", "flights", "--all", "--all-namespaces")
    rig.kubectl("delete", "--timeout=60s", "operators.hangar.dev,statefulworkflows", "--all", "--all-namespaces")
    assert at_work.stop() == 0
    take_down_webhooks(rig)
    remove_kinds(rig)
    nothing_is_left(rig, namespace)


def test_after_a_host_that_went_first_finalizers_are_taken_off_by_hand(rig, namespace, at_work):
    at_work.kill()
    rig.kubectl("delete", "--wait=false", "flight", "web", "-n", namespace)
    rig.kubectl("patch", "flight", "web", "-n", namespace, "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    assert reads(rig, namespace) is None, "nobody converts it"
    rig.kubectl("patch", "crd", AIRWAY[2], "--type=merge", "--patch", '{"spec": {"conversion": {"strategy": "None", "webhook": null}}}')
    eventually(lambda: reads(rig, namespace), "nobody is asked to convert any more", 60)
    eventually(lambda: rig.get("v1", "ConfigMap", "web", namespace) is None, "what a Flight has made is collected with it", 60)
    for kind, name, where in ((f"planes.{GROUP}", "one", ["-n", namespace]), ("airways", AIRWAY[2], [])):
        rig.kubectl("delete", "--wait=false", kind, name, *where)
        eventually(lambda kind=kind: rig.kubectl("get", kind, "--all-namespaces", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"),
                   f"{kind} wait for a host")
        rig.kubectl("patch", kind, name, *where, "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
        eventually(lambda: rig.get("v1", "ConfigMap", "one", namespace) is None, "what was made is collected with the instance, which owns it", 60)
    eventually(lambda: rig.get(*AIRWAY) is None, "the Airway is gone")
    eventually(lambda: rig.get(*CRD, AIRWAY[2], None) is None, "and the CRD that it owns", 60)
    rig.kubectl("delete", "--timeout=60s", "operators.hangar.dev,statefulworkflows", "--all", "--all-namespaces")
    take_down_webhooks(rig)
    remove_kinds(rig)
    nothing_is_left(rig, namespace)


def test_what_is_applied_again_on_another_cluster_works_there(rig, namespace, at_work, tmp_path):
    """A backup is the objects that people wrote, and the status of workflows that are to continue."""
    kept = [rig.get(*AIRWAY), rig.get(*PLANE, namespace), rig.get(*OPERATOR, "one", namespace)]
    flow = rig.get(*WORKFLOW, "one", namespace)
    status = flow["status"]
    for one in (*kept, flow):
        one["metadata"] = {key: one["metadata"][key] for key in ("name", "namespace") if key in one["metadata"]}
        one.pop("status", None)
    other = control_plane("--with-kcm")
    host = None
    try:
        other.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        eventually(lambda: other.get("v1", "ServiceAccount", "default", namespace), "the namespace has its service account")
        allow(other, namespace, ("", "configmaps"))
        module(other, namespace, "machine", bundle("responder"))
        other.request("PUT", other.path_of(flow, subresource="status"), {**other.create(flow), "status": status})
        host = host_with_webhooks(other, tmp_path / "other")
        other.learn(f"{GROUP}/v1", "Plane", "planes")
        eventually(lambda: try_to(other.create, kept[0]), "the Airway is accepted there", COMPILED)
        eventually(lambda: is_ready(other.get(*AIRWAY)), "the Airway is ready there", 120)
        eventually(lambda: try_to(other.create, kept[1]), "the instance is accepted there", 120)
        other.create(kept[2])
        eventually(lambda: other.get("v1", "ConfigMap", "one", namespace), "the instance has what it had", 60)
        eventually(lambda: lines(host, "one", namespace) == ["began"], "the operator works there", 120)
        signal(other, namespace, "one", "ask", {"type": "ASK", "number": 7})
        eventually(lambda: (other.get("v1", "ConfigMap", "answer", namespace) or {}).get("data") == {"number": "7"}, "the workflow goes on", 120)
        assert reaches(other, namespace, "one", "waiting")["run"] == status["run"], "and did not start again"
        assert host.stop() == 0
    finally:
        if host and host.process.poll() is None:
            host.kill()
        other.close()
