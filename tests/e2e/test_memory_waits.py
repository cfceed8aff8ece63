"""A Flight, an instance of an Airway and a workflow say that they wait for memory, and go on once it is free."""
import subprocess

import pytest

import airways
import flights
import operators
import workflows
from cluster import KINDS, condition, eventually, is_ready, never
from conftest import COMPILED
from flights import FLIGHT
from host import Host, to_its_end
from operators import OPERATOR

POLICY = ("hangar.dev/v1alpha1", "TenantPolicy")
KINDS[POLICY] = ("/apis/hangar.dev/v1alpha1", "tenantpolicies", False)
LABEL = "kubernetes.io/metadata.name"
# Keeps 15.25 MiB for as long as it lives: of 16 MiB that leaves less than any guest needs.
LARGE = """(module
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (memory (export "memory") 224)
  (func (export "_start") (drop (call $delay (i64.const -1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))"""
# Prints null: a release without resources.
QUIET = r"""(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 16)
  (data (i32.const 0) "\08\00\00\00\04\00\00\00null")
  (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"""


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


@pytest.fixture(scope="module")
def host(cluster, tmp_path_factory):
    yield from to_its_end(Host(cluster.kubeconfig, tmp_path_factory.mktemp("waits"), "--guest-memory=96Mi"))


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The paths of the modules, by name."""
    directory = tmp_path_factory.mktemp("modules")
    for name, source in {"large": LARGE, "quiet": QUIET}.items():
        (directory / f"{name}.wat").write_text(source)
        subprocess.run(["wat2wasm", directory / f"{name}.wat", "-o", directory / f"{name}.wasm"], check=True)
    return {name: str(directory / f"{name}.wasm") for name in ("large", "quiet")}


@pytest.fixture
def policy(cluster, namespace):
    name = f"{namespace}-memory"
    cluster.apply({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": name}, "spec": {
        "namespaceSelector": {"matchLabels": {LABEL: namespace}}, "budgets": {"guestMemory": "16Mi"}}})
    yield name
    cluster.delete(*POLICY, name)


@pytest.fixture
def full(cluster, namespace, modules):
    """Call it to take the namespace's memory; what it returns gives the memory back."""
    def take():
        cluster.create(operators.manifest("large", namespace, module={"url": modules["large"]}, sleep={"policy": "Never"}))
        eventually(lambda: operators.phase(cluster.get(*OPERATOR, "large", namespace)) == "Running", "the memory is taken", 90)
        return lambda: cluster.delete(*OPERATOR, "large", namespace)
    yield take
    cluster.delete(*OPERATOR, "large", namespace)


def waiting(manifest):
    """The condition of an object that waits."""
    found = condition(manifest, "WaitingForMemory")
    return found if found.get("status") == "True" else None


