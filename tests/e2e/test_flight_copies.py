"""Flights and ClusterFlights whose module is nowhere but in the cluster: copies of pinned modules, and for whom they are.

The host asks its sources every second here. It is restarted with an empty cache, so it and its control plane are this file's own.
"""
import hashlib
import json

import pytest

import cluster as kubernetes
from airways import airway as airway_of
from cluster import condition, eventually
from conftest import COMPILED
from flights import FLIGHT, Flights, allow, behaving, greeting
from host import Host, to_its_end
from module_server import Modules
from test_cluster_flights import ClusterFlights
from test_flight_changes import COPY, SYSTEM, restart_with_an_empty_cache, sha256, variant

kubernetes.KINDS[COPY] = ("/apis/apps/v1", "controllerrevisions", True)

PREFIX, CLUSTER_PREFIX = "flight-module-", "cluster-flight-"
OBJECTS_MAX = 64  # Of the copies of one namespace's Flights.
LARGE = 2_500_000  # Three objects.


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


@pytest.fixture(scope="module")
def host(cluster, tmp_path_factory):
    yield from to_its_end(Host(cluster.kubeconfig, tmp_path_factory.mktemp("copies-host"), "--features=airways,flights", "--cluster-flights-as-host",
                               "--module-address-allow-list=127.0.0.0/8", "--module-recheck-interval=1s"))


@pytest.fixture
def modules():
    made = Modules()
    yield made
    made.close()


@pytest.fixture
def team(cluster, unique):
    """Makes namespaces whose Flights may make ConfigMaps."""
    made = []

    def make(suffix=""):
        name = f"{unique}{suffix}"
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        made.append(name)
        allow(cluster, name)
        return name
    yield make
    for name in made:
        cluster.delete("v1", "Namespace", name)


def copies(cluster, namespace, prefix=PREFIX):
    return sorted(one["metadata"]["name"] for one in cluster.list(*COPY, namespace) if one["metadata"]["name"].startswith(prefix))


def names_of(module, parts, prefix=PREFIX):
    first = prefix + sha256(module)
    return sorted([first, *(f"{first}-{part}" for part in range(1, parts))])


def says(flights, name, text):
    """The Flight is evaluated with that text, and Ready afterwards."""
    flights.patch(name, inputObject=greeting(name, flights.namespace, text))
    eventually(lambda: flights.data(name) == {"text": text}, f"{name} says {text}: {condition(flights.get(name))}", COMPILED)
    return flights.ready(name)


def up_to_date(flights, name, reason):
    return eventually(lambda: condition(flights.get(name), "FlightUpToDate").get("reason") == reason, f"{name} is {reason}", 60)


@pytest.mark.parametrize("parts, ballast", [(1, 0), (3, LARGE)], ids=["small", "large"])
def test_a_pinned_flight_goes_on_from_its_copy_when_its_source_has_lost_the_module(cluster, host, team, modules, parts, ballast):
    namespace, module = team(), variant(1, ballast)
    modules.files["/greeting.wasm"] = module
    flights = Flights(cluster, namespace)
    flights.create("web", wasmUrl=modules.url("/greeting.wasm"), inputObject=greeting("web", namespace))
    flights.ready("web")
    assert copies(cluster, namespace) == names_of(module, parts), "it is there before the status names the digest"

    restart_with_an_empty_cache(host, while_down=modules.files.clear)

    assert says(flights, "web", "from its copy")["status"]["module"]["sha256"] == sha256(module)
    up_to_date(flights, "web", "SourceUnavailable")
    # Another one, while it serves other bytes.
    restart_with_an_empty_cache(host, while_down=lambda: modules.files.update({"/greeting.wasm": variant(2)}))
    assert says(flights, "web", "once more")["status"]["module"]["sha256"] == sha256(module)
    up_to_date(flights, "web", "SourceChanged")
    assert copies(cluster, namespace) == names_of(module, parts)

    flights.delete("web")
    flights.goes("web")
    eventually(lambda: not copies(cluster, namespace), "the copy goes with the last Flight that needs it", 60)


