#!/usr/bin/env python3
"""The cost of reviews at admission, and what a host that hangs costs those who do not use it.

Two control planes of their own are on this machine: one with a host that reviews the kinds of twenty Airways, one without
hangar, which is the peer. A review evaluates the flight `app` (examples/app), a module of its own for each Airway, and sends
its output as a dry run. Rounds of both alternate; a figure is the median of its rounds.

    bench/admission/run.sh [--quick]
"""
import argparse
import contextlib
import http.client
import itertools
import json
import pathlib
import signal
import ssl
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import at_most, at_most_of_peer, progress  # noqa: E402
import airways  # noqa: E402
from cluster import ApiError, Cluster, eventually, is_ready  # noqa: E402
from host import free_port  # noqa: E402

GROUP, NAMESPACE = "bench.hangar.dev", "bench"
PEER = "the same API server without hangar"
CONFIG_MAP = ("v1", "ConfigMap")
WRITERS = 4
GARBAGE_COLLECTOR = "--with-kcm=garbage-collector-controller"


class Sizes:
    """How much of everything: enough for figures, or just enough to see that all of it works."""

    def __init__(self, quick):
        self.airways = 2 if quick else 20
        self.rounds = 1 if quick else 5
        self.round_seconds = 1 if quick else 6
        self.creates = 20 if quick else 1000
        self.writes = 50 if quick else 1000


class Kind:
    """One Airway and its kind."""

    def __init__(self, number, wasm):
        self.kind, self.plural, self.wasm = f"App{number:02}", f"app{number:02}s", wasm
        self.api_version, self.name = f"{GROUP}/v1", f"{self.plural}.{GROUP}"

    def airway(self):
        return airways.airway(self.plural, self.kind, str(self.wasm), group=GROUP, mode="dynamic", clusterAccess=True, resourceAccessMatchers=["Secret"])

    def crd(self):
        """The CRD that a host makes of the Airway; the schema is open, so its conditions cost nothing."""
        template = self.airway()["spec"]["template"]
        template["versions"][0]["subresources"] = {"status": {}}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": self.name}, "spec": template}

    def instance(self, name):
        return airways.instance(self.kind, name, {"image": "nginx:stable", "replicas": 2}, NAMESPACE, GROUP)

    def review(self):
        """As the API server sends it."""
        made = self.instance("reviewed")
        made["metadata"]["uid"] = "bench"
        return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "bench", "operation": "CREATE", "name": "reviewed", "namespace": NAMESPACE, "dryRun": False,
            "kind": {"group": GROUP, "version": "v1", "kind": self.kind}, "resource": {"group": GROUP, "version": "v1", "resource": self.plural},
            "userInfo": {"username": "bench"}, "object": made, "oldObject": None}})


