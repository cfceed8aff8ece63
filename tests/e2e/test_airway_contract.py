"""The contract with tools that were made for yoke's Air Traffic Controller: what they find in the cluster, and how they work beside hangar."""
import base64
import gzip
import json

import pytest

import airways
from airways import flight, instance
from cluster import condition, eventually, is_ready, never

GROUP = "e2e.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway")


@pytest.fixture
def kind(host, airway, unique):
    """Makes the kind of an Airway with a flight; keyword arguments are the Airway's spec."""
    def make(wasm="behave", **spec):
        airway(airways.airway(f"{unique}s", unique.capitalize(), flight(wasm), **spec))
        return unique.capitalize()
    return make


def get(cluster, kind, name, namespace):
    return cluster.get(f"{GROUP}/v1", kind, name, namespace)


def revisions(cluster, namespace):
    return cluster.list("v1", "Secret", namespace, "internal.yoke/kind=revision")


def was_active(revision):
    return not revision["metadata"]["annotations"]["internal.yoke/active-at"].startswith("0001-")


def managers(manifest):
    """(manager, operation, subresource) of every writer."""
    return {(one["manager"], one["operation"], one.get("subresource")) for one in manifest["metadata"]["managedFields"]}


def test_every_write_is_signed_as_yoke_signs_it(cluster, kind, namespace):
    kind = kind()
    cluster.create(instance(kind, "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))
    eventually(lambda: is_ready(get(cluster, kind, "it", namespace)), "the instance is Ready")

    ours = {("yoke.cd/atc", "Update", None), ("yoke.cd/atc", "Update", "status")}
    assert ours <= managers(get(cluster, kind, "it", namespace))
    assert ours <= managers(cluster.get(*AIRWAY, f"{kind.lower()}s.{GROUP}"))
    assert managers(cluster.get("v1", "ConfigMap", "it", namespace)) == {("yoke", "Apply", None)}
    crd = cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{kind.lower()}s.{GROUP}")
    assert ("yoke", "Apply", None) in managers(crd)


def test_nothing_stands_between_people_and_the_api_server(cluster, kind, namespace):
    kind = kind(mode="dynamic")
    cluster.create(instance(kind, "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))
    eventually(lambda: is_ready(get(cluster, kind, "it", namespace)), "the instance is Ready")

    for webhooks in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        assert cluster.request("GET", f"/apis/admissionregistration.k8s.io/v1/{webhooks}")["items"] == []
    crd = cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{kind.lower()}s.{GROUP}")
    assert crd["spec"]["conversion"] == {"strategy": "None"}


EVERY_FIELD = {
    "wasmUrls": {"flight": "https://example.com/flight.wasm", "flightChecksum": "0" * 64, "converter": "https://example.com/converter.wasm",
                 "converterChecksum": "1" * 64},
    "objectPath": ["spec", "inner"], "mode": "subscription", "clusterAccess": True, "resourceAccessMatchers": ["Secret", "prod/Secret:db"],
    "fixDriftInterval": "1m30s", "timeout": "500ms", "maxMemoryMib": 64, "historyCapSize": 7, "prune": {"crds": True, "namespaces": True},
    "insecure": True, "skipAdmissionWebhook": True,
    "template": {
        "group": GROUP, "scope": "Namespaced", "preserveUnknownFields": False,
        "names": {"plural": "alls", "singular": "all", "kind": "All", "listKind": "AllList", "shortNames": ["al"], "categories": ["all"]},
        "conversion": {"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"caBundle": "QQ==", "service": {"name": "all", "namespace": "default", "path": "/", "port": 443}}}},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "deprecated": True, "deprecationWarning": "use v2",
            "additionalPrinterColumns": [{"name": "size", "type": "integer", "format": "int32", "description": "How many.", "priority": 1, "jsonPath": ".spec.size"}],
            "selectableFields": [{"jsonPath": ".spec.size"}],
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3, "x-kubernetes-validations": [{"rule": "self > 0", "message": "none"}]},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}}}]}}


def test_every_published_field_is_kept_as_it_was_written(cluster):
    # hangar would refuse an Airway with some of these fields; this test checks that no manifest loses one.
    manifest = {"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": f"alls.{GROUP}"}, "spec": EVERY_FIELD}

    kept = cluster.request("POST", "/apis/yoke.cd/v1alpha1/airways?dryRun=All&fieldValidation=Strict", manifest)

    assert kept["spec"] == EVERY_FIELD


