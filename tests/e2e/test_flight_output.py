"""The stderr of flights is kept and shown, also if they succeed.

A flight runs at least once for a change, so its output may be there more than once.
"""
import subprocess

import pytest

import airways
import operators
from airways import flight
from cluster import condition, eventually, is_ready
from conftest import COMPILED
from host import BINARY
from kubelet import Kubelet

AIRWAY = ("yoke.cd/v1alpha1", "Airway")
GROUP = "output.hangar.dev"


class Kind:
    def __init__(self, cluster, host, airway, unique):
        self.cluster, self.host, self.kind = cluster, host, unique.capitalize()
        manifest = airways.airway(f"{unique}s", self.kind, flight("behave"), group=GROUP)
        self.airway = manifest["metadata"]["name"]
        airway(manifest)

    def create(self, name, namespace, stderr, **spec):
        self.cluster.create(airways.instance(self.kind, name, {"behaviour": "basic", "data": {"a": "b"}, "stderr": stderr, **spec}, namespace, group=GROUP))

    def get(self, name, namespace):
        return self.cluster.get(f"{GROUP}/v1", self.kind, name, namespace)

    def ready(self, name, namespace):
        eventually(lambda: is_ready(self.get(name, namespace)), f"{name} is Ready: {condition(self.get(name, namespace))}", COMPILED)

    def logs(self, name, namespace, *flags):
        return operators.logs(self.host, f"{self.airway}/{name}", namespace, *flags)

    def texts(self, name, namespace, *flags):
        return [line.split(" ", 2)[2] for line in self.logs(name, namespace, *flags).splitlines()]

    def all(self):
        """(owner, text) of each line of the Airway."""
        lines = operators.logs(self.host, f"airway/{self.airway}").splitlines()
        return [(line.split(" ", 3)[1], line.split(" ", 3)[3]) for line in lines]


@pytest.fixture
def kind(cluster, host, airway, unique):
    return Kind(cluster, host, airway, unique)


def test_what_a_flight_that_succeeds_says_is_kept_and_shown(cluster, host, kind, namespace):
    kind.create("one", namespace, "warning: deprecated\nsecond line\n")
    kind.create("other", namespace, "of another\n")
    kind.create("silent", namespace, "")
    for name in ("one", "other", "silent"):
        kind.ready(name, namespace)
    eventually(lambda: kind.texts("one", namespace)[:2] == ["warning: deprecated", "second line"], "it is kept")
    assert all(line.split(" ")[1] == "stderr" for line in kind.logs("one", namespace).splitlines())
    assert kind.texts("one", namespace, "--tail=1") == ["second line"]
    assert kind.texts("silent", namespace) == []
    eventually(lambda: set(kind.all()) == {(f"{namespace}/one", "second line"), (f"{namespace}/one", "warning: deprecated"), (f"{namespace}/other", "of another")},
               "all instances of the Airway")

    # Each run adds its lines; a control sequence cannot reach a terminal.
    cluster.patch(f"{GROUP}/v1", kind.kind, "one", {"spec": {"stderr": "\x1b[2Jthird\n"}}, namespace)
    eventually(lambda: kind.texts("one", namespace)[-1:] == ["\\x1b[2Jthird"], "the next run is added")
    assert kind.texts("one", namespace)[0] == "warning: deprecated"
    cluster.delete(f"{GROUP}/v1", kind.kind, "one", namespace)
    eventually(lambda: kind.texts("one", namespace) == [], "it goes with its instance")
    assert set(kind.texts("other", namespace)) == {"of another"}


def test_what_a_flight_that_fails_says_is_in_its_status_and_kept_too(cluster, host, kind, namespace):
    kind.create("fails", namespace, "no such thing\n", exitCode=3)
    eventually(lambda: "no such thing" in condition(kind.get("fails", namespace)).get("message", ""), "its status says it", COMPILED)
    eventually(lambda: "no such thing" in kind.texts("fails", namespace), "it is kept, too")


def test_a_flood_is_bounded_and_said(cluster, host, kind, namespace):
    kind.create("chatty", namespace, "x" * 100 + "\n")
    kind.ready("chatty", namespace)
    flood = ("y" * 200 + "\n") * 300
    for turn in range(6):
        cluster.patch(f"{GROUP}/v1", kind.kind, "chatty", {"spec": {"stderr": flood, "data": {"turn": str(turn)}}}, namespace)
        eventually(lambda: (cluster.get("v1", "ConfigMap", "chatty", namespace) or {})["data"].get("turn") == str(turn), "it is evaluated", 60)
    eventually(lambda: "more bytes were dropped: the limit of a flight's output per second]" in kind.logs("chatty", namespace), "it says that output was dropped")
    assert len(kind.logs("chatty", namespace)) < 256 * 1024


def test_it_can_be_read_from_anywhere(cluster, host, kind, namespace, tmp_path):
    kind.create("one", namespace, "hello\n")
    kind.ready("one", namespace)
    eventually(lambda: set(kind.texts("one", namespace)) == {"hello"}, "it is kept")
    assert cluster.get(*AIRWAY, kind.airway)["status"]["pod"] == "/".join(operators.HOST_POD)

    def run(*arguments):
        return subprocess.run([str(BINARY), "logs", *arguments, f"--kubeconfig={cluster.kubeconfig}", f"--module-cache-dir={tmp_path / 'elsewhere'}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    kubelet = Kubelet(cluster, tmp_path, *operators.HOST_POD, host.log)
    try:
        one = run(f"{kind.airway}/one", "-n", namespace)
        assert one.returncode == 0 and {line.split(" ", 2)[2] for line in one.stdout.splitlines()} == {"hello"}, one.stderr
        of_all = run(f"airway/{kind.airway}")
        assert of_all.returncode == 0 and f" {namespace}/one stderr hello\n" in of_all.stdout, of_all.stderr
        # An operator of the same name has its own output.
        cluster.create(operators.manifest("one", namespace, "print=mine", "wait"))
        eventually(lambda: operators.lines(host, "one", namespace) == ["mine"], "the operator printed", COMPILED)
        eventually(lambda: [line.split(" ", 2)[2] for line in run("one", "-n", namespace).stdout.splitlines()] == ["mine"], "only its own lines", 60)
        cluster.delete(*operators.OPERATOR, "one", namespace)
    finally:
        kubelet.close()
    for wrong in ("a/b/c", "/x", "x/"):
        assert run(wrong).returncode == 2
