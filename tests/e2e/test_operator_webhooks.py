"""Webhooks of an operator: a controller-runtime program, built by `hangar build go`, whose reviews come through the host."""
import base64

import pytest

from cluster import condition, eventually, try_to
from conftest import control_plane
from hooks import MUTATING, VALIDATING, all_rights, asleep, built, configurations, make, refused, run, service, webhooks_of, webhooks_ready
from host import Host, free_port, to_its_end
from operators import OPERATOR, events_of, lines, manifest
from test_recorder import turns
from webhooks import ask, authorities_of, review, webhook_flags

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
HOST = "webhooks"
MIB = 1024 * 1024

pytestmark = pytest.mark.xdist_group("operator_webhooks")


@pytest.fixture(scope="module")
def cluster():
    """A control plane of its own: a host without webhooks would run the same operators."""
    made = control_plane("--with-kcm")
    made.learn(*MUTATING, "mutatingwebhookconfigurations", False)
    made.learn("hooks.hangar.dev/v1", "Note", "notes")
    made.learn("hooks.hangar.dev/v2", "Note", "notes")
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOST}})
    yield made
    made.close()


def start(cluster, directory, **options):
    port = free_port()
    host = Host(cluster.kubeconfig, directory, "--leader-elect", *webhook_flags(port, HOST, features="operators"), **options)
    host.webhook_port = port
    return host


@pytest.fixture(scope="module")
def host(cluster, tmp_path_factory):
    yield from to_its_end(start(cluster, tmp_path_factory.mktemp("webhooks")))


@pytest.fixture
def hooks(cluster, host, namespace, built, configurations):
    all_rights(cluster, namespace)
    run(cluster, namespace)
    eventually(lambda: webhooks_ready(cluster, namespace).get("status") == "True", "the configurations point at the host", 60)
    for hook in ("validate", "mutate"):
        eventually(lambda hook=hook: try_to(make, cluster, namespace, f"probe-{hook}", hook), "the API server has seen the change", 60)
    yield
    cluster.delete(*OPERATOR, "hooks", namespace)


def test_it_denies_and_changes_what_the_api_server_asks_it_about(cluster, host, namespace, hooks):
    assert "this is not allowed" in refused(cluster, namespace, "bad", "validate", do="deny")
    assert make(cluster, namespace, "good", "validate")["metadata"]["name"] == "good"
    assert make(cluster, namespace, "changed", "mutate", kept="yes")["data"] == {"kept": "yes", "mutated": "yes"}
    assert "allowed good" in lines(host, "hooks", namespace)


def test_a_review_wakes_it(cluster, host, namespace, hooks):
    for index in range(3):
        wakes = asleep(cluster, namespace)["status"]["wakes"]
        assert "this is not allowed" in refused(cluster, namespace, "bad", "validate", do="deny")
        eventually(lambda: cluster.get(*OPERATOR, "hooks", namespace)["status"]["wakes"] > wakes, f"it was woken for review {index}", 60)
    eventually(lambda: sum(cause.get("event") == "review" for turn in turns(host, "hooks", namespace) for cause in turn["causes"]) >= 3, "that is recorded")
    assert asleep(cluster, namespace)["status"]["restarts"] == 0


def clients_of(cluster, kind, name):
    return [webhook["clientConfig"] for webhook in cluster.get(*kind, name)["webhooks"]]


def test_the_configurations_name_the_host_its_authority_and_the_operators_paths(cluster, host, namespace, configurations, hooks):
    prefix = f"https://127.0.0.1:{host.webhook_port}/operators/{namespace}/hooks"
    authority = authorities_of(cluster, HOST)

    clients = clients_of(cluster, VALIDATING, configurations)
    assert [one["url"] for one in clients] == [f"{prefix}{path}" for path in ("/validate", "/validate", "/nonsense", "/unknown")]
    assert {base64.b64decode(one["caBundle"]).decode() for one in clients} == {authority}
    assert clients_of(cluster, MUTATING, configurations)[0]["url"] == f"{prefix}/mutate"

    # Whoever applies the project's manifests again undoes it, for a moment.
    def applied():
        cluster.patch(*VALIDATING, configurations, {"webhooks": webhooks_of(namespace, ("validate", "/other", 10))})
    applied()
    eventually(lambda: [one.get("url") for one in clients_of(cluster, VALIDATING, configurations)] == [f"{prefix}/other"],
               "it is pointed at the host again", 60)

    cluster.delete("v1", "Secret", "hangar-webhook", HOST)
    eventually(lambda: cluster.get("v1", "Secret", "hangar-webhook", HOST), "there is another certificate", 60)
    assert authorities_of(cluster, HOST) != authority
    eventually(lambda: base64.b64decode(clients_of(cluster, MUTATING, configurations)[0]["caBundle"]).decode() == authorities_of(cluster, HOST),
               "the configuration has the new authority", 60)
    eventually(lambda: (try_to(make, cluster, namespace, "after", "mutate") or {}).get("data") == {"mutated": "yes"}, "the API server trusts it", 60)


