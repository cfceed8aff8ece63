"""StatefulWorkflows, seen from outside: machines decide, and the host acts in a real cluster."""
import base64
import gzip
import json
import pathlib
import socket
import time

import pytest

import workflows
from cluster import ROOT, ApiError, condition, eventually, never
from conftest import serves
from operators import events_of
from workflows import CONDUCTOR, CONFIG_MAP, FAMILIES, PROVISIONER, ROLLOUT, WORKFLOW, actors, bundle, built, hangar, reaches, signal, stalls, state

PVC = ("v1", "PersistentVolumeClaim")
DEPLOYMENT = ("apps/v1", "Deployment")
JOB = ("batch/v1", "Job")

# A round of the conductor that does not end.
FOR_EVER = [{"type": "WAIT_FOR", "params": {
    "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody-makes-this", "jsonPath": "{.data.ready}"}}]


@pytest.fixture
def flow(cluster, host, namespace):
    """Creates a workflow, with its machine's ConfigMap and its ServiceAccount's rights; keyword arguments are its spec."""
    workflows.allow(cluster, namespace)
    modules = set()

    def make(name, machine=CONDUCTOR, **spec):
        config_map = machine.replace("_", "-")
        if machine not in modules:
            workflows.module(cluster, namespace, config_map, bundle(machine))
            modules.add(machine)
        return cluster.create(workflows.workflow(name, namespace, config_map, **spec))

    return make


@pytest.fixture
def status(cluster, namespace):
    return lambda name: workflows.status(cluster, namespace, name)


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def apply_action(name, **params):
    return {"type": "APPLY", "params": {"manifest": config_map(name, made="yes"), **params}}


def seen(one):
    """The events that the conductor received, without the changes of its objects."""
    return [event for event in state(one)["context"]["seen"] if not event.startswith("change: ")]


def reasons(cluster, name, namespace):
    return {event["reason"] for event in events_of(cluster, name, namespace)}


def is_owned_by(manifest, owner):
    return [reference["uid"] for reference in manifest["metadata"].get("ownerReferences", [])] == [owner["metadata"]["uid"]]


# The article's provisioner --------------------------------------------------------------------------


def test_the_published_provisioner_makes_a_database(cluster, namespace, flow):
    owner = flow("orders", PROVISIONER, input={"team": "orders", "nested": {"a": [1, 2]}})

    one = reaches(cluster, namespace, "orders", "ready")

    context = state(one)["context"]
    assert context["team"] == "orders" and context["nested"] == {"a": [1, 2]} and context["retries"] == 0
    pvc = cluster.get(*PVC, context["pvcName"], namespace)
    deployment = cluster.get(*DEPLOYMENT, context["deploymentName"], namespace)
    assert pvc["spec"]["resources"]["requests"]["storage"] == "1Gi" and is_owned_by(pvc, owner)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "postgres:13" and is_owned_by(deployment, owner)
    assert deployment["status"]["availableReplicas"] == 1 and deployment["metadata"]["generation"] == 1
    assert [(entry["event"], entry["from"], entry["to"]) for entry in one["history"] if entry.get("from")] == [
        ("PROVISION", "idle", "creatingPvc"), ("K8S_RESOURCE_CREATED", "creatingPvc", "creatingDeployment"),
        ("K8S_RESOURCE_CREATED", "creatingDeployment", "healthChecking"), ("HEALTH_CHECK_PASSED", "healthChecking", "ready")]
    asked = [action.split("#")[0] for entry in one["history"] for action in entry.get("actions", [])]
    assert asked == ["CREATE_PVC", "CREATE_DEPLOYMENT", "RUN_HEALTH_CHECK"], "each is asked for once"
    workflow = cluster.get(*WORKFLOW, "orders", namespace)
    for kind, wanted in (("Ready", "True"), ("Progressing", "False"), ("Stalled", "False")):
        assert condition(workflow, kind)["status"] == wanted, kind
        assert condition(workflow, kind)["observedGeneration"] == 1
    assert events_of(cluster, "orders", namespace), "Events tell of its transitions"

    cluster.delete(*WORKFLOW, "orders", namespace)
    eventually(lambda: not cluster.get(*DEPLOYMENT, context["deploymentName"], namespace) and not cluster.get(*PVC, context["pvcName"], namespace),
               "what it owns goes with it", 60)


def test_what_the_account_may_not_read_is_not_watched_for_it(cluster, host, namespace, flow, status):
    """The time of a wake would tell of changes, and the host's own watch reads what the account may not."""
    flow("curious", input={"rounds": [[{"type": "WAIT_FOR", "params": {
        "apiVersion": "v1", "kind": "PodTemplate", "name": "private", "namespace": "kube-system", "jsonPath": "{.metadata.name}"}}]]})

    def refused():
        (action,) = status("curious").get("outbox") or [{}]
        return action.get("lastError")
    told = eventually(refused, "the refusal is told", 60)

    assert 'podtemplates "private" is forbidden' in told and f"system:serviceaccount:{namespace}:default" in told, told
    assert not [name for name in host.metrics() if "podtemplates" in name]


def test_what_the_account_may_neither_make_nor_read_is_not_watched_for_it(cluster, host, namespace, flow, status):
    """An object counts as the workflow's as soon as an action is to make it."""
    there = {"apiVersion": "v1", "kind": "PodTemplate", "name": "private", "namespace": "kube-system"}
    made = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "private", "namespace": "kube-system"}, "template": {}}
    flow("greedy", input={"rounds": [[{"type": "APPLY", "params": {"manifest": made, "retry": {"attempts": 100}}},
                                      {"type": "WAIT_FOR", "params": {**there, "jsonPath": "{.metadata.name}", "retry": {"attempts": 100}}}]]})

    def refused():
        actions = status("greedy").get("outbox") or []
        return len(actions) == 2 and all(action.get("lastError") for action in actions)
    eventually(refused, "both refusals are told", 60)

    assert not [name for name in host.metrics() if "podtemplates" in name]


def test_a_provisioner_that_may_not_make_deployments_deletes_what_it_made(cluster, namespace, flow, status):
    workflows.allow(cluster, namespace, ("", "persistentvolumeclaims"))
    flow("orders", PROVISIONER)

    def refused():
        waiting = status("orders").get("outbox") or [{}]
        return waiting[0] if waiting[0].get("type") == "CREATE_DEPLOYMENT" and waiting[0].get("lastError") else None
    action = eventually(refused, "the refusal is told while it is tried again", 60)
    assert "forbidden" in action["lastError"] and f"system:serviceaccount:{namespace}:default" in action["lastError"]
    eventually(lambda: "a Role and a RoleBinding" in condition(cluster.get(*WORKFLOW, "orders", namespace), "Progressing")["message"],
               "the condition says what to do")
    assert cluster.list(*PVC, namespace)

    one = reaches(cluster, namespace, "orders", "failed", 90)
    assert one["failed"] is True
    eventually(lambda: not cluster.list(*PVC, namespace), "the PVC is deleted")
    assert condition(cluster.get(*WORKFLOW, "orders", namespace))["status"] == "False"


