"""TenantPolicies: what namespaces may use and name, also when a policy changes while Operators and workflows run."""
import contextlib
import json
import pathlib
import subprocess

import pytest
import yaml

import airways
import flights
import operators
import workflows
from airways import flight
from cluster import KINDS, ROOT, ApiError, condition, eventually, never
from conftest import COMPILED
from host import Host, to_its_end
from operators import OPERATOR

POLICY = ("hangar.dev/v1alpha1", "TenantPolicy")
USAGE = ("hangar.dev/v1alpha1", "TenantUsage")
KINDS[POLICY] = ("/apis/hangar.dev/v1alpha1", "tenantpolicies", False)
KINDS[USAGE] = ("/apis/hangar.dev/v1alpha1", "tenantusages", True)
CRD = ROOT / "deploy/crds/tenantpolicies.hangar.dev.yaml"
LABEL = "kubernetes.io/metadata.name"
RUNS = ("Running", "Asleep")
MIB = 1024 * 1024
# Keeps 9.25 MiB for as long as it lives.
LARGE = """(module
  (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
  (memory (export "memory") 128)
  (func (export "_start") (drop (call $delay (i64.const -1))))
  (func (export "allocate") (param i32) (result i32) (i32.const 1024))
  (func (export "wakeup") (param i64 i32 i32 i32)))"""


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


@pytest.fixture(scope="module")
def host(cluster, tmp_path_factory):
    yield from to_its_end(Host(cluster.kubeconfig, tmp_path_factory.mktemp("policies"), "--guest-memory=96Mi"))


