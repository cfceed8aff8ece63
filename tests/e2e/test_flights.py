"""Flights as their authors see them, and what a Flight must not reach.

The standard input tells the flight `behave` what to do. It acts as the ServiceAccount `default` of the namespace, which has no rights
until a test gives it some.
"""
import base64
import gzip
import hashlib
import json
import pathlib

import pytest

import cluster as kubernetes
import workflows
from airways import flight
from cluster import condition, eventually, never
from conftest import COMPILED
from flights import API, FLIGHT, Flights, allow, behaving, greeting, manifest
from module_server import Modules
from test_airway_identity import BINDING, RBAC

POLICY = ("hangar.dev/v1alpha1", "TenantPolicy")
kubernetes.KINDS[POLICY] = ("/apis/hangar.dev/v1alpha1", "tenantpolicies", False)
CLUSTER_ROLE = (RBAC, "ClusterRole")
kubernetes.KINDS[CLUSTER_ROLE] = (f"/apis/{RBAC}", "clusterroles", False)
LABEL = "kubernetes.io/metadata.name"


@pytest.fixture
def flights(cluster, host, namespace):
    """Flights of the test's namespace, which may make ConfigMaps."""
    allow(cluster, namespace)
    return Flights(cluster, namespace)


def annotations(cluster, name, namespace):
    return cluster.get("v1", "ConfigMap", name, namespace)["metadata"]["annotations"]


def release_label(namespace, name):
    return hashlib.sha1(f"{namespace}/Flight.yoke.cd:{name}".encode()).hexdigest()


def revisions(cluster, namespace, name):
    return cluster.list("v1", "Secret", namespace, f"internal.yoke/release={release_label(namespace, name)}")


# What a Flight is ----------------------------------------------------------------------------------


def test_a_flight_releases_what_its_program_prints_and_goes_with_it(cluster, flights, namespace):
    made = flights.create("web", "basic", does={"data": {"a": "1"}})
    one = flights.ready("web")

    assert flights.data("web") == {"a": "1"}
    assert one["metadata"]["finalizers"] == ["yoke.cd/mayday.flight"]
    assert one["status"]["inventory"] == [{"resource": f"{namespace}/ConfigMap:web", "version": "v1", "ready": True}]
    ready = condition(one)
    assert (ready["reason"], ready["message"], ready["observedGeneration"]) == ("Ready", "Successfully deployed", 1)
    child = cluster.get("v1", "ConfigMap", "web", namespace)["metadata"]
    assert child["labels"]["app.kubernetes.io/managed-by"] == "atc.yoke"
    assert child["annotations"] == {"instance.atc.yoke.cd/release": "web", "instance.atc.yoke.cd/namespace": namespace,
                                    "instance.atc.yoke.cd/instanceRef": f"{namespace}/Flight.yoke.cd:web"}
    assert [(owner["kind"], owner["uid"]) for owner in child["ownerReferences"]] == [("Flight", made["metadata"]["uid"])]
    (revision,) = revisions(cluster, namespace, "web")
    assert revision["metadata"]["annotations"]["internal.yoke/release-name"] == f"{namespace}/Flight.yoke.cd:web"

    columns, (name, *shown) = [line.split() for line in cluster.kubectl("get", "flights", "-n", namespace).splitlines()]
    assert columns == ["NAME", "FLIGHT", "CLUSTER_ACCESS", "FIX_DRIFT_INTERVAL", "READY", "REASON", "AGE"]
    assert (name, shown[0], shown[-3:-1]) == ("web", one["spec"]["wasmUrl"], ["True", "Ready"])

    flights.delete("web")
    flights.goes("web")
    assert flights.data("web") is None and not revisions(cluster, namespace, "web")