def test_a_health_check_that_fails_says_so_to_the_machine(cluster, namespace, flow):
    labels = {"app": "never"}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "never"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "nodeSelector": {"nobody": "has-this"}, "containers": [{"name": "main", "image": "postgres:13"}]}}}}
    flow("checked", input={"rounds": [
        [{"type": "APPLY", "params": {"manifest": deployment}}],
        [{"type": "RUN_HEALTH_CHECK", "params": {"deploymentName": "never", "timeout": "1s", "retry": {"attempts": 1}}}],
        [{"type": "DELETE_RESOURCES"}]]})

    one = reaches(cluster, namespace, "checked", "failed")

    assert seen(one)[-1].startswith("FAILURE (1) RUN_HEALTH_CHECK timed out after")
    assert f"Deployment {namespace}/never: " in seen(one)[-1] and "replicas" in seen(one)[-1], "it says what was waited for"


def test_a_health_check_of_a_deployment_that_is_not_there_yet_is_tried_again(cluster, namespace, flow, status):
    retry = {"attempts": 1000, "initialInterval": "50ms", "factor": 1}
    flow("early", input={"rounds": [[{"type": "RUN_HEALTH_CHECK", "params": {"deploymentName": "late", "retry": retry}}]]})
    eventually(lambda: "there is no Deployment" in (status("early").get("outbox") or [{}])[0].get("lastError", ""), "it says what is missing", 60)

    labels = {"app": "late"}
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "late", "namespace": namespace}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [{"name": "main", "image": "postgres:13"}]}}}})

    one = reaches(cluster, namespace, "early", "done")
    assert seen(one)[-1] == "HEALTH_CHECK_PASSED late"


def test_a_kind_that_is_not_served_yet_is_waited_for(cluster, namespace, unique, flow, status):
    group = f"{unique}.example.com"
    flow("early", input={"rounds": [[{"type": "WAIT_FOR", "params": {
        "apiVersion": f"{group}/v1", "kind": "Late", "name": "it", "retry": {"attempts": 1}}}]]})
    (action,) = eventually(lambda: [action for action in status("early").get("outbox", []) if action.get("lastError")], "it is told", 60)
    assert f'no matches for kind "Late" in version "{group}/v1"' in action["lastError"] and not action.get("attempts")
    assert action["lastError"] in condition(cluster.get(*WORKFLOW, "early", namespace), "Progressing")["message"]

    workflows.allow(cluster, namespace, (group, "lates"))
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"lates.{group}"}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"kind": "Late", "plural": "lates"}, "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(crd))
    try:
        eventually(lambda: serves(cluster, f"/apis/{group}/v1/namespaces/{namespace}/lates"), "the API server serves it")
        late = {"apiVersion": f"{group}/v1", "kind": "Late", "metadata": {"name": "it", "namespace": namespace}}
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(late))
        reaches(cluster, namespace, "early", "done")
    finally:
        cluster.kubectl("delete", "crd", f"lates.{group}")


# The catalogue ----------------------------------------------------------------------------------------


def test_every_action_of_the_catalogue_does_what_it_says(cluster, namespace, flow, status):
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "made"}
    flow("listener", input={"rounds": [FOR_EVER]})
    owner = flow("all", input={"rounds": [
        [apply_action("made"), apply_action("also-made")],
        [{"type": "PATCH", "params": {**target, "patch": {"data": {"patched": "yes"}}}}],
        [{"type": "WAIT_FOR", "params": {**target, "jsonPath": "{.data.ready}", "value": "yes"}}],
        [{"type": "RUN_JOB", "params": {"name": "worked", "image": "busybox", "command": ["true"]}}],
        [{"type": "EMIT", "params": {"reason": "Noted", "message": 'said "this"'}}],
        [{"type": "SEND", "params": {"workflow": "listener", "event": {"type": "GREETING"}}}],
        [{"type": "DELETE", "params": target}, {"type": "WAIT_FOR", "params": {**target, "deleted": True}}],
        [{"type": "DELETE_RESOURCES"}]]})

    eventually(lambda: [action["type"] for action in status("all").get("outbox", [])] == ["WAIT_FOR"], "it waits", 60)
    made = cluster.get(*CONFIG_MAP, "made", namespace)
    assert made["data"] == {"made": "yes", "patched": "yes"} and is_owned_by(made, owner)
    never(lambda: [action["type"] for action in status("all").get("outbox", [])] != ["WAIT_FOR"], "it goes on", 0.5)
    cluster.patch(*CONFIG_MAP, "made", {"data": {"ready": "yes"}}, namespace)

    one = reaches(cluster, namespace, "all", "done", 90)
    assert [event.split(" ")[0] for event in seen(one)] == [
        "PROVISION", "K8S_RESOURCE_CREATED", "K8S_RESOURCE_CREATED", "K8S_RESOURCE_PATCHED", "CONDITION_MET", "JOB_SUCCEEDED",
        "EVENT_EMITTED", "EVENT_SENT", "K8S_RESOURCE_DELETED", "CONDITION_MET", "K8S_RESOURCES_DELETED"]
    assert one["output"]["seen"] == state(one)["context"]["seen"]
    assert ('Noted', 'said "this"') in [(event["reason"], event["message"]) for event in events_of(cluster, "all", namespace)]
    eventually(lambda: "GREETING" in seen(status("listener")), "the other workflow was told")
    for kind, name in ((CONFIG_MAP, "made"), (CONFIG_MAP, "also-made"), (JOB, "worked")):
        eventually(lambda: cluster.get(*kind, name, namespace) is None, f"{name} is gone")


# Keeps a deleted object until the test removes it.
HELD = {"finalizers": ["tests.example.com/hold"]}


def job(name, command, **metadata):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **metadata}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", "command": [command]}]}}}}


def let_go_once_deleted(cluster, kind, name, namespace):
    """The object as it was, once it is being deleted."""
    def is_deleted():
        one = cluster.get(*kind, name, namespace)
        return one if one and "deletionTimestamp" in one["metadata"] else None
    one = eventually(is_deleted, f"{name} is being deleted", 60)
    cluster.patch(*kind, name, {"metadata": {"finalizers": None}}, namespace)
    return one


