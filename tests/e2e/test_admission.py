"""Webhooks of a host that the API server reaches by URL: objects that they refuse and accept."""
import http.client
import json
import pathlib
import signal
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

import airways
from airways import flight, instance
from cluster import ApiError, eventually, is_ready, never
from conftest import COMPILED, control_plane
from host import BINARY
from module_server import Modules
from test_flight_changes import variant
from webhooks import (BINDING, CONFIGURATION, GROUP, POLICY, as_user, ask, authorities_of, bundle_of, configurations, create, host_with_webhooks, kept_by,
                      looking_up, make_policy, refused, refused_airway, review, standby, wait_registered, warnings_of)

AIRWAY = ("yoke.cd/v1alpha1", "Airway")


@pytest.fixture(scope="module")
def cluster():
    """A control plane of its own: another host, without webhooks, would set some of these Airways to Unsupported."""
    made = control_plane("--with-kcm", "--with-scheduler", "--with-kwok=1")
    yield made
    made.close()


@pytest.fixture(scope="module")
def webhook_host(cluster, tmp_path_factory):
    namespace = "webhooks"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    yield from host_with_webhooks(cluster, tmp_path_factory.mktemp("webhooks"), namespace)


@pytest.fixture
def kind(cluster, webhook_host, airway, unique):
    """Makes an Airway with the flight `behave`, and waits until its webhook is registered."""
    def make(scope="Namespaced", suffix="", wasm="behave", schema=None, **spec):
        name = f"A{unique}{suffix}"
        manifest = airway(airways.airway(f"{name.lower()}s", name, flight(wasm), group=GROUP, scope=scope, schema=schema, **spec))
        wait_registered(cluster, webhook_host.namespace, manifest["metadata"]["name"])
        return name
    return make


# The server --------------------------------------------------------------------------------------


def test_a_host_makes_its_own_certificate_and_tells_the_api_server_whom_to_trust(cluster, webhook_host):
    authorities = authorities_of(cluster, webhook_host.namespace)
    (webhook,) = wait_registered(cluster, webhook_host.namespace)["webhooks"]

    assert bundle_of(webhook) == authorities
    assert ask(webhook_host, "/ready", None, "GET", authorities) == (200, "ok\n")
    assert ask(webhook_host, "/live", None, "GET", authorities)[0] == 200
    with pytest.raises(ssl.SSLError):
        ask(webhook_host, "/live", None, "GET", cluster.get("v1", "ConfigMap", "kube-root-ca.crt")["data"]["ca.crt"])


