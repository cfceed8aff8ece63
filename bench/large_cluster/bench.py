#!/usr/bin/env python3
"""The cost of a large cluster for a host whose operators look at little of it.

There are 100,000 Pods and 30,000 Secrets in a hundred namespaces. A hundred operators watch one of a hundred of them, by a
label, each in a namespace of its own. Then one watched Pod of each namespace changes, and as many unwatched ones. The peer
is a process of client-go with one informer for each of the two kinds, as a manager of controller-runtime has them by
default; it stands for one operator, and the host for all.

    bench/large_cluster/run.sh [--quick]
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import ROOT, at_most, at_most_of_peer, progress  # noqa: E402
from hangar_run import Hangar, directory_of_operators  # noqa: E402
from cluster import Cluster, eventually  # noqa: E402

GUEST = pathlib.Path(os.environ.get("HANGAR_GUESTS_DIR", ROOT / "build/guests")) / "operator_behave.wasm"
SELECTOR = "labelSelector=example.com%2Fwatched%3Dtrue"
KINDS = ("pods", "secrets")


def namespace(index):
    return f"crowd-{index:03}"


def looks(index):
    """The steps of one operator: it watches both kinds at the same time, by the label."""
    pods, secrets = (f"stream=/api/v1/namespaces/{namespace(index)}/{kind}?watch=true&{SELECTOR}" for kind in KINDS)
    return [pods, "--", secrets]


def events(host):
    return host.metrics()["hangar_gateway_events_total"]


def rest(host, sizes):
    """Whether all operators watch both kinds, sleep, and are no longer being woken."""
    def look():
        seen = host.metrics()
        return seen["hangar_gateway_watches"] == len(KINDS) * sizes.namespaces and seen["hangar_operators_resident"] == 0 and \
            seen["hangar_operator_wakes_total"]
    before = look()
    time.sleep(2)
    return before and look() == before


def gauges(host, name):
    """Values of a metric by its label `resource`."""
    return {re.search('resource="([a-z]+)"', key)[1]: value for key, value in host.metrics().items()
            if key.startswith(f"{name}{{") and "resource=" in key}


def touch(cluster, sizes, pod, mark):
    """Changes that Pod in each namespace."""
    for index in range(sizes.namespaces):
        cluster.request("PATCH", f"/api/v1/namespaces/{namespace(index)}/pods/web-{pod:05}",
                        {"metadata": {"annotations": {"example.com/mark": mark}}}, "application/merge-patch+json")


def measure_host(cluster, scratch, sizes):
    directory = scratch / "operators"
    directory_of_operators(directory, GUEST, sizes.namespaces, False, arguments=looks)
    host = Hangar(cluster, directory, scratch / "cache", "--sleep-after=0s")
    pid = host.processes[0].pid
    watched = sizes.namespaces * (-(-sizes.pods // 100) + -(-sizes.secrets // 100))
    try:
        began = time.monotonic()
        with harness.peak_memory(pid) as peak:
            eventually(lambda: host.metrics_or_none(), "the host answers", 60)
            eventually(lambda: rest(host, sizes), "all operators have seen what they watch, and sleep", 1800)
            started, cpu_start = time.monotonic() - began, harness.cpu_seconds(pid)
            asleep = host.settled_memory(8)
        seen, cpu = events(host), harness.cpu_seconds(pid)
        touch(cluster, sizes, 0, "seen")
        eventually(lambda: events(host) >= seen + sizes.namespaces, "all have heard of what they watch", 300)
        heard, cpu_heard = events(host), harness.cpu_seconds(pid) - cpu
        # Events of one watch arrive in order: once the next watched change is there, all earlier ones were read.
        cpu = harness.cpu_seconds(pid)
        touch(cluster, sizes, 1, "unseen")
        touch(cluster, sizes, 0, "seen again")
        eventually(lambda: events(host) >= heard + sizes.namespaces, "all have heard again", 300)
        cpu_unheard = harness.cpu_seconds(pid) - cpu - cpu_heard
        return {"asleep": asleep, "peak": peak, "started": started, "cpu": cpu_start,
                "objects": sum(gauges(host, "hangar_cache_objects").values()), "watched": watched,
                "watches": gauges(host, "hangar_cache_watches"), "strangers": events(host) - heard - sizes.namespaces,
                "change_us": 1e6 * cpu_heard / sizes.namespaces, "unheard_us": 1e6 * cpu_unheard / sizes.namespaces}
    finally:
        host.close()


def measure_peer(cluster, peer):
    command = [peer, "cache", f"-kubeconfig={cluster.kubeconfig}", "-namespace=", f"-resources={','.join(KINDS)}", "-objects=typed"]
    with harness.Conversation(command) as one:
        one.ask("connect")
        with harness.peak_memory(one.pid) as peak:
            sync = one.ask("sync")
        one.ask("settle")
        return {"settled": harness.memory(one.pid), "peak": peak, "seconds": sync["seconds"], "cpu": sync["cpu_seconds"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few objects: shows that it works, not what it costs")
    parser.add_argument("--peer", type=pathlib.Path, required=True, help="the built bench/client/peer")
    options = parser.parse_args()
    options.namespaces, options.pods, options.secrets = (5, 200, 100) if options.quick else (100, 1000, 300)

    report = harness.Report("large_cluster.quick" if options.quick else "large_cluster")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-large-cluster-"))
    cluster = Cluster()
    try:
        count = options.namespaces * (options.pods + options.secrets)
        progress(f"creating {count} objects")
        subprocess.run([options.peer, "crowd", f"-kubeconfig={cluster.kubeconfig}", f"-namespaces={options.namespaces}",
                        f"-pods={options.pods}", f"-secrets={options.secrets}"], check=True)
        progress("the peer")  # First: the API server answers the first list of its life from etcd.
        peer = measure_peer(cluster, options.peer)
        progress("hangar")
        ours = measure_host(cluster, scratch, options)
    finally:
        cluster.close()
        shutil.rmtree(scratch, ignore_errors=True)

    name = "client-go, typed (protobuf), one process"
    report.add(f"{options.namespaces} operators, all asleep: RSS", "MiB", ours["asleep"]["rss"], peer["settled"]["rss"], name, at_most(150))
    report.add("anonymous memory", "MiB", ours["asleep"]["anonymous"], peer["settled"]["anonymous"], name)
    report.add("peak RSS from the start until all sleep", "MiB", ours["peak"]["rss"], peer["peak"]["rss"], name, at_most(150))
    report.add(f"objects held, of {count}", "", ours["objects"])
    report.add("objects held that nobody looks at", "", ours["objects"] - ours["watched"])
    report.add("watches of Pods", "", ours["watches"].get("pods"), target=at_most(2))
    report.add("watches of Secrets", "", ours["watches"].get("secrets"), target=at_most(2))
    report.add("start until all have seen what they watch, and sleep", "s", ours["started"], peer["seconds"], name)
    report.add("CPU until then", "s", ours["cpu"], peer["cpu"], name, at_most_of_peer(2))
    report.add("CPU of the host for a change that an operator watches, its turn included", "us", ours["change_us"])
    report.add("CPU of the host for a change that nobody watches", "us", ours["unheard_us"])
    report.add("events told to operators that do not watch the object", "", ours["strangers"], target=at_most(0))
    report.note(f"the operators look at {ours['watched']} objects")
    report.finish()


if __name__ == "__main__":
    main()