def test_a_job_of_the_same_name_runs_again(cluster, namespace, flow):
    flow("twice", input={"rounds": [[{"type": "RUN_JOB", "params": {"manifest": job("job", command, **HELD)}}] for command in ("one", "two")]})
    first = let_go_once_deleted(cluster, JOB, "job", namespace)

    one = reaches(cluster, namespace, "twice", "done", 90)

    assert [event for event in seen(one) if event.startswith("JOB_")] == ["JOB_SUCCEEDED job"] * 2
    second = cluster.get(*JOB, "job", namespace)
    assert second["metadata"]["uid"] != first["metadata"]["uid"] and second["status"]["succeeded"] == 1
    assert second["spec"]["template"]["spec"]["containers"][0]["command"] == ["two"]

    flow("other", input={"rounds": [[{"type": "RUN_JOB", "params": {"manifest": job("job", "three")}}]]})
    one = reaches(cluster, namespace, "other", "failed")
    assert "not this workflow's" in seen(one)[-1]
    assert cluster.get(*JOB, "job", namespace)["metadata"]["uid"] == second["metadata"]["uid"], "somebody else's Job stays"
    cluster.patch(*JOB, "job", {"metadata": {"finalizers": None}}, namespace)


def test_two_jobs_of_the_same_name_at_once_run_one_after_the_other(cluster, namespace, flow):
    flow("both", input={"rounds": [[{"type": "RUN_JOB", "params": {"manifest": job("job", command)}} for command in ("one", "two")]]})

    one = reaches(cluster, namespace, "both", "done", 90)

    assert [event for event in seen(one) if event.startswith("JOB_")] == ["JOB_SUCCEEDED job"] * 2
    assert cluster.get(*JOB, "job", namespace)["spec"]["template"]["spec"]["containers"][0]["command"] == ["two"]


def test_a_job_that_somebody_deletes_has_failed(cluster, namespace, flow, status):
    manifest = job("job", "one")
    manifest["spec"]["suspend"] = True  # It never ends by itself.
    flow("one", input={"rounds": [[{"type": "RUN_JOB", "params": {"manifest": manifest}}]]})
    # The workflow knows the uid of its Job.
    eventually(lambda: any(action.get("target") for action in status("one").get("outbox", [])), "the Job runs", 60)

    cluster.delete(*JOB, "job", namespace)

    one = reaches(cluster, namespace, "one", "failed", 90)
    assert "the Job was deleted before it finished" in seen(one)[-1]
    assert cluster.get(*JOB, "job", namespace) is None, "it is not created again"


def test_an_object_that_is_being_deleted_is_made_anew(cluster, namespace, flow, status):
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "held"}
    held = {**config_map("held", made="first"), "metadata": {"name": "held", **HELD}}
    flow("anew", input={"rounds": [
        [{"type": "APPLY", "params": {"manifest": held}}], [{"type": "DELETE", "params": target}], [apply_action("held")]]})
    eventually(lambda: [action["type"] for action in status("anew").get("outbox", [])] == ["APPLY"] and
               "K8S_RESOURCE_DELETED held" in seen(status("anew")), "DELETE does not wait until it is gone", 60)
    never(lambda: not status("anew").get("outbox"), "it counts as applied", 0.5)

    first = let_go_once_deleted(cluster, CONFIG_MAP, "held", namespace)

    reaches(cluster, namespace, "anew", "done")
    second = cluster.get(*CONFIG_MAP, "held", namespace)
    assert second["metadata"]["uid"] != first["metadata"]["uid"] and second["data"] == {"made": "yes"}


@pytest.mark.parametrize("retry, attempts", [
    ({"attempts": 3, "initialInterval": "50ms", "maxInterval": "50ms", "factor": 1, "jitter": 0}, 3),
    ({"attempts": 5, "initialInterval": "50ms", "nonRetryable": ["NotFound", "Invalid", "InvalidInput", "Denied", "Forbidden"]}, 1),
], ids=["three-attempts", "not-retryable"])
def test_an_action_is_tried_as_often_as_its_policy_says(cluster, namespace, flow, retry, attempts):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "not-allowed"}}
    flow("trying", input={"rounds": [[{"type": "APPLY", "params": {"manifest": secret, "retry": retry}}]]})

    one = reaches(cluster, namespace, "trying", "failed")

    assert seen(one)[-1].startswith(f"FAILURE ({attempts}) ") and 'secrets "not-allowed" is forbidden' in seen(one)[-1]

    workflows.allow(cluster, namespace, ("", "secrets"))
    signal(cluster, namespace, "trying", "once", "RETRY")
    reaches(cluster, namespace, "trying", "done")


def test_an_unknown_action_stalls_the_workflow_and_loses_nothing(cluster, namespace, flow, status):
    flow("odd", input={"rounds": [[{"type": "MAKE_COFFEE", "params": {"cups": 2}}]]})

    message = stalls(cluster, namespace, "odd", "MAKE_COFFEE")

    assert "APPLY" in message, "it says what there is"
    waiting = status("odd")["outbox"]
    assert [(action["type"], action["params"]) for action in waiting] == [("MAKE_COFFEE", {"cups": 2})]
    cluster.patch(*WORKFLOW, "odd", {"metadata": {"annotations": {"workflows.example.com/skip-action": str(waiting[0]["id"])}}}, namespace)
    one = reaches(cluster, namespace, "odd", "failed")
    assert condition(cluster.get(*WORKFLOW, "odd", namespace), "Stalled")["status"] == "False", one


# Events -------------------------------------------------------------------------------------------------


def test_signals_come_in_order_and_once(cluster, host, namespace, flow, status):
    flow("told", input={"rounds": [[apply_action("first")], FOR_EVER]})
    eventually(lambda: [action["type"] for action in status("told").get("outbox", [])] == ["WAIT_FOR"], "it waits", 60)

    annotations = {f"signal.workflows.example.com/{number:03}": json.dumps({"type": f"S{number}", "n": number}) for number in range(20)}
    cluster.patch(*WORKFLOW, "told", {"metadata": {"annotations": annotations}}, namespace)
    eventually(lambda: "S19" in seen(status("told")), "all have arrived")
    for _ in range(2):
        signal(cluster, namespace, "told", "003", {"type": "S3"})
        signal(cluster, namespace, "told", "zzz", "AGAIN")
    # The command's signals have names that come before "zzz", and those that arrive together are sorted by name.
    eventually(lambda: "AGAIN" in seen(status("told")), "the signal zzz has arrived")
    for text in ("BY_HAND", '{"type": "WITH_DATA", "resourceName": "x"}'):
        done = hangar(cluster, host, "workflow", "signal", "told", text, "-n", namespace)
        assert done.returncode == 0, done.stderr
    eventually(lambda: "WITH_DATA x" in seen(status("told")), "the command's signals have arrived")
    for arguments in (["BY_ID", "--id=own", "--data", '{"resourceName": "y"}'], ["BY_ID", "--id=own", "--data", '{"resourceName": "y"}'], ["LAST"]):
        done = hangar(cluster, host, "workflow", "signal", "told", *arguments, "-n", namespace)
        assert done.returncode == 0, done.stderr
        eventually(lambda: not cluster.get(*WORKFLOW, "told", namespace)["metadata"].get("annotations"), "the signal is taken")
    eventually(lambda: "LAST" in seen(status("told")), "the last signal has arrived")

    assert [event for event in seen(status("told")) if event not in ("PROVISION", "K8S_RESOURCE_CREATED first")] == [
        *(f"S{number}" for number in range(20)), "AGAIN", "BY_HAND", "WITH_DATA x", "BY_ID y", "LAST"]


