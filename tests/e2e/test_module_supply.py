"""Modules behind servers that do not answer, and modules of other tenants: what has to wait for them, and what the status
says meanwhile.

No test here counts seconds: a server stays silent until the test releases it, and work that must not wait for it has
happened by then.
"""
import hashlib
import pathlib

import pytest

import airways
import workflows
from airways import flight
from cluster import condition, eventually, is_ready
from conftest import COMPILED
from host import Host
from module_server import Modules
from operators import OPERATOR, manifest, phase
from workflows import CONDUCTOR, WORKFLOW, bundle

AIRWAY = ("yoke.cd/v1alpha1", "Airway")
GROUP = "supply.hangar.dev"


@pytest.fixture
def modules():
    made = Modules()
    yield made
    made.close()


@pytest.fixture(scope="module")
def cluster(own_cluster):
    """A control plane of its own: its host is restarted."""
    return own_cluster


@pytest.fixture(scope="module")
def own_host(cluster, tmp_path_factory):
    made = Host(cluster.kubeconfig, tmp_path_factory.mktemp("supply-host"), "--module-address-allow-list=127.0.0.1")
    yield made
    assert made.stop() == 0, f"the host did not end cleanly:\n{made.tail()}"


@pytest.fixture
def host(own_host):
    return own_host


def operators_of(cluster, namespace, urls):
    for index, url in enumerate(urls):
        cluster.create(manifest(f"one-{index}", namespace, "tick=3600000", module={"url": url}))


def stalled(cluster, kind, name, namespace=None):
    return condition(cluster.get(*kind, name, namespace), "Stalled")


def works(cluster, name, namespace):
    return phase(cluster.get(*OPERATOR, name, namespace)) in ("Running", "Asleep")


def test_silent_module_servers_hold_up_no_other_operator(cluster, host, namespace, unique, modules):
    other = f"{namespace}-other"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    cluster.create(manifest("before", other, "tick=3600000"))
    eventually(lambda: works(cluster, "before", other), "it works", COMPILED)
    modules.talking.clear()
    operators_of(cluster, namespace, [modules.url(f"/{index}.wasm") for index in range(12)])
    for index in range(12):
        eventually(lambda: stalled(cluster, OPERATOR, f"one-{index}", namespace).get("reason") == "Loading", "the status says so at once")
    eventually(lambda: modules.asked, "the server is asked")

    # Start, change and deletion of others, in the same namespace too.
    cluster.create(manifest("new", other, "tick=3600000"))
    cluster.create(manifest("new", namespace, "tick=3600000"))
    cluster.patch(*OPERATOR, "before", {"spec": {"args": ["exit=0"]}}, other)
    eventually(lambda: works(cluster, "new", other), "another namespace's operator begins", 60)
    eventually(lambda: phase(cluster.get(*OPERATOR, "before", other)) == "Completed", "a changed one takes over", 60)
    cluster.delete(*OPERATOR, "new", other)
    cluster.delete(*OPERATOR, "one-0", namespace)
    eventually(lambda: "the module: " in stalled(cluster, OPERATOR, "one-11", namespace)["message"], "it says what is waited for")
    assert not modules.talking.is_set()

    modules.files = {f"/{index}.wasm": pathlib.Path(flight("operator_behave")).read_bytes() for index in range(12)}
    modules.talking.set()
    for index in range(1, 12):
        eventually(lambda: works(cluster, f"one-{index}", namespace), f"one-{index} works once its server answers", COMPILED)
    eventually(lambda: works(cluster, "new", namespace), "and so does its neighbour", 60)
    for name in [*(f"one-{index}" for index in range(1, 12)), "new"]:
        cluster.delete(*OPERATOR, name, namespace)
    cluster.delete("v1", "Namespace", other)


def airway_of(unique, suffix, url):
    kind = f"{unique}{suffix}".capitalize()
    return airways.airway(f"{kind.lower()}s", kind, url, group=GROUP)


