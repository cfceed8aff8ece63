"""Override annotations: another flight or mode for one instance, by a user who may update its Airway."""
import json

import pytest

import airways
from airways import flight, instance
from cluster import ApiError, condition, eventually, is_ready, never, try_to, when_compiled
from conftest import COMPILED
from webhooks import as_user, ask, host_with_webhooks, remove_configurations, review, wait_registered

GROUP = "overrides.hangar.dev"
NAMESPACE = "overrides"
FLIGHT, MODE = "overrides.yoke.cd/flight", "overrides.yoke.cd/mode"
DENIED = "user does not have permissions to create or update override annotations"
CHILD_MODE = "hangar.dev/mode"  # Of a child whose instance has an approved override.
MERGE, APPLY, JSON = "application/merge-patch+json", "application/apply-patch+yaml", "application/json"


@pytest.fixture(scope="module")
def cluster(own_cluster):
    """Of its own: another host with Airways, which has no webhooks, would ignore overrides and report that."""
    return own_cluster


@pytest.fixture(scope="module")
def webhook_host(cluster, tmp_path_factory):
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield from host_with_webhooks(cluster, tmp_path_factory.mktemp("overrides"), NAMESPACE, f"--module-allow-list={airways.GUESTS}/*")


@pytest.fixture
def kind(cluster, webhook_host, airway, unique):
    """Makes an Airway, and waits until its webhook is registered."""
    def make(wasm="behave", **spec):
        name = f"O{unique}"
        manifest = airway(airways.airway(f"{name.lower()}s", name, flight(wasm), group=GROUP, **spec))
        wait_registered(cluster, NAMESPACE, manifest["metadata"]["name"])
        return name
    return make


def as_account(namespace, name):
    return {"Impersonate-User": f"system:serviceaccount:{namespace}:{name}"}


