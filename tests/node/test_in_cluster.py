"""hangar as its users run it: installed by helm, in pods of a real kubelet, two replicas, one of which is killed."""
import time

import pytest
import yaml

import airways
from airways import flight, instance
from charts import CHART, helm
from cluster import eventually, is_ready

from node import REGISTRY, build_image

NAMESPACE = "hangar-system"
LABELS = "app.kubernetes.io/name=hangar"


@pytest.fixture(scope="module")
def release(cluster, registry, tmp_path_factory):
    """The chart with two replicas; image and modules come from a registry with a password."""
    archive = tmp_path_factory.mktemp("image") / "hangar.tar"
    build_image("host", archive, "hangar:test")
    image = registry.push_archive("hangar", "test", archive)
    registry.push("flights/behave", "v1", flight("behave"))
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.create(registry.pull_secret("pull", NAMESPACE))
    values = {
        "replicaCount": 2,
        "image": {"repository": image.rpartition(":")[0], "tag": "test"}, "imagePullSecrets": [{"name": "pull"}],
        "registrySecret": "pull", "features": {"nodes": False},
        "rbac": {"airwayGroups": ["e2e.hangar.dev"], "flightResources": [{"apiGroups": [""], "resources": ["configmaps"]}]}}
    helm("install", "hangar", str(CHART), "--namespace", NAMESPACE, "--wait", "--timeout", "120s", "--values", "-",
         stdin=yaml.safe_dump(values), env={"KUBECONFIG": cluster.kubeconfig})


def leader(cluster):
    """The pod that holds the Lease."""
    lease = cluster.get("coordination.k8s.io/v1", "Lease", "hangar", NAMESPACE) or {}
    return lease.get("spec", {}).get("holderIdentity", "").rpartition("_")[0]


def test_an_airway_works_from_inside_and_outlives_its_leader(cluster, node, release):
    pods = {pod["metadata"]["name"] for pod in cluster.list("v1", "Pod", NAMESPACE, LABELS)}
    assert len(pods) == 2
    manifest = airways.airway("aircrafts", "Aircraft", f"oci://{REGISTRY}/flights/behave:v1", insecure=True)
    cluster.apply(manifest)
    cluster.learn("e2e.hangar.dev/v1", "Aircraft", "aircrafts")
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", "aircrafts.e2e.hangar.dev")), "the Airway is ready", 120)
    cluster.create(instance("Aircraft", "one", {"behaviour": "basic", "data": {"a": "b"}}))
    eventually(lambda: is_ready(cluster.get("e2e.hangar.dev/v1", "Aircraft", "one")), "the instance is ready", 60)
    assert cluster.get("v1", "ConfigMap", "one")["data"] == {"a": "b"}

    first = leader(cluster)
    assert first in pods
    # SIGKILL: the other replica is not told, and leads once the Lease has expired.
    cluster.request("DELETE", cluster.path("v1", "Pod", NAMESPACE, first), {"gracePeriodSeconds": 0})
    eventually(lambda: leader(cluster) not in ("", first), "another pod leads", 60)
    cluster.create(instance("Aircraft", "two", {"behaviour": "basic", "data": {"c": "d"}}))
    eventually(lambda: is_ready(cluster.get("e2e.hangar.dev/v1", "Aircraft", "two")), "the next leader serves instances", 60)
    eventually(lambda: len([pod for pod in cluster.list("v1", "Pod", NAMESPACE, LABELS) if is_ready(pod)]) == 2,
               "the killed pod is replaced", 60)


def test_a_changed_setting_rolls_out_without_a_gap(cluster, release):
    before = {pod["metadata"]["uid"] for pod in cluster.list("v1", "Pod", NAMESPACE, LABELS)}
    helm("upgrade", "hangar", str(CHART), "--namespace", NAMESPACE, "--reuse-values", "--set", "settings.logLevel=debug", "--wait",
         "--timeout", "120s", env={"KUBECONFIG": cluster.kubeconfig})
    eventually(lambda: not before & {pod["metadata"]["uid"] for pod in cluster.list("v1", "Pod", NAMESPACE, LABELS)}, "new pods", 60)
    cluster.create(instance("Aircraft", "three", {"behaviour": "basic", "data": {"e": "f"}}))
    eventually(lambda: is_ready(cluster.get("e2e.hangar.dev/v1", "Aircraft", "three")), "the new pods serve instances", 60)
