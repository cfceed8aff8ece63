"""Memory of all guests together: a host with a small limit, on a control plane without another host."""
import subprocess

import pytest

import operators
from cluster import eventually
from conftest import namespace_in
from host import Host
from operators import OPERATOR, events_of


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


def module_of(tmp_path, on_start, on_wake="", wait_milliseconds=-1, can_sleep=True):
    """A guest of 9.25 MiB, and its steps before it waits to be woken."""
    obstacle = "" if can_sleep else '(data $passive "x") (func $changes (data.drop $passive))'
    source = tmp_path / "large.wat"
    source.write_text(f"""(module
      (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
      (memory (export "memory") 128) {obstacle}
      (func $wait (drop (call $delay (i64.const {wait_milliseconds}))))
      (func $spin (local $left i32)
        (local.set $left (i32.const 20000000))
        (loop $again (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
      (func (export "_start") {on_start} (call $wait))
      (func (export "allocate") (param i32) (result i32) (i32.const 1024))
      (func (export "wakeup") (param i64 i32 i32 i32) {on_wake}))""")
    subprocess.run(["wat2wasm", source, "-o", tmp_path / "large.wasm"], check=True)
    return {"url": str(tmp_path / "large.wasm")}


def test_guests_that_do_not_fit_together_wait(cluster, tmp_path, namespace):
    """Each has 9.25 MiB in memory and keeps them; one namespace may have 24 MiB, half of all."""
    module = module_of(tmp_path, on_start="")
    limit = 24 * 1024 * 1024
    names = [f"large-{index}" for index in range(4)]
    host = Host(cluster.kubeconfig, tmp_path / "host", "--allow-file-modules", "--guest-memory=48Mi")

    def status(name):
        return (cluster.get(*OPERATOR, name, namespace) or {}).get("status", {})

    def waits(name):
        return [one for one in status(name).get("conditions", []) if one["type"] == "WaitingForMemory" and one["status"] == "True"]

    def reserved():
        return sum(value for name, value in host.metrics().items() if name.startswith("hangar_guest_memory_reserved_bytes"))

    try:
        for name in names:
            cluster.create(operators.manifest(name, namespace, module=module, sleep={"policy": "Never"}))
        eventually(lambda: len([name for name in names if waits(name)]) == 2, "two wait", 60)
        running = [name for name in names if not waits(name)]
        eventually(lambda: all(status(name).get("phase") == "Running" for name in running), "two are in memory", 60)
        condition = next(waits(name)[0] for name in names if waits(name))
        assert condition["reason"] == "NamespaceMemory" and "9 MiB are needed" in condition["message"], condition
        assert 18 * 1024 * 1024 < reserved() <= limit
        # A waiting one is gone as soon as it is deleted; one that has memory makes room for the last.
        removed = next(name for name in names if waits(name))
        last = next(name for name in names if waits(name) and name != removed)
        cluster.delete(*OPERATOR, removed, namespace)
        eventually(lambda: host.metrics()["hangar_operators"] == 3, "it is gone")
        assert waits(last)
        cluster.delete(*OPERATOR, running[0], namespace)
        eventually(lambda: status(last).get("phase") == "Running" and not waits(last), "the last has memory", 60)
        assert 18 * 1024 * 1024 < reserved() <= limit
    finally:
        for name in names:
            cluster.delete(*OPERATOR, name, namespace)
        host.stop()


def test_guests_take_turns_in_memory(cluster, tmp_path, namespace):
    """Of six, two fit into the memory of their namespace; each of them always has work."""
    module = module_of(tmp_path, on_start="(call $spin)", on_wake="(call $spin) (call $wait)", wait_milliseconds=5)
    names = [f"works-{index}" for index in range(6)]
    host = Host(cluster.kubeconfig, tmp_path / "host", "--allow-file-modules", "--guest-memory=48Mi")
    try:
        for name in names:
            cluster.create(operators.manifest(name, namespace, module=module, sleep={"after": "0s"}))
        wakes = {name: f'hangar_controller_wakes_total{{controller="{namespace}/{name}"}}' for name in names}
        eventually(lambda: all(host.metrics().get(series, 0) >= 20 for series in wakes.values()), "each has worked", 120)
    finally:
        for name in names:
            cluster.delete(*OPERATOR, name, namespace)
        host.stop()


@pytest.mark.parametrize("kind", ["idle", "busy", "unsuspendable"])
def test_guests_that_never_sleep_make_room_for_a_namespace_that_has_less(cluster, tmp_path, namespace, unique, kind):
    """Five guests of 9.25 MiB fill 48 MiB and keep them: two namespaces have two each, a third has one. The fourth's equal part is
    12 MiB: one of the four that exceed theirs leaves memory, and the one that does not stays."""
    step = "(call $spin)" if kind == "busy" else ""
    module = module_of(tmp_path, on_start=step, on_wake=f"{step} (call $wait)", wait_milliseconds=5 if kind == "busy" else -1,
                       can_sleep=kind != "unsuspendable")
    others = [namespace_in(cluster, f"ns-{unique}-{index}") for index in range(3)]
    spaces = [next(other) for other in others]
    many = [(f"many-{index}", space) for space in spaces[:2] for index in range(2)]
    one, late = ("one", spaces[2]), ("late", namespace)
    host = Host(cluster.kubeconfig, tmp_path / "host", "--allow-file-modules", "--guest-memory=48Mi")

    def phase(which):
        return operators.phase(cluster.get(*OPERATOR, *which))

    def create(which):
        cluster.create(operators.manifest(*which, module=module, sleep={"policy": "Never"}))

    try:
        for which in [*many, one]:
            create(which)
        eventually(lambda: all(phase(which) == "Running" for which in [*many, one]), "all five are in memory", 60)
        create(late)
        eventually(lambda: phase(late) == "Running", "the late one finds memory", 60)
        metrics = host.metrics()
        assert metrics["hangar_operator_evictions_total"] >= 1
        assert not events_of(cluster, *one)
        assert phase(one) == "Running"
        if kind == "idle":
            eventually(lambda: [phase(which) for which in many].count("Asleep") == 1, "one of the four sleeps")
        if kind == "unsuspendable":
            events = [event["message"] for which in many for event in events_of(cluster, *which)]
            assert any("had to make room" in message for message in events), events
        else:
            assert not any(events_of(cluster, *which) for which in many), "nobody fails"
    finally:
        for which in [*many, one, late]:
            cluster.delete(*OPERATOR, *which)
        host.stop()
        for other in others:
            next(other, None)