@pytest.fixture
def accounts(cluster, namespace, unique):
    """Headers of two ServiceAccounts that may write instances; the second may update Airways, too."""
    prefix = "/apis/rbac.authorization.k8s.io/v1"
    who = [{"kind": "ServiceAccount", "namespace": namespace, "name": name} for name in ("author", "owner")]
    for path, kind, name, rule, subjects in (
            (f"{prefix}/namespaces/{namespace}", "Role", "author", {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}, who),
            (prefix, "ClusterRole", f"owner-{unique}", {"apiGroups": ["yoke.cd"], "resources": ["airways"], "verbs": ["update"]}, who[1:])):
        cluster.request("POST", f"{path}/{kind.lower()}s", {"metadata": {"name": name}, "rules": [rule]})
        cluster.request("POST", f"{path}/{kind.lower()}bindings", {"metadata": {"name": name}, "subjects": subjects, "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}})
    headers = [as_account(namespace, account["name"]) for account in who]
    for one in headers:
        review_of = {"spec": {"user": one["Impersonate-User"], "resourceAttributes": {"verb": "create", "group": GROUP, "resource": "x", "namespace": namespace}}}
        eventually(lambda body=review_of: cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)["status"]["allowed"],
                   "the rights are in force")
    yield headers
    for resource in ("clusterroles", "clusterrolebindings"):
        cluster.request("DELETE", f"{prefix}/{resource}/owner-{unique}")


def annotate(cluster, path, headers=None, **annotations):
    keys = {"flight": FLIGHT, "mode": MODE}
    patch = {"metadata": {"annotations": {keys[key]: value for key, value in annotations.items()}}}
    return when_compiled(lambda: cluster.request("PATCH", path, patch, MERGE, headers))


def write_when_asked(write):
    """The message of the refusal; waits until the webhook is in force."""
    def attempt():
        try:
            write("?dryRun=All")
        except ApiError as error:
            return str(error)
    return eventually(attempt, "it is refused", 30)


def ready(cluster, kind, name, namespace):
    return eventually(lambda: (lambda got: got if got and is_ready(got) else None)(cluster.get(f"{GROUP}/v1", kind, name, namespace)), f"{name} is ready", 60)


def events_of(cluster, name, namespace):
    return [one["message"] for one in cluster.list("v1", "Event", namespace)
            if one["involvedObject"]["name"] == name and one["reason"] == "OverrideIgnored"]


def approvals_of(cluster, uid):
    return cluster.request("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/controllerrevisions?labelSelector=hangar.dev/override={uid}")["items"]


@pytest.mark.parametrize("annotation", [{FLIGHT: "https://example.invalid/module.wasm"}, {MODE: "dynamic"}], ids=["flight", "mode"])
@pytest.mark.parametrize("skip", [False, True], ids=["evaluated", "skipped"])
def test_who_may_not_update_the_airway_sets_no_override(cluster, kind, namespace, accounts, annotation, skip):
    author = accounts[0]
    name = kind(skipAdmissionWebhook=skip)
    plain = instance(name, "one", {"behaviour": "basic"}, namespace, group=GROUP)
    wanted = instance(name, "one", {"behaviour": "basic"}, namespace, group=GROUP, annotations=annotation)
    collection, path = cluster.path_of(plain, named=False), cluster.path_of(plain)

    assert DENIED in write_when_asked(lambda query: cluster.request("POST", collection + query, wanted, JSON, author))
    with pytest.raises(ApiError, match=DENIED):
        cluster.request("PATCH", path + "?fieldManager=author", wanted, APPLY, author)
    cluster.request("POST", collection, plain, JSON, author)
    with pytest.raises(ApiError, match=DENIED):
        cluster.request("PATCH", path, {"metadata": {"annotations": annotation}}, MERGE, author)
    with pytest.raises(ApiError, match=DENIED):
        cluster.request("PATCH", path + "?fieldManager=author&force=true", wanted, APPLY, author)
    replaced = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": ready(cluster, name, "one", namespace)["metadata"]["resourceVersion"]}}
    with pytest.raises(ApiError, match=DENIED):
        cluster.request("PUT", path, replaced, JSON, author)


def test_an_override_of_the_flight_replaces_its_resources_over_a_restart_until_it_is_removed(cluster, webhook_host, kind, namespace, accounts):
    author, owner = accounts
    name = kind("backend")
    one = instance(name, "one", {"image": "nginx", "replicas": 1}, namespace, group=GROUP)
    path = cluster.path_of(one)
    assert DENIED in write_when_asked(lambda query: cluster.request(
        "POST", cluster.path_of(one, named=False) + query, {**one, "metadata": {**one["metadata"], "annotations": {MODE: "dynamic"}}}, JSON, author))
    cluster.request("POST", cluster.path_of(one, named=False), one, JSON, author)
    eventually(lambda: cluster.get("apps/v1", "Deployment", "one", namespace), "the flight of the Airway made a Deployment", 60)

    annotate(cluster, path, owner, flight=flight("backend_dev"))

    daemon_sets = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    eventually(lambda: cluster.request("GET", daemon_sets)["items"], "the other flight made a DaemonSet", 60)
    eventually(lambda: cluster.get("apps/v1", "Deployment", "one", namespace) is None, "the Deployment is pruned", 60)
    with pytest.raises(ApiError, match="replicas must be odd but got 2"):
        cluster.request("PATCH", path, {"spec": {"replicas": 2}}, MERGE, author)
    with pytest.raises(ApiError, match=DENIED):
        annotate(cluster, path, author, flight=None)
    assert not events_of(cluster, "one", namespace)
    # A forged review removes no override.
    stored = cluster.request("GET", path)
    uid = stored["metadata"]["uid"]
    without = {**stored, "metadata": {**stored["metadata"], "annotations": {}}}
    status, answer = ask(webhook_host, f"/validations/{name.lower()}s.{GROUP}", review(
        operation="UPDATE", kind={"group": GROUP, "version": "v1", "kind": name}, namespace=namespace, name="one",
        userInfo={"username": "root", "groups": ["system:masters"]}, object=without, oldObject=stored))
    assert status == 200 and json.loads(answer)["response"]["allowed"], answer
    assert len(approvals_of(cluster, uid)) == 1

    # Another host finds the approval, and changes that were made meanwhile are carried out by the other flight.
    assert webhook_host.stop() == 0
    webhook_host.start()
    eventually(lambda: try_to(cluster.request, "PATCH", path, {"spec": {"image": "nginx:2"}}, MERGE, author), "the host answers reviews", 60)

    def images():
        return [pod["image"] for one in cluster.request("GET", daemon_sets)["items"] for pod in one["spec"]["template"]["spec"]["containers"]]
    eventually(lambda: images() == ["nginx:2"], "the DaemonSet follows the instance", 60)
    with pytest.raises(ApiError, match="replicas must be odd but got 2"):
        cluster.request("PATCH", path, {"spec": {"replicas": 2}}, MERGE, author)
    assert cluster.get("apps/v1", "Deployment", "one", namespace) is None
    assert len(approvals_of(cluster, uid)) == 1 and not events_of(cluster, "one", namespace)

    annotate(cluster, path, owner, flight=None)

    eventually(lambda: not approvals_of(cluster, uid), "the approval is gone", 60)
    eventually(lambda: cluster.get("apps/v1", "Deployment", "one", namespace), "the Airway's own flight made a Deployment", 60)
    eventually(lambda: not cluster.request("GET", daemon_sets)["items"], "the DaemonSet is pruned", 60)


def test_an_override_of_the_flight_has_the_limits_of_the_airway(cluster, kind, namespace, accounts):
    """Its own flight, which only prints the spec, is within them."""
    name = kind("basic", timeout="2s", maxMemoryMib=64)

    def problem(instance_name):
        return condition(cluster.get(f"{GROUP}/v1", name, instance_name, namespace)).get("message", "")
    for number, (spec, words) in enumerate([({"behaviour": "endless"}, "execution timeout (2s) exceeded"),
                                            ({"behaviour": "memory", "mib": 128}, "out of memory")]):
        one = instance(name, f"i{number}", spec, namespace, group=GROUP)
        cluster.create(one)
        ready(cluster, name, f"i{number}", namespace)
        write_when_asked(lambda query, one=one: annotate(cluster, cluster.path_of(one) + query, accounts[0], flight=flight("behave")))

        annotate(cluster, cluster.path_of(one), accounts[1], flight=flight("behave"))

        eventually(lambda number=number, words=words: words in problem(f"i{number}"), f"it ends with: {words}", COMPILED)


def test_an_override_is_denied_whose_module_is_not_allowed(cluster, kind, namespace, accounts):
    name = kind()
    one = instance(name, "one", {"behaviour": "basic"}, namespace, group=GROUP)
    cluster.create(one)
    ready(cluster, name, "one", namespace)
    write_when_asked(lambda query: annotate(cluster, cluster.path_of(one) + query, accounts[0], flight="/somewhere/else.wasm"))

    with pytest.raises(ApiError, match='module "/somewhere/else.wasm" not allowed'):
        annotate(cluster, cluster.path_of(one), accounts[1], flight="/somewhere/else.wasm")


def test_an_override_of_the_mode_heals_and_survives_a_restart(cluster, webhook_host, kind, namespace, accounts):
    name = kind()
    one = instance(name, "one", {"behaviour": "basic", "data": {"a": "b"}}, namespace, group=GROUP)
    cluster.create(one)
    ready(cluster, name, "one", namespace)
    write_when_asked(lambda query: annotate(cluster, cluster.path_of(one) + query, accounts[0], mode="dynamic"))
    with pytest.raises(ApiError, match='"fast" is not one of standard, static, dynamic, subscription'):
        annotate(cluster, cluster.path_of(one), accounts[1], mode="fast")

    annotate(cluster, cluster.path_of(one), accounts[1], mode="dynamic")

    def healed():
        cluster.patch("v1", "ConfigMap", "one", {"data": {"a": "changed"}}, namespace)
        eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace)["data"] == {"a": "b"}, "it is as the flight printed it", 30)
    eventually(lambda: any(entry["metadata"]["name"].startswith("override-") for entry in cluster.request(
        "GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/controllerrevisions")["items"]), "the approval is kept")
    healed()
    webhook_host.stop()
    cluster.delete("v1", "ConfigMap", "one", namespace)
    webhook_host.start()
    eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace), "it is made again", 60)
    healed()
    assert not events_of(cluster, "one", namespace)


