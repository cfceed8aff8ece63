#!/usr/bin/env python3
"""The cost of knowing 20,000 objects: list and watch of ConfigMaps and Pods, hangar's cache against client-go's informers.

Every round starts each program again, one after the other: one request to be connected, then everything until the last
object has reached the subscriber, then changes through the watch. A figure is the median of its rounds.

    bench/client/run.sh [--quick]
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import at_most_of_peer, progress  # noqa: E402
from cluster import Cluster  # noqa: E402

NAMESPACE = "bench"
PEERS = {
    "typed": "client-go, typed (protobuf)",
    "unstructured": "client-go, unstructured",
    "stripped": "client-go, typed, managedFields dropped",
}


def measure(command, count, touch, settle_seconds):
    """One program from its start to the last change."""
    with harness.Conversation(command) as one:
        one.ask("connect")
        connected = time.monotonic() - one.started
        empty_heap = one.ask("settle")["heap_bytes"]
        empty = harness.memory(one.pid)["rss"]
        with harness.peak_memory(one.pid) as peak:
            sync = one.ask("sync")
        assert sync["objects"] == count, f"{command[0]} knows {sync['objects']} of {count} objects"
        time.sleep(settle_seconds)
        left_alone = harness.memory(one.pid)["rss"]
        full_heap = one.ask("settle")["heap_bytes"]
        full = harness.memory(one.pid)["rss"]
        before = harness.cpu_seconds(one.pid)
        changes = touch(one)
        per_object = harness.MIB / count
        return {
            "rss": (full - empty) * per_object, "left_alone": (left_alone - empty) * per_object,
            "heap": (full_heap - empty_heap) / count, "empty": empty, "peak": peak["rss"],
            "seconds": connected + sync["seconds"], "cpu": sync["cpu_seconds"],
            "change_cpu": 1000 * (harness.cpu_seconds(one.pid) - before) / changes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few objects, one round: shows that it works, not how fast")
    parser.add_argument("--hangar", type=pathlib.Path, required=True, help="the built bench_client")
    parser.add_argument("--peer", type=pathlib.Path, required=True, help="the built bench/client/peer")
    arguments = parser.parse_args()
    count, changes, rounds, settle_seconds = (400, 50, 1, 0.2) if arguments.quick else (20000, 5000, 3, 2)
    report = harness.Report("client.quick" if arguments.quick else "client")

    # So that nothing is compacted between a list and its watch: that would be another benchmark.
    with contextlib.closing(Cluster()) as cluster:
        def peer(verb, number):
            return [str(arguments.peer), verb, f"-kubeconfig={cluster.kubeconfig}", f"-namespace={NAMESPACE}", f"-count={number}"]

        progress(f"creating {count} objects")
        subprocess.run(peer("fill", count), check=True)

        def touch(one):
            one.process.stdin.write(f"watch {changes}\n")
            one.process.stdin.flush()
            subprocess.run(peer("touch", changes), check=True)
            one.hear()
            return changes

        commands = {"hangar": [arguments.hangar, cluster.kubeconfig, NAMESPACE]}
        for kind in PEERS:
            commands[kind] = [arguments.peer, "cache", f"-kubeconfig={cluster.kubeconfig}", f"-namespace={NAMESPACE}",
                              f"-objects={kind}"]
        rounds_of = {name: [] for name in commands}
        # The API server answers the first list of its life from etcd, all others from its cache.
        measure(commands["typed"], count, lambda _: 1, 0)
        for number in range(rounds):
            for name, command in commands.items():
                progress(f"round {number + 1} of {rounds}: {name}")
                rounds_of[name].append(measure(command, count, touch, settle_seconds))
        size = statistics.mean(len(json.dumps(one, separators=(",", ":"))) for kind in ("ConfigMap", "Pod")
                               for one in cluster.request("GET", cluster.path("v1", kind, NAMESPACE) + "?limit=100")["items"])

    def values(name, key):
        return [one[key] for one in rounds_of[name]]

    fifth, no_worse = at_most_of_peer(1 / 5), at_most_of_peer(1)
    for figure, unit, key, target in (
            (f"bytes per object of {count}, RSS after returning what is free", "B", "rss", fifth),
            (f"bytes per object of {count}, RSS as left after the sync", "B", "left_alone", None),
            (f"bytes per object of {count}, heap in use", "B", "heap", fifth),
            ("start of the process to synced", "s", "seconds", no_worse),
            ("CPU for the sync", "s", "cpu", None),
            ("CPU per change through the watch", "ms", "change_cpu", None),
            ("peak RSS of the sync", "MiB", "peak", None),
            ("RSS before the first list", "MiB", "empty", None)):
        for kind, name in PEERS.items():
            # The third peer is not what people run by default: shown, but not a target.
            report.add(f"{figure}, against {kind}", unit, values("hangar", key), values(kind, key), name,
                       target if kind != "stripped" else None)
    report.note(f"an object has {size:.0f} bytes of JSON on average, managedFields included; hangar drops those as it reads")
    report.note(f"API server and etcd share the {os.cpu_count()} cores of the machine with the program that is measured")
    report.finish()


if __name__ == "__main__":
    main()
