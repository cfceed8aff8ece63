"""Operators in guest processes: `hangar host --guest-isolation=namespace`. They sleep without a process, and wake in a new one."""
import contextlib
import os
import pathlib
import signal

import pytest

from cluster import eventually
from host import Host, to_its_end
from operators import EVERYTHING, OPERATOR, allow, create_config_map, events_of, lines, manifest, phase
from processes import children, expect_to_end_with, processor_seconds
from test_guest_isolation import zygote

COMPILED = 60


@pytest.fixture
def cluster(own_cluster):
    """Of its own, because another host on the same cluster would run the same Operators."""
    return own_cluster


@pytest.fixture(scope="module")
def host(own_cluster, tmp_path_factory):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path_factory.mktemp("host"), "--features=operators", "--guest-isolation=namespace"))


@pytest.fixture
def watcher(cluster, host, namespace):
    """An Operator that says which ConfigMaps change; returns a function that gives it as it is now."""
    def make(**spec):
        eventually(lambda: not children(zygote(host)), "no guest process is left of before", COMPILED)
        allow(cluster, namespace, *EVERYTHING)
        cluster.create(manifest("watcher", namespace, f"watch={namespace}", **spec))
        eventually(lambda: any(line.startswith("listed") for line in lines(host, "watcher", namespace)), "it has listed", COMPILED)
        return lambda: cluster.get(*OPERATOR, "watcher", namespace)
    yield make
    cluster.delete(*OPERATOR, "watcher", namespace)
    eventually(lambda: cluster.get(*OPERATOR, "watcher", namespace) is None, "it is gone", 30)


def starts(host, namespace):
    return len([line for line in lines(host, "watcher", namespace) if line.startswith("listed")])


@pytest.mark.parametrize("isolation", ["Namespace", "Operator"])
def test_an_operator_sleeps_without_a_process_and_wakes_in_a_new_one(cluster, host, namespace, watcher, isolation):
    get = watcher(sleep={"after": "100ms"}, isolation=isolation)
    for number in range(3):
        eventually(lambda: phase(get()) == "Asleep", "it sleeps", 30)
        eventually(lambda: not children(zygote(host)), "nobody is awake: there is no process", 30)
        create_config_map(cluster, f"made-{number}", namespace)
        eventually(lambda: f"changed made-{number}" in lines(host, "watcher", namespace), "it has heard of it", 30)

    assert starts(host, namespace) == 1, "it has listed once, and gone on where it was"


def test_an_operator_that_is_awake_starts_anew_when_its_process_is_killed(cluster, host, namespace, watcher):
    watcher(sleep={"policy": "Never"})
    processes = children(zygote(host))
    assert len(processes) == 1

    os.kill(processes[0], signal.SIGKILL)

    eventually(lambda: starts(host, namespace) == 2, "it lists anew", 60)
    said = f"the guest process of namespace {namespace}: killed by signal 9"
    eventually(lambda: any(said in event["message"] for event in events_of(cluster, "watcher", namespace)), "an Event says why", 30)
    create_config_map(cluster, "after", namespace)
    eventually(lambda: "changed after" in lines(host, "watcher", namespace), "it goes on", 30)


def test_an_operator_that_sleeps_notices_nothing_when_its_process_is_killed(cluster, host, namespace, watcher):
    of_others = host.metrics()["hangar_operator_wakes_total"]
    get = watcher(sleep={"after": "100ms"})
    create_config_map(cluster, "before", namespace)
    eventually(lambda: "changed before" in lines(host, "watcher", namespace), "it watches, and awaits no answer", 30)
    wakes = host.metrics()["hangar_operator_wakes_total"] - of_others
    eventually(lambda: phase(get()) == "Asleep" and get()["status"]["wakes"] >= wakes, "it sleeps since its last wake", 60)
    for pid in children(zygote(host)):  # It lingers.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # A wake in the meantime would be in the process that is ending, and fail with it.
    eventually(lambda: host.metrics()["hangar_guest_processes"] == 0, "the host knows", 30)

    create_config_map(cluster, "after", namespace)

    eventually(lambda: "changed after" in lines(host, "watcher", namespace), "it wakes", 30)
    assert starts(host, namespace) == 1
    assert not [event for event in events_of(cluster, "watcher", namespace) if "guest process" in event["message"]]


def unmapped_snapshots(host):
    """Files with memory of sleeping guests that the host does not map, by inode: the one of all snapshots, and one for each layer."""
    process = pathlib.Path(f"/proc/{host.process.pid}")
    mapped = (process / "maps").read_text()
    found = {}
    for descriptor in (process / "fd").iterdir():
        # Descriptors are closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if str(host.directory / "cache/snapshots") in os.readlink(descriptor) and f" {descriptor.stat().st_ino} " not in mapped:
                found[descriptor.stat().st_ino] = descriptor
    return found


