"""An ordinary operator of controller-runtime (examples/website), asleep between two events."""
import pytest

from cluster import ROOT, condition, eventually
from conftest import COMPILED
from operators import EVERYTHING, OPERATOR, allow, lines, phase

WEBSITE = ("examples.hangar.dev/v1", "Website")
DEPLOYMENT = ("apps/v1", "Deployment")


@pytest.fixture
def website(cluster, namespace, operator):
    """Runs the operator in the namespace, and waits until it sleeps."""
    crd = ROOT / "examples/website/crd.yaml"
    cluster.apply_crds(crd)
    cluster.learn(*WEBSITE, "websites")
    for group, resources in (("examples.hangar.dev", ["websites", "websites/status"]), ("apps", ["deployments"])):
        name = f"website-{group.split('.', maxsplit=1)[0]}"
        prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        cluster.request("POST", f"{prefix}/roles", {
            "metadata": {"name": name}, "rules": [{"apiGroups": [group], "resources": resources, "verbs": list(EVERYTHING)}]})
        cluster.request("POST", f"{prefix}/rolebindings", {
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]})
    operator("website", wasm="website", env=[{"name": "NAMESPACE", "value": namespace}], sleep={"after": "200ms"},
             limits={"memory": "256Mi"})
    asleep(cluster, namespace, COMPILED)


def asleep(cluster, namespace, seconds=60):
    return eventually(lambda: (lambda o: o if phase(o) == "Asleep" else None)(cluster.get(*OPERATOR, "website", namespace)),
                      "the operator sleeps", seconds)


def make(cluster, namespace, name, replicas=2):
    return cluster.create({"apiVersion": WEBSITE[0], "kind": WEBSITE[1], "metadata": {"name": name, "namespace": namespace},
                           "spec": {"image": "example.com/server:1", "replicas": replicas}})


def replicas_of(cluster, namespace, name):
    deployment = cluster.get(*DEPLOYMENT, name, namespace)
    return deployment and deployment["spec"]["replicas"]


def test_a_controller_runtime_operator_does_its_work_and_sleeps(cluster, host, namespace, website):
    assert asleep(cluster, namespace)["status"]["residentBytes"] == 0

    made = make(cluster, namespace, "shop")
    eventually(lambda: replicas_of(cluster, namespace, "shop") == 2, "the deployment is there", 60)
    owner = cluster.get(*DEPLOYMENT, "shop", namespace)["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    asleep(cluster, namespace)

    cluster.patch(*WEBSITE, "shop", {"spec": {"replicas": 5}}, namespace)
    eventually(lambda: replicas_of(cluster, namespace, "shop") == 5, "the deployment follows", 60)

    # The operator corrects another client's change of the child.
    cluster.patch(*DEPLOYMENT, "shop", {"spec": {"replicas": 1}}, namespace)
    eventually(lambda: replicas_of(cluster, namespace, "shop") == 5, "the change is undone", 60)
    asleep(cluster, namespace)

    restarts = cluster.get(*OPERATOR, "website", namespace)["status"]["restarts"]
    assert restarts == 0
    assert any("reconciled" in line for line in lines(host, "website", namespace))


def test_its_status_follows_the_child(cluster, namespace, website):
    # The pods of the control plane's simulated node become ready, sooner or later.
    make(cluster, namespace, "blog", replicas=1)
    status = lambda: cluster.get(*WEBSITE, "blog", namespace).get("status", {})
    ready = lambda: condition(cluster.get(*WEBSITE, "blog", namespace)).get("status")
    eventually(lambda: status().get("readyReplicas") == 1 and ready() == "True", "its one pod is ready", 90)

    cluster.patch(*WEBSITE, "blog", {"spec": {"replicas": 3}}, namespace)
    eventually(lambda: status().get("readyReplicas") == 3 and ready() == "True", "its three pods are ready", 90)
    cluster.patch(*WEBSITE, "blog", {"spec": {"replicas": 0}}, namespace)
    eventually(lambda: status().get("readyReplicas", 0) == 0 and status()["observedGeneration"] == 3, "its pods are gone", 90)


def test_what_the_operator_had_turned_off_is_said_once(host, namespace, website):
    told = [line for line in lines(host, "website", namespace) if "options are changed" in line]
    assert len(told) == 1
    assert "leader election, metrics endpoint, priority queue, resync of caches" in told[0]
