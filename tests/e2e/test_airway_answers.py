"""The API server answers 429 and 410 to all requests of the host: nothing is lost, and the host asks no more often than it may."""
import itertools
import json
import urllib.parse
import urllib.request

import pytest

import airways
from airways import flight, instance
from cluster import eventually, is_ready
from front import Front, status
from host import Host, to_its_end

GROUP = "answers.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway")
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def cluster(own_cluster):
    """A control plane of its own: one test restarts a part of it."""
    return own_cluster


@pytest.fixture
def front(cluster, tmp_path):
    front = Front(cluster, tmp_path)
    yield front
    front.close()


@pytest.fixture
def host(front, tmp_path):
    """A host that reaches the API server through `front` only."""
    yield from to_its_end(Host(front.kubeconfig, tmp_path / "host"))


@pytest.fixture
def kind(airway, host, front, unique):
    airway(airways.airway(f"{unique}s", unique.capitalize(), flight("behave"), group=GROUP, mode="dynamic"))
    yield unique.capitalize()
    front.fault = lambda method, path: None


def children(kind, count, namespace, tag):
    return instance(kind, "it", {"behaviour": "children", "names": [f"it-{n}" for n in range(count)], "data": {"tag": tag}}, namespace, GROUP)


def tags(cluster, namespace):
    return {one["metadata"]["name"]: one["data"]["tag"]
            for one in cluster.list("v1", "ConfigMap", namespace, "app.kubernetes.io/managed-by=atc.yoke")}


def wanted(count, tag):
    return {f"it-{n}": tag for n in range(count)}


def times(front, method, path):
    """The times of these requests that have been answered, in seconds."""
    return [began for began, *request, _ in front.requests if request == [method, path]]


def path_of(path):
    return urllib.parse.urlsplit(path).path


def test_too_many_requests_are_repeated_when_the_server_says(cluster, front, host, kind, namespace):
    refused = set()

    def busy(method, path):
        """Answers 429 to the first of every write, except for Events, which nobody waits for."""
        what = (method, path)
        if method == "GET" or namespace not in path or "/events" in path or what in refused:
            return None
        refused.add(what)
        return 429, {**JSON, "Retry-After": "1"}, status(429, "TooManyRequests", "the server has received too many requests")

    front.fault = busy
    cluster.create(children(kind, 3, namespace, "first"))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", kind, "it", namespace)), "the instance is Ready", 60)

    assert tags(cluster, namespace) == wanted(3, "first")
    revisions = cluster.list("v1", "Secret", namespace, "internal.yoke/kind=revision")
    assert len(revisions) == 1, "a refused request did nothing, so its repetition doubles nothing"
    assert len(refused) > 5
    for method, path in list(refused):
        # A write shows in the cluster before its answer has passed the front, and the last writes may still wait for their retry.
        eventually(lambda: len(times(front, method, path)) > 1, f"{method} {path} is repeated")
        first, second, *_ = times(front, method, path)
        assert second - first > 0.99, f"{method} {path} was repeated before the server wanted it"


def test_a_server_that_stays_busy_is_not_pressed_and_the_end_is_right(cluster, front, host, kind, namespace):
    cluster.create(children(kind, 2, namespace, "before"))
    eventually(lambda: tags(cluster, namespace) == wanted(2, "before"), "the release is there")

    front.fault = lambda method, path: (
        None if method == "GET" else (429, {**JSON, "Retry-After": "1"}, status(429, "TooManyRequests", "too many requests")))
    first = len(front.requests)
    cluster.apply(children(kind, 3, namespace, "after"))
    eventually(lambda: len(front.requests) - first >= 6, "the host asks again and again", 60)
    asked = front.requests[first:]
    by_request = itertools.groupby(sorted(asked, key=lambda one: one[1:3]), key=lambda one: one[1:3])
    assert max(len(list(requests)) for _, requests in by_request) <= asked[-1][0] - asked[0][0] + 2, "no request more than once a second"
    front.fault = lambda method, path: None

    eventually(lambda: tags(cluster, namespace) == wanted(3, "after"), "the release is as it should be", 60)


