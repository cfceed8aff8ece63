"""Modules that need signatures by rules about their URLs: which of them run, and what the others are told."""
import json
import pathlib
import subprocess

import pytest

import airways
import operators
import workflows
from airways import flight
from cluster import eventually, is_ready
from conftest import COMPILED, control_plane
from flights import FLIGHT, Flights, allow
from host import Host, to_its_end
from registry import Registry
from signing import keys, section, sign

GROUP = "policy.hangar.dev"
UNSIGNED = "failed to verify module: module is unsigned"
KINDS = ("ec", "rsa", "ed25519")


@pytest.fixture(scope="module")
def cluster():
    """A control plane of its own: another host would run what this one refuses."""
    made = control_plane("--with-kcm", "--with-registry")
    yield made
    made.close()


@pytest.fixture(scope="module")
def rig(cluster):
    return Registry(cluster)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    """The files of a private and a public key of each kind, and of one that no rule trusts."""
    directory = tmp_path_factory.mktemp("keys")
    (directory / "stranger").mkdir()
    return {**{kind: keys(directory, kind) for kind in KINDS}, "stranger": keys(directory / "stranger", "ec")}


def rule(prefix, require, *trusted_keys):
    return {"prefix": prefix, "require": require, **({"keys": [str(key) for key in trusted_keys]} if trusted_keys else {})}


def flags(rig, directory, rules, default=None):
    """Writes a policy; the host's flags."""
    directory.mkdir(parents=True, exist_ok=True)
    policy = directory / "policy.yaml"
    policy.write_text(json.dumps({"rules": rules, "default": default or {"require": "none"}}))
    return (f"--module-policy={policy}", f"--docker-config={rig.docker_config(directory, rig.password)}", "--module-address-allow-list=127.0.0.1")


@pytest.fixture(scope="module")
def policy_host(cluster, rig, trusted, tmp_path_factory):
    directory = tmp_path_factory.mktemp("policy")
    rules = [*(rule(f"oci://{rig.address}/{kind}/", "cosign", trusted[kind][1]) for kind in KINDS),
             # PEM in the file itself, as the chart has it.
             rule(f"oci://{rig.address}/team", "cosign", trusted["ec"][1].read_text(), trusted["rsa"][1]),
             rule(f"oci://{rig.address}/team/open", "none"), rule(f"oci://{rig.address}/yoke", "yoke", trusted["ed25519"][1]),
             rule(f"oci://{rig.address}/closed", "deny")]
    yield from to_its_end(Host(cluster.kubeconfig, directory / "host", *flags(rig, directory, rules)))


@pytest.fixture
def flights(cluster, namespace):
    allow(cluster, namespace)
    made = Flights(cluster, namespace)
    yield made
    for name in made.made:
        made.delete(name)
    for name in made.made:
        eventually(lambda name=name: made.get(name) is None, f"{name} is gone", 60)


@pytest.fixture
def push(rig, unique, tmp_path):
    """Pushes a module that no other test has: what was let through are bytes, wherever they come from. Returns the manifest's digest."""
    def act(repository, tag="v1", module="behave", by=None):
        is_script = module.endswith(".js")
        data = workflows.built(module).read_bytes() if is_script else pathlib.Path(flight(module)).read_bytes()
        mark = f"{unique} {repository} {tag}"
        data += f"\n// {mark}\n".encode() if is_script else section("test:mark", mark.encode())
        file = tmp_path / "pushed"
        file.write_bytes(sign(data, by, tmp_path) if by else data)
        return rig.push(repository, tag, file)
    return act


def messages(manifest):
    """All that an object's conditions say."""
    return " ".join(one.get("message", "") for one in (manifest or {}).get("status", {}).get("conditions", []))


def refused(cluster, kind, name, namespace, *words):
    eventually(lambda: all(word in messages(cluster.get(*kind, name, namespace)) for word in words), f"{kind[1]} {name} says {words}", COMPILED)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["tag", "referrers", "bundle"])
