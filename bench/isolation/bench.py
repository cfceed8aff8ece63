#!/usr/bin/env python3
"""What it costs that guests are in processes of their own: hosts with `--guest-isolation=none`, with one guest process for all
(`shared`), with one for each namespace, and with one for each operator, side by side.

N namespaces have a ring of operators (bench/ring), an instance of an Airway, and a workflow each. The hosts take turns on the
same control plane and the same objects, again and again, since the machine's speed changes by more than their difference. A host's
figures are those of all its processes together, guest processes included.

- Warm: the operators never sleep, so that each domain has its process.
- Cold: the operators sleep, and each round waits until no guest process is left.
- Asleep: a host of its own with many sleeping operators in many namespaces (`--sleepers`, `--sleepers-namespaces`).

    bench/isolation/run.sh [--quick] [--namespaces=N] [--rounds=N] [--sleepers=N] [--sleepers-namespaces=N]
"""
import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import at_least_of_peer, at_most, at_most_of_peer, progress  # noqa: E402
from hangar_run import total  # noqa: E402
import airways  # noqa: E402
import workflows  # noqa: E402
from cluster import Cluster, eventually, is_ready  # noqa: E402
from operators import OPERATOR, copier, phase  # noqa: E402
from processes import children  # noqa: E402
from rings import Ring  # noqa: E402
from sleepers import Sleepers, for_each  # noqa: E402

GROUP = "bench.hangar.dev"
MACHINE = "patient"
NONE, SHARED, NAMESPACE, ALONE = "none", "shared", "namespace", "operator"
FLAGS = {NONE: "--guest-isolation=none", SHARED: "--guest-isolation=shared", NAMESPACE: "--guest-isolation=namespace",
         ALONE: "--guest-isolation=namespace"}
LABELS = {SHARED: "one process for all", NAMESPACE: "a process per namespace", ALONE: "a process per operator"}
PEER = "in the host's process"
HOPS = 50  # Enough that ticks of the processor time, 10 ms, do not matter.
# What the wall may cost a warm domain, a cold one, and one that is asleep.
WARM_MOST, COLD_MOST_MS, DOMAIN_MOST_MIB, ASLEEP_MOST_MIB = 1.15, 0.5, 1, 40
RATE_LEAST = 0.95


class World:
    """The objects of all hosts, and what a client does to them."""

    def __init__(self, count):
        self.cluster = Cluster()
        self.ring = Ring(self.cluster, count)
        self.turns = 0
        self.cluster.apply(airways.airway("boxes", "Box", airways.flight("behave"), group=GROUP, mode="dynamic"))
        self.cluster.learn(f"{GROUP}/v1", "Box", "boxes")
        names = self.ring.namespaces
        for index, name in enumerate(names):
            copier(self.cluster, name, names[(index + 1) % count])
            workflows.module(self.cluster, name, MACHINE, workflows.bundle(MACHINE))

    def begin(self):
        """For the first host: the kinds that it makes, and their instances."""
        eventually(lambda: is_ready(self.cluster.get("yoke.cd/v1alpha1", "Airway", f"boxes.{GROUP}")), "the Airway is Ready", 300)
        for name in self.ring.namespaces:
            self.cluster.create(airways.instance("Box", "one", {"behaviour": "basic", "data": {"a": "b"}}, name, group=GROUP))
            self.cluster.create(workflows.workflow("one", name, MACHINE, input={"team": "t"}))
        for name in self.ring.namespaces:
            eventually(lambda name=name: self.cluster.get("v1", "ConfigMap", "one", name), "the instance has its ConfigMap", 300)

    def set_operators(self, isolation, **sleep):
        for name in self.ring.namespaces:
            self.cluster.patch(*OPERATOR, "copier", {"spec": {"isolation": isolation, "sleep": {"policy": None, "after": None, **sleep}}}, name)

    def are_all(self, wanted):
        return all(phase(self.cluster.get(*OPERATOR, "copier", name)) == wanted for name in self.ring.namespaces)

    def _all(self, act):
        for_each(self.ring.namespaces, act)

    def touch_instances(self):
        self.turns += 1
        self._all(lambda name: self.cluster.patch(f"{GROUP}/v1", "Box", "one", {"spec": {"data": {"a": str(self.turns)}}}, name))

    def signal_workflows(self):
        self.turns += 1
        annotation = {"metadata": {"annotations": {f"signal.workflows.example.com/{self.turns:06}": "TURN"}}}
        self._all(lambda name: self.cluster.patch(*workflows.WORKFLOW, "one", annotation, name))

    def close(self):
        self.ring.close()
        self.cluster.close()


