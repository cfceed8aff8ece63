#!/usr/bin/env python3
"""The cost of a state machine's step, alone and in a host that keeps thousands of workflows.

Alone: the published database provisioner, from its first state to `ready`, over and over. The peer is its published runtime:
wazero, the module compiled once and instantiated for each event, the bundle as bytecode in a QuickJS module of its own
(bench/workflows/peer). Rounds alternate; a figure is the median of its rounds.

In a host: N workflows of one machine that waits, on a control plane of this machine. Everything is measured from outside:
memory and processor time of the host's process, its metrics, and the API server.

    bench/workflows/run.sh [--quick] [--workflows=N] [--only=step,host]
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import ROOT, at_most, at_most_of_peer, progress  # noqa: E402
import workflows  # noqa: E402
from cluster import ApiError, Cluster, eventually  # noqa: E402

HERE = ROOT / "bench/workflows"
NAMESPACE, MODULE = "bench", "patient"
PEER = "wazero 1.12.0, compiled once, an instance an event"


class Sizes:
    """How much of everything: enough for figures, or just enough to see that all of it works."""

    def __init__(self, quick, count):
        self.workflows = count or (200 if quick else 10_000)
        self.rounds = 1 if quick else 5
        self.round_seconds = 1 if quick else 5
        self.turns = 2
        self.firsts = 3 if quick else 10
        self.settle_seconds = 7 if quick else 15  # The host returns memory after five.
        self.turn_until = time.monotonic() + 420  # No turn begins later, so that all of it ends within ten minutes.
        self.clients = 8


# The step alone ---------------------------------------------------------------------------------------


def steps(sizes, options, scratch, placed=(), machines=1):
    """Rounds of both, in turns, with `machines` machines at a time. `placed`: the prefix of both commands."""
    bundle = workflows.built("database_provisioner.js")
    events = HERE / "events.jsonl"
    hangar = harness.Conversation([*placed, options.machine, bundle, events, scratch, machines])
    peer = harness.Conversation([*placed, options.peer, f"-module={workflows.built('provisioner_handle_event.wasm')}",
                                 f"-state={HERE / 'first_state.json'}", f"-events={events}", f"-workers={machines}"])
    with hangar, peer:
        hangar.ask("load")  # Compiles the engine, once for all machines.
        peer.ask("load")
        first = [1000 * hangar.ask("first")["seconds"] for _ in range(max(3, sizes.rounds))]
        seen = {"hangar": [], "peer": []}
        for number in range(sizes.rounds):
            for name, process in (("hangar", hangar), ("peer", peer)):
                answer = process.ask(f"run {sizes.round_seconds}")
                assert answer["value"] == "ready", f"{name} did not take its machines to the end: {answer}"
                seen[name].append(answer)
            progress(f"  round {number + 1}: " + ", ".join(
                f"{name} {1000 * rounds[-1]['cpu_seconds'] / rounds[-1]['steps']:.3f} ms CPU a step" for name, rounds in seen.items()))
    return seen, first


def measure_steps(report, sizes, options, scratch):
    progress("the step alone")
    seen, first = steps(sizes, options, scratch / "step")
    # So the peer's collector takes its time from the peer, and not from an idle core.
    progress("the step alone, on one core")
    on_one, _ = steps(sizes, options, scratch / "step-on-one", ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))])

    cores = len(os.sched_getaffinity(0))
    progress(f"the step alone, {cores} machines at a time")
    on_all, _ = steps(sizes, options, scratch / "step-on-all", machines=cores)

    def add(figure, unit, rounds, value, target=None):
        report.add(figure, unit, *([value(answer) for answer in rounds[name]] for name in ("hangar", "peer")), PEER, target)
    add("the step alone: CPU", "ms", seen, lambda answer: 1000 * answer["cpu_seconds"] / answer["steps"], at_most_of_peer(0.1))
    for where, rounds in (("", seen), (" on one core", on_one)):
        add(f"the step alone{where}: time, median", "ms", rounds, lambda answer: answer["median_ms"], at_most_of_peer(0.1))
        add(f"the step alone{where}: time, p99", "ms", rounds, lambda answer: answer["p99_ms"])
    add("the step alone: steps a second and core", "1/s", seen, lambda answer: answer["steps"] / answer["cpu_seconds"])
    add("the step alone, all cores busy: time a step", "ms", on_all, lambda answer: 1000 * answer["seconds"] / answer["steps"], at_most_of_peer(0.1))
    report.add("first step of a machine from its bytes, compiled before", "ms", first, target=at_most(50))


# In a host ----------------------------------------------------------------------------------------------


class World:
    """N workflows of one machine, and a client that sends all of them a signal."""

    def __init__(self, cluster, sizes):
        self.cluster, self.sizes = cluster, sizes
        cluster.apply_crds(ROOT / "deploy/crds")
        eventually(self._is_served, "the kind is served")
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        workflows.module(cluster, NAMESPACE, MODULE, workflows.bundle("patient"))
        self.turns = 0

    def _is_served(self):
        try:
            return self.cluster.request("GET", "/apis/workflows.example.com/v1/statefulworkflows")
        except ApiError:
            return None

    def each(self, act):
        """act(number) for every workflow, with some clients; returns seconds."""
        began = time.monotonic()
        with ThreadPoolExecutor(self.sizes.clients) as pool:
            for _ in pool.map(act, range(self.sizes.workflows), chunksize=16):
                pass
        return time.monotonic() - began

    def create(self):
        return self.each(lambda number: self.cluster.create(workflows.workflow(
            f"patient-{number:05}", NAMESPACE, MODULE, input={"team": f"team-{number % 20}"})))

    def turn(self):
        self.turns += 1
        annotation = {"metadata": {"annotations": {f"signal.workflows.example.com/{self.turns:06}": "TURN"}}}
        return self.each(lambda number: self.cluster.patch(*workflows.WORKFLOW, f"patient-{number:05}", annotation, NAMESPACE))

    def wait(self, host, transitions, seconds=900):
        """Polls seldom: each answer of the host's metrics costs the host processor time."""
        deadline = time.monotonic() + seconds
        while (seen := total(host, "hangar_workflow_transitions_total")) < transitions:
            assert time.monotonic() < deadline, f"{transitions} transitions within {seconds} s; seen were {seen:.0f}"
            time.sleep(0.25)

    def begin_each(self, manifests):
        """Milliseconds from sending each workflow, one after the other, until a watch has seen a state of its machine."""
        states = States(self.cluster, [one["metadata"]["name"] for one in manifests])
        took = []
        for manifest in manifests:
            began = time.monotonic()
            self.cluster.create(manifest)
            took.append(1000 * (states.seen(manifest["metadata"]["name"]) - began))
        return took

    def object_bytes(self):
        return len(json.dumps(self.cluster.get(*workflows.WORKFLOW, "patient-00000", NAMESPACE), separators=(",", ":")))


