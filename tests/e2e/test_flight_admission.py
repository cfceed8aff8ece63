"""Flights and ClusterFlights before they are accepted, by a host that knows that the API server asks, and by one that does not."""
import json
import pathlib
import subprocess

import pytest

import cluster as kubernetes
from airways import GUESTS, flight
from cluster import ApiError, condition, eventually, when_compiled
from flights import CLUSTER_FLIGHT, FLIGHT, Flights, allow, behaving, manifest
from host import BINARY
from webhooks import as_user, ask, configurations, host_with_webhooks, review, warnings_of

NAMESPACE = "webhooks"
PATH = "/validations/flights.yoke.cd"
POLICY = ("hangar.dev/v1alpha1", "TenantPolicy")
kubernetes.KINDS[POLICY] = ("/apis/hangar.dev/v1alpha1", "tenantpolicies", False)


@pytest.fixture(scope="module")
def cluster(showing_cluster):
    showing_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return showing_cluster


@pytest.fixture(scope="module")
def webhook_host(cluster, authority, tmp_path_factory):
    yield from host_with_webhooks(cluster, tmp_path_factory.mktemp("webhooks"), NAMESPACE, f"--webhook-client-ca-file={authority.certificate}",
                                  f"--module-allow-list={GUESTS}/*,{tmp_path_factory.getbasetemp()}/*/*,/tmp/nowhere/*", features="flights")


@pytest.fixture
def flights(cluster, webhook_host, namespace):
    """Flights of the test's namespace, which may make ConfigMaps. The webhook is in force."""
    allow(cluster, namespace)
    made = Flights(cluster, namespace)
    refused(made, "probe", "panic")
    return made


def refused(flights, name, behaviour=None, does=None, words=(), **options):
    """The message of the refusal. Waits until the webhook is in force and has the module; deletes Flights that are accepted before."""
    def attempt():
        try:
            flights.create(name, behaviour, does=does, **options)
        except ApiError as error:
            assert "denied the request" in str(error), error
            return None if error.status == 503 else str(error)
        flights.delete(name)
        flights.goes(name)
        return None
    said = eventually(attempt, f"{name} is refused", 300)
    assert f'admission webhook "flights.yoke.cd" denied the request: ' in said
    for word in words:
        assert word in said, said
    return said


def secrets(cluster, namespace):
    return cluster.list("v1", "Secret", namespace)


# What is registered --------------------------------------------------------------------------------


def test_the_webhook_is_registered_for_flights_and_nothing_else(cluster, webhook_host):
    (name, configuration), = configurations(cluster, NAMESPACE).items()
    (webhook,) = configuration["webhooks"]

    assert (name, webhook["name"], webhook["failurePolicy"]) == ("hangar-flights", "flights.yoke.cd", "Fail")
    assert webhook["rules"] == [{"apiGroups": ["yoke.cd"], "apiVersions": ["v1alpha1"], "resources": ["flights", "clusterflights"],
                                 "operations": ["CREATE", "UPDATE"], "scope": "*"}]
    assert webhook["clientConfig"]["url"].endswith(PATH)


def test_other_paths_and_other_kinds_are_refused(cluster, webhook_host, authority):
    shown = authority.sign("kube-apiserver-too")
    assert ask(webhook_host, "/validations/flights.yoke.cd/more", review(), shown=shown)[0] == 404
    assert ask(webhook_host, "/validations/airways.yoke.cd", review(), shown=shown)[0] == 404, "this host has no Airways"
    assert ask(webhook_host, PATH, review())[0] == 401
    status, text = ask(webhook_host, PATH, review(object={"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": "x"}}), shown=shown)
    response = json.loads(text)["response"]
    assert status == 200 and not response["allowed"] and "must be Flight or ClusterFlight" in response["status"]["message"]


# What is refused -----------------------------------------------------------------------------------


