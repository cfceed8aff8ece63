#!/usr/bin/env python3
"""The cost of one process that runs many flights: memory, latency, CPU and throughput.

The host runs as an administrator would start it, on a control plane of its own on this machine; everything is measured from
outside (/proc, /metrics, the API server). The peer is bench/flights/peer: the same flights under wazero. It has no cluster
to serve, so its figures include less work than the host's for the same evaluation. Rounds of host and peer alternate; a
figure is the median of its rounds.

    bench/flights/run.sh [--quick] [--cold]
"""
import argparse
import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import OUT, ROOT, at_least, at_most, at_most_of_peer, progress  # noqa: E402
import airways  # noqa: E402
from cluster import Cluster, eventually, is_ready  # noqa: E402

LONG_AGO = "2020-01-01T00:00:00Z"
GROUP, NAMESPACE, SECRET = "bench.hangar.dev", "bench", "shared"
STRONG = "wazero 1.6.0, modules kept"
WEAK = "wazero 1.6.0, weak references as yoke's ATC"
# A host returns the free memory of its heap after 5 s without work.
HEAP_SECONDS = 8


class Sizes:
    """How much of everything: enough for figures, or just enough to see that all of it works."""

    def __init__(self, quick):
        self.flights = 2 if quick else 20
        self.settle_seconds = 1 if quick else 8
        self.one_by_one = 4 if quick else 40
        self.burst = 20 if quick else 500
        self.rounds = 1 if quick else 3
        self.round_seconds = 1 if quick else 6


# The world ------------------------------------------------------------------------------------------


class Kind:
    """One kind: an Airway and the flight that is its own."""

    def __init__(self, number, wasm):
        self.kind, self.plural, self.wasm = f"Heavy{number:02}", f"heavy{number:02}s", wasm
        self.api_version, self.airway_name = f"{GROUP}/v1", f"{self.plural}.{GROUP}"

    def airway(self):
        return airways.airway(self.plural, self.kind, str(self.wasm), group=GROUP, mode="subscription", clusterAccess=True,
                              resourceAccessMatchers=["Secret"])

    def instance(self, name, **spec):
        return airways.instance(self.kind, name, {"image": "registry.k8s.io/pause:3.10", "replicas": 1, **spec},
                                NAMESPACE, GROUP)

    def lasting(self):
        """The name of the instance that every kind keeps all the time. It looks up the Secret."""
        return f"{self.kind.lower()}-one"


class Arrivals:
    """When an object was first seen by a watch, by (kind, name)."""

    def __init__(self, cluster, *kinds):
        self._cluster, self._seen, self._changed = cluster, {}, threading.Condition()
        self._connections = []
        for api_version, kind in kinds:
            path = cluster.path(api_version, kind, NAMESPACE)
            version = cluster.request("GET", path + "?limit=1")["metadata"]["resourceVersion"]
            threading.Thread(target=self._watch, args=(kind, f"{path}?watch=true&resourceVersion={version}"), daemon=True).start()

    def _watch(self, kind, path):
        for event in watch(self._cluster, path):
            now = time.monotonic()
            with self._changed:
                self._seen.setdefault((kind, event["object"]["metadata"]["name"]), now)
                self._changed.notify_all()

    def wait(self, keys, seconds):
        """The times of all of them, in the order of `keys`."""
        with self._changed:
            if not self._changed.wait_for(lambda: all(key in self._seen for key in keys), seconds):
                missing = [key for key in keys if key not in self._seen]
                raise AssertionError(f"not within {seconds} s: {len(missing)} of {len(keys)}, {missing[0]} for one")
            return [self._seen[key] for key in keys]


def watch(cluster, path):
    """The events of a watch, for as long as the caller iterates."""
    address = cluster._address
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=cluster._context)
    connection.request("GET", path)
    answer = connection.getresponse()
    while line := answer.readline():
        yield json.loads(line)


# The host, seen from outside ----------------------------------------------------------------------------