@pytest.mark.parametrize("path, body, method, status, words", [
    ("/nowhere", "{}", "POST", 404, "no webhook"),
    ("/validations/", review(), "POST", 404, "no webhook"),
    # yoke's path of a webhook that hangar does not have.
    ("/validations/resources", review(), "POST", 404, "no webhook"),
    ("/validations/airways.yoke.cd", None, "GET", 405, "POST"),
    ("/validations/airways.yoke.cd", "{", "POST", 400, ""),
    ("/validations/airways.yoke.cd", "[]", "POST", 400, "must be an object"),
    ("/validations/airways.yoke.cd", review().replace("k8s.io/v1", "k8s.io/v1beta1"), "POST", 400, "v1beta1"),
    ("/validations/airways.yoke.cd", review(object=None), "POST", 400, "request.object"),
    ("/validations/airways.yoke.cd", review(uid=""), "POST", 400, "request.uid"),
    ("/validations/airways.yoke.cd", "x" * (17 << 20), "POST", 413, "too large"),
], ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_a_request_that_is_no_review_is_refused_with_words(webhook_host, path, body, method, status, words):
    try:
        answer = ask(webhook_host, path, body, method)
    except OSError:
        assert status == 413  # The server did not read the body to its end.
        return

    assert answer[0] == status and words in answer[1]


def test_a_review_of_three_megabytes_is_answered(webhook_host):
    status, text = ask(webhook_host, "/validations/airways.yoke.cd", review(object={"metadata": {"name": "x"}, "spec": {"text": "x" * (3 << 20)}}))

    response = json.loads(text)["response"]
    assert status == 200 and response["uid"] == "u" and not response["allowed"]


def test_slow_clients_hold_up_nobody(webhook_host):
    context = ssl._create_unverified_context()
    slow = [http.client.HTTPSConnection("127.0.0.1", webhook_host.webhook_port, context=context, timeout=30) for _ in range(100)]
    for one in slow:
        one.connect()
        one.sock.sendall(b"POST /validations/airways.yoke.cd HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")

    assert ask(webhook_host, "/ready", None, "GET")[0] == 200
    for one in slow:
        one.close()


def test_a_deleted_certificate_is_made_anew_and_used(cluster, webhook_host, kind, namespace):
    before = authorities_of(cluster, webhook_host.namespace)
    name = kind()

    cluster.delete("v1", "Secret", "hangar-webhook", webhook_host.namespace)

    eventually(lambda: cluster.get("v1", "Secret", "hangar-webhook", webhook_host.namespace), "the Secret is there again", 60)
    after = authorities_of(cluster, webhook_host.namespace)
    assert after != before
    eventually(lambda: bundle_of(configurations(cluster, webhook_host.namespace)["hangar-airways"]["webhooks"][0]) == after, "the configuration has the new authority")
    assert "panic" in refused(cluster, name, "one", "panic", namespace)


def test_an_edited_configuration_is_put_back(cluster, webhook_host):
    cluster.patch(*CONFIGURATION, "hangar-airways", {"webhooks": []}, None)
    eventually(lambda: configurations(cluster, webhook_host.namespace)["hangar-airways"].get("webhooks"), "the webhook is there again")

    cluster.delete(*CONFIGURATION, "hangar-airways")
    wait_registered(cluster, webhook_host.namespace)


def test_configurations_cover_only_the_kinds_of_airways(cluster, webhook_host, kind):
    kind()

    for configuration in configurations(cluster, webhook_host.namespace).values():
        for webhook in configuration["webhooks"]:
            for rule in webhook["rules"]:
                assert "*" not in rule["apiGroups"] + rule["resources"], configuration["metadata"]["name"]
            assert webhook["sideEffects"] == "NoneOnDryRun"


# Airways -----------------------------------------------------------------------------------------


def test_an_airway_without_a_storage_version_is_refused(cluster, webhook_host, unique):
    manifest = airways.airway(f"{unique}s", "Stored", flight("basic"), group=GROUP)
    manifest["spec"]["template"]["versions"][0]["storage"] = False

    assert "storage" in refused_airway(cluster, manifest)


def test_an_airway_whose_crd_the_api_server_would_refuse_is_refused_with_its_words(cluster, webhook_host, unique):
    manifest = airways.airway(f"{unique}s", "Lower", flight("basic"), group=GROUP)
    manifest["spec"]["template"]["names"]["shortNames"] = ["Not A Name"]

    text = refused_airway(cluster, manifest)

    assert "invalid crd template" in text and "Not A Name" in text
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", manifest["metadata"]["name"], None) is None


def test_an_airway_whose_module_is_gone_can_be_changed_and_deleted(cluster, webhook_host, airway, unique, tmp_path):
    copy = tmp_path / "flight.wasm"
    copy.write_bytes(pathlib.Path(flight("basic")).read_bytes())
    name = airway(airways.airway(f"{unique}s", unique.capitalize(), str(copy), group=GROUP))["metadata"]["name"]

    copy.unlink()
    cluster.patch(*AIRWAY, name, {"spec": {"fixDriftInterval": "1h"}}, None)
    cluster.patch(*AIRWAY, name, {"metadata": {"finalizers": ["example.com/held", "yoke.cd/strip.airway"]}}, None)
    cluster.delete(*AIRWAY, name)
    cluster.patch(*AIRWAY, name, {"metadata": {"finalizers": ["yoke.cd/strip.airway"]}}, None)

    eventually(lambda: cluster.get(*AIRWAY, name) is None, "the Airway is gone", 60)
    eventually(lambda: name not in configurations(cluster, webhook_host.namespace), "its configuration is gone")


# Instances ---------------------------------------------------------------------------------------


def test_an_instance_is_refused_with_what_its_flight_says(cluster, webhook_host, kind, namespace):
    name = kind()

    text = refused(cluster, name, "one", "basic", namespace, stderr="replicas must be odd", exitCode=1)

    assert f'admission webhook "{name.lower()}s.{GROUP}" denied the request' in text
    assert "failed to evaluate flight: failed to instantiate module: replicas must be odd" in text


def test_an_instance_is_refused_with_what_the_api_server_says_of_its_resources(cluster, webhook_host, kind, namespace):
    name = kind()
    bad = json.dumps([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "bad"}, "spec": {
        "replicas": -5, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad", "labels": {"a": "not a label"}}}])

    text = refused(cluster, name, "one", "raw", namespace, stdout=bad)

    assert "deployment/bad" in text and "spec.replicas" in text and "configmap/bad" in text and "not a label" in text
    assert cluster.get("v1", "ConfigMap", "bad", namespace) is None


def test_an_instance_that_takes_what_is_not_its_own_is_refused(cluster, webhook_host, kind, namespace):
    name = kind()
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken", "namespace": namespace, "annotations": {
        "instance.atc.yoke.cd/release": "other", "instance.atc.yoke.cd/namespace": namespace}}})

    assert 'already owned by' in refused(cluster, name, "taken", "basic", namespace)
    assert "Multiple namespaces detected" in refused(cluster, name, "two", "crossns", namespace, namespaces=["default", "kube-system"])


