"""Flights from a registry, and the messages when one cannot be fetched."""
import hashlib
import pathlib

import pytest

import airways
from airways import flight, instance
from cluster import condition, eventually, is_ready
from conftest import COMPILED, control_plane
from host import Host
from registry import YOKE_CONFIG, YOKE_LAYER, Registry

GROUP = "e2e.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway")


@pytest.fixture(scope="module")
def cluster():
    """A control plane of its own: these hosts have other credentials than the shared one."""
    made = control_plane("--with-kcm", "--with-registry")
    yield made
    made.close()


@pytest.fixture(scope="module")
def rig(cluster):
    return Registry(cluster)


@pytest.fixture(scope="module")
def hosts(cluster, rig, tmp_path_factory):
    """A host with the registry's password, with another one, or with none. One host at a time: two would both act."""
    running = {}

    def get(password=rig.password):
        if password not in running:
            stop()
            directory = tmp_path_factory.mktemp("registry-host")
            running[password] = Host(cluster.kubeconfig, directory, f"--docker-config={rig.docker_config(directory, password)}")
        return running[password]

    def stop():
        for host in running.values():
            assert host.stop() == 0, f"the host did not end cleanly:\n{host.tail()}"
        running.clear()

    yield get
    stop()


@pytest.fixture
def bind(cluster, airway, unique):
    """Applies an Airway with the flight at a URL and returns its name."""
    def apply(url, ready=True, **urls):
        manifest = airways.airway(f"{unique}s", unique.capitalize(), url, group=GROUP, insecure=True)
        manifest["spec"]["wasmUrls"].update(urls)
        airway(manifest, ready)
        return manifest["metadata"]["name"]
    return apply


def failure(cluster, name, seconds=30):
    """The error in the Airway's condition, once an Event has it, too."""
    def look():
        ready = condition(cluster.get(*AIRWAY, name))
        return ready["message"] if ready.get("status") == "False" and ready.get("reason") == "Error" else None

    message = eventually(look, f"airway {name} reports an error", seconds)
    eventually(lambda: [event for event in cluster.list("v1", "Event", "default")
                        if event["involvedObject"]["kind"] == "Airway" and event["involvedObject"]["name"] == name
                        and event["type"] == "Warning" and event["message"] == message], "an Event says it too")
    return message


def sha256(module):
    return hashlib.sha256(pathlib.Path(module).read_bytes()).hexdigest()


@pytest.mark.parametrize("config_type, layer_type", [
    (YOKE_CONFIG, YOKE_LAYER), ("application/vnd.wasm.config.v0+json", "application/wasm"),
    ("application/vnd.oci.empty.v1+json", "application/octet-stream")], ids=["yoke", "wasm", "oras"])
@pytest.mark.parametrize("by", ["tag", "checksum tag", "digest"])
def test_a_flight_comes_from_the_registry(cluster, hosts, rig, bind, namespace, unique, config_type, layer_type, by):
    hosts()
    tag = f"sha256_{sha256(flight('behave'))}" if by == "checksum tag" else "v1.0.0"
    digest = rig.push(f"flights/{unique}", tag, flight("behave"), config_type, layer_type)

    bind(rig.url(f"flights/{unique}", digest if by == "digest" else tag))
    cluster.create(instance(unique.capitalize(), "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))

    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", unique.capitalize(), "it", namespace)), "the instance is Ready")
    assert cluster.get("v1", "ConfigMap", "it", namespace)["data"] == {"a": "b"}


def test_a_tag_that_moved_is_found_when_the_airway_changes(cluster, hosts, rig, bind, namespace, unique):
    hosts()
    rig.push(f"flights/{unique}", "edge", flight("greeting_go"))
    name = bind(rig.url(f"flights/{unique}", "edge"))
    rig.push(f"flights/{unique}", "edge", flight("behave"))

    cluster.patch(*AIRWAY, name, {"spec": {"timeout": "5s"}}, None)
    cluster.create(instance(unique.capitalize(), "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))

    eventually(lambda: (cluster.get("v1", "ConfigMap", "it", namespace) or {}).get("data") == {"a": "b"}, "the new flight has run")


@pytest.mark.parametrize("password, says", [
    ("not-the-password", "401 unauthorized"), (None, "there are no credentials for")], ids=["wrong", "none"])
def test_wrong_credentials_are_said_and_never_shown(cluster, hosts, rig, bind, unique, password, says):
    host = hosts(password)
    rig.push(f"flights/{unique}", "v1.0.0", flight("behave"))

    message = failure(cluster, bind(rig.url(f"flights/{unique}", "v1.0.0"), ready=False))

    assert says in message and rig.address in message
    assert password is None or (password not in message and password not in host.log.read_text())


def test_a_module_of_another_digest_is_refused(cluster, hosts, rig, bind, unique):
    hosts()
    rig.push(f"flights/{unique}", "v1.0.0", flight("behave"))

    message = failure(cluster, bind(rig.url(f"flights/{unique}", "v1.0.0"), ready=False, flightChecksum="0" * 64))

    assert f'cannot verify module against expected checksum: wanted "{"0" * 64}"' in message and sha256(flight("behave")) in message


def test_a_checksum_tag_on_another_module_is_refused(cluster, hosts, rig, bind, unique):
    hosts()
    wanted = sha256(flight("greeting_go"))
    rig.push(f"flights/{unique}", f"sha256_{wanted}", flight("behave"))

    message = failure(cluster, bind(rig.url(f"flights/{unique}", f"sha256_{wanted}"), ready=False))

    assert f'wanted "{wanted}"' in message and sha256(flight("behave")) in message


def test_a_digest_that_the_registry_does_not_have_is_said(cluster, hosts, rig, bind, unique):
    hosts()
    rig.push(f"flights/{unique}", "v1.0.0", flight("behave"))

    message = failure(cluster, bind(rig.url(f"flights/{unique}", "sha256:" + "0" * 64), ready=False))

    assert "404" in message and "sha256:" + "0" * 64 in message


def test_a_registry_that_is_away_stops_nothing_that_runs(cluster, hosts, rig, bind, namespace, unique):
    hosts()
    rig.push(f"flights/{unique}", "v1.0.0", flight("behave"))
    name = bind(rig.url(f"flights/{unique}", "v1.0.0"))

    cluster.component("stop", "registry")
    try:
        cluster.create(instance(unique.capitalize(), "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))
        eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", unique.capitalize(), "it", namespace)), "the instance is Ready")
        cluster.delete(*AIRWAY, name)
        eventually(lambda: cluster.get(*AIRWAY, name) is None, "the Airway is deleted", 60)
        assert cluster.get("v1", "ConfigMap", "it", namespace) is None
    finally:
        cluster.component("start", "registry")


def test_an_airway_recovers_when_the_registry_is_back(cluster, hosts, rig, bind, unique):
    hosts()
    rig.push(f"flights/{unique}", "v1.0.0", flight("behave"))
    cluster.component("stop", "registry")
    try:
        name = bind(rig.url(f"flights/{unique}", "v1.0.0"), ready=False)
        assert rig.address in failure(cluster, name)
    finally:
        cluster.component("start", "registry")

    eventually(lambda: is_ready(cluster.get(*AIRWAY, name)), "the Airway is ready", COMPILED)
