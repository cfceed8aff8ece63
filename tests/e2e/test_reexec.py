"""`hangar host` replaces itself in place on SIGUSR2: sleepers go on where they were, and see what has changed meanwhile once."""
import os
import re
import shutil
import signal
import sys

import pytest

from airways import flight
from cluster import eventually
from host import Host, to_its_end
from operators import BEHAVE, EVERYTHING, OPERATOR, allow, create_config_map, events_of, lines, manifest, phase
from test_go_operators import replicas_of, make, website  # noqa: F401 (a fixture)

COMPILED = 60


@pytest.fixture
def cluster(own_cluster):
    """Of its own, because another host on the same cluster would run the same Operators."""
    return own_cluster


@pytest.fixture(scope="module")
def host(own_cluster, tmp_path_factory):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path_factory.mktemp("host"), "--features=operators", "--leader-elect"))


@pytest.fixture
def operator(cluster, namespace):
    """Makes Operators, and deletes them in the end."""
    made = []

    def make_one(name, *steps, **spec):
        cluster.create(manifest(name, namespace, *steps, **{"sleep": {"after": "100ms"}, **spec}))
        made.append(name)
    yield make_one
    for name in made:
        cluster.delete(*OPERATOR, name, namespace)
    eventually(lambda: not any(cluster.get(*OPERATOR, name, namespace) for name in made), "they are gone", 30)


@pytest.fixture
def watchers(cluster, host, namespace, operator):
    """Makes Operators that say which ConfigMaps of the namespace change, and waits until they sleep."""
    def make_all(*names):
        allow(cluster, namespace, *EVERYTHING)
        for name in names:
            operator(name, f"watch={namespace}")
        for name in names:
            eventually(lambda name=name: lists(host, name, namespace) == 1, f"{name} has listed", COMPILED)
            asleep(cluster, name, namespace)
    return make_all


def asleep(cluster, name, namespace):
    eventually(lambda: phase(cluster.get(*OPERATOR, name, namespace)) == "Asleep", f"{name} sleeps", COMPILED)


def begun(host):
    return len(re.findall(r"\bleading\b", host.log.read_text(errors="replace")))


def replace(host, during=lambda: None):
    """Returns when the new program leads; `during` runs while no program does, or nearly so."""
    before = begun(host)
    pid = host.process.pid
    os.kill(pid, signal.SIGUSR2)
    during()
    eventually(lambda: begun(host) > before, "the new program leads", 60)
    host.wait_ready()
    assert host.process.poll() is None and host.process.pid == pid, "it is the same process"


def results(host):
    """What became of the operators of the program before."""
    return {re.search('result="(.*)"', name)[1]: count for name, count in host.metrics().items()
            if name.startswith("hangar_operators_taken_over_total")}


def lists(host, name, namespace):
    return len([line for line in lines(host, name, namespace) if line.startswith("listed")])


def heard(host, name, namespace, text):
    return lines(host, name, namespace).count(text)


def anew(cluster, name, namespace):
    return [event["message"] for event in events_of(cluster, name, namespace) if event["reason"] == "StartedAnew"]


def test_sleepers_go_on_and_see_what_changed_meanwhile_once(cluster, host, namespace, operator, watchers):
    names = [f"watcher-{number}" for number in range(4)]
    create_config_map(cluster, "doomed", namespace)
    operator("clock", "tick=2000")
    watchers(*names)
    eventually(lambda: heard(host, "clock", namespace, "tick 2"), "it counts in memory", COMPILED)

    def change():
        create_config_map(cluster, "made", namespace)
        cluster.delete("v1", "ConfigMap", "doomed", namespace)
    replace(host, change)

    eventually(lambda: results(host) == {"taken_over": len(names) + 1, "started_anew": 0}, "all are taken over", 30)
    create_config_map(cluster, "after", namespace)
    for name in names:
        eventually(lambda name=name: heard(host, name, namespace, "changed after"), f"{name} goes on", 60)
        assert lists(host, name, namespace) == 1
        assert [heard(host, name, namespace, text) for text in ("changed made", "deleted doomed", "changed after")] == [1, 1, 1]
    told = heard(host, "clock", namespace, "tick 3")
    eventually(lambda: told or heard(host, "clock", namespace, "tick 3"), "it goes on counting", 30)
    assert heard(host, "clock", namespace, "tick 1") == 1