class Asker:
    """One connection to the host's webhooks."""

    def __init__(self, port):
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=60)

    def ask(self, kind):
        self._connection.request("POST", f"/validations/{kind.name}?timeout=10s", kind.review(), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return json.loads(text)["response"]


def milliseconds(action):
    began = time.monotonic()
    action()
    return 1000 * (time.monotonic() - began)


# Reviews ----------------------------------------------------------------------------------------


def measure_reviews(report, host, kinds, sizes):
    asker = Asker(host.webhook_port)
    for kind in kinds:
        response = asker.ask(kind)
        assert response["allowed"], response
    p50s, p99s, cpus = [], [], []
    for number in range(sizes.rounds):
        progress(f"reviews, round {number + 1} of {sizes.rounds}")
        took, before, end = [], harness.cpu_seconds(host.process.pid), time.monotonic() + sizes.round_seconds
        for kind in itertools.cycle(kinds):
            if time.monotonic() > end:
                break
            took.append(milliseconds(lambda kind=kind: asker.ask(kind)))
        p50s.append(harness.percentile(took, 50))
        p99s.append(harness.percentile(took, 99))
        cpus.append(1000 * (harness.cpu_seconds(host.process.pid) - before) / len(took))
    what = f"review of an App, {len(kinds)} Airways in turn"
    report.add(f"{what}: p50", "ms", p50s)
    report.add(f"{what}: p99", "ms", p99s, target=at_most(100))
    report.add(f"{what}: CPU of the host", "ms", cpus)


# Creations --------------------------------------------------------------------------------------


def create_all(cluster, kind, prefix, count):
    """(seconds until all are accepted, the milliseconds of each)."""
    with ThreadPoolExecutor(WRITERS) as pool:
        began = time.monotonic()
        took = list(pool.map(lambda index: milliseconds(lambda: cluster.create(kind.instance(f"{prefix}-{index}"))), range(count)))
        return time.monotonic() - began, took


def delete_all(cluster, kind):
    """Each is gone before the next measurement."""
    path = cluster.path(kind.api_version, kind.kind, NAMESPACE)
    cluster.request("DELETE", path)
    eventually(lambda: not cluster.list(kind.api_version, kind.kind, NAMESPACE), "the instances are gone", 600)


def measure_creates(report, cluster, plain, kinds, sizes):
    kind = kinds[0]
    seconds = {cluster: [], plain: []}
    p50s, p99s = {cluster: [], plain: []}, {cluster: [], plain: []}
    for number in range(min(sizes.rounds, 3)):
        for where in (plain, cluster):
            progress(f"{sizes.creates} creations {'with' if where is cluster else 'without'} hangar, round {number + 1}")
            whole, took = create_all(where, kind, f"made-{number}", sizes.creates)
            seconds[where].append(whole)
            p50s[where].append(harness.percentile(took, 50))
            p99s[where].append(harness.percentile(took, 99))
            delete_all(where, kind)
    what = f"{sizes.creates} creations of a kind, {WRITERS} writers"
    report.add(f"{what}: in all", "s", seconds[cluster], seconds[plain], PEER)
    report.add(f"{what}: p50", "ms", p50s[cluster], p50s[plain], PEER)
    report.add(f"{what}: p99", "ms", p99s[cluster], p99s[plain], PEER)


# Writes of others -------------------------------------------------------------------------------


@contextlib.contextmanager
def hanging(process):
    """The process exists, its port accepts connections, and nothing answers."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def write_unrelated(cluster, count):
    """Milliseconds of each change of a ConfigMap that nothing of hangar's knows."""
    return [milliseconds(lambda index=index: cluster.patch(*CONFIG_MAP, "unrelated", {"data": {"a": str(index)}}, NAMESPACE)) for index in range(count)]


def measure_unrelated(report, host, cluster, plain, sizes):
    for where in (cluster, plain):
        where.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unrelated", "namespace": NAMESPACE}})
    p50s, p99s = {cluster: [], plain: []}, {cluster: [], plain: []}
    for number in range(sizes.rounds):
        progress(f"writes of others, round {number + 1} of {sizes.rounds}")
        with hanging(host.process):
            took = write_unrelated(cluster, sizes.writes)
        for where, values in ((cluster, took), (plain, write_unrelated(plain, sizes.writes))):
            p50s[where].append(harness.percentile(values, 50))
            p99s[where].append(harness.percentile(values, 99))
    what = "change of a ConfigMap of others, the host hangs"
    report.add(f"{what}: p50", "ms", p50s[cluster], p50s[plain], PEER, at_most_of_peer(1.2))
    report.add(f"{what}: p99", "ms", p99s[cluster], p99s[plain], PEER)


# ------------------------------------------------------------------------------------------------


def prepare(cluster, host, plain, kinds):
    """All flights are hot, and all configurations in force."""
    for kind in kinds:
        progress(f"the Airway {kind.name}")
        eventually(lambda kind=kind: accepted(cluster, kind.airway()), "the Airway is accepted", 300)
        cluster.learn(kind.api_version, kind.kind, kind.plural)
        plain.learn(kind.api_version, kind.kind, kind.plural)
    for kind in kinds:
        eventually(lambda kind=kind: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", kind.name)), f"{kind.name} is Ready", 600)
        eventually(lambda kind=kind: cluster.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", kind.name, None),
                   "its configuration is there", 60)
    plain.create(kinds[0].crd())
    eventually(lambda: accepted(plain, kinds[0].instance("probe")), "the kind is served without hangar", 60)
    delete_all(plain, kinds[0])


def accepted(cluster, manifest):
    """A new module is compiled meanwhile."""
    try:
        return cluster.apply(manifest)
    except ApiError:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    sizes = Sizes(options.quick)
    report = harness.Report("admission.quick" if options.quick else "admission")

    with tempfile.TemporaryDirectory(prefix="hangar-bench-") as name, contextlib.ExitStack() as ending:
        directory = pathlib.Path(name)
        modules = harness.distinct_copies(pathlib.Path(airways.flight("app")), sizes.airways, directory / "modules")
        kinds = [Kind(number, module) for number, module in enumerate(modules)]
        # An instance is gone when the garbage collector has removed what its flight made.
        cluster, plain = Cluster(GARBAGE_COLLECTOR), Cluster(GARBAGE_COLLECTOR)
        ending.callback(plain.close)
        ending.callback(cluster.close)
        for where in (cluster, plain):
            where.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cluster.apply_crds(harness.ROOT / "deploy/crds")
        cluster.apply_crds(harness.ROOT / "examples/app/cloudsqlinstances.yaml")
        # With it the flight prints all of its resources for the reviewed instance.
        cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reviewed", "namespace": NAMESPACE}})
        port = free_port()
        host = harness.hangar_host_class()(cluster.kubeconfig, directory / "host", f"--webhook-bind-address=127.0.0.1:{port}",
                                           f"--webhook-url=https://127.0.0.1:{port}", "--features=airways", "--namespace=default")
        ending.callback(host.stop)
        host.webhook_port = port
        prepare(cluster, host, plain, kinds)
        measure_reviews(report, host, kinds, sizes)
        measure_creates(report, cluster, plain, kinds, sizes)
        measure_unrelated(report, host, cluster, plain, sizes)
        report.add("memory of the host afterwards, RSS", "MiB", harness.settled_memory(host.process.pid, 8)["rss"])
    report.finish()


if __name__ == "__main__":
    main()