def guest_processes(host):
    """Without the zygote, their parent."""
    return [pid for zygote in children(host.process.pid) for pid in children(zygote)]


class Started:
    """One host with all its processes."""

    def __init__(self, world, scratch, isolation, *flags):
        self.host = harness.hangar_host_class()(world.cluster.kubeconfig, scratch / "host", FLAGS[isolation], *flags)

    def guest_processes(self):
        return guest_processes(self.host)

    def cpu_seconds(self):
        return harness.cpu_seconds_of_tree(self.host.process.pid)

    def total(self, name):
        return total(self.host.metrics(), name)

    def stop(self):
        self.host.stop()


def rate(started, metric, act, times):
    """How many of what the metric counts came to be per second, and the CPU of each in ms, while the client acts again and again."""
    at_first = started.total(metric)
    act()
    eventually(lambda: started.total(metric) > at_first, "what it needs is loaded", 300)
    before, cpu, began = counted(started, metric), started.cpu_seconds(), time.monotonic()
    for _ in range(times):
        act()
    seen = counted(started, metric) - before
    wall = time.monotonic() - began - SETTLED
    return {"per_second": seen / wall, "cpu_ms": 1000 * (started.cpu_seconds() - cpu) / seen}


SETTLED = 0.5


def counted(started, metric):
    """The count, once it has not changed for a while."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < SETTLED:
        now = started.total(metric)
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.02)
    return last


def warm(world, started, times):
    """A host whose operators never sleep."""
    eventually(lambda: world.are_all("Running"), "all operators run", 300)
    world.ring.warm_up()
    before = started.cpu_seconds()
    rounds = [world.ring.round() for _ in range(HOPS)]
    cpu = started.cpu_seconds() - before
    dirty = [harness.private_dirty(pid) for pid in started.guest_processes()]
    hops = world.ring.count
    return {"hop_ms": [1000 * one / hops for one in rounds], "hop_cpu_ms": [1000 * cpu / HOPS / hops],
            "domain_mib": dirty, "processes": len(dirty),
            "evaluations": rate(started, "hangar_evaluations_total", world.touch_instances, times),
            "transitions": rate(started, "hangar_workflow_transitions_total", world.signal_workflows, times)}


def cold(world, started, rounds):
    """A host whose operators sleep, and whose guest processes have ended."""
    world.ring.warm_up()
    hops = []
    for _ in range(rounds):
        eventually(lambda: world.are_all("Asleep") and not started.guest_processes(), "all sleep, and no guest process is left", 120)
        hops.append(1000 * world.ring.round() / world.ring.count)
    return hops


def side_by_side(report, options, scratch):
    world = World(options.namespaces)
    seen = {name: {"hop_ms": [], "hop_cpu_ms": [], "domain_mib": [], "processes": 0, "cold_ms": [],
                   "evaluations": [], "transitions": []} for name in FLAGS}
    try:
        progress("the first host compiles")
        started = Started(world, scratch, NONE)
        world.begin()
        started.stop()
        for number in range(options.rounds):
            for name in FLAGS:
                progress(f"round {number + 1} of {options.rounds}: {name}")
                isolation = "Operator" if name == ALONE else "Namespace"
                figures = seen[name]
                world.set_operators(isolation, policy="Never")
                started = Started(world, scratch, name)
                try:
                    now = warm(world, started, options.times)
                    world.set_operators(isolation, after="0s")
                    figures["cold_ms"] += cold(world, started, options.cold_rounds)
                finally:
                    started.stop()
                for key in ("hop_ms", "hop_cpu_ms", "domain_mib"):
                    figures[key] += now[key]
                figures["processes"] = now["processes"]
                for key in ("evaluations", "transitions"):
                    figures[key].append(now[key])
    finally:
        world.close()

    none = seen[NONE]
    for name, label in LABELS.items():
        figures = seen[name]
        report.add(f"{label}: guest processes while all are awake", "", figures["processes"])
        report.add(f"{label}: latency a hop, warm", "ms", figures["hop_ms"], none["hop_ms"], PEER, at_most_of_peer(WARM_MOST))
        report.add(f"{label}: CPU a hop, warm", "ms", figures["hop_cpu_ms"], none["hop_cpu_ms"], PEER, at_most_of_peer(WARM_MOST))
        report.add(f"{label}: latency a hop, cold", "ms", figures["cold_ms"], none["cold_ms"], PEER)
        report.add(f"{label}: the same, more than {PEER}", "ms", statistics.median(figures["cold_ms"]) - statistics.median(none["cold_ms"]),
                   target=at_most(COLD_MOST_MS))
        report.add(f"{label}: private dirty memory and page tables of a process", "MiB", figures["domain_mib"], target=at_most(DOMAIN_MOST_MIB))
        for what in ("evaluations", "transitions") if name != ALONE else ():  # Only operators can be alone.
            report.add(f"{label}: {what} a second", "1/s", [one["per_second"] for one in figures[what]],
                       [one["per_second"] for one in none[what]], PEER, at_least_of_peer(RATE_LEAST))
            report.add(f"{label}: CPU of {what}, each", "ms", [one["cpu_ms"] for one in figures[what]],
                       [one["cpu_ms"] for one in none[what]], PEER, at_most_of_peer(WARM_MOST))
    report.note(f"{options.namespaces} namespaces; {options.rounds} turns of each host; the API server and etcd are on the same cores")


def asleep(report, options, scratch):
    """Many sleepers in many namespaces: the memory of the host's processes, and of the kernel for them."""
    try:
        machine = harness.SmallMachine("hangar-isolation", 16 * 1024 * harness.MIB)
    except OSError as error:
        report.note(f"sleepers are not measured: this machine does not allow a cgroup: {error}")
        return
    cluster = Cluster()
    host = None
    try:
        sleepers = Sleepers(cluster, options.sleepers, options.sleepers_namespaces)
        host = harness.hangar_host_class()(cluster.kubeconfig, scratch / "sleepers", FLAGS[NAMESPACE], "--features=operators", inside=machine.inside())
        progress(f"{options.sleepers} operators in {options.sleepers_namespaces} namespaces fall asleep")
        sleepers.create()
        sleepers.wait_until_asleep(host.metrics, 3600)
        eventually(lambda: not guest_processes(host), "no guest process is left", 3600)
        time.sleep(10)
        rss = sum(harness.memory(pid)["rss"] for pid in harness.process_tree(host.process.pid))
        report.add(f"{options.sleepers} operators asleep in {options.sleepers_namespaces} namespaces: RSS of the host and the zygote", "MiB", rss)
        kernel = machine.kernel_memory()
        report.add("the same: memory of the kernel", "MiB", kernel)
        report.add("the same: both", "MiB", None if kernel is None else rss + kernel, target=at_most(ASLEEP_MOST_MIB))
        report.add("the same: guest processes", "", len(guest_processes(host)), target=at_most(0))
    finally:
        if host:
            host.stop()
        cluster.close()
        machine.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--namespaces", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--sleepers", type=int, help="0: not measured")
    parser.add_argument("--sleepers-namespaces", type=int)
    options = parser.parse_args()
    quick = options.quick
    options.namespaces = options.namespaces or (2 if quick else 10)
    options.rounds = options.rounds or (1 if quick else 5)
    options.times, options.cold_rounds = (3, 1) if quick else (30, 3)
    if options.sleepers is None:
        options.sleepers = 20 if quick else 10_000
    options.sleepers_namespaces = options.sleepers_namespaces or (5 if quick else 1000)

    report = harness.Report("isolation.quick" if quick else "isolation")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-isolation-"))
    try:
        side_by_side(report, options, scratch)
        if options.sleepers:
            asleep(report, options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report.finish()


if __name__ == "__main__":
    main()
