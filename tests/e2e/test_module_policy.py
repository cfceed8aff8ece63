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
from keyless import ISSUER, SUBJECT, Identity, Instance
from registry import Registry
from signing import hangar, keys, section, sign

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


@pytest.fixture(scope="module")
def sigstore(tmp_path_factory):
    """An instance of Sigstore, whose TrustedRoot is in the file `trusted_root`."""
    instance = Instance(tmp_path_factory.mktemp("sigstore"))
    instance.trusted_root = instance.directory / "trusted_root.json"
    instance.trusted_root.write_text(json.dumps(instance.trust_root()))
    return instance


def keyless_rule(prefix, trust_root):
    """A rule for one workflow and one address."""
    identities = [{"issuer": ISSUER, "subjectRegExp": r"^https://github\.com/team/[^/]+/\.github/workflows/release\.yml@refs/tags/v[0-9.]+$"},
                  {"issuer": "https://login.example.com", "subject": "ci@example.com"}]
    return {"prefix": prefix, "require": "cosign", "keyless": {"trustRoot": trust_root, "identities": identities}}


def rule(prefix, require, *trusted_keys):
    return {"prefix": prefix, "require": require, **({"keys": [str(key) for key in trusted_keys]} if trusted_keys else {})}


def flags(rig, directory, rules, default=None):
    """Writes a policy; the host's flags."""
    directory.mkdir(parents=True, exist_ok=True)
    policy = directory / "policy.yaml"
    policy.write_text(json.dumps({"rules": rules, "default": default or {"require": "none"}}))
    return (f"--module-policy={policy}", f"--docker-config={rig.docker_config(directory, rig.password)}", "--module-address-allow-list=127.0.0.1")


@pytest.fixture(scope="module")
def policy_host(cluster, rig, trusted, sigstore, tmp_path_factory):
    directory = tmp_path_factory.mktemp("policy")
    rules = [*(rule(f"oci://{rig.address}/{kind}/", "cosign", trusted[kind][1]) for kind in KINDS),
             # PEM in the file itself, as the chart has it.
             rule(f"oci://{rig.address}/team", "cosign", trusted["ec"][1].read_text(), trusted["rsa"][1]),
             rule(f"oci://{rig.address}/team/open", "none"), rule(f"oci://{rig.address}/yoke", "yoke", trusted["ed25519"][1]),
             rule(f"oci://{rig.address}/closed", "deny"), keyless_rule(f"oci://{rig.address}/keyless", str(sigstore.trusted_root))]
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
        # A name with its ending is a file of workflows.
        data = pathlib.Path(workflows.built(module) if "." in module else flight(module)).read_bytes()
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


@pytest.mark.parametrize("place", ["tag", "referrers", "bundle"])
def test_a_module_that_is_signed_without_a_key_runs(policy_host, rig, push, sigstore, flights, unique, place):
    repository = f"keyless/{unique}"
    rig.sign(repository, push(repository), Identity(sigstore), place)

    flights.create("signed", "basic", wasm=rig.url(repository, "v1"))

    flights.ready("signed")