class States:
    """A watch of the workflows that notes when each first has a state, and ends when all have one."""

    def __init__(self, cluster, names):
        self._cluster, self._seen, self._has_changed = cluster, dict.fromkeys(names), threading.Condition()
        path = cluster.path(*workflows.WORKFLOW, NAMESPACE)
        version = cluster.request("GET", path)["metadata"]["resourceVersion"]
        threading.Thread(target=self._read, args=(path, version), daemon=True).start()

    def _read(self, path, version):
        try:
            for event in self._cluster.watch(path, version):
                now, name = time.monotonic(), event["object"]["metadata"].get("name")
                with self._has_changed:
                    if name in self._seen and not self._seen[name] and event["object"].get("status", {}).get("state"):
                        self._seen[name] = now
                        self._has_changed.notify_all()
                    if all(self._seen.values()):
                        return
        except (OSError, http.client.HTTPException):
            pass  # The waiting caller reports that nothing came.

    def seen(self, name):
        with self._has_changed:
            assert self._has_changed.wait_for(lambda: self._seen[name], 60), f"workflow {name} has no state"
            return self._seen[name]


def total(host, name):
    return sum(value for key, value in host.metrics().items() if key.split("{")[0] == name)


def begin_machines(world, host, sizes):
    """Milliseconds to the first state, for machines that are loaded already and for bundles that are new to the host."""
    world.cluster.create(workflows.workflow("first", NAMESPACE, MODULE))
    world.wait(host, 1)  # The engine is compiled.
    known = world.begin_each([workflows.workflow(f"again-{number}", NAMESPACE, MODULE) for number in range(sizes.firsts)])
    for number in range(sizes.firsts):
        workflows.module(world.cluster, NAMESPACE, f"{MODULE}-{number}", f"{workflows.bundle('patient')}// {number}\n")
    unknown = world.begin_each([workflows.workflow(f"unknown-{number}", NAMESPACE, f"{MODULE}-{number}")
                                for number in range(sizes.firsts)])
    return known, unknown