def test_every_contract_says_that_it_waits_and_goes_on_when_memory_is_free(cluster, host, namespace, policy, full, modules, unique):
    plural, kind = f"{unique}quiets", f"{unique.capitalize()}quiet"
    cluster.apply(airways.airway(plural, kind, modules["quiet"]))
    cluster.learn("e2e.hangar.dev/v1", kind, plural)
    airway = f"{plural}.e2e.hangar.dev"
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", airway)), "the Airway is ready", COMPILED)
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "rollout", workflows.bundle(workflows.ROLLOUT))

    def flight():
        return cluster.get(*FLIGHT, "it", namespace)

    def instance():
        return cluster.get("e2e.hangar.dev/v1", kind, "it", namespace)

    def workflow():
        return cluster.get(*workflows.WORKFLOW, "it", namespace)

    # All of them have their modules, and have run once.
    cluster.create(flights.manifest("it", namespace, modules["quiet"], inputObject={"round": 1}))
    cluster.create(airways.instance(kind, "it", {"round": 1}, namespace))
    cluster.create(workflows.workflow("it", namespace, "rollout", input={"soakMilliseconds": 600000}))
    eventually(lambda: is_ready(flight()) and is_ready(instance()), "flight and instance are ready", 90)
    eventually(lambda: workflows.status(cluster, namespace, "it").get("timers"), "the workflow has begun", 90)
    everything = {"the Flight": flight, "the instance": instance, "the workflow": workflow}
    assert not any(condition(look(), "WaitingForMemory") for look in everything.values()), "what never waited does not say so"

    give_back = full()
    cluster.patch(*FLIGHT, "it", {"spec": {"inputObject": {"round": 2}}}, namespace)
    cluster.patch("e2e.hangar.dev/v1", kind, "it", {"spec": {"round": 2}}, namespace)
    workflows.signal(cluster, namespace, "it", "1", "NOBODY_KNOWS_THIS")
    for name, look in everything.items():
        said = eventually(lambda look=look: waiting(look()), f"{name} waits", 60)
        assert said["reason"] == "NamespaceMemory", said
        assert "are needed" in said["message"] and f"of the 16 MiB of its namespace (TenantPolicy {policy}) are free" in said["message"], said

    give_back()
    for name, look in everything.items():
        eventually(lambda look=look: condition(look(), "WaitingForMemory").get("status") == "False", f"{name} waits no longer", 90)
    eventually(lambda: all(condition(look(), "Ready").get("observedGeneration") == look()["metadata"]["generation"]
                           for look in (flight, instance)), "both were evaluated", 60)
    eventually(lambda: workflows.status(cluster, namespace, "it").get("ignoredSignal") == "NOBODY_KNOWS_THIS", "the machine was asked", 60)

    cluster.delete(*workflows.WORKFLOW, "it", namespace)
    cluster.delete(*FLIGHT, "it", namespace)
    cluster.delete("e2e.hangar.dev/v1", kind, "it", namespace)
    eventually(lambda: not flight() and not instance(), "all are gone", 60)
    cluster.delete("yoke.cd/v1alpha1", "Airway", airway)


def test_a_flight_that_waits_is_deleted_at_once(cluster, host, namespace, policy, full, modules):
    cluster.create(flights.manifest("it", namespace, modules["quiet"], inputObject={"round": 1}))
    eventually(lambda: is_ready(cluster.get(*FLIGHT, "it", namespace)), "it is ready", 90)
    full()
    cluster.patch(*FLIGHT, "it", {"spec": {"inputObject": {"round": 2}}}, namespace)
    eventually(lambda: waiting(cluster.get(*FLIGHT, "it", namespace)), "it waits", 60)

    cluster.delete(*FLIGHT, "it", namespace)
    eventually(lambda: not cluster.get(*FLIGHT, "it", namespace), "it is gone, although there is no memory", 60)
    assert operators.phase(cluster.get(*OPERATOR, "large", namespace)) == "Running"


def test_a_condition_that_a_killed_host_has_left_is_corrected(cluster, host, namespace, policy, full, modules):
    cluster.create(flights.manifest("it", namespace, modules["quiet"], inputObject={"round": 1}))
    eventually(lambda: is_ready(cluster.get(*FLIGHT, "it", namespace)), "it is ready", 90)
    give_back = full()
    cluster.patch(*FLIGHT, "it", {"spec": {"inputObject": {"round": 2}}}, namespace)
    eventually(lambda: waiting(cluster.get(*FLIGHT, "it", namespace)), "it waits", 60)

    host.kill()
    give_back()
    never(lambda: not waiting(cluster.get(*FLIGHT, "it", namespace)), "nobody corrects it", 0.5)
    host.start()
    eventually(lambda: condition(cluster.get(*FLIGHT, "it", namespace), "WaitingForMemory").get("status") == "False", "the next host does", 90)
    assert is_ready(cluster.get(*FLIGHT, "it", namespace))
    cluster.delete(*FLIGHT, "it", namespace)