@pytest.fixture
def policy(cluster, namespace):
    """Applies a TenantPolicy for the test's namespace, or others; removes it at the end."""
    made = set()

    def apply(name, selector=None, **spec):
        name = f"{namespace}-{name}"
        made.add(name)
        wanted = {"matchLabels": {LABEL: namespace}} if selector is None else selector
        cluster.apply({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": name}, "spec": {"namespaceSelector": wanted, **spec}})
        return name

    yield apply
    for name in made:
        cluster.delete(*POLICY, name)


@pytest.fixture
def operator(cluster, namespace):
    """Creates an Operator that only waits; keyword arguments are its spec."""
    made = []

    def make(name, where=None, **spec):
        made.append((name, where or namespace))
        return cluster.create(operators.manifest(name, where or namespace, "print=here", "sleep=600000", **spec))

    yield make
    for name, where in made:
        cluster.delete(*OPERATOR, name, where)


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    directory = tmp_path_factory.mktemp("large")
    (directory / "large.wat").write_text(LARGE)
    subprocess.run(["wat2wasm", directory / "large.wat", "-o", directory / "large.wasm"], check=True)
    return str(directory / "large.wasm")


@pytest.fixture(scope="session")
def busy(tmp_path_factory):
    """A guest that computes for some milliseconds, waits for five, and begins anew."""
    directory = tmp_path_factory.mktemp("busy")
    (directory / "busy.wat").write_text("""(module
      (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
      (memory (export "memory") 1)
      (func $work (local $left i32)
        (local.set $left (i32.const 20000000))
        (loop $again (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (drop (call $delay (i64.const 5))))
      (func (export "_start") (call $work))
      (func (export "allocate") (param i32) (result i32) (i32.const 1024))
      (func (export "wakeup") (param i64 i32 i32 i32) (call $work)))""")
    subprocess.run(["wat2wasm", directory / "busy.wat", "-o", directory / "busy.wasm"], check=True)
    return str(directory / "busy.wasm")


def runs(cluster, name, namespace):
    one = cluster.get(*OPERATOR, name, namespace)
    return operators.phase(one) in RUNS and condition(one, "Stalled").get("status") == "False"


def refused(cluster, name, namespace, kind=OPERATOR):
    """The message of an Operator that a policy refuses."""
    one = cluster.get(*kind, name, namespace)
    stalled = condition(one, "Stalled")
    is_refused = stalled.get("status") == "True" and stalled["reason"] == "RefusedByPolicy"
    return stalled["message"] if is_refused and operators.phase(one) not in RUNS else None


def url_of(name):
    return f"file://{flight(name)}"


# Modules and service accounts ----------------------------------------------------------------------


def test_a_module_that_a_policy_does_not_allow_is_refused_there_and_nowhere_else(cluster, host, namespace, policy, operator, unique):
    elsewhere = f"{unique}-elsewhere"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    name = policy("sources", modules={"urls": ["oci://registry.example.com/team/*"]})
    for where in (namespace, elsewhere):
        operator("one", where=where, module={"url": url_of(operators.BEHAVE)})

    said = eventually(lambda: refused(cluster, "one", namespace), "it is refused")
    assert f"TenantPolicy {name} does not allow the module" in said and "oci://registry.example.com/team/*" in said, said
    eventually(lambda: runs(cluster, "one", elsewhere), "the other namespace's runs", 60)
    eventually(lambda: any(name in event["message"] for event in operators.events_of(cluster, "one", namespace)), "an Event names it, too")

    policy("sources", modules={"urls": ["oci://registry.example.com/team/*", url_of(operators.BEHAVE)]})
    eventually(lambda: runs(cluster, "one", namespace), "it runs once the policy allows it", 60)
    cluster.delete("v1", "Namespace", elsewhere)


def test_a_service_account_that_a_policy_does_not_allow_is_refused(cluster, host, namespace, policy, operator):
    name = policy("accounts", serviceAccounts=["mirror", "copier"])
    operator("one")

    said = eventually(lambda: refused(cluster, "one", namespace), "it is refused")
    assert f"TenantPolicy {name} does not allow the ServiceAccount default" in said and "mirror, copier" in said, said
    cluster.patch(*OPERATOR, "one", {"spec": {"serviceAccountName": "copier"}}, namespace)
    eventually(lambda: runs(cluster, "one", namespace), "it runs as another one", 60)


def test_of_several_policies_the_strictest_counts_and_is_named(cluster, host, namespace, policy, operator):
    policy("a", serviceAccounts=["default", "mirror"], modules={"insecure": True})
    strict = policy("b", serviceAccounts=["default"], modules={"insecure": False})
    policy("c", selector={"matchLabels": {LABEL: "another"}}, serviceAccounts=[])
    operator("account", serviceAccountName="mirror")
    operator("insecure", module={"url": flight(operators.BEHAVE), "insecure": True})
    operator("fine")

    for name in ("account", "insecure"):
        said = eventually(lambda name=name: refused(cluster, name, namespace), f"{name} is refused")
        assert f"TenantPolicy {strict} " in said, said
    eventually(lambda: runs(cluster, "fine", namespace), "what all of them allow runs", 60)


# Followed live -----------------------------------------------------------------------------------


def test_a_policy_that_comes_later_stops_what_runs_and_lets_it_go_on_when_it_goes(cluster, host, namespace, policy, operator):
    operator("one")
    eventually(lambda: runs(cluster, "one", namespace), "it runs", 60)

    name = policy("later", modules={"urls": []})
    said = eventually(lambda: refused(cluster, "one", namespace), "it is stopped")
    assert name in said and "it allows none" in said, said
    never(lambda: runs(cluster, "one", namespace), "it does not come back", 1)
    cluster.delete(*POLICY, name)
    eventually(lambda: runs(cluster, "one", namespace), "it begins anew", 60)


def test_a_guest_that_a_policy_bans_does_not_run_on_while_its_operator_names_a_module_that_nobody_serves(cluster, host, namespace, policy, operator):
    operator("one", serviceAccountName="mirror")
    eventually(lambda: runs(cluster, "one", namespace), "it runs", 60)
    cluster.patch(*OPERATOR, "one", {"spec": {"serviceAccountName": "copier", "module": {"url": "oci://registry.invalid/team/new:1"}}}, namespace)
    eventually(lambda: "registry.invalid" in json.dumps(cluster.get(*OPERATOR, "one", namespace)["status"]["conditions"]), "the new one is asked for", 60)
    assert operators.phase(cluster.get(*OPERATOR, "one", namespace)) in RUNS

    name = policy("later", modules={"urls": ["oci://registry.invalid/team/*"]})
    eventually(lambda: operators.phase(cluster.get(*OPERATOR, "one", namespace)) not in RUNS, "the earlier guest is stopped", 60)

    def told():
        return [event["message"] for event in operators.events_of(cluster, "one", namespace) if event["reason"] == "RefusedByPolicy"]
    assert name in eventually(told, "an Event says why")[0]


def test_a_label_of_a_namespace_brings_it_under_a_policy_and_out_of_it(cluster, host, namespace, policy, operator):
    policy("labelled", selector={"matchExpressions": [{"key": "trust", "operator": "In", "values": [namespace]}]}, serviceAccounts=[])
    operator("one")
    eventually(lambda: runs(cluster, "one", namespace), "it runs", 60)

    cluster.patch("v1", "Namespace", namespace, {"metadata": {"labels": {"trust": namespace}}}, None)
    eventually(lambda: refused(cluster, "one", namespace), "it is stopped")
    cluster.patch("v1", "Namespace", namespace, {"metadata": {"labels": {"trust": None}}}, None)
    eventually(lambda: runs(cluster, "one", namespace), "it begins anew", 60)


def test_a_workflow_is_refused_as_an_operator_is_and_goes_on_from_where_it_was(cluster, host, namespace, policy):
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "rollout", workflows.bundle(workflows.ROLLOUT))
    cluster.create(workflows.workflow("it", namespace, "rollout", input={"soakMilliseconds": 600000}))
    state = eventually(lambda: workflows.status(cluster, namespace, "it").get("state"), "it has begun", 60)

    name = policy("workflows", modules={"urls": ["oci://registry.example.com/*"]})
    said = eventually(lambda: refused(cluster, "it", namespace, workflows.WORKFLOW), "it is refused")
    assert f"TenantPolicy {name} does not allow the module configmap://{namespace}/rollout" in said, said
    assert workflows.status(cluster, namespace, "it")["state"] == state, "what it was is kept"
    cluster.delete(*POLICY, name)
    eventually(lambda: not refused(cluster, "it", namespace, workflows.WORKFLOW), "it goes on")
    cluster.delete(*workflows.WORKFLOW, "it", namespace)


def test_a_workflow_pinned_to_a_module_that_a_policy_bans_waits_for_a_migration_whatever_its_spec_names(cluster, host, namespace, policy):
    workflows.allow(cluster, namespace)
    bundle = workflows.bundle(workflows.ROLLOUT)
    workflows.module(cluster, namespace, "rollout", bundle)
    workflows.module(cluster, namespace, "other", bundle.replace('"paused"]', '"held"]'))
    cluster.create(workflows.workflow("it", namespace, "rollout", input={"soakMilliseconds": 600000}))
    state = eventually(lambda: (lambda one: one["state"] if one.get("timers") else None)(workflows.status(cluster, namespace, "it")), "it waits", 60)
    cluster.patch(*workflows.WORKFLOW, "it", {"spec": {"moduleConfigMap": "other"}}, namespace)

    name = policy("sources", modules={"urls": [f"configmap://{namespace}/other", f"configmap://{namespace}/other/*"]})
    said = eventually(lambda: refused(cluster, "it", namespace, workflows.WORKFLOW), "it is refused")
    assert f"TenantPolicy {name} does not allow the module configmap://{namespace}/rollout" in said and "workflows.example.com/migrate=" in said, said
    eventually(lambda: any(name in event["message"] for event in operators.events_of(cluster, "it", namespace)), "an Event names it, too")
    workflows.signal(cluster, namespace, "it", "1", "DRAINED")
    never(lambda: workflows.status(cluster, namespace, "it")["state"] != state, "the machine decides", 3)

    cluster.patch(*workflows.WORKFLOW, "it", {"metadata": {"annotations": {"workflows.example.com/migrate": "now"}}}, namespace)
    eventually(lambda: workflows.status(cluster, namespace, "it")["state"] != state, "it goes on with the module that its spec names")
    assert f"configmap://{namespace}/other" in workflows.status(cluster, namespace, "it")["revision"]["resolved"]
    assert not refused(cluster, "it", namespace, workflows.WORKFLOW)
    cluster.delete(*workflows.WORKFLOW, "it", namespace)


def test_a_workflow_that_has_finished_acts_as_no_account_that_a_policy_does_not_allow(cluster, host, namespace, policy):
    """An action may be left when the machine has finished, and the spec may name another account by then."""
    claim = ("v1", "PersistentVolumeClaim")
    workflows.allow(cluster, namespace, ("", "persistentvolumeclaims"), verbs=("get", "list", "watch", "create", "patch"))
    workflows.allow(cluster, namespace, account="mighty")
    name = policy("accounts", serviceAccounts=["default"])
    workflows.module(cluster, namespace, "provisioner", workflows.bundle(workflows.PROVISIONER))
    cluster.create(workflows.workflow("orders", namespace, "provisioner"))

    def left():
        one = workflows.status(cluster, namespace, "orders")
        return one.get("outbox") if one.get("finishedAt") else None
    (action,) = eventually(left, "it has finished, and has something left to do", 90)
    assert action["type"] == "DELETE_RESOURCES" and cluster.list(*claim, namespace)
    cluster.patch(*workflows.WORKFLOW, "orders", {"spec": {"serviceAccountName": "mighty"}}, namespace)

    said = eventually(lambda: refused(cluster, "orders", namespace, workflows.WORKFLOW), "it is refused")
    assert f"TenantPolicy {name} does not allow the ServiceAccount mighty" in said, said
    never(lambda: not cluster.list(*claim, namespace), "it deletes what the allowed account may not", 5)
    cluster.delete(*workflows.WORKFLOW, "orders", namespace)


# Budgets -----------------------------------------------------------------------------------------


def test_what_does_not_fit_a_policys_memory_waits_and_names_it(cluster, host, namespace, policy, operator, large):
    name = policy("memory", budgets={"guestMemory": "12Mi"})
    policy("more", budgets={"guestMemory": "40Mi"})
    for one in ("a", "b"):
        operator(one, module={"url": large}, sleep={"policy": "Never"})

    def waiting(one):
        found = condition(cluster.get(*OPERATOR, one, namespace), "WaitingForMemory")
        return found if found.get("status") == "True" else None
    waits = eventually(lambda: [one for one in ("a", "b") if waiting(one)], "one waits", 60)
    assert len(waits) == 1
    said = waiting(waits[0])
    assert said["reason"] == "NamespaceMemory" and f"12 MiB of its namespace (TenantPolicy {name})" in said["message"], said

    policy("memory", budgets={"guestMemory": "30Mi"})
    eventually(lambda: not waiting(waits[0]) and runs(cluster, waits[0], namespace), "it has memory once there is more", 60)


def test_sleepers_that_do_not_fit_a_policys_disk_stay_in_memory_and_name_it(cluster, host, namespace, policy, operator, unique):
    elsewhere = f"{unique}-elsewhere"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    name = policy("disk", budgets={"guestDisk": "300"})
    for where in (namespace, elsewhere):
        operator("one", where=where, sleep={"after": "0s"})

    def kept():
        found = condition(cluster.get(*OPERATOR, "one", namespace), "CanSleep")
        return found if found.get("status") == "False" else None
    said = eventually(kept, "it stays in memory", 60)
    assert said["reason"] == "SnapshotFailed" and f"300 bytes of its namespace (TenantPolicy {name})" in said["message"], said
    eventually(lambda: operators.phase(cluster.get(*OPERATOR, "one", elsewhere)) == "Asleep", "the other namespace's sleeps", 60)

    policy("disk", budgets={"guestDisk": "16Mi"})
    eventually(lambda: operators.phase(cluster.get(*OPERATOR, "one", namespace)) == "Asleep", "it sleeps once there is room", 180)
    cluster.delete("v1", "Namespace", elsewhere)


def test_modules_that_do_not_fit_a_policys_disk_are_refused_and_name_it(cluster, host, namespace, policy, operator, unique):
    elsewhere = f"{unique}-elsewhere"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    name = policy("modules", budgets={"moduleDisk": "1Ki"})
    for where in (namespace, elsewhere):
        operator("one", where=where)

    said = eventually(lambda: refused(cluster, "one", namespace), "it is refused", 60)
    assert f"1 KiB of its namespace (TenantPolicy {name}) are free" in said and "moduleDisk" in said, said
    eventually(lambda: runs(cluster, "one", elsewhere), "the other namespace's runs", 60)

    policy("modules", budgets={"moduleDisk": "200Mi"})
    eventually(lambda: runs(cluster, "one", namespace), "it runs once there is room", 180)

    def used():
        told = (cluster.get(*USAGE, "hangar", namespace) or {}).get("status", {}).get("moduleDisk", {})
        return told if told.get("used", 0) > 0 and told.get("limit") == 200 * MIB else None
    assert eventually(used, "its use is told", 90)["policy"] == name
    assert 0 < host.metrics()[f'hangar_module_disk_bytes{{namespace="{namespace}"}}'] < 200 * MIB
    cluster.delete("v1", "Namespace", elsewhere)


def test_what_a_namespace_prints_beyond_a_policys_bound_is_dropped_and_names_it(cluster, host, namespace, policy, unique):
    elsewhere = f"{unique}-elsewhere"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    name = policy("output", budgets={"output": "100"})
    lines = [f"line-{index:02}-of-a-guest-that-has-much-to-say" for index in range(40)]
    for where in (namespace, elsewhere):
        cluster.create(operators.manifest("loud", where, *(f"print={line}" for line in lines), "sleep=600000"))

    eventually(lambda: all(line in operators.logs(host, "loud", elsewhere) for line in lines), "the other namespace's output is whole", 60)
    said = eventually(lambda: next((line for line in operators.logs(host, "loud", namespace).splitlines() if "dropped" in line), None), "output is dropped", 60)
    assert f"guests of namespace {namespace} may print 100 bytes a second together (TenantPolicy {name})" in said, said
    assert lines[0] in operators.logs(host, "loud", namespace)
    for where in (namespace, elsewhere):
        cluster.delete(*OPERATOR, "loud", where)
    cluster.delete("v1", "Namespace", elsewhere)


def test_as_many_operators_run_as_a_policy_allows_the_oldest_first(cluster, host, namespace, policy, operator):
    name = policy("few", budgets={"operators": 1})
    operator("a")
    operator("b")

    eventually(lambda: runs(cluster, "a", namespace), "the first runs", 60)
    said = eventually(lambda: refused(cluster, "b", namespace), "the second does not")
    assert f"TenantPolicy {name} allows 1 Operators" in said, said
    cluster.delete(*OPERATOR, "a", namespace)
    eventually(lambda: runs(cluster, "b", namespace), "the second takes its place", 60)


def test_what_a_namespace_uses_can_be_read_by_who_may_read_that_namespace_only(cluster, host, namespace, policy, operator, large):
    name = policy("use", budgets={"guestMemory": "40Mi", "operators": 5, "feeds": 7})
    operator("one", module={"url": large}, sleep={"policy": "Never"})
    operator("two")
    cluster.kubectl("create", "role", "reader", "--verb=get", "--resource=tenantusages.hangar.dev", "--namespace", namespace)
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", "--user=member", "--namespace", namespace)

    def status():
        return (cluster.get(*USAGE, "hangar", namespace) or {}).get("status", {})
    eventually(lambda: status().get("guestMemory", {}).get("used", 0) > 9 * MIB and status()["operators"].get("asleep") == 1, "it is told", 90)
    seen = status()
    assert seen["policies"] == [name]
    assert seen["guestMemory"]["limit"] == 40 * MIB and seen["guestMemory"]["policy"] == name
    assert (seen["operators"]["used"], seen["operators"]["limit"], seen["operators"]["awake"]) == (2, 5, 1), seen
    assert seen["feeds"] == {"used": 0, "limit": 7, "policy": name}
    assert seen["feedMemory"]["used"] == 0 and seen["feedMemory"]["limit"] > MIB and "policy" not in seen["feedMemory"], "nothing is watched"
    assert seen["answerMemory"]["limit"] > MIB and "policy" not in seen["answerMemory"], "the host's own bound"
    assert seen["output"]["used"] < len("here\n" * 2) and seen["output"]["limit"] == MIB, "a line each at most, and the host's own bound"
    assert seen["fetches"]["limit"] == 3 and "policy" not in seen["fetches"], "the host's own bound"

    member = {"Impersonate-User": "member"}
    assert cluster.request("GET", cluster.path(*USAGE, namespace, "hangar"), headers=member)["status"]["guestMemory"]["limit"] == 40 * MIB
    with pytest.raises(ApiError, match="403"):
        cluster.request("GET", cluster.path(*USAGE, "default", "hangar"), headers=member)
    samples = host.metrics()
    assert samples[f'hangar_guest_memory_namespace_limit_bytes{{namespace="{namespace}"}}'] == 40 * MIB
    assert samples[f'hangar_guest_memory_reserved_bytes{{namespace="{namespace}"}}'] > 9 * MIB

    for one in ("one", "two"):
        cluster.delete(*OPERATOR, one, namespace)
    eventually(lambda: not cluster.get(*USAGE, "hangar", namespace), "a namespace without a consumer has none", 90)


def test_a_namespace_with_a_flight_or_an_instance_has_a_usage_until_both_are_gone(cluster, host, namespace, unique):
    plural, kind = f"{unique}ones", f"{unique.capitalize()}one"
    airway = f"{plural}.e2e.hangar.dev"
    cluster.apply(airways.airway(plural, kind, flight("greeting_rust")))
    cluster.learn("e2e.hangar.dev/v1", kind, plural)
    eventually(lambda: condition(cluster.get("yoke.cd/v1alpha1", "Airway", airway)).get("status") == "True", "the Airway is ready", COMPILED)

    def used(what):
        one = cluster.get(*USAGE, "hangar", namespace)
        return one and one["status"][what]["used"]
    assert used("flights") is None
    flights.allow(cluster, namespace)
    cluster.create(flights.manifest("it", namespace, wasm="greeting_rust", inputObject=flights.greeting("it", namespace)))
    eventually(lambda: used("flights") == 1 and used("instances") == 0, "the Flight is counted", 90)
    cluster.create(airways.instance(kind, "one", {"text": "hi"}, namespace))
    eventually(lambda: used("instances") == 1, "the instance is counted", 90)

    cluster.delete(*flights.FLIGHT, "it", namespace)
    eventually(lambda: used("flights") == 0 and used("instances") == 1, "only the instance is left", 90)
    cluster.delete("e2e.hangar.dev/v1", kind, "one", namespace)
    eventually(lambda: not cluster.get(*USAGE, "hangar", namespace), "a namespace without work has none", 120)
    cluster.delete("yoke.cd/v1alpha1", "Airway", airway)


def test_a_namespace_that_has_used_its_processor_time_is_braked_and_its_neighbour_is_not(cluster, host, namespace, policy, operator, busy, unique):
    elsewhere = f"{unique}-elsewhere"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    name = policy("cpu", budgets={"cpu": "20m"})
    policy("more", budgets={"cpu": "1.5"})
    for where in (namespace, elsewhere):
        operator("busy", where=where, module={"url": busy}, sleep={"policy": "Never"})

    def counted(series, where):
        return host.metrics().get(f'hangar_guest_cpu_{series}{{namespace="{where}"}}', 0)
    eventually(lambda: counted("braked_seconds_total", namespace) > 0, "the namespace is braked", 240)
    # What both have taken before that is the same.
    eventually(lambda: counted("seconds_total", elsewhere) > max(3, 2 * counted("seconds_total", namespace)), "the neighbour goes on working", 240)
    assert counted("namespace_limit_cores", namespace) == 0.02
    assert counted("braked_seconds_total", elsewhere) == 0 == counted("namespace_limit_cores", elsewhere)

    def usage():
        return (cluster.get(*USAGE, "hangar", namespace) or {}).get("status", {}).get("cpu", {})
    eventually(lambda: usage().get("policy") == name and usage()["limit"] == 20, "its usage shows the bound", 90)
    assert "limit" not in cluster.get(*USAGE, "hangar", elsewhere)["status"]["cpu"]

    def waits(where):
        return condition(cluster.get(*OPERATOR, "busy", where), "WaitingForProcessorTime")
    eventually(lambda: waits(namespace).get("status") == "True", "the object says that it waits", 90)
    assert waits(namespace)["reason"] == "NamespaceProcessorTime" and f"budgets.cpu of TenantPolicy {name}" in waits(namespace)["message"]
    assert not waits(elsewhere)

    # Neither a deletion nor the rest of the host waits.
    cluster.delete(*OPERATOR, "busy", namespace)
    cluster.delete(*OPERATOR, "busy", elsewhere)
    eventually(lambda: not any(f"{where}/busy" in series for series in host.metrics() for where in (namespace, elsewhere)), "both have ended", 60)
    cluster.delete("v1", "Namespace", elsewhere)


def test_a_braked_namespace_goes_on_when_its_policy_allows_more(cluster, host, namespace, policy, operator, busy):
    policy("cpu", budgets={"cpu": "1m"})
    operator("busy", module={"url": busy}, sleep={"policy": "Never"})
    wakes = f'hangar_controller_wakes_total{{controller="{namespace}/busy"}}'
    eventually(lambda: host.metrics().get(f'hangar_guest_cpu_braked_seconds_total{{namespace="{namespace}"}}', 0) > 0, "it is braked", 120)
    seen = host.metrics().get(wakes, 0)

    # What it owes at this rate takes minutes.
    policy("cpu", budgets={"cpu": "2"})
    eventually(lambda: host.metrics().get(wakes, 0) > seen + 20, "it works", 60)


# What a policy may say ------------------------------------------------------------------------------


@pytest.mark.parametrize("spec, complaint", [
    ({"budgets": {"guestMemory": "much"}}, "spec.budgets.guestMemory"),
    ({"budgets": {"guestDisk": "much"}}, "spec.budgets.guestDisk"),
    ({"budgets": {"moduleDisk": "much"}}, "spec.budgets.moduleDisk"),
    ({"budgets": {"output": "loud"}}, "spec.budgets.output"),
    ({"budgets": {"cpu": "much"}}, "spec.budgets.cpu"),
    ({"budgets": {"cpu": "0"}}, "more than nothing"),
    ({"budgets": {"feeds": 65}}, "spec.budgets.feeds"),
    ({"budgets": {"fetches": 0}}, "spec.budgets.fetches"),
    ({"modules": {"urls": ["registry.example.com/*"]}}, "spec.modules.urls"),
    ({"serviceAccounts": ["Mirror"]}, "spec.serviceAccounts"),
    ({"serviceAccounts": ["a", "a"]}, "spec.serviceAccounts"),
    ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "In and NotIn need values"),
    ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}, "In and NotIn need values"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_policy_that_makes_no_sense_is_refused_by_the_api_server(cluster, spec, complaint):
    with pytest.raises(ApiError, match="Invalid|invalid") as refusal:
        cluster.create({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": "wrong"}, "spec": spec})
    assert complaint in str(refusal.value)


def test_kubectl_explains_every_field(cluster):
    for field in ("spec", "spec.namespaceSelector", "spec.budgets.guestMemory", "spec.budgets.guestDisk", "spec.budgets.moduleDisk", "spec.budgets.cpu", "spec.budgets.output", "spec.budgets.operators", "spec.budgets.feeds", "spec.budgets.ownWatches",
                  "spec.budgets.upstreamRequests", "spec.budgets.fetches", "spec.modules.urls", "spec.modules.http", "spec.modules.insecure", "spec.modules.privateAddresses",
                  "spec.serviceAccounts"):
        text = cluster.kubectl("explain", f"tenantpolicies.{field}")
        assert "<empty>" not in text, text


# Hosts that cannot read them -----------------------------------------------------------------------


@contextlib.contextmanager
def host_as(cluster, namespace, directory, *rules):
    """A host whose service account has these rights, and those of any host of Operators."""
    name = f"few-{namespace}"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "host", "namespace": namespace}}
    rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [
        {"apiGroups": ["hangar.dev"], "resources": ["operators", "operators/status"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps", "events", "serviceaccounts"], "verbs": ["*"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}, *rules]}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
               "subjects": [{"kind": "ServiceAccount", "name": "host", "namespace": namespace}]}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [account, rights, binding]}))
    config = yaml.safe_load(pathlib.Path(cluster.kubeconfig).read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": cluster.kubectl("create", "token", "host", "-n", namespace).strip()}}]
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))
    made = Host(directory / "kubeconfig", directory / "host", "--features=operators")
    try:
        yield made
    finally:
        assert made.stop() == 0
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", name)


