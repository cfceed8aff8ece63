"""A host without a compiler: a builder compiles its modules elsewhere, and signs the code."""
import os
import shutil
import subprocess

import pytest

import workflows
from airways import flight
from cluster import condition, eventually
from host import BINARY, Host, to_its_end
from operators import BEHAVE, EVERYTHING, OPERATOR, allow, events_of, lines, manifest
from signing import hangar, keys

COMPILED = 120


@pytest.fixture
def cluster(own_cluster):
    """Of its own, because another host on the same cluster would run the same Operators."""
    return own_cluster


class Builder:
    """Who compiles for the hosts, with a key that they trust, and one that they don't."""

    def __init__(self, directory):
        self.code = directory / "code"
        self.private, self.public = keys(directory, "ed25519")
        self.stranger, _ = keys(directory, "ec")

    def build(self, *modules, key=None, flags=()):
        """Returns the files of the code."""
        done = hangar("build", "code", *modules, *flags, f"--key={key or self.private}", f"--output={self.code}")
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().split()


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    made = Builder(tmp_path_factory.mktemp("builder"))
    made.build(flight(BEHAVE), flags=["--interpreters"])
    return made


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """hangar in a directory where its compiler is missing."""
    directory = tmp_path_factory.mktemp("programs")
    for name in ("hangar", "hangar-guest"):
        try:
            os.link(BINARY.with_name(name), directory / name)
        except OSError:
            shutil.copy2(BINARY.with_name(name), directory / name)
    return directory


@pytest.fixture(scope="module")
def host(own_cluster, builder, programs, tmp_path_factory):
    directory = tmp_path_factory.mktemp("host")
    yield from to_its_end(Host(own_cluster.kubeconfig, directory, f"--native-code-dir={builder.code}", f"--builder-keys={builder.public}",
                               program=programs / "hangar", shares_code=False))


def waits_for(cluster, name, namespace, words):
    def there():
        seen = condition(cluster.get(*OPERATOR, name, namespace) or {})
        return seen if words in (seen or {}).get("message", "") else None
    return eventually(there, f"Operator {name} says {words!r}", COMPILED)


def says(host, name, namespace, words):
    return eventually(lambda: any(words in line for line in lines(host, name, namespace)), f"Operator {name} says {words!r}", COMPILED)


def test_it_runs_what_the_builder_has_compiled(cluster, host, namespace):
    allow(cluster, namespace, *EVERYTHING)
    cluster.create(manifest("watcher", namespace, f"watch={namespace}"))
    says(host, "watcher", namespace, "listed")
    assert "native code of a builder" in host.log.read_text()


def test_machines_in_javascript_run_too(cluster, host, namespace):
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "approval", workflows.bundle("patient"))
    cluster.create(workflows.workflow("patient", namespace, "approval"))
    eventually(lambda: workflows.status(cluster, namespace, "patient").get("value"), "the machine has a state", COMPILED)


def test_it_says_what_to_build_and_takes_it_once_it_is_there(cluster, host, builder, namespace):
    allow(cluster, namespace, *EVERYTHING)
    cluster.create(manifest("ring", namespace, wasm="ring"))
    message = waits_for(cluster, "ring", namespace, "this host has no compiler")["message"]
    assert "hangar build code" in message, message

    def look_again(now):
        """A new generation is looked at at once."""
        cluster.patch(*OPERATOR, "ring", {"spec": {"args": [now]}}, namespace)

    # Signed by somebody whom the host does not trust.
    file, = builder.build(flight("ring"), key=builder.stranger)
    look_again("stranger")
    waits_for(cluster, "ring", namespace, "signed by none of the builder keys")
    # By the builder, but damaged on its way.
    builder.build(flight("ring"))
    data = bytearray(open(file, "rb").read())
    data[len(data) // 2] ^= 1
    open(file, "wb").write(data)
    look_again("damaged")
    waits_for(cluster, "ring", namespace, "the signature is for other code")

    builder.build(flight("ring"))
    look_again("built")
    eventually(lambda: condition(cluster.get(*OPERATOR, "ring", namespace)).get("status") == "True", "the Operator runs", COMPILED)
    assert events_of(cluster, "ring", namespace)


def test_it_starts_without_a_compiler_only_where_it_can_do_without(builder, programs, tmp_path):
    def refusal(*flags):
        done = subprocess.run([programs / "hangar", "host", f"--module-cache-dir={tmp_path}", "--kubeconfig=/none", *flags], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1, done.stderr
        return done.stderr
    builders = (f"--native-code-dir={builder.code}", f"--builder-keys={builder.public}")

    assert "hangar-compile is missing" in refusal()
    assert "signatures of modules are verified by hangar-compile" in refusal(*builders, "--module-policy=/policy.yaml")


def test_the_command_refuses_what_it_cannot_compile_or_sign(builder, tmp_path):
    (tmp_path / "module.wasm").write_bytes(b"none")
    done = hangar("build", "code", tmp_path / "module.wasm", f"--key={builder.private}", f"--output={tmp_path}")
    assert done.returncode == 1 and b"is not a WebAssembly module" in done.stderr, done.stderr
    done = hangar("build", "code", flight("ring"), f"--key={builder.public}", f"--output={tmp_path}")
    assert done.returncode == 1 and b"key" in done.stderr, done.stderr
    done = hangar("build", "code", f"--key={builder.private}", f"--output={tmp_path}")
    assert done.returncode == 1 and b"name a module, or give --interpreters" in done.stderr, done.stderr
    assert not list(tmp_path.glob("*.cwasm"))