def test_an_override_that_no_webhook_has_seen_has_no_effect(cluster, webhook_host, kind, namespace, accounts):
    name = kind()
    one = instance(name, "one", {"behaviour": "basic", "data": {"a": "b"}}, namespace, group=GROUP)
    path = cluster.path_of(one)
    cluster.create(one)
    ready(cluster, name, "one", namespace)
    uid = cluster.request("GET", path)["metadata"]["uid"]
    webhook_host.stop()
    remove_configurations(cluster, NAMESPACE)
    eventually(lambda: try_to(annotate, cluster, path, accounts[0], mode="dynamic"), "nobody asks the host any more", 30)

    webhook_host.start()
    wait_registered(cluster, NAMESPACE, f"{name.lower()}s.{GROUP}")

    (said,) = eventually(lambda: events_of(cluster, "one", namespace), "an Event says so", 30)
    assert "are ignored" in said and "remove them and set them again" in said
    assert mode_of(cluster, "one", namespace) is None
    # A forged review approves nothing that is stored, not even by giving its uid to another name.
    def forged(object_name):
        metadata = {**one["metadata"], "name": object_name, "uid": uid}
        body = review(operation="UPDATE", kind={"group": GROUP, "version": "v1", "kind": name}, namespace=namespace, name=object_name,
                      userInfo={"username": "root", "groups": ["system:masters"]},
                      object={**one, "metadata": {**metadata, "annotations": {MODE: "dynamic"}}}, oldObject={**one, "metadata": metadata})
        return ask(webhook_host, f"/validations/{name.lower()}s.{GROUP}", body)[1]
    assert "has these override annotations already" in forged("one")
    assert json.loads(forged("another"))["response"]["allowed"]
    cluster.patch(f"{GROUP}/v1", name, "one", {"spec": {"data": {"a": "c"}}}, namespace)
    eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace)["data"] == {"a": "c"}, "it is evaluated")
    cluster.delete("v1", "ConfigMap", "one", namespace)
    never(lambda: cluster.get("v1", "ConfigMap", "one", namespace), "mode standard made it again")

    write_when_asked(lambda query: annotate(cluster, path + query, accounts[0], mode=None))
    annotate(cluster, path, accounts[1], mode=None)
    annotate(cluster, path, accounts[1], mode="dynamic")
    eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace), "it is evaluated", 30)
    cluster.delete("v1", "ConfigMap", "one", namespace)
    eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace), "mode dynamic makes it again", 30)