def test_an_airway_needs_an_identity_of_the_rule(cluster, policy_host, rig, push, sigstore, trusted, tmp_path, unique):
    """Of six modules that differ in who has signed them, two may run."""
    other = Instance(tmp_path / "other")
    none = "none of the rule's identities"
    signers = {
        "workflow": (Identity(sigstore), None),
        "address": (Identity(sigstore, "ci@example.com", "https://login.example.com"), None),
        "other-subject": (Identity(sigstore, SUBJECT.replace("tags/v1", "heads/main")), none),
        "other-issuer": (Identity(sigstore, SUBJECT, "https://login.example.com"), none),
        "other-instance": (Identity(other), "not in the trust root's tlogs"),
        "key": (trusted["ec"][0], "it was made with a key")}
    airways_made = {}
    for at, (name, (signer, _)) in enumerate(signers.items()):
        repository = f"keyless/{unique}-{name}"
        rig.sign(repository, push(repository), signer)
        kind = f"K{at}{unique}"
        airways_made[name] = airways.airway(f"{kind.lower()}s", kind, rig.url(repository, "v1"), group=GROUP)
        cluster.create(airways_made[name])

    def found(name):
        return cluster.get("yoke.cd/v1alpha1", "Airway", airways_made[name]["metadata"]["name"])

    try:
        for name, (_, refusal) in signers.items():
            if refusal is None:
                eventually(lambda name=name: is_ready(found(name)), f"the Airway of {name} is ready", COMPILED)
            else:
                refused(cluster, ("yoke.cd/v1alpha1", "Airway"), airways_made[name]["metadata"]["name"], None, "requires a signature by cosign", refusal)
    finally:
        for name, manifest in airways_made.items():
            cluster.delete("yoke.cd/v1alpha1", "Airway", manifest["metadata"]["name"])
        for name in airways_made:
            eventually(lambda name=name: found(name) is None, f"the Airway of {name} is gone", 60)


def test_commands_take_the_hosts_policy(rig, push, sigstore, tmp_path, unique):
    repository = f"keyless/{unique}"
    digest = push(repository)
    url = rig.url(repository, "v1")
    strict = flags(rig, tmp_path, [keyless_rule(f"oci://{rig.address}", sigstore.trust_root())], {"require": "deny"})[:2]
    in_cache = f"--module-cache-dir={tmp_path / 'cache'}"

    def run(*arguments):
        return hangar(*arguments, in_cache, *strict, stdin=json.dumps({"metadata": {"name": "it"}, "spec": {"behaviour": "basic"}}).encode())

    running = [("verify", url), ("takeoff", "--stdout", "web", url), ("run-flight", url)]
    before = [run(*command) for command in running]
    reading = run("schematics", f"--wasm={url}", "ls")
    rig.sign(repository, digest, Identity(sigstore), "bundle")
    after = [run(*command) for command in running]
    denied = run("verify", flight("behave"))

    for done in before:
        assert done.returncode == 1 and f"no signature found for {digest}".encode() in done.stderr, done
    assert reading.returncode == 0, "reading what a module says does not run it"
    for done in after:
        assert done.returncode == 0, done
    assert denied.returncode == 1 and b"the default rule denies these modules" in denied.stderr


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


def test_a_machines_plugin_meets_the_rule_for_its_own_url(cluster, policy_host, rig, push, trusted, namespace, unique):
    """The machine needs no signature where it is, its plugin does."""
    machine, plugin = f"team/open/{unique}", f"team/{unique}-plugin"
    push(machine, module="provisioner_dynamic.wasm")
    digest = push(plugin, module="javy_plugin.wasm")
    workflows.allow(cluster, namespace)
    sources = {"module": {"url": rig.url(machine, "v1")}, "plugin": {"url": rig.url(plugin, "v1")}}
    cluster.create(workflows.workflow("it", namespace, **sources, input={"team": "orders"}))
    wanted = f"the rule for oci://{rig.address}/team requires a signature by cosign"
    refused(cluster, workflows.WORKFLOW, "it", namespace, "needs its plugin", wanted, "no signature found for sha256:")
    assert not workflows.status(cluster, namespace, "it").get("revision")

    rig.sign(plugin, digest, trusted["ec"][0])

    eventually(lambda: workflows.status(cluster, namespace, "it").get("revision"), "the machine has begun", COMPILED)


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
    ("rules: []", "default: is required"),
    ("{rules: [{prefix: 'oci://r.example/team', require: cosign}], default: {require: none}}", "rules[0].keys: must be a list"),
    ("{rules: [{prefix: 'oci://r.example/team', require: cosign, keyless: {trustRoot: {}}}], default: {require: none}}",
     "rules[0].keyless.trustRoot: mediaType"),
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