def test_a_change_of_the_spec_is_carried_out_and_what_is_not_printed_any_more_is_pruned(flights):
    flights.create("web", "children", does={"names": ["one", "two"], "data": {"a": "1"}})
    flights.ready("web")
    assert flights.data("one") is not None and flights.data("two") is not None

    flights.behave("web", "children", names=["two", "three"], data={"a": "1"})

    eventually(lambda: flights.data("one") is None and flights.data("three") is not None, "the release follows", 60)
    listed = [entry["resource"].rsplit(":")[-1] for entry in flights.ready("web")["status"]["inventory"]]
    eventually(lambda: [entry["resource"].rsplit(":")[-1] for entry in flights.get("web")["status"]["inventory"]] == ["two", "three"],
               f"the inventory follows: {listed}")


def test_the_program_sees_its_name_its_arguments_and_its_input(flights, namespace):
    flights.create("web", "dump", args=["--replicas", "3"])
    flights.ready("web")

    seen = flights.data("web")
    assert json.loads(seen["argv"]) == ["web", "--replicas", "3"]
    assert {"YOKE_RELEASE=web", f"YOKE_NAMESPACE={namespace}", f"NAMESPACE={namespace}"} <= set(seen["env"].splitlines())
    assert json.loads(seen["stdin"]) == behaving("web", "dump")


def test_input_goes_to_standard_input_as_it_is_and_before_inputObject(flights):
    flights.create("web", "basic", input=json.dumps(behaving("text", "dump"), indent=3), does={"data": {"not": "this"}})
    flights.ready("web")

    assert flights.data("text")["stdin"] == json.dumps(behaving("text", "dump"), indent=3)
    assert flights.data("web") is None


def test_without_input_standard_input_is_empty(flights):
    flights.create("web")
    flights.says("web", "decode stdin: unexpected end of JSON input")


def test_what_others_change_is_put_back_after_the_interval(cluster, flights, namespace):
    flights.create("web", "basic", does={"data": {"a": "1"}}, fixDriftInterval="1s")
    flights.ready("web")

    cluster.patch("v1", "ConfigMap", "web", {"data": {"a": "2"}}, namespace, manager="yoke")
    eventually(lambda: flights.data("web") == {"a": "1"}, "it is as the flight says", 30)
    cluster.delete("v1", "ConfigMap", "web", namespace)
    eventually(lambda: flights.data("web") == {"a": "1"}, "it is there again", 30)
    one = flights.ready("web")
    assert one["status"]["inventory"][0]["ready"], "an evaluation that changes nothing leaves the inventory"


# Modes ---------------------------------------------------------------------------------------------


def test_dynamic_mode_puts_back_at_once_what_is_edited_or_deleted(cluster, flights, namespace):
    flights.create("web", "basic", does={"data": {"a": "b"}}, mode="dynamic")
    flights.ready("web")

    cluster.patch("v1", "ConfigMap", "web", {"data": {"a": "edited"}}, namespace)
    eventually(lambda: flights.data("web") == {"a": "b"}, "the edit is put back")
    cluster.delete("v1", "ConfigMap", "web", namespace)
    eventually(lambda: flights.data("web") == {"a": "b"}, "the ConfigMap is made again")


@pytest.mark.parametrize("mode", ["dynamic", "subscription"])
def test_a_change_of_what_was_looked_up_evaluates_again(cluster, flights, namespace, mode):
    lookup = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": namespace, "tolerate": True}
    flights.create("web", "lookup", does={"lookup": lookup}, mode=mode, clusterAccess=True, resourceAccessMatchers=["ConfigMap"])
    flights.ready("web")
    assert flights.data("web")["outcome"] == "NotFound"

    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}, "data": {"level": "info"}})
    eventually(lambda: flights.data("web").get("level") == "info", "its appearance evaluates again")
    cluster.patch("v1", "ConfigMap", "settings", {"data": {"level": "debug"}}, namespace)
    eventually(lambda: flights.data("web").get("level") == "debug", "its change evaluates again")
    cluster.delete("v1", "ConfigMap", "settings", namespace)
    eventually(lambda: flights.data("web")["outcome"] == "NotFound", "its end evaluates again")