def test_a_flight_is_refused_with_what_its_program_says_and_leaves_nothing(cluster, flights, namespace):
    refused(flights, "web", "basic", {"data": {"a": "1"}, "stderr": "replicas must be odd", "exitCode": 1},
            ["failed to evaluate flight: failed to instantiate module: replicas must be odd"])

    assert flights.get("web") is None and flights.data("web") is None and not secrets(cluster, namespace)


def test_every_resource_that_the_api_server_would_refuse_is_named(cluster, flights, namespace):
    bad = json.dumps([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad", "labels": {"a": "not a label"}}},
                      {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "right"}},
                      {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}}])

    refused(flights, "web", "raw", {"stdout": bad}, ["configmap/bad", "not a label", f"system:serviceaccount:{namespace}:default", "secrets"])

    assert flights.data("good") is None and not secrets(cluster, namespace)


def test_a_right_that_the_account_lacks_is_said_with_what_to_do(flights, namespace):
    secret = json.dumps([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "right"}}])

    refused(flights, "web", "raw", {"stdout": secret}, ["forbidden", f"the ServiceAccount default of namespace {namespace}", "with a Role and a RoleBinding"])


def test_a_flight_that_takes_what_is_not_its_own_is_refused(cluster, flights, namespace):
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken", "namespace": namespace, "annotations": {
        "instance.atc.yoke.cd/release": "other", "instance.atc.yoke.cd/namespace": namespace}}})

    refused(flights, "taken", "basic", {"data": {"a": "1"}}, ["already owned by", f"{namespace}/other"])
    refused(flights, "two", "crossns", {"namespaces": ["default", "kube-system"]}, ["Multiple namespaces detected"])


def test_a_flight_whose_module_or_fields_are_wrong_is_refused(flights):
    refused(flights, "sum", "basic", checksum="applebottomjeans", words=["cannot verify module against expected checksum", "applebottomjeans"])
    refused(flights, "gone", "basic", wasmUrl="/tmp/nowhere/flight.wasm", words=["flight.wasm"])
    refused(flights, "other", "basic", wasmUrl="https://example.com/flight.wasm", words=["not allowed"])
    refused(flights, "matcher", "basic", resourceAccessMatchers=["Config*"], words=["resourceAccessMatchers"])
    refused(flights, "slow", "endless", timeout="30ms", words=["execution timeout (30ms) exceeded"])
    refused(flights, "endless", "endless", words=["execution timeout (7s) exceeded"])


def test_a_flight_that_its_namespace_does_not_let_be_is_refused(cluster, flights, namespace, unique):
    """Because of its account, and because of a module that a policy does not allow."""
    refused(flights, "spy", "basic", account="kube-system/default", words=["a ServiceAccount of its own namespace"])
    cluster.create({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": unique}, "spec": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}, "modules": {"urls": ["oci://registry.example.com/*"]}}})
    refused(flights, "web", "basic", {"data": {"a": "1"}}, [f"TenantPolicy {unique} does not allow the module"])
    cluster.delete(*POLICY, unique)


def test_the_api_server_is_told_what_a_flight_says_of_what_it_looked_up(cluster, flights, namespace):
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "namespace": namespace}, "data": {"key": "aGk="}})
    wanted = {"lookup": {"apiVersion": "v1", "kind": "Secret", "name": "secret", "namespace": namespace}, "exitCode": 1, "stderr": "looked"}

    refused(flights, "web", "lookup", wanted, ["looked"], clusterAccess=True, resourceAccessMatchers=["*"])


# What is accepted ----------------------------------------------------------------------------------


def test_a_good_flight_is_accepted_and_a_bad_change_of_it_is_not(cluster, flights):
    when_compiled(lambda: flights.create("web", "basic", does={"data": {"a": "1"}}))
    flights.ready("web")

    with pytest.raises(ApiError, match="panic"):
        flights.behave("web", "panic")
    assert flights.data("web") == {"a": "1"} and condition(flights.get("web"))["status"] == "True"
    flights.behave("web", "basic", data={"a": "2"})
    eventually(lambda: flights.data("web") == {"a": "2"}, "the release follows", 60)
    flights.delete("web")
    flights.goes("web")


