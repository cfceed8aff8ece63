"""Airways and their instances as authors and users of Airways see them.

The instance's spec.behaviour tells the flight `behave` what to do.
"""
import hashlib
import json
import pathlib
import time

import pytest

import airways
from airways import flight, instance
from cluster import ApiError, condition, eventually, is_ready, never

AIRWAY = ("yoke.cd/v1alpha1", "Airway")
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
GROUP = "e2e.hangar.dev"
HOST_NAMESPACE = "default"


class Kind:
    """One kind made by an Airway with the flight `behave` (or another), and its instances."""

    def __init__(self, cluster, plural, scope="Namespaced"):
        self.cluster, self.plural, self.kind, self.scope = cluster, plural, plural.capitalize(), scope
        self.api_version = f"{GROUP}/v1"

    def create(self, name, behaviour, namespace="default", annotations=None, **spec):
        manifest = instance(self.kind, name, {"behaviour": behaviour, **spec},
                            namespace if self.scope == "Namespaced" else None)
        if annotations:
            manifest["metadata"]["annotations"] = annotations
        return self.cluster.create(manifest)

    def get(self, name, namespace="default"):
        return self.cluster.get(self.api_version, self.kind, name, namespace)

    def patch(self, name, namespace="default", **spec):
        return self.cluster.patch(self.api_version, self.kind, name, {"spec": spec}, namespace)

    def delete(self, name, namespace="default"):
        self.cluster.delete(self.api_version, self.kind, name, namespace)

    def ready(self, name, namespace="default", seconds=30):
        return eventually(lambda: (lambda one: one if is_ready(one) else None)(self.get(name, namespace)),
                          f"{self.kind} {name} is Ready", seconds)

    def error(self, name, namespace="default", seconds=30):
        """The message of the condition Ready=False with reason Error."""
        return eventually(lambda: (lambda ready: ready["message"] if ready.get("reason") == "Error" else None)(
            condition(self.get(name, namespace))), f"{self.kind} {name} reports an error", seconds)


@pytest.fixture
def kind(cluster, host, airway, unique):
    """Makes a Kind through an Airway; keyword arguments are the Airway's spec."""
    made = []

    def make(wasm="behave", scope="Namespaced", ready=True, **spec):
        one = Kind(cluster, f"{unique}{'abcdef'[len(made)]}s", scope)
        made.append(one)
        airway(airways.airway(one.plural, one.kind, flight(wasm) if "/" not in wasm else wasm, scope=scope, **spec), ready)
        return one
    return make


def config_map(cluster, name, namespace):
    return (cluster.get("v1", "ConfigMap", name, namespace) or {}).get("data")


def settle(host):
    """Waits until no flight has run for a while: a test must not count earlier runs."""
    seen = [-1.0]

    def is_quiet():
        before, seen[0] = seen[0], host.metrics()["hangar_evaluations_total"]
        time.sleep(0.5)
        return before == seen[0]
    eventually(is_quiet, "the evaluations end")


# The Airway and its CRD ---------------------------------------------------------------------------