def test_a_good_instance_is_accepted_and_made(cluster, webhook_host, kind, namespace):
    name = kind()
    refused(cluster, name, "probe", "panic", namespace)

    create(cluster, name, "one", "basic", namespace, data={"a": "b"})

    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", name, "one", namespace)), "the instance is ready")
    assert cluster.get("v1", "ConfigMap", "one", namespace)["data"] == {"a": "b"}
    with pytest.raises(ApiError, match="panic"):
        cluster.patch(f"{GROUP}/v1", name, "one", {"spec": {"behaviour": "panic"}}, namespace)
    assert is_ready(cluster.get(f"{GROUP}/v1", name, "one", namespace))


def test_what_is_made_in_stages_is_rehearsed_as_far_as_it_can_be(cluster, webhook_host, kind, namespace, unique):
    name = kind(scope="Cluster")
    made = json.dumps([[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"made-{unique}"}},
                        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inside", "namespace": f"made-{unique}"}}]])
    refused(cluster, name, "probe", "panic", None)

    create(cluster, name, "one", "raw", None, stdout=made)

    eventually(lambda: cluster.get("v1", "ConfigMap", "inside", f"made-{unique}"), "the ConfigMap is made")


def test_a_flight_that_takes_too_long_is_a_refusal_with_words(cluster, webhook_host, kind, namespace):
    short = kind(suffix="s", timeout="30ms")
    endless = kind(suffix="e", timeout="-1s")

    assert "execution timeout (30ms) exceeded" in refused(cluster, short, "one", "endless", namespace)
    assert "execution timeout (7s) exceeded" in refused(cluster, endless, "one", "endless", namespace)


def test_a_review_remembers_nothing_of_an_instance(cluster, webhook_host, kind, namespace):
    name = kind(mode="dynamic", clusterAccess=True, resourceAccessMatchers=["*"])
    refused(cluster, name, "probe", "panic", namespace)
    create(cluster, name, "one", "basic", namespace, data={"a": "b"})
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", name, "one", namespace)), "the instance is ready")
    resource = {"apiVersion": "v1", "kind": "Secret", "name": "watched", "namespace": namespace}

    with pytest.raises(ApiError, match="denied"):
        cluster.patch(f"{GROUP}/v1", name, "one", {"spec": {"behaviour": "lookup", "lookup": resource, "exitCode": 1}}, namespace)

    before = webhook_host.metrics()["hangar_evaluations_total"]
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "watched", "namespace": namespace}})
    never(lambda: webhook_host.metrics()["hangar_evaluations_total"] != before, "the instance is evaluated again")


