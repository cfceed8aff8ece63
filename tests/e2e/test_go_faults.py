"""Faults of Go operators: each ends in a status with its reason, and the host serves the others (tests/guests/go_faults)."""
import os
import re
import shutil
import subprocess

import pytest

from airways import GUESTS
from cluster import ROOT, condition, eventually
from host import BINARY, Host
from operators import OPERATOR, allow, events_of, lines, manifest, phase

COMPILED = 300

# The build is shared.
pytestmark = pytest.mark.xdist_group("go_build")


@pytest.fixture(scope="module")
def module():
    built = GUESTS / "go_faults.wasm"
    done = subprocess.run([str(BINARY), "build", "go", str(ROOT / "tests/guests/go_faults"), "-o", str(built)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return built


@pytest.fixture
def faulty(cluster, host, namespace, operator, module):
    """Starts the operator with that fault, and waits until it has begun."""
    def begin(fault, **spec):
        spec.setdefault("limits", {"memory": "128Mi", "cpuTimePerWake": "2s", "logBytes": "16Ki"})
        operator(fault, fault, wasm="go_faults", sleep={"after": "200ms"}, **spec)
        eventually(lambda: f"begins {fault}" in lines(host, fault, namespace), "it has begun", COMPILED)
    yield begin


@pytest.fixture
def others_work(cluster, host, namespace, operator):
    def look(name="fine"):
        operator(name, f"print={name}", "wait")
        eventually(lambda: name in lines(host, name, namespace), "another operator works", 60)
    return look


def failed(cluster, namespace, name, words):
    """Waits for a restart whose reason matches the pattern `words`."""
    status = lambda: cluster.get(*OPERATOR, name, namespace).get("status", {})
    eventually(lambda: status().get("restarts", 0) > 0, "it has failed", 120)
    eventually(lambda: re.search(words, status().get("lastError", "")), f"it has failed by {words!r}, not by {status()}", 120)
    assert any(event["reason"] == "GuestFailed" and event["type"] == "Warning" and re.search(words, event["message"])
               for event in events_of(cluster, name, namespace))


def lives(cluster, namespace, name, wanted):
    """Waits until the operator is in that phase; it has never failed."""
    one = eventually(lambda: (lambda o: o if phase(o) == wanted else None)(cluster.get(*OPERATOR, name, namespace)), f"it is {wanted}", 60)
    assert one["status"]["restarts"] == 0, one["status"]


@pytest.mark.parametrize("fault, words", [
    ("spin", r"exceeded; at (runtime\.\S+ < )*main\.spin < .*likely a task that never waits"),
    # Go's runtime ends a program that has printed its goroutines by a trap.
    ("panic", r"unreachable executed; at runtime\..* < main\.panics\.func1 < .*; the guest printed: "
              r"panic: on purpose \(main\.panics\.func1 at \S*/main\.go:\d+\)"),
    ("method", r"unreachable executed; at runtime\..* < main\.\(\*job\[\.\.\.\]\)\.run < .*; the guest printed: "
               r"panic: \\x1b\[2J \(main\.\(\*job\[\.\.\.\]\)\.run at \S*/main\.go:\d+\)"),
    ("exit", r"exited with code 7"),
    ("deadlock", r"a deadlock"),
    ("allocate", r"unreachable executed; .*; the guest printed: fatal error: .*out of memory"),
    ("goroutines", r"unreachable executed; .*; the guest printed: fatal error: "),
])
def test_what_ends_a_program_is_in_its_status(cluster, host, namespace, faulty, others_work, fault, words):
    # Memory ends before the time of a turn does.
    faulty(fault, limits={"memory": "64Mi", "cpuTimePerWake": "2s" if fault == "spin" else "10s"})

    failed(cluster, namespace, fault, words)

    said = "\n".join(lines(host, fault, namespace))
    if fault == "panic":
        assert "panic: on purpose" in said and "main.panics" in said, "the output has the place"
    if fault in ("allocate", "goroutines"):
        assert "out of memory" in said
    others_work()
    assert host.rss_bytes() < 1 << 30


def test_a_timer_that_is_always_due_holds_up_nobody(cluster, host, namespace, faulty, others_work):
    faulty("tick")

    for round_ in range(3):
        others_work(f"fine{round_}")


def test_a_ticker_that_wakes_a_program_for_nothing_is_named(cluster, namespace, faulty):
    faulty("idle-ticker")

    seen = lambda: condition(cluster.get(*OPERATOR, "idle-ticker", namespace), "Restless")
    eventually(lambda: seen().get("status") == "True", "it is restless", 90)
    assert "a timer of the guest wakes it every " in seen()["message"]
    lives(cluster, namespace, "idle-ticker", "Asleep")


def test_a_program_that_prints_without_end_is_cut_and_goes_on(cluster, host, namespace, faulty, others_work):
    faulty("print")

    eventually(lambda: any("more bytes were dropped" in line for line in lines(host, "print", namespace)), "its output was cut", 60)
    others_work()
    assert cluster.get(*OPERATOR, "print", namespace)["status"].get("restarts", 0) == 0


def test_many_timers_are_one_for_the_host_and_let_the_program_sleep(cluster, host, namespace, faulty):
    faulty("timers")

    eventually(lambda: "set" in lines(host, "timers", namespace), "all are set", 60)
    lives(cluster, namespace, "timers", "Asleep")
    assert "rang" not in lines(host, "timers", namespace)


def test_watches_that_are_cancelled_at_once_leave_nothing_behind(cluster, host, namespace, faulty):
    allow(cluster, namespace, "get", "list", "watch")
    faulty("watches")

    eventually(lambda: "cancelled 1000" in lines(host, "watches", namespace), "all were begun and cancelled", 120)
    eventually(lambda: "asked: 200" in lines(host, "watches", namespace), "it is served as before", 120)
    lives(cluster, namespace, "watches", "Asleep")


def test_nothing_outside_is_reached_or_written_and_the_program_goes_on(cluster, host, namespace, faulty):
    faulty("sockets")
    faulty("write")

    eventually(lambda: "listens" in lines(host, "sockets", namespace), "it has tried all", 60)
    said = lines(host, "sockets", namespace)
    assert "dialled: true" in said and "sent by UDP: false" in said
    assert any("only https reaches other servers than the API server" in line for line in said)
    eventually(lambda: "removed: false" in lines(host, "write", namespace), "it has tried all", 60)
    assert [line for line in lines(host, "write", namespace) if line.endswith("true")] == []
    for name in ("sockets", "write"):
        lives(cluster, namespace, name, "Asleep")
    assert "somebody came" not in said


def test_a_host_that_ends_while_it_compiles_ends_cleanly(own_cluster, own_namespace, module, tmp_path):
    # Bytes that no other test has: a custom section without a name, of 16 bytes.
    never_seen = tmp_path / "never_seen.wasm"
    shutil.copy(module, never_seen)
    with open(never_seen, "ab") as file:
        file.write(b"\0\x11\0" + os.urandom(16))
    host = Host(own_cluster.kubeconfig, tmp_path / "host", "--features=operators")
    own_cluster.create(manifest("new", own_namespace, "exit", module={"url": str(never_seen)}, limits={"memory": "128Mi"}))
    told = lambda: condition(own_cluster.get(*OPERATOR, "new", own_namespace), "Stalled").get("message", "")
    eventually(lambda: "compiling" in told(), "the module is being compiled", 60)

    assert host.stop() == 0

    assert "assertion" not in host.log.read_text(errors="replace")
    host.start()
    eventually(lambda: "exited with code 7" in own_cluster.get(*OPERATOR, "new", own_namespace)["status"].get("lastError", ""),
               "the next host compiles it", COMPILED)
    own_cluster.delete(*OPERATOR, "new", own_namespace)
    assert host.stop() == 0