def test_a_signal_to_a_workflow_that_has_ended_is_refused_and_not_written(cluster, host, namespace, flow, status):
    flow("over", input={"rounds": [[apply_action("first")]]})
    one = reaches(cluster, namespace, "over", "done")
    before = cluster.get(*WORKFLOW, "over", namespace)["metadata"]

    late = hangar(cluster, host, "workflow", "signal", "over", "RETRY", "-n", namespace)
    nobody = hangar(cluster, host, "workflow", "signal", "nobody", "RETRY", "-n", namespace)

    assert late.returncode == 1 and late.stdout == "", late.stdout
    assert f"{namespace}/over finished in state done at {one['finishedAt'][:19]}" in late.stderr, late.stderr
    after = cluster.get(*WORKFLOW, "over", namespace)["metadata"]
    assert after.get("annotations") == before.get("annotations") and not status("over").get("signals")
    assert nobody.returncode == 1 and nobody.stdout == "" and "not found" in nobody.stderr, nobody.stderr


def test_changes_of_what_it_owns_are_events(cluster, namespace, flow, status):
    flow("watching", input={"rounds": [[apply_action("owned")], FOR_EVER]})
    eventually(lambda: [action["type"] for action in status("watching").get("outbox", [])] == ["WAIT_FOR"], "it waits", 60)

    def told():
        return state(status("watching"))["context"]["seen"]
    cluster.patch(*CONFIG_MAP, "owned", {"data": {"other": "edit"}}, namespace)
    eventually(lambda: [event for event in told() if event == "change: K8S_RESOURCE_CHANGED owned"], "it is told of the edit")
    cluster.delete(*CONFIG_MAP, "owned", namespace)
    eventually(lambda: [event for event in told() if event == "change: K8S_RESOURCE_DELETED owned"], "it is told of the deletion")


def test_an_unknown_event_changes_nothing_and_is_named(cluster, namespace, flow, status):
    flow("rolling", ROLLOUT, input={"soakMilliseconds": 600000})
    before = eventually(lambda: status("rolling") if status("rolling").get("timers") else None, "it waits", 60)

    signal(cluster, namespace, "rolling", "1", "NOBODY_KNOWS_THIS")

    eventually(lambda: status("rolling").get("ignoredSignal") == "NOBODY_KNOWS_THIS", "the status names it")
    after = status("rolling")
    assert (after["value"], after["timers"]) == (before["value"], before["timers"])
    assert condition(cluster.get(*WORKFLOW, "rolling", namespace), "Stalled")["status"] == "False"
    eventually(lambda: "ignored NOBODY_KNOWS_THIS" in condition(cluster.get(*WORKFLOW, "rolling", namespace), "Progressing")["message"],
               "the condition says what to do")
    eventually(lambda: "EventIgnored" in reasons(cluster, "rolling", namespace), "an Event says so")


def test_a_signal_without_a_type_is_refused_and_the_next_is_received(cluster, namespace, flow, status):
    flow("waiting", input={"rounds": [FOR_EVER]})
    eventually(lambda: [action["type"] for action in status("waiting").get("outbox", [])] == ["WAIT_FOR"], "it waits", 60)

    signal(cluster, namespace, "waiting", "wrong", '{"number": 7}')
    eventually(lambda: "SignalRefused" in reasons(cluster, "waiting", namespace), "an Event says so", 60)

    signal(cluster, namespace, "waiting", "right", {"type": "GREETING"})
    eventually(lambda: "GREETING" in seen(status("waiting")), "the machine has received it", 60)


# Machines --------------------------------------------------------------------------------------------------


def test_delays_regions_history_and_output(cluster, namespace, flow, status):
    flow("rolling", ROLLOUT, input={"image": "web:2", "soakMilliseconds": 1500})
    began = time.monotonic()
    one = eventually(lambda: status("rolling") if status("rolling").get("timers") else None, "its first delay runs", 60)
    assert state(one)["value"] == {"rolling": {"regions": {"web": "canary", "worker": "draining"}}}
    assert len(one["timers"]) == 1

    signal(cluster, namespace, "rolling", "1", "DRAINED")
    signal(cluster, namespace, "rolling", "2", "PAUSE")
    eventually(lambda: status("rolling").get("value") == "paused", "it is paused")
    assert not status("rolling").get("timers"), "a pause stops the delay"
    signal(cluster, namespace, "rolling", "3", "RESUME")
    one = eventually(lambda: status("rolling") if status("rolling").get("timers") else None, "it goes on where it was")
    assert state(one)["value"] == {"rolling": {"regions": {"web": "canary", "worker": "updated"}}}

    one = reaches(cluster, namespace, "rolling", "released")
    assert time.monotonic() - began > 1.7, "both delays were waited for"
    assert one["output"] == {"image": "web:2", "notes": ["paused"]}
    assert not one.get("timers")
    reasons = [event["reason"] for event in events_of(cluster, "rolling", namespace)]
    assert reasons.count("Canary") == 2 and reasons.count("Verifying") == 1, reasons


# Machines of machines -----------------------------------------------------------------------------------


@pytest.fixture
def resting(cluster, flow, status):
    """Begins a workflow whose invoked machine has made its ConfigMap and waits for a delay."""
    def make(name, machine, rest=600000):
        flow(name, machine, input={"name": f"{name}-made", "rest": rest})
        return eventually(lambda: status(name) if "resting" in actors(status(name)).values() else None, f"{name}: its worker rests", 60)
    return make


@pytest.mark.parametrize("machine", FAMILIES)
def test_an_invoked_machine_ends_with_output_and_others_are_spawned(cluster, host, namespace, resting, status, machine):
    one = resting("family", machine, rest=3000)
    assert one["value"] == "making" and actors(one) == {"worker#1": "resting"}
    (timer,) = one["timers"]
    assert timer["id"].startswith("worker#1:xstate.after") and timer["event"]["hangar.actor"] == "worker#1", timer
    assert cluster.get(*CONFIG_MAP, "family-made", namespace)["data"] == {"made": "yes"}
    assert "worker#1: resting" in condition(cluster.get(*WORKFLOW, "family", namespace), "Progressing")["message"]

    one = reaches(cluster, namespace, "family", "watching")
    assert state(one)["context"]["made"] == "family-made", "its output"
    assert set(actors(one)) == {"watcher#2", "watcher/clock#3"}
    signal(cluster, namespace, "family", "1", "ADD")
    signal(cluster, namespace, "family", "2", "ADD")
    eventually(lambda: state(status("family"))["context"]["seen"] == ["counted 1", "counted 2"], "the spawned machine counts and answers")
    signal(cluster, namespace, "family", "3", "STOP")
    eventually(lambda: not status("family").get("actors"), "it is stopped")
    assert not status("family").get("timers"), "and the machine that it invoked"
    signal(cluster, namespace, "family", "4", "END")

    one = reaches(cluster, namespace, "family", "done")
    assert one["output"] == {"made": "family-made", "seen": ["counted 1", "counted 2"]}
    told = [change for entry in one["history"] for change in entry.get("actors", [])]
    assert told[:2] == ["worker#1 began in making", "worker#1: making -> resting"] and "worker#1 ended in resting" in told, told


