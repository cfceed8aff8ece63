"""Flights behind a URL whose bytes change: which module instances run, and who decides about it.

The host asks its sources every second here. It is restarted with an empty cache, so it and its control plane are this file's own.
"""
import base64
import hashlib
import json
import os
import pathlib
import shutil

import pytest

import airways
import cluster as kubernetes
from airways import flight
from cluster import condition, eventually, is_ready
from conftest import COMPILED
from host import Host
from module_server import Modules

AIRWAY = ("yoke.cd/v1alpha1", "Airway")
COPY = ("apps/v1", "ControllerRevision")
GROUP = "changes.hangar.dev"
SYSTEM = "default"  # The namespace of a host without a pod.
NAMES = ("one", "two", "three")

kubernetes.KINDS[COPY] = ("/apis/apps/v1", "controllerrevisions", True)


def variant(number, ballast=0, of="greeting_cpp"):
    """A flight with a custom section that changes its bytes; the ballast cannot be compressed."""
    content = b"\x07variant" + bytes([number]) + os.urandom(ballast)
    size, length = len(content), b""
    while True:
        size, low = size >> 7, size & 0x7F
        length += bytes([low | (0x80 if size else 0)])
        if not size:
            break
    return pathlib.Path(flight(of)).read_bytes() + b"\x00" + length + content


def sha256(module):
    return hashlib.sha256(module).hexdigest()


@pytest.fixture
def modules():
    made = Modules()
    yield made
    made.close()


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


@pytest.fixture(scope="module")
def host(cluster, tmp_path_factory):
    made = Host(cluster.kubeconfig, tmp_path_factory.mktemp("changes-host"), "--module-recheck-interval=1s")
    yield made
    assert made.stop() == 0, f"the host did not end cleanly:\n{made.tail()}"


class Greetings:
    """A kind whose flight is behind a URL, and three instances of it."""

    def __init__(self, cluster, airway, modules, namespace, unique, first):
        self.cluster, self.modules, self.namespace = cluster, modules, namespace
        self.kind = unique.capitalize()
        modules.files["/greeting.wasm"] = first
        manifest = airways.airway(f"{unique}s", self.kind, modules.url("/greeting.wasm"), group=GROUP)
        self.name = manifest["metadata"]["name"]
        airway(manifest)
        for name in NAMES:
            cluster.create(airways.instance(self.kind, name, {"text": "first"}, namespace, group=GROUP))
        self.say("first")

    def airway(self):
        return self.cluster.get(*AIRWAY, self.name)

    def flight(self):
        return (self.airway().get("status") or {}).get("flight") or {}

    def up_to_date(self):
        return condition(self.airway(), "FlightUpToDate")

    def instance(self, name):
        return self.cluster.get(f"{GROUP}/v1", self.kind, name, self.namespace)

    def say(self, text, seconds=COMPILED):
        """Every instance is evaluated with that text, and is Ready afterwards."""
        for name in NAMES:
            self.cluster.patch(f"{GROUP}/v1", self.kind, name, {"spec": {"text": text}}, self.namespace)
        for name in NAMES:
            eventually(lambda name=name: (self.cluster.get("v1", "ConfigMap", name, self.namespace) or {}).get("data") == {"text": text},
                       f"{name} says {text}: {condition(self.instance(name))}", seconds)
            eventually(lambda name=name: is_ready(self.instance(name)), f"{name} is Ready", seconds)

    def takes_over(self, module, **urls):
        self.cluster.patch(*AIRWAY, self.name, {"spec": {"wasmUrls": urls}}, None)
        eventually(lambda: self.flight().get("sha256") == sha256(module), "it is taken over", COMPILED)
        eventually(lambda: is_ready(self.airway()), "the Airway is Ready", COMPILED)

    def sources(self, name):
        """The SHA-1s of the modules that made the revisions of an instance."""
        return {secret["metadata"]["annotations"]["internal.yoke/source-checksum"]
                for secret in self.cluster.list("v1", "Secret", self.namespace)
                if secret["metadata"].get("labels", {}).get("internal.yoke/kind") == "revision"
                and f".{name}" in secret["metadata"]["annotations"].get("internal.yoke/release-name", f".{name}")}


@pytest.fixture
def greetings(cluster, host, airway, modules, namespace, unique):
    return lambda first: Greetings(cluster, airway, modules, namespace, unique, first)


