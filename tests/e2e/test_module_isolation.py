"""ConfigMaps that a tenant must not read by naming them as a module: those of other namespaces, however the reference
is spelt.

The host may read all of them. The tenant may create Operators, StatefulWorkflows and ConfigMaps in one namespace.
"""
import json

import pytest

import workflows
from airways import airway as airway_manifest
from airways import flight
from cluster import condition, eventually, is_ready, never
from operators import OPERATOR, events_of
from workflows import CONDUCTOR, WORKFLOW, bundle, built

SECRET_KEY = "victims-key"
# No machine has such an identifier: run as JavaScript, a ReferenceError would name it.
SECRET_VALUE = "victimsValue4711"


@pytest.fixture
def victim(cluster, unique):
    name = f"ns-{unique}-victim"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "secrets", "namespace": name},
                    "data": {SECRET_KEY: SECRET_VALUE, "other": "x"}})
    workflows.module(cluster, name, "machine", bundle(CONDUCTOR))
    yield name
    cluster.delete("v1", "Namespace", name)


def spellings(victim, name="secrets", key=SECRET_KEY):
    for scheme in ("configmap", "ConfigMap", "CONFIGMAP", "configMap"):
        yield f"{scheme}://{victim}/{name}"
        yield f"{scheme}://{victim}/{name}/{key}"


def tells(cluster, kind, name, namespace, victim):
    """Everything that the API server shows about the object: itself and its Events."""
    text = json.dumps([(cluster.get(*kind, name, namespace) or {}).get("status"), events_of(cluster, name, namespace)])
    return SECRET_KEY in text.replace(f"{victim}/secrets/{SECRET_KEY}", "") or SECRET_VALUE in text


def expect_refusal(cluster, kind, name, namespace, victim):
    eventually(lambda: condition(cluster.get(*kind, name, namespace), "Stalled").get("status") == "True", f"{name} is refused", 60)
    assert not tells(cluster, kind, name, namespace, victim)
    assert "use " in condition(cluster.get(*kind, name, namespace), "Stalled")["message"], "it says where a ConfigMap goes"


def test_an_operator_reads_no_config_map_of_another_namespace(cluster, namespace, operator, victim):
    for index, url in enumerate(spellings(victim)):
        operator(f"spy-{index}", module={"url": url})
    for index, _ in enumerate(spellings(victim)):
        expect_refusal(cluster, OPERATOR, f"spy-{index}", namespace, victim)


def test_a_workflow_reads_no_config_map_of_another_namespace(cluster, host, namespace, victim):
    for index, url in enumerate(spellings(victim)):
        cluster.create(workflows.workflow(f"spy-{index}", namespace, module={"url": url}))
    cluster.create(workflows.workflow("thief", namespace, module={"url": f"ConfigMap://{victim}/machine"}))
    for index, _ in enumerate(spellings(victim)):
        expect_refusal(cluster, WORKFLOW, f"spy-{index}", namespace, victim)
    expect_refusal(cluster, WORKFLOW, "thief", namespace, victim)
    never(lambda: workflows.copies(cluster, namespace), "a module of another namespace is copied into this one", 2)


def test_a_workflow_reads_no_plugin_of_another_namespace(cluster, host, namespace, victim):
    # Linked dynamically, so that the host asks for its plugin.
    workflows.module(cluster, namespace, "plugged", binary=built("provisioner_dynamic.wasm").read_bytes(), key="module.wasm")
    for index, url in enumerate(spellings(victim)):
        cluster.create(workflows.workflow(f"spy-{index}", namespace, "plugged", plugin={"url": url}))
    for index, _ in enumerate(spellings(victim)):
        expect_refusal(cluster, WORKFLOW, f"spy-{index}", namespace, victim)


def test_a_workflow_uses_config_maps_of_its_own_namespace_without_rights_of_its_service_account(cluster, host, namespace):
    """As for a Pod: published manifests have no Role for reading their module."""
    workflows.module(cluster, namespace, "own", bundle(CONDUCTOR))
    cluster.create(workflows.workflow("own", namespace, "own", input={"rounds": []}))
    eventually(lambda: workflows.status(cluster, namespace, "own").get("revision", {}).get("sha256"), "its machine has begun", 60)


def test_inputs_of_an_operator_are_named_by_plain_names(cluster, namespace, operator, victim):
    for index, name in enumerate(("../../namespaces/" + victim + "/configmaps/secrets", "..", f"{victim}/secrets", "%2e%2e")):
        operator(f"file-{index}", "wait", files=[{"path": "/in", "configMap": {"name": name}}])
        operator(f"env-{index}", "wait", env=[{"name": "IN", "valueFrom": {"configMapKeyRef": {"name": name, "key": SECRET_KEY}}}])
    for index in range(4):
        for kind in ("file", "env"):
            eventually(lambda: condition(cluster.get(*OPERATOR, f"{kind}-{index}", namespace)).get("status") == "False", "it is refused", 60)
            assert not tells(cluster, OPERATOR, f"{kind}-{index}", namespace, victim)


def test_an_airway_may_name_a_config_map_of_any_namespace(cluster, host, airway, unique, victim):
    """Only administrators create Airways: they are cluster-scoped."""
    kind = f"Spelt{unique}"
    with open(flight("greeting_rust"), "rb") as module:
        workflows.module(cluster, victim, "flight", binary=module.read(), key="flight.wasm", compress=True)
    airway(airway_manifest(f"{kind.lower()}s", kind, f"ConfigMap://{victim}/flight"))
    assert is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", f"{kind.lower()}s.e2e.hangar.dev"))