@pytest.mark.parametrize("machine", FAMILIES)
def test_a_delay_of_a_machine_that_is_stopped_is_never_over(cluster, namespace, resting, status, machine):
    before = resting("given-up", machine, rest=4000)["timers"]
    signal(cluster, namespace, "given-up", "1", "GIVE_UP")

    one = reaches(cluster, namespace, "given-up", "idle")
    assert not one.get("timers") and not one.get("actors"), one
    signal(cluster, namespace, "given-up", "2", "AGAIN")
    one = eventually(lambda: status("given-up") if actors(status("given-up")) == {"worker#2": "resting"} else None, "another one rests", 60)
    (timer,) = one["timers"]
    assert timer["id"].startswith("worker#2:") and timer["due"] > before[0]["due"], (before, timer)
    reaches(cluster, namespace, "given-up", "watching")
    events = [(entry["event"], entry["time"]) for entry in status("given-up")["history"] if entry["origin"] == "Timer"]
    assert len(events) == 1 and events[0][1] >= timer["due"], events


@pytest.mark.parametrize("machine", FAMILIES)
def test_what_an_invoked_machine_throws_is_an_error_of_the_one_above(cluster, namespace, flow, resting, status, machine):
    resting("thrown", machine)
    signal(cluster, namespace, "thrown", "1", "FAIL")

    one = reaches(cluster, namespace, "thrown", "broken")

    assert state(one)["context"]["why"] == "bad disk" and not one.get("actors") and not one.get("timers")
    # The invoked machine learns that its action failed, and throws.
    flow("refused", machine, input={"name": "Not a name"})
    one = reaches(cluster, namespace, "refused", "broken")
    assert state(one)["context"]["why"] == "bad disk" and not one.get("failure"), "its FAILURE was known"


@pytest.mark.parametrize("machine, what", [("promise_v4", "a function (a promise, a callback or an observable)"), ("promise_v5", "a promise (fromPromise)")])
def test_a_machine_that_invokes_a_promise_is_refused_by_name(cluster, namespace, flow, machine, what):
    flow("hopeful", machine)

    message = stalls(cluster, namespace, "hopeful", reason="ModuleInvalid")

    assert f"the state hopeful.asking invokes fetchQuota, which is {what}" in message and "ask the host for an action" in message, message


def test_a_migration_takes_the_states_and_delays_of_machines_below(cluster, namespace, resting, status):
    original = bundle("family_v5")
    resting("moved", "family_v5")

    def migrate(text, request):
        workflows.module(cluster, namespace, "family-v5", text)
        cluster.patch(*WORKFLOW, "moved", {"metadata": {"annotations": {"workflows.example.com/migrate": request}}}, namespace)
        return eventually(lambda: (lambda m: m if m.get("request") == request else None)(status("moved").get("migration", {})), "an answer")

    renamed = migrate(original.replace("resting", "sleeping"), "first")
    assert not renamed.get("done") and "the machine disk has no state resting" in renamed["message"], renamed
    named = migrate(original.replace("after: { rest:", "after: { other:").replace("delays: { rest:", "delays: { other: 5, rest:"), "second")
    assert not named.get("done") and "worker#1 has the delay xstate.after.other.disk.resting" in named["message"], named
    assert status("moved")["timers"][0]["id"] == "worker#1:xstate.after.rest.disk.resting"
    eventually(lambda: "MigrationRefused" in reasons(cluster, "moved", namespace), "an Event says so")

    shorter = original.replace("after: { rest:", "after: { 1:")
    assert shorter != original
    assert migrate(shorter, "third")["done"] is True
    reaches(cluster, namespace, "moved", "watching")


def test_show_tells_of_the_machines_below(cluster, host, namespace, resting):
    resting("family", "family_v5")

    shown = hangar(cluster, host, "workflow", "show", "family", "-n", namespace)

    assert shown.returncode == 0, shown.stderr
    assert "\n  worker#1: resting since " in shown.stdout, shown.stdout
    assert "making  (invokes worker)" in shown.stdout and "\nworker#1\n> disk\n" in shown.stdout and "> resting" in shown.stdout, shown.stdout
    assert "xstate.after.rest.disk.resting of worker#1" in shown.stdout.split("Under way:")[1], shown.stdout


def test_states_and_workflows_have_timeouts(cluster, namespace, flow, status):
    waiting = {"rounds": [FOR_EVER]}
    flow("slow-state", input=waiting, timeouts={"states": {"acting": "500ms"}})
    flow("slow-all", input=waiting, timeouts={"workflow": "500ms"})

    for name in ("slow-state", "slow-all"):
        eventually(lambda: [entry for entry in status(name).get("history", []) if entry["origin"] == "Timeout"],
                   f"{name} was told that it took too long: {status(name)}", 60)


SHAPES = [
    ("database_provisioner.js", {"key": "machine.js"}),
    ("database_provisioner.js", {"key": "machine.js.gz", "compress": True}),
    ("provisioner_handle_event.wasm", {"key": "machine.wasm.gz", "compress": True}),
    ("provisioner_command.wasm", {"key": "machine.wasm.gz", "compress": True}),
]


@pytest.mark.parametrize("file, how", SHAPES, ids=lambda value: value if isinstance(value, str) else value["key"])
def test_a_module_of_any_shape_provisions(cluster, host, namespace, file, how):
    workflows.allow(cluster, namespace)
    if file.endswith(".js") and not how.get("compress"):
        workflows.module(cluster, namespace, "machine", built(file).read_text(), **how)
    else:
        workflows.module(cluster, namespace, "machine", binary=built(file).read_bytes(), **how)
    cluster.create(workflows.workflow("it", namespace, "machine", input={"team": "orders"}))

    one = reaches(cluster, namespace, "it", "ready", 120)

    assert state(one)["context"]["team"] == "orders"
    assert len(cluster.list(*DEPLOYMENT, namespace)) == 1 and len(cluster.list(*PVC, namespace)) == 1