# The protection of children --------------------------------------------------------------------------


def mode_of(cluster, name, namespace):
    return cluster.get("v1", "ConfigMap", name, namespace)["metadata"]["annotations"].get(CHILD_MODE)


def refusal(cluster, method, path, *arguments):
    """The message of the refusal; None if it is accepted. `path` without a query: a dry run."""
    try:
        as_user(cluster, method, path if "?" in path else path + "?dryRun=All", *arguments)
        return None
    except ApiError as error:
        return str(error)


def is_changed_by_nobody(cluster, path):
    return "cannot modify flight sub-resources" in (refusal(cluster, "PATCH", path, {"data": {"a": "changed"}}) or "")


def settings_of(cluster, kind, name, namespace):
    """Makes an instance with a ConfigMap: their paths."""
    one = instance(kind, name, {"behaviour": "basic", "data": {"a": "b"}}, namespace, group=GROUP)
    when_compiled(lambda: cluster.create(one))
    ready(cluster, kind, name, namespace)
    return cluster.path_of(one), cluster.path("v1", "ConfigMap", namespace, name)


def test_an_override_of_mode_static_lifts_the_protection_until_it_is_removed(cluster, kind, namespace, accounts):
    name = kind(mode="static")
    path, child = settings_of(cluster, name, "one", namespace)
    eventually(lambda: is_changed_by_nobody(cluster, child), "the policy is in force", 60)
    before = cluster.request("GET", child)["metadata"]["annotations"]
    assert CHILD_MODE not in before
    assert DENIED in write_when_asked(lambda query: annotate(cluster, path + query, accounts[0], mode="dynamic"))
    assert mode_of(cluster, "one", namespace) is None and is_changed_by_nobody(cluster, child)

    annotate(cluster, path, accounts[1], mode="dynamic")

    eventually(lambda: refusal(cluster, "PATCH", child, {"data": {"a": "changed"}}) is None, "the child can be changed", 60)
    assert mode_of(cluster, "one", namespace) == "dynamic"
    for write in (("PATCH", child, {"data": {"a": "changed"}}), ("DELETE", child)):
        as_user(cluster, *write)
        eventually(lambda: (cluster.get("v1", "ConfigMap", "one", namespace) or {}).get("data") == {"a": "b"}, "it is as the flight printed it", 60)
    # The other instance of the kind stays protected.
    _, other = settings_of(cluster, name, "other", namespace)
    assert is_changed_by_nobody(cluster, other)

    annotate(cluster, path, accounts[1], mode=None)

    eventually(lambda: is_changed_by_nobody(cluster, child), "it is protected again", 60)
    assert cluster.request("GET", child)["metadata"]["annotations"] == before