def test_an_airway_makes_and_owns_the_crd_of_its_template(cluster, kind):
    made = kind()

    crd = cluster.get(*CRD, f"{made.plural}.{GROUP}")
    airway = cluster.get(*AIRWAY, f"{made.plural}.{GROUP}")
    assert [(owner["kind"], owner["uid"]) for owner in crd["metadata"]["ownerReferences"]] == [("Airway", airway["metadata"]["uid"])]
    assert crd["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert airway["metadata"]["finalizers"] == ["yoke.cd/strip.airway"]
    assert condition(airway)["reason"] == "Ready" and condition(airway)["observedGeneration"] == airway["metadata"]["generation"]


def test_a_changed_template_changes_the_crd(cluster, kind):
    made = kind()
    name = f"{made.plural}.{GROUP}"

    cluster.patch(*AIRWAY, name, {"spec": {"template": {"names": {"shortNames": ["sh"], "plural": made.plural, "kind": made.kind, "singular": made.kind.lower()}}}})

    eventually(lambda: cluster.get(*CRD, name)["spec"]["names"].get("shortNames") == ["sh"], "the CRD has the short name")


def test_an_edited_crd_is_put_back(cluster, kind):
    made = kind()
    name = f"{made.plural}.{GROUP}"

    cluster.patch(*CRD, name, {"spec": {"names": {"plural": made.plural, "kind": made.kind, "singular": "other"}}})

    eventually(lambda: cluster.get(*CRD, name)["spec"]["names"]["singular"] == made.kind.lower(), "the CRD is as the Airway says")


def test_a_new_instance_is_evaluated_once(cluster, kind, namespace, host):
    made = kind()
    settle(host)
    before = host.metrics()["hangar_evaluations_total"]
    for number in range(20):
        made.create(f"once-{number}", "basic", namespace, data={"a": "b"})
    for number in range(20):
        made.ready(f"once-{number}", namespace)
    settle(host)

    assert host.metrics()["hangar_evaluations_total"] == before + 20, "the finalizer that the host put on it is no news"


def test_deleting_an_airway_deletes_its_kind_its_instances_and_what_they_made(cluster, kind, namespace):
    made = kind()
    made.create("one", "basic", namespace, data={"a": "b"})
    made.ready("one", namespace)

    cluster.delete(*AIRWAY, f"{made.plural}.{GROUP}")

    eventually(lambda: cluster.get(*AIRWAY, f"{made.plural}.{GROUP}") is None, "the Airway is gone", 60)
    assert cluster.get(*CRD, f"{made.plural}.{GROUP}") is None
    assert config_map(cluster, "one", namespace) is None


def test_an_airway_can_be_deleted_when_its_module_is_gone(cluster, host, airway, unique, tmp_path):
    copy = tmp_path / "flight.wasm"
    copy.write_bytes(pathlib.Path(flight("basic")).read_bytes())
    name = f"{unique}s.{GROUP}"
    airway(airways.airway(f"{unique}s", unique.capitalize(), str(copy)))

    copy.unlink()
    cluster.patch(*AIRWAY, name, {"spec": {"wasmUrls": {"flightChecksum": "0" * 64}}})
    eventually(lambda: condition(cluster.get(*AIRWAY, name)).get("reason") == "Error", "the Airway says that its module is gone", 60)
    cluster.delete(*AIRWAY, name)

    eventually(lambda: cluster.get(*AIRWAY, name) is None, "the Airway is gone", 30)


# What a flight gets -------------------------------------------------------------------------------


def test_a_flight_gets_argv_environment_and_the_whole_resource(cluster, kind, namespace):
    made = kind()

    made.create("it", "dump", namespace)
    made.ready("it", namespace)

    data = config_map(cluster, "it", namespace)
    argv, environment, stdin = json.loads(data["argv"]), data["env"].splitlines(), json.loads(data["stdin"])
    release = f"{GROUP}.{made.kind}.{namespace}.it"
    assert argv == [release]
    assert {f"YOKE_RELEASE={release}", f"YOKE_NAMESPACE={namespace}", f"NAMESPACE={namespace}", "YOKE_VERSION=v0.20.12"} < set(environment)
    assert any(line.startswith("HANGAR_VERSION=0.") for line in environment)
    assert stdin["kind"] == made.kind and stdin["spec"] == {"behaviour": "dump"}
    assert stdin["metadata"]["uid"] and stdin["metadata"]["finalizers"] == ["yoke.cd/mayday.flight"]


def test_object_path_narrows_stdin(cluster, kind, namespace):
    made = kind("basic", objectPath=["spec", "inner"])

    cluster.create(instance(made.kind, "it", {"inner": {"metadata": {"name": "from-inside"}, "spec": {"a": "1"}}}, namespace))

    eventually(lambda: config_map(cluster, "from-inside", namespace) == {"a": "1"}, "the ConfigMap of the inner object")


# Ownership, apply, prune --------------------------------------------------------------------------


def test_resources_carry_the_marks_of_their_release(cluster, kind, namespace):
    made = kind()

    made.create("it", "basic", namespace, data={"a": "b"})
    owner = made.ready("it", namespace)

    metadata = cluster.get("v1", "ConfigMap", "it", namespace)["metadata"]
    assert metadata["labels"]["app.kubernetes.io/managed-by"] == "atc.yoke"
    assert metadata["annotations"] == {
        "instance.atc.yoke.cd/release": f"{GROUP}.{made.kind}.{namespace}.it",
        "instance.atc.yoke.cd/namespace": namespace,
        "instance.atc.yoke.cd/instanceRef": f"{namespace}/{made.kind}.{GROUP}:it"}
    assert [reference["uid"] for reference in metadata["ownerReferences"]] == [owner["metadata"]["uid"]]
    assert {entry["manager"] for entry in metadata["managedFields"]} == {"yoke"}


def test_what_a_new_evaluation_no_longer_has_is_pruned(cluster, kind, namespace):
    made = kind()
    made.create("it", "children", namespace, names=["one", "two"])
    made.ready("it", namespace)

    made.patch("it", namespace, names=["two", "three"])

    eventually(lambda: config_map(cluster, "three", namespace) is not None or cluster.get("v1", "ConfigMap", "three", namespace), "three is there")
    eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace) is None, "one is gone")
    assert cluster.get("v1", "ConfigMap", "two", namespace)


def test_an_empty_list_prunes_everything_and_is_valid(cluster, kind, namespace):
    made = kind()
    made.create("it", "children", namespace, names=["one", "two"])
    made.ready("it", namespace)

    made.patch("it", namespace, behaviour="raw", stdout="[]")

    eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace) is None and cluster.get("v1", "ConfigMap", "two", namespace) is None,
               "both are gone")
    made.ready("it", namespace)