def reviews_of(host, name, namespace):
    """The recorded turns of a Flight that were reviews."""
    done = subprocess.run([str(BINARY), "timeline", f"flights.yoke.cd/{name}", "-n", namespace, f"--module-cache-dir={host.directory / 'cache'}",
                           "--turns=1000", "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    turns = json.loads(done.stdout)["turns"] if done.returncode == 0 else []
    return [turn for turn in turns if [cause.get("event") for cause in turn["causes"]] == ["review"]]


def test_a_review_is_recorded_as_a_turn_that_changes_nothing(cluster, flights, webhook_host, namespace):
    refused(flights, "bad", "basic", {"exitCode": 1})
    when_compiled(lambda: flights.create("good", "basic", does={"data": {"a": "1"}}))

    turn = eventually(lambda: reviews_of(webhook_host, "good", namespace), "its review is recorded", 60)[0]
    assert (turn["contract"], turn["outcome"], turn["user"]) == ("airway", "completed", f"system:serviceaccount:{namespace}:default")
    assert len(turn["module"]) == 64 and turn["cpuMicroseconds"] > 0
    assert [(one["verb"], one["resource"], one["object"]["name"], one["dryRun"], one["status"]) for one in turn["requests"]
            if one["verb"] == "patch"] == [("patch", "configmaps", "good", True, 201)]
    failed = eventually(lambda: reviews_of(webhook_host, "bad", namespace), "so is that of one that was refused", 60)
    assert {one["outcome"] for one in failed} == {"failed"}
    flights.delete("good")
    flights.goes("good")


def test_skip_admission_webhook_accepts_and_says_so(cluster, flights, namespace):
    bad = manifest("web", namespace, inputObject=behaving("web", "panic"), skipAdmissionWebhook=True)

    assert "the Flight has skipAdmissionWebhook" in warnings_of(cluster, bad)
    flights.create("web", "panic", skipAdmissionWebhook=True)
    flights.says("web", "panic")
    flights.delete("web")
    flights.goes("web")


def test_warnings_of_the_api_server_are_passed_on(cluster, flights, namespace):
    cluster.patch("v1", "Namespace", namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted"}}}, None)
    allow(cluster, namespace, resources=("pods",))
    pod = json.dumps([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}])

    assert "would violate PodSecurity" in warnings_of(cluster, manifest("web", namespace, inputObject=behaving("web", "raw", stdout=pod)))


def test_flights_that_a_flight_makes_are_reviewed_when_they_are_made(cluster, flights, namespace):
    """And not within the review of the outer Flight: programs that print Flights would cause reviews without end."""
    inner = manifest("inner", namespace, inputObject=behaving("inner", "panic"))

    said = warnings_of(cluster, manifest("web", namespace, inputObject=behaving("web", "raw", stdout=json.dumps([inner]))))
    assert "flight/inner is not rehearsed: it is reviewed when it is made" in said, said


def test_a_flight_whose_module_is_gone_is_deleted_and_so_are_those_of_a_namespace(cluster, flights, unique, tmp_path):
    copy = tmp_path / "flight.wasm"
    copy.write_bytes(pathlib.Path(flight("basic")).read_bytes())
    name = f"gone-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    allow(cluster, name)
    others = Flights(cluster, name)
    for one in (flights, others):
        when_compiled(lambda one=one: one.create("web", "basic", does={"data": {"a": "1"}}))
        one.ready("web")
        one.patch("web", wasmUrl=str(copy), skipAdmissionWebhook=True)
    copy.unlink()

    refused(flights, "probe", "panic")
    with pytest.raises(ApiError, match="flight.wasm"):
        flights.patch("web", skipAdmissionWebhook=False)
    cluster.patch(*FLIGHT, "web", {"metadata": {"finalizers": ["example.com/held", "yoke.cd/mayday.flight"]}}, flights.namespace)
    flights.delete("web")
    cluster.patch(*FLIGHT, "web", {"metadata": {"finalizers": ["yoke.cd/mayday.flight"]}}, flights.namespace)
    flights.goes("web")
    cluster.delete("v1", "Namespace", name)
    eventually(lambda: cluster.get("v1", "Namespace", name, None) is None, "the namespace is gone", 90)


def test_a_cluster_flight_is_evaluated_as_whom_it_names(cluster, flights, namespace, unique):
    class ClusterFlights(Flights):
        kind = CLUSTER_FLIGHT
    made = ClusterFlights(cluster, None)

    refused(made, unique, "crossns", {"namespaces": [namespace]}, ["NAMESPACE/NAME", "--cluster-flights-as-host"])
    refused(made, unique, "crossns", {"namespaces": [namespace, "kube-system"]}, [f"system:serviceaccount:{namespace}:default", "kube-system"],
            account=f"{namespace}/default")
    made.create(unique, "crossns", account=f"{namespace}/default", does={"namespaces": [namespace], "data": {"a": "1"}})
    made.ready(unique)
    made.delete(unique)
    made.goes(unique)


# Mode static -----------------------------------------------------------------------------------------


def wait_protected(cluster, path):
    def is_protected():
        try:
            as_user(cluster, "PATCH", path + "?dryRun=All", {"data": {"a": "changed"}})
        except ApiError as error:
            return "cannot modify" in str(error)
    eventually(is_protected, "the policy is in force", 60)


@pytest.fixture
def static(cluster, flights, namespace):
    """The path of a ConfigMap that a static Flight has made."""
    when_compiled(lambda: flights.create("web", "basic", does={"data": {"a": "b"}}, mode="static"))
    flights.ready("web")
    path = cluster.path("v1", "ConfigMap", namespace, "web")
    wait_protected(cluster, path)
    return path


def test_what_a_static_flight_has_made_is_changed_and_deleted_by_nobody_else(cluster, static):
    for patch in ({"data": {"a": "changed"}}, {"data": None}, {"metadata": {"ownerReferences": None}}):
        with pytest.raises(ApiError, match="cannot modify flight sub-resources"):
            as_user(cluster, "PATCH", static, patch)
    with pytest.raises(ApiError, match="cannot modify yoke annotations"):
        as_user(cluster, "PATCH", static, {"metadata": {"annotations": {"instance.atc.yoke.cd/instanceRef": "x/Flight.yoke.cd:other"}}})
    with pytest.raises(ApiError, match="cannot delete resources managed by Air-Traffic-Controller"):
        as_user(cluster, "DELETE", static)
    as_user(cluster, "PATCH", static, {"data": {"more": "x"}, "metadata": {"labels": {"mine": "x"}}})


def test_what_a_static_flight_has_made_follows_it_and_goes_with_it(cluster, flights, static):
    flights.behave("web", "basic", data={"a": "c"})
    eventually(lambda: flights.data("web") == {"a": "c"}, "the ConfigMap follows")

    flights.delete("web")
    flights.goes("web")
    assert flights.data("web") is None


def test_a_static_flight_protects_nothing_of_another(cluster, flights, static, namespace):
    flights.create("other", "basic", does={"data": {"a": "b"}})
    flights.ready("other")
    other = cluster.path("v1", "ConfigMap", namespace, "other")

    as_user(cluster, "PATCH", other, {"data": {"a": "changed"}})
    as_user(cluster, "DELETE", other)
    # A standard Flight's resources stay in their release, too.
    flights.patch("other", mode="dynamic")
    eventually(lambda: flights.data("other") == {"a": "b"}, "it is made again")
    with pytest.raises(ApiError, match="cannot modify yoke annotations"):
        as_user(cluster, "PATCH", other, {"metadata": {"annotations": {"instance.atc.yoke.cd/release": "x"}}})


def test_a_namespace_with_a_static_flight_goes(cluster, flights, unique):
    name = f"gone-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    allow(cluster, name)
    made = Flights(cluster, name)
    when_compiled(lambda: made.create("web", "basic", does={"data": {"a": "b"}}, mode="static"))
    made.ready("web")
    wait_protected(cluster, cluster.path("v1", "ConfigMap", name, "web"))

    cluster.delete("v1", "Namespace", name)
    eventually(lambda: cluster.get("v1", "Namespace", name, None) is None, "the namespace is gone", 90)


def test_what_a_static_cluster_flight_has_made_is_protected_wherever_it_is(cluster, flights, namespace, unique):
    class ClusterFlights(Flights):
        kind = CLUSTER_FLIGHT
    made = ClusterFlights(cluster, None)
    when_compiled(lambda: made.create(unique, "crossns", account=f"{namespace}/default", does={"namespaces": [namespace], "data": {"a": "b"}}, mode="static"))
    made.ready(unique)
    path = cluster.path("v1", "ConfigMap", namespace, unique)
    wait_protected(cluster, path)

    with pytest.raises(ApiError, match="cannot delete resources managed by Air-Traffic-Controller"):
        as_user(cluster, "DELETE", path)
    made.delete(unique)
    made.goes(unique)
    assert cluster.get("v1", "ConfigMap", unique, namespace) is None


def test_a_host_that_is_away_holds_up_writes_of_flights_and_no_deletion(cluster, flights, webhook_host, namespace):
    when_compiled(lambda: flights.create("web", "basic", does={"data": {"a": "1"}}))
    flights.ready("web")
    webhook_host.kill()
    try:
        with pytest.raises(ApiError, match="failed calling webhook"):
            flights.patch("web", fixDriftInterval="1h")
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unrelated", "namespace": namespace}})
        flights.delete("web")
        cluster.patch(*FLIGHT, "web", {"metadata": {"finalizers": []}}, namespace)
        assert flights.get("web") is None
    finally:
        webhook_host.start()


# A sender that may be anybody -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def open_host(own_cluster, tmp_path_factory):
    own_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield from host_with_webhooks(own_cluster, tmp_path_factory.mktemp("open"), NAMESPACE, features="flights")


@pytest.fixture
def open_flights(own_cluster, open_host, unique):
    own_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"open-{unique}"}})
    made = Flights(own_cluster, f"open-{unique}")
    refused(made, "probe", "basic", account="kube-system/default", words=["a ServiceAccount of its own namespace"])
    yield made
    own_cluster.delete("v1", "Namespace", made.namespace)