def test_a_review_by_who_may_be_anybody_is_not_recorded(cluster, webhook_host, kind, namespace):
    """Strangers could fill the records of a namespace."""
    name = kind()
    refused(cluster, name, "probe", "panic", namespace)
    create(cluster, name, "one", "basic", namespace)
    guest = f"{name.lower()}s.{GROUP}/one"

    def told():
        return subprocess.run([str(BINARY), "timeline", guest, "-n", namespace, f"--module-cache-dir={webhook_host.directory / 'cache'}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30).stdout
    # The run of its reconcile comes after the review.
    shown = eventually(lambda: "; completed" in (said := told()) and said, "its run is recorded", 60)
    assert "<- review" not in shown, shown


@pytest.mark.parametrize("matchers", [["*"], []], ids=["shown", "forbidden"])
def test_who_may_be_anybody_is_not_told_what_a_flight_makes_of_what_it_looked_up(cluster, webhook_host, airway, unique, namespace, matchers):
    kind, spec = looking_up(cluster, airway, unique, namespace, webhook_host.namespace, matchers)

    words = refused(cluster, kind, "one", "lookup", namespace, **spec)
    assert "webhook-client-ca-file" in words and "what the flight says" not in words
    # Without lookups the flight knows only what the sender of the review sent it.
    assert "what the flight says" in refused(cluster, kind, "two", "basic", namespace, exitCode=1, stderr="what the flight says")


def test_skip_admission_webhook_accepts_and_says_so(cluster, webhook_host, kind, namespace):
    name = kind(skipAdmissionWebhook=True)
    manifest = instance(name, "one", {"behaviour": "basic", "exitCode": 1}, namespace, group=GROUP)
    eventually(lambda: "has skipAdmissionWebhook" in (warnings_of(cluster, manifest) or ""), "kubectl shows the warning")


def test_warnings_of_the_api_server_about_resources_are_passed_on(cluster, webhook_host, kind, namespace):
    name = kind()
    refused(cluster, name, "probe", "panic", namespace)
    cluster.patch("v1", "Namespace", namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted"}}}, None)
    pod = json.dumps([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}])

    assert "would violate PodSecurity" in warnings_of(cluster, instance(name, "one", {"behaviour": "raw", "stdout": pod}, namespace, group=GROUP))


def test_an_instance_goes_with_its_namespace(cluster, webhook_host, kind, unique):
    name = kind()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"gone-{unique}"}})
    refused(cluster, name, "probe", "panic", f"gone-{unique}")
    create(cluster, name, "one", "basic", f"gone-{unique}")
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", name, "one", f"gone-{unique}")), "the instance is ready")

    cluster.delete("v1", "Namespace", f"gone-{unique}")

    eventually(lambda: cluster.get("v1", "Namespace", f"gone-{unique}", None) is None, "the namespace is gone", 90)


def test_many_admissions_and_reconciles_at_once_all_end(cluster, webhook_host, kind, namespace):
    name = kind()
    refused(cluster, name, "probe", "panic", namespace)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda index: create(cluster, name, f"i{index}", "basic", namespace), range(60)))

    eventually(lambda: sum(is_ready(one) for one in cluster.list(f"{GROUP}/v1", name, namespace)) == 60, "all are ready", 60)


class Counts(NamedTuple):
    """Of a host: reviews that have been answered; reconciles of a kind's instances that have ended, and that wait."""
    reviews: float
    reconciles: float
    waiting: float


def counts_of(host, kind_name):
    metrics = host.metrics()

    def total(metric, label=""):
        return sum(value for key, value in metrics.items() if key.startswith(metric + "{") and label in key)
    controller = f'controller="{kind_name.lower()}s.{GROUP}"'
    return Counts(total("hangar_admission_reviews_total"), total("controller_runtime_reconcile_total", controller), total("workqueue_depth", controller))