def waiting(host, sizes):
    """KiB: anonymous memory of an idle host, and the part of it in its caches' entries."""
    anonymous = harness.settled_memory(host.process.pid, sizes.settle_seconds)["anonymous"]
    return {"anonymous": 1024 * anonymous, "entries": total(host, "hangar_cache_bytes") / 1024}


def measure_host(report, sizes, scratch):
    cluster = Cluster()
    try:
        world = World(cluster, sizes)
        host = harness.hangar_host_class()(cluster.kubeconfig, scratch / "host", "--features=workflows")
        try:
            known, unknown = begin_machines(world, host, sizes)
            empty = waiting(host, sizes)
            before = total(host, "hangar_workflow_transitions_total")
            cpu, began = harness.cpu_seconds(host.process.pid), time.monotonic()
            progress(f"  creating {sizes.workflows} workflows")
            world.create()
            world.wait(host, before + sizes.workflows)
            progress(f"  all wait after {time.monotonic() - began:.0f} s")
            begun = waiting(host, sizes)
            began_cpu = (harness.cpu_seconds(host.process.pid) - cpu) / sizes.workflows

            rates, per_core = [], []
            for number in range(sizes.turns):
                if number > 0 and time.monotonic() > sizes.turn_until:
                    progress("  no time for another turn")
                    break
                before = total(host, "hangar_workflow_transitions_total")
                cpu, began = harness.cpu_seconds(host.process.pid), time.monotonic()
                world.turn()
                world.wait(host, before + sizes.workflows)
                wall = time.monotonic() - began
                # The host removes a signal's annotation after the transition that it caused.
                time.sleep(sizes.settle_seconds)
                spent = harness.cpu_seconds(host.process.pid) - cpu
                rates.append(sizes.workflows / wall)
                per_core.append(sizes.workflows / spent)
                progress(f"  a turn of all: {wall:.1f} s, {1000 * spent / sizes.workflows:.2f} ms CPU a transition")
            turned = waiting(host, sizes)
            size = world.object_bytes()
        finally:
            host.stop()
    finally:
        cluster.close()

    report.add("in a host: transitions a second and core of the host", "1/s", per_core)
    report.add("in a host: transitions a second, with API server and etcd on this machine", "1/s", rates)
    report.add("in a host: CPU of the host from a workflow's creation to its waiting", "ms", 1000 * began_cpu)
    for figure, then in (("memory a waiting workflow", begun), ("memory a waiting workflow after its turns", turned)):
        anonymous, entries = ((then[what] - empty[what]) / sizes.workflows for what in ("anonymous", "entries"))
        report.add(figure, "KiB", anonymous, entries, "its entry in the cache", at_most_of_peer(1.25))
    report.add("first step of a machine from its ConfigMap, compiled before", "ms", unknown, target=at_most(50))
    report.add("the same of a machine that is loaded", "ms", known)
    report.note(f"{sizes.workflows} workflows of one machine; one as JSON has {size} bytes after its turns")
    report.note("first step from its ConfigMap: from sending the workflow until a watch has seen its first state")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workflows", type=int)
    parser.add_argument("--only", default="step,host")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--peer", required=True)
    options = parser.parse_args()
    sizes = Sizes(options.quick, options.workflows)
    only = options.only.split(",")

    report = harness.Report("workflows.quick" if options.quick else "workflows")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-workflows-"))
    try:
        if "step" in only:
            measure_steps(report, sizes, options, scratch)
        if "host" in only:
            progress("in a host")
            measure_host(report, sizes, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report.finish()


if __name__ == "__main__":
    main()