def test_standard_mode_follows_nothing_else(cluster, flights, namespace):
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}, "data": {"level": "info"}})
    lookup = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": namespace}
    flights.create("web", "lookup", does={"lookup": lookup}, clusterAccess=True, resourceAccessMatchers=["ConfigMap"])
    flights.ready("web")

    cluster.patch("v1", "ConfigMap", "settings", {"data": {"level": "debug"}}, namespace)
    cluster.patch("v1", "ConfigMap", "web", {"data": {"edited": "x"}}, namespace)
    never(lambda: flights.data("web").get("level") != "info" or "edited" not in flights.data("web"), "nothing evaluates again")


def test_a_flight_follows_only_what_its_account_may_get(cluster, flights, namespace):
    """The matcher allows Secrets, the account does not."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": namespace}, "stringData": {"key": "x"}}
    lookup = {"apiVersion": "v1", "kind": "Secret", "name": "token", "namespace": namespace, "tolerate": True}
    flights.create("web", "lookup", does={"lookup": lookup}, mode="dynamic", clusterAccess=True, resourceAccessMatchers=["*"])
    flights.ready("web")

    before = cluster.get("v1", "ConfigMap", "web", namespace)["metadata"]["resourceVersion"]
    cluster.create(secret)
    never(lambda: cluster.get("v1", "ConfigMap", "web", namespace)["metadata"]["resourceVersion"] != before, "it is not told of the Secret")
    assert flights.data("web")["outcome"] == "Forbidden"


def test_how_much_a_flight_follows_is_bounded(flights):
    names = [f"c-{index}" for index in range(65)]
    flights.create("web", "children", does={"names": names, "lookups": names}, mode="dynamic", clusterAccess=True, resourceAccessMatchers=["ConfigMap"])
    flights.says("web", "look up configmap c-64", "may look up at most 64 objects beyond its release; use mode standard for more")
    flights.patch("web", mode="standard")
    flights.ready("web")


def test_mode_static_needs_webhooks(flights):
    flights.create("web", "basic", mode="static")
    flights.says("web", "spec.mode static needs webhooks", reason="Unsupported")
    flights.patch("web", mode="standard")
    flights.ready("web")


def test_ready_follows_the_resources_without_an_evaluation(cluster, flights, namespace):
    flights.create("web", "basic", does={"data": {"a": "1"}})
    flights.ready("web")

    cluster.delete("v1", "ConfigMap", "web", namespace)

    flights.says("web", reason="InProgress")
    eventually(lambda: not flights.get("web")["status"]["inventory"][0]["ready"], "the inventory says so, too")
    assert flights.data("web") is None, "in mode standard it is made again when the Flight is evaluated again"


def test_the_history_has_as_many_revisions_as_it_may(cluster, flights, namespace):
    flights.create("web", "basic", does={"data": {"n": "0"}}, historyCapSize=3)
    flights.ready("web")
    for number in range(1, 6):
        flights.behave("web", "basic", data={"n": str(number)})
        eventually(lambda number=number: flights.data("web") == {"n": str(number)}, "the release follows", 60)
    eventually(lambda: len(revisions(cluster, namespace, "web")) == 3, "three revisions are kept", 60)
    newest = max(revisions(cluster, namespace, "web"), key=lambda one: one["metadata"]["annotations"]["internal.yoke/active-at"])
    kept = json.loads(gzip.decompress(base64.b64decode(newest["data"]["resources"])))
    assert kept[0][0]["data"] == {"n": "5"}


def plant(cluster, namespace, name, text, **annotations):
    """A Secret that claims to be a revision of the Flight `web`."""
    cluster.create({"apiVersion": "v1", "kind": "Secret", "data": {"resources": base64.b64encode(gzip.compress(text)).decode()}, "metadata": {
        "name": name, "namespace": namespace,
        "labels": {"internal.yoke/kind": "revision", "internal.yoke/release": release_label(namespace, "web")},
        "annotations": {f"internal.yoke/{key}": value for key, value in annotations.items()}}})


@pytest.mark.parametrize("planted, words", [
    (dict.fromkeys(range(12), {"created-at": "2026-01-01T00:00:00Z", "active-at": "0001-01-01T00:00:00Z"}), "is larger than"),
    ({0: {"created-at": "yesterday", "active-at": "0001-01-01T00:00:00Z"}}, "created-at"),
], ids=["372 MB when they are unpacked", "no time"])
def test_secrets_that_somebody_plants_in_a_history_are_an_error_with_words(cluster, flights, namespace, planted, words):
    text = b"[[" + b" " * (31 << 20) + b"]]"
    for number, annotations in planted.items():
        plant(cluster, namespace, f"planted-{number}", text, **annotations)
    flights.create("web", "basic", does={"data": {"a": "1"}})

    flights.says("web", "read the history: revision planted-", words)
    for number in planted:
        cluster.delete("v1", "Secret", f"planted-{number}", namespace)
    flights.ready("web")


def test_a_flight_that_fails_says_why_and_leaves_what_there_was(flights):
    flights.create("web", "basic", does={"data": {"a": "1"}})
    flights.ready("web")

    flights.behave("web", "basic", data={"a": "2"}, stderr="replicas must be odd", exitCode=1)

    flights.says("web", "failed to evaluate flight: failed to instantiate module: replicas must be odd")
    assert flights.data("web") == {"a": "1"}
    assert flights.get("web")["status"]["inventory"], "what was released is still there"
    flights.behave("web", "basic", data={"a": "3"})
    flights.ready("web")
    assert flights.data("web") == {"a": "3"}


def test_time_and_memory_of_a_flight_are_bounded(flights):
    flights.create("slow", "endless", timeout="50ms")
    flights.create("large", "memory", does={"mib": 64}, maxMemoryMib=32)

    flights.says("slow", "execution timeout (50ms) exceeded")
    flights.says("large", "out of memory")


def test_a_status_that_the_flight_prints_for_itself_counts_but_for_what_the_host_says(flights, namespace):
    own = {"apiVersion": API, "kind": "Flight", "metadata": {"name": "web", "namespace": namespace},
           "status": {"pod": "somebody/else", "inventory": [], "module": {"sha256": "made up"}, "conditions": [
               {"type": "Halfway", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}}
    flights.create("web", "raw", does={"stdout": json.dumps([own, child])})
    one = flights.ready("web")

    assert condition(one, "Halfway")["status"] == "True"
    assert one["status"].get("pod") != "somebody/else"
    assert len(one["status"]["inventory"]) == 1 and len(one["status"]["module"]["sha256"]) == 64


# Modules -------------------------------------------------------------------------------------------


def test_a_module_of_another_checksum_is_not_run(flights):
    flights.create("web", "basic", checksum="applebottomjeans")
    flights.says("web", 'cannot verify module against expected checksum: wanted "applebottomjeans"')

    flights.patch("web", checksum=hashlib.sha256(pathlib.Path(flight("behave")).read_bytes()).hexdigest())
    one = flights.ready("web")
    assert condition(one, "FlightUpToDate")["reason"] == "Fixed"


def test_a_flight_reads_modules_of_its_own_namespace_only(cluster, flights, namespace, unique):
    other = f"{namespace}-other"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    module = pathlib.Path(flight("greeting_rust")).read_bytes()
    for where in (namespace, other):
        workflows.module(cluster, where, "greeting", binary=module, key="flight.wasm", compress=True)
    wanted = greeting("own", namespace)

    for index, scheme in enumerate(("configmap", "ConfigMap", "CONFIGMAP")):
        flights.create(f"spy-{index}", wasmUrl=f"{scheme}://{other}/greeting/flight.wasm", inputObject=wanted)
        said = flights.says(f"spy-{index}", "greeting")
        assert other in said and "own namespace" in said, said
        assert "module" not in flights.get(f"spy-{index}")["status"]
    flights.create("own", wasmUrl=f"configmap://{namespace}/greeting/flight.wasm", inputObject=wanted)
    flights.ready("own")
    assert flights.data("own") == {"text": "hi"}
    cluster.delete("v1", "Namespace", other)


def test_a_flight_fetches_from_public_addresses_only(flights):
    """This host restricts Flights to them; an Airway may use other addresses."""
    modules = Modules()
    modules.files["/flight.wasm"] = pathlib.Path(flight("behave")).read_bytes()
    flights.create("web", "basic", wasmUrl=modules.url("/flight.wasm"))

    flights.says("web", "address is not allowed here")
    assert modules.asked == []
    modules.close()


# Accounts ------------------------------------------------------------------------------------------


def test_a_flight_acts_as_the_default_account_of_its_namespace_and_with_its_rights(cluster, host, namespace):
    """The host itself may do everything here."""
    flights = Flights(cluster, namespace)
    flights.create("web", "basic", does={"data": {"a": "1"}}, clusterAccess=True, resourceAccessMatchers=["*"])

    said = flights.says("web", f"system:serviceaccount:{namespace}:default", "forbidden")
    assert f"the flight acts as the ServiceAccount default of namespace {namespace}: give it that right" in said
    assert flights.data("web") is None
    allow(cluster, namespace)
    flights.ready("web")
    assert flights.data("web") == {"a": "1"}


def test_a_flight_acts_as_the_account_that_it_names(cluster, host, namespace):
    flights = Flights(cluster, namespace)
    allow(cluster, namespace, account="deployer")
    flights.create("web", "basic", account="deployer", does={"data": {"a": "1"}})
    flights.create("same", "basic", account=f"{namespace}/deployer", does={"data": {"a": "1"}})
    flights.ready("web")
    flights.ready("same")

    cluster.patch(*FLIGHT, "web", {"metadata": {"annotations": {"hangar.dev/service-account": "nobody"}}}, namespace)
    flights.patch("web", args=["again"])
    flights.behave("web", "basic", data={"a": "2"})
    flights.says("web", f"system:serviceaccount:{namespace}:nobody")
    assert flights.data("web") == {"a": "1"}


@pytest.mark.parametrize("account", ["default/default", "kube-system/default", "/default", "default/", "Default", "a:b"])
def test_a_flight_never_acts_as_somebody_of_another_namespace_or_as_the_host(cluster, flights, namespace, account):
    """Whatever the annotation says: a missing or invalid account does not become the host."""
    flights.create("web", "basic", account=account, does={"data": {"a": "1"}}, clusterAccess=True)

    flights.says("web", "metadata.annotations[hangar.dev/service-account]")
    assert flights.data("web") is None and not revisions(cluster, namespace, "web")
    flights.delete("web")
    flights.goes("web")


def test_an_annotation_that_is_empty_means_the_default_account_too(cluster, host, namespace):
    flights = Flights(cluster, namespace)
    one = manifest("web", namespace, inputObject=behaving("web", "basic", data={"a": "1"}))
    one["metadata"]["annotations"] = {"hangar.dev/service-account": ""}
    cluster.create(one)

    flights.says("web", f"system:serviceaccount:{namespace}:default", "forbidden")


def test_a_flight_makes_nothing_in_another_namespace_whatever_its_account_may(cluster, flights, namespace):
    other = f"{namespace}-other"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    cluster.apply({"apiVersion": RBAC, "kind": "Role", "metadata": {"name": "all", "namespace": other},
                   "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]})
    cluster.apply({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "all", "namespace": other},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"},
                   "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]})

    flights.create("web", "crossns", does={"namespaces": [namespace, other]})

    flights.says("web", "Multiple namespaces detected (if desired enable multinamespace releases)", other)
    assert flights.data("web") is None and cluster.get("v1", "ConfigMap", "web", other) is None
    cluster.delete("v1", "Namespace", other)


def test_whether_a_flight_makes_what_has_no_namespace_is_for_rbac_to_say(cluster, flights, namespace, unique):
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": f"made-{unique}"}, "rules": []}
    flights.create("web", "raw", does={"stdout": json.dumps([role])})
    flights.says("web", f"system:serviceaccount:{namespace}:default", "at the cluster scope")
    assert cluster.get(*CLUSTER_ROLE, f"made-{unique}") is None

    cluster.kubectl("create", "clusterrole", f"roles-{unique}", "--verb=get,create,patch,delete", "--resource=clusterroles.rbac.authorization.k8s.io")
    cluster.kubectl("create", "clusterrolebinding", f"roles-{unique}", f"--clusterrole=roles-{unique}", f"--serviceaccount={namespace}:default")
    flights.ready("web")
    made = cluster.get(*CLUSTER_ROLE, f"made-{unique}")["metadata"]
    assert "ownerReferences" not in made, "an owner in a namespace could not be resolved"
    flights.delete("web")
    flights.goes("web")
    assert cluster.get(*CLUSTER_ROLE, f"made-{unique}") is None
    for kind in ("clusterrole", "clusterrolebinding"):
        cluster.kubectl("delete", kind, f"roles-{unique}")


def test_a_flight_is_shown_what_its_account_may_get(cluster, flights, namespace):
    """The matcher allows everything; the account may not get Secrets, and has no rights elsewhere."""
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": namespace}, "stringData": {"key": "x"}})
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}, "data": {"level": "debug"}})
    targets = {"secret": ("Secret", "token", namespace), "missing": ("Secret", "nothing", namespace),
               "elsewhere": ("ConfigMap", "kube-root-ca.crt", "default"), "settings": ("ConfigMap", "settings", namespace)}
    for name, (kind, target, where) in targets.items():
        lookup = {"apiVersion": "v1", "kind": kind, "name": target, "namespace": where, "tolerate": True}
        flights.create(name, "lookup", does={"lookup": lookup}, clusterAccess=True, resourceAccessMatchers=["*"])
    for name in targets:
        flights.ready(name)

    assert {name: flights.data(name)["outcome"] for name in targets} == {
        "secret": "Forbidden", "missing": "Forbidden", "elsewhere": "Forbidden", "settings": "found"}
    assert flights.data("settings")["level"] == "debug"
    assert f"system:serviceaccount:{namespace}:default" in flights.data("secret")["message"]


def test_without_cluster_access_a_flight_is_shown_nothing(flights, namespace):
    lookup = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "namespace": namespace, "tolerate": True}
    flights.create("web", "lookup", does={"lookup": lookup}, resourceAccessMatchers=["*"])
    flights.ready("web")
    assert flights.data("web")["outcome"] == "FeatureNotGranted"


def test_a_removal_without_rights_says_so_and_goes_on_once_they_are_back(cluster, flights, namespace):
    flights.create("web", "basic", does={"data": {"a": "1"}})
    flights.ready("web")
    cluster.delete(*BINDING, "default-configmaps", namespace)
    flights.delete("web")

    flights.says("web", "cannot remove", f"system:serviceaccount:{namespace}:default", reason="Terminating")
    assert flights.data("web") == {"a": "1"}
    cluster.kubectl("create", "rolebinding", "again", "--role=default-configmaps", f"--serviceaccount={namespace}:default", "--namespace", namespace)
    flights.goes("web", 90)
    assert flights.data("web") is None


def test_a_namespace_goes_with_its_flights(cluster, host, unique):
    gone = f"gone-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": gone}})
    allow(cluster, gone)
    flights = Flights(cluster, gone)
    flights.create("web", "basic", does={"data": {"a": "1"}})
    flights.ready("web")

    cluster.delete("v1", "Namespace", gone)

    eventually(lambda: cluster.get("v1", "Namespace", gone) is None, "the namespace is gone", 120)


# Releases ------------------------------------------------------------------------------------------


def test_a_flight_takes_nothing_from_another_release_of_its_name(cluster, flights, namespace):
    """A user has made a release by hand, under the name on the marks of the Flight's children."""
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "theirs"}, "metadata": {
        "name": "web", "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "yoke"},
        "annotations": {"instance.atc.yoke.cd/release": "web", "instance.atc.yoke.cd/namespace": namespace}}})
    flights.create("web", "basic", does={"data": {"a": "1"}})

    flights.says("web", f'expected release "{namespace}/web" but resource is already owned by "another release of that name"')
    assert flights.data("web") == {"a": "theirs"}
    flights.delete("web")
    flights.goes("web")
    assert flights.data("web") == {"a": "theirs"}


