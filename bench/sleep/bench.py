#!/usr/bin/env python3
"""Policies of sleep on patterns of events: memory over time, processor time, and the 95th percentile of the time that a wake waits.

A simulation: wakes are times from a seed, which is printed, and a resume is its measured cost. Only the policy `Predictive` is hangar's own code. Cost
adds memory and processor time, where a core is worth 4 GiB. The oracle knows the future; the published policy sleeps after a second, predicts by
smoothing, and loads a second ahead; its own cost of a cycle is 5.8 times the processor time.

    bench/sleep/run.sh [--quick] [--seed=N]
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import at_most, at_most_of_peer, progress  # noqa: E402

ORACLE_MAX = 1.15
# A wake that nobody predicts waits for the whole resume.
LATE_MAX = 0.05

# Guests as they were measured (docs/operating/benchmarks.md), and the latency that their operators name. A small guest resumes in time and is never
# loaded ahead; a large one is late unless it is.
GUESTS = {
    "2 MiB, resumes in 0.8 ms of 20": ["--mib=2", "--resume-ms=0.8", "--cpu-ms=0.48", "--latency-ms=20"],
    "24 MiB, resumes in 25 ms of 5": ["--mib=24", "--resume-ms=25", "--cpu-ms=40", "--latency-ms=5"],
}


def simulate(program, flags, seed):
    """By pattern, then by policy."""
    done = subprocess.run([program, f"--seed={seed}", *flags], check=True, capture_output=True, text=True)
    patterns = {}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        patterns.setdefault(one["pattern"], {})[one["policy"]] = one
    return patterns


def add(report, guest, pattern, runs):
    """The rounds of one pattern: a seed each."""
    def of(policy, key):
        return [one[policy][key] for one in runs]

    where = f"{guest}: {pattern}"
    report.add(f"{where}: cost against the oracle", "MiB s", of("predictive", "cost"), of("oracle", "cost"), "oracle", at_most_of_peer(ORACLE_MAX))
    report.add(f"{where}: cost against the published system", "MiB s", of("predictive", "cost"), of("published", "cost"), "published, its own cost",
               at_most_of_peer(1))
    for peer in ("published policy", "idle", "lru", "never"):
        report.add(f"{where}: cost against {peer}", "MiB s", of("predictive", "cost"), of(peer, "cost"), peer)
    report.add(f"{where}: memory over time", "MiB s", of("predictive", "mib_seconds"), of("idle", "mib_seconds"), "idle")
    report.add(f"{where}: CPU", "s", of("predictive", "cpu_seconds"), of("idle", "cpu_seconds"), "idle")
    report.add(f"{where}: p95 of wakes", "ms", of("predictive", "p95_ms"), of("idle", "p95_ms"), "idle")
    report.add(f"{where}: late wakes", "of all", of("predictive", "late"), of("idle", "late"), "idle", at_most(LATE_MAX))
    report.add(f"{where}: missed decisions", "of all",
               [one["predictive"]["misses"] / max(1, one["predictive"]["hits"] + one["predictive"]["misses"]) for one in runs])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulation", required=True)
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next ones follow by a hundred")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    seeds = [options.seed + 100 * number for number in range(1 if options.quick else 3)]
    report = harness.Report("sleep.quick" if options.quick else "sleep")
    report.note(f"seeds {', '.join(map(str, seeds))}")
    for guest, flags in GUESTS.items():
        rounds = []
        for seed in seeds:
            progress(f"{guest}, seed {seed}")
            rounds.append(simulate(options.simulation, flags, seed))
        for pattern in rounds[0]:
            add(report, guest, pattern, [one[pattern] for one in rounds])
    report.finish()


if __name__ == "__main__":
    main()
