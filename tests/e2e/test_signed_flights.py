"""Flights whose modules have to be signed: which of them may run, and the effects of changed keys."""
import base64
import json
import pathlib

import pytest

import airways
from airways import flight
from cluster import condition, eventually, is_ready
from flights import Flights, allow
from host import Host
from signing import keys, section, sign
from webhooks import GROUP, create, host_with_webhooks, refused, refused_airway, wait_registered
from yoke_releases import hangar as hangar_of

NAMESPACE, SECRET = "signatures", "flight-keys"
UNSIGNED = "failed to verify module: module is unsigned"
ANOTHER = "failed to verify module: module's key fingerprint does not match provided key(s)"
CHANGED = "failed to verify module: invalid signature"


@pytest.fixture(scope="module")
def cluster(showing_cluster):
    """Of their own: another host would run what this one refuses."""
    showing_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return showing_cluster


class Keys:
    """The files of two keys, and the Secret that the host reads."""

    def __init__(self, cluster, directory):
        self.cluster, self.directory = cluster, directory
        self.private, self.public = {}, {}
        for name, kind in (("old", "ed25519"), ("new", "ec")):
            self.private[name], self.public[name] = keys(directory, kind)

    def trust(self, *names):
        data = {f"{name}.pem": base64.b64encode(self.public[name].read_bytes()).decode() for name in names}
        # The host ignores entries that do not end in .pem.
        data["README"] = base64.b64encode(b"no key").decode()
        self.cluster.delete("v1", "Secret", SECRET, NAMESPACE)
        eventually(lambda: self.cluster.get("v1", "Secret", SECRET, NAMESPACE) is None, "the Secret is gone")
        self.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE}, "data": data})

    def module(self, name, data):
        """A URL for these bytes."""
        file = self.directory / f"{name}.wasm"
        file.write_bytes(data)
        return str(file)

    def signed(self, name, by="old", module="behave"):
        return self.module(name, sign(pathlib.Path(flight(module)).read_bytes(), self.private[by], self.directory))


@pytest.fixture(scope="module")
def trusted(cluster, tmp_path_factory):
    made = Keys(cluster, tmp_path_factory.mktemp("keys"))
    made.trust("old")
    return made


@pytest.fixture(scope="module")
def signing_host(cluster, authority, trusted, tmp_path_factory):
    yield from host_with_webhooks(cluster, tmp_path_factory.mktemp("signing"), NAMESPACE, f"--module-verification-keys-secret={SECRET}",
                                  f"--webhook-client-ca-file={authority.certificate}")


@pytest.fixture(autouse=True)
def old_key(trusted):
    yield
    trusted.trust("old")


@pytest.fixture
def kind(cluster, signing_host, airway, unique):
    """Makes an Airway, and waits until its webhook is registered."""
    def make(wasm, **spec):
        name = f"S{unique}"
        manifest = airway(airways.airway(f"{name.lower()}s", name, wasm, group=GROUP, **spec))
        wait_registered(cluster, NAMESPACE, manifest["metadata"]["name"])
        return name
    return make


def airway_of(cluster, kind):
    return cluster.get("yoke.cd/v1alpha1", "Airway", f"{kind.lower()}s.{GROUP}")


def says(manifest):
    return condition(manifest).get("message", "")


def test_a_signed_flight_is_accepted_and_runs(cluster, trusted, kind, namespace):
    made = kind(trusted.signed("accepted"))

    create(cluster, made, "it", "basic", namespace)

    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", made, "it", namespace)), "the instance is ready", 60)


def test_other_modules_are_refused_with_the_reason(cluster, signing_host, trusted, unique):
    data = pathlib.Path(flight("behave")).read_bytes()
    signed = pathlib.Path(trusted.signed("to-change")).read_bytes()
    for name, module, why in (
            ("unsigned", data, UNSIGNED), ("another", sign(data, trusted.private["new"], trusted.directory), ANOTHER),
            ("changed", signed[:5000] + bytes([signed[5000] ^ 1]) + signed[5001:], CHANGED), ("appended", signed + section("hangar:plugin", b"late"), CHANGED),
            ("documented", signed + section("yoke.schematics:docs", b"late"), CHANGED),
            ("twice", signed + section("yoke.schematics:signature", b"{}"), CHANGED), ("torn", data + section("yoke.schematics:signature", b"{"), "invalid signature payload")):
        manifest = airways.airway(f"refused{unique}s", f"Refused{unique}", trusted.module(name, module), group=GROUP)

        said = refused_airway(cluster, manifest)
        assert 'denied the request: failed to validate flight url "' in said and why in said, said


