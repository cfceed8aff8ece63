"""The flight recorder: `hangar timeline` shows the same requests as the audit log of the API server."""
import collections
import json
import os
import pathlib
import subprocess
import time

import pytest

import airways
import operators
import workflows
from cluster import ROOT, eventually, is_ready
from confined import mounting
from conftest import COMPILED, control_plane
from host import BINARY, Host
from operators import EVERYTHING, OPERATOR, allow, copier, create_config_map, create_ring_object, lines, nonce, phase, send_nonce

WRITES = ("create", "update", "patch", "delete", "deletecollection")


@pytest.fixture(scope="module")
def audited():
    """A control plane with an audit log."""
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
    """The writes of an identity, as {(verb, resource, name, status): count}."""
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
                # The record of a failed create has no name, unlike the audit log.
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


def named(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name}


def applies(name):
    return {"type": "APPLY", "params": {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"step": "0"}}}}


def test_every_write_for_a_workflow_is_recorded(audited, recording, place):
    workflows.allow(audited, place)
    workflows.module(audited, place, "conductor", workflows.bundle(workflows.CONDUCTOR))
    audited.create(workflows.workflow("all", place, "conductor", input={"rounds": [
        [applies("made"), applies("other")],
        [{"type": "PATCH", "params": {**named("made"), "patch": {"data": {"step": "1"}}}}],
        [{"type": "WAIT_FOR", "params": {**named("made"), "jsonPath": "{.data.ready}"}}],
        [{"type": "EMIT", "params": {"reason": "Noted", "message": "by a machine"}}],
        [{"type": "DELETE", "params": named("made")}],
        [{"type": "DELETE_RESOURCES"}]]}))
    eventually(lambda: [one["type"] for one in workflows.status(audited, place, "all").get("outbox", [])] == ["WAIT_FOR"], "it waits", 120)
    audited.patch("v1", "ConfigMap", "made", {"data": {"ready": "yes"}}, place)
    workflows.reaches(audited, place, "all", "done", 120)

    expected = audited_writes(audited, place)
    assert sum(expected.values()) >= 6

    def done():
        own = ("patch", "statefulworkflows", "all", 200)
        counts = recorded_writes(turns(recording, "workflow/all", place))
        statuses = counts.pop(own, 0)
        return counts == expected and statuses == status_writes(audited, place, "all")
    eventually(done, "what was written is recorded", 60)
    found = turns(recording, "workflow/all", place)
    assert all(turn["contract"] == "workflow" and turn["user"] == f"system:serviceaccount:{place}:default" for turn in found)
    assert any(turn["cpuMicroseconds"] > 0 and turn["memoryBytes"] > 0 for turn in found)
    assert found[-1]["outcome"] == "completed" and len(found[-1]["module"]) == 64
    for name in ("made", "other"):
        tells_of_every_write(recording, audited, place, name, ("workflow", "all"))


@pytest.fixture
def craft(audited, recording, place, unique):
    """A function that has an instance's flight emit these ConfigMaps, with the rights of the account `flights`; and the instance's name."""
    kind, plural, group = f"Craft{unique}", f"craft{unique}s", "e2e.hangar.dev"
    allow(audited, place, "get", "create", "patch", "delete", account="flights")
    manifest = airways.airway(plural, kind, airways.flight("behave"))
    manifest["metadata"]["annotations"] = {"hangar.dev/service-account": "flights"}
    audited.apply(manifest)
    audited.learn(f"{group}/v1", kind, plural)
    airway = (manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])
    eventually(lambda: is_ready(audited.get(*airway)), "the Airway is ready", COMPILED)

    def emit(step, *names):
        made = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"step": step}} for name in names]
        audited.apply(airways.instance(kind, "it", {"behaviour": "raw", "stdout": json.dumps(made)}, place))
        eventually(lambda: all(((audited.get("v1", "ConfigMap", name, place) or {}).get("data") or {}).get("step") == step for name in names),
                   f"step {step} is made", 60)
    yield emit, f"{plural}.{group}/it"
    audited.delete(f"{group}/v1", kind, "it", place)
    eventually(lambda: audited.get(f"{group}/v1", kind, "it", place) is None, "the instance is gone", 60)
    audited.delete(*airway)


