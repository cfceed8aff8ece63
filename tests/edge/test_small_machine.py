"""A host with the memory of a small machine. Run by tests/edge/run.sh: it takes more than an hour.

A host without limits compiles the modules first; the host of the tests starts in its directory, in a cgroup of 128 MiB.
"""
import os
import pathlib
import random
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(__file__))

import gardens  # noqa: E402
import harness  # noqa: E402
import programs  # noqa: E402
from cluster import eventually  # noqa: E402
from gardens import MEMORY, PATIENCE, SMALL_FLAGS, Gardens, forget_cache  # noqa: E402
from host import Host  # noqa: E402

MINUTES = float(os.environ.get("HANGAR_EDGE_MINUTES", "60"))
# In each of ten namespaces: ten operators in Rust, of two programs, and one in Go.
NAMESPACES = 10
EACH = [programs.RING, *[programs.ANSWERS] * 9, programs.WEBSITES]
# Each operator has work about once in two minutes, and one is replaced each ten seconds.
QUESTIONS_A_SECOND = 1
REPLACED_EVERY = 10


class Small:
    """The host in its machine."""

    def __init__(self, all_gardens, directory):
        self.gardens, self.directory = all_gardens, directory
        self.machine = harness.SmallMachine("hangar-edge-test", MEMORY)
        self.host = Host(all_gardens.cluster.kubeconfig, directory, *all_gardens.flags(), *SMALL_FLAGS, inside=self.machine.inside())

    def has_lost_nothing(self):
        """All operators answer and sleep, and the kernel has ended nobody."""
        self.gardens.settle(self.host)
        assert self.host.process.poll() is None, f"the host has ended:\n{self.host.tail()}"
        assert self.machine.kills() == 0

    def close(self):
        self.host.stop()
        self.machine.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    made = Gardens(NAMESPACES, EACH)
    host = running = None
    try:
        directory = tmp_path_factory.mktemp("small") / "host"
        host = Host(made.cluster.kubeconfig, directory, *made.flags())
        made.begin(host)
        host.stop()
        forget_cache(host)
        try:
            running = Small(made, directory)
        except OSError as error:
            pytest.skip(f"this machine does not allow a cgroup: {error}")
        made.settle(running.host)
        yield running
    finally:
        if running:
            running.close()
        elif host:
            host.stop()
        made.close()


def test_a_hundred_operators_in_rust_and_ten_in_go_lose_nothing_in_an_hour_of_churn(small):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    ends, replaces = time.monotonic() + 60 * MINUTES, time.monotonic() + REPLACED_EVERY
    asked, replaced, late = 0, 0, {}

    while time.monotonic() < ends:
        unit = dice.choice(small.gardens.units)
        # A question before the last one was answered would hide that it was lost.
        if not late.get(unit.key()) or small.gardens.has_answered(unit):
            small.gardens.ask(unit)
            late[unit.key()] = True
            asked += 1
        else:
            assert time.monotonic() - unit.asked_at < PATIENCE, f"{unit.key()} does not answer question {unit.number}\n{small.host.tail()}"
        if time.monotonic() > replaces:
            small.gardens.replace(dice.choice(small.gardens.units))
            replaces, replaced = time.monotonic() + REPLACED_EVERY, replaced + 1
        time.sleep(1 / QUESTIONS_A_SECOND)

    print(f"{asked} questions, {replaced} operators replaced, peak {small.machine.peak_memory():.0f} MiB, now {small.machine.memory()}, "
          f"{small.host.metrics()['hangar_operator_failures_total']:.0f} failures of guests")
    small.has_lost_nothing()


def test_a_limit_lowered_below_what_is_in_use_ends_nobody(small):
    small.gardens.wait_until_asleep(small.host, 300)
    for unit in small.gardens.units:
        small.gardens.ask(unit)
    lower = round(0.75 * MEMORY)

    # Version 1 refuses a limit that the kernel cannot reach at once: until the host has given memory back.
    def is_lowered():
        try:
            small.machine.limit_memory(lower)
        except OSError:
            return False
        return True
    eventually(is_lowered, "the limit is lowered", 120)

    try:
        small.has_lost_nothing()
    finally:
        small.machine.limit_memory(MEMORY)


@pytest.fixture
def slow_disk(small):
    """1 MB/s from the disk of the host's cache, by the hierarchy `blkio` of version 1 or io.max of version 2."""
    status = os.stat(small.directory)
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    root = pathlib.Path("/sys/fs/cgroup")
    directory = root / "blkio/hangar-edge-slow" if (root / "blkio").exists() else small.machine.memory_directory
    try:
        directory.mkdir(exist_ok=True)
        if (root / "blkio").exists():
            for way in ("read", "write"):
                (directory / f"blkio.throttle.{way}_bps_device").write_text(f"{device} 1000000")
            (directory / "cgroup.procs").write_text(str(small.host.process.pid))
        else:
            (root / "cgroup.subtree_control").write_text("+io")
            (directory / "io.max").write_text(f"{device} rbps=1000000 wbps=1000000")
    except OSError as error:
        pytest.skip(f"this machine cannot make the disk {device} slow: {error}")
    yield
    if (root / "blkio").exists():
        (root / "blkio/cgroup.procs").write_text(str(small.host.process.pid))
        directory.rmdir()
    else:
        (directory / "io.max").write_text(f"{device} rbps=max wbps=max")


def test_a_disk_of_1_mb_a_second_makes_it_slower_only(small, slow_disk):
    small.gardens.wait_until_asleep(small.host, 600)
    # Whatever woke last is read from the disk again.
    forget_cache(small.host)
    began = time.monotonic()
    # Probes have a deadline of their own, whatever the disk does.
    assert small.host.get("/healthz")[0] == 200

    some = [unit for unit in small.gardens.units if unit.program is not programs.WEBSITES][:20]
    for unit in some:
        small.gardens.ask(unit)
    lost = small.gardens.wait_for_answers(some, gardens.PATIENCE)
    assert not lost, f"without an answer after {time.monotonic() - began:.0f} s: {[unit.key() for unit in lost]}\n{small.host.tail()}"
    assert small.machine.kills() == 0
    assert small.host.get("/healthz")[0] == 200
