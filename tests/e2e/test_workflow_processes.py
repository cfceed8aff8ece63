"""Workflows whose machines are asked in guest processes: `hangar host --guest-isolation=namespace`, also when such a process dies."""
import contextlib
import os
import pathlib
import signal as signals
import time

import pytest

import test_workflows
import workflows
from cluster import condition, eventually
from host import Host, to_its_end
from test_guest_isolation import children, zygote
from workflows import CONDUCTOR, CONFIG_MAP, FAMILIES, WORKFLOW, actors, bundle, built, reaches, signal, state

# A step takes one of the two seconds of processor time that it may, and asks for an object with a number.
SLOW = """
export function handle_event(state, event) {
  const before = JSON.parse(state) ?? {value: 'waiting', steps: 0};
  if (JSON.parse(event).type !== 'SLOW') return JSON.stringify({newState: before});
  const end = Date.now() + 1000;
  while (Date.now() < end) {}
  const steps = before.steps + 1;
  const made = {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: `made-${steps}`}, data: {made: 'yes'}};
  return JSON.stringify({newState: {value: 'waiting', steps}, actions: [{type: 'APPLY', params: {manifest: made}}]});
}
"""


@pytest.fixture
def cluster(own_cluster):
    """Of its own, because another host on the same cluster would run the same workflows."""
    return own_cluster


@pytest.fixture(scope="module")
def host(own_cluster, tmp_path_factory):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path_factory.mktemp("host"), "--features=workflows", "--guest-isolation=namespace"))


@pytest.fixture
def status(cluster, namespace):
    return lambda name: workflows.status(cluster, namespace, name)


def used_ticks(pid):
    """The processor time of a process; none once it is gone."""
    with contextlib.suppress(OSError, IndexError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    return 0


def kill_one_that_works(host, seconds=5):
    """Kills a guest process that computes, if one is found, and returns it: the question to a machine in it is not answered then."""
    began = {pid: used_ticks(pid) for pid in children(zygote(host))}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for pid in children(zygote(host)):
            if used_ticks(pid) - began.get(pid, 0) >= os.sysconf("SC_CLK_TCK") // 20:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signals.SIGKILL)
                return pid
        time.sleep(0.02)
    return None


def test_a_machine_is_asked_in_a_process_that_ends_when_nobody_asks(cluster, host, namespace, status):
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "conductor", bundle(CONDUCTOR))
    started = host.metrics()["hangar_guest_processes_started_total"]

    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}, "data": {"made": "yes"}}
    cluster.create(workflows.workflow("it", namespace, "conductor", input={"rounds": [[{"type": "APPLY", "params": {"manifest": manifest}}]]}))

    eventually(lambda: cluster.get(*CONFIG_MAP, "first", namespace), "its action is carried out", 60)
    eventually(lambda: not status("it").get("outbox"), "it is told so", 30)
    assert host.metrics()["hangar_guest_processes_started_total"] > started
    eventually(lambda: not children(zygote(host)), "a workflow that waits needs no process", 30)