def test_a_machine_in_another_language(cluster, host, namespace):
    """examples/approval, as its README describes it."""
    workflows.module(cluster, namespace, "approval", binary=built("approval.wasm").read_bytes(), key="machine.wasm")
    for name in ("rights.yaml", "workflow.yaml"):
        text = (ROOT / "examples/approval" / name).read_text().replace("namespace: default", f"namespace: {namespace}")
        cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=text)
    reaches(cluster, namespace, "release-notes", "waiting")
    assert cluster.get(*CONFIG_MAP, "release-notes", namespace) is None

    done = hangar(cluster, host, "workflow", "signal", "release-notes", '{"type": "APPROVE", "by": "the boss"}', "-n", namespace)

    assert done.returncode == 0, done.stderr
    reaches(cluster, namespace, "release-notes", "published")
    assert cluster.get(*CONFIG_MAP, "release-notes", namespace)["data"] == {"text": "1.2 is out", "approvedBy": "the boss"}


def test_a_signal_that_is_there_before_the_machine_begins_is_an_event_of_it(cluster, host, namespace):
    """Many workflows, because others created meanwhile can give a workflow a second look that it would not have had."""
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "machine", bundle("responder"))
    cluster.create(workflows.workflow("first", namespace, "machine", input={"answer": "first"}))
    reaches(cluster, namespace, "first", "waiting")  # The machine is loaded: the others begin at once.
    names = [f"it-{index}" for index in range(30)]
    for name in names:
        made = workflows.workflow(name, namespace, "machine", input={"answer": f"{name}-answer"})
        made["metadata"]["annotations"] = {"signal.workflows.example.com/ask": '{"type": "ASK", "number": 7}'}
        cluster.create(made)

    for name in names:
        eventually(lambda: (cluster.get(*CONFIG_MAP, f"{name}-answer", namespace) or {}).get("data") == {"number": "7"}, f"{name} answers", 60)


def test_a_module_in_several_keys_and_one_behind_a_url(cluster, host, namespace):
    workflows.allow(cluster, namespace)
    text = bundle(ROLLOUT).encode()
    cut = len(text) // 2
    workflows.module(cluster, namespace, "parts", binary=text[:cut], key="machine.0")
    cluster.patch(*CONFIG_MAP, "parts", {"binaryData": workflows.module(
        cluster, namespace, "rest", binary=text[cut:], key="machine.1")["binaryData"]}, namespace)
    soon = {"soakMilliseconds": 1}
    cluster.create(workflows.workflow("from-parts", namespace, "parts", input=soon))
    cluster.create(workflows.workflow("from-url", namespace, module={"url": f"file://{built('rollout.js')}"}, input=soon))

    for name in ("from-parts", "from-url"):
        signal(cluster, namespace, name, "1", "DRAINED")
        reaches(cluster, namespace, name, "released")


# The plugin is 1 MB, which a ConfigMap takes when it is packed.
PLUGGED = {"input": {"team": "orders"}}


def test_a_machine_that_is_linked_dynamically_waits_for_its_plugin(cluster, host, namespace):
    """From the key beside it: first there is none, then one that does not fit, then its own."""
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "machine", binary=built("provisioner_dynamic.wasm").read_bytes(), key="machine.wasm.gz", compress=True)
    cluster.create(workflows.workflow("it", namespace, "machine", **PLUGGED))
    message = stalls(cluster, namespace, "it")
    for word in ("linked dynamically", "hangar-test-plugin-v1", "plugin.wasm", "spec.plugin", "the ConfigMap machine"):
        assert word in message, message

    def give(module):
        packed = base64.b64encode(gzip.compress(built(module).read_bytes())).decode()
        cluster.patch(*CONFIG_MAP, "machine", {"binaryData": {"plugin.wasm.gz": packed}}, namespace)

    give("approval.wasm")
    stalls(cluster, namespace, "it", "its plugin")
    give("javy_plugin.wasm")

    one = reaches(cluster, namespace, "it", "ready", 120)
    assert state(one)["context"]["team"] == "orders"
    assert len(cluster.list(*DEPLOYMENT, namespace)) == 1 and len(cluster.list(*PVC, namespace)) == 1
    # One digest for both, and one copy.
    assert workflows.copies(cluster, namespace) == [f"machine-{one['revision']['sha256']}"]


def test_many_machines_share_a_plugin_in_a_config_map_of_its_own(cluster, host, namespace):
    workflows.allow(cluster, namespace)
    plugin = gzip.compress(built("javy_plugin.wasm").read_bytes())
    cut = len(plugin) // 2
    workflows.module(cluster, namespace, "machine", binary=built("provisioner_dynamic.wasm").read_bytes(), key="machine.wasm")
    cluster.create(workflows.workflow("it", namespace, "machine", plugin={"configMap": "javy"}, **PLUGGED))
    cluster.create(workflows.workflow("from-url", namespace, "machine", plugin={"url": f"file://{built('javy_plugin.wasm')}"}, **PLUGGED))
    eventually(lambda: "javy" in condition(cluster.get(*WORKFLOW, "it", namespace), "Progressing").get("message", ""), "it is named")

    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "javy", "namespace": namespace}, "binaryData": {
        "plugin.wasm.gz.0": base64.b64encode(plugin[:cut]).decode(), "plugin.wasm.gz.1": base64.b64encode(plugin[cut:]).decode()}})

    machines = {reaches(cluster, namespace, name, "ready", 120)["revision"]["sha256"] for name in ("it", "from-url")}
    assert len(machines) == 1, "the same module with the same plugin is the same machine, wherever they come from"


# Versions --------------------------------------------------------------------------------------------------


def test_a_workflow_keeps_its_machine_until_it_is_asked_to_migrate(cluster, namespace, flow, status):
    flow("old", ROLLOUT, input={"soakMilliseconds": 600000})
    first = eventually(lambda: status("old") if status("old").get("timers") else None, "it waits", 60)["revision"]["sha256"]

    workflows.module(cluster, namespace, "rollout", bundle(ROLLOUT).replace('"paused"]', '"held"]'))
    flow("new", ROLLOUT, input={"soakMilliseconds": 600000})
    second = eventually(lambda: status("new") if status("new").get("timers") else None, "it waits", 60)["revision"]["sha256"]
    assert second != first
    signal(cluster, namespace, "old", "1", "DRAINED")
    eventually(lambda: "updated" in status("old")["value"], "it goes on")
    assert status("old")["revision"]["sha256"] == first

    def migrate(name, request):
        cluster.patch(*WORKFLOW, name, {"metadata": {"annotations": {"workflows.example.com/migrate": request}}}, namespace)
        return eventually(lambda: (lambda m: m if m.get("request") == request else None)(status(name).get("migration", {})), "an answer")
    assert migrate("old", "please")["done"] is True
    eventually(lambda: status("old")["revision"]["sha256"] == second, "it has moved")
    assert status("old")["timers"], "its delay goes on"

    workflows.module(cluster, namespace, "rollout", bundle(ROLLOUT).replace("canary", "sparrow"))
    answer = migrate("old", "again")
    assert not answer.get("done") and "canary" in answer["message"], answer
    assert status("old")["revision"]["sha256"] == second
    signal(cluster, namespace, "old", "2", "ABORT")
    reaches(cluster, namespace, "old", "aborted")