def copies(cluster, module):
    return [one["metadata"]["name"] for one in cluster.list(*COPY, SYSTEM) if one["metadata"]["name"].startswith(f"flight-{sha256(module)}")]


def restart_with_an_empty_cache(host, while_down=lambda: None):
    assert host.stop() == 0
    shutil.rmtree(host.directory / "cache")
    while_down()
    host.start()


def events(cluster, name, reason):
    return [event for event in cluster.list("v1", "Event", "default")
            if event["involvedObject"].get("name") == name and event["reason"] == reason]


def test_a_flight_that_changes_behind_its_url_breaks_nothing_until_its_author_takes_it(cluster, host, greetings, modules):
    first, second = variant(1), variant(2, ballast=2_500_000)
    made = greetings(first)
    assert made.flight()["sha256"] == sha256(first) and made.up_to_date()["reason"] == "Current"
    assert copies(cluster, first) == [f"flight-{sha256(first)}"]

    modules.files["/greeting.wasm"] = second
    said = eventually(lambda: made.up_to_date()["status"] == "False" and made.up_to_date(), "the Airway says that it has changed", 60)
    assert said["reason"] == "SourceChanged"
    assert f"has changed: sha256 {sha256(first)} -> {sha256(second)}" in said["message"] and "flightChecksum" in said["message"]
    eventually(lambda: events(cluster, made.name, "FlightChanged"), "an Event says it, too")
    asked = len(modules.asked)
    made.say("goes on")
    eventually(lambda: len(modules.asked) > asked + 2, "the source is asked again and again", 60)
    assert len(events(cluster, made.name, "FlightChanged")) == 1 and events(cluster, made.name, "FlightChanged")[0].get("count", 1) == 1
    assert is_ready(made.airway()) and made.flight()["sha256"] == sha256(first)

    # Another host, without a cache, while the source serves the other bytes.
    restart_with_an_empty_cache(host)
    made.say("after a restart")
    assert made.flight()["sha256"] == sha256(first) and made.up_to_date()["reason"] == "SourceChanged"

    made.takes_over(second, flightChecksum=sha256(second))
    assert made.flight()["replaces"] == sha256(first) and made.up_to_date()["reason"] == "Fixed"
    made.say("taken over")
    assert hashlib.sha1(second).hexdigest() in made.sources("one")
    eventually(lambda: len(copies(cluster, second)) == 3, "its copy has several parts")
    eventually(lambda: not copies(cluster, first), "nobody needs the copy of the former", 60)

    # Going back to the earlier bytes takes another change by the author.
    modules.files["/other.wasm"] = first
    made.takes_over(first, flight=modules.url("/other.wasm"), flightChecksum=None)
    made.say("and back")
    restart_with_an_empty_cache(host, while_down=modules.files.clear)
    made.say("without any source")
    eventually(lambda: made.up_to_date()["reason"] == "SourceUnavailable", "it says that the source does not serve it any more", 60)
    cluster.delete(*AIRWAY, made.name)
    eventually(lambda: not copies(cluster, first) and not copies(cluster, second), "copies go with their Airway", 60)


# (module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))) (memory (export "memory") 1)
#   (func (export "_start") i32.const 1 call $exit))
FAILING = (b"\0asm\1\0\0\0" b"\x01\x08\x02\x60\x01\x7f\0\x60\0\0" b"\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\0\0"
           b"\x03\x02\x01\x01" b"\x05\x03\x01\0\x01" b"\x07\x13\x02\x06memory\x02\0\x06_start\0\x01" b"\x0a\x08\x01\x06\0\x41\x01\x10\0\x0b")


def retries_ms(host, made, name):
    """How long an instance waited after each of its failures, as the log has it."""
    lines = map(json.loads, host.log.read_text().splitlines())
    return [line["retry_in_ms"] for line in lines if line["msg"] == "reconcile failed"
            and (line["controller"], line["namespace"], line["name"]) == (made.name, made.namespace, name)]


