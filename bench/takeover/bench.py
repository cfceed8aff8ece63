#!/usr/bin/env python3
"""How long a host takes that replaces itself in place (SIGUSR2) until the new program has taken over its sleeping operators, and
whether each of them sees what has changed meanwhile.

All operators watch ConfigMaps of their namespace and sleep. As soon as the host has got the signal, one ConfigMap is made in each
namespace; each operator is to be woken by it. The peer is the same host, stopped and started: its operators begin anew.

    bench/takeover/run.sh [--quick] [--operators=N] [--namespaces=N]
"""
import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import at_most, progress  # noqa: E402
from hangar_run import total  # noqa: E402
import operators  # noqa: E402
from cluster import Cluster, eventually  # noqa: E402
from sleepers import Sleepers, for_each  # noqa: E402

PEER = "stopped and started"
PATIENCE = 3600


class Replaced:
    """A host with sleeping operators, which replaces itself."""

    def __init__(self, scratch, options):
        self.cluster = Cluster()
        self.sleepers = Sleepers(self.cluster, options.operators, options.namespaces)
        self.host = harness.hangar_host_class()(self.cluster.kubeconfig, scratch / "host", "--features=operators", "--leader-elect",
                                                "--guest-isolation=namespace")
        self.sleepers.create()
        self.wait_until_asleep()

    def figures(self):
        """Of a host that answers; empty while it is being replaced."""
        try:
            return self.host.metrics()
        except OSError:
            return {}

    def wait_until_asleep(self):
        self.sleepers.wait_until_asleep(self.figures, PATIENCE)

    def wait_until_all(self, metric, what):
        eventually(lambda: total(self.figures(), metric) >= self.sleepers.count, what, PATIENCE)

    def replace(self):
        """Seconds until all are taken over, seconds until all have been woken by what changed meanwhile, and how many began anew."""
        began = time.monotonic()
        os.kill(self.host.process.pid, signal.SIGUSR2)
        for_each(self.sleepers.namespaces, lambda namespace: operators.create_config_map(self.cluster, "meanwhile", namespace))
        self.wait_until_all("hangar_operators_taken_over_total", "all operators are settled")
        settled = time.monotonic() - began
        anew = self.figures()['hangar_operators_taken_over_total{result="started_anew"}']
        self.wait_until_all("hangar_operator_wakes_total", "all operators have been woken")
        woken = time.monotonic() - began
        self.wait_until_asleep()
        return settled, woken, anew

    def restart(self):
        """Seconds until all have listed and sleep again."""
        began = time.monotonic()
        self.host.stop()
        self.host.start()
        self.wait_until_asleep()
        return time.monotonic() - began

    def close(self):
        self.host.stop()
        self.cluster.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few operators: shows that it works, not what it costs")
    parser.add_argument("--operators", type=int)
    parser.add_argument("--namespaces", type=int)
    options = parser.parse_args()
    options.operators = options.operators or (20 if options.quick else 10_000)
    options.namespaces = options.namespaces or (5 if options.quick else 1000)

    report = harness.Report("takeover.quick" if options.quick else "takeover")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-takeover-"))
    replaced = None
    try:
        progress(f"{options.operators} operators in {options.namespaces} namespaces fall asleep")
        replaced = Replaced(scratch, options)
        progress("the host replaces itself")
        settled, woken, anew = replaced.replace()
        progress("it is stopped and started")
        restarted = replaced.restart()
        of = f"{options.operators} operators"
        report.add(f"{of}: until all are taken over", "s", settled, restarted, PEER, at_most(60))
        report.add(f"{of}: until all have seen what has changed meanwhile", "s", woken, restarted, PEER)
        report.add(f"{of}: started anew", "", anew, target=at_most(0))
    finally:
        if replaced:
            replaced.close()
        shutil.rmtree(scratch, ignore_errors=True)
    report.finish()


if __name__ == "__main__":
    main()