def test_what_another_release_owns_is_not_taken_over(cluster, kind, namespace):
    made = kind()
    made.create("first", "children", namespace, names=["shared"], data={"by": "first"})
    made.ready("first", namespace)

    made.create("second", "children", namespace, names=["shared"], data={"by": "second"})

    assert "already owned by" in made.error("second", namespace)
    assert config_map(cluster, "shared", namespace) == {"by": "first"}


def test_deleting_an_instance_deletes_what_it_made_and_its_history(cluster, kind, namespace):
    made = kind()
    made.create("it", "children", namespace, names=["one", "two"])
    made.ready("it", namespace)

    made.delete("it", namespace)

    eventually(lambda: made.get("it", namespace) is None, "the instance is gone")
    assert cluster.get("v1", "ConfigMap", "one", namespace) is None
    assert cluster.list("v1", "Secret", namespace, "internal.yoke/kind=revision") == []


def test_deleting_an_instance_asks_for_each_resource_about_once(cluster, host, kind, namespace):
    made = kind()
    names = [f"child{n}" for n in range(20)]
    made.create("it", "children", namespace, names=names)
    made.ready("it", namespace)
    settle(host)

    def reads():
        return sum(value for key, value in host.metrics().items() if key.startswith("rest_client_requests_total{") and 'method="GET"' in key)

    before = reads()
    made.delete("it", namespace)
    eventually(lambda: made.get("it", namespace) is None, "the instance is gone")

    # One more read for each deleted resource would make about two hundred. Watches that begin count, too.
    assert reads() - before <= 2 * len(names)


def test_other_finalizers_are_kept(cluster, kind, namespace):
    made = kind()
    manifest = instance(made.kind, "it", {"behaviour": "basic"}, namespace, finalizers=["example.com/mine"])
    cluster.create(manifest)
    made.ready("it", namespace)

    made.delete("it", namespace)

    eventually(lambda: made.get("it", namespace)["metadata"]["finalizers"] == ["example.com/mine"], "only the foreign finalizer is left")
    cluster.patch(made.api_version, made.kind, "it", {"metadata": {"finalizers": None}}, namespace)
    eventually(lambda: made.get("it", namespace) is None, "the instance is gone")


def test_history_is_kept_as_yoke_keeps_it_and_capped(cluster, kind, namespace):
    made = kind(historyCapSize=2)
    made.create("it", "basic", namespace, data={"n": "0"})
    for n in range(1, 4):
        made.patch("it", namespace, data={"n": str(n)})
        eventually(lambda n=n: config_map(cluster, "it", namespace) == {"n": str(n)}, f"revision {n} is applied")

    release = f"{GROUP}.{made.kind}.{namespace}.it"
    selector = f"internal.yoke/kind=revision,internal.yoke/release={hashlib.sha1(release.encode()).hexdigest()}"
    secrets = eventually(lambda: (lambda found: found if len(found) == 2 else None)(cluster.list("v1", "Secret", namespace, selector)),
                         "two revisions are kept")
    for secret in secrets:
        assert secret["metadata"]["name"].startswith("yoke.") and len(secret["metadata"]["name"]) == len("yoke.") + 12
        assert secret["metadata"]["annotations"]["internal.yoke/release-name"] == release
        assert secret["metadata"]["annotations"]["internal.yoke/resources"] == "1"


def test_namespaces_outside_of_the_release_are_refused(cluster, kind, namespace):
    made = kind()

    made.create("it", "crossns", namespace, namespaces=[namespace, "default"])

    assert "Multiple namespaces detected (if desired enable multinamespace releases)" in made.error("it", namespace)
    assert config_map(cluster, "it", "default") is None


def test_a_cluster_scoped_kind_may_use_every_namespace(cluster, kind, namespace, unique):
    made = kind(scope="Cluster")

    made.create(f"it-{unique}", "crossns", namespaces=[namespace, "default"], data={"a": "b"})
    made.ready(f"it-{unique}")

    assert config_map(cluster, f"it-{unique}", namespace) == config_map(cluster, f"it-{unique}", "default") == {"a": "b"}


# Modes --------------------------------------------------------------------------------------------


def test_dynamic_mode_puts_back_what_is_edited_or_deleted(cluster, kind, namespace):
    made = kind(mode="dynamic")
    made.create("it", "basic", namespace, data={"a": "b"})
    made.ready("it", namespace)

    cluster.patch("v1", "ConfigMap", "it", {"data": {"a": "edited"}}, namespace)
    eventually(lambda: config_map(cluster, "it", namespace) == {"a": "b"}, "the edit is put back")
    cluster.delete("v1", "ConfigMap", "it", namespace)
    eventually(lambda: config_map(cluster, "it", namespace) == {"a": "b"}, "the ConfigMap is made again")