def test_a_signed_module_runs(policy_host, rig, push, trusted, flights, unique, kind, place):
    repository = f"{kind}/{unique}"
    rig.sign(repository, push(repository), trusted[kind][0], place)

    flights.create("signed", "basic", wasm=rig.url(repository, "v1"))

    flights.ready("signed")


def test_modules_of_every_contract_say_what_is_missing(cluster, policy_host, rig, push, flights, namespace, unique):
    repository = f"team/{unique}"
    digest = push(repository)
    url = rig.url(repository, "v1")
    push(f"{repository}-operator", module=operators.BEHAVE)
    operator_url = rig.url(f"{repository}-operator", "v1")
    push(f"{repository}-machine", module=f"{workflows.CONDUCTOR}.js")
    wanted = f"the rule for oci://{rig.address}/team requires a signature by cosign"
    what_to_do = (wanted, "no signature found for sha256:", "cosign sign --key")
    workflows.allow(cluster, namespace)
    kind = f"P{unique}"
    airway = airways.airway(f"{kind.lower()}s", kind, url, group=GROUP)

    flights.create("unsigned", "basic", wasm=url)
    cluster.create(operators.manifest("unsigned", namespace, "tick=3600000", module={"url": operator_url}))
    cluster.create(workflows.workflow("unsigned", namespace, module={"url": rig.url(f"{repository}-machine", "v1")}, input={"rounds": []}))
    cluster.create(airway)

    try:
        refused(cluster, FLIGHT, "unsigned", namespace, *what_to_do, digest)
        refused(cluster, operators.OPERATOR, "unsigned", namespace, *what_to_do)
        refused(cluster, workflows.WORKFLOW, "unsigned", namespace, *what_to_do)
        refused(cluster, ("yoke.cd/v1alpha1", "Airway"), airway["metadata"]["name"], None, *what_to_do, digest)
        assert not cluster.get("v1", "ConfigMap", "unsigned", namespace)
    finally:
        cluster.delete(*operators.OPERATOR, "unsigned", namespace)
        cluster.delete(*workflows.WORKFLOW, "unsigned", namespace)
        cluster.delete("yoke.cd/v1alpha1", "Airway", airway["metadata"]["name"])
        eventually(lambda: cluster.get("yoke.cd/v1alpha1", "Airway", airway["metadata"]["name"]) is None, "the Airway is gone", 60)


def test_a_signature_that_comes_later_counts(policy_host, rig, push, trusted, flights, unique):
    repository = f"team/{unique}"
    digest = push(repository)
    flights.create("late", "basic", wasm=rig.url(repository, "v1"))
    flights.says("late", "no signature found")

    rig.sign(repository, digest, trusted["rsa"][0])

    flights.ready("late")


def test_a_signature_counts_by_a_trusted_key_and_for_that_manifest_only(cluster, policy_host, rig, push, trusted, flights, namespace, unique):
    for name, key, of in (("stranger", "stranger", None), ("other", "ec", "sha256:" + "0" * 64)):
        repository = f"team/{unique}-{name}"
        rig.sign(repository, push(repository), trusted[key][0], of=of)
        flights.create(name, "basic", wasm=rig.url(repository, "v1"))

    refused(cluster, FLIGHT, "stranger", namespace, "by none of the rule's keys")
    refused(cluster, FLIGHT, "other", namespace, "by one of the rule's keys, but for sha256:" + "0" * 64)


def test_a_moved_tag_needs_a_signature_of_its_own(cluster, policy_host, rig, push, trusted, flights, namespace, unique):
    repository = f"team/{unique}"
    rig.sign(repository, push(repository, "edge"), trusted["ec"][0])
    flights.create("before", "basic", wasm=rig.url(repository, "edge"))
    flights.ready("before")

    digest = push(repository, "edge", "greeting_rust")
    flights.create("after", "basic", wasm=rig.url(repository, "edge"))

    refused(cluster, FLIGHT, "after", namespace, f"no signature found for {digest}")


