#!/usr/bin/env python3
"""The cost of converting instances between the versions of their kind, by an Airway's converter.

This program sends the reviews that the API server would send, on a connection that stays open, so that it measures the host
alone. The peer is bench/flights/peer: the same converter under wazero, an instance for each review, without HTTP, TLS or
JSON of its own. Rounds of both alternate; a figure is the median of its rounds.

The same converter is measured twice: as `go build` makes it, and with Go's newer JSON (GOEXPERIMENT=jsonv2). With --bare,
objects have no `metadata.managedFields`, which the host does not show to a converter; those of an API server have them.

    bench/conversion/run.sh [--quick] [--bare]
"""
import argparse
import http.client
import json
import pathlib
import ssl
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import at_most, at_most_of_peer, progress  # noqa: E402
import airways  # noqa: E402
from cluster import Cluster, eventually, is_ready  # noqa: E402
from host import free_port  # noqa: E402

GROUP = "bench.hangar.dev"
PEER = "wazero 1.6.0, an instance for each review, as yoke's ATC"
OBJECT_BYTES = 2048
# The kinds, each with the module that converts it, and what the table calls that.
CONVERTERS = {"backends": ("converter", ""), "modernbackends": ("bench/converter_jsonv2", ", built with jsonv2")}


def compact(value):
    """JSON as the API server writes it."""
    return json.dumps(value, separators=(",", ":"))


def managed_fields():
    """Those that the API server keeps of an object that kubectl has created and a host has reconciled."""
    def entry(manager, fields, **more):
        return {"manager": manager, "operation": "Update", "apiVersion": f"{GROUP}/v1", "time": "2026-08-17T21:27:47Z", "fieldsType": "FieldsV1",
                "fieldsV1": fields, **more}
    return [entry("kubectl-create", {"f:spec": {".": {}, "f:image": {}, "f:labels": {".": {}, "f:filler": {}}, "f:replicas": {}}}),
            entry("yoke.cd/atc", {"f:metadata": {"f:finalizers": {".": {}, 'v:"yoke.cd/mayday.flight"': {}}}}),
            entry("yoke.cd/atc", {"f:status": {".": {}, "f:conditions": {}}}, subresource="status")]


def review(count, bare=False):
    """A ConversionReview of objects of 2 KB in v1."""
    def backend(index):
        made = {"apiVersion": f"{GROUP}/v1", "kind": "Backend", "metadata": {
            "name": f"b-{index}", "namespace": "bench", "uid": f"uid-{index}", **({} if bare else {"managedFields": managed_fields()})},
                "spec": {"image": "registry.k8s.io/pause:3.10", "replicas": index, "labels": {}}, "status": {"conditions": []}}
        made["spec"]["labels"]["filler"] = "x" * (OBJECT_BYTES - len(compact(made)) - len(',"filler":""'))
        return made
    return compact({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
        "uid": "bench", "desiredAPIVersion": f"{GROUP}/v2", "objects": [backend(index) for index in range(count)]}})


def airway(plural, converter):
    made = airways.airway(plural, plural.removesuffix("s").capitalize(), airways.flight("basic"), group=GROUP)
    made["spec"]["wasmUrls"]["converter"] = airways.flight(converter)
    (version,) = made["spec"]["template"]["versions"]
    made["spec"]["template"]["versions"] = [{**version, "storage": False}, {**version, "name": "v2"}]
    return made


class Asker:
    """One connection to the host's webhooks, for one kind."""

    def __init__(self, port, plural):
        self._path = f"/crdconvert/{plural}.{GROUP}"
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=60)

    def ask(self, body):
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return text


def run_host(host, asker, body, seconds):
    """The same figures as the peer's: {runs, median_ms, p99_ms, cpu_seconds}."""
    took, before, end = [], harness.cpu_seconds(host.process.pid), time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        asker.ask(body)
        took.append(1000 * (time.monotonic() - began))
    return {"runs": len(took), "median_ms": harness.percentile(took, 50), "p99_ms": harness.percentile(took, 99),
            "cpu_seconds": harness.cpu_seconds(host.process.pid) - before}


def measure(report, host, asker, peer_binary, directory, plural, body, count, rounds, seconds, p99_max):
    converter, note = CONVERTERS[plural]
    answer = json.loads(asker.ask(body))["response"]
    assert answer["result"]["status"] == "Success" and len(answer["convertedObjects"]) == count
    assert answer["convertedObjects"][-1]["spec"]["img"] and "conditions" in answer["convertedObjects"][-1]["status"]
    (directory / "review.json").write_text(body)
    peer = harness.Conversation([peer_binary, f"-cache={directory / 'wazero'}", "-converter", "-workers=1", f"-input={directory / 'review.json'}",
                                 airways.flight(converter)])
    peer.ask("load")
    ours, theirs = [], []
    for number in range(rounds):
        progress(f"{count} objects{note}, round {number + 1} of {rounds}")
        theirs.append(peer.ask(f"run {seconds}"))
        ours.append(run_host(host, asker, body, seconds))
    assert len(json.loads(theirs[0]["output"])["response"]["convertedObjects"]) == count
    peer.close()

    def of(results, key):
        return [one[key] for one in results]
    what = f"{count} objects of 2 KB in a review{note}"
    report.add(f"{what}: p50", "ms", of(ours, "median_ms"), of(theirs, "median_ms"), PEER)
    report.add(f"{what}: p99", "ms", of(ours, "p99_ms"), of(theirs, "p99_ms"), PEER, at_most(p99_max) if p99_max else None)
    report.add(f"{what}: CPU", "ms", [1000 * one["cpu_seconds"] / one["runs"] for one in ours],
               [1000 * one["cpu_seconds"] / one["runs"] for one in theirs], PEER, at_most_of_peer(0.25))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--bare", action="store_true", help="objects without managedFields")
    options = parser.parse_args()
    rounds, seconds = (1, 1) if options.quick else (5, 6)
    report = harness.Report("conversion" + (".bare" if options.bare else "") + (".quick" if options.quick else ""))

    with tempfile.TemporaryDirectory(prefix="hangar-bench-") as name:
        directory = pathlib.Path(name)
        cluster = Cluster()
        try:
            cluster.apply_crds(harness.ROOT / "deploy/crds")
            port = free_port()
            host = harness.hangar_host_class()(cluster.kubeconfig, directory / "host", f"--webhook-bind-address=127.0.0.1:{port}",
                                               f"--webhook-url=https://127.0.0.1:{port}", "--features=airways", "--namespace=default")
            try:
                progress("the Airways (compiling flight and converters)")
                for plural, (converter, _) in CONVERTERS.items():
                    made = airway(plural, converter)
                    eventually(lambda made=made: cluster.apply(made), "the Airway is accepted", 60)
                    name = made["metadata"]["name"]
                    eventually(lambda name=name: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", name)), "the Airway is Ready", 300)
                for plural in CONVERTERS:
                    asker = Asker(port, plural)
                    for count, p99_max in ((1, None), (100, 15)):
                        measure(report, host, asker, options.peer, directory, plural, review(count, options.bare), count, rounds, seconds, p99_max)
            finally:
                host.stop()
        finally:
            cluster.close()
    report.finish()


if __name__ == "__main__":
    main()