def test_of_a_review_of_anybody_only_the_fields_are_looked_at(own_cluster, open_flights):
    refused(open_flights, "matcher", "basic", resourceAccessMatchers=["Config*"], words=["resourceAccessMatchers"])

    said = warnings_of(own_cluster, manifest("web", open_flights.namespace, inputObject=behaving("web", "panic")))
    assert "only its fields were checked" in said and "webhook-client-ca-file" in said


def test_a_forged_review_of_a_flight_fetches_runs_and_reveals_nothing(own_cluster, open_host, open_flights, tmp_path):
    copy = tmp_path / "flight.wasm"
    copy.write_bytes(pathlib.Path(flight("behave")).read_bytes())
    victim = open_flights.namespace
    forged = review(kind={"group": "yoke.cd", "version": "v1alpha1", "kind": "Flight"}, namespace=victim, name="web",
                    userInfo={"username": "root", "groups": ["system:masters"]},
                    object=manifest("web", victim, str(copy), inputObject=behaving("web", "basic", stderr="what it says", exitCode=1)))
    before = open_host.metrics()["hangar_evaluations_total"]

    for _ in range(20):
        status, text = ask(open_host, PATH, forged)
        response = json.loads(text)["response"]
        assert status == 200 and response["allowed"] and "only its fields were checked" in response["warnings"][0], text
        assert "what it says" not in text

    assert open_host.metrics()["hangar_evaluations_total"] == before
    # The module is not had for the namespace: its own Flight has to ask for it.
    copy.unlink()
    open_flights.create("late", "basic", wasm=str(copy))
    open_flights.says("late", "flight.wasm")