def may_list(cluster, namespace):
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": f"system:serviceaccount:{namespace}:host", "resourceAttributes": {"verb": "list", "group": "hangar.dev", "resource": "tenantpolicies"}}}
    return cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]


@pytest.mark.usefixtures("no_other_host")
def test_a_host_that_may_not_read_policies_works_by_its_own_settings_and_says_so(cluster, namespace, policy, operator, tmp_path):
    policy("unread", serviceAccounts=[])
    with host_as(cluster, namespace, tmp_path) as few:
        operator("one")
        eventually(lambda: runs(cluster, "one", namespace), "it runs", 60)
        assert few.metrics()["hangar_tenant_policies_readable"] == 0
        warnings = [line for line in few.log.read_text().splitlines() if "TenantPolicies cannot be read" in line]
        assert len(warnings) == 1 and "only the host's own settings count" in warnings[0], warnings


@pytest.mark.usefixtures("no_other_host")
def test_a_policy_by_labels_counts_for_all_where_labels_cannot_be_read(cluster, namespace, policy, operator, tmp_path):
    reads = {"apiGroups": ["hangar.dev"], "resources": ["tenantpolicies"], "verbs": ["list", "watch"]}
    name = policy("labels", selector={"matchLabels": {LABEL: "another"}}, serviceAccounts=[])
    with host_as(cluster, namespace, tmp_path, reads) as few:
        operator("one")
        said = eventually(lambda: refused(cluster, "one", namespace), "it is refused")
        assert name in said
        assert few.metrics()["hangar_tenant_policies_readable"] == 1
        assert "namespaces cannot be read" in few.log.read_text()


