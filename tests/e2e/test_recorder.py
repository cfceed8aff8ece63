"""The flight recorder: what `hangar timeline` tells is what the API server saw."""
import collections
import json
import os
import pathlib
import subprocess
import time

import pytest

import operators
from cluster import ROOT, eventually
from conftest import control_plane
from host import BINARY, Host
from operators import EVERYTHING, OPERATOR, allow, create_config_map, create_ring_object, lines, nonce, phase, send_nonce

WRITES = ("create", "update", "patch", "delete", "deletecollection")


@pytest.fixture(scope="module")
def audited():
    """A control plane that writes down what it is asked."""
    made = control_plane("--with-kcm", "--audit")
    made.apply_crds(ROOT / "examples/ring/testresources.yaml")
    made.learn(*operators.TEST_RESOURCES, "testresources")
    yield made
    made.close()


@pytest.fixture
def recording(audited, tmp_path):
    host = Host(audited.kubeconfig, tmp_path / "host")
    yield host
    host.stop()


@pytest.fixture
def place(audited, unique):
    name = f"ns-{unique}"
    audited.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    for one in audited.request("GET", audited.path(*OPERATOR, name))["items"]:
        audited.delete(*OPERATOR, one["metadata"]["name"], name)
    audited.delete("v1", "Namespace", name)


def records_of(host):
    return host.directory / "cache" / "recorder"


def timeline(host, name, namespace, *flags):
    return subprocess.run([str(BINARY), "timeline", name, "-n", namespace, f"--module-cache-dir={host.directory / 'cache'}", *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)


def turns(host, name, namespace):
    done = timeline(host, name, namespace, "--turns=100000", "-o", "json")
    return json.loads(done.stdout)["turns"] if done.returncode == 0 else []


def audited_writes(cluster, namespace, account="default"):
    """What an identity wrote, as {(verb, resource, name, status): how often}."""
    counts = collections.Counter()
    for line in (pathlib.Path(cluster.env["HANGAR_CP_LOG_DIR"]) / "audit.log").read_text().splitlines():
        event = json.loads(line)
        if event.get("impersonatedUser", {}).get("username") != f"system:serviceaccount:{namespace}:{account}":
            continue
        if event["stage"] == "ResponseComplete" and event["verb"] in WRITES:
            where = event["objectRef"]
            counts[(event["verb"], where["resource"], where.get("name", ""), event["responseStatus"]["code"])] += 1
    return counts


def recorded_writes(found):
    counts = collections.Counter()
    for turn in found:
        for request in turn["requests"]:
            if request["verb"] in WRITES:
                # The audit log has the name of what is created where the answer was no object.
                name = request["object"].get("name", "")
                counts[(request["verb"], request["resource"], name, request.get("status", 0))] += 1
    return counts


def mirror(cluster, namespace):
    allow(cluster, namespace, *EVERYTHING)
    cluster.create(operators.manifest("mirror", namespace, wasm="label_mirror", env=[{"name": "NAMESPACE", "value": namespace}],
                                      sleep={"after": "0s"}))
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "source", "namespace": namespace, "labels": {"mirror-to": "copy"}}, "data": {"step": "0"}})


def copied(cluster, namespace):
    return ((cluster.get("v1", "ConfigMap", "copy", namespace) or {}).get("data") or {}).get("step")


def change(cluster, namespace, step):
    cluster.patch("v1", "ConfigMap", "source", {"data": {"step": str(step)}}, namespace)
    eventually(lambda: copied(cluster, namespace) == str(step), f"step {step} is copied", 60)


def test_every_write_of_an_operator_is_recorded(audited, recording, place):
    mirror(audited, place)
    eventually(lambda: copied(audited, place) == "0", "there is a copy", 60)
    for step in range(1, 11):
        change(audited, place, step)
    eventually(lambda: phase(audited.get(*OPERATOR, "mirror", place)) == "Asleep", "it sleeps", 30)

    expected = audited_writes(audited, place)
    assert sum(expected.values()) >= 11
    eventually(lambda: recorded_writes(turns(recording, "mirror", place)) == expected, "what was written is recorded")

    found = turns(recording, "mirror", place)
    copy = audited.get("v1", "ConfigMap", "copy", place)
    writes = [(turn, request) for turn in found for request in turn["requests"]
              if request["verb"] in WRITES and request["object"].get("name") == "copy"]
    last_turn, last = writes[-1]
    assert last["object"]["resourceVersion"] == copy["metadata"]["resourceVersion"]
    assert last_turn["user"] == f"system:serviceaccount:{place}:default"
    assert len(last_turn["module"]) == 64 and last_turn["uid"] == audited.get(*OPERATOR, "mirror", place)["metadata"]["uid"]
    source = audited.get("v1", "ConfigMap", "source", place)["metadata"]["resourceVersion"]
    assert any(cause["cause"] == "modified" and cause["object"]["name"] == "source" and cause["object"]["resourceVersion"] == source
               for turn in found for cause in turn["causes"])
    assert any(turn["wasAsleep"] and turn["cpuMicroseconds"] > 0 for turn in found)
    assert any(turn.get("diskBytes", 0) > 0 for turn in found)