def test_a_silent_module_server_holds_up_no_other_airway(cluster, host, airway, unique, modules):
    airway(airway_of(unique, "before", flight("behave")))
    modules.talking.clear()
    silent = [airway_of(unique, f"silent{index}", modules.url(f"/{index}.wasm")) for index in range(6)]
    for one in silent:
        airway(one, ready=False)
    for one in silent:
        eventually(lambda: condition(cluster.get(*AIRWAY, one["metadata"]["name"])).get("reason") == "InProgress", "it says so at once")
        assert "the flight: " in condition(cluster.get(*AIRWAY, one["metadata"]["name"]))["message"]

    airway(airway_of(unique, "new", flight("behave")))
    gone = airway_of(unique, "before", "")["metadata"]["name"]
    cluster.delete(*AIRWAY, gone)
    eventually(lambda: cluster.get(*AIRWAY, gone) is None, "an unrelated one is deleted", 60)
    cluster.delete(*AIRWAY, silent[0]["metadata"]["name"])
    eventually(lambda: cluster.get(*AIRWAY, silent[0]["metadata"]["name"]) is None, "and so is one that waits", 60)
    assert not modules.talking.is_set(), "nobody has waited for the server"

    modules.files = {f"/{index}.wasm": pathlib.Path(flight("behave")).read_bytes() for index in range(6)}
    modules.talking.set()
    for one in silent[1:]:
        eventually(lambda: is_ready(cluster.get(*AIRWAY, one["metadata"]["name"])), "it is Ready once its server answers", COMPILED)


def test_a_workflow_says_that_its_module_is_being_fetched(cluster, host, namespace, modules):
    workflows.allow(cluster, namespace)
    modules.talking.clear()
    modules.files["/machine.js"] = bundle(CONDUCTOR).encode()
    cluster.create(workflows.workflow("waits", namespace, module={"url": modules.url("/machine.js")}, input={"rounds": []}))
    progressing = lambda: condition(cluster.get(*WORKFLOW, "waits", namespace), "Progressing")
    eventually(lambda: progressing().get("reason") == "LoadingModule", "it says so at once")
    assert progressing()["status"] == "True" and "the module: " in progressing()["message"]
    workflows.module(cluster, namespace, "machine", bundle(CONDUCTOR))
    cluster.create(workflows.workflow("begins", namespace, "machine", input={"rounds": []}))
    eventually(lambda: workflows.status(cluster, namespace, "begins").get("value"), "another one begins meanwhile", 60)

    modules.talking.set()
    eventually(lambda: workflows.status(cluster, namespace, "waits").get("value"), "it begins once its server answers", 60)


def test_after_a_restart_what_was_compiled_is_served_although_its_server_is_silent(cluster, host, airway, namespace, unique, modules):
    modules.files["/flight.wasm"] = pathlib.Path(flight("greeting_rust")).read_bytes()
    made = airway_of(unique, "kept", modules.url("/flight.wasm"))
    airway(made)
    modules.talking.clear()
    assert host.stop() == 0
    host.start()

    kind = made["spec"]["template"]["names"]["kind"]
    cluster.create(airways.instance(kind, "it", {"name": "world"}, namespace, group=GROUP))
    eventually(lambda: condition(cluster.get(f"{GROUP}/v1", kind, "it", namespace)).get("status") in ("True", "False"), "an instance is evaluated", 60)
    assert not modules.talking.is_set()
    modules.talking.set()


def test_nobody_gets_a_module_for_knowing_its_digest(cluster, host, namespace, unique, modules):
    """The owner's module is in the host's store; the stranger knows its digest, and has no password."""
    private = pathlib.Path(flight("operator_behave")).read_bytes() + b"\x00\x08\x07private"
    digest = hashlib.sha256(private).hexdigest()
    modules.files["/private.wasm"] = private
    modules.password["/private.wasm"] = "owner:secret"
    cluster.create(manifest("owner", namespace, "tick=3600000", module={"url": modules.url("/private.wasm", "owner:secret@")}))
    eventually(lambda: works(cluster, "owner", namespace), "the owner runs it", COMPILED)
    stranger = f"{namespace}-stranger"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stranger}})

    tried = [{"url": modules.url("/private.wasm"), "sha256": digest}, {"url": modules.url("/nothing.wasm"), "sha256": digest},
             {"url": modules.url(f"/sha256_{digest}.wasm")}]
    for index, module in enumerate(tried):
        cluster.create(manifest(f"thief-{index}", stranger, "tick=3600000", module=module))
    for index in range(len(tried)):
        eventually(lambda: stalled(cluster, OPERATOR, f"thief-{index}", stranger).get("status") == "True", "it is refused", 60)
        assert not works(cluster, f"thief-{index}", stranger)

    cluster.delete(*OPERATOR, "owner", namespace)
    cluster.delete("v1", "Namespace", stranger)
