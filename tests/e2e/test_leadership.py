"""Which host leads, and what a host that no longer leads may still do."""
import datetime
import signal
import time

import pytest

import airways
from airways import flight, instance
from cluster import eventually, is_ready
from front import Front
from held import held
from host import Host

GROUP = "leadership.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway")
LEASE = ("coordination.k8s.io/v1", "Lease", "hangar")
# As short as a busy machine allows. A main loop counts as dead after four lease durations.
QUICK = ("--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s")


@pytest.fixture
def kind(cluster, unique):
    """The kind of an Airway with the flight `behave`."""
    kind = f"L{unique}"
    manifest = airways.airway(f"{kind.lower()}s", kind, flight("behave"), group=GROUP, mode="dynamic")
    cluster.apply(manifest)
    cluster.learn(f"{GROUP}/v1", kind, f"{kind.lower()}s")
    yield kind
    cluster.delete(*AIRWAY, manifest["metadata"]["name"])


@pytest.fixture
def start(cluster, namespace, tmp_path):
    """Starts a host that takes part in the election of the test's namespace."""
    hosts = []

    def begin(*flags, kubeconfig=None):
        flags = ("--leader-elect", "--features=airways", f"--namespace={namespace}", *flags)
        hosts.append(Host(kubeconfig or cluster.kubeconfig, tmp_path / f"host{len(hosts)}", *flags))
        return hosts[-1]

    yield begin
    for host in hosts:
        host.stop()


def lease(cluster, namespace):
    return (cluster.get(*LEASE, namespace) or {}).get("spec", {})


def holds(cluster, namespace, host):
    return lease(cluster, namespace).get("holderIdentity", "").endswith(f"_{host.process.pid}")


def wait_until_leading(cluster, namespace, host):
    eventually(lambda: holds(cluster, namespace, host), "the host holds the Lease", 60)


def renewed_at(cluster, namespace):
    return datetime.datetime.fromisoformat(lease(cluster, namespace)["renewTime"].replace("Z", "+00:00"))


def children(kind, name, count, namespace, tag):
    return instance(kind, name, {"behaviour": "children", "names": [f"{name}-{n}" for n in range(count)], "data": {"tag": tag}},
                    namespace, GROUP)


def config_maps(cluster, namespace):
    return {one["metadata"]["name"]: one["data"]["tag"] for one in cluster.list("v1", "ConfigMap", namespace, "app.kubernetes.io/managed-by=atc.yoke")}


def wait_for_kind(cluster, kind):
    eventually(lambda: is_ready(cluster.get(*AIRWAY, f"{kind.lower()}s.{GROUP}")), f"airway of {kind} is ready", 120)


def test_a_main_loop_that_is_held_up_does_not_cost_the_lease(cluster, namespace, start, kind):
    leader = start()
    wait_until_leading(cluster, namespace, leader)
    other = start()
    wait_for_kind(cluster, kind)

    with held(leader.process.pid):
        begin = renewed_at(cluster, namespace)
        # The other would lead after 15 s without a renewal.
        eventually(lambda: renewed_at(cluster, namespace) - begin > datetime.timedelta(seconds=18), "time goes by", 60)
        assert holds(cluster, namespace, leader)
        assert leader.get("/healthz") == (200, "ok")
        status, text = leader.get("/readyz")
        assert status == 500 and "main-loop failed" in text, text
        assert leader.get("/metrics")[0] == 503

    cluster.create(children(kind, "it", 2, namespace, "after"))
    eventually(lambda: config_maps(cluster, namespace) == {"it-0": "after", "it-1": "after"}, "it works on")
    assert holds(cluster, namespace, leader)
    assert leader.stop() == 0 and other.stop() == 0


def test_a_main_loop_that_does_not_come_back_ends_the_process(cluster, namespace, start, kind):
    leader = start(*QUICK)
    wait_until_leading(cluster, namespace, leader)
    other = start(*QUICK)

    with held(leader.process.pid):
        eventually(lambda: leader.process.poll() is not None, "the process ends", 90)

    assert leader.process.returncode == 1
    assert "the main loop has not come back" in leader.log.read_text()
    wait_until_leading(cluster, namespace, other)
    wait_for_kind(cluster, kind)
    cluster.create(children(kind, "it", 1, namespace, "second"))
    eventually(lambda: config_maps(cluster, namespace) == {"it-0": "second"}, "the other works")
    assert other.stop() == 0


def test_a_leader_that_was_stopped_writes_nothing_once_another_leads(cluster, namespace, start, kind, tmp_path):
    front = Front(cluster, tmp_path)
    # So slow that the leader is in the middle of its work when it is suspended, and many answers are on their way.
    front.fault = lambda method, path: time.sleep(0.3) if "/configmaps/" in path else None
    leader = start(kubeconfig=front.kubeconfig)
    wait_until_leading(cluster, namespace, leader)
    wait_for_kind(cluster, kind)
    other = start()
    count = 300
    cluster.create(children(kind, "it", count, namespace, "x"))
    eventually(lambda: len(config_maps(cluster, namespace)) >= 20, "the leader is at work")
    leader.process.send_signal(signal.SIGSTOP)
    try:
        assert len(config_maps(cluster, namespace)) < count
        wait_until_leading(cluster, namespace, other)
        lost_at = time.monotonic()
    finally:
        leader.process.send_signal(signal.SIGCONT)
    leader.process.wait(60)

    late = [(method, path) for began, method, path, _ in front.requests if began > lost_at and method != "GET"]
    assert late == []
    assert leader.process.returncode == 1
    eventually(lambda: len(config_maps(cluster, namespace)) == count, "the other does what is left", 120)
    assert other.stop() == 0
    front.close()
