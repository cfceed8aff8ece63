#!/usr/bin/env python3
"""How long nobody works when the leader is killed.

Two hosts take part in an election. The leader is killed (SIGKILL) at a random moment, an instance is created, and what
counts is the time from the kill until the other host has made the instance's ConfigMap. The killed host is started again as
the next candidate. Both have compiled the flight before.

    bench/failover/run.sh [--quick] [--rounds=N]
"""
import argparse
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
from cluster import Cluster, eventually, is_ready  # noqa: E402
from host import Host  # noqa: E402

GROUP, NAMESPACE = "failover.hangar.dev", "failover"
SETTINGS = {
    "defaults": ((), 20),
    "3s, 2s, 500ms": (("--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"), 5),
}


def holder(cluster):
    lease = cluster.get("coordination.k8s.io/v1", "Lease", "hangar", NAMESPACE) or {}
    return lease.get("spec", {}).get("holderIdentity", "")


def leads(cluster, host):
    return holder(cluster).endswith(f"_{host.process.pid}")


def children(name):
    return instance("Failover", name, {"behaviour": "children", "names": [name], "data": {"tag": "x"}}, NAMESPACE, GROUP)


def failovers(cluster, scratch, flags, rounds, dice):
    """Seconds from each kill until the other host has worked."""
    flags = ("--leader-elect", "--features=airways", f"--namespace={NAMESPACE}", *flags)
    hosts = [Host(cluster.kubeconfig, scratch / name, *flags) for name in ("a", "b")]
    took = []
    try:
        eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", f"failovers.{GROUP}")), "the Airway is ready", 300)
        for round_ in range(rounds + 1):
            leader = next(host for host in eventually(lambda: [one for one in hosts if leads(cluster, one)], "one leads", 60))
            other = next(host for host in hosts if host is not leader)
            # The candidate has seen the Lease, and the kill falls anywhere between two renewals.
            time.sleep(3 + dice.uniform(0, 3))
            name = f"it-{time.monotonic_ns()}"
            leader.kill()
            killed = time.monotonic()
            cluster.create(children(name))
            eventually(lambda: cluster.get("v1", "ConfigMap", name, NAMESPACE), "the other works", 120)
            took.append(time.monotonic() - killed)
            progress(f"round {round_}: {took[-1]:.1f} s")
            assert leads(cluster, other)
            cluster.delete(f"{GROUP}/v1", "Failover", name, NAMESPACE)
            leader.start()
        return took[1:]  # In the first round the other host had to compile the flight.
    finally:
        for host in hosts:
            host.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    rounds = options.rounds or (2 if options.quick else 30)

    report = harness.Report("failover.quick" if options.quick else "failover")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-failover-"))
    cluster = Cluster("--with-kcm")
    try:
        cluster.apply_crds(ROOT / "deploy/crds")
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cluster.apply(airways.airway("failovers", "Failover", flight("behave"), group=GROUP, mode="dynamic"))
        cluster.learn(f"{GROUP}/v1", "Failover", "failovers")
        for name, (flags, most) in SETTINGS.items():
            progress(name)
            took = failovers(cluster, scratch / name.replace(", ", "-"), flags, rounds, random.Random(1))
            report.add(f"{name}: from kill to the other's work, p50", "s", harness.percentile(took, 50))
            report.add(f"{name}: the same, p99", "s", harness.percentile(took, 99), target=at_most(most))
        report.note(f"{rounds} kills each: the 99th percentile is the longest")
    finally:
        cluster.close()
        shutil.rmtree(scratch, ignore_errors=True)
    print(report.table())
    print(report.write())


if __name__ == "__main__":
    main()
