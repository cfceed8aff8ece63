"""The network, the API server and the host fail; the cluster ends up right all the same."""
import random
import time

import pytest

import airways
from airways import flight, instance
from cluster import Proxy, eventually, is_ready
from conftest import control_plane
from host import Host

GROUP = "faults.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway")


@pytest.fixture(scope="module")
def rig():
    """A control plane of its own, because these tests kill parts of it."""
    made = control_plane("--with-kcm", "--with-proxy")
    yield made
    made.close()


@pytest.fixture
def proxied(rig, tmp_path):
    """The proxy, and a host that reaches the API server through it only."""
    proxy = Proxy(rig)
    host = Host(rig.env["HANGAR_CP_PROXY_KUBECONFIG"], tmp_path / "host")
    yield proxy, host
    proxy.mend()
    host.stop()


@pytest.fixture
def kind(rig, unique):
    """The kind of an Airway with the flight `behave`; afterwards no part of it is left."""
    kind = f"F{unique}"
    manifest = airways.airway(f"{kind.lower()}s", kind, flight("behave"), group=GROUP, mode="dynamic")
    rig.apply(manifest)
    rig.learn(f"{GROUP}/v1", kind, f"{kind.lower()}s")
    yield kind
    rig.delete(*AIRWAY, manifest["metadata"]["name"])


def wait_for_kind(rig, kind):
    eventually(lambda: is_ready(rig.get(*AIRWAY, f"{kind.lower()}s.{GROUP}")), f"airway of {kind} is ready", 60)


def children(rig, kind, name, count, namespace, tag):
    return instance(kind, name, {"behaviour": "children", "names": [f"{name}-{n}" for n in range(count)], "data": {"tag": tag}},
                    namespace, GROUP)


def tags(rig, namespace):
    return {one["metadata"]["name"]: one["data"]["tag"] for one in rig.list("v1", "ConfigMap", namespace, "app.kubernetes.io/managed-by=atc.yoke")}


@pytest.fixture
def namespace(rig, unique):
    name = f"ns-{unique}"
    rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    rig.delete("v1", "Namespace", name)


def test_the_api_server_is_away_for_a_minute(rig, proxied, kind, namespace):
    proxy, host = proxied
    wait_for_kind(rig, kind)
    rig.create(children(rig, kind, "it", 3, namespace, "before"))
    eventually(lambda: tags(rig, namespace) == {f"it-{n}": "before" for n in range(3)}, "the release is there")

    proxy.enable(False)
    rig.apply(children(rig, kind, "it", 4, namespace, "meanwhile"))
    rig.delete("v1", "ConfigMap", "it-0", namespace)
    time.sleep(60)
    assert host.process.poll() is None
    proxy.enable(True)

    eventually(lambda: tags(rig, namespace) == {f"it-{n}": "meanwhile" for n in range(4)}, "the release is as it should be", 60)


def test_the_watch_is_cut_every_second(rig, proxied, kind, namespace):
    proxy, host = proxied
    wait_for_kind(rig, kind)

    for round_ in range(8):
        rig.apply(children(rig, kind, "it", 3, namespace, f"round-{round_}"))
        time.sleep(1)
        proxy.cut()

    eventually(lambda: tags(rig, namespace) == {f"it-{n}": "round-7" for n in range(3)}, "the last round is there", 60)


def test_answers_are_slow(rig, proxied, kind, namespace):
    proxy, host = proxied
    proxy.slow(400)
    wait_for_kind(rig, kind)

    rig.create(children(rig, kind, "it", 5, namespace, "slow"))

    eventually(lambda: is_ready(rig.get(f"{GROUP}/v1", kind, "it", namespace)), "the instance is Ready", 60)
    assert tags(rig, namespace) == {f"it-{n}": "slow" for n in range(5)}


def test_the_api_server_is_killed_and_comes_back(rig, proxied, kind, namespace):
    proxy, host = proxied
    wait_for_kind(rig, kind)
    rig.create(children(rig, kind, "it", 3, namespace, "before"))
    eventually(lambda: len(tags(rig, namespace)) == 3, "the release is there")

    rig.component("kill", "kube-apiserver")
    rig.component("start", "kube-apiserver")
    rig.apply(children(rig, kind, "it", 2, namespace, "after"))

    eventually(lambda: tags(rig, namespace) == {"it-0": "after", "it-1": "after"}, "the release is as it should be", 60)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_host_is_killed_at_random_points(rig, kind, namespace, tmp_path, seed):
    dice = random.Random(seed)
    host = Host(rig.kubeconfig, tmp_path / "host")
    wait_for_kind(rig, kind)
    wanted = {}

    for round_ in range(12):
        for name in ("a", "b", "c"):
            count, tag = dice.randint(0, 6), f"{round_}"
            rig.apply(children(rig, kind, name, count, namespace, tag))
            wanted[name] = {f"{name}-{n}": tag for n in range(count)}
        time.sleep(dice.uniform(0, 0.15))
        host.kill()
        host.start(wait=dice.random() < 0.5)
    host.wait_ready()

    expected = {name: tag for one in wanted.values() for name, tag in one.items()}
    eventually(lambda: tags(rig, namespace) == expected, "exactly what was asked for last is there", 90)
    for name in ("a", "b", "c"):
        eventually(lambda: is_ready(rig.get(f"{GROUP}/v1", kind, name, namespace)), f"{name} is Ready")
        rig.delete(f"{GROUP}/v1", kind, name, namespace)
    eventually(lambda: tags(rig, namespace) == {} and not rig.list("v1", "Secret", namespace, "internal.yoke/kind=revision"),
               "deleting the instances leaves nothing", 60)
    assert host.stop() == 0


def test_two_hosts_never_both_act_and_the_second_takes_over(rig, kind, namespace, tmp_path):
    flags = ("--leader-elect", f"--namespace={namespace}")
    first = Host(rig.kubeconfig, tmp_path / "first", *flags)
    second = Host(rig.kubeconfig, tmp_path / "second", *flags)
    wait_for_kind(rig, kind)
    holder = eventually(lambda: [lease["spec"].get("holderIdentity") for lease in rig.list("coordination.k8s.io/v1", "Lease", namespace)], "a Lease is held")
    assert len(holder) == 1
    leader = first if f"_{first.process.pid}" in holder[0] else second
    other = second if leader is first else first
    rig.create(children(rig, kind, "it", 2, namespace, "first"))
    eventually(lambda: len(tags(rig, namespace)) == 2, "the leader works")
    assert other.metrics().get('controller_runtime_reconcile_total{controller="airway",result="success"}', 0) == 0

    leader.kill()
    rig.apply(children(rig, kind, "it", 3, namespace, "second"))

    eventually(lambda: tags(rig, namespace) == {f"it-{n}": "second" for n in range(3)}, "the other takes over", 60)
    assert other.stop() == 0


def test_a_host_that_is_told_to_stop_ends_soon_and_loses_nothing(rig, kind, namespace, tmp_path):
    host = Host(rig.kubeconfig, tmp_path / "host")
    wait_for_kind(rig, kind)
    for n in range(20):
        rig.create(children(rig, kind, f"it{n}", 3, namespace, "x"))

    before = time.monotonic()
    assert host.stop() == 0
    assert time.monotonic() - before < 12
    host.start()

    eventually(lambda: len(tags(rig, namespace)) == 60, "all of it is there", 60)
    host.stop()