def test_dynamic_mode_works_for_cluster_scoped_kinds(cluster, kind, namespace, unique):
    made = kind(scope="Cluster", mode="dynamic")
    name = f"it-{unique}"
    made.create(name, "crossns", namespaces=[namespace, "default"])
    made.ready(name)

    cluster.delete("v1", "ConfigMap", name, namespace)
    cluster.delete("v1", "ConfigMap", name, "default")

    eventually(lambda: cluster.get("v1", "ConfigMap", name, namespace) and cluster.get("v1", "ConfigMap", name, "default"), "both are made again", 10)


def test_standard_mode_leaves_edits_alone(cluster, host, kind, namespace):
    made = kind()
    made.create("it", "basic", namespace, data={"a": "b"})
    made.ready("it", namespace)
    settle(host)

    cluster.patch("v1", "ConfigMap", "it", {"data": {"a": "edited"}}, namespace)

    never(lambda: config_map(cluster, "it", namespace) == {"a": "b"}, "standard mode put an edit back")


def test_fix_drift_interval_puts_edits_back(cluster, kind, namespace):
    made = kind("backend", fixDriftInterval="500ms")
    cluster.create(instance(made.kind, "it", {"image": "nginx", "replicas": 2}, namespace))
    eventually(lambda: cluster.get("apps/v1", "Deployment", "it", namespace), "the Deployment is there")

    cluster.patch("apps/v1", "Deployment", "it", {"spec": {"replicas": 1}}, namespace, manager="yoke")

    eventually(lambda: cluster.get("apps/v1", "Deployment", "it", namespace)["spec"]["replicas"] == 2, "the replicas are put back")


def test_subscription_mode_follows_only_what_was_looked_up(cluster, host, kind, namespace):
    made = kind(mode="subscription", clusterAccess=True)
    made.create("it", "children", namespace, names=["watched", "ignored"], lookups=["watched"], data={"a": "b"})
    made.ready("it", namespace)
    settle(host)

    cluster.patch("v1", "ConfigMap", "ignored", {"data": {"a": "edited"}}, namespace)
    never(lambda: config_map(cluster, "ignored", namespace)["a"] == "b", "an edit of what was not looked up was put back")
    cluster.patch("v1", "ConfigMap", "watched", {"data": {"a": "edited"}}, namespace)
    eventually(lambda: config_map(cluster, "watched", namespace)["a"] == "b", "the edit is put back")


# Lookups ------------------------------------------------------------------------------------------

def secret(cluster, name, namespace, **data):
    return cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": data})


def test_a_lookup_without_cluster_access_is_not_granted(cluster, kind, namespace):
    made = kind()

    made.create("it", "lookup", namespace, lookup={"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": namespace, "tolerate": True})

    eventually(lambda: (config_map(cluster, "it", namespace) or {}).get("outcome") == "FeatureNotGranted", "the outcome")
    assert "access to the cluster has not been granted for this flight invocation" in config_map(cluster, "it", namespace)["message"]


@pytest.mark.parametrize("matchers, allowed", [
    ([], False), (["bar/Secret:one"], False), (["Secret"], True), (["{ns}/*"], True), (["{ns}/Secret:one"], True), (["*"], True), (["ConfigMap"], False)])
def test_matchers_decide_what_may_be_looked_up(cluster, kind, namespace, matchers, allowed):
    made = kind(clusterAccess=True, resourceAccessMatchers=[matcher.format(ns=namespace) for matcher in matchers])
    secret(cluster, "one", namespace, a="b")

    made.create("it", "lookup", namespace, lookup={"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": namespace, "tolerate": True})

    outcome = eventually(lambda: (config_map(cluster, "it", namespace) or {}).get("outcome"), "the lookup has an outcome")
    assert outcome == ("found" if allowed else "Forbidden")
    if not allowed:
        assert "cannot access resource outside of target release ownership" in config_map(cluster, "it", namespace)["message"]


@pytest.mark.parametrize("mode", ["dynamic", "subscription"])
def test_a_change_of_what_was_looked_up_evaluates_again(cluster, kind, namespace, mode):
    made = kind(clusterAccess=True, resourceAccessMatchers=["Secret"], mode=mode)
    made.create("it", "lookup", namespace, lookup={"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": namespace})
    eventually(lambda: (config_map(cluster, "it", namespace) or {}).get("outcome") == "NotFound", "it is not there yet")

    secret(cluster, "one", namespace, key="first")
    eventually(lambda: config_map(cluster, "it", namespace).get("key") == "Zmlyc3Q=", "its appearance evaluates again")
    secret(cluster, "one", namespace, key="second")
    eventually(lambda: config_map(cluster, "it", namespace).get("key") == "c2Vjb25k", "its change evaluates again")
    cluster.delete("v1", "Secret", "one", namespace)
    eventually(lambda: config_map(cluster, "it", namespace)["outcome"] == "NotFound", "its end evaluates again")