def test_a_controller_runtime_operator_goes_on(cluster, host, namespace, operator, website):  # noqa: F811
    make(cluster, namespace, "shop")
    eventually(lambda: replicas_of(cluster, namespace, "shop") == 2, "the deployment is there", 60)
    asleep(cluster, "website", namespace)

    replace(host, lambda: make(cluster, namespace, "blog", replicas=3))

    eventually(lambda: replicas_of(cluster, namespace, "blog") == 3, "it has seen the other one", 60)
    assert results(host) == {"taken_over": 1, "started_anew": 0}
    assert cluster.get(*OPERATOR, "website", namespace)["status"]["restarts"] == 0


def test_who_cannot_go_on_starts_anew_and_says_why(cluster, host, namespace, operator, watchers):
    watchers("changed", "same")
    operator("restless", f"watch={namespace}", sleep={"policy": "Never"})
    eventually(lambda: lists(host, "restless", namespace) == 1, "it has listed", COMPILED)

    other = shutil.copy(flight(BEHAVE).removeprefix("file://"), host.directory / "other.wasm")
    replace(host, lambda: cluster.patch(*OPERATOR, "changed", {"spec": {"module": {"url": f"file://{other}"}}}, namespace))

    eventually(lambda: results(host) == {"taken_over": 1, "started_anew": 2}, "two start anew", 60)
    for name, why in (("changed", "its spec has changed"), ("restless", "spec.sleep.policy is Never")):
        eventually(lambda name=name: lists(host, name, namespace) == 2, f"{name} lists again", 60)
        eventually(lambda name=name: anew(cluster, name, namespace), "an Event says so", 30)
        assert anew(cluster, name, namespace) == [f"hangar was replaced, and the guest starts anew: {why}"]
    assert lists(host, "same", namespace) == 1
    assert "an operator will start anew" in host.log.read_text(errors="replace")


def test_a_manifest_that_is_damaged_is_refused_in_words(cluster, host, namespace, operator, watchers):
    watchers("watcher")
    assert host.stop() == 0
    script = ("import fcntl, os, sys; file = os.memfd_create('x', os.MFD_ALLOW_SEALING); os.write(file, b'hangarca\\x01\\x01' + bytes(64));"
              "fcntl.fcntl(file, fcntl.F_ADD_SEALS, 15);"
              "os.environ['HANGAR_CARRIED_OPERATORS'] = f'{os.getpid()}:{file}'; os.execv(sys.argv[1], sys.argv[1:])")
    whole = host._command
    host._command = [sys.executable, "-c", script, *whole]
    try:
        host.start()
        assert "they do not have the checksum that they name" in host.log.read_text(errors="replace")
        eventually(lambda: lists(host, "watcher", namespace) == 2, "it starts anew", 60)
        assert results(host) == {"taken_over": 0, "started_anew": 0}
    finally:
        host._command = whole


def test_every_object_of_a_long_list_is_looked_at(cluster, host, namespace, operator):
    """The cache tells a list in slices, and controllers begin before its end."""
    assert host.stop() == 0
    count = 400
    for number in range(count):
        operator(f"wrong-{number}", module={"url": "nonsense:"})
    host.start()

    def unseen():
        listed = cluster.request("GET", f"/apis/{OPERATOR[0]}/namespaces/{namespace}/operators")["items"]
        return [one["metadata"]["name"] for one in listed if "status" not in one]
    eventually(lambda: not unseen(), "all have a status", 30)