def test_every_write_of_a_flight_is_recorded(audited, recording, place, craft):
    emit, name = craft
    emit("0", "first", "second")
    emit("1", "first", "second")
    emit("2", "kept")
    for pruned in ("first", "second"):
        eventually(lambda pruned=pruned: audited.get("v1", "ConfigMap", pruned, place) is None, f"{pruned} is pruned", 60)

    def done():
        expected = audited_writes(audited, place, "flights")
        recorded = recorded_writes(turns(recording, name, place))
        return expected if collections.Counter({key: count for key, count in recorded.items() if key[1] == "configmaps"}) == expected else None
    expected = eventually(done, "what was written is recorded", 60)
    for one in ("first", "second"):
        # The first one of each is also rehearsed, as a dry run.
        assert expected[("patch", "configmaps", one, 201)] >= 1 and expected[("patch", "configmaps", one, 200)] >= 1
        assert expected[("delete", "configmaps", one, 200)] == 1
    found = turns(recording, name, place)
    assert all(turn["contract"] == "airway" and turn["user"] == f"system:serviceaccount:{place}:flights" for turn in found)
    for one in ("first", "second", "kept"):
        tells_of_every_write(recording, audited, place, one, ("airway", name))


def status_writes(cluster, namespace, name):
    """The number of patches of a workflow by the host, dry runs included."""
    count = 0
    for line in (pathlib.Path(cluster.env["HANGAR_CP_LOG_DIR"]) / "audit.log").read_text().splitlines():
        event = json.loads(line)
        where = event.get("objectRef", {})
        is_it = (where.get("resource"), where.get("namespace"), where.get("name")) == ("statefulworkflows", namespace, name)
        count += is_it and event["stage"] == "ResponseComplete" and event["verb"] == "patch"
    return count


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
    time.sleep(1.2)  # The test is about this time.
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
        pytest.skip("only root sees the file system of a process that hides its memory")
    directory = tmp_path / "host"
    (directory / "cache" / "recorder").mkdir(parents=True, mode=0o700)
    records = directory / "cache" / "recorder"
    mount = f'mount -t tmpfs -o "size=64k,mode=0700,$owner" records "{records}"'
    host = Host(audited.kubeconfig, directory, inside=mounting(mount))
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
        eventually(lambda: "turns are recorded again" in host.log.read_text(), "that is said")
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


# Why -------------------------------------------------------------------------------------------------