def test_what_secrets_hold_is_not_recorded(audited, recording, place):
    allow(audited, place, *EVERYTHING, resources=("secrets",))
    allow(audited, place, *EVERYTHING)
    audited.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "namespace": place},
                    "stringData": {"key": "correct horse battery staple"}})
    audited.create(operators.manifest("reader", place, f"get=/api/v1/namespaces/{place}/secrets/password", "wait", "--", "tick=3600000"))
    eventually(lambda: any(cause["cause"] == "answer" for turn in turns(recording, "reader", place) for cause in turn["causes"]),
               "it has read the Secret", 60)
    kept = b"".join(path.read_bytes() for path in records_of(recording).iterdir())
    assert b"correct horse" not in kept and b"Y29ycmVjdCBob3Jz" not in kept


def test_records_are_their_users_alone(audited, recording, place):
    mirror(audited, place)
    eventually(lambda: turns(recording, "mirror", place), "turns are recorded", 60)
    directory = records_of(recording)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in directory.iterdir())


def test_a_killed_host_loses_a_second_at_most(audited, recording, place):
    mirror(audited, place)
    eventually(lambda: copied(audited, place) == "0", "there is a copy", 60)
    change(audited, place, 1)
    before = audited_writes(audited, place)
    time.sleep(1.2)  # The claim is about time.
    recording.kill()
    assert not before - recorded_writes(turns(recording, "mirror", place))

    recording.start()
    change(audited, place, 2)
    eventually(lambda: not audited_writes(audited, place) - recorded_writes(turns(recording, "mirror", place)), "both are there")
    found = turns(recording, "mirror", place)
    assert len({turn["host"] for turn in found}) == 2
    assert len(list(records_of(recording).iterdir())) == 2


def test_a_full_disk_ends_recording_and_nothing_else(audited, place, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a file system of its own needs root")
    directory = tmp_path / "host"
    (directory / "cache" / "recorder").mkdir(parents=True, mode=0o700)
    records = directory / "cache" / "recorder"
    mount = f'mount -t tmpfs -o size=64k,mode=0700 records "{records}" && exec "$@"'
    host = Host(audited.kubeconfig, directory, inside=("unshare", "--mount", "--", "sh", "-c", mount, "sh"))
    try:
        inside = pathlib.Path(f"/proc/{host.process.pid}/root") / str(records).lstrip("/")
        filler = inside / "filler"
        filler.write_bytes(b"x" * 48 * 1024)
        mirror(audited, place)
        eventually(lambda: copied(audited, place) == "0", "there is a copy", 60)
        step = 0
        while host.metrics().get("hangar_recorder_stopped") != 1:
            step += 1
            assert step < 300, "the disk is never full"
            change(audited, place, step)
        for _ in range(3):
            step += 1
            change(audited, place, step)
        assert host.log.read_text().count("turns are not recorded") == 1
        assert host.metrics()["hangar_recorder_lost_total"] > 0

        filler.unlink()

        def goes_on():
            nonlocal step
            step += 1
            change(audited, place, step)
            return host.metrics()["hangar_recorder_stopped"] == 0
        eventually(goes_on, "it is recorded again", 40)
        assert "turns are recorded again" in host.log.read_text()
    finally:
        host.stop()


def test_a_timeline_is_for_people(audited, recording, place):
    create_ring_object(audited, place)
    allow(audited, place, *EVERYTHING, resources=("testresources",))
    audited.create(operators.manifest("copier", place, wasm=operators.RING, env=[
        {"name": "IN_NAMESPACE", "value": place}, {"name": "OUT_NAMESPACE", "value": place}]))
    eventually(lambda: turns(recording, "copier", place), "it runs", 60)
    create_config_map(audited, "other", place)
    send_nonce(audited, place, 5)
    eventually(lambda: f"modified TestResource.amurant.io {place}/run" in timeline(recording, "copier", place).stdout, "the event is shown")
    assert nonce(audited, place) == 5
    shown = timeline(recording, "copier", place).stdout
    assert "Module sha256:" in shown and "-> watch testresources.amurant.io" in shown and "Records go back to" in shown

    slowest = timeline(recording, "copier", place, "--slowest", "--turns=1")
    took = max(turn["waitedMicroseconds"] + turn["ranMicroseconds"] for turn in turns(recording, "copier", place))
    only, = json.loads(timeline(recording, "copier", place, "--slowest", "--turns=1", "-o", "json").stdout)["turns"]
    assert slowest.stdout.count("  turn ") == 1 and only["waitedMicroseconds"] + only["ranMicroseconds"] == took

    unknown = timeline(recording, "nobody", place)
    assert unknown.returncode == 1 and f"no turn of {place}/nobody is recorded; records go back to" in unknown.stderr


def test_nothing_is_recorded_where_that_is_off(audited, place, tmp_path):
    host = Host(audited.kubeconfig, tmp_path / "host", "--recorder-bytes=0")
    try:
        audited.create(operators.manifest("done", place, "print=up", "exit=0"))
        eventually(lambda: "up" in lines(host, "done", place), "it ran", 60)
        assert not records_of(host).exists()
        assert "hangar_recorder_records_total" not in host.metrics()
    finally:
        host.stop()


@pytest.mark.parametrize("value", ["1Ki", "much", "-1"])
def test_a_bound_that_is_wrong_is_named(value):
    done = subprocess.run([str(BINARY), "host", f"--recorder-bytes={value}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 2 and "--recorder-bytes" in done.stderr
