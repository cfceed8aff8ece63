#!/usr/bin/env python3
"""How long no host works when the leader is killed.

Two hosts take part in an election. The leader is killed (SIGKILL) at a random moment, an instance is created, and the figure
is the time from the kill until the other host has made the instance's ConfigMap. The killed host is started again as the
next candidate. Both have compiled the flight before.

A failover is mostly waiting, so several pairs of hosts are measured side by side. Each pair has its own control plane: a
leader works on all Airways of its cluster, those of another pair too.

    bench/failover/run.sh [--quick] [--kills=N] [--pairs=N] [--seed=N]
"""
import argparse
import concurrent.futures
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import ROOT, at_most, progress  # noqa: E402
import airways  # noqa: E402
from airways import flight, instance  # noqa: E402
import host  # noqa: E402
from cluster import Cluster, eventually, is_ready  # noqa: E402

Host = harness.hangar_host_class()
GROUP, NAMESPACE = "failover.hangar.dev", "failover"
SETTINGS = {
    "defaults": ((), 20),
    "3s, 2s, 500ms": (("--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"), 5),
}


def holder(cluster):
    lease = cluster.get("coordination.k8s.io/v1", "Lease", "hangar", NAMESPACE) or {}
    return lease.get("spec", {}).get("holderIdentity", "")


def leads(cluster, one):
    return holder(cluster).endswith(f"_{one.process.pid}")


def children(name):
    return instance("Failover", name, {"behaviour": "children", "names": [name], "data": {"tag": "x"}}, NAMESPACE, GROUP)


def failovers(cluster, scratch, flags, kills, dice):
    """Seconds from each kill until the other host has worked."""
    flags = ("--leader-elect", "--features=airways", f"--namespace={NAMESPACE}", *flags)
    hosts = [Host(cluster.kubeconfig, scratch / name, *flags) for name in ("a", "b")]
    took = []
    try:
        eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", f"failovers.{GROUP}")), "the Airway is ready", 300)
        for _ in range(kills + 1):
            leader = next(iter(eventually(lambda: [one for one in hosts if leads(cluster, one)], "one leads", 60)))
            other = next(one for one in hosts if one is not leader)
            # The candidate has seen the Lease, and the kill falls anywhere between two renewals.
            time.sleep(3 + dice.uniform(0, 3))
            name = f"it-{time.monotonic_ns()}"
            leader.kill()
            killed = time.monotonic()
            cluster.create(children(name))
            eventually(lambda: cluster.get("v1", "ConfigMap", name, NAMESPACE), "the other works", 120)
            took.append(time.monotonic() - killed)
            progress(f"{scratch.parent.name}, kill {len(took) - 1}: {took[-1]:.1f} s")
            assert leads(cluster, other)
            cluster.delete(f"{GROUP}/v1", "Failover", name, NAMESPACE)
            leader.start()
        return took[1:]  # In the first round the other host had to compile the flight.
    finally:
        for one in hosts:
            one.stop()


def pair(scratch, kills, seed):
    """Seconds by settings, of one pair and its control plane."""
    cluster = Cluster()
    try:
        cluster.apply_crds(ROOT / "deploy/crds")
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cluster.apply(airways.airway("failovers", "Failover", flight("behave"), group=GROUP, mode="dynamic"))
        cluster.learn(f"{GROUP}/v1", "Failover", "failovers")
        return {name: failovers(cluster, scratch / name.replace(", ", "-"), flags, kills, random.Random(seed))
                for name, (flags, _) in SETTINGS.items()}
    finally:
        cluster.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kills", type=int, help="of each setting, by all pairs")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    pairs = options.pairs or (1 if options.quick else 6)
    # The same number for each pair, and no fewer than requested.
    kills = -(-(options.kills or (2 if options.quick else 100)) // pairs)

    report = harness.Report("failover.quick" if options.quick else "failover")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-failover-"))
    host.compiled = scratch / "compiled"
    try:
        with concurrent.futures.ThreadPoolExecutor(pairs) as hands:
            measured = list(hands.map(lambda index: pair(scratch / f"pair-{index}", kills, options.seed + index), range(pairs)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for name, (_, most) in SETTINGS.items():
        took = [seconds for one in measured for seconds in one[name]]
        report.add(f"{name}: from kill to the other's work, p50", "s", harness.percentile(took, 50))
        report.add(f"{name}: the same, p99", "s", harness.percentile(took, 99), target=at_most(most))
        report.add(f"{name}: the same, longest", "s", max(took))
    report.note(f"{kills * pairs} kills each, by {pairs} pairs side by side; seed {options.seed}")
    print(report.table())
    print(report.write())


if __name__ == "__main__":
    main()
