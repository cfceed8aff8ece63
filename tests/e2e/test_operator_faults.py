"""Operators while the network, the API server, the disk and the host fail: nothing is lost, nothing done twice.

HANGAR_TEST_SEED repeats a run's random choices, HANGAR_KILL_SECONDS makes the longest one longer (300: five minutes).
"""
import collections
import os
import pathlib
import random
import shutil
import sys
import threading
import time

import pytest

import memos
import read_only
from cluster import Proxy, condition, eventually, never
from confined import mounting
from conftest import control_plane
from flights import Flights, greeting
from front import Front
from host import Host, to_its_end
from memos import built
from operators import (
    EVERYTHING, OPERATOR, Run, allow, create_config_map, events_of, lines, logs, phase, send_nonce)

CONFIG_MAP = ("v1", "ConfigMap")
SEED = int(os.environ.get("HANGAR_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
KILL_SECONDS = int(os.environ.get("HANGAR_KILL_SECONDS", "60"))


@pytest.fixture(scope="module")
def cluster():
    """A control plane of its own that keeps only the last few seconds of history."""
    # A Flight is gone when the garbage collector has removed what it made.
    made = control_plane("--with-proxy", "--with-kcm=garbage-collector-controller", "--apiserver-arg=--etcd-compaction-interval=5s")
    yield made
    made.close()


@pytest.fixture(scope="module")
def gentle_host(cluster, tmp_path_factory):
    yield from to_its_end(Host(cluster.kubeconfig, tmp_path_factory.mktemp("host")))


@pytest.fixture
def host(gentle_host):
    yield gentle_host
    assert gentle_host.process.poll() is None, f"this test ended the host:\n{gentle_host.tail()}"


@pytest.fixture
def get(cluster, namespace):
    return lambda name: cluster.get(*OPERATOR, name, namespace)


def asleep(get, *names):
    for name in names:
        eventually(lambda: phase(get(name)) == "Asleep", f"{name} sleeps", 60)


def stay_asleep(host, awake):
    """Waits until only `awake` operators have been in memory for half a second: late events of a new namespace have been handled."""
    def resumes():
        metrics = host.metrics()
        return [metrics["hangar_operators_resident"], *(value for name, value in metrics.items() if name.startswith("hangar_controller_resumes_total"))]

    def is_quiet():
        before = resumes()
        time.sleep(0.5)
        return before[0] == awake and resumes() == before
    eventually(is_quiet, "the others stay asleep", 60)


def believed(printed):
    """The objects that a guest with the step `watch` would know if it believed all its own output."""
    names, listing = set(), set()
    for line in printed:
        word, _, name = line.partition(" ")
        if word == "added":
            listing.add(name)
        elif word == "listed":
            names, listing = listing, set()
        elif word == "changed":
            names.add(name)
        elif word == "deleted":
            names.discard(name)
    return names


# The API server ----------------------------------------------------------------------------------


class TestAway:
    @pytest.fixture
    def host(self, cluster, tmp_path):
        host = Host(cluster.env["HANGAR_CP_PROXY_KUBECONFIG"], tmp_path / "host")
        yield host
        Proxy(cluster).mend()
        assert host.stop() == 0, f"the host did not end cleanly:\n{host.tail()}"

    def go_away_and_forget(self, cluster, host, namespace, meanwhile):
        """The host does not reach the API server for a minute, in which `meanwhile` happens and history is compacted."""
        path = cluster.path(*CONFIG_MAP, namespace)
        version = cluster.request("GET", path)["metadata"]["resourceVersion"]
        proxy = Proxy(cluster)
        proxy.enable(False)
        began = time.monotonic()
        meanwhile()
        # Earlier history is compacted, and the API server's own cache of it ends with the process.
        cluster.component("kill", "kube-apiserver")
        time.sleep(max(0, began + 60 - time.monotonic()))
        assert host.process.poll() is None
        cluster.component("start", "kube-apiserver")
        answers = [event["object"].get("code") for event in cluster.watch(path, version)]
        assert answers == [410], "the API server has not forgotten: this test tests nothing"
        proxy.enable(True)

    def test_nothing_is_lost_while_the_api_server_is_away_and_forgets(self, cluster, host, namespace, operator, get):
        allow(cluster, namespace, *EVERYTHING)
        for name in ("stays", "changes", "goes"):
            create_config_map(cluster, name, namespace)
        sleepers = [f"sleeper-{index}" for index in range(3)]
        for name in sleepers:
            operator(name, f"watch={namespace}", sleep={"after": "0s"})
        operator("resident", f"watch={namespace}", sleep={"policy": "Never"})
        # Awake now and then for its own reasons, whatever the API server does.
        operator("ticker", f"watch={namespace}", "--", "tick=1000", sleep={"after": "0s"})
        # While the API server is away its requests are refused; it retries.
        operator("writer", f"count={namespace},counter", sleep={"after": "0s"})
        everybody = [*sleepers, "resident", "ticker"]
        for name in everybody:
            eventually(lambda: "stays" in believed(lines(host, name, namespace)), f"{name} has listed", 60)
        eventually(lambda: (cluster.get(*CONFIG_MAP, "counter", namespace) or {}).get("data"), "the writer writes")
        asleep(get, *sleepers)
        before = {name: len(lines(host, name, namespace)) for name in everybody}

        def meanwhile():
            for index in range(20):
                create_config_map(cluster, f"comes-{index}", namespace)
            cluster.patch(*CONFIG_MAP, "changes", {"data": {"a": "b"}}, namespace)
            cluster.delete(*CONFIG_MAP, "goes", namespace)
        self.go_away_and_forget(cluster, host, namespace, meanwhile)

        expected = {one["metadata"]["name"] for one in cluster.list(*CONFIG_MAP, namespace)} | {"counter"}
        assert "goes" not in expected and "comes-19" in expected
        for name in everybody:
            eventually(lambda: believed(lines(host, name, namespace)) == expected, f"{name} knows what there is", 60)
            news = lines(host, name, namespace)[before[name]:]
            assert "changed changes" in news or "added changes" in news, f"{name} has missed a change: {news}"
        create_config_map(cluster, "after", namespace)
        for name in everybody:
            eventually(lambda: "changed after" in lines(host, name, namespace), f"{name} hears of what comes after", 60)
            assert (get(name)["status"].get("restarts") or 0) == 0, f"{name} was started again"
        for index in range(20):
            eventually(lambda: f"changed comes-{index}" in lines(host, "resident", namespace) or
                       f"added comes-{index}" in lines(host, "resident", namespace), "each came to it")
        asleep(get, *sleepers)
        counted = cluster.get(*CONFIG_MAP, "counter", namespace)["data"]["events"]
        assert int(counted) >= 3 + 20, "the writer counted all that came, and could write it in the end"
        assert sum(value for name, value in host.metrics().items() if name.startswith("hangar_cache_relists_total")) > 0

    def test_an_operator_in_go_misses_nothing_meanwhile(self, cluster, host, namespace, built):
        memos.run(cluster, namespace, after="200ms")
        memos.asleep(cluster, namespace, memos.COMPILED)
        for name in ("changes", "goes", "stays"):
            memos.make(cluster, namespace, name, "before")
        kept = lambda name: memos.text_of(cluster, namespace, name)
        for name in ("changes", "goes", "stays"):
            eventually(lambda: kept(name) == "before", f"{name} is kept", 60)
        memos.asleep(cluster, namespace)

        def meanwhile():
            for index in range(5):
                memos.make(cluster, namespace, f"comes-{index}", "after")
            cluster.patch(*memos.MEMO, "changes", {"spec": {"text": "after"}}, namespace)
            cluster.delete(*memos.MEMO, "goes", namespace)  # Its finalizer keeps it.
            cluster.delete(*CONFIG_MAP, "stays", namespace)
        self.go_away_and_forget(cluster, host, namespace, meanwhile)

        for name in ("changes", *(f"comes-{index}" for index in range(5))):
            eventually(lambda: kept(name) == "after", f"{name} is seen", 60)
        eventually(lambda: cluster.get(*memos.MEMO, "goes", namespace) is None, "the finalizer lets go", 60)
        eventually(lambda: kept("stays") == "before", "the child is there again", 60)
        memos.make(cluster, namespace, "later", "later")
        eventually(lambda: kept("later") == "later", "it hears of what comes after", 60)
        assert memos.asleep(cluster, namespace)["status"]["restarts"] == 0
        cluster.delete(*OPERATOR, "memo", namespace)


class TestSilentServer:
    """An API server that accepts requests and does not answer them."""

    @pytest.fixture
    def front(self, cluster, tmp_path):
        front = Front(cluster, tmp_path)
        yield front
        front.close()

    @pytest.fixture
    def host(self, front, tmp_path):
        yield from to_its_end(Host(front.kubeconfig, tmp_path / "host"))

    def test_who_waits_for_its_first_answer_does_not_hold_up_the_others(self, front, host, namespace, operator, get):
        """More operators than may start at once, none of which gets its first answer."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/asked-for"
        waiting, answers = [], threading.Event()

        def silent(method, asked):
            if asked == path:
                waiting.append(method)
                answers.wait(60)

        front.fault = silent
        # Fewer requests than the namespace may have at the API server.
        names = [f"one-{index:02}" for index in range(12)]
        try:
            for name in names:
                operator(name, f"get={path}")
            eventually(lambda: len(waiting) == len(names), "all of them have asked", 60)
            assert not answers.is_set()
        finally:
            answers.set()
        for name in names:
            eventually(lambda: phase(get(name)) == "Completed", f"{name} has its answer", 30)


# Answers -----------------------------------------------------------------------------------------


def test_who_asks_for_more_than_may_wait_for_it_ends_alone(cluster, host, namespace, operator, get):
    allow(cluster, namespace, *EVERYTHING)
    for index in range(3):
        create_config_map(cluster, f"large-{index}", namespace, a="x" * 1_000_000)
    operator("neighbour", f"watch={namespace}", sleep={"policy": "Never"})
    eventually(lambda: "listed 3" in lines(host, "neighbour", namespace), "the neighbour has listed", 60)
    # From here on a watch can answer lists: all of them at once.
    create_config_map(cluster, "before", namespace)
    eventually(lambda: "changed before" in lines(host, "neighbour", namespace), "the neighbour watches")

    # It computes while the answers arrive, and so reads none of them.
    operator("greedy", f"requests=200,/api/v1/namespaces/{namespace}/configmaps?resourceVersion=0", "--", "burn=1500",
             limits={"requestsPerSecond": 1000})

    eventually(lambda: (get("greedy").get("status", {}).get("restarts") or 0) >= 2, "it is started again, and again", 300)
    assert host.process.poll() is None, f"one operator ended the host:\n{host.tail()}"
    assert "of answers wait for the guest" in get("greedy")["status"]["lastError"]
    eventually(lambda: phase(get("greedy")) == "BackOff", "it waits before it is started again", 60)
    event = eventually(lambda: [one for one in events_of(cluster, "greedy", namespace) if one["reason"] == "GuestFailed"],
                       "an Event says that it failed")[0]
    assert event["type"] == "Warning" and "of answers wait for the guest" in event["message"]
    create_config_map(cluster, "after", namespace)
    eventually(lambda: "changed after" in lines(host, "neighbour", namespace), "the neighbour goes on")
    assert get("neighbour")["status"]["restarts"] == 0


def memory_of(host, key):
    """In MiB."""
    status = pathlib.Path(f"/proc/{host.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{key}:")) / 1024


class TestLargeAnswers:
    @pytest.fixture
    def host(self, cluster, tmp_path):
        """A host of its own: these tests measure its peak memory."""
        yield from to_its_end(Host(cluster.kubeconfig, tmp_path / "host"))

    def test_what_is_under_way_to_a_guest_is_bounded_as_what_waits_for_it(self, cluster, host, namespace, operator, get):
        allow(cluster, namespace, *EVERYTHING)
        for index in range(58):
            create_config_map(cluster, f"large-{index:02}", namespace, a="x" * 1_000_000)
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        # One answer, of nearly all the bytes that may wait.
        operator("modest", f"requests=1,{path}")
        eventually(lambda: "requests: 1 of 200" in lines(host, "modest", namespace), "one large answer comes through", 60)
        assert get("modest")["status"].get("restarts", 0) == 0
        cluster.delete(*OPERATOR, "modest", namespace)
        host.stop()
        host.start()
        before = memory_of(host, "VmRSS")

        # Answers of 20 MB each, none of them from the cache.
        operator("greedy", f"requests=30,{path}?limit=20", "wait", limits={"requestsPerSecond": 1000})

        eventually(lambda: get("greedy").get("status", {}).get("lastError"), "it fails", 60)
        assert "of answers wait for the guest" in get("greedy")["status"]["lastError"]
        assert memory_of(host, "VmHWM") - before < 256


# Snapshots ---------------------------------------------------------------------------------------


def slab_of(host):
    """The file with the sleeping guests' memory, while the host has it open. Images are mapped; the slab is not."""
    process = pathlib.Path(f"/proc/{host.process.pid}")
    mapped = (process / "maps").read_text()

    def is_slab(descriptor):
        try:
            return (str(host.directory / "cache/snapshots") in os.readlink(descriptor)
                    and f" {descriptor.stat().st_ino} " not in mapped and descriptor.stat().st_size > 0)
        except FileNotFoundError:  # Closed meanwhile.
            return False
    found = list(filter(is_slab, (process / "fd").iterdir()))
    assert len(found) == 1, f"one slab, not {found}"
    return found[0]


def truncated(host):
    os.truncate(slab_of(host), 0)


def cut_short(host):
    slab = slab_of(host)
    os.truncate(slab, slab.stat().st_size // 8)


def flipped(host):
    dice = random.Random(SEED)
    with open(slab_of(host), "r+b") as slab:
        content = bytearray(slab.read())
        # A bit of each piece of 64 bytes: no snapshot is smaller.
        for at in range(0, len(content), 64):
            content[at + dice.randrange(min(64, len(content) - at))] ^= 1 << dice.randrange(8)
        slab.seek(0)
        slab.write(content)


def overwritten(host):
    slab = slab_of(host)
    size = slab.stat().st_size
    slab.write_bytes(b"\0" * size)


@pytest.mark.parametrize("damage", [truncated, cut_short, flipped, overwritten], ids=lambda value: value.__name__)
def test_a_guest_whose_snapshot_is_broken_starts_clean_and_an_event_says_so(cluster, host, namespace, operator, get, damage):
    allow(cluster, namespace, *EVERYTHING)
    create_config_map(cluster, "before", namespace)
    sleepers = [f"sleeper-{index}" for index in range(4)]
    for name in sleepers:
        operator(name, f"watch={namespace}", sleep={"after": "0s"})
    operator("resident", f"watch={namespace}", sleep={"policy": "Never"})
    for name in [*sleepers, "resident"]:
        eventually(lambda: "listed 1" in lines(host, name, namespace), f"{name} has listed", 60)
    # A sleeper may be asleep before its watch is open, and the answer that opens it wakes it once more. What a watch has shown is
    # after that. The turn that prints it has ended then, so from here on the host counts who is in memory.
    create_config_map(cluster, "watched", namespace)
    for name in [*sleepers, "resident"]:
        eventually(lambda: "changed watched" in lines(host, name, namespace), f"{name} watches", 60)
    stay_asleep(host, awake=1)
    asleep(get, *sleepers)

    damage(host)
    create_config_map(cluster, "first", namespace)

    for name in [*sleepers, "resident"]:
        eventually(lambda: {"before", "watched", "first"} == believed(lines(host, name, namespace)), f"{name} knows what there is", 60)
    failed = [name for name in sleepers if "listed 3" in lines(host, name, namespace)]
    assert failed, f"seed {SEED}: no snapshot was broken"
    assert damage is cut_short or failed == sleepers, f"seed {SEED}: {failed} only were started again"
    for name in failed:
        event = eventually(lambda: [one for one in events_of(cluster, name, namespace) if one["reason"] == "GuestFailed"],
                           f"an Event says that {name} failed")[0]
        assert event["type"] == "Warning" and "snapshot" in event["message"]
        eventually(lambda: get(name)["status"].get("restarts") == 1, f"{name} was started again once")
        assert "snapshot" in get(name)["status"]["lastError"]
    assert "listed 3" not in lines(host, "resident", namespace), "who was awake has nothing to do with it"

    # And from now on everything is as before.
    asleep(get, *sleepers)
    create_config_map(cluster, "second", namespace)
    for name in sleepers:
        eventually(lambda: "changed second" in lines(host, name, namespace), f"{name} wakes for an event")
        assert get(name)["status"]["restarts"] == (1 if name in failed else 0)


def test_deleting_the_snapshots_directory_harms_nobody(cluster, host, namespace, operator, get):
    allow(cluster, namespace, *EVERYTHING)
    operator("sleeper", f"watch={namespace}", sleep={"after": "0s"})
    eventually(lambda: "listed 0" in lines(host, "sleeper", namespace), "it has listed", 60)
    asleep(get, "sleeper")

    shutil.rmtree(host.directory / "cache/snapshots")

    for name in ("one", "two"):
        create_config_map(cluster, name, namespace)
        eventually(lambda: f"changed {name}" in lines(host, "sleeper", namespace), "it wakes, sleeps and wakes")
        asleep(get, "sleeper")
    # Of a module that the host has not loaded: its image needs the directory.
    operator("another", wasm="ring", env=[{"name": "IN_NAMESPACE", "value": namespace}], sleep={"after": "0s"})
    eventually(lambda: condition(get("another")).get("status") == "True", "another starts", 60)
    assert get("sleeper")["status"]["restarts"] == 0


def has_room(host):
    """Where the host of TestFullDisk has its snapshots."""
    return pathlib.Path(f"/proc/{host.process.pid}/root{host.directory}/cache/snapshots")


def test_a_cache_on_a_read_only_disk_is_named_at_the_start(cluster, tmp_path):
    """As an SD card at the end of its life becomes."""
    cache = tmp_path / "host/cache"
    cache.mkdir(parents=True)
    mount = f'mount -t tmpfs -o "ro,mode=0700,$owner" cache "{cache}"'
    host = Host(cluster.kubeconfig, tmp_path / "host", wait=False, inside=mounting(mount))
    try:
        assert host.process.wait(60) != 0
        assert str(cache) in host.tail() and "Read-only file system" in host.tail()
    finally:
        host.stop()


class TestGoneCache:
    @pytest.fixture
    def host(self, cluster, tmp_path):
        yield from to_its_end(Host(cluster.kubeconfig, tmp_path / "host"))

    def test_who_is_there_goes_on_and_others_begin(self, cluster, host, namespace, operator, get):
        allow(cluster, namespace, *EVERYTHING)
        flights = Flights(cluster, namespace)
        operator("sleeper", f"answer={namespace},question,of-sleeper", sleep={"after": "0s"})
        operator("resident", f"answer={namespace},question,of-resident", sleep={"policy": "Never"})
        flights.create("old", wasm="greeting_rust", inputObject=greeting("old", namespace, "before"))
        create_config_map(cluster, "question", namespace, number="1")

        def answer(*names):
            number = cluster.get(*CONFIG_MAP, "question", namespace)["data"]["number"]
            for name in names:
                eventually(lambda: ((cluster.get(*CONFIG_MAP, f"of-{name}", namespace) or {}).get("data") or {}).get("number") == number,
                           f"{name} answers question {number}", 60)
        answer("sleeper", "resident")
        flights.ready("old")
        asleep(get, "sleeper")

        def is_gone():
            shutil.rmtree(host.directory / "cache", ignore_errors=True)  # The host may make files meanwhile.
            return not (host.directory / "cache").exists()
        eventually(is_gone, "the cache is removed")

        cluster.patch(*CONFIG_MAP, "question", {"data": {"number": "2"}}, namespace)
        answer("sleeper", "resident")
        flights.patch("old", inputObject=greeting("old", namespace, "after"))
        eventually(lambda: "after" in str(flights.data("old")), "the Flight that was there changes", 60)
        # Of modules that the host has not seen yet.
        operator("ring", wasm="ring", env=[{"name": "IN_NAMESPACE", "value": namespace}], sleep={"after": "0s"})
        eventually(lambda: condition(get("ring")).get("status") == "True", "a new operator starts", 60)
        flights.create("new", wasm="greeting_cpp", inputObject=greeting("new", namespace))
        flights.ready("new")
        operator("another", f"answer={namespace},question,of-another", "--", "print=begins", "wait", sleep={"after": "0s"})
        answer("another")
        assert "begins" in lines(host, "another", namespace), "its output is kept"
        assert all(get(name)["status"].get("restarts", 0) == 0 for name in ("sleeper", "resident", "another"))

        assert host.stop() == 0
        host.start()
        cluster.patch(*CONFIG_MAP, "question", {"data": {"number": "3"}}, namespace)
        answer("sleeper", "resident", "another")
        for name in ("old", "new"):
            flights.delete(name)
            flights.goes(name)


class TestLastingPressure:
    @pytest.fixture
    def host(self, cluster, tmp_path):
        """A host that reads of its cgroup, of either version, that 95 % of its memory are in use, whatever it gives back."""
        groups = tmp_path / "cgroup"
        for directory, figures in ((groups, ("memory.current", "memory.max")), (groups / "memory", ("memory.usage_in_bytes", "memory.limit_in_bytes"))):
            directory.mkdir()
            for name, share in zip(figures, (0.95, 1), strict=True):
                (directory / name).write_text(f"{round(share * (1 << 30))}\n")
        mount = f'mount --bind "{groups}" /sys/fs/cgroup'
        yield from to_its_end(Host(cluster.kubeconfig, tmp_path / "host", inside=mounting(mount)))

    def test_operators_answer_all_the_same_and_leave_as_soon_as_they_may(self, cluster, host, namespace, operator, get):
        allow(cluster, namespace, *EVERYTHING)
        names = ["one", "two", "three"]
        # Without pressure they would stay.
        for name in names:
            operator(name, f"watch={namespace}", sleep={"after": "1h"})
        for name in names:
            eventually(lambda: "listed 0" in lines(host, name, namespace), f"{name} has listed", 60)

        def counted(name):
            return host.metrics()[f"hangar_{name}_total"]
        for number in range(3):
            asleep(get, *names)
            pressed = counted("operator_pressure_suspends")
            create_config_map(cluster, f"made-{number}", namespace)
            for name in names:
                eventually(lambda: f"changed made-{number}" in lines(host, name, namespace), f"{name} hears of it", 60)
            eventually(lambda: counted("operator_pressure_suspends") >= pressed + len(names), "they are sent to sleep again", 60)
        dropped = counted("page_cache_drops")
        assert dropped > 0
        eventually(lambda: counted("page_cache_drops") > dropped, "what is not used leaves the page cache again and again", 90)
        assert all(get(name)["status"].get("restarts", 0) == 0 for name in names)


class TestFullDisk:
    @pytest.fixture
    def host(self, cluster, tmp_path):
        """A host whose snapshots are on a file system of their own, of 1 MiB."""
        snapshots = tmp_path / "host/cache/snapshots"
        snapshots.mkdir(parents=True, mode=0o700)
        (tmp_path / "host/cache").chmod(0o700)
        mount = f'mount -t tmpfs -o "size=1m,mode=0700,$owner" snapshots "{snapshots}"'
        yield from to_its_end(Host(cluster.kubeconfig, tmp_path / "host", inside=mounting(mount)))

    def test_who_finds_no_room_to_sleep_stays_and_says_so(self, cluster, host, namespace, operator, get):
        allow(cluster, namespace, *EVERYTHING)
        operator("small", f"watch={namespace}", sleep={"after": "0s"})
        eventually(lambda: "listed 0" in lines(host, "small", namespace), "it has listed", 60)
        asleep(get, "small")
        assert (condition(get("small"), "CanSleep")["status"], condition(get("small"), "CanSleep")["reason"]) == ("True", "SleepsWhenIdle")
        filler = has_room(host) / "filler"
        assert filler.parent.stat().st_dev != host.directory.stat().st_dev

        with open(filler, "wb", buffering=0) as full, pytest.raises(OSError):
            while True:
                full.write(b"x" * 4096)
        # Each time it goes to sleep it needs more room than before, and there is none. In the end it needs all the room
        # of the file system, however long the test takes.
        operator("growing", f"watch={namespace}", "--", "grow=64,200,2048", "wait", sleep={"after": "0s"})

        eventually(lambda: "an operator stays resident" in host.log.read_text(), "the log says that it stays", 60)
        told = [line for line in host.log.read_text().splitlines() if "an operator stays resident" in line]
        assert all("growing" in line and "No space left on device" in line for line in told)
        assert host.metrics()["hangar_operator_suspend_failures_total"] > 0
        eventually(lambda: "grown to 512 KiB" in lines(host, "growing", namespace), "it goes on all the same")
        # Later it may sleep: an operator that wakes up leaves room.
        eventually(lambda: phase(get("growing")) == "Running", "its status says that it stays")
        # Only this state: it may sleep again a moment later.
        told = eventually(lambda: (lambda seen: seen if seen.get("status") == "False" else None)(condition(get("growing"), "CanSleep")),
                          "its status says why", 60)
        assert told["reason"] == "SnapshotFailed" and "No space left on device" in told["message"]
        assert condition(get("growing"))["status"] == "True", "it is at work all the same"
        event = eventually(lambda: [one for one in events_of(cluster, "growing", namespace) if one["reason"] == "StaysResident"],
                           "an Event says so")[0]
        assert event["type"] == "Warning" and "No space left on device" in event["message"]
        create_config_map(cluster, "one", namespace)
        for name in ("small", "growing"):
            eventually(lambda: "changed one" in lines(host, name, namespace), f"{name} hears of what happens")
            assert get(name)["status"]["restarts"] == 0
        # It does not retry at every turn of the loop.
        seen = host.metrics()["hangar_operator_suspend_failures_total"]
        time.sleep(2)
        assert host.metrics()["hangar_operator_suspend_failures_total"] - seen < 20

        filler.unlink()
        suspends = host.metrics()["hangar_operator_suspends_total"]
        eventually(lambda: host.metrics()["hangar_operator_suspends_total"] > suspends, "there is room again: it sleeps", 60)
        eventually(lambda: condition(get("growing"), "CanSleep").get("status") == "True", "its status says that it is over", 60)
        eventually(lambda: [one for one in events_of(cluster, "growing", namespace) if one["reason"] == "SleepsAgain"],
                   "an Event says that it is over")
        create_config_map(cluster, "two", namespace)
        for name in ("small", "growing"):
            eventually(lambda: "changed two" in lines(host, name, namespace), f"{name} hears of what happens")
            assert get(name)["status"]["restarts"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees which files a process that hides its memory opens")
class TestDiskThatBecomesReadOnly:
    @pytest.fixture
    def switch(self, tmp_path):
        """Where this file is, the cache cannot be written to."""
        return tmp_path / "read-only"

    @pytest.fixture
    def host(self, cluster, tmp_path, switch):
        inside = (sys.executable, read_only.__file__, str(tmp_path / "host/cache"), str(switch))
        yield from to_its_end(Host(cluster.kubeconfig, tmp_path / "host", inside=inside))

    def test_operators_stay_and_say_so_and_sleep_again_later(self, cluster, host, switch, namespace, operator, get):
        allow(cluster, namespace, *EVERYTHING)
        names = ["one", "two"]
        for name in names:
            operator(name, f"answer={namespace},question,of-{name}", sleep={"after": "0s"})
        create_config_map(cluster, "question", namespace, number="1")

        def answered(name):
            return ((cluster.get(*CONFIG_MAP, f"of-{name}", namespace) or {}).get("data") or {}).get("number")

        def ask(number):
            cluster.patch(*CONFIG_MAP, "question", {"data": {"number": number}}, namespace)
            for name in names:
                eventually(lambda: answered(name) == number, f"{name} answers question {number}", 60)
        ask("2")
        asleep(get, *names)
        failures = host.metrics()["hangar_operator_suspend_failures_total"]

        switch.touch()
        ask("3")

        for name in names:
            told = eventually(lambda: (seen := condition(get(name), "CanSleep")).get("status") == "False" and seen, f"the status of {name} says that it stays", 60)
            assert told["reason"] == "SnapshotFailed" and "Read-only file system" in told["message"]
            assert condition(get(name))["status"] == "True", "it is at work all the same"
        assert host.metrics()["hangar_operator_suspend_failures_total"] >= failures + len(names)
        assert any("an operator stays resident" in line and "Read-only file system" in line for line in host.log.read_text().splitlines())
        ask("4")

        switch.unlink()
        asleep(get, *names)
        for name in names:
            eventually(lambda: condition(get(name), "CanSleep").get("status") == "True", f"the status of {name} says that it is over", 60)
            eventually(lambda: {"StaysResident", "SleepsAgain"} <= {one["reason"] for one in events_of(cluster, name, namespace)}, "Events say so")
        ask("5")
        assert all(get(name)["status"].get("restarts", 0) == 0 for name in names)


# The host ----------------------------------------------------------------------------------------


class TestStopped:
    @pytest.fixture
    def host(self, cluster, tmp_path):
        yield from to_its_end(Host(cluster.kubeconfig, tmp_path / "host"))

    def test_output_of_who_was_deleted_meanwhile_goes(self, cluster, host, namespace, operator):
        names = ["gone", "again", "n" * 240]
        for name in [*names, "stays"]:
            operator(name, f"print=secret of {name}", "wait")
        for name in [*names, "stays"]:
            eventually(lambda: lines(host, name, namespace) == [f"secret of {name}"], f"{name} has printed", 60)
        assert host.stop() == 0

        for name in names:
            cluster.delete(*OPERATOR, name, namespace)
            eventually(lambda: cluster.get(*OPERATOR, name, namespace) is None, f"{name} is gone")
        operator("again", "wait")
        host.start()

        for name in names:
            eventually(lambda: logs(host, name, namespace) == "", f"nothing of {name} is kept", 60)
        assert lines(host, "stays", namespace)[0] == "secret of stays"


class Witness(threading.Thread):
    """Records every change of a TestResource in the cluster, in order."""

    PATH = "/apis/amurant.io/v1/testresources"

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self._events = cluster.watch(self.PATH, cluster.request("GET", self.PATH)["metadata"]["resourceVersion"])
        # (namespace, name) -> nonces, one for each write.
        self.written = collections.defaultdict(list)
        self.trouble = None
        self.start()

    def run(self):
        try:
            for event in self._events:
                metadata = event["object"]["metadata"]
                if event["type"] == "MODIFIED" and "deletionTimestamp" not in metadata:
                    self.written[metadata["namespace"], metadata["name"]].append(event["object"]["spec"]["nonce"])
            self.trouble = "the watch ended"
        except Exception as error:  # noqa: BLE001: whatever it is, the test has to know.
            self.trouble = repr(error)


@pytest.mark.xdist_group("killed")
def test_killed_at_random_moments_under_load_it_loses_nothing_and_repeats_nothing(cluster, ring, tmp_path):
    dice = random.Random(SEED)
    print(f"HANGAR_TEST_SEED={SEED}")
    tokens = [f"token-{index}" for index in range(6)]
    namespaces = ring(8, *tokens)
    witness = Witness(cluster)
    run = Run(cluster, tmp_path / "run", namespaces, "--sleep-after=0s")
    sent = dict.fromkeys(tokens, 0)
    kills = 0

    def has_gone_round(token):
        """The last namespace has received it from all others."""
        return sent[token] == 0 or witness.written[namespaces[-1], token][-1:] == [sent[token]]

    def send_what_is_due():
        for token in filter(has_gone_round, tokens):
            sent[token] += 1
            send_nonce(cluster, namespaces[0], sent[token], token)

    try:
        end = time.monotonic() + KILL_SECONDS
        while time.monotonic() < end:
            # Some operators while the host starts, some while it is at full speed.
            killed_at = time.monotonic() + dice.uniform(0, dice.choice([0.3, 3]))
            while time.monotonic() < killed_at:
                send_what_is_due()
                time.sleep(0.005)
            assert run.process.poll() is None, f"seed {SEED}: the host ended by itself:\n{run.log.read_text()[-4000:]}"
            run.kill()
            kills += 1
            run.start()
        for token in tokens:
            eventually(lambda: has_gone_round(token), f"seed {SEED}: nonce {sent[token]} of {token} has gone round", 60)
        never(lambda: witness.trouble or any(len(seen) > sent[token] for (_, token), seen in witness.written.items()),
              "a nonce was written again")
    finally:
        code = run.stop()
    assert code == 0, run.log.read_text()[-4000:]
    assert witness.trouble is None
    for token in tokens:
        assert sent[token] > 0
        for namespace in namespaces:
            assert witness.written[namespace, token] == list(range(1, sent[token] + 1)), \
                f"seed {SEED}: {token} in {namespace}: each nonce once, in order"
    print(f"{kills} kills, {sum(sent.values())} nonces around {len(namespaces)} namespaces")