def test_however_much_is_looked_up_and_made_of_a_kind_is_watched_twice(cluster, host, kind, namespace):
    made = kind(clusterAccess=True, resourceAccessMatchers=["ConfigMap"], mode="dynamic")
    for index in range(10):
        made.create(f"it-{index}", "lookup", namespace, lookup={"apiVersion": "v1", "kind": "ConfigMap", "name": f"source-{index}", "namespace": namespace})
    for index in range(10):
        eventually(lambda: (config_map(cluster, f"it-{index}", namespace) or {}).get("outcome") == "NotFound", "its source is not there yet", 60)
    for index in range(10):
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"source-{index}", "namespace": namespace}, "data": {"key": "first"}})
    for index in range(10):
        eventually(lambda: config_map(cluster, f"it-{index}", namespace).get("key") == "first", "its appearance evaluates again", 60)

    def watches():
        return [value for key, value in host.metrics().items() if key.startswith("hangar_cache_watches{") and 'resource="configmaps"' in key]
    eventually(lambda: watches() and sum(watches()) <= 2, "ConfigMaps are watched twice at most")


def test_a_rest_mapping_names_the_resource(cluster, kind, namespace):
    made = kind(clusterAccess=True)

    made.create("known", "restMapping", namespace, apiVersion="apps/v1", kind="Deployment")
    made.create("unknown", "restMapping", namespace, apiVersion="nowhere.example/v1", kind="Nothing")

    eventually(lambda: config_map(cluster, "known", namespace), "the mapping is there")
    assert json.loads(config_map(cluster, "known", namespace)["mapping"]) == {
        "Group": "apps", "Version": "v1", "Kind": "Deployment", "Resource": "deployments", "Namespaced": True}
    eventually(lambda: (config_map(cluster, "unknown", namespace) or {}).get("outcome") == "Error", "an unknown kind is an error")


def test_an_unchanged_evaluation_asks_the_api_server_for_nothing(cluster, host, kind, namespace):
    made = kind(clusterAccess=True, resourceAccessMatchers=["Secret"], fixDriftInterval="100ms")
    secret(cluster, "one", namespace, key="first")
    made.create("it", "lookup", namespace, lookup={"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": namespace})
    made.ready("it", namespace)

    def requests():
        # Except for those of the leader's Lease; a watch counts when its answer begins.
        return sum(value for key, value in host.metrics().items() if key.startswith("rest_client_requests_total{") and 'method="PUT"' not in key)

    def ten_evaluations_are_free():
        evaluations, before = host.metrics()["hangar_evaluations_total"], requests()
        eventually(lambda: host.metrics()["hangar_evaluations_total"] >= evaluations + 10, "it is evaluated ten times")
        return requests() == before

    # Earlier requests, such as those for Events, may still run.
    eventually(ten_evaluations_are_free, "ten evaluations ask for nothing")


@pytest.mark.parametrize("language", ["go", "rust", "cpp"])
def test_a_flight_of_every_sdk_looks_up_waits_and_reports(cluster, kind, namespace, language):
    made = kind(f"greeting_{language}", clusterAccess=True, resourceAccessMatchers=["ConfigMap"], mode="dynamic")
    def message():
        return (made.get("it", namespace).get("status") or {}).get("msg")

    cluster.create(instance(made.kind, "it", {"from": "source"}, namespace))
    eventually(lambda: message() == "waiting for configmap source", "it waits for what it looked up")
    assert config_map(cluster, "it", namespace) is None

    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source", "namespace": namespace}, "data": {"text": "hello"}})

    eventually(lambda: config_map(cluster, "it", namespace) == {"text": "hello"}, "it has read what it waited for")
    eventually(lambda: message() == "greeting", "it says so")


# Status -------------------------------------------------------------------------------------------


def test_the_status_that_a_flight_returns_is_the_status(cluster, kind, namespace):
    made = kind()

    made.create("it", "status", namespace, status={"phase": "blue"})
    ready = made.ready("it", namespace)

    assert ready["status"]["phase"] == "blue"
    made.patch("it", namespace, status={"phase": None, "colour": "green"})
    eventually(lambda: made.get("it", namespace)["status"].get("colour") == "green", "the new status")
    assert "phase" not in made.get("it", namespace)["status"]