class Counts:
    """The host's own counters at one moment."""

    def __init__(self, host):
        self.at = time.monotonic()
        self.cpu_seconds = harness.cpu_seconds(host.process.pid)
        metrics = host.metrics()
        self.evaluations = self._evaluations(metrics)
        self.guest_seconds = sum(value for name, value in metrics.items()
                                 if name.startswith("hangar_evaluation_cpu_seconds_sum"))
        # A watch is one long request; it does not belong to an evaluation.
        self.requests = collections.Counter()
        for name, value in metrics.items():
            if name.startswith("rest_client_requests_total"):
                self.requests[re.search(r'method="(\w+)"', name)[1]] += value
        self.busy = sum(value for name, value in metrics.items()
                        if name.startswith(("workqueue_depth", "controller_runtime_active_workers")))

    @staticmethod
    def _evaluations(metrics):
        counted = [value for name, value in metrics.items() if name.startswith("hangar_evaluations_total")]
        if counted:
            return sum(counted)
        # Every reconcile of an instance that succeeds has evaluated it once.
        return sum(value for name, value in metrics.items()
                   if name.startswith("controller_runtime_reconcile_total") and re.search(r'controller="[^"]*heavy\d\ds', name))


def wait_idle(host, seconds=60):
    """Until the queues have been empty for a little while."""
    quiet, deadline = 0, time.monotonic() + seconds
    while quiet < 3:
        assert time.monotonic() < deadline, f"the host does not come to rest within {seconds} s"
        quiet = quiet + 1 if Counts(host).busy == 0 else 0
        time.sleep(0.1)


def mapped_code(pid):
    """Address of each mapping of compiled code: {(file, offset): [address]}."""
    found = collections.defaultdict(list)
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6 and "x" in words[1] and "/cache/code/" in words[5]:
            found[(words[5], words[2])].append(words[0])
    return dict(found)


def loaded_twice(before, after):
    """Modules mapped more than once, and those that have moved: they were loaded again."""
    return (sum(len(addresses) - 1 for addresses in after.values()) +
            sum(1 for key, addresses in after.items() if key in before and before[key] != addresses))


# What is measured -------------------------------------------------------------------------------------------