def test_it_converts_objects_of_its_kind(cluster, host, namespace, built, configurations):
    def version(name, field, stored):
        return {"name": name, "served": True, "storage": stored, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {field: {"type": "string"}}}}}}}
    cluster.create({"apiVersion": CRD[0], "kind": CRD[1], "metadata": {"name": "notes.hooks.hangar.dev"}, "spec": {
        "group": "hooks.hangar.dev", "scope": "Namespaced", "names": {"kind": "Note", "plural": "notes", "singular": "note", "listKind": "NoteList"},
        "versions": [version("v1", "text", True), version("v2", "words", False)],
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": service("/convert")}}}})
    all_rights(cluster, namespace)
    run(cluster, namespace, {"kind": CRD[1], "name": "notes.hooks.hangar.dev"})
    eventually(lambda: webhooks_ready(cluster, namespace).get("status") == "True", "the kind's conversion points at the host", 60)

    note = {"apiVersion": "hooks.hangar.dev/v2", "kind": "Note", "metadata": {"name": "one", "namespace": namespace}, "spec": {"words": "hello"}}
    # Until the API server has learned of the kind and of its conversion.
    eventually(lambda: try_to(cluster.create, note), "an object is made in the version that is not stored", 60)
    assert cluster.get("hooks.hangar.dev/v1", "Note", "one", namespace)["spec"] == {"text": "hello"}
    assert cluster.get("hooks.hangar.dev/v2", "Note", "one", namespace)["spec"] == {"words": "hello"}
    cluster.delete("hooks.hangar.dev/v1", "Note", "one", namespace)
    cluster.delete(*CRD, "notes.hooks.hangar.dev")
    cluster.delete(*OPERATOR, "hooks", namespace)


def test_without_the_right_of_its_service_account_nothing_is_changed_and_all_is_told(cluster, host, namespace, built, configurations):
    run(cluster, namespace)

    told = eventually(lambda: (lambda one: one if one.get("status") == "False" else None)(webhooks_ready(cluster, namespace)), "the condition says so", 60)
    assert told["reason"] == "Denied"
    assert f"{VALIDATING[1]} {configurations}, as ServiceAccount default" in told["message"] and "cannot get resource" in told["message"]
    assert clients_of(cluster, VALIDATING, configurations)[0]["service"]["name"] == "webhook-service"
    eventually(lambda: "WebhooksNotReady" in {event["reason"] for event in events_of(cluster, "hooks", namespace)}, "an Event says so", 60)
    assert condition(cluster.get(*OPERATOR, "hooks", namespace))["status"] == "True", "the operator runs all the same"

    all_rights(cluster, namespace)
    eventually(lambda: webhooks_ready(cluster, namespace).get("status") == "True", "it is looked at again", 90)
    assert clients_of(cluster, VALIDATING, configurations)[0]["url"].endswith(f"/operators/{namespace}/hooks/validate")
    cluster.patch(*OPERATOR, "hooks", {"spec": {"webhooks": None}}, namespace)
    eventually(lambda: webhooks_ready(cluster, namespace).get("reason") == "NoneNamed", "the condition says that there are none", 60)
    cluster.delete(*OPERATOR, "hooks", namespace)


@pytest.mark.parametrize("taken, words", [
    ({"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "system/serving-cert"}}}, "cert-manager.io/inject-ca-from"),
    ({"webhooks": [{"name": "validate.hooks.hangar.dev", "clientConfig": {"url": "https://127.0.0.1:1/operators/other/hooks/validate"},
                    "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"}]}, "another operator"),
    ({"webhooks": []}, "it has no webhooks"),
], ids=["injected", "another's", "empty"])
def test_a_configuration_that_is_not_the_operators_to_have_is_left_alone(cluster, host, namespace, built, configurations, taken, words):
    cluster.patch(*VALIDATING, configurations, taken)
    before = cluster.get(*VALIDATING, configurations).get("webhooks")
    all_rights(cluster, namespace)
    run(cluster, namespace)

    eventually(lambda: words in webhooks_ready(cluster, namespace).get("message", ""), "the condition says so", 60)
    assert cluster.get(*VALIDATING, configurations).get("webhooks") == before
    cluster.delete(*OPERATOR, "hooks", namespace)


def test_a_guest_that_never_answers_holds_up_nobody(cluster, host, namespace, hooks):
    # More than a guest may have without an answer.
    for index in range(10):
        assert "has not answered in time" in refused(cluster, namespace, f"lost{index}", "quick", do="never")

    assert "this is not allowed" in refused(cluster, namespace, "bad", "validate", do="deny")
    assert cluster.get(*OPERATOR, "hooks", namespace)["status"]["restarts"] == 0


def test_a_bad_answer_is_a_refusal_with_words_and_no_restart(cluster, host, namespace, hooks):
    assert "an answer of" in refused(cluster, namespace, "large", "validate", do="large")
    assert "oh" in refused(cluster, namespace, "panics", "validate", do="panic")
    assert "nonsense.hooks.hangar.dev" in refused(cluster, namespace, "nonsense", "nonsense")
    assert "could not find the requested resource" in refused(cluster, namespace, "unknown", "unknown")

    assert make(cluster, namespace, "good", "validate")["metadata"]["name"] == "good"
    assert cluster.get(*OPERATOR, "hooks", namespace)["status"]["restarts"] == 0


def test_a_guest_that_answers_twice_is_heard_once_and_one_that_answers_too_much_starts_anew(cluster, host, namespace, built, wat):
    # Without an SDK: it says what it likes.
    cluster.create(manifest("raw", namespace, wasm="hooks", module={"url": wat("kube_runtime_webhooks")}, sleep={"after": "100ms"}))
    at = f"/operators/{namespace}/raw"
    eventually(lambda: ask(host, f"{at}/ok", review()) == (200, "ok"), "it answers", 120)

    status, text = ask(host, f"{at}/most", review())

    assert status == 503 and "the operator has ended" in text
    eventually(lambda: ask(host, f"{at}/ok", review()) == (200, "ok"), "it answers again", 60)
    eventually(lambda: "an answer of 4194305 bytes" in cluster.get(*OPERATOR, "raw", namespace)["status"].get("lastError", ""), "the status says why", 60)
    cluster.delete(*OPERATOR, "raw", namespace)


def test_a_host_that_does_not_lead_says_so(cluster, host, namespace, hooks, tmp_path):
    path = f"/operators/{namespace}/hooks/validate"
    other = start(cluster, tmp_path / "other")
    try:
        eventually(lambda: ask(other, "/ready", None, "GET")[0] == 200, "the other host serves webhooks", 60)
        status, text = ask(other, path, review())
    finally:
        assert other.stop() == 0

    assert (status, text) == (503, "this replica does not lead, and runs no operators\n")
    assert ask(host, path, review(object={"metadata": {"name": "x"}, "data": {"do": "deny"}}))[0] == 200


def test_an_operator_that_does_not_run_yet_is_unavailable_and_not_unknown(cluster, host, namespace, configurations):
    all_rights(cluster, namespace)
    cluster.create(manifest("late", namespace, module={"url": "file:///nowhere/late.wasm"}, webhooks=[{"kind": VALIDATING[1], "name": configurations}]))
    path = f"/operators/{namespace}/late/validate"
    eventually(lambda: ask(host, path, review())[0] == 503, "the host knows that it should run it", 60)
    eventually(lambda: condition(cluster.get(*OPERATOR, "late", namespace), "Stalled").get("status") == "True", "there is no module", 60)

    status, text = ask(host, path, review())

    assert (status, text) == (503, f"operator {namespace}/late: it does not answer reviews yet\n")
    cluster.delete(*OPERATOR, "late", namespace)
    eventually(lambda: ask(host, path, review())[0] == 404, "it is gone", 60)


@pytest.mark.parametrize("path, body, method, status, words", [
    ("/operators/", "{}", "POST", 404, "no webhook"),
    ("/operators/default", "{}", "POST", 404, "names no operator"),
    ("/operators/default/nobody/validate", "{}", "POST", 404, "runs no such operator"),
    ("/operators/default/nobody/validate", None, "GET", 405, "POST"),
    ("/operators/default/nobody/validate", "x" * (8 * MIB), "POST", 413, "the most is"),
], ids=["nothing", "no name", "nobody", "no review", "large"])
def test_a_request_for_nobody_is_refused_with_words(host, path, body, method, status, words):
    answer = ask(host, path, body, method)

    assert answer[0] == status and words in answer[1]


def test_a_deleted_operator_answers_no_more(cluster, host, namespace, hooks):
    cluster.delete(*OPERATOR, "hooks", namespace)
    eventually(lambda: cluster.get(*OPERATOR, "hooks", namespace) is None, "it is gone")

    eventually(lambda: ask(host, f"/operators/{namespace}/hooks/validate", review())[0] == 404, "nobody answers", 60)
    assert "runs no such operator" in ask(host, f"/operators/{namespace}/hooks/validate", review())[1]
    assert "failed calling webhook" in refused(cluster, namespace, "late", "validate")


def test_reviews_are_counted_and_nothing_of_them_is_logged(cluster, host, namespace, hooks):
    answered = lambda: host.metrics().get('hangar_operator_webhooks_total{result="answered"}', 0)
    before = answered()

    refused(cluster, namespace, "bad", "validate", do="deny", secret="correct-horse-battery")

    assert answered() > before
    assert "correct-horse-battery" not in host.log.read_text(errors="replace")