def test_the_longest_prefix_decides_at_the_end_of_a_segment(policy_host, rig, push, flights, unique):
    for name, repository in (("below", f"team/open/{unique}"), ("beside", f"teams/{unique}")):
        push(repository)
        flights.create(name, "basic", wasm=rig.url(repository, "v1"))

    flights.ready("below")
    flights.ready("beside")


def test_yokes_signature_is_required_by_its_rules(cluster, policy_host, rig, push, trusted, flights, namespace, unique):
    for name, by in (("signed", trusted["ed25519"][0]), ("unsigned", None)):
        push(f"yoke/{unique}-{name}", by=by)
        flights.create(name, "basic", wasm=rig.url(f"yoke/{unique}-{name}", "v1"))

    flights.ready("signed")
    refused(cluster, FLIGHT, "unsigned", namespace, f"the rule for oci://{rig.address}/yoke requires a signature by yoke", UNSIGNED)


def test_a_rule_denies_modules(cluster, policy_host, rig, push, flights, namespace, unique):
    push(f"closed/{unique}")

    flights.create("denied", "basic", wasm=rig.url(f"closed/{unique}", "v1"))

    refused(cluster, FLIGHT, "denied", namespace, f"the rule for oci://{rig.address}/closed denies these modules")


@pytest.fixture
def quiet_cluster():
    """Without the host of the other tests."""
    made = control_plane("--with-kcm", "--with-registry")
    yield made
    made.close()


def test_what_is_in_the_cache_meets_the_rules_of_now(quiet_cluster, trusted, tmp_path):
    """A restart with a stricter policy, one without the registry, and one with another key."""
    cluster, namespace, repository = quiet_cluster, "cached", "cached/web"
    rig = Registry(cluster)
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    allow(cluster, namespace)
    flights = Flights(cluster, namespace)
    digest = rig.push(repository, "v1", flight("behave"))  # The only test with this registry.
    strict = rule(f"oci://{rig.address}/cached", "cosign", trusted["ec"][1])
    only_here = ("--features=flights", f"--namespace={namespace}")
    host = Host(cluster.kubeconfig, tmp_path / "host", *flags(rig, tmp_path, []), *only_here)
    try:
        flights.create("web", "basic", wasm=rig.url(repository, "v1"))
        flights.ready("web")

        assert host.stop() == 0
        flags(rig, tmp_path, [strict])
        host.start()
        refused(cluster, FLIGHT, "web", namespace, "no signature found for " + digest)

        rig.sign(repository, digest, trusted["ec"][0])
        flights.ready("web")

        assert host.stop() == 0
        cluster.component("stop", "registry")
        host.start()
        flights.behave("web", "basic", data={"restarted": "yes"})
        eventually(lambda: (cluster.get("v1", "ConfigMap", "web", namespace) or {}).get("data") == {"restarted": "yes"}, "it runs without the registry", 60)

        assert host.stop() == 0
        flags(rig, tmp_path, [rule(f"oci://{rig.address}/cached", "cosign", trusted["rsa"][1])])
        host.start()
        eventually(lambda: not is_ready(flights.get("web")), "another key does not let it run", 60)
    finally:
        host.stop()


@pytest.mark.parametrize("policy, says", [
    ("rules: []", "default: is missing"),
    ("{rules: [{prefix: 'oci://r.example/team', require: cosign}], default: {require: none}}", "rules[0].keys: must be a list"),
    ("{rules: [], default: {require: none}, more: 1}", "more: unknown field"),
    ("{rules: [{prefix: 'oci://r.example/team', require: yoke, keys: [none.pem]}], default: {require: none}}", "rules[0].keys[0]: failed to stat"),
    ("rules: [", "module-policy")])
def test_a_policy_that_is_wrong_ends_the_host(cluster, tmp_path, policy, says):
    file = tmp_path / "policy.yaml"
    file.write_text(policy)
    host = Host(cluster.kubeconfig, tmp_path / "host", f"--module-policy={file}", wait=False)
    try:
        assert host.process.wait(30) != 0
    except subprocess.TimeoutExpired:
        host.stop()
        raise
    assert f"module-policy {file}: " in host.log.read_text() and says in host.log.read_text()