def test_ready_follows_what_happens_to_the_children_later(cluster, host, kind, namespace):
    kind = kind("backend")
    manifest = instance(kind, "it", {"image": "nginx", "replicas": 1}, namespace)
    cluster.create(manifest)
    eventually(lambda: is_ready(get(cluster, kind, "it", namespace)), "the instance is Ready", 60)
    evaluations = host.metrics()["hangar_evaluations_total"]

    cluster.patch("apps/v1", "Deployment", "it", {"spec": {"template": {"spec": {"nodeSelector": {"nobody": "has-this"}}},
                                                           "strategy": {"type": "Recreate", "rollingUpdate": None}}}, namespace)
    eventually(lambda: condition(get(cluster, kind, "it", namespace)).get("status") == "False", "it is not Ready while the Deployment is not available")
    assert condition(get(cluster, kind, "it", namespace))["reason"] == "InProgress"
    cluster.patch("apps/v1", "Deployment", "it", {"spec": {"template": {"spec": {"nodeSelector": None}}}}, namespace)
    eventually(lambda: is_ready(get(cluster, kind, "it", namespace)), "it is Ready again", 60)

    cluster.delete("apps/v1", "Deployment", "it", namespace)
    eventually(lambda: condition(get(cluster, kind, "it", namespace)).get("status") == "False", "it is not Ready without the Deployment")
    never(lambda: cluster.get("apps/v1", "Deployment", "it", namespace), "mode standard made the Deployment again")
    assert host.metrics()["hangar_evaluations_total"] == evaluations, "the flight need not run for that"


def test_a_failed_instance_is_not_called_ready_because_a_child_changed(cluster, kind, namespace):
    kind = kind()
    cluster.create(instance(kind, "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))
    eventually(lambda: is_ready(get(cluster, kind, "it", namespace)), "the instance is Ready")
    cluster.patch(f"{GROUP}/v1", kind, "it", {"spec": {"exitCode": 1, "stderr": "this is why"}}, namespace)
    eventually(lambda: condition(get(cluster, kind, "it", namespace)).get("reason") == "Error", "the flight has failed")

    cluster.patch("v1", "ConfigMap", "it", {"data": {"a": "c"}}, namespace)

    never(lambda: condition(get(cluster, kind, "it", namespace)).get("reason") != "Error", "Ready forgot that the flight failed")


def test_a_release_that_is_refused_leaves_one_revision_however_often_it_is_tried(cluster, host, kind, namespace):
    # The flight prints another ConfigMap at every run, and the quota refuses each of them.
    kind = kind()
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    cluster.request("POST", quotas, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
                                     "spec": {"hard": {"count/configmaps": "0"}}})
    eventually(lambda: cluster.request("GET", f"{quotas}/none").get("status", {}).get("hard"), "the quota is in force")

    evaluations = host.metrics()["hangar_evaluations_total"]
    cluster.create(instance(kind, "it", {"behaviour": "clocks"}, namespace))
    eventually(lambda: host.metrics()["hangar_evaluations_total"] - evaluations >= 5, "it was tried five times")
    assert "exceeded quota" in condition(get(cluster, kind, "it", namespace))["message"]
    assert len(revisions(cluster, namespace)) <= 2, "one, or the next and the one that it replaces"

    cluster.request("DELETE", f"{quotas}/none")
    eventually(lambda: is_ready(get(cluster, kind, "it", namespace)), "the instance is Ready", 60)
    assert [was_active(one) for one in revisions(cluster, namespace)] == [True]


def test_the_history_is_what_yoke_reads(cluster, kind, namespace):
    kind = kind()
    cluster.create(instance(kind, "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))
    eventually(lambda: is_ready(get(cluster, kind, "it", namespace)), "the instance is Ready")

    revision, = revisions(cluster, namespace)

    stages = json.loads(gzip.decompress(base64.b64decode(revision["data"]["resources"])))
    assert [[one["metadata"]["name"] for one in stage] for stage in stages] == [["it"]]
    assert revision["metadata"]["annotations"]["internal.yoke/release-name"] == f"{GROUP}.{kind}.{namespace}.it"
