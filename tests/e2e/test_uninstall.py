"""Uninstalling hangar: in the order of docs/operating/lifecycle.md, and with the host removed first."""
import pytest

import flights
from airways import airway, flight, instance
from cluster import ROOT, eventually, is_ready, when_compiled
from conftest import control_plane
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


@pytest.fixture
def at_work(rig, namespace, tmp_path):
    """A host with webhooks, and one of each: an Airway with an instance, a Flight, an Operator, and a workflow that waits."""
    port = free_port()
    host = Host(rig.kubeconfig, tmp_path / "host", f"--webhook-bind-address=127.0.0.1:{port}", f"--webhook-url=https://127.0.0.1:{port}",
                "--webhook-drain=0s")
    eventually(lambda: rig.create(airway("planes", "Plane", flight("behave"), group=GROUP)), "the Airway is accepted", 60)
    rig.learn(f"{GROUP}/v1", "Plane", "planes")
    eventually(lambda: is_ready(rig.get(*AIRWAY)), "the Airway is ready", 120)
    eventually(lambda: rig.create(instance("Plane", "one", {"behaviour": "basic", "data": {"a": "b"}}, namespace, GROUP)), "the instance is accepted", 60)
    eventually(lambda: is_ready(rig.get(*PLANE, namespace)), "the instance is ready", 60)
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


def test_after_a_host_that_went_first_finalizers_are_taken_off_by_hand(rig, namespace, at_work):
    at_work.kill()
    rig.kubectl("delete", "--wait=false", "flight", "web", "-n", namespace)
    rig.kubectl("patch", "flight", "web", "-n", namespace, "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
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
        host = Host(other.kubeconfig, tmp_path / "other")
        other.learn(f"{GROUP}/v1", "Plane", "planes")
        other.create(kept[0])
        eventually(lambda: is_ready(other.get(*AIRWAY)), "the Airway is ready there", 120)
        other.create(kept[1])
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