def test_a_pinned_flight_goes_on_from_its_copy_when_its_server_is_away(cluster, host, team, modules):
    namespace, module = team(), variant(3)
    modules.files["/greeting.wasm"] = module
    flights = Flights(cluster, namespace)
    flights.create("web", wasmUrl=modules.url("/greeting.wasm"), inputObject=greeting("web", namespace))
    flights.ready("web")

    restart_with_an_empty_cache(host, while_down=modules.close)

    assert says(flights, "web", "from its copy")["status"]["module"]["sha256"] == sha256(module)


def test_a_copy_stays_while_a_flight_of_its_namespace_needs_it(cluster, host, team, modules):
    namespace, first, second = team(), variant(4), variant(5)
    modules.files["/greeting.wasm"] = first
    flights = Flights(cluster, namespace)
    for name in ("one", "two"):
        flights.create(name, wasmUrl=modules.url("/greeting.wasm"), inputObject=greeting(name, namespace))
    for name in ("one", "two"):
        flights.ready(name)
    assert copies(cluster, namespace) == names_of(first, 1)

    modules.files["/greeting.wasm"] = second
    flights.patch("one", checksum=sha256(second))
    eventually(lambda: flights.get("one")["status"]["module"]["sha256"] == sha256(second), "it is taken over", COMPILED)
    eventually(lambda: copies(cluster, namespace) == sorted(names_of(first, 1) + names_of(second, 1)), "both are needed", 60)
    flights.delete("one")
    flights.goes("one")
    eventually(lambda: copies(cluster, namespace) == names_of(first, 1), "the other one is still needed", 60)
    # Nobody saw the last one go.
    assert host.stop() == 0
    path = cluster.path(*FLIGHT, namespace, "two")
    cluster.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    flights.delete("two")
    flights.goes("two")
    host.start()
    eventually(lambda: not copies(cluster, namespace), "a host that begins finds the copy that nobody needs", 60)


def test_a_cluster_flight_has_its_copy_in_the_hosts_namespace(cluster, host, team, modules):
    namespace, module = team(), variant(6, of="behave")
    modules.files["/behave.wasm"] = module

    def saying(text):
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": namespace}, "data": {"text": text}}
        return behaving(namespace, "raw", stdout=json.dumps([made]))
    flights = ClusterFlights(cluster, None)
    flights.create(namespace, wasmUrl=modules.url("/behave.wasm"), inputObject=saying("first"))
    flights.ready(namespace)
    kept = copies(cluster, SYSTEM, CLUSTER_PREFIX)
    assert CLUSTER_PREFIX + sha256(module) in kept and not copies(cluster, namespace)

    restart_with_an_empty_cache(host, while_down=modules.files.clear)

    flights.patch(namespace, inputObject=saying("from its copy"))
    eventually(lambda: cluster.get("v1", "ConfigMap", "it", namespace)["data"] == {"text": "from its copy"}, "it goes on", COMPILED)
    assert flights.ready(namespace)["status"]["module"]["sha256"] == sha256(module)
    assert copies(cluster, SYSTEM, CLUSTER_PREFIX) == kept
    flights.delete(namespace)
    flights.goes(namespace)
    eventually(lambda: not copies(cluster, SYSTEM, CLUSTER_PREFIX), "the copy goes with it", 60)