def why(host, cluster, *arguments):
    return subprocess.run([str(BINARY), "why", *arguments, f"--kubeconfig={cluster.kubeconfig}", f"--module-cache-dir={host.directory / 'cache'}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


def why_json(host, cluster, *arguments):
    done = why(host, cluster, *arguments, "-o", "json", "--writes=1000")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def writes_in(found):
    """The writes in the output of `hangar why -o json`, as (turn, request)."""
    return [(found["turns"][write["turn"]], found["turns"][write["turn"]]["requests"][write["request"]]) for write in found["writes"]]


def audited_changes(cluster, namespace, resource, name):
    """Successful writes by service accounts on one object, without dry runs, as {(account, verb, status): count}."""
    counts = collections.Counter()
    for line in (pathlib.Path(cluster.env["HANGAR_CP_LOG_DIR"]) / "audit.log").read_text().splitlines():
        event = json.loads(line)
        where = event.get("objectRef", {})
        user = event.get("impersonatedUser", {}).get("username", "")
        if (event["stage"], where.get("resource"), where.get("namespace"), where.get("name")) != ("ResponseComplete", resource, namespace, name):
            continue
        if event["verb"] in WRITES and "dryRun=" not in event["requestURI"] and user and event["responseStatus"]["code"] < 300:
            counts[(user, event["verb"], event["responseStatus"]["code"])] += 1
    return counts


def changes_in(found):
    return collections.Counter((turn["user"], request["verb"], request.get("status", 0)) for turn, request in writes_in(found))


def tells_of_every_write(host, cluster, namespace, name, guest):
    """`hangar why` has all writes on a ConfigMap that the audit log has of service accounts, and each leads to a turn of the guest."""
    expected = audited_changes(cluster, namespace, "configmaps", name)
    assert sum(expected.values()) >= 1
    found = why_json(host, cluster, f"configmap/{name}", "-n", namespace)
    assert changes_in(found) == expected
    contract, of = guest
    assert all((turn["contract"], turn["name"].removeprefix("statefulworkflows.workflows.example.com/")) == (contract, of) for turn, _ in writes_in(found))
    assert all(turn["causes"] for turn, _ in writes_in(found))


def causes_back(found, turn, seen=()):
    """All events that led to a turn, directly or through other turns."""
    events = []
    for cause in turn["causes"]:
        if "object" in cause:
            events.append(cause)
        if "turn" in cause and cause["turn"] not in seen:
            events += causes_back(found, found["turns"][cause["turn"]], (*seen, cause["turn"]))
    return events


@pytest.fixture
def chain(audited, unique):
    """Three namespaces, each with an object for the operators of the ring."""
    names = [f"ns-{unique}-{index}" for index in range(3)]
    for name in names:
        audited.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        create_ring_object(audited, name)
    yield names
    for name in names:
        for one in audited.request("GET", audited.path(*OPERATOR, name))["items"]:
            audited.delete(*OPERATOR, one["metadata"]["name"], name)
        audited.delete("v1", "Namespace", name)


def test_why_leads_from_a_write_to_who_began_it(audited, recording, chain):
    first, second, third = chain
    copier(audited, first, second)
    copier(audited, second, third)
    for value in range(1, 6):
        send_nonce(audited, first, value)
        eventually(lambda value=value: nonce(audited, third) == value, f"nonce {value} arrives", 60)

    expected = audited_changes(audited, third, "testresources", "run")
    assert sum(expected.values()) >= 5
    eventually(lambda: changes_in(why_json(recording, audited, "testresource.amurant.io/run", "-n", third)) == expected,
               "no write is missing")
    found = why_json(recording, audited, "testresource.amurant.io/run", "-n", third)
    turn, request = writes_in(found)[0]
    assert request["object"]["resourceVersion"] == audited.get(*operators.TEST_RESOURCES, "run", third)["metadata"]["resourceVersion"]
    assert (turn["namespace"], turn["name"]) == (second, "copier")

    # Back over the other operator's write to the person's write, which the object's managedFields name.
    began = [cause for cause in causes_back(found, turn) if cause["object"]["namespace"] == first and "writtenBy" in cause]
    manager = next(one for one in audited.get(*operators.TEST_RESOURCES, "run", first)["metadata"]["managedFields"]
                   if "f:nonce" in one["fieldsV1"].get("f:spec", {}))
    assert any((by["manager"], by["operation"]) == (manager["manager"], manager["operation"]) for cause in began for by in cause["writtenBy"])
    assert any("turn" in cause and found["turns"][cause["turn"]]["namespace"] == first
               for cause in causes_back(found, turn) if cause["object"]["namespace"] == second)

    shown = why(recording, audited, "testresources.amurant.io/run", "-n", third, "--writes=1")
    assert shown.returncode == 0, shown.stderr
    told = shown.stdout
    assert "which was written from here" in told and f"of operator {second}/copier" in told and f"of operator {first}/copier" in told
    assert f"{manager['manager']} (Update at " in told and "Records go back to" in told

    field = why(recording, audited, "TestResource.amurant.io/run", "-n", third, "--field=.spec.nonce").stdout
    assert ".spec.nonce was set by hangar (Update at" in field and f"of operator {second}/copier" in field
    nobody = why(recording, audited, "testresource/run", "-n", third, "--field=.spec.other").stdout
    assert "Nobody owns .spec.other." in nobody

    drawn = why(recording, audited, "testresource/run", "-n", third, "-o", "mermaid").stdout
    assert drawn.startswith("flowchart LR\n") and f"operator {second}/copier" in drawn and "| object" in drawn


def test_why_tells_of_every_write_of_a_go_operator(audited, recording, place):
    audited.apply_crds(ROOT / "examples/website/crd.yaml")
    audited.learn("examples.hangar.dev/v1", "Website", "websites")
    grants = (("examples.hangar.dev", ["websites", "websites/status"]), ("apps", ["deployments"]))
    prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place}"
    audited.request("POST", f"{prefix}/roles", {"metadata": {"name": "website"}, "rules": [
        {"apiGroups": [group], "resources": resources, "verbs": list(EVERYTHING)} for group, resources in grants]})
    audited.request("POST", f"{prefix}/rolebindings", {
        "metadata": {"name": "website"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "website"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": place}]})
    audited.create(operators.manifest("website", place, wasm="website", env=[{"name": "NAMESPACE", "value": place}],
                                      sleep={"after": "200ms"}, limits={"memory": "256Mi"}))
    audited.create({"apiVersion": "examples.hangar.dev/v1", "kind": "Website", "metadata": {"name": "shop", "namespace": place},
                    "spec": {"image": "example.com/server:1", "replicas": 2}})

    def replicas():
        return ((audited.get("apps/v1", "Deployment", "shop", place) or {}).get("spec") or {}).get("replicas")
    eventually(lambda: replicas() == 2, "the Deployment is there", COMPILED)
    audited.patch("examples.hangar.dev/v1", "Website", "shop", {"spec": {"replicas": 5}}, place)
    eventually(lambda: replicas() == 5, "the Deployment follows", 60)

    for resource, verbs in (("deployments.apps", {"create", "update"}), ("websites.examples.hangar.dev", {"update"})):
        def is_told(resource=resource, verbs=verbs):
            expected = audited_changes(audited, place, resource.split(".", maxsplit=1)[0], "shop")
            found = why_json(recording, audited, f"{resource}/shop", "-n", place)
            return verbs <= {verb for _, verb, _ in expected} and changes_in(found) == expected and all(turn["causes"] for turn, _ in writes_in(found))
        eventually(is_told, f"no write on {resource} is missing", 60)


def test_why_tells_of_what_others_wrote(audited, recording, place):
    create_config_map(audited, "manual", place, key="value")
    done = why(recording, audited, "configmap/manual", "-n", place)
    assert "which was written by" in done.stdout and "No write from here is held." in done.stdout

    gone = why(recording, audited, "cm/none", "-n", place)
    assert gone.returncode == 1 and 'the cluster serves no kind or resource "cm"' in gone.stderr
    gone = why(recording, audited, "configmaps/none", "-n", place)
    assert gone.returncode == 1 and "no write on it is recorded" in gone.stderr
    for wrong in ("configmap", "/a", "configmap/", "a/b/c"):
        assert why(recording, audited, wrong, "-n", place).returncode == 2
    assert why(recording, audited, "configmap/manual", "-n", place, "--field=spec").returncode == 2
    wrong = why(recording, audited, "configmap/manual", "-n", place, "--field=.data[0]")
    assert wrong.returncode == 2 and ".data is not a list" in wrong.stderr
    owned = why(recording, audited, f"namespace/{place}", "--field=.spec.finalizers[0]")
    assert owned.returncode == 0, owned.stderr


def test_why_goes_on_with_new_writes(audited, recording, place, tmp_path):
    mirror(audited, place)
    eventually(lambda: copied(audited, place) == "0", "there is a copy", 60)
    with open(tmp_path / "told", "wb") as told:
        follower = subprocess.Popen([str(BINARY), "why", "configmap/copy", "-n", place, "--follow", f"--kubeconfig={audited.kubeconfig}",
                                     f"--module-cache-dir={recording.directory / 'cache'}"], stdout=told, stderr=subprocess.PIPE)
    try:
        eventually(lambda: "configmaps" in (tmp_path / "told").read_text(), "the first write is told", 30)
        change(audited, place, 1)
        version = audited.get("v1", "ConfigMap", "copy", place)["metadata"]["resourceVersion"]
        eventually(lambda: version in (tmp_path / "told").read_text(), "the next one is told", 30)
    finally:
        follower.kill()
        follower.wait()
