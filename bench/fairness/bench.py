#!/usr/bin/env python3
"""How long operators wait beside one that loops, in a namespace with `budgets.cpu` and in one without.

Some namespaces have an operator each, which answers questions: a changed ConfigMap is copied to another one. The client asks them in
turn, with a pause after each answer. Another namespace has an operator that computes and asks to be woken at once, for ever. A round
measures the answers without it, beside it while its TenantPolicy brakes it, and beside it without a policy, which is the host's default:
nothing is braked. Rounds go forwards and backwards, because the machine's speed changes.

    bench/fairness/run.sh [--quick] [--victims=N] [--rounds=N] [--seconds=N]
"""
import argparse
import contextlib
import http.client
import json
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
        took, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            for namespace in self.namespaces:
                took.append(self._ask(namespace))
                time.sleep(PAUSE_SECONDS)
        return took

    def close(self):
        self._closed = True


class Looping:
    """The operator that loops, and the policy that brakes it."""

    def __init__(self, cluster, host):
        self.cluster, self.host = cluster, host
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

    def be(self, is_there, is_bounded):
        """Makes it so. Returns the seconds from its first turn until it is braked, where it begins and is to be braked."""
        if is_there and is_bounded:
            self.be(False, True)  # It begins with a full bucket.
        elif self.is_there and not is_there:
            self.cluster.delete(*operators.OPERATOR, "loops", LOOPS)
            eventually(self._is_unknown, "the host has stopped it", 60)
            self.is_there = False
        if self.is_bounded != is_bounded:
            self._bound(is_bounded)
        if not is_there:
            return None
        if not self.is_there:
            before, braked = self.cpu_seconds(), self.braked_seconds()
            self.cluster.create(operators.manifest("loops", LOOPS, f"burn={STEPS}", sleep={"policy": "Never"}))
            self.is_there = True
            eventually(lambda: self.cpu_seconds() > before, "it loops", PATIENCE_SECONDS)
            began = time.monotonic()
            if is_bounded:
                eventually(lambda: self.braked_seconds() > braked, "it is braked", PATIENCE_SECONDS)
                return time.monotonic() - began
        return None

    def _bound(self, is_bounded):
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


# Whether the operator loops, and whether a policy brakes it.
STATES = {"alone": (False, False), "braked": (True, True), "unbraked": (True, False)}


def measure(victims, looping, rounds, seconds):
    """By state: p50, p99 of each round, and the cores that the looping operator took; the seconds until it was braked."""
    seen = {state: {"p50": [], "p99": [], "cores": []} for state in STATES}
    braked = []
    for number in range(rounds):
        for state in sorted(STATES, key=list(STATES).index, reverse=bool(number % 2)):
            until = looping.be(*STATES[state])
            if until is not None:
                braked.append(until)
            used, began = looping.cpu_seconds(), time.monotonic()
            took = victims.ask_for(seconds)
            figures = seen[state]
            figures["p50"].append(percentile(took, 50))
            figures["p99"].append(percentile(took, 99))
            figures["cores"].append((looping.cpu_seconds() - used) / (time.monotonic() - began))
            progress(f"round {number + 1} of {rounds}, {state}: {len(took)} answers, p50 {figures['p50'][-1]:.1f} ms, p99 {figures['p99'][-1]:.1f} ms, "
                     f"the looping one takes {figures['cores'][-1]:.2f} cores")
    return seen, braked


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", "--smoke", action="store_true", help="few answers: shows that it works, not how fair it is")
    parser.add_argument("--victims", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    count = options.victims or (2 if options.quick else 10)
    rounds = options.rounds or (1 if options.quick else 8)
    seconds = options.seconds or (2 if options.quick else 30)

    report = harness.Report("fairness.quick" if options.quick else "fairness")
    with tempfile.TemporaryDirectory(prefix="hangar-bench-fairness-") as scratch, contextlib.ExitStack() as ending:
        cluster = Cluster(f"--with-kcm={CONTROLLERS}")
        ending.callback(cluster.close)
        cluster.apply_crds(ROOT / "deploy/crds")
        host = harness.hangar_host_class()(cluster.kubeconfig, pathlib.Path(scratch) / "host", "--features=operators")
        ending.callback(host.stop)
        progress(f"{count} operators begin")
        victims = Victims(cluster, count)
        ending.callback(victims.close)
        seen, braked = measure(victims, Looping(cluster, host), rounds, seconds)

    quiet = "without the looping operator"
    for figure, what in (("p50", "question to answer, median"), ("p99", "question to answer, 99th percentile")):
        report.add(f"{what}, beside a braked one", "ms", seen["braked"][figure], seen["alone"][figure], quiet, at_most_of_peer(SLOWER_MAX))
        report.add(f"{what}, beside one without the brake", "ms", seen["unbraked"][figure], seen["alone"][figure], quiet)
    report.add("from its first turn until the looping one is braked, longest", "s", max(braked), target=at_most(BRAKED_SECONDS_MAX))
    report.add("processor time of the looping one", "cores", seen["braked"]["cores"], seen["unbraked"]["cores"], "without the brake")
    report.note(f"{count} operators in namespaces of their own, asked in turn with a pause of {1000 * PAUSE_SECONDS:.0f} ms; the brake: budgets.cpu {BUDGET}")
    report.finish()


if __name__ == "__main__":
    main()