def test_a_burst_of_admissions_and_the_reconciles_of_others_do_not_keep_each_other_from_ending(cluster, webhook_host, kind, namespace, unique):
    """Of a namespace beside the burst's: its instance is changed, reviewed and carried out again and again meanwhile."""
    name, other = kind(), f"beside-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    refused(cluster, name, "probe", "panic", namespace)
    create(cluster, name, "one", "basic", other, data={"step": "0"})

    def is_at(step):
        return ((cluster.get("v1", "ConfigMap", "one", other) or {}).get("data") or {}).get("step") == str(step)
    eventually(lambda: is_at(0), "the instance beside it is carried out", 60)
    seen = [counts_of(webhook_host, name)]
    with ThreadPoolExecutor(32) as pool:
        burst = [pool.submit(create, cluster, name, f"i{index}", "basic", namespace) for index in range(500)]
        while not all(one.done() for one in burst):
            step = len(seen)
            cluster.patch(f"{GROUP}/v1", name, "one", {"spec": {"data": {"step": str(step)}}}, other)
            eventually(lambda step=step: is_at(step), f"change {step} is carried out beside the burst", 60)
            seen.append(counts_of(webhook_host, name))
    for one in burst:
        one.result()

    steps = list(zip(seen, seen[1:], strict=False))
    assert len(steps) >= 2, "the burst ended before anything could wait for it"
    for before, after in steps:
        # Behind all that waited before it, the change would have seen all of that end.
        assert before.waiting < 50 or after.reconciles - before.reconciles < before.waiting / 2, seen
    for before, after in steps[:-1]:
        assert 4 * (after.reviews - before.reviews) >= after.reconciles - before.reconciles, f"reviews wait for reconciles: {seen}"
    reviews, reconciles = seen[-1].reviews - seen[0].reviews, seen[-1].reconciles - seen[0].reconciles
    assert 20 * reconciles >= reviews, f"reconciles wait for reviews: {seen}"
    eventually(lambda: sum(is_ready(one) for one in cluster.list(f"{GROUP}/v1", name, namespace)) == 500, "all of the burst are ready", 300)
    cluster.delete("v1", "Namespace", other)


# Forged reviews ----------------------------------------------------------------------------------


@pytest.fixture
def modules():
    server = Modules()
    yield server
    server.close()


def forged(host, path, **request):
    """What is answered to somebody who is not the API server and speaks for an administrator."""
    status, text = ask(host, f"/validations/{path}", review(userInfo={"username": "root", "groups": ["system:masters"]}, **request))
    assert status == 200, text
    return json.loads(text)["response"]


def test_a_forged_airway_has_no_module_fetched(webhook_host, modules, unique):
    manifest = airways.airway(f"{unique}s", f"Forged{unique}", modules.url("/flight.wasm"), group=GROUP)
    manifest["metadata"]["uid"] = "u"
    manifest["spec"]["wasmUrls"]["converter"] = "configmap://kube-system/nowhere/converter.wasm"

    response = forged(webhook_host, "airways.yoke.cd", kind={"group": "yoke.cd", "version": "v1alpha1", "kind": "Airway"}, object=manifest)

    assert response["allowed"] and "modules not checked" in response["warnings"][-1], response
    assert "webhook-client-ca-file" in response["warnings"][-1] and not modules.asked


def test_a_forged_override_has_no_module_fetched_and_run(webhook_host, kind, modules, namespace):
    name = kind()
    proposed = instance(name, "one", {"behaviour": "basic", "exitCode": 1}, namespace, group=GROUP, uid="u", annotations={
        "overrides.yoke.cd/flight": modules.url("/flight.wasm")})

    response = forged(webhook_host, f"{name.lower()}s.{GROUP}", kind={"group": GROUP, "version": "v1", "kind": name}, namespace=namespace, name="one",
                      object=proposed, dryRun=True)

    assert response["allowed"] and "not evaluated with the module of overrides.yoke.cd/flight" in response["warnings"][0], response
    assert not modules.asked