def test_what_yokes_host_has_made_for_a_flight_goes_on_being_the_flights(cluster, flights, namespace):
    """The object has no annotation instanceRef, but the Flight owns it; it is not created again."""
    made = flights.create("web", "basic", does={"data": {"a": "1"}}, checksum="not yet")
    flights.says("web", "checksum")
    owner = {"apiVersion": API, "kind": "Flight", "name": "web", "uid": made["metadata"]["uid"]}
    theirs = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "0"}, "metadata": {
        "name": "web", "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "atc.yoke"}, "ownerReferences": [owner],
        "annotations": {"instance.atc.yoke.cd/release": "web", "instance.atc.yoke.cd/namespace": namespace}}})

    flights.patch("web", checksum=None)
    flights.ready("web")
    now = cluster.get("v1", "ConfigMap", "web", namespace)
    assert now["data"] == {"a": "1"} and now["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert now["metadata"]["annotations"]["instance.atc.yoke.cd/instanceRef"] == f"{namespace}/Flight.yoke.cd:web"


# Policies ------------------------------------------------------------------------------------------


@pytest.fixture
def policy(cluster, namespace):
    """Applies a TenantPolicy for the test's namespace; removes it at the end."""
    def apply(**spec):
        cluster.apply({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": namespace},
                       "spec": {"namespaceSelector": {"matchLabels": {LABEL: namespace}}, **spec}})
    yield apply
    cluster.delete(*POLICY, namespace)


def test_a_module_that_a_policy_does_not_allow_is_not_run(flights, policy, namespace):
    policy(modules={"urls": ["oci://registry.example.com/team/*"]})
    flights.create("web", "basic", wasmUrl=f"file://{flight('behave')}", does={"data": {"a": "1"}})
    said = flights.says("web", f"TenantPolicy {namespace} does not allow the module", reason="RefusedByPolicy")
    assert "oci://registry.example.com/team/*" in said
    assert flights.data("web") is None

    policy(modules={"urls": [f"file://{flight('behave')}"]})
    flights.ready("web")
    policy(modules={"urls": []})
    flights.says("web", reason="RefusedByPolicy")
    flights.behave("web", "basic", data={"a": "2"})
    never(lambda: flights.data("web") != {"a": "1"}, "it is evaluated nevertheless")
    flights.delete("web")
    flights.goes("web")


def test_an_account_that_a_policy_does_not_allow_is_not_acted_as(flights, policy, cluster, namespace):
    policy(serviceAccounts=["deployer"])
    flights.create("web", "basic", does={"data": {"a": "1"}})
    flights.says("web", "does not allow the ServiceAccount default", reason="RefusedByPolicy")

    allow(cluster, namespace, account="deployer")
    cluster.patch(*FLIGHT, "web", {"metadata": {"annotations": {"hangar.dev/service-account": "deployer"}}}, namespace)
    flights.ready("web")


def test_memory_beyond_a_policys_budget_is_not_given(flights, policy, namespace):
    policy(budgets={"guestMemory": "24Mi"})
    flights.create("web", "memory", does={"mib": 64})
    flights.says("web")
    assert flights.data("web") is None


# Others --------------------------------------------------------------------------------------------


def test_slow_flights_of_one_namespace_keep_nobody_else_waiting(cluster, flights, namespace):
    """Thirty evaluations take half a minute each, in sixteen places; one of another namespace begins at once."""
    other = f"{namespace}-other"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    allow(cluster, other)
    names = [f"slow-{index}" for index in range(30)]
    for name in names:
        flights.create(name, "sleep", does={"milliseconds": 30000}, timeout="60s")
    eventually(lambda: flights.get(names[0])["metadata"].get("finalizers"), "they are evaluated", COMPILED)

    victim = Flights(cluster, other)
    victim.create("web", "basic", does={"data": {"a": "1"}})
    victim.ready("web")

    assert [name for name in names if flights.data(name) is None], "some of the others wait still"
    for name in names:
        flights.delete(name)
    victim.delete("web")
    victim.goes("web")
    cluster.delete("v1", "Namespace", other)
