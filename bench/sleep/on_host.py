#!/usr/bin/env python3
"""Idle and Predictive on a real host: the memory of operators over time, the processor time of the host, and how long wakes take.

A control plane, and a host with a handful of operators. Half of them are woken with a period, the others in bursts; the times come from
a seed. The policies take turns, each with new operators and the same times, so that each also learns anew.

    bench/sleep/run.sh --on-host [--quick] [--seed=N] [--isolation=namespace]
"""
import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/e2e")]

import harness  # noqa: E402
import operators  # noqa: E402
from cluster import Cluster, eventually  # noqa: E402
from harness import MIB, at_most_of_peer, progress  # noqa: E402

EACH = 3  # Operators of each pattern.
PERIOD = 5
BURST, BURST_GAP, QUIET = 8, 0.3, 12
POLICIES = ("Idle", "Predictive")
LOOK = 0.1


def times(seed, seconds):
    """(second, operator) of all wakes, in order."""
    dice = random.Random(seed)
    wakes = []
    for number in range(EACH):
        at = dice.uniform(0, PERIOD)
        while at < seconds:
            wakes.append((at + dice.uniform(-0.1, 0.1), f"periodic-{number}"))
            at += PERIOD
        at = dice.expovariate(1 / QUIET)
        while at < seconds:
            for _ in range(BURST):
                wakes.append((at, f"bursty-{number}"))
                at += dice.expovariate(1 / BURST_GAP)
            at += dice.expovariate(1 / QUIET)
    return sorted((max(0, at), name) for at, name in wakes if at < seconds)


def late_bound(before, after, share):
    """The bound of the histogram's bucket below which this share of the wakes between two readings are."""
    def buckets(metrics):
        found = {}
        for series, value in metrics.items():
            if series.startswith("hangar_operator_wake_seconds_bucket"):
                bound = float(series.split('le="')[1].split('"')[0].replace("+Inf", "inf"))
                found[bound] = found.get(bound, 0) + value
        return found
    first, last = buckets(before), buckets(after)
    counts = {bound: last[bound] - first.get(bound, 0) for bound in sorted(last)}
    return next(bound for bound, count in counts.items() if count >= share * counts[max(counts)])


class Turn:
    """New operators with one policy, in a namespace each so that an event wakes one of them."""

    def __init__(self, cluster, host, number, policy):
        self.cluster, self.host, self.policy = cluster, host, policy
        self.spaces = {f"{pattern}-{index}": f"{pattern}-{index}-{number}" for pattern in ("periodic", "bursty") for index in range(EACH)}
        for space in self.spaces.values():
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
            operators.allow(cluster, space, *operators.EVERYTHING)
            cluster.create(operators.manifest("watcher", space, f"watch={space}", sleep={"policy": policy}))
        for space in self.spaces.values():
            eventually(lambda: operators.phase(cluster.get(*operators.OPERATOR, "watcher", space)) == "Asleep", f"{space} sleeps", 300)

    def run(self, wakes, seconds):
        """Its figures."""
        before, cpu, byte_seconds = self.host.metrics(), harness.cpu_seconds_of_tree(self.host.process.pid), 0.0
        began = time.monotonic()
        creating = threading.Thread(target=self._wake, args=(began, wakes))
        creating.start()
        last = began
        while last < began + seconds:
            time.sleep(LOOK)
            held, now = self.host.metrics()["hangar_operator_resident_bytes"], time.monotonic()
            byte_seconds += held * (now - last)
            last = now
        creating.join()
        after = self.host.metrics()
        return {"mib_seconds": byte_seconds / MIB, "cpu_seconds": harness.cpu_seconds_of_tree(self.host.process.pid) - cpu,
                "p95_ms": 1000 * late_bound(before, after, 0.95),
                "mean_ms": 1000 * (after["hangar_operator_wake_seconds_sum"] - before["hangar_operator_wake_seconds_sum"])
                / (after["hangar_operator_wake_seconds_count"] - before["hangar_operator_wake_seconds_count"]),
                "resumes": after["hangar_operator_resume_seconds_count"] - before["hangar_operator_resume_seconds_count"]}

    def _wake(self, began, wakes):
        for number, (at, name) in enumerate(wakes):
            time.sleep(max(0, began + at - time.monotonic()))
            operators.create_config_map(self.cluster, f"wake-{number}", self.spaces[name])

    def end(self):
        for space in self.spaces.values():
            self.cluster.request("DELETE", f"/apis/hangar.dev/v1alpha1/namespaces/{space}/operators/watcher")
        eventually(lambda: self.host.metrics()["hangar_operators"] == 0, "its operators are gone", 60)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next ones follow")
    parser.add_argument("--isolation", default="none", choices=("none", "namespace"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rounds, seconds = (1, 45) if options.quick else (3, 300)
    report = harness.Report(f"sleep_on_host.{options.isolation}" + (".quick" if options.quick else ""))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-sleep-"))
    cluster, host = Cluster("--with-kcm"), None
    figures = {policy: [] for policy in POLICIES}
    try:
        cluster.apply_crds(ROOT / "deploy/crds")
        host = harness.hangar_host_class()(cluster.kubeconfig, scratch / "host", "--features=operators", f"--guest-isolation={options.isolation}")
        for number in range(rounds):
            wakes = times(options.seed + number, seconds)
            # The first of a round alternates.
            for place, policy in enumerate(POLICIES if number % 2 == 0 else POLICIES[::-1]):
                progress(f"round {number + 1} of {rounds}: {policy}, {len(wakes)} wakes in {seconds} s")
                turn = Turn(cluster, host, f"{number}-{place}", policy)
                figures[policy].append(turn.run(wakes, seconds))
                progress(f"  {figures[policy][-1]}")
                turn.end()
    finally:
        if host:
            host.stop()
        cluster.close()
        shutil.rmtree(scratch, ignore_errors=True)

    def of(policy, key):
        return [one[key] for one in figures[policy]]
    # A core counts as much as 4 GiB, as for the policy itself.
    for policy in POLICIES:
        for one in figures[policy]:
            one["cost"] = one["mib_seconds"] + 4096 * one["cpu_seconds"]
    for figure, unit, key in (("memory over time", "MiB s", "mib_seconds"), ("CPU of the host", "s", "cpu_seconds"), ("cost", "MiB s", "cost"),
                              ("p95 of wakes, bound of the bucket", "ms", "p95_ms"), ("mean of wakes", "ms", "mean_ms"), ("resumes", "", "resumes")):
        report.add(figure, unit, of("Predictive", key), of("Idle", key), "idle", at_most_of_peer(1) if key in ("cost", "p95_ms") else None)
    report.note(f"seeds from {options.seed} on, {rounds} rounds of {seconds} s; CPU has the rest of the host in it, and a look at its metrics each {LOOK} s")
    report.finish()


if __name__ == "__main__":
    main()