def test_a_ready_condition_of_the_flight_is_respected(cluster, kind, namespace):
    made = kind()
    own = {"type": "Ready", "status": "False", "reason": "Busy", "message": "not yet", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    made.create("it", "status", namespace, status={"conditions": [own]})

    eventually(lambda: condition(made.get("it", namespace)).get("reason") == "Busy", "the flight's own condition")
    never(lambda: condition(made.get("it", namespace)).get("reason") != "Busy", "the flight's Ready condition was overruled", 1)


def test_other_conditions_of_the_flight_stand_beside_ready(cluster, kind, namespace):
    made = kind()
    own = {"type": "Custom", "status": "True", "reason": "Because", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    made.create("it", "status", namespace, status={"conditions": [own]})
    ready = made.ready("it", namespace)

    assert sorted(one["type"] for one in ready["status"]["conditions"]) == ["Custom", "Ready"]


def test_a_failing_flight_may_still_report_through_its_status(cluster, kind, namespace):
    made = kind()
    made.create("it", "basic", namespace, data={"a": "b"})
    made.ready("it", namespace)

    made.patch("it", namespace, behaviour="identity", status={"message": "I gave up"}, exitCode=1, stderr="the reason")

    assert "the reason" in made.error("it", namespace)
    assert made.get("it", namespace)["status"]["message"] == "I gave up"
    assert config_map(cluster, "it", namespace) == {"a": "b"}


def test_only_the_identity_is_an_empty_release(cluster, kind, namespace):
    made = kind()
    made.create("it", "basic", namespace, data={"a": "b"})
    made.ready("it", namespace)

    made.patch("it", namespace, behaviour="identity", status={"phase": "empty"})

    eventually(lambda: cluster.get("v1", "ConfigMap", "it", namespace) is None, "the ConfigMap is pruned")


def test_readiness_follows_the_resources(cluster, kind, namespace):
    made = kind()
    made.create("job", "job", namespace)
    reasons = []

    def look():
        reason = condition(made.get("job", namespace)).get("reason")
        if reason and (not reasons or reasons[-1] != reason):
            reasons.append(reason)
        return reason == "Ready"

    eventually(look, "the Job completes and the instance is Ready")
    assert reasons in (["InProgress", "Ready"], ["Ready"])


def test_what_never_becomes_available_is_never_ready(cluster, kind, namespace):
    made = kind(fixDriftInterval="500ms")
    made.create("it", "neverReady", namespace)

    eventually(lambda: condition(made.get("it", namespace)).get("reason") == "InProgress", "it is in progress")
    never(lambda: is_ready(made.get("it", namespace)), "a Deployment that no node runs was called ready", 6)


WIDGETS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.rules.hangar.dev"},
           "spec": {"group": "rules.hangar.dev", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                  "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


@pytest.fixture
def widgets(cluster):
    cluster.apply(WIDGETS)
    cluster.learn("rules.hangar.dev/v1", "Widget", "widgets")
    yield {"apiVersion": "rules.hangar.dev/v1", "kind": "Widget", "metadata": {"name": "it"}}
    cluster.delete(*CRD, "widgets.rules.hangar.dev")
    eventually(lambda: cluster.get(*CRD, "widgets.rules.hangar.dev") is None, "the kind is gone", 60)


def rules_in(namespace):
    """Users' readiness rules for widgets."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules", "namespace": namespace, "labels": {"resource.yoke.cd/readiness": "conditions"}},
            "data": {"Widget.rules.hangar.dev": "Baked Cooled"}}


def test_a_rule_of_a_tenants_namespace_decides_nothing(cluster, kind, widgets, namespace):
    cluster.apply(rules_in(namespace))
    made = kind()
    made.create("it", "raw", namespace, stdout=json.dumps(widgets))
    made.ready("it", namespace)


def test_a_rule_of_users_decides_when_their_kind_is_ready(cluster, kind, widgets, namespace):
    widget, rules = widgets, rules_in(HOST_NAMESPACE)
    cluster.apply(rules)
    made = kind()

    def bake(*types):
        status = {"conditions": [{"type": one, "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"} for one in types]}
        cluster.patch("rules.hangar.dev/v1", "Widget", "it", {"status": status}, namespace, "status")

    made.create("it", "raw", namespace, stdout=json.dumps(widget))
    eventually(lambda: condition(made.get("it", namespace)).get("message") == "waiting for flight to become ready", "it waits for the conditions")
    bake("Baked")
    never(lambda: is_ready(made.get("it", namespace)), "half of the conditions were enough")
    bake("Baked", "Cooled")
    made.ready("it", namespace)
    cluster.delete("v1", "ConfigMap", "rules", HOST_NAMESPACE)


@pytest.fixture
def lua_rule(cluster, widgets):
    """Makes the rule for widgets: a script in Lua."""
    def make(script):
        rules = rules_in(HOST_NAMESPACE)
        rules["metadata"]["labels"]["resource.yoke.cd/readiness"] = "lua"
        cluster.apply({**rules, "data": {"_.rules.hangar.dev": script}})
    yield make
    cluster.delete("v1", "ConfigMap", "rules", HOST_NAMESPACE)


def test_a_rule_in_lua_decides_when_a_kind_is_ready(cluster, kind, widgets, lua_rule, namespace):
    lua_rule("return function(widget)\n  return widget.status ~= nil and widget.status.baked >= 2\nend")
    made = kind()

    def bake(times):
        cluster.patch("rules.hangar.dev/v1", "Widget", "it", {"status": {"baked": times}}, namespace, "status")

    made.create("it", "raw", namespace, stdout=json.dumps(widgets))
    eventually(lambda: condition(made.get("it", namespace)).get("message") == "waiting for flight to become ready", "it waits for the rule", 60)
    bake(1)
    never(lambda: is_ready(made.get("it", namespace)), "it was ready too early")
    bake(2)
    made.ready("it", namespace)


@pytest.mark.parametrize(("script", "says"), [
    ("return function(widget)\n  return widget.status.ready\nend", "failed to invoke lua readiness function: _.rules.hangar.dev:2: attempt to index"),
    ("return function(widget) return 1 end", "expected result to be a boolean but got: number"),
    ("return function() while true do end end", "execution timeout (5s of processor time) exceeded"),
    ("return function() local text = 'x' while true do text = text .. text end end", "it needs more than 64 MiB of memory"),
], ids=["error", "type", "time", "memory"])
def test_a_rule_in_lua_that_fails_is_an_error_of_the_instance_alone(kind, widgets, lua_rule, namespace, script, says):
    lua_rule(script)
    made = kind()

    made.create("it", "raw", namespace, stdout=json.dumps(widgets))
    error = made.error("it", namespace, 60)
    made.create("other", "basic", namespace, data={"a": "b"})
    made.ready("other", namespace)

    rule = f"{namespace}/Widget.rules.hangar.dev:it: readiness rule _.rules.hangar.dev of ConfigMap {HOST_NAMESPACE}/rules: "
    assert error.startswith(f"failed to check release readiness: {rule}") and says in error
    lua_rule("return function(widget) return widget.kind == 'Widget' end")
    made.ready("it", namespace)


def test_the_status_does_not_flap(cluster, kind, namespace):
    made = kind(fixDriftInterval="200ms")
    made.create("it", "basic", namespace, data={"a": "b"})
    version = made.ready("it", namespace)["metadata"]["resourceVersion"]

    never(lambda: made.get("it", namespace)["metadata"]["resourceVersion"] != version, "an unchanged evaluation wrote to the instance", 2)


def test_an_airway_and_its_kind_have_the_metrics_of_controllers(cluster, host, kind, namespace):
    made = kind()
    made.create("it", "basic", namespace, data={"a": "b"})
    made.create("bad", "basic", namespace, exitCode=1)
    made.ready("it", namespace)
    made.error("bad", namespace)

    controllers = ("airway", f"{made.plural}.{GROUP}")

    def fine(controller):
        """An Airway whose module is looked at again later counts as requeue_after."""
        seen = host.metrics()
        return sum(seen[f'controller_runtime_reconcile_total{{controller="{controller}",result="{result}"}}'] for result in ("success", "requeue_after"))

    # A reconcile that has written its status is counted when it ends.
    eventually(lambda: all(fine(controller) >= 1 for controller in controllers), "both have reconciled", 60)
    seen = host.metrics()
    for controller in controllers:
        assert seen[f'controller_runtime_reconcile_time_seconds_count{{controller="{controller}"}}'] >= 1
        assert seen[f'controller_runtime_max_concurrent_reconciles{{controller="{controller}"}}'] >= 1
        assert f'controller_runtime_active_workers{{controller="{controller}"}}' in seen
        assert seen[f'workqueue_adds_total{{controller="{controller}",name="{controller}"}}'] >= 1
        for name in ("depth", "queue_duration_seconds_count", "work_duration_seconds_count", "unfinished_work_seconds",
                     "longest_running_processor_seconds", "retries_total"):
            assert f'workqueue_{name}{{controller="{controller}",name="{controller}"}}' in seen
    failed = f'controller_runtime_reconcile_errors_total{{controller="{made.plural}.{GROUP}"}}'
    assert seen[failed] >= 1
    assert seen["hangar_evaluations_total"] >= 2 and seen["hangar_evaluation_cpu_seconds_count"] >= 2
    assert any(key.startswith("rest_client_requests_total{") and 'method="PATCH"' in key for key in seen)


def test_a_flight_that_fails_is_tried_again_less_and_less_and_at_once_when_its_input_changes(host, kind, namespace):
    made = kind()
    made.create("bad", "basic", namespace, exitCode=1)

    def delays():
        """How long the host waits after each failure until the next attempt, from its log."""
        logged = [json.loads(line) for line in host.log.read_text().splitlines() if namespace in line and '"reconcile failed"' in line]
        return [line["retry_in_ms"] for line in logged if line["name"] == "bad"]
    failures = eventually(lambda: len(delays()) >= 3 and delays(), "it was tried three times", 60)
    assert all(float(delay) >= 1000 * 2 ** index for index, delay in enumerate(failures)), failures

    made.patch("bad", namespace, exitCode=0)
    made.ready("bad", namespace)


# Stages -------------------------------------------------------------------------------------------


def test_a_stage_waits_until_the_one_before_is_ready(cluster, kind, unique):
    made = kind(scope="Cluster", prune={"crds": True, "namespaces": True})
    name = f"it-{unique}"
    cluster.learn("guests.hangar.dev/v1", "Staged", "staged", namespaced=False)

    made.create(name, "stages")

    job = eventually(lambda: cluster.get("batch/v1", "Job", f"{name}-gate"), "the gate is there")
    eventually(lambda: cluster.get("v1", "ConfigMap", f"{name}-last"), "the last stage is there", 60)
    job = cluster.get("batch/v1", "Job", f"{name}-gate")
    assert job["status"]["completionTime"] <= cluster.get("v1", "ConfigMap", f"{name}-last")["metadata"]["creationTimestamp"]
    assert cluster.get("v1", "ConfigMap", f"{name}-inside", f"{name}-stage")
    assert cluster.get("guests.hangar.dev/v1", "Staged", name)
    made.ready(name)
    made.delete(name)
    eventually(lambda: made.get(name) is None, "the instance is gone", 60)
    assert cluster.get(*CRD, "staged.guests.hangar.dev") is None


def test_definitions_and_namespaces_are_left_behind_unless_the_airway_says_otherwise(cluster, kind, unique):
    made = kind(scope="Cluster")
    crd = airways.airway(f"{unique}rests", f"{unique.capitalize()}rest", "none")["spec"]["template"]
    definition = {"apiVersion": CRD[0], "kind": CRD[1], "metadata": {"name": f"{unique}rests.{GROUP}"}, "spec": crd}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{unique}-rest"}}
    made.create("it", "raw", stdout=json.dumps([definition, space]))
    made.ready("it")
    release = f"{GROUP}.{made.kind}.it"
    objects = [(*CRD, definition["metadata"]["name"]), ("v1", "Namespace", space["metadata"]["name"])]
    for one in objects:
        assert cluster.get(*one)["metadata"]["annotations"]["instance.atc.yoke.cd/release"] == release

    made.delete("it")
    eventually(lambda: made.get("it") is None, "the instance is gone", 60)

    for one in objects:
        left = cluster.get(*one)["metadata"]
        assert "deletionTimestamp" not in left and "ownerReferences" not in left
        assert not [key for key in left.get("annotations", {}) if "atc.yoke.cd" in key]
        assert "app.kubernetes.io/managed-by" not in left.get("labels", {})
    # The next release may take them over.
    made.create("next", "raw", stdout=json.dumps([definition, space]))
    made.ready("next")
    made.delete("next")
    eventually(lambda: made.get("next") is None, "the instance is gone", 60)
    for one in objects:
        cluster.delete(*one)


def test_a_waiting_stage_holds_up_nobody_else(cluster, kind, namespace):
    made = kind()
    blocked = json.dumps([[{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "gate{n}"},
                            "spec": {"template": {"spec": {"restartPolicy": "Never", "nodeSelector": {"nobody": "has-this"},
                                                           "containers": [{"name": "main", "image": "busybox"}]}}}}],
                          [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "behind{n}"}}]])
    for n in range(64):
        made.create(f"blocked{n}", "raw", namespace, stdout=blocked.replace("{n}", str(n)))
    eventually(lambda: len(cluster.list("batch/v1", "Job", namespace)) == 64, "all gates are there", 60)

    made.create("free", "basic", namespace, data={"a": "b"})
    made.ready("free", namespace, seconds=10)

    assert cluster.get("v1", "ConfigMap", "behind0", namespace) is None


def test_a_prune_that_waits_holds_up_nobody_else(cluster, kind, namespace):
    made = kind()
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": ["example.com/hold"]}}
    names = [f"held{n}" for n in range(64)]
    for name in names:
        held["metadata"]["name"] = name
        made.create(name, "raw", namespace, stdout=json.dumps(held))
    eventually(lambda: len(cluster.list("v1", "ConfigMap", namespace, "app.kubernetes.io/managed-by=atc.yoke")) == 64, "all are there", 60)
    for name in names:
        made.patch(name, namespace, stdout="[]")
    eventually(lambda: all("deletionTimestamp" in cluster.get("v1", "ConfigMap", name, namespace)["metadata"] for name in names),
               "all are being deleted", 60)

    made.create("free", "basic", namespace, data={"a": "b"})
    made.ready("free", namespace, seconds=10)
    made.delete("free", namespace)
    eventually(lambda: made.get("free", namespace) is None, "the instance is gone", 10)

    for name in names:
        cluster.patch("v1", "ConfigMap", name, {"metadata": {"finalizers": None}}, namespace)
    for name in names:
        made.ready(name, namespace)


def test_a_label_set_while_the_status_is_written_is_not_missed(cluster, kind, namespace):
    made = kind()
    for n in range(20):
        name = f"it{n}"
        made.create(name, "dump", namespace)
        cluster.patch(made.api_version, made.kind, name, {"metadata": {"labels": {"late": "yes"}}}, namespace)

    for n in range(20):
        eventually(lambda n=n: '"late":"yes"' in (config_map(cluster, f"it{n}", namespace) or {}).get("stdin", "").replace('": "', '":"'),
                   f"the flight of it{n} has seen the label")