def test_forged_overrides_leave_few_approvals(cluster, webhook_host, kind, namespace):
    name = kind()
    wait_registered(cluster, webhook_host.namespace, f"{name.lower()}s.{GROUP}")

    def approvals():
        return len(cluster.request("GET", f"/apis/apps/v1/namespaces/{webhook_host.namespace}/controllerrevisions")["items"])
    before = approvals()
    for index in range(60):
        response = forged(webhook_host, f"{name.lower()}s.{GROUP}", kind={"group": GROUP, "version": "v1", "kind": name}, namespace=namespace, name="one",
                          object=instance(name, "one", {"behaviour": "basic"}, namespace, group=GROUP, uid=f"u{index}",
                                          annotations={"overrides.yoke.cd/flight": "/nowhere/flight.wasm"}))

    assert not response["allowed"] and "too many overrides" in response["status"]["message"], response
    assert approvals() - before < 40


# Replicas ----------------------------------------------------------------------------------------


def evaluates(host, name, namespace):
    """The host answers a review with what the flight says. While it compiles the module, a review says that it was not done in time."""
    body = review(kind={"group": GROUP, "version": "v1", "kind": name}, namespace=namespace, name="one", object={
        **instance(name, "one", {"behaviour": "basic", "stderr": "from the standby", "exitCode": 1}, namespace, group=GROUP, uid="u")})

    def answered():
        status, text = ask(host, f"/validations/{name.lower()}s.{GROUP}?timeout=10s", body)
        assert status == 200
        return "from the standby" in json.loads(text)["response"]["status"]["message"]
    eventually(answered, "it evaluates the flight", COMPILED)


def test_a_host_that_does_not_lead_answers_too(cluster, webhook_host, kind, namespace, tmp_path):
    name = kind()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "standby"}})
    with standby(cluster, "standby", tmp_path) as other:
        evaluates(other, name, namespace)
        assert not configurations(cluster, "standby"), "it does not lead, and registers nothing"
    cluster.delete("v1", "Namespace", "standby")


def test_a_host_that_does_not_lead_finds_the_copy_of_a_pinned_module(cluster, webhook_host, airway, modules, unique, namespace, tmp_path):
    """Reviews and conversions come to any replica."""
    modules.files["/flight.wasm"] = variant(1, of="behave")
    name = f"A{unique}"
    made = airway(airways.airway(f"{name.lower()}s", name, modules.url("/flight.wasm"), group=GROUP))
    assert cluster.get(*AIRWAY, made["metadata"]["name"], None)["status"]["flight"]["definition"], "it is pinned"
    modules.files.clear()

    with standby(cluster, webhook_host.namespace, tmp_path) as other:
        evaluates(other, name, namespace)


def test_configurations_of_airways_that_went_meanwhile_go_at_the_start(cluster, webhook_host, kind):
    name = f"{kind().lower()}s.{GROUP}"
    orphan = {"apiVersion": CONFIGURATION[0], "kind": CONFIGURATION[1], "webhooks": configurations(cluster, webhook_host.namespace)[name]["webhooks"]}
    orphan["metadata"] = {"name": f"orphan.{GROUP}", "labels": {"hangar.dev/kept-by": webhook_host.namespace}}
    webhook_host.process.send_signal(signal.SIGKILL)
    webhook_host.process.wait()
    cluster.create(orphan)

    webhook_host.start()

    eventually(lambda: f"orphan.{GROUP}" not in configurations(cluster, webhook_host.namespace), "the orphan is gone")
    assert name in configurations(cluster, webhook_host.namespace)


def test_policies_that_are_not_wanted_any_more_go_at_the_start(cluster, webhook_host):
    webhook_host.kill()
    make_policy(cluster, "orphan", webhook_host.namespace)
    make_policy(cluster, "theirs", "another-host")

    webhook_host.start()

    for kind in (POLICY, BINDING):
        eventually(lambda kind=kind: kept_by(cluster, webhook_host.namespace, kind) == {"hangar-airway-children"}, f"the orphaned {kind[1]} is gone", 60)
        assert kept_by(cluster, "another-host", kind) == {"theirs"}
        cluster.delete(*kind, "theirs")


# Mode static -------------------------------------------------------------------------------------