class Bench:
    def __init__(self, sizes, report, cluster, wasms, peer_binary, directory, host_directory):
        self.sizes, self.report, self.cluster, self.peer_binary, self.directory = sizes, report, cluster, peer_binary, directory
        self.host_directory = host_directory
        self.Host = harness.hangar_host_class()
        self.kinds = [Kind(number, wasm) for number, wasm in enumerate(wasms)]
        for kind in self.kinds:
            cluster.learn(kind.api_version, kind.kind, kind.plural)
        self.stamp = 0
        self.peers = {}

    # Acts

    def apply_airways(self, kinds, seconds):
        """Seconds until all of them are Ready."""
        began = time.monotonic()
        for kind in kinds:
            self.cluster.apply(kind.airway())
        for kind in kinds:
            eventually(lambda name=kind.airway_name: is_ready(self.cluster.get("yoke.cd/v1alpha1", "Airway", name)),
                       f"airway {kind.airway_name} is Ready", seconds)
        return time.monotonic() - began

    def create(self, kind, name, arrivals, seconds=60, **spec):
        """Seconds from the request until the resources exist."""
        began = time.monotonic()
        self.cluster.create(kind.instance(name, **spec))
        return max(arrivals.wait([("Deployment", name), ("Service", name)], seconds)) - began

    def play_controllers(self, names):
        """Reports, as a cluster's controllers would, that the instances' resources are available."""
        for name in names:
            deployment = self.cluster.get("apps/v1", "Deployment", name, NAMESPACE)
            replicas = deployment["spec"]["replicas"]
            self.cluster.patch("apps/v1", "Deployment", name, {"status": {
                "observedGeneration": deployment["metadata"]["generation"],
                **{key: replicas for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")},
                "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                                "message": "", "lastUpdateTime": LONG_AGO, "lastTransitionTime": LONG_AGO}]}}, NAMESPACE, "status")
            self.cluster.request("POST", f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices", {
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
                "ports": [{"name": "http", "port": 8080}],
                "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}]})

    def wait_instances_ready(self):
        def unready():
            return [one["metadata"]["name"] for kind in self.kinds
                    for one in self.cluster.list(kind.api_version, kind.kind, NAMESPACE) if not is_ready(one)]
        eventually(lambda: not unready(), "every instance is Ready", 60)

    def touch_secret(self):
        self.stamp += 1
        self.cluster.patch("v1", "Secret", SECRET, {"stringData": {"stamp": str(self.stamp)}}, NAMESPACE)

    def touch_instance(self, kind):
        """A change of the spec that changes nothing in the output."""
        self.stamp += 1
        self.cluster.patch(kind.api_version, kind.kind, kind.lasting(), {"spec": {"note": str(self.stamp)}}, NAMESPACE)

    def drive(self, host, act, clients):
        """Calls act(turn) with `clients` threads for one round; returns how the host's counters have changed."""
        wait_idle(host)
        before = Counts(host)
        deadline = time.monotonic() + self.sizes.round_seconds

        def client(number):
            turn = number
            while time.monotonic() < deadline:
                act(turn)
                turn += clients
            return turn // clients

        with ThreadPoolExecutor(clients) as pool:
            driving = pool.map(client, range(clients))
            time.sleep(self.sizes.round_seconds / 2)
            code_halfway = mapped_code(host.process.pid)
            acts = sum(driving)
        # Before the host rests, because it may unload code that is not running.
        code = mapped_code(host.process.pid)
        wait_idle(host)
        after = Counts(host)
        evaluations = after.evaluations - before.evaluations
        assert evaluations > 0, "the host's metrics have counted no evaluation"
        requests = after.requests - before.requests
        # Includes two reads of the metrics and the waits for rest: 0.3 s of seconds of work.
        return {"acts": acts, "evaluations": evaluations, "seconds": after.at - before.at - 0.3,
                "cpu": (after.cpu_seconds - before.cpu_seconds) / evaluations,
                "guest_cpu": (after.guest_seconds - before.guest_seconds) / evaluations,
                "loaded_twice": loaded_twice(code_halfway, code) if code else None,
                "requests": sum(requests.values()) / evaluations, "by_method": dict(requests)}

    def peer(self, references, count):
        """Starts (once) the peer with the first `count` flights loaded."""
        key = (references, count)
        if key not in self.peers:
            began = time.monotonic()
            one = harness.Conversation([
                self.peer_binary, f"-cache={self.directory / 'wazero'}", f"-references={references}",
                f"-input={self.directory / 'instance.json'}", f"-lookup={self.directory / 'secret.json'}",
                *(kind.wasm for kind in self.kinds[:count])])
            one.load_seconds = one.ask("load")["seconds"]
            one.start_seconds = time.monotonic() - began
            self.peers[key] = one
        return self.peers[key]

    def end_peers(self):
        while self.peers:
            self.peers.popitem()[1].close()

    # Figures, in the order of the run

    def first_airway(self):
        """A host without anything cached, then one Airway, compiled now."""
        cold = self.directory / "cold"
        progress("host without Airways")
        host = self.Host(self.cluster.kubeconfig, cold)
        try:
            idle = harness.settled_memory(host.process.pid, self.sizes.settle_seconds)
            self.report.add("memory, no Airway: RSS", "MiB", idle["rss"], target=at_most(20))
            self.report.add("memory, no Airway: PSS", "MiB", idle["pss"])
            self.report.add("memory, no Airway: private", "MiB", idle["private"])

            progress("first Airway, nothing compiled yet")
            hangar_seconds = self.apply_airways(self.kinds[:1], 300)
            arrivals = Arrivals(self.cluster, ("apps/v1", "Deployment"), ("v1", "Service"))
            self.create(self.kinds[0], self.kinds[0].lasting(), arrivals, secret=SECRET)
            hangar = harness.settled_memory(host.process.pid, self.sizes.settle_seconds)

            peer = self.peer("strong", 1)
            self.report.add("create an Airway, module not compiled before", "s", hangar_seconds, peer.load_seconds,
                            "wazero 1.6.0: compiling alone", None)
            peer.ask(f"run {self.sizes.round_seconds}")
            peer.ask("settle")
            wazero = harness.settled_memory(peer.pid, self.sizes.settle_seconds)
            for kind in ("rss", "pss", "private"):
                self.report.add(f"memory, 1 Airway idle: {kind.upper() if kind != 'private' else kind}", "MiB",
                                hangar[kind], wazero[kind], STRONG)
        finally:
            host.stop()
            self.end_peers()

    def many_airways(self, host):
        count = self.sizes.flights
        progress(f"{count} Airways (compiling what the last run has not)")
        self.apply_airways(self.kinds, 60 * count)
        arrivals = Arrivals(self.cluster, ("apps/v1", "Deployment"), ("v1", "Service"))
        for kind in self.kinds[1:]:
            self.create(kind, kind.lasting(), arrivals, secret=SECRET)
        self.play_controllers(kind.lasting() for kind in self.kinds)
        self.wait_instances_ready()
        wait_idle(host)
        progress("idle")
        before = harness.cpu_seconds(host.process.pid)
        began = time.monotonic()
        hangar = harness.settled_memory(host.process.pid, self.sizes.settle_seconds)
        idle_cpu = (harness.cpu_seconds(host.process.pid) - before) / (time.monotonic() - began)
        strong = self.peer("strong", count)
        strong.ask(f"run {self.sizes.round_seconds}")
        strong.ask("settle")
        wazero = harness.settled_memory(strong.pid, self.sizes.settle_seconds)
        for kind in ("rss", "pss", "private"):
            self.report.add(f"memory, {count} Airways idle: {kind.upper() if kind != 'private' else kind}", "MiB",
                            hangar[kind], wazero[kind], STRONG, at_most(64) if kind == "rss" else None)
        self.report.add(f"CPU, {count} Airways idle", "cores", idle_cpu)

    def one_by_one(self, host):
        count = self.sizes.one_by_one
        progress(f"{count} instances, one at a time")
        arrivals = Arrivals(self.cluster, ("apps/v1", "Deployment"), ("v1", "Service"))
        took = []
        for number in range(count):
            kind = self.kinds[number % len(self.kinds)]
            took.append(1000 * self.create(kind, f"single-{number}", arrivals, secret=SECRET))
            time.sleep(0.1)
        self.report.add("create an instance to resources exist, one at a time: p50", "ms", harness.percentile(took, 50),
                        target=at_most(100))
        self.report.add("create an instance to resources exist, one at a time: p99", "ms", harness.percentile(took, 99))
        # They stay: the garbage collector is not running, so no foreground deletion completes.
        self.play_controllers(f"single-{number}" for number in range(count))
        self.wait_instances_ready()

    def throughput(self, host):
        """Rounds of evaluations, host and peer in turn, and the memory that they take."""
        count, sizes = self.sizes.flights, self.sizes
        weak = self.peer("weak", count)
        strong = self.peer("strong", count)
        strong_one, weak_one = self.peer("strong", 1), self.peer("weak", 1)
        patched, looked_up = [], []
        runs = {one: [] for one in (strong, weak, strong_one, weak_one)}
        peaks = {one: {"rss": 0, "pss": 0, "anonymous": 0} for one in (strong, weak, strong_one, weak_one)}
        with harness.peak_memory(host.process.pid) as host_peak:
            for number in range(sizes.rounds):
                progress(f"round {number + 1} of {sizes.rounds}")
                patched.append(self.drive(host, lambda turn: self.touch_instance(self.kinds[turn % count]), 4))
                # Ten writes a second request 200 evaluations: more than possible, and little work for the API server.
                looked_up.append(self.drive(host, lambda _: (self.touch_secret(), time.sleep(0.1)), 1))
                for one, results in runs.items():
                    with harness.peak_memory(one.pid) as peak:
                        results.append(one.ask(f"run {sizes.round_seconds}"))
                    peaks[one] = {key: max(peaks[one][key], peak[key]) for key in peak}

        def per_second(one):
            return [run["runs"] / run["seconds"] for run in runs[one]]

        def cpu(one):
            return [1000 * run["cpu_seconds"] / run["runs"] for run in runs[one]]

        hot = f"{count} hot flights"
        by_patches = [one["evaluations"] / one["seconds"] for one in patched]
        by_lookup = [one["evaluations"] / one["seconds"] for one in looked_up]
        cpu_patched = [1000 * one["cpu"] for one in patched]
        cpu_lookup = [1000 * one["cpu"] for one in looked_up]
        self.report.add(f"evaluations per second, {hot}, by changes of a looked-up Secret", "1/s", by_lookup, per_second(strong),
                        STRONG, at_least(150))
        self.report.add(f"evaluations per second, {hot}, by patches of specs", "1/s", by_patches, per_second(strong), STRONG,
                        at_least(150))
        self.report.add(f"evaluations per second, {hot}, against weak references", "1/s", by_lookup, per_second(weak), WEAK)
        self.report.add("evaluations per second, 1 hot flight under the peer", "1/s", None, per_second(strong_one), STRONG)
        self.report.add("evaluations per second, 1 hot flight under the peer, weak references", "1/s", None,
                        per_second(weak_one), WEAK)
        self.report.add(f"CPU per evaluation, {hot}, by changes of a looked-up Secret", "ms", cpu_lookup, cpu(strong), STRONG,
                        at_most_of_peer(0.2))
        self.report.add(f"CPU per evaluation, {hot}, by patches of specs", "ms", cpu_patched, cpu(strong), STRONG,
                        at_most_of_peer(0.2))
        self.report.add(f"CPU per evaluation, {hot}, against weak references", "ms", cpu_lookup, cpu(weak), WEAK,
                        at_most_of_peer(0.2))
        self.report.add(f"CPU per evaluation, {hot}, by changes of a looked-up Secret: outside of the guest", "ms",
                        [1000 * (one["cpu"] - one["guest_cpu"]) for one in looked_up])
        self.report.add(f"CPU per evaluation, {hot}, by patches of specs: outside of the guest", "ms",
                        [1000 * (one["cpu"] - one["guest_cpu"]) for one in patched])
        self.report.add("API requests per unchanged evaluation", "requests", [one["requests"] for one in looked_up],
                        target=at_most(0.01))
        self.report.add("API requests per evaluation after a change of the spec alone", "requests",
                        [one["requests"] for one in patched])
        twice = [one["loaded_twice"] for one in patched + looked_up]
        self.report.add("modules loaded more than once while hot", "modules", None if None in twice else sum(twice),
                        sum(run["loads"] for run in runs[weak]), WEAK, at_most(0))
        if None in twice:
            self.report.note("compiled code was not found among the host's mappings, so repeated loads cannot be seen")
        self.report.note(f"the host's requests in the last round of spec patches, by method: {patched[-1]['by_method']}; "
                         f"of looked-up changes: {looked_up[-1]['by_method']}")
        self.load_peak = dict(host_peak)
        self.peer_peak = {STRONG: peaks[strong], WEAK: peaks[weak]}

    def burst(self, host):
        count = self.sizes.burst
        progress(f"{count} instances at once")
        arrivals = Arrivals(self.cluster, ("apps/v1", "Deployment"), ("v1", "Service"))
        created = {}

        def create(number):
            kind = self.kinds[number % len(self.kinds)]
            created[number] = time.monotonic()
            self.cluster.create(kind.instance(f"burst-{number}", secret=SECRET))

        before = Counts(host)
        with harness.peak_memory(host.process.pid) as peak:
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(create, range(count)))
            all_created = time.monotonic()
            keys = [(kind, f"burst-{number}") for number in range(count) for kind in ("Deployment", "Service")]
            times = arrivals.wait(keys, 300)
            wait_idle(host, 300)
        after = Counts(host)
        took = [1000 * (max(times[2 * number:2 * number + 2]) - created[number]) for number in range(count)]
        began = min(created.values())
        self.report.add(f"create an instance to resources exist, {count} at once: p50", "ms", harness.percentile(took, 50))
        self.report.add(f"create an instance to resources exist, {count} at once: p99", "ms", harness.percentile(took, 99))
        self.report.add(f"{count} at once: first request to last resource", "s", max(times) - began)
        self.report.add(f"{count} at once: the API server takes all instances after", "s", all_created - began)
        self.report.add(f"{count} at once: CPU of the host per instance", "ms",
                        1000 * (after.cpu_seconds - before.cpu_seconds) / count)
        for kind in ("rss", "pss"):
            self.report.add(f"memory, {self.sizes.flights} Airways under load, peak: {kind.upper()}", "MiB",
                            max(self.load_peak[kind], peak[kind]), self.peer_peak[STRONG][kind], STRONG,
                            at_most(200) if kind == "rss" else None)
        self.report.add(f"memory, {self.sizes.flights} Airways under load, peak: RSS, against weak references", "MiB",
                        max(self.load_peak["rss"], peak["rss"]), self.peer_peak[WEAK]["rss"], WEAK)
        rested = harness.settled_memory(host.process.pid, HEAP_SECONDS)
        self.report.add(f"memory, {self.sizes.flights} Airways and {count} instances after the load: private", "MiB",
                        rested["private"])
        self.report.add(f"memory, {self.sizes.flights} Airways and {count} instances after the load: anonymous", "MiB",
                        rested["anonymous"])

    def starts(self, host):
        """Starts the same host again and again with everything in its cache; returns the last one."""
        ready, airways_ready, evaluated, peer_seconds = [], [], [], []
        for number in range(self.sizes.rounds):
            progress(f"start {number + 1} of {self.sizes.rounds}")
            code = host.stop()
            assert code == 0, f"the host ended with {code}:\n{host.tail()}"
            replicas = 2 + number
            for kind in self.kinds:
                # A change that only a host that looks at the Airway again will correct.
                self.cluster.patch("yoke.cd/v1alpha1", "Airway", kind.airway_name, {"status": {"conditions": [{
                    "type": "Ready", "status": "Unknown", "reason": "Benchmark", "message": "not looked at yet",
                    "lastTransitionTime": "2020-01-01T00:00:00Z"}]}}, None, "status")
                self.cluster.patch(kind.api_version, kind.kind, kind.lasting(), {"spec": {"replicas": replicas}}, NAMESPACE)
            began = time.monotonic()
            host.start(wait=False)
            until = self._watch_for_start(host, replicas, began)
            ready.append(until["ready"])
            airways_ready.append(until["airways"])
            evaluated.append(until["evaluated"])
            self.end_peers()
            peer_seconds.append(self.peer("strong", self.sizes.flights).start_seconds)
            self.end_peers()
        what = f"start with {self.sizes.flights} modules compiled before"
        self.report.add(f"{what}: to /readyz", "s", ready)
        self.report.add(f"{what}: to all Airways Ready", "s", airways_ready, peer_seconds, "wazero 1.6.0: loading all from its disk cache")
        self.report.add(f"{what}: to changes made meanwhile applied", "s", evaluated)
        return host

    def _watch_for_start(self, host, replicas, began):
        """Seconds since `began` of the three effects of a start."""
        looks = {
            "ready": lambda: self._is_up(f"{host.url}/readyz"),
            "airways": lambda: all(is_ready(one) for one in self.cluster.list("yoke.cd/v1alpha1", "Airway")),
            "evaluated": lambda: sum(one["spec"]["replicas"] == replicas for one in self.cluster.list(
                "apps/v1", "Deployment", NAMESPACE)) >= len(self.kinds)}
        until = {}
        while len(until) < len(looks):
            assert host.process.poll() is None, f"the host ended:\n{host.tail()}"
            assert time.monotonic() - began < 300, f"not within 300 s: {looks.keys() - until.keys()}\n{host.tail()}"
            for name, look in looks.items():
                if name not in until and look():
                    until[name] = time.monotonic() - began
            time.sleep(0.01)
        return until

    @staticmethod
    def _is_up(url):
        try:
            with urllib.request.urlopen(url, timeout=2):
                return True
        except (OSError, urllib.error.HTTPError):
            return False

    def run(self):
        self.first_airway()
        host = self.Host(self.cluster.kubeconfig, self.host_directory)
        try:
            self.many_airways(host)
            self.one_by_one(host)
            self.throughput(host)
            host = self.starts(host)
            self.burst(host)
        except BaseException:
            print(host.tail(), self.report.table(), sep="\n", file=sys.stderr)
            raise
        finally:
            self.end_peers()
            host.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two flights and one short round: shows that it works, not how fast")
    parser.add_argument("--cold", action="store_true", help="forget what earlier runs have compiled")
    parser.add_argument("--peer", type=pathlib.Path, required=True, help="the built bench/flights/peer")
    arguments = parser.parse_args()
    sizes = Sizes(arguments.quick)
    name = "flights.quick" if arguments.quick else "flights"
    directory = OUT / name
    host_directory = OUT / "flights.host"
    shutil.rmtree(directory, ignore_errors=True)
    if arguments.cold:
        shutil.rmtree(host_directory, ignore_errors=True)
    directory.mkdir(parents=True)
    if arguments.quick:
        wasms = harness.distinct_copies(airways.GUESTS / "heavy.wasm", sizes.flights, directory / "modules")
    else:
        wasms = sorted((airways.GUESTS / "bench").glob("heavy-*.wasm"))[:sizes.flights]
    assert len(wasms) == sizes.flights, f"{len(wasms)} flights in {airways.GUESTS}: run examples/build.sh"

    report = harness.Report(name)
    with contextlib.closing(Cluster()) as cluster:
        cluster.kubectl("apply", "--server-side", "-f", str(ROOT / "deploy/crds"))
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        secret = cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE},
                                 "stringData": {"stamp": "0"}})
        bench = Bench(sizes, report, cluster, wasms, arguments.peer, directory, host_directory)
        (directory / "instance.json").write_text(json.dumps(bench.kinds[0].instance("one", secret=SECRET)))
        (directory / "secret.json").write_text(json.dumps(secret))
        bench.run()
    report.note(f"API server, etcd and this program share the {os.cpu_count()} cores of the machine with the host")
    report.finish()


if __name__ == "__main__":
    main()