def test_a_module_that_fails_after_it_was_taken_over_leaves_what_instances_had(cluster, host, greetings, modules):
    first = variant(9)
    made = greetings(first)
    modules.files["/greeting.wasm"] = FAILING

    made.takes_over(FAILING, flightChecksum=sha256(FAILING))

    def failed(name):
        ready = condition(made.instance(name))
        return ready["status"] == "False" and ready["reason"] == "Error" and ready["message"].startswith("failed to evaluate flight: ")
    eventually(lambda: all(map(failed, NAMES)), "each instance says that its flight failed", 60)
    # Each waits twice as long from one failure to the next, and by itself: no failure of another one counts for it.
    eventually(lambda: all(len(retries_ms(host, made, name)) >= 3 for name in NAMES), "each is tried again and again", 60)
    for name in NAMES:
        for number, delay in enumerate(retries_ms(host, made, name)):
            assert 1000 << number <= delay <= 1250 << number, f"{name}: {retries_ms(host, made, name)}"
    assert len({tuple(retries_ms(host, made, name)[:3]) for name in NAMES}) == len(NAMES), "they come at different times"

    # The Airway serves its kind: it names the module that is used, and the one that it replaced.
    assert is_ready(made.airway()) and made.up_to_date()["reason"] == "Fixed"
    assert (made.flight()["sha256"], made.flight()["replaces"]) == (sha256(FAILING), sha256(first))
    for name in NAMES:
        assert cluster.get("v1", "ConfigMap", name, made.namespace)["data"] == {"text": "first"}, "what was made stays"
        assert made.sources(name) == {hashlib.sha1(first).hexdigest()}, "no revision has the module that fails"

    # The author goes back, and no instance waits for the end of its delay.
    modules.files["/greeting.wasm"] = first
    made.takes_over(first, flightChecksum=sha256(first))
    made.say("goes on")


def test_a_large_module_is_found_again_in_all_its_parts(cluster, host, greetings, modules):
    large = variant(3, ballast=2_500_000)
    made = greetings(large)
    assert len(copies(cluster, large)) == 3

    restart_with_an_empty_cache(host, while_down=lambda: modules.files.update({"/greeting.wasm": variant(4)}))

    made.say("from its copy")
    assert made.flight()["sha256"] == sha256(large)


def test_a_module_that_is_nowhere_any_more_is_said_with_what_to_do(cluster, host, greetings, modules):
    first, second = variant(5), variant(6)
    made = greetings(first)

    def take_everything_away():
        modules.files["/greeting.wasm"] = second
        for name in copies(cluster, first):
            cluster.delete(*COPY, name, SYSTEM)
    restart_with_an_empty_cache(host, while_down=take_everything_away)

    ready = eventually(lambda: (lambda one: one if one.get("reason") == "ModuleUnavailable" else None)(condition(made.airway())), "the Airway says so", 60)
    assert f"sha256:{sha256(first)}" in ready["message"] and sha256(second) in ready["message"] and "flightChecksum" in ready["message"]
    eventually(lambda: events(cluster, made.name, "AirwayFailed"), "an Event says it, too")
    assert cluster.get("v1", "ConfigMap", "one", made.namespace)["data"] == {"text": "first"}, "what was made stays"
    made.takes_over(second, flightChecksum=sha256(second))
    made.say("taken over")


def test_what_is_there_to_be_changed_is_followed(cluster, host, airway, namespace, unique):
    """A ConfigMap: its bytes change only when a user edits it on purpose."""
    def put(module):
        encoded = base64.b64encode(module).decode()
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flights", "namespace": namespace}, "binaryData": {"greeting.wasm": encoded}})
    first, second = variant(7), variant(8)
    put(first)
    kind = unique.capitalize()
    manifest = airways.airway(f"{unique}s", kind, f"configmap://{namespace}/flights/greeting.wasm", group=GROUP)
    airway(manifest)
    cluster.create(airways.instance(kind, "it", {"text": "x"}, namespace, group=GROUP))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", kind, "it", namespace)), "the instance is Ready", COMPILED)

    put(second)

    name = manifest["metadata"]["name"]
    eventually(lambda: cluster.get(*AIRWAY, name)["status"]["flight"]["sha256"] == sha256(second), "it is taken up", COMPILED)
    assert condition(cluster.get(*AIRWAY, name), "FlightUpToDate")["reason"] == "Followed"
    cluster.patch(f"{GROUP}/v1", kind, "it", {"spec": {"text": "y"}}, namespace)
    eventually(lambda: cluster.get("v1", "ConfigMap", "it", namespace)["data"] == {"text": "y"}, "it is evaluated", 60)
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", kind, "it", namespace)), "and Ready", 60)
    assert not copies(cluster, first) and not copies(cluster, second)