@pytest.mark.parametrize("how", ["answer", "event"])
def test_an_expired_watch_starts_over_and_misses_nothing(cluster, front, host, kind, namespace, how):
    cluster.create(children(kind, 3, namespace, "before"))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", kind, "it", namespace)), "the instance is Ready")
    expired = status(410, "Expired", "too old resource version: 1 (2)")
    told, passing = set(), set()

    def gone(method, path):
        """Answers 503 to every watch until the changes are made, then 410 once to each watch that resumes at a version."""
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        if "watch" not in query:
            return None
        if not passing:
            return 503, JSON, status(503, "ServiceUnavailable", "not now")
        if query.get("resourceVersion", ["0"])[0] in ("", "0") or "sendInitialEvents" in query or path_of(path) in told:
            return None
        told.add(path_of(path))
        if how == "answer":
            return 410, JSON, expired
        return 200, JSON, json.dumps({"type": "ERROR", "object": json.loads(expired)}).encode() + b"\n"

    front.fault = gone
    front.cut()
    cluster.delete("v1", "ConfigMap", "it-0", namespace)
    cluster.patch("v1", "ConfigMap", "it-1", {"data": {"tag": "somebody else's"}}, namespace)
    cluster.apply(children(kind, 4, namespace, "after"))
    passing.add("now")

    eventually(lambda: tags(cluster, namespace) == wanted(4, "after"), "the release is as it should be", 60)
    assert {path for path in told if path.endswith("/configmaps")} and {path for path in told if path.endswith(f"/{kind.lower()}s")}
    front.fault = lambda method, path: None
    cluster.delete("v1", "ConfigMap", "it-2", namespace)
    eventually(lambda: tags(cluster, namespace) == wanted(4, "after"), "and is still watched")


def test_a_version_that_etcd_has_compacted_is_no_obstacle(cluster, front, host, kind, namespace):
    cluster.create(children(kind, 3, namespace, "before"))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", kind, "it", namespace)), "the instance is Ready")
    version = cluster.list("v1", "ConfigMap", namespace)[0]["metadata"]["resourceVersion"]
    front.fault = lambda method, path: (503, JSON, status(503, "ServiceUnavailable", "not now"))
    front.cut()

    cluster.delete("v1", "ConfigMap", "it-0", namespace)
    cluster.apply(children(kind, 2, namespace, "after"))
    newest = int(cluster.get("v1", "ConfigMap", "it-1", namespace)["metadata"]["resourceVersion"])
    for n in range(3):
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"other-{n}", "namespace": namespace}})
    compact = json.dumps({"revision": str(newest + 2), "physical": True}).encode()
    urllib.request.urlopen(urllib.request.Request(cluster.env["HANGAR_CP_ETCD"] + "/v3/kv/compaction", compact, JSON), timeout=30).close()
    # A new API server has no cache with the old version.
    cluster.component("kill", "kube-apiserver")
    cluster.component("start", "kube-apiserver")
    expired = cluster.request("GET", f"/api/v1/configmaps?watch=1&resourceVersion={version}&timeoutSeconds=1")
    assert expired["type"] == "ERROR" and expired["object"]["code"] == 410, "the version is really gone"
    front.fault = lambda method, path: None

    eventually(lambda: tags(cluster, namespace) == wanted(2, "after"), "the release is as it should be", 60)


def test_a_kind_that_is_back_but_served_late_is_found_soon(cluster, front, host, airway, namespace, unique):
    manifest = airways.airway(f"{unique}s", unique.capitalize(), flight("behave"), group=GROUP)
    collection = f"/apis/{GROUP}/v1/{unique}s"
    airway(manifest)
    cluster.delete(*AIRWAY, manifest["metadata"]["name"])
    eventually(lambda: sum(path_of(path) == collection and code == 404 for _, _, path, code in front.requests) >= 2,
               "the host has seen that the kind is gone", 60)

    # An API server may say that a CRD is established before it serves the kind.
    front.fault = lambda method, path: (
        (404, {"Content-Type": "text/plain"}, b"404 page not found") if method == "GET" and path_of(path) == collection else None)
    cluster.apply(manifest)
    eventually(lambda: is_ready(cluster.get(*AIRWAY, manifest["metadata"]["name"])), "the Airway is ready again")
    asked = len(front.requests)
    eventually(lambda: any(path_of(path) == collection for _, _, path, _ in front.requests[asked:]), "the host asks again")
    front.fault = lambda method, path: None
    cluster.create(instance(unique.capitalize(), "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace, GROUP))

    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", unique.capitalize(), "it", namespace)), "the instance is Ready", 15)