def test_a_converter_is_verified_too(cluster, signing_host, trusted, unique):
    manifest = airways.airway(f"converted{unique}s", f"Converted{unique}", trusted.signed("converted"), group=GROUP)
    manifest["spec"]["wasmUrls"]["converter"] = flight("converter")

    said = refused_airway(cluster, manifest)
    assert 'failed to validate converter url "' in said and UNSIGNED in said, said


def test_keys_that_change_count_at_once(cluster, trusted, kind, namespace):
    made = kind(trusted.signed("rotated"))
    create(cluster, made, "it", "basic", namespace)
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", made, "it", namespace)), "the instance is ready", 60)

    trusted.trust("new")

    eventually(lambda: ANOTHER in says(airway_of(cluster, made)), "the Airway says that its flight may not run any more", 60)
    assert not is_ready(airway_of(cluster, made))
    assert ANOTHER in refused(cluster, made, "later", "basic", namespace)

    trusted.trust("new", "old")

    eventually(lambda: is_ready(airway_of(cluster, made)), "the Airway is ready again", 60)
    create(cluster, made, "later", "basic", namespace)
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", made, "later", namespace)), "another instance is ready", 60)


def test_without_a_key_nothing_runs(cluster, trusted, kind, namespace):
    made = kind(trusted.signed("keyless"))

    cluster.delete("v1", "Secret", SECRET, NAMESPACE)

    eventually(lambda: "failed to verify module: there is no key" in says(airway_of(cluster, made)), "the Airway says that there is no key", 60)


def test_a_key_that_cannot_be_read_leaves_those_that_were_there(cluster, signing_host, trusted, kind, namespace):
    made = kind(trusted.signed("unreadable"))

    cluster.patch("v1", "Secret", SECRET, {"stringData": {"bad.pem": "no key"}}, NAMESPACE)

    eventually(lambda: "the keys to verify modules with cannot be read" in signing_host.log.read_text(), "the log says so", 30)
    create(cluster, made, "it", "basic", namespace)
    assert is_ready(airway_of(cluster, made))


def test_what_was_verified_once_is_verified_again_after_a_restart(cluster, trusted, namespace, tmp_path):
    """The keys are in a directory; one is removed while no host runs."""
    directory = tmp_path / "trusted"
    (directory / "..data").mkdir(parents=True)
    (directory / "..data/a.pem").write_bytes(trusted.public["old"].read_bytes())
    flags = (f"--module-verification-keys={directory}", "--features=flights", f"--namespace={namespace}")
    allow(cluster, namespace)
    flights = Flights(cluster, namespace)
    host = Host(cluster.kubeconfig, tmp_path / "host", *flags)
    try:
        flights.create("signed", "basic", wasm=trusted.signed("flight"))
        flights.create("unsigned", "basic")
        flights.ready("signed")
        eventually(lambda: UNSIGNED in says(flights.get("unsigned")), "the unsigned one says so", 60)
        assert cluster.list("v1", "ConfigMap", namespace, "app.kubernetes.io/managed-by=atc.yoke")

        host.stop()
        (directory / "..data/a.pem").write_bytes(trusted.public["new"].read_bytes())
        host.start()

        eventually(lambda: ANOTHER in says(flights.get("signed")), "the signed one is refused by other keys", 60)
        (directory / "..data/b.pem").write_bytes(trusted.public["old"].read_bytes())
        eventually(lambda: is_ready(flights.get("signed")), "and accepted once its key is back", 60)
    finally:
        host.stop()


def test_takeoff_verifies_what_it_runs(cluster, trusted, namespace, tmp_path):
    def up(module, key):
        return hangar_of(cluster, "takeoff", "-namespace", namespace, "-compilation-cache", str(tmp_path / "cache"), "-verify", str(key), "web", module,
                         stdin=json.dumps({"metadata": {"name": "it"}, "spec": {"behaviour": "basic"}}))
    signed = trusted.signed("taken-off")

    done = [up(signed, trusted.public["old"]), up(signed, trusted.public["new"]), up(flight("behave"), trusted.directory), up(signed, "/no/such")]

    assert [one.returncode for one in done] == [0, 1, 1, 1], [one.stderr for one in done]
    assert ANOTHER in done[1].stderr and UNSIGNED in done[2].stderr and "failed to load public keys from fs: failed to stat: " in done[3].stderr