def test_a_migration_takes_the_delays_of_the_new_machine(cluster, namespace, flow, status):
    original = bundle(ROLLOUT)
    patient = original.replace('200: "released"', '6e5: "released"')
    assert patient != original
    flow("mild", ROLLOUT, input={"soakMilliseconds": 1})
    workflows.module(cluster, namespace, "rollout", patient)
    flow("soaked", ROLLOUT, input={"soakMilliseconds": 1})
    signal(cluster, namespace, "soaked", "1", "DRAINED")
    reaches(cluster, namespace, "soaked", "verifying")

    workflows.module(cluster, namespace, "rollout", original)
    cluster.patch(*WORKFLOW, "soaked", {"metadata": {"annotations": {"workflows.example.com/migrate": "now"}}}, namespace)
    reaches(cluster, namespace, "soaked", "released")


# What people see --------------------------------------------------------------------------------------------


def test_history_is_bounded(cluster, namespace, flow, status):
    flow("long", historyLimit=3, input={"rounds": [FOR_EVER]})
    eventually(lambda: status("long").get("outbox"), "it waits", 60)
    for number in range(12):
        signal(cluster, namespace, "long", f"{number:02}", f"S{number}")
    eventually(lambda: "S11" in seen(status("long")), "all have arrived")

    history = status("long")["history"]
    assert [entry["event"] for entry in history] == ["S9", "S10", "S11"]
    assert [entry["sequence"] for entry in history] == sorted(entry["sequence"] for entry in history)
    assert status("long")["transitions"] >= 12


def test_show_draws_the_machine_and_where_it_is(cluster, host, namespace, flow, status):
    flow("rolling", ROLLOUT, input={"soakMilliseconds": 600000})
    eventually(lambda: status("rolling").get("timers"), "it waits", 60)

    terminal = hangar(cluster, host, "workflow", "show", "rolling", "-n", namespace)
    mermaid = hangar(cluster, host, "workflow", "show", "rolling", "-n", namespace, "--output=mermaid")

    assert terminal.returncode == 0, terminal.stderr
    for word in ("canary", "draining", "verifying", "PAUSE"):
        assert word in terminal.stdout, terminal.stdout
    assert mermaid.returncode == 0 and mermaid.stdout.startswith("stateDiagram-v2"), mermaid.stderr
    for word in ("canary", "verifying", "PAUSE", "-->"):
        assert word in mermaid.stdout, mermaid.stdout


def test_show_says_what_is_under_way_and_why_an_action_failed(cluster, host, namespace, flow, status):
    """The account may not create Secrets."""
    secret = {"type": "APPLY", "params": {"manifest": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "refused"}},
                                          "retry": {"attempts": 1}}}
    flow("it", input={"rounds": [[secret, *FOR_EVER]]})
    eventually(lambda: status("it").get("value") == "failed", "it has failed", 60)
    eventually(lambda: "ActionFailed" in [event["reason"] for event in events_of(cluster, "it", namespace)], "people are told")

    shown = hangar(cluster, host, "workflow", "show", "it", "-n", namespace)

    assert shown.returncode == 0, shown.stderr
    under_way, warnings = shown.stdout.split("Under way:")[1].split("Latest warnings:")
    assert "WAIT_FOR#2  since" in under_way, shown.stdout
    assert "ActionFailed: APPLY#1: " in warnings and "forbidden" in warnings, shown.stdout


def test_the_metrics_count_what_happened(cluster, host, namespace, flow):
    def total(name):
        return sum(value for key, value in host.metrics().items() if key.split("{")[0] == name)
    before = total("hangar_workflow_transitions_total")
    flow("counted", input={"rounds": [[apply_action("one")], [{"type": "EMIT", "params": {"reason": "Counted"}}]]})
    reaches(cluster, namespace, "counted", "done")

    assert total("hangar_workflow_transitions_total") >= before + 3
    assert total("hangar_workflow_action_seconds_count") > 0
    assert total("hangar_workflow_state_seconds_count") > 0
    retries = total("hangar_workflow_action_retries_total")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "not-allowed"}}
    flow("retried", input={"rounds": [[{"type": "APPLY", "params": {"manifest": secret, "retry": {"attempts": 3, "initialInterval": "10ms"}}}]]})
    reaches(cluster, namespace, "retried", "failed")
    assert total("hangar_workflow_action_retries_total") == retries + 2
    assert not [key for key in host.metrics() if key.startswith("hangar_workflow") and "counted" in key], "no names of objects"


# Bad input ------------------------------------------------------------------------------------------------------


def answering(text):
    """A bundle whose entry point answers every event with that JavaScript expression."""
    return "export function handle_event(state, event) { if (state === 'null') return '{\"newState\": {\"value\": \"begun\"}}'; return %s; }" % text


BAD_MACHINES = [
    ("no-module", "ModuleInvalid", {}, ["machine"]),
    ("empty", "ModuleInvalid", {"machine.js": ""}, ["0 bytes"]),
    ("not-wasm", "ModuleInvalid", b"\x00\x01\x02\xff\xfe not a module", ["not a WebAssembly module"]),
    ("truncated-wasm", "ModuleInvalid", b"\0asm\1\0\0\0\1\x7f", []),
    ("another-contract", "ModuleInvalid", b"\0asm\1\0\0\0", ["handle_event"]),
    ("syntax-error", "ModuleInvalid", {"machine.js": "export const machine = {{"}, ["SyntaxError"]),
    ("throws-when-loaded", "ModuleInvalid", {"machine.js": "throw new Error('no luck today')"}, ["no luck today"]),
    ("no-machine", "ModuleInvalid", {"machine.js": "export const nothing = 1"}, ["machine"]),
    ("throws", "MachineFailed", {"machine.js": answering("(() => { throw new Error('no luck today') })()")}, ["no luck today"]),
    ("reports-an-error", "AnswerInvalid", {"machine.js": answering("'{\"error\": \"no luck today\"}'")}, ["no luck today"]),
    ("endless-loop", "LimitExceeded", {"machine.js": answering("(() => { for (;;) {} })()")}, ["time", "an endless loop", "PROVISION"]),
    ("endless-loop-when-loaded", "ModuleInvalid", {"machine.js": "for (;;) {}"}, ["time"]),
    ("memory-bomb", "LimitExceeded", {"machine.js": answering("(() => { const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1)) })()")}, ["memory"]),
    ("not-json", "AnswerInvalid", {"machine.js": answering("'hello'")}, ["JSON"]),
    ("without-new-state", "AnswerInvalid", {"machine.js": answering("'{\"actions\": []}'")}, ["newState"]),
    ("state-too-large", "LimitExceeded", {"machine.js": answering(
        "JSON.stringify({newState: {value: 'begun', context: 'x'.repeat(1 << 20)}})")}, ["bytes", "the most is"]),
    ("too-many-actions", "LimitExceeded", {"machine.js": answering(
        "JSON.stringify({newState: {value: 'begun'}, actions: Array(1000).fill({type: 'EMIT'})})")}, ["actions"]),
    ("action-without-type", "AnswerInvalid", {"machine.js": answering(
        "JSON.stringify({newState: {value: 'begun'}, actions: [{params: {}}]})")}, ["type"]),
]


