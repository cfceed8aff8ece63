"""ClusterFlights: releases of several namespaces, as a ServiceAccount or, where the host's settings allow it, as the host.

The second host here allows it, and may fetch from this machine; it and its control plane are this file's own.
"""
import hashlib
import json

import pytest

import airways
from cluster import condition, eventually
from flights import CLUSTER_FLIGHT, FLIGHT, Flights, allow, greeting
from host import Host, to_its_end
from module_server import Modules
from test_airway_identity import RBAC
from test_flight_changes import sha256, variant


@pytest.fixture
def team(cluster, unique):
    """Two namespaces, in which the account `deployer` of the first may make ConfigMaps."""
    names = [f"{unique}-a", f"{unique}-b"]
    for name in names:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        cluster.apply({"apiVersion": RBAC, "kind": "Role", "metadata": {"name": "makes", "namespace": name},
                       "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]}]})
        cluster.apply({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "makes", "namespace": name},
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "makes"},
                       "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": names[0]}]})
    yield names
    for name in names:
        cluster.delete("v1", "Namespace", name)


CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class ClusterFlights(Flights):
    kind = CLUSTER_FLIGHT


@pytest.fixture
def cluster_flights(cluster, host):
    yield from removed(ClusterFlights(cluster, None))


def removed(made):
    yield made
    for name in made.made:
        made.delete(name)
    for name in made.made:
        made.goes(name)


def data(cluster, name, namespace):
    return (cluster.get("v1", "ConfigMap", name, namespace) or {}).get("data")


def test_a_cluster_flight_that_names_nobody_is_refused_with_words(cluster, cluster_flights, team, unique):
    """The host itself may do everything here."""
    cluster_flights.create(unique, "crossns", does={"namespaces": team})
    said = cluster_flights.says(unique, "NAMESPACE/NAME", "--cluster-flights-as-host")
    assert "metadata.annotations[hangar.dev/service-account]" in said
    for account, words in (("/deployer", '"/deployer" must be'), ("deployer", "NAMESPACE/NAME"), (f"{team[0]}/", f'"{team[0]}/" must be')):
        cluster.patch(*CLUSTER_FLIGHT, unique, {"metadata": {"annotations": {"hangar.dev/service-account": account}}}, None)
        cluster_flights.says(unique, words)
    assert not [name for name in team if data(cluster, unique, name)]


def test_a_cluster_flight_releases_into_the_namespaces_where_its_account_may(cluster, cluster_flights, team, unique):
    made = cluster_flights.create(unique, "crossns", account=f"{team[0]}/deployer", does={"namespaces": team, "data": {"a": "1"}})
    one = cluster_flights.ready(unique)

    assert [data(cluster, unique, name) for name in team] == [{"a": "1"}] * 2
    assert [entry["resource"] for entry in one["status"]["inventory"]] == [f"{name}/ConfigMap:{unique}" for name in team]
    child = cluster.get("v1", "ConfigMap", unique, team[1])["metadata"]
    assert child["annotations"] == {"instance.atc.yoke.cd/release": unique, "instance.atc.yoke.cd/namespace": "default",
                                    "instance.atc.yoke.cd/instanceRef": f"/ClusterFlight.yoke.cd:{unique}"}
    assert [(owner["kind"], owner["uid"]) for owner in child["ownerReferences"]] == [("ClusterFlight", made["metadata"]["uid"])]

    cluster_flights.behave(unique, "crossns", namespaces=[*team, "kube-system"], data={"a": "2"})
    cluster_flights.says(unique, f"system:serviceaccount:{team[0]}:deployer", "kube-system", "forbidden")
    assert [data(cluster, unique, name) for name in team] == [{"a": "1"}] * 2
    cluster_flights.behave(unique, "crossns", namespaces=team[1:], data={"a": "3"})
    eventually(lambda: data(cluster, unique, team[0]) is None and data(cluster, unique, team[1]) == {"a": "3"}, "the release follows", 60)
    cluster_flights.delete(unique)
    cluster_flights.goes(unique)
    assert data(cluster, unique, team[1]) is None


def test_a_cluster_flight_and_a_flight_of_one_name_are_told_apart(cluster, host, cluster_flights, unique):
    """A Flight in `default` and a ClusterFlight have the same release name in the same namespace; yoke's host confuses them."""
    allow(cluster, "default", account=unique)
    flights = Flights(cluster, "default")
    flights.create(unique, "children", account=unique, does={"names": [f"{unique}-both", f"{unique}-flight"], "data": {"a": "1"}})
    flights.ready(unique)

    cluster_flights.create(unique, "children", account=f"default/{unique}", does={"names": [f"{unique}-cluster"], "data": {"a": "1"}})
    cluster_flights.ready(unique)
    assert [data(cluster, f"{unique}-{name}", "default") is not None for name in ("both", "flight", "cluster")] == [True] * 3
    cluster_flights.behave(unique, "children", names=[f"{unique}-both"])
    cluster_flights.says(unique, f'already owned by "default/Flight.yoke.cd:{unique}"')

    cluster_flights.delete(unique)
    cluster_flights.goes(unique)
    assert [data(cluster, f"{unique}-{name}", "default") is not None for name in ("both", "flight", "cluster")] == [True, True, False]
    flights.delete(unique)
    flights.goes(unique)


# A host that allows more -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def open_host(own_cluster, tmp_path_factory):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path_factory.mktemp("open-host"), "--features=flights", "--cluster-flights-as-host",
                               "--module-address-allow-list=127.0.0.0/8", "--module-recheck-interval=1s"))


