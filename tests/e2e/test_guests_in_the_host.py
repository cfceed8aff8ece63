"""Guests in the host's own process: `hangar host --guest-isolation=none`. All contracts work there, and operators can be loaded ahead."""
import airways
import pytest
import workflows
from airways import flight
from cluster import eventually, is_ready
from conftest import COMPILED
from host import Host, to_its_end
from operators import EVERYTHING, OPERATOR, allow, create_config_map, lines, manifest, phase
from processes import children

GROUP = "inside.hangar.dev"


@pytest.fixture
def cluster(own_cluster):
    """Of its own, because another host on the same cluster would run the same operators."""
    return own_cluster


@pytest.fixture(scope="module")
def host(own_cluster, tmp_path_factory):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path_factory.mktemp("host"), "--features=airways,operators,workflows", "--guest-isolation=none"))


@pytest.fixture
def get(cluster, namespace):
    return lambda name: cluster.get(*OPERATOR, name, namespace)


def test_all_contracts_work_without_another_process(cluster, host, airway, namespace, unique, get):
    kind = unique.capitalize()
    airway(airways.airway(f"{unique}s", kind, flight("behave"), group=GROUP))
    cluster.create(airways.instance(kind, "one", {"behaviour": "basic", "data": {"a": "b"}}, namespace, group=GROUP))
    allow(cluster, namespace, *EVERYTHING)
    cluster.create(manifest("watcher", namespace, f"watch={namespace}", sleep={"after": "100ms"}))
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "conductor", workflows.bundle(workflows.CONDUCTOR))
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}, "data": {"made": "yes"}}
    cluster.create(workflows.workflow("it", namespace, "conductor", input={"rounds": [[{"type": "APPLY", "params": {"manifest": made}}]]}))

    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", kind, "one", namespace)), "the instance is Ready", COMPILED)
    eventually(lambda: phase(get("watcher")) == "Asleep", "the operator sleeps", COMPILED)
    eventually(lambda: cluster.get("v1", "ConfigMap", "first", namespace), "the workflow has made its object", COMPILED)
    create_config_map(cluster, "after", namespace)
    eventually(lambda: "changed after" in lines(host, "watcher", namespace), "the operator has woken")
    assert "hangar_guest_processes" not in host.metrics() and not children(host.process.pid)


def test_an_operator_that_looks_ahead_misses_nothing_and_its_decisions_are_counted(cluster, host, namespace, get):
    allow(cluster, namespace, *EVERYTHING)
    # Every resume is too slow, so that plans include loading ahead.
    cluster.create(manifest("watcher", namespace, f"watch={namespace}", sleep={"policy": "Predictive", "after": "100ms", "wakeLatency": "0s"}))
    eventually(lambda: any(line.startswith("listed") for line in lines(host, "watcher", namespace)), "it listed", COMPILED)
    eventually(lambda: phase(get("watcher")) == "Asleep", "it sleeps before its wakes are known", 30)

    def decisions():
        return sum(value for series, value in host.metrics().items() if series.startswith("hangar_operator_sleep_decisions_total"))
    before = decisions()
    for index in range(12):
        create_config_map(cluster, f"one-{index}", namespace)
        eventually(lambda: f"changed one-{index}" in lines(host, "watcher", namespace), "the guest heard of it")
    # An event that comes before the guest is idle again belongs to the same decision.
    assert decisions() >= before + 6
    assert get("watcher")["status"]["restarts"] == 0


def test_an_operator_that_is_to_share_with_nobody_is_not_run_without_guest_processes(cluster, host, namespace, get):
    cluster.create(manifest("lone", namespace, f"watch={namespace}", isolation="Operator"))
    eventually(lambda: "--guest-isolation" in get("lone").get("status", {}).get("lastError", ""), "it says what the host lacks", 60)
    assert not lines(host, "lone", namespace), "it has not run"
