"""Features of controller-runtime that examples/memo does not use (tests/guests/go_features): asleep after every turn, never asleep,
and as a process of its own, the operator leaves the same objects."""
import pytest

from cluster import ROOT, condition, eventually
from memos import COMPILED, as_process, build_guest, build_native, resumes
from operators import EVERYTHING, OPERATOR, manifest

CONFIG_MAP, SECRET, LEASE = ("v1", "ConfigMap"), ("v1", "Secret"), ("coordination.k8s.io/v1", "Lease")
SOURCE = ROOT / "tests/guests/go_features"
# A page has 500.
LEASES = 510

# The build is shared.
pytestmark = pytest.mark.xdist_group("go_build")


@pytest.fixture(scope="module")
def built():
    build_guest(SOURCE, "go_features")


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return build_native(SOURCE, ".", tmp_path_factory.mktemp("native") / "go_features")


@pytest.fixture
def rights(cluster, namespace):
    prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    cluster.request("POST", f"{prefix}/roles", {"metadata": {"name": "features"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(EVERYTHING)},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]}]})
    cluster.request("POST", f"{prefix}/rolebindings", {
        "metadata": {"name": "features"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "features"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]})


def scenario(cluster, namespace):
    """The operator's work on objects of each kind; returns what it leaves, for comparison, and removes all but the Leases."""
    def make(kind, name, data=None, **metadata):
        cluster.create({"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": name, "namespace": namespace, **metadata},
                        **({"data": data} if data else {})})

    def put(name, role, **data):
        make(CONFIG_MAP, name, data, labels={"role": role})

    def change(name, **data):
        cluster.patch(*CONFIG_MAP, name, {"data": data}, namespace)

    data_of = lambda name: (cluster.get(*CONFIG_MAP, name, namespace) or {}).get("data", {})

    def becomes(name, wanted, why):
        eventually(lambda: data_of(name) == wanted, f"{name}: {why}", 60)

    # Two controllers watch one kind: one of them books, by a predicate, and finds those of a shelf in an index.
    put("upper", "shelf")
    put("lower", "shelf")
    put("atlas", "book", shelf="upper", title="Atlas", note="large")
    put("bible", "book", shelf="lower", title="Bible", note="old")
    becomes("upper-catalogue", {"atlas": "Atlas (large)"}, "a book of this shelf")
    becomes("lower-catalogue", {"bible": "Bible (old)"}, "a book of this shelf")
    # Requests wait in one queue: nothing waits for the shelf above once a later one below is answered.
    change("bible", title="Bibles")
    becomes("lower-catalogue", {"bible": "Bibles (old)"}, "the title has changed")
    # Another client's field stays whenever the operator applies its own.
    change("upper-catalogue", borrowed="never")
    # The predicate leaves out the first change; by the time that a later one has been handled, it would have been.
    change("atlas", note="heavy")
    change("bible", title="Bibel")
    becomes("lower-catalogue", {"bible": "Bibel (old)"}, "the title has changed")
    assert data_of("upper-catalogue") == {"atlas": "Atlas (large)", "borrowed": "never"}
    change("atlas", title="Atlas 2")
    becomes("upper-catalogue", {"atlas": "Atlas 2 (heavy)", "borrowed": "never"}, "the title has changed")
    # A field that is no longer applied goes; the map function sees the object of before and of after.
    change("atlas", shelf="lower")
    becomes("upper-catalogue", {"borrowed": "never"}, "the book has moved")
    becomes("lower-catalogue", {"bible": "Bibel (old)", "atlas": "Atlas 2 (heavy)"}, "the book has moved")
    cluster.delete(*CONFIG_MAP, "bible", namespace)
    becomes("lower-catalogue", {"atlas": "Atlas 2 (heavy)"}, "a book is gone")
    managers = {(field["manager"], field["operation"]) for field in cluster.get(*CONFIG_MAP, "lower-catalogue", namespace)["metadata"]["managedFields"]}

    make(CONFIG_MAP, "ledger")
    make(SECRET, "guest", annotations={"entry": "came"})
    becomes("ledger", {"guest": "came", "quicker": "came", "conflicts": "1"}, "the conflict is overcome")
    cluster.patch(*SECRET, "guest", {"metadata": {"annotations": {"entry": "went"}}}, namespace)
    becomes("ledger", {"guest": "went", "quicker": "went", "conflicts": "1"}, "the conflict is overcome")

    put("count", "count")
    becomes("count", {"found": f"{LEASES} in 2 pages"}, "all pages are read")

    left = {one["metadata"]["name"]: one.get("data") for one in cluster.list(*CONFIG_MAP, namespace) if one["metadata"]["name"] != "kube-root-ca.crt"}
    return {"data": left, "managers": managers}


def clean(cluster, namespace):
    for kind in (CONFIG_MAP, SECRET):
        for one in cluster.list(*kind, namespace):
            if one["metadata"]["name"] != "kube-root-ca.crt":
                cluster.delete(*kind, one["metadata"]["name"], namespace)


def test_controllers_watches_indexes_and_clients_of_all_sorts_do_the_same_as_in_a_process(cluster, host, namespace, rights, built, native):
    for number in range(LEASES):
        cluster.create({"apiVersion": LEASE[0], "kind": LEASE[1], "metadata": {"name": f"lease-{number}", "namespace": namespace}, "spec": {}})
    results = []
    for sleep in ({"after": "0s"}, {"policy": "Never"}):
        before = resumes(host, namespace, "features")
        cluster.create(manifest("features", namespace, wasm="go_features", sleep=sleep, limits={"memory": "256Mi"},
                                env=[{"name": "WATCH_NAMESPACE", "value": namespace}]))
        eventually(lambda: condition(cluster.get(*OPERATOR, "features", namespace)).get("status") == "True", "it runs", COMPILED)
        results.append(scenario(cluster, namespace))
        assert cluster.get(*OPERATOR, "features", namespace)["status"].get("restarts", 0) == 0
        assert (resumes(host, namespace, "features") > before) == (sleep == {"after": "0s"})
        cluster.delete(*OPERATOR, "features", namespace)
        eventually(lambda: cluster.get(*OPERATOR, "features", namespace) is None, "it is gone")
        clean(cluster, namespace)

    log = host.directory / "features.log"
    with as_process(native, cluster=cluster, namespace=namespace, log=log):
        results.append(scenario(cluster, namespace))
    assert results[0] == results[1] == results[2], log.read_text()
    assert results[0]["managers"] == {("librarian", "Apply")}
