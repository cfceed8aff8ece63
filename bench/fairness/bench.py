#!/usr/bin/env python3
"""How long operators wait beside one that loops: braked by default, braked by a TenantPolicy, and not braked.

Some namespaces have an operator each, which answers questions: a changed ConfigMap is copied to another one. The client asks them in
turn, with a pause after each answer. Another namespace has an operator that computes and asks to be woken at once, for ever. A host is
started for each way to keep it from the others (`--processor-sharing`, `--guest-isolation`), and answers are measured without the
looping operator and beside it. Rounds go forwards and backwards, because the machine's speed changes.

    bench/fairness/run.sh [--quick] [--isolations=none,namespace] [--victims=N] [--rounds=N] [--seconds=N]
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
import operators  # noqa: E402
from harness import ROOT, at_most, at_most_of_peer, percentile, progress  # noqa: E402
from cluster import KINDS, Cluster, eventually  # noqa: E402

CONFIG_MAP = ("v1", "ConfigMap")
POLICY = ("hangar.dev/v1alpha1", "TenantPolicy")
KINDS[POLICY] = ("/apis/hangar.dev/v1alpha1", "tenantpolicies", False)
# Controllers that namespaces need. The others would only cost processor time.
CONTROLLERS = "namespace-controller,serviceaccount-controller,garbage-collector-controller"

LOOPS = "loops"
# Processor time that its namespace may use: a twentieth of two cores. A braked operator that used more than the bar would miss it.
BUDGET = "100m"
# Millions of steps in each turn: some ten milliseconds.
STEPS = 20

# How much longer others may wait, and how soon the operator has to be braked.
SLOWER_MAX = 1.05
BRAKED_SECONDS_MAX = 10

# Between an answer and the next question: the client and the API server leave the cores to the host.
PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 60


class Victims:
    """Namespaces with one operator each, and the client that asks them."""

    def __init__(self, cluster, count):
        self.cluster = cluster
        self.namespaces = [f"victim-{index}" for index in range(count)]
        self._number, self._seen = 0, {}
        self._changed, self._closed = threading.Condition(), False
        for namespace in self.namespaces:
            make_namespace(cluster, namespace)
            operators.create_config_map(cluster, "question", namespace, number="0")
            cluster.create(operators.manifest("answers", namespace, f"answer={namespace},question,answer"))
        threading.Thread(target=self._watch, daemon=True).start()
        for namespace in self.namespaces:
            self._ask(namespace, 300)  # The module is compiled.

    def _watch(self):
        while not self._closed:
            # The API server ends a watch now and then, and is gone at the end.
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._read_watch()
            time.sleep(0.05)

    def _read_watch(self):
        address = self.cluster._address
        connection = http.client.HTTPSConnection(address.hostname, address.port, context=self.cluster._context)
        connection.request("GET", "/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Danswer")
        answer = connection.getresponse()
        while answer.status == 200 and (line := answer.readline()):
            seen = json.loads(line)["object"]
            with self._changed:
                self._seen[seen.get("metadata", {}).get("namespace")] = int(seen.get("data", {}).get("number") or 0)
                self._changed.notify_all()

    def _ask(self, namespace, patience=PATIENCE_SECONDS):
        """Milliseconds until the operator there has answered."""
        self._number += 1
        wanted, began = self._number, time.monotonic()
        self.cluster.patch(*CONFIG_MAP, "question", {"data": {"number": str(wanted)}}, namespace)
        with self._changed:
            if not self._changed.wait_for(lambda: self._seen.get(namespace, 0) >= wanted, patience):
                raise AssertionError(f"the operator in {namespace} did not answer within {patience:.0f} s")
        return 1000 * (time.monotonic() - began)

    def ask_for(self, seconds):
        """The milliseconds of all answers in that time."""
        end = time.monotonic() + seconds
        return self.ask_until(lambda: time.monotonic() >= end)

    def ask_until(self, is_over):
        """The milliseconds of all answers until then."""
        took = []
        while not is_over():
            for namespace in self.namespaces:
                took.append(self._ask(namespace))
                time.sleep(PAUSE_SECONDS)
        return took

    def close(self):
        self._closed = True


class Looping:
    """The operator that loops, and the policy that brakes it."""

    def __init__(self, cluster):
        self.cluster, self.host = cluster, None
        self.is_there = self.is_bounded = False
        make_namespace(cluster, LOOPS)

    def _metric(self, name):
        return self.host.metrics().get(f'{name}{{namespace="{LOOPS}"}}', 0)

    def cpu_seconds(self):
        return self._metric("hangar_guest_cpu_seconds_total")

    def braked_seconds(self):
        return self._metric("hangar_guest_cpu_braked_seconds_total")

    def _is_unknown(self):
        status, text = self.host.get(f"/metrics/operators/{LOOPS}/loops")
        return status == 404 and "no such operator" in text

    def remove(self):
        if self.is_there:
            self.cluster.delete(*operators.OPERATOR, "loops", LOOPS)
            eventually(self._is_unknown, "the host has stopped it", 60)
            self.is_there = False

    def begin(self, is_bounded):
        """It loops from now on, with its whole burst."""
        self.remove()
        self._bound(is_bounded)
        before = self.cpu_seconds()
        self.cluster.create(operators.manifest("loops", LOOPS, f"burn={STEPS}", sleep={"policy": "Never"}))
        self.is_there = True
        eventually(lambda: self.cpu_seconds() > before, "it loops", PATIENCE_SECONDS)

    def _bound(self, is_bounded):
        if self.is_bounded == is_bounded:
            return
        if is_bounded:
            self.cluster.apply({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": LOOPS}, "spec": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": LOOPS}}, "budgets": {"cpu": BUDGET}}})
        else:
            self.cluster.delete(*POLICY, LOOPS)
        eventually(lambda: self.host.metrics().get("hangar_tenant_policies") == is_bounded, "the host knows the policies", 60)
        self.is_bounded = is_bounded


def make_namespace(cluster, name):
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    operators.allow(cluster, name, *operators.EVERYTHING)


# The host's setting, and what is measured with it.
SHARINGS = {"equal": ("alone", "policy", "default"), "none": ("alone without the brake", "unbraked")}
BRAKED = ("policy", "default")


class Figures:
    """What has been seen of one isolation, by state."""

    def __init__(self):
        states = [state for of_sharing in SHARINGS.values() for state in of_sharing]
        self.p50, self.p99, self.cores = ({state: [] for state in states} for _ in range(3))
        self.braked = {state: [] for state in BRAKED}


def until_braked(victims, looping):
    """Seconds until a turn of it has to wait, while others are asked; None where it never has."""
    began = time.monotonic()
    before = looping.braked_seconds()
    seconds = None

    def is_over():
        nonlocal seconds
        if looping.braked_seconds() > before:
            seconds = time.monotonic() - began
        return seconds is not None or time.monotonic() - began > PATIENCE_SECONDS
    victims.ask_until(is_over)
    return seconds


def measure(state, victims, looping, seconds, figures):
    if state.startswith("alone"):
        looping.remove()
    else:
        looping.begin(is_bounded=state == "policy")
    if state in BRAKED:
        figures.braked[state].append(until_braked(victims, looping))
    used, began = looping.cpu_seconds(), time.monotonic()
    took = victims.ask_for(seconds)
    figures.p50[state].append(percentile(took, 50))
    figures.p99[state].append(percentile(took, 99))
    figures.cores[state].append((looping.cpu_seconds() - used) / (time.monotonic() - began))
    return (f"{state}: {len(took)} answers, p50 {figures.p50[state][-1]:.1f} ms, p99 {figures.p99[state][-1]:.1f} ms, the looping one takes "
            f"{figures.cores[state][-1]:.2f} cores" + (f", braked after {figures.braked[state][-1]} s" if state in BRAKED else ""))


def add(report, isolation, figures):
    where = f" ({'guest processes' if isolation == 'namespace' else 'one process'})"
    quiet = "without the looping operator"
    for of_state, what in ((figures.p50, "question to answer, median"), (figures.p99, "question to answer, 99th percentile")):
        for state, beside, target in (("default", "beside one that is braked by default", at_most_of_peer(SLOWER_MAX)),
                                      ("policy", "beside one that a policy brakes", at_most_of_peer(SLOWER_MAX))):
            report.add(f"{what}, {beside}{where}", "ms", of_state[state], of_state["alone"], quiet, target)
        report.add(f"{what}, beside one without the brake{where}", "ms", of_state["unbraked"], of_state["alone without the brake"], quiet)
    for state, by in (("default", "by default"), ("policy", "by the policy")):
        # One that was never braked counts as not measured, and the note below says so.
        times = figures.braked[state]
        report.add(f"from its first turn until the looping one is braked {by}, longest{where}", "s", None if None in times else max(times),
                   target=None if None in times else at_most(BRAKED_SECONDS_MAX))
        if None in times:
            report.note(f"{times.count(None)} of {len(times)} times it was not braked {by}{where} within {PATIENCE_SECONDS} s")
        report.add(f"processor time of the looping one, braked {by}{where}", "cores", figures.cores[state], figures.cores["unbraked"],
                   "without the brake")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", "--smoke", action="store_true", help="few answers: shows that it works, not how fair it is")
    parser.add_argument("--isolations", default="none,namespace", help="values of --guest-isolation, separated by commas")
    parser.add_argument("--victims", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    count = options.victims or (2 if options.quick else 10)
    rounds = options.rounds or (1 if options.quick else 4)
    seconds = options.seconds or (2 if options.quick else 30)

    report = harness.Report("fairness.quick" if options.quick else "fairness")
    seen = {isolation: Figures() for isolation in options.isolations.split(",")}
    ways = [(isolation, sharing) for isolation in seen for sharing in SHARINGS]
    loads = []
    with tempfile.TemporaryDirectory(prefix="hangar-bench-fairness-") as scratch, contextlib.ExitStack() as ending:
        cluster = Cluster(f"--with-kcm={CONTROLLERS}")
        ending.callback(cluster.close)
        cluster.apply_crds(ROOT / "deploy/crds")
        looping, victims = Looping(cluster), None
        for number in range(rounds):
            for isolation, sharing in ways if number % 2 == 0 else reversed(ways):
                # All in one directory, so that modules are compiled once.
                host = harness.hangar_host_class()(cluster.kubeconfig, pathlib.Path(scratch) / "host", "--features=operators",
                                                   f"--guest-isolation={isolation}", f"--processor-sharing={sharing}")
                with contextlib.ExitStack() as host_ending:
                    host_ending.callback(host.stop)
                    looping.host = host
                    if victims is None:
                        progress(f"{count} operators begin")
                        victims = Victims(cluster, count)
                        ending.callback(victims.close)
                    victims.ask_until(iter([False, True]).__next__)  # They have begun on this host.
                    states = SHARINGS[sharing]
                    for state in states if number % 2 == 0 else reversed(states):
                        told = measure(state, victims, looping, seconds, seen[isolation])
                        loads.append(os.getloadavg()[0])
                        progress(f"round {number + 1} of {rounds}, --guest-isolation={isolation}, {told}; load average {loads[-1]:.1f}")
                    looping.remove()

    for isolation, figures in seen.items():
        add(report, isolation, figures)
    report.note(f"{count} operators in namespaces of their own, asked in turn with a pause of {1000 * PAUSE_SECONDS:.0f} ms; "
                f"{rounds} rounds of {seconds:.0f} s; the policy: budgets.cpu {BUDGET}")
    report.note(f"load average of a minute, the benchmark's own included: {min(loads):.1f} to {max(loads):.1f}")
    report.finish()


if __name__ == "__main__":
    main()