@pytest.fixture
def children(cluster, webhook_host, kind, namespace):
    """A ConfigMap and a Deployment of an instance whose Airway is static; their paths."""
    name = kind(mode="static")
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
    create(cluster, name, "one", "raw", namespace, stdout=json.dumps([settings, deployment]))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", name, "one", namespace)), "the instance is ready", 60)
    paths = cluster.path("v1", "ConfigMap", namespace, "one"), cluster.path("apps/v1", "Deployment", namespace, "one")

    def is_protected():
        try:
            as_user(cluster, "PATCH", paths[0] + "?dryRun=All", {"data": {"a": "changed"}})
        except ApiError as error:
            return "cannot modify" in str(error)
    eventually(is_protected, "the policy is in force", 60)
    return name, *paths


@pytest.mark.parametrize("patch", [{"data": {"a": "changed"}}, {"data": {"a": None}}, {"data": None}, {"metadata": {"ownerReferences": None}},
                                   {"metadata": {"managedFields": [{}]}, "data": {"a": "changed"}}], ids=json.dumps)
def test_static_children_cannot_be_changed(cluster, children, patch):
    with pytest.raises(ApiError, match="cannot modify flight sub-resources"):
        as_user(cluster, "PATCH", children[1], patch)


def test_static_children_cannot_be_changed_under_the_releases_own_name(cluster, children, namespace):
    live = cluster.get("v1", "ConfigMap", "one", namespace)["metadata"]
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "changed"}, "metadata": {
        member: live[member] for member in ("name", "namespace", "labels", "annotations", "ownerReferences")}}

    with pytest.raises(ApiError, match="cannot modify flight sub-resources"):
        as_user(cluster, "PATCH", children[1] + "?fieldManager=yoke&force=true", applied, content_type="application/apply-patch+yaml")
    with pytest.raises(ApiError, match="cannot modify flight sub-resources"):
        as_user(cluster, "PATCH", children[1] + "?fieldManager=me&force=true", applied, content_type="application/apply-patch+yaml")


def test_static_children_cannot_be_deleted(cluster, children):
    for path in children[1:]:
        with pytest.raises(ApiError, match="cannot delete resources managed by Air-Traffic-Controller"):
            as_user(cluster, "DELETE", path)


def test_static_children_that_are_being_deleted_can_go(cluster, webhook_host, kind, namespace):
    """The kubelet sends the last deletion of a Pod, and a controller removes its finalizer: neither has an account of kube-system."""
    name = kind(mode="static")
    eventually(lambda: cluster.get("v1", "ServiceAccount", "default", namespace), "the namespace has its service account")
    metadata = {"name": "one", "finalizers": ["example.com/held"]}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
    # On a node without a kubelet, so that nobody else ends it.
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}}
    create(cluster, name, "one", "raw", namespace, stdout=json.dumps([settings, pod]))
    paths = [cluster.path("v1", made, namespace, "one") for made in ("ConfigMap", "Pod")]
    released = {"metadata": {"finalizers": None}}
    for path in paths:
        eventually(lambda path=path: "cannot modify flight" in denied(cluster, "PATCH", path + "?dryRun=All", released), f"{path} is protected", 60)
        assert "cannot delete resources" in denied(cluster, "DELETE", path)

    cluster.delete(f"{GROUP}/v1", name, "one", namespace)
    for path in paths:
        eventually(lambda path=path: "deletionTimestamp" in cluster.request("GET", path)["metadata"], f"{path} is being deleted", 60)
        assert "cannot modify yoke annotations" in denied(cluster, "PATCH", path, {"metadata": {"annotations": {"instance.atc.yoke.cd/release": "other"}}})
        as_user(cluster, "DELETE", path, {"gracePeriodSeconds": 0}, "application/json")
        as_user(cluster, "PATCH", path, released)

    eventually(lambda: cluster.get(f"{GROUP}/v1", name, "one", namespace) is None, "the instance is gone", 60)
    assert cluster.get("v1", "ConfigMap", "one", namespace) is None and cluster.get("v1", "Pod", "one", namespace) is None