def test_an_override_with_mode_static_protects_until_it_is_removed(cluster, kind, namespace, accounts):
    path, child = settings_of(cluster, kind(), "one", namespace)
    write_when_asked(lambda query: annotate(cluster, path + query, accounts[0], mode="static"))

    annotate(cluster, path, accounts[1], mode="static")

    eventually(lambda: is_changed_by_nobody(cluster, child), "the child is protected", 60)
    assert "cannot delete resources managed by" in refusal(cluster, "DELETE", child)
    for metadata in ({"annotations": {CHILD_MODE: "standard"}}, {"annotations": {CHILD_MODE: None}}, {"annotations": None}, {"managedFields": [{}]}):
        assert "cannot modify" in (refusal(cluster, "PATCH", child, {"metadata": metadata}) or ""), metadata
    assert not events_of(cluster, "one", namespace)

    annotate(cluster, path, accounts[1], mode=None)

    eventually(lambda: refusal(cluster, "PATCH", child, {"data": {"a": "changed"}}) is None, "the child can be changed", 60)
    assert mode_of(cluster, "one", namespace) is None


def test_who_may_write_children_lifts_no_protection(cluster, kind, namespace):
    """The annotation is written before the child is the release's, in the name of the release's manager too, and while its Airway protects nothing."""
    name = kind()
    release = f"{GROUP}.{name}.{namespace}.one"
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "x"}, "metadata": {
        "name": "one", "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "atc.yoke"},
        "annotations": {CHILD_MODE: "standard", "instance.atc.yoke.cd/release": release, "instance.atc.yoke.cd/namespace": namespace,
                        "instance.atc.yoke.cd/instanceRef": f"{namespace}/{name}.{GROUP}:one"}}}
    child = cluster.path("v1", "ConfigMap", namespace, "one")
    for manager in ("yoke", "me"):
        as_user(cluster, "PATCH", f"{child}?fieldManager={manager}", mine, APPLY)
    settings_of(cluster, name, "one", namespace)
    settings_of(cluster, name, "other", namespace)
    other = cluster.path("v1", "ConfigMap", namespace, "other")

    def refused_as_a_mark(path, live, content_type=JSON):
        method = "PATCH" if content_type == APPLY else "PUT"
        return "cannot modify yoke annotations" in (refusal(cluster, method, path, live, content_type) or "")
    eventually(lambda: "cannot modify yoke annotations" in (refusal(cluster, "PATCH", other, {"metadata": {"annotations": {CHILD_MODE: "standard"}}}) or ""),
               "the policy is in force, also for an Airway that protects nothing", 60)
    # What is there of the annotation cannot become the release's.
    live = cluster.request("GET", child)
    assert live["metadata"]["annotations"][CHILD_MODE] == "standard", "it is still the user's"
    (fields,) = [one["fieldsV1"] for one in live["metadata"]["managedFields"] if one["manager"] == "yoke" and one["operation"] == "Apply"]
    annotations = fields["f:metadata"]["f:annotations"]
    assert f"f:{CHILD_MODE}" not in annotations, "the release's manager does not have it any more"
    annotations[f"f:{CHILD_MODE}"] = {}
    assert refused_as_a_mark(child, live)
    assert refused_as_a_mark(f"{child}?dryRun=All&fieldManager=yoke&force=true", {**mine, "data": {"a": "b"}}, APPLY)

    cluster.patch("yoke.cd/v1alpha1", "Airway", f"{name.lower()}s.{GROUP}", {"spec": {"mode": "static"}}, None)

    for path in (child, other):
        eventually(lambda: is_changed_by_nobody(cluster, path), "it is protected", 60)
        assert "cannot delete resources managed by" in refusal(cluster, "DELETE", path)