def test_a_guest_whose_layer_is_lost_fails_without_its_process(cluster, host, namespace):
    eventually(lambda: not children(zygote(host)), "no guest process is left of before", COMPILED)
    allow(cluster, namespace, *EVERYTHING)
    get = lambda name: cluster.get(*OPERATOR, name, namespace)  # noqa: E731
    printed = lambda name: lines(host, name, namespace)  # noqa: E731
    try:
        cluster.create(manifest("other", namespace, f"watch={namespace}", sleep={"policy": "Never"}))
        before = unmapped_snapshots(host)
        # Large enough for a layer, which it gets when it sleeps for the second time. The answer to its watch may have
        # woken it already.
        cluster.create(manifest("layered", namespace, "heap=1024", f"watch={namespace}", sleep={"after": "100ms"}))
        for name in ("other", "layered"):
            eventually(lambda name=name: any(line.startswith("listed") for line in printed(name)), f"{name} has listed", COMPILED)
        eventually(lambda: phase(get("layered")) == "Asleep", "it sleeps", 30)
        create_config_map(cluster, "wakes", namespace)
        [layer] = eventually(lambda: set(unmapped_snapshots(host)) - set(before), "it has a layer", 30)
        eventually(lambda: "changed wakes" in printed("layered") and phase(get("layered")) == "Asleep", "it sleeps", 30)
        processes = children(zygote(host))

        os.truncate(unmapped_snapshots(host)[layer], 0)
        create_config_map(cluster, "after", namespace)

        said = "a page of the guest's memory cannot be read from the disk"
        eventually(lambda: said in get("layered")["status"].get("lastError", ""), "the status says why it failed", 30)
        eventually(lambda: any(said in event["message"] for event in events_of(cluster, "layered", namespace)), "so does an Event", 30)
        eventually(lambda: len([line for line in printed("layered") if line.startswith("listed")]) == 2, "it lists anew", 60)
        eventually(lambda: "changed after" in printed("other"), "the other has heard of it", 30)
        assert children(zygote(host)) == processes and len(processes) == 1, "the process is the same"
        assert (get("layered")["status"]["restarts"], get("other")["status"]["restarts"]) == (1, 0)
    finally:
        for name in ("other", "layered"):
            cluster.delete(*OPERATOR, name, namespace)
            eventually(lambda name=name: get(name) is None, f"{name} is gone", 30)


def test_an_operator_that_is_alone_shares_its_process_with_nobody(cluster, host, namespace):
    eventually(lambda: not children(zygote(host)), "no guest process is left of before", COMPILED)
    allow(cluster, namespace, *EVERYTHING)

    def lists(name):
        return len([line for line in lines(host, name, namespace) if line.startswith("listed")])
    try:
        cluster.create(manifest("lone", namespace, f"watch={namespace}", sleep={"policy": "Never"}, isolation="Operator"))
        eventually(lambda: lists("lone") == 1, "it has listed", COMPILED)
        [own] = children(zygote(host))
        for name in ("pair-1", "pair-2"):
            cluster.create(manifest(name, namespace, f"watch={namespace}", sleep={"policy": "Never"}))
            eventually(lambda name=name: lists(name) == 1, f"{name} has listed", COMPILED)
        assert len(children(zygote(host))) == 2, "the pair shares one, and has no place in the other"
        assert host.metrics()["hangar_guest_processes_alone"] == 1

        os.kill(own, signal.SIGKILL)

        eventually(lambda: lists("lone") == 2, "it starts anew", 60)
        said = f"the guest process of operator lone of namespace {namespace}: killed by signal 9"
        eventually(lambda: any(said in event["message"] for event in events_of(cluster, "lone", namespace)), "an Event says why", 30)
        create_config_map(cluster, "after", namespace)
        for name in ("lone", "pair-1", "pair-2"):
            eventually(lambda name=name: "changed after" in lines(host, name, namespace), f"{name} goes on", 30)
        assert [lists(name) for name in ("pair-1", "pair-2")] == [1, 1], "the others have noticed nothing"
    finally:
        for name in ("lone", "pair-1", "pair-2"):
            cluster.delete(*OPERATOR, name, namespace)
            eventually(lambda name=name: cluster.get(*OPERATOR, name, namespace) is None, f"{name} is gone", 30)


def test_an_operator_in_the_middle_of_a_turn_ends_with_a_host_that_is_killed(cluster, host, namespace):
    eventually(lambda: not children(zygote(host)), "no guest process is left of before", COMPILED)
    try:
        cluster.create(manifest("busy", namespace, "loop"))
        first = zygote(host)
        processes = eventually(lambda: [pid for pid in children(first) if processor_seconds(pid) > 0.3], "it computes", COMPILED)

        expect_to_end_with(host, [first, *processes])
    finally:
        host.kill()
        cluster.delete(*OPERATOR, "busy", namespace)
        host.start()
        eventually(lambda: cluster.get(*OPERATOR, "busy", namespace) is None, "it is gone", 30)