@pytest.fixture
def own_namespace(own_cluster, unique):
    own_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    allow(own_cluster, unique)
    yield unique
    own_cluster.delete("v1", "Namespace", unique)


@pytest.fixture
def modules():
    made = Modules()
    yield made
    made.close()


def test_where_the_host_allows_it_a_cluster_flight_acts_as_the_host_and_a_flight_still_does_not(own_cluster, open_host, unique):
    made = ClusterFlights(own_cluster, None)
    made.create(unique, "crossns", does={"namespaces": ["default", "kube-system"]})
    made.ready(unique)
    assert own_cluster.get("v1", "ConfigMap", unique, "kube-system")

    flights = Flights(own_cluster, "default")
    flights.create(f"{unique}-flight", "basic", does={"data": {"a": "1"}}, clusterAccess=True)
    flights.says(f"{unique}-flight", "system:serviceaccount:default:default", "forbidden")
    flights.delete(f"{unique}-flight")
    flights.goes(f"{unique}-flight")
    made.delete(unique)
    made.goes(unique)
    assert own_cluster.get("v1", "ConfigMap", unique, "kube-system") is None


@pytest.mark.parametrize("prune", [{}, {"crds": True}, {"namespaces": True}], ids=["neither", "crds", "namespaces"])
def test_definitions_and_namespaces_are_left_behind_unless_the_flight_says_otherwise(own_cluster, open_host, unique, prune):
    template = airways.airway(f"{unique}rests", f"{unique.capitalize()}rest", "none")["spec"]["template"]
    definition = {"apiVersion": CRD[0], "kind": CRD[1], "metadata": {"name": f"{unique}rests.{template['group']}"}, "spec": template}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{unique}-rest"}}
    objects = {"crds": (*CRD, definition["metadata"]["name"], None), "namespaces": ("v1", "Namespace", space["metadata"]["name"], None)}
    made = ClusterFlights(own_cluster, None)
    made.create(unique, "raw", does={"stdout": json.dumps([definition, space])}, prune=prune)
    made.ready(unique)
    for one in objects.values():
        assert own_cluster.get(*one)["metadata"]["annotations"]["instance.atc.yoke.cd/release"] == unique

    made.delete(unique)
    made.goes(unique)

    for name, one in objects.items():
        if prune.get(name):
            eventually(lambda one=one: own_cluster.get(*one) is None, f"{one[2]} is gone", 60)
            continue
        left = own_cluster.get(*one)["metadata"]
        assert "deletionTimestamp" not in left and "ownerReferences" not in left
        assert not [key for key in left.get("annotations", {}) if "atc.yoke.cd" in key]
        assert "app.kubernetes.io/managed-by" not in left.get("labels", {})
        own_cluster.delete(*one)


def test_a_module_that_changes_behind_a_url_is_reported_and_taken_over_by_its_checksum(own_cluster, open_host, own_namespace, modules):
    before, after = variant(1), variant(2)
    modules.files["/greeting.wasm"] = before
    flights = Flights(own_cluster, own_namespace)
    flights.create("web", wasmUrl=modules.url("/greeting.wasm"), inputObject=greeting("web", own_namespace))
    assert condition(flights.ready("web"), "FlightUpToDate")["reason"] == "Current"
    assert flights.get("web")["status"]["module"]["sha256"] == sha256(before)

    modules.files["/greeting.wasm"] = after
    changed = eventually(lambda: (lambda one: one if one.get("reason") == "SourceChanged" else None)(condition(flights.get("web"), "FlightUpToDate")), "it says so", 60)
    assert changed["status"] == "False" and sha256(after) in changed["message"] and "spec.checksum" in changed["message"]
    assert flights.ready("web")["status"]["module"]["sha256"] == sha256(before)

    flights.patch("web", checksum=sha256(after))
    eventually(lambda: flights.get("web")["status"]["module"]["sha256"] == sha256(after), "it is taken over", 60)
    assert flights.ready("web")["status"]["module"]["replaces"] == sha256(before)


def test_a_digest_in_the_status_gives_a_flight_no_module_that_its_source_does_not_serve(own_cluster, open_host, own_namespace, modules):
    """The tenant may write the status, and knows the digest of a module that another namespace runs."""
    secret, own = variant(3), variant(4)
    modules.files.update({"/secret.wasm": secret, "/own.wasm": own})
    own_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{own_namespace}-victim"}})
    allow(own_cluster, f"{own_namespace}-victim")
    victim, thief = Flights(own_cluster, f"{own_namespace}-victim"), Flights(own_cluster, own_namespace)
    victim.create("web", wasmUrl=modules.url("/secret.wasm"), inputObject=greeting("web", victim.namespace))
    victim.ready("web")
    del modules.files["/secret.wasm"]

    url = modules.url("/own.wasm")
    thief.create("web", wasmUrl=url, inputObject=greeting("web", own_namespace), checksum="not yet")
    thief.says("web", "checksum")
    definition = hashlib.sha256(f"{url}\n".encode()).hexdigest()
    own_cluster.patch(*FLIGHT, "web", {"status": {"module": {"sha256": sha256(secret), "definition": definition}}}, own_namespace, "status")
    assert open_host.stop() == 0
    open_host.start()
    thief.patch("web", checksum=None)

    thief.says("web", sha256(secret), "cannot fetch the pinned", reason="ModuleUnavailable")
    assert thief.data("web") is None
    assert json.dumps(thief.get("web")["status"].get("inventory", [])) == "[]"
    own_cluster.delete("v1", "Namespace", f"{own_namespace}-victim")