@pytest.mark.usefixtures("no_other_host")
def test_a_right_that_is_taken_away_leaves_what_was_known(cluster, namespace, policy, operator, tmp_path):
    reads = [{"apiGroups": ["hangar.dev"], "resources": ["tenantpolicies"], "verbs": ["list", "watch"]},
             {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}]
    name = policy("kept", serviceAccounts=[])
    with host_as(cluster, namespace, tmp_path, *reads) as few:
        operator("one")
        eventually(lambda: refused(cluster, "one", namespace), "it is refused")
        role = json.loads(cluster.kubectl("get", "clusterrole", f"few-{namespace}", "-o", "json"))
        role["rules"] = [rule for rule in role["rules"] if "tenantpolicies" not in rule["resources"]]
        cluster.kubectl("replace", "-f", "-", stdin=json.dumps(role))
        eventually(lambda: not may_list(cluster, namespace), "the right is gone")
        # Ends the open watch: the API server checks rights when one begins.
        cluster.kubectl("patch", "crd", "tenantpolicies.hangar.dev", "--type=merge", "-p",
                        json.dumps({"spec": {"names": {"shortNames": [f"x{namespace}"[:20]]}}}))
        eventually(lambda: "those known last count" in few.log.read_text(), "the watch is refused", 90)

        operator("two")
        said = eventually(lambda: refused(cluster, "two", namespace), "it is refused by what was known")
        assert name in said
        assert few.metrics()["hangar_tenant_policies_readable"] == 0


@pytest.mark.usefixtures("no_other_host")
def test_a_cluster_without_the_kind_has_no_policies_until_it_comes(cluster, namespace, policy, operator, tmp_path):
    cluster.kubectl("delete", "-f", str(CRD), "--wait")
    made = Host(cluster.kubeconfig, tmp_path / "host")
    try:
        operator("one")
        eventually(lambda: runs(cluster, "one", namespace), "it runs", 60)
        cluster.apply_crds(CRD)
        eventually(lambda: made.metrics()["hangar_tenant_policies_readable"] == 1, "they are followed", 90)
        name = policy("new", serviceAccounts=[])
        assert name in eventually(lambda: refused(cluster, "one", namespace), "it is stopped", 60)
    finally:
        assert made.stop() == 0
        cluster.kubectl("apply", "--server-side", "-f", str(CRD))


@pytest.fixture
def no_other_host(host):
    """The module's host is away for the test."""
    assert host.stop() == 0
    yield
    host.start()