@pytest.mark.parametrize("file, spec", [
    ("database_provisioner.js", {}), ("provisioner_handle_event.wasm", {}), ("provisioner_command.wasm", {}),
    ("provisioner_dynamic.wasm", {"plugin": {"configMap": "plugin"}}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_module_of_any_shape_is_asked_there(cluster, host, namespace, status, file, spec):
    workflows.allow(cluster, namespace)
    if file.endswith(".js"):
        workflows.module(cluster, namespace, "machine", built(file).read_text())
    else:
        workflows.module(cluster, namespace, "machine", binary=built(file).read_bytes(), key="machine.wasm.gz", compress=True)
    if spec:
        workflows.module(cluster, namespace, "plugin", binary=built("javy_plugin.wasm").read_bytes(), key="plugin.wasm.gz", compress=True)
    cluster.create(workflows.workflow("it", namespace, "machine", input={"team": "orders"}, **spec))

    def has_left_idle():
        return [entry for entry in status("it").get("history", []) if (entry.get("event"), entry.get("to")) == ("PROVISION", "creatingPvc")]
    eventually(has_left_idle, f"it goes on: {status('it')}", 120)
    assert state(status("it"))["context"]["team"] == "orders"


@pytest.mark.parametrize("family", FAMILIES)
def test_actors_of_a_machine_are_there(cluster, host, namespace, status, family):
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "family", bundle(family))
    cluster.create(workflows.workflow("it", namespace, "family"))
    eventually(lambda: status("it").get("value"), "it has begun", 60)

    signal(cluster, namespace, "it", "go", {"type": "PROVISION"})

    eventually(lambda: actors(status("it")), f"its actor is told of: {status('it')}", 60)


def test_a_step_is_repeated_when_its_process_is_killed_in_it_and_nothing_is_doubled(cluster, host, namespace, status):
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "slow", SLOW)
    cluster.create(workflows.workflow("it", namespace, "slow"))
    reaches(cluster, namespace, "it", "waiting")
    broken = host.metrics()["hangar_guest_processes_broken_total"]
    sent = 0

    # A step may end before its process is killed: then there is another one.
    while host.metrics()["hangar_guest_processes_broken_total"] == broken:
        assert sent < 20, "a process is killed in a step sooner or later"
        sent += 1
        signal(cluster, namespace, "it", f"slow-{sent}", {"type": "SLOW"})
        kill_one_that_works(host)
        eventually(lambda sent=sent: state(status("it")).get("steps") == sent, f"step {sent} is done: {status('it')}", 60)

    eventually(lambda: cluster.get(*CONFIG_MAP, f"made-{sent}", namespace), "the step's action is carried out", 30)
    eventually(lambda: not status("it").get("outbox") and not status("it").get("inbox"), "nothing is left to do", 30)
    assert state(status("it"))["steps"] == sent, "no step was taken twice"
    made = sorted(one["metadata"]["name"] for one in cluster.list(*CONFIG_MAP, namespace) if one["metadata"]["name"].startswith("made-"))
    assert made == sorted(f"made-{number}" for number in range(1, sent + 1))
    assert len([entry for entry in status("it")["history"] if entry.get("event") == "SLOW"]) == sent
    eventually(lambda: condition(cluster.get(*WORKFLOW, "it", namespace), "Stalled").get("status") != "True", "nothing is wrong with it", 30)


def test_a_process_that_is_lost_costs_another_namespace_nothing(cluster, host, namespace, unique):
    """The machine of another namespace is asked in another process, at the same time."""
    eventually(lambda: not children(zygote(host)), "no guest process is left of before", 30)
    other = f"other-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    try:
        for name in (namespace, other):
            workflows.allow(cluster, name)
            workflows.module(cluster, name, "slow", SLOW)
            cluster.create(workflows.workflow("it", name, "slow"))
            reaches(cluster, name, "it", "waiting")
        for name in (namespace, other):
            signal(cluster, name, "it", "slow", {"type": "SLOW"})
        killed = kill_one_that_works(host)
        assert killed, "a step was under way"
        assert set(children(zygote(host))) - {killed}, "the other process goes on"

        for name in (namespace, other):
            eventually(lambda name=name: state(workflows.status(cluster, name, "it")).get("steps") == 1, f"the step in {name} is done", 60)
    finally:
        cluster.delete("v1", "Namespace", other)


# As without guest processes: the same reasons, and the machine can be mended.
HARMFUL = ("syntax-error", "throws-when-loaded", "no-machine", "throws", "endless-loop", "endless-loop-when-loaded", "memory-bomb", "not-json", "state-too-large")


@pytest.mark.parametrize("reason, content, words", [case[1:] for case in test_workflows.BAD_MACHINES if case[0] in HARMFUL], ids=HARMFUL)
def test_a_bad_machine_is_told_of_as_without_processes(cluster, host, namespace, reason, content, words):
    test_workflows.test_a_bad_machine_stalls_its_workflow_says_why_and_can_be_mended(cluster, host, namespace, reason, content, words)