def test_nobody_is_given_a_copy_of_another_namespace_or_of_the_host(cluster, host, airway, team, modules, unique):
    """The thieves may write their statuses, and know the digest; one of them is in the host's own namespace."""
    secret, own = variant(7), variant(8)
    modules.files.update({"/secret.wasm": secret, "/own.wasm": own})
    owner = Flights(cluster, team("-owner"))
    owner.create("web", wasmUrl=modules.url("/secret.wasm"), inputObject=greeting("web", owner.namespace))
    everywhere = ClusterFlights(cluster, None)
    everywhere.create(unique, wasmUrl=modules.url("/secret.wasm"), inputObject=greeting(unique, owner.namespace))
    made = airway_of(f"{unique}s", unique.capitalize(), modules.url("/secret.wasm"), group="copies.hangar.dev")
    airway(made)
    owner.ready("web")
    for namespace, prefix in ((owner.namespace, PREFIX), (SYSTEM, CLUSTER_PREFIX), (SYSTEM, "flight-")):
        eventually(lambda where=namespace, what=prefix: names_of(secret, 1, what)[0] in copies(cluster, where, what), f"{prefix} is kept", COMPILED)

    url = modules.url("/own.wasm")
    definition = hashlib.sha256(f"{url}\n".encode()).hexdigest()
    thieves = [Flights(cluster, team("-thief")), Flights(cluster, SYSTEM)]
    thief = f"thief-{unique}"
    for flights in thieves:
        flights.create(thief, wasmUrl=url, inputObject=greeting(thief, flights.namespace), checksum="not yet")
        flights.says(thief, "checksum")
        status = {"status": {"module": {"sha256": sha256(secret), "definition": definition}}}
        cluster.patch(*FLIGHT, thief, status, flights.namespace, "status")
    restart_with_an_empty_cache(host)

    for flights in thieves:
        flights.patch(thief, checksum=None)
        flights.says(thief, sha256(secret), "cannot fetch the pinned", reason="ModuleUnavailable")
        assert flights.data(thief) is None
    # The host has had time to give it to those who may have it.
    says(owner, "web", "mine")
    for flights in thieves:
        assert flights.data(thief) is None and condition(flights.get(thief))["reason"] == "ModuleUnavailable"
        flights.delete(thief)
        flights.goes(thief)
    everywhere.delete(unique)
    everywhere.goes(unique)


def test_a_copy_with_other_bytes_is_no_module(cluster, host, team, modules):
    namespace, module = team(), variant(9)
    modules.files["/greeting.wasm"] = module
    flights = Flights(cluster, namespace)
    flights.create("web", wasmUrl=modules.url("/greeting.wasm"), inputObject=greeting("web", namespace))
    flights.ready("web")

    def forge():
        modules.files.clear()
        (name,) = copies(cluster, namespace)
        copy = cluster.get(*COPY, name, namespace)
        cluster.delete(*COPY, name, namespace)
        metadata = {key: copy["metadata"][key] for key in ("name", "namespace", "labels")}
        cluster.create({"apiVersion": COPY[0], "kind": COPY[1], "metadata": metadata, "revision": 1, "data": {"gzip": "AGFzbQEAAAA="}})
    restart_with_an_empty_cache(host, while_down=forge)

    flights.says("web", sha256(module), "cannot fetch the pinned", "spec.checksum", reason="ModuleUnavailable")
    assert flights.data("web") == {"text": "hi"}, "what was made stays"
    modules.files["/greeting.wasm"] = module
    flights.ready("web")


def test_a_namespace_without_room_for_a_copy_runs_and_says_so(cluster, host, team, modules):
    namespace = team()
    for index in range(OBJECTS_MAX):
        name = PREFIX + hashlib.sha256(f"{namespace}{index}".encode()).hexdigest()
        cluster.create({"apiVersion": COPY[0], "kind": COPY[1], "revision": 1, "data": {"gzip": ""},
                        "metadata": {"name": name, "namespace": namespace, "labels": {"hangar.dev/flight-module": "kept"}}})
    modules.files["/greeting.wasm"] = module = variant(10)
    flights = Flights(cluster, namespace)
    flights.create("web", wasmUrl=modules.url("/greeting.wasm"), inputObject=greeting("web", namespace))

    flights.ready("web")
    told = lambda: [one for one in cluster.list("v1", "Event", namespace) if one["involvedObject"]["name"] == "web" and one["reason"] == "ModuleNotKept"]
    (event,) = eventually(told, "an Event says so")
    assert f"sha256:{sha256(module)}" in event["message"] and f"{OBJECTS_MAX} objects" in event["message"]
    assert names_of(module, 1)[0] not in copies(cluster, namespace)
    # Copies that no Flight needs go when a host begins. Then there is room.
    assert host.stop() == 0
    host.start()
    eventually(lambda: len(copies(cluster, namespace)) <= 1, "copies that nobody needs are removed", 60)