@pytest.mark.parametrize("reason, content, words", [case[1:] for case in BAD_MACHINES], ids=[case[0] for case in BAD_MACHINES])
def test_a_bad_machine_stalls_its_workflow_says_why_and_can_be_mended(cluster, host, namespace, reason, content, words):
    workflows.allow(cluster, namespace)
    if isinstance(content, bytes):
        workflows.module(cluster, namespace, "machine", binary=content, key="machine.wasm")
    else:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "machine", "namespace": namespace}, "data": content})
    cluster.create(workflows.workflow("it", namespace, "machine"))

    message = stalls(cluster, namespace, "it", reason=reason)

    for word in words:
        assert word.lower() in message.lower(), message
    assert "fix the machine" in message.lower(), "it says what to do"
    assert host.rss_bytes() < 512 << 20
    begun = "begun" == workflows.status(cluster, namespace, "it").get("value")
    assert ("workflows.example.com/migrate" if begun else "the ConfigMap machine") in message
    cluster.delete(*CONFIG_MAP, "machine", namespace)
    workflows.module(cluster, namespace, "machine", answering(
        "JSON.stringify({newState: {value: 'mended'}, final: true, handled: true, actions: []})"))
    if begun:
        # It keeps the machine that it began with until a user asks for another one.
        cluster.patch(*WORKFLOW, "it", {"metadata": {"annotations": {"workflows.example.com/migrate": "mended"}}}, namespace)
    reaches(cluster, namespace, "it", "mended")
    assert condition(cluster.get(*WORKFLOW, "it", namespace), "Stalled")["status"] == "False"


@pytest.mark.parametrize("guest, says", [
    ("kube_runtime_journal", "it seems to be a long-running controller: name it in an Operator"), ("lookup", "it seems to be a flight: name it in an Airway")])
def test_a_module_of_another_contract_is_called_what_it_seems_to_be(cluster, host, namespace, wat, guest, says):
    workflows.module(cluster, namespace, "machine", binary=pathlib.Path(wat(guest)).read_bytes(), key="machine.wasm")
    cluster.create(workflows.workflow("it", namespace, "machine"))

    assert says in stalls(cluster, namespace, "it", "it seems to be", reason="ModuleInvalid")


def test_a_module_that_no_server_gives_is_asked_for_again(cluster, host, namespace):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        cluster.create(workflows.workflow("it", namespace, module={"url": f"http://127.0.0.1:{nobody.getsockname()[1]}/machine.js", "insecure": True}))
        stalls(cluster, namespace, "it", "hangar retries", reason="ModuleUnavailable")


def test_a_spec_that_the_schema_lets_through_is_refused_with_what_is_missing(cluster, host, namespace):
    cluster.create(workflows.workflow("it", namespace, "machine", plugin={}))
    stalls(cluster, namespace, "it", "spec.plugin: exactly one of configMap and url is needed", reason="SpecInvalid")

    cluster.patch(*WORKFLOW, "it", {"spec": {"plugin": None}}, namespace)
    workflows.module(cluster, namespace, "machine", answering(
        "JSON.stringify({newState: {value: 'mended'}, final: true, handled: true, actions: []})"))
    reaches(cluster, namespace, "it", "mended")


def test_a_missing_config_map_is_named_and_waited_for(cluster, namespace, host):
    workflows.allow(cluster, namespace)
    cluster.create(workflows.workflow("it", namespace, "late", input={"soakMilliseconds": 1}))
    eventually(lambda: "late" in condition(cluster.get(*WORKFLOW, "it", namespace), "Progressing").get("message", ""), "it is named")

    workflows.module(cluster, namespace, "late", bundle(ROLLOUT))
    signal(cluster, namespace, "it", "1", "DRAINED")

    reaches(cluster, namespace, "it", "released")


def test_a_module_that_is_removed_leaves_its_workflows_alone(cluster, namespace, flow, status):
    flow("it", ROLLOUT, input={"soakMilliseconds": 1})
    eventually(lambda: "everywhere" in status("it").get("value", ""), "it waits for a signal", 60)
    cluster.delete(*CONFIG_MAP, "rollout", namespace)

    signal(cluster, namespace, "it", "1", "DRAINED")

    reaches(cluster, namespace, "it", "released")


@pytest.mark.parametrize("spec", [
    {"input": "text"}, {"input": ["list"]}, {"input": 7}, {"moduleConfigMap": 7}, {"plugin": "javy"}, {"historyLimit": -1}], ids=str)
def test_the_schema_refuses_what_cannot_be(cluster, namespace, spec):
    with pytest.raises(ApiError) as refused:
        cluster.create(workflows.workflow("it", namespace, **{"moduleConfigMap": "machine", **spec}))

    assert refused.value.status == 422


@pytest.mark.parametrize("nonsense", [
    {"state": "not JSON"},
    {"state": "{\"value\": \"nowhere\", \"context\": {}}"},
    {"state": None},
    {"outbox": [{"id": 99, "type": "APPLY", "requestedAt": "2026-01-01T00:00:00Z"}]},
    {"timers": [{"id": "x", "due": "tomorrow", "event": {"type": "X"}}]},
], ids=["state-not-json", "unknown-state", "state-removed", "action-of-nobody", "wrong-time"])
def test_a_status_edited_to_nonsense_stalls_and_says_how_to_repair_it(cluster, host, namespace, flow, status, nonsense):
    flow("it", ROLLOUT, input={"soakMilliseconds": 600000})
    eventually(lambda: status("it").get("timers"), "it waits", 60)
    kept = status("it")

    cluster.patch(*WORKFLOW, "it", {"status": nonsense}, namespace, "status")

    message = stalls(cluster, namespace, "it", "status")
    assert "repair" in message.lower() or "restore" in message.lower() or "remove" in message.lower(), message
    shown = hangar(cluster, host, "workflow", "show", "it", "-n", namespace)
    assert f"StatusInvalid: {message}" in shown.stdout, shown.stdout + shown.stderr
    # A state that only the machine does not know is not an obstacle to showing all of it.
    is_readable = "nowhere" in (nonsense.get("state") or "")
    assert shown.returncode == (0 if is_readable else 1) and is_readable != ("hangar: status." in shown.stderr), shown.stderr
    cluster.patch(*WORKFLOW, "it", {"status": {key: kept.get(key) for key in nonsense}}, namespace, "status")
    eventually(lambda: condition(cluster.get(*WORKFLOW, "it", namespace), "Stalled").get("status") == "False", "it is repaired")
    signal(cluster, namespace, "it", "1", "ABORT")
    reaches(cluster, namespace, "it", "aborted")
