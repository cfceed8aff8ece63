#!/usr/bin/env python3
"""The cost of the flight recorder: processor time on a ring of operators, and memory beside sleeping operators.

A host that records and one that does not work in turns of a few rounds; the idle one is stopped (SIGSTOP), and nothing else
differs. The ring is bench/ring's, with one module for all; a pair is two adjacent turns, and the figure is the median of all
pairs: the machine's speed changes from second to second by more than the difference between the two. Both hosts are started
several times, because two processes of the same program differ, too: by where their memory lies.

    bench/recorder/run.sh [--quick] [--operators=N] [--pairs=N] [--rounds=N] [--starts=N] [--sleepers=N] [--only=VARIANT,...]
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import at_most, progress  # noqa: E402
from cluster import Cluster  # noqa: E402
from hangar_run import Hangar, directory_of_operators  # noqa: E402
from rings import GUEST, Ring, ring_directory  # noqa: E402

# Until the last records of a turn are written.
WRITTEN_SECONDS = 0.8
SLEEPER = GUEST.with_name("operator_behave.wasm")

# The compared variants, and how they differ.
RECORDING = {"off": ["--recorder-bytes=0"], "on": []}
SLEEP_FLAGS = {"resident": ["--never-sleep"], "asleep": ["--sleep-after=0s"]}
VARIANTS = (*SLEEP_FLAGS, "memory")


def records(host):
    return host.metrics().get("hangar_recorder_records_total", 0)


def cpu_seconds(host):
    """Finer than the ticks that the kernel charges a process with."""
    tasks = pathlib.Path(f"/proc/{host.processes[0].pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


class Stopped:
    """A host that has started and warmed up, and runs only while it is measured."""

    def __init__(self, cluster, ring, directory, cache, flags):
        self.host, self.ring = Hangar(cluster, directory, cache, *flags), ring
        ring.warm_up()
        self._signal(signal.SIGSTOP)

    def _signal(self, number):
        os.kill(self.host.processes[0].pid, number)

    def cost_of(self, rounds):
        """CPU seconds and records of `rounds` rounds."""
        self._signal(signal.SIGCONT)
        self.ring.round()  # It receives all changes of the other host.
        before, recorded = cpu_seconds(self.host), records(self.host)
        for _ in range(rounds):
            self.ring.round()
        time.sleep(WRITTEN_SECONDS)
        cost = cpu_seconds(self.host) - before, records(self.host) - recorded
        self._signal(signal.SIGSTOP)
        return cost

    def close(self):
        self._signal(signal.SIGCONT)
        self.host.close()


def on_the_ring(cluster, ring, directory, caches, pairs, rounds, starts, sleep_flags):
    """Ratios of CPU with and without, one per pair; ms per hop of both; records per hop."""
    ring_directory(ring, directory, ring.count, False)
    ratios, cpu, recorded = [], {name: [] for name in RECORDING}, []
    for start in range(starts):
        names = sorted(RECORDING, reverse=bool(start % 2))
        with contextlib.ExitStack() as ending:
            hosts = {}
            for name in names:
                hosts[name] = Stopped(cluster, ring, directory, caches[name], [*sleep_flags, *RECORDING[name]])
                ending.callback(hosts[name].close)
            for pair in range(start, pairs, starts):
                for name in sorted(RECORDING, reverse=bool(pair // starts % 2)):
                    seconds, count = hosts[name].cost_of(rounds)
                    cpu[name].append(1000 * seconds / (rounds * ring.count))
                    if name == "on":
                        recorded.append(count / (rounds * ring.count))
                ratios.append(cpu["on"][-1] / cpu["off"][-1])
                progress(f"  off {cpu['off'][-1]:.3f} ms a hop, on {cpu['on'][-1]:.3f}, {100 * (ratios[-1] - 1):+.1f} %")
    return ratios, cpu, recorded


def memory_of_sleepers(cluster, directory, cache, count, flags, settle):
    """KiB of anonymous memory of a host whose operators have listed, watch, and sleep."""
    host = Hangar(cluster, directory, cache, "--sleep-after=0s", *flags)
    try:
        host.wait_until_asleep(count)
        return 1024 * host.settled_memory(settle)["anonymous"]
    finally:
        host.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--operators", type=int)
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--starts", type=int, help="of each host; the figure of memory has twice as many")
    parser.add_argument("--sleepers", type=int)
    parser.add_argument("--only", default=",".join(VARIANTS))
    options = parser.parse_args()
    count = options.operators or (10 if options.quick else 100)
    pairs = options.pairs or (1 if options.quick else 60)
    rounds = options.rounds or (3 if options.quick else 4)
    starts = options.starts or (1 if options.quick else 6)
    sleepers = options.sleepers or (50 if options.quick else 10_000)
    settle = 1 if options.quick else 15
    only = options.only.split(",")
    if unknown := set(only) - set(VARIANTS):
        parser.error(f"no variant {', '.join(sorted(unknown))}: there are {', '.join(VARIANTS)}")

    report = harness.Report("recorder.quick" if options.quick else "recorder")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-recorder-"))
    cluster = Cluster()
    try:
        ring = Ring(cluster, count)
        caches = {name: scratch / f"cache-{name}" for name in RECORDING}
        for variant, flags in SLEEP_FLAGS.items():
            if variant not in only:
                continue
            progress(f"{variant}: {count} operators, {pairs} pairs of {rounds} rounds")
            ratios, cpu, recorded = on_the_ring(cluster, ring, scratch / variant, caches, pairs, rounds, starts, flags)
            report.add(f"{variant}: CPU that recording adds", "%", [100 * (ratio - 1) for ratio in ratios], target=at_most(2))
            report.add(f"{variant}: CPU a hop, recorded", "ms", cpu["on"], cpu["off"], "hangar, not recorded")
            report.add(f"{variant}: records a hop", "", recorded)
            if pairs > 2:
                low, _, high = statistics.quantiles([100 * (ratio - 1) for ratio in ratios], n=4)
                report.note(f"{variant}: half of the pairs between {low:.1f} and {high:.1f} %")
        if "memory" in only:
            directory = scratch / "sleepers"
            # They wait for ConfigMaps that are never created.
            directory_of_operators(directory, SLEEPER, sleepers, False, arguments=lambda _: [f"events={ring.namespaces[0]},1000", "exit=0"])
            seen = {name: [] for name in RECORDING}
            for _ in range(1 if options.quick else 2 * starts):
                for name, flags in RECORDING.items():
                    seen[name].append(memory_of_sleepers(cluster, directory, caches[name], sleepers, flags, settle))
                    progress(f"memory, {name}: {seen[name][-1]:.0f} KiB")
            more = statistics.median(seen["on"]) - statistics.median(seen["off"])
            report.add(f"{sleepers} operators asleep: anonymous memory that recording adds", "KiB", more, target=at_most(64))
            report.note(f"memory: {', '.join(f'{value:.0f}' for value in seen['on'])} KiB recorded, "
                        f"{', '.join(f'{value:.0f}' for value in seen['off'])} KiB not")
        ring.close()
    finally:
        cluster.close()
        shutil.rmtree(scratch, ignore_errors=True)
    report.note(f"{count} operators of one module; hosts with and without the recorder in turns, each started {starts} times")
    report.finish()


if __name__ == "__main__":
    main()
