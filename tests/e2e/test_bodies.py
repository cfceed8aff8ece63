"""Recorded bodies of writes: where an operator asks and its policies allow it, without secrets, and for who may get what it read."""
import json
import subprocess

import pytest

import operators
import users
from cluster import KINDS, eventually
from host import BINARY, to_its_end
from operators import EVERYTHING, OPERATOR, allow, events_of
from shown import SYSTEM, records_cluster, showing_host

POLICY = ("hangar.dev/v1alpha1", "TenantPolicy")
KINDS[POLICY] = ("/apis/hangar.dev/v1alpha1", "tenantpolicies", False)
LABEL = "kubernetes.io/metadata.name"
SECRET = "hunter2-of-the-test"


@pytest.fixture(scope="module")
def seen():
    made = records_cluster()
    yield made
    made.close()


@pytest.fixture(scope="module")
def showing(seen, tmp_path_factory):
    yield from to_its_end(showing_host(seen, tmp_path_factory.mktemp("host")))


@pytest.fixture
def team(seen, unique):
    name = f"ns-{unique}"
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    allow(seen, name, *EVERYTHING, resources=("configmaps", "secrets"))
    yield name
    for one in seen.request("GET", seen.path(*OPERATOR, name))["items"]:
        seen.delete(*OPERATOR, one["metadata"]["name"], name)
    seen.delete("v1", "Namespace", name)


@pytest.fixture
def policy(seen, team):
    made = set()

    def apply(name, **spec):
        made.add(f"{team}-{name}")
        seen.apply({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": f"{team}-{name}"},
                    "spec": {"namespaceSelector": {"matchLabels": {LABEL: team}}, **spec}})
        return f"{team}-{name}"
    yield apply
    for name in made:
        seen.delete(*POLICY, name)


def writing(namespace, name, kind="ConfigMap", **more):
    """A step that creates an object with a secret in it. `more`: further data."""
    text = json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": name},
                       "data" if kind == "ConfigMap" else "stringData": {
                           "plain": "seen", "DB_PASSWORD": SECRET, "settings": f"user=me\npassword={SECRET}\n", **more}})
    return f"request=POST,/api/v1/namespaces/{namespace}/{kind.lower()}s,{text}"


def written(seen, name, namespace):
    return eventually(lambda: seen.get("v1", "ConfigMap", name, namespace), f"{name} is written", 120)


def condition(seen, name, namespace):
    one = seen.get(*OPERATOR, name, namespace) or {}
    found = [each for each in one.get("status", {}).get("conditions", []) if each["type"] == "RecordsBodies"]
    return found[0] if found else {}


def hangar(command, kubeconfig, *arguments):
    done = subprocess.run([str(BINARY), command, *arguments, f"--kubeconfig={kubeconfig}", f"--host-namespace={SYSTEM}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    return done.stdout if done.returncode == 0 else ""


def write_of(kubeconfig, name, namespace, object_name):
    """The recorded request that created an object, once it is recorded with its answer."""
    def look():
        shown = hangar("timeline", kubeconfig, name, "-n", namespace, "-o", "json")
        for turn in json.loads(shown or "{}").get("turns", []):
            for request in turn["requests"]:
                if request["verb"] == "create" and request.get("status") == 201 and request["object"]["name"] == object_name:
                    return request
        return None
    return eventually(look, f"the creation of {object_name} is recorded", 60)


def test_bodies_are_recorded_where_the_operator_asks_and_a_policy_allows_it(seen, showing, team, policy):
    seen.create(operators.manifest("writer", team, writing(team, "first"), "wait", "--", "tick=3600000", record="Bodies"))
    written(seen, "first", team)
    said = eventually(lambda: condition(seen, "writer", team), "it says that they are not recorded", 60)
    assert said["status"] == "False" and said["reason"] == "RefusedByPolicy" and "no TenantPolicy" in said["message"], said
    assert "bodyState" not in write_of(seen.kubeconfig, "writer", team, "first")

    def told():
        return [event for event in events_of(seen, "writer", team) if event["reason"] == "BodiesNotRecorded"]
    assert "records.bodies" in eventually(told, "an Event says so", 60)[0]["message"]

    policy("allows", records={"bodies": True})
    eventually(lambda: condition(seen, "writer", team).get("status") == "True", "now they are recorded", 60)
    steps = [writing(team, "second"), writing(team, "hidden", "Secret"), "wait", "--", "tick=3600000"]
    seen.patch(*OPERATOR, "writer", {"spec": {"args": steps}}, team)
    written(seen, "second", team)
    write = write_of(seen.kubeconfig, "writer", team, "second")
    assert write["bodyState"] == "whole", write
    data = json.loads(write["body"])["data"]
    assert data["plain"] == "seen" and data["DB_PASSWORD"].startswith("hmac:") and data["settings"].startswith("hmac:"), data
    assert "bodyState" not in write_of(seen.kubeconfig, "writer", team, "hidden")

    text = hangar("timeline", seen.kubeconfig, "writer", "-n", team, "--bodies")
    assert '"plain":"seen"' in text and "hmac:" in text and SECRET not in text
    assert "seen" not in hangar("timeline", seen.kubeconfig, "writer", "-n", team)
    why = hangar("why", seen.kubeconfig, "configmap/second", "-n", team, "-o", "json")
    assert [request["body"] for turn in json.loads(why)["turns"] for request in turn["requests"] if "body" in request] == [write["body"]]
    assert '"plain":"seen"' in hangar("why", seen.kubeconfig, "configmap/second", "-n", team, "--bodies")
    assert "seen" not in hangar("why", seen.kubeconfig, "configmap/second", "-n", team)

    # One policy that forbids it is enough.
    name = policy("forbids", records={"bodies": False})
    eventually(lambda: name in condition(seen, "writer", team).get("message", ""), "it says which policy forbids it", 60)
    seen.patch(*OPERATOR, "writer", {"spec": {"args": [writing(team, "third"), "wait", "--", "tick=3600000"]}}, team)
    written(seen, "third", team)
    assert "bodyState" not in write_of(seen.kubeconfig, "writer", team, "third")

    files = list((showing.directory / "cache/recorder").glob("turns-*.rec"))
    assert files and all(SECRET.encode() not in one.read_bytes() for one in files)
    assert any(b'"plain":"seen"' in one.read_bytes() for one in files)


def test_a_body_is_for_who_may_get_the_secrets_that_its_operator_read(seen, showing, team, policy, tmp_path):
    policy("allows", records={"bodies": True})
    seen.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": team}})
    seen.create(operators.manifest("reader", team, f"get=/api/v1/namespaces/{team}/secrets/login", writing(team, "made"), "wait",
                                   "--", "tick=3600000", record="Bodies"))
    written(seen, "made", team)
    assert write_of(seen.kubeconfig, "reader", team, "made")["bodyState"] == "whole"

    kubeconfig = users.with_token(seen, tmp_path, "viewer", team)
    users.let(seen, f"{team}:viewer", SYSTEM, ["get"], ["configmaps"], names=["hangar-records"])
    users.let(seen, f"{team}:viewer", team, ["get"], ["operators"])
    write = write_of(kubeconfig, "reader", team, "made")
    assert write["bodyState"] == "withheld" and "body" not in write, write
    assert "(body withheld" in hangar("timeline", kubeconfig, "reader", "-n", team, "--bodies")

    users.let(seen, f"{team}:viewer", team, ["get"], ["secrets"], names=["login"])
    # The host caches the API server's decision for ten seconds.
    eventually(lambda: write_of(kubeconfig, "reader", team, "made").get("body"), "now he sees it", 60)
