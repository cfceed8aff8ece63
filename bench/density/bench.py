#!/usr/bin/env python3
"""How many sleeping operators fit into one host, and how fast it wakes them.

N operators of one module watch one namespace, and sleep. Then ConfigMaps are created there, one after the other: each
causes N wakes. An operator exits with code 0 when it has seen all of them; so one that lost a change would never exit.
The same with modules that differ, fewer of them.

    bench/density/run.sh [--quick] [--operators=N] [--modules=N]
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import ROOT, at_most, progress  # noqa: E402
from hangar_run import Hangar, directory_of_operators  # noqa: E402
from cluster import Cluster, eventually  # noqa: E402

NAMESPACE = "density"
GUEST = pathlib.Path(os.environ.get("HANGAR_GUESTS_DIR", ROOT / "build/guests")) / "operator_behave.wasm"
CHANGES = 10


def histogram_percentile(before, after, name, percent):
    """The upper bound of the bucket with the percentile of the values recorded in between, in seconds."""
    counts = sorted((float(key.split('le="')[1].split('"')[0]), value - before.get(key, 0))
                    for key, value in after.items() if key.startswith(f"{name}_bucket"))
    total = counts[-1][1]
    return next(bound for bound, count in counts if count >= total * percent / 100)


def run(cluster, scratch, name, count, distinct):
    """Figures of `count` operators."""
    directory = scratch / name
    arguments = [f"events={NAMESPACE},{CHANGES}", "exit=0"]
    directory_of_operators(directory, GUEST, count, distinct, arguments=lambda index: arguments)
    host = Hangar(cluster, directory, scratch / "cache", "--sleep-after=0s")
    pid = host.processes[0].pid
    try:
        began = time.monotonic()
        host.wait_until_asleep(count)
        started = time.monotonic() - began
        asleep = host.settled_memory(8)
        disk, page_cache = host.disk_bytes(), host.page_cache_bytes()

        before, cpu = host.metrics(), harness.cpu_seconds(pid)
        began = time.monotonic()
        with harness.peak_memory(pid) as peak:
            for index in range(CHANGES):
                cluster.create({"apiVersion": "v1", "kind": "ConfigMap",
                                "metadata": {"name": f"{name}-{index}", "namespace": NAMESPACE}})
                eventually(lambda: host.metrics()["hangar_operator_events_total"]
                           >= before["hangar_operator_events_total"] + count * (index + 1), "all have heard of it", 600)
        elapsed, cpu = time.monotonic() - began, harness.cpu_seconds(pid) - cpu
        after = host.metrics()
        wakes = after["hangar_operator_wakes_total"] - before["hangar_operator_wakes_total"]
        assert after["hangar_operator_failures_total"] == 0, "a guest failed"
        # An operator that has seen all has exited, and holds nothing.
        eventually(lambda: host.metrics()["hangar_operator_disk_bytes"] == 0, "all have ended", 60)
        return {"started": started, "asleep": asleep, "peak": peak, "disk": disk, "page_cache": page_cache,
                "wakes": wakes, "wakes_per_second": wakes / elapsed, "cpu_us": 1e6 * cpu / wakes,
                "p99_ms": 1000 * histogram_percentile(before, after, "hangar_operator_wake_seconds", 99),
                # Counts changes delivered to guests; bookmarks are delivered with them, but are not changes.
                "lost": count * CHANGES - (after["hangar_gateway_events_total"] - before["hangar_gateway_events_total"])}
    finally:
        host.close()
        for index in range(CHANGES):
            cluster.delete("v1", "ConfigMap", f"{name}-{index}", NAMESPACE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--operators", type=int)
    parser.add_argument("--modules", type=int)
    options = parser.parse_args()
    operators = options.operators or (200 if options.quick else 10_000)
    modules = options.modules or (5 if options.quick else 200)

    report = harness.Report("density.quick" if options.quick else "density")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-density-"))
    cluster = Cluster()
    try:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for name, count, distinct in (("one-module", operators, False), ("modules", modules, True)):
            label = f"{count} operators, {'a module each' if distinct else 'one module'}"
            progress(label)
            seen = run(cluster, scratch, name, count, distinct)
            report.add(f"{label}: RSS, all asleep", "MiB", seen["asleep"]["rss"], target=at_most(1024))
            report.add(f"{label}: anonymous memory, all asleep", "MiB", seen["asleep"]["anonymous"])
            report.add(f"{label}: anonymous memory an operator", "KiB", seen["asleep"]["anonymous"] * 1024 / count)
            report.add(f"{label}: peak RSS while all wake", "MiB", seen["peak"]["rss"], target=at_most(1024))
            report.add(f"{label}: disk an operator, beyond the code", "KiB", seen["disk"] / 1024 / count)
            report.add(f"{label}: page cache of code, images, snapshots", "MiB", seen["page_cache"] / harness.MIB)
            report.add(f"{label}: start until all sleep", "s", seen["started"])
            report.add(f"{label}: wakes a second", "1/s", seen["wakes_per_second"])
            report.add(f"{label}: CPU of the host a wake", "us", seen["cpu_us"])
            report.add(f"{label}: 99th percentile from event to end of the turn, all woken at once", "ms", seen["p99_ms"])
            report.add(f"{label}: events lost", "", seen["lost"], target=at_most(0))
    finally:
        cluster.close()
        shutil.rmtree(scratch, ignore_errors=True)
    report.note("a wake: resume, one event, and sleep again; the latency has the whole queue in it")
    report.finish()


if __name__ == "__main__":
    main()