def denied(cluster, *request):
    """What the API server answers to the user's request; empty if it was accepted."""
    try:
        as_user(cluster, *request)
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("mode", ["static", "standard"])
def test_nobody_moves_a_child_to_another_release(cluster, webhook_host, children, kind, namespace, mode):
    path = children[1]
    if mode == "standard":
        cluster.patch(*AIRWAY, f"{children[0].lower()}s.{GROUP}", {"spec": {"mode": "standard"}}, None)
        eventually(lambda: as_user(cluster, "PATCH", path + "?dryRun=All", {"data": {"a": "c"}}) if can(cluster, path) else None, "the mode is another")

    with pytest.raises(ApiError, match="cannot modify yoke annotations"):
        as_user(cluster, "PATCH", path, {"metadata": {"annotations": {"instance.atc.yoke.cd/release": "other"}}})


def can(cluster, path):
    try:
        return as_user(cluster, "PATCH", path + "?dryRun=All", {"data": {"a": "c"}})
    except ApiError:
        return None


def test_what_the_release_does_not_say_is_anybodys(cluster, children):
    _, settings, deployment = children

    as_user(cluster, "PATCH", settings, {"data": {"more": "x"}, "metadata": {"labels": {"mine": "x"}, "annotations": {"mine": "x"}}})
    as_user(cluster, "PATCH", settings, {"data": {"more": None}})
    as_user(cluster, "PATCH", deployment + "/status", {"status": {"observedGeneration": 1}})


def test_static_children_follow_their_instance_and_go_with_it(cluster, webhook_host, children, namespace):
    name, settings, _ = children
    changed = json.dumps([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "c"}}])

    cluster.patch(f"{GROUP}/v1", name, "one", {"spec": {"stdout": changed}}, namespace)

    eventually(lambda: cluster.request("GET", settings)["data"] == {"a": "c"}, "the ConfigMap follows")
    eventually(lambda: cluster.get("apps/v1", "Deployment", "one", namespace) is None, "the Deployment is pruned", 60)
    cluster.delete(f"{GROUP}/v1", name, "one", namespace)
    eventually(lambda: cluster.get("v1", "ConfigMap", "one", namespace) is None, "the ConfigMap is gone", 60)


def test_static_children_are_collected_with_their_namespace_and_without_a_host(cluster, webhook_host, kind, unique):
    name = kind(mode="static")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"gone-{unique}"}})
    create(cluster, name, "one", "basic", f"gone-{unique}")
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", name, "one", f"gone-{unique}")), "the instance is ready", 60)

    webhook_host.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(ApiError, match="cannot delete resources managed by Air-Traffic-Controller"):
            as_user(cluster, "DELETE", cluster.path("v1", "ConfigMap", f"gone-{unique}", "one"))
        cluster.delete("v1", "Namespace", f"gone-{unique}")
        eventually(lambda: cluster.get("v1", "ConfigMap", "one", f"gone-{unique}") is None, "the child is gone", 60)
        # The finalizer of an instance waits for a host.
        cluster.patch(f"{GROUP}/v1", name, "one", {"metadata": {"finalizers": None}}, f"gone-{unique}")
        eventually(lambda: cluster.get("v1", "Namespace", f"gone-{unique}", None) is None, "the namespace is gone", 90)
    finally:
        webhook_host.process.send_signal(signal.SIGCONT)


def test_unrelated_writes_do_not_wait_for_a_host_that_hangs(cluster, webhook_host, kind, namespace):
    kind()
    webhook_host.process.send_signal(signal.SIGSTOP)
    try:
        # If a webhook covered these writes, each would take its timeout.
        for index in range(20):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"unrelated-{index}", "namespace": namespace}})
            cluster.patch("v1", "ConfigMap", f"unrelated-{index}", {"data": {"a": "b"}}, namespace)
        audited = [one for configuration in configurations(cluster, webhook_host.namespace).values() for one in configuration["webhooks"]]
        assert audited and all(rule["resources"] != ["*"] for one in audited for rule in one["rules"])
    finally:
        webhook_host.process.send_signal(signal.SIGCONT)
