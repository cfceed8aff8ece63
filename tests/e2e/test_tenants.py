"""In which namespaces hangar may act: `hangar tenant`, the chart's `tenants`, and refusals elsewhere.

The host runs with the rights that the chart gives, on an API server with constrained impersonation.
"""
import json
import subprocess

import pytest
import yaml

import airways
import flights
import operators
import workflows
from airways import flight, instance
from charts import CHART, helm, kubeconfig_of, render, rules_of, with_repository
from cluster import ApiError, Cluster, condition, eventually, is_ready
from conftest import COMPILED
from host import BINARY, Host

SYSTEM = "hangar-system"
INSIDE, OUTSIDE, LATER, WIDE, LEFT = "inside", "outside", "later", "wide", "left"
ACCOUNT = f"system:serviceaccount:{SYSTEM}:hangar"
VALUES = {"features": {"nodes": False}, "replicaCount": 0, "tenants": [INSIDE, {"namespace": WIDE, "clusterReach": True}],
          "rbac": {"airwayGroups": ["e2e.hangar.dev"], "flightResources": [{"apiGroups": [""], "resources": ["configmaps"]}],
                   "operatorResources": [{"apiGroups": [""], "resources": ["configmaps"]}],
                   "workflowResources": [{"apiGroups": ["apps"], "resources": ["deployments"]},
                                         {"apiGroups": [""], "resources": ["persistentvolumeclaims"]}]}}
NOT_ALLOWED = "hangar may not act in namespace {0}: run hangar tenant allow {0}"


def tenant(*arguments, kubeconfig=None, code=0):
    flags = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    done = subprocess.run([str(BINARY), "tenant", *arguments, *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def installed():
    made = Cluster("--with-kcm", "--with-scheduler", "--with-kwok=1")
    for name in (INSIDE, OUTSIDE, LATER, WIDE, LEFT):
        made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        eventually(lambda name=name: made.get("v1", "ServiceAccount", "default", name), "the namespace has its service account")
        operators.allow(made, name, *operators.EVERYTHING)
        workflows.allow(made, name)
        made.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": name}, "stringData": {"key": "x"}})
    helm("install", "hangar", str(CHART), "--namespace", SYSTEM, "--create-namespace", "--values", "-",
         stdin=yaml.safe_dump(with_repository(VALUES)), env={"KUBECONFIG": made.kubeconfig})
    yield made
    made.close()


@pytest.fixture(scope="module")
def chart_host(installed, tmp_path_factory):
    """A host with the identity that the chart gives to its pods."""
    directory = tmp_path_factory.mktemp("tenants")
    host = Host(kubeconfig_of(installed, SYSTEM, "hangar", directory / "kubeconfig"), directory / "host", "--leader-elect",
                f"--namespace={SYSTEM}", "--features=airways,flights,operators,workflows")
    yield host
    host.stop()


def operator_in(cluster, namespace, *steps, name="one"):
    cluster.create(operators.manifest(name, namespace, *(steps or (f"watch={namespace}",))))


def stalled(cluster, kind, name, namespace):
    one = condition(cluster.get(*kind, name, namespace), "Stalled")
    return one if one.get("status") == "True" else None


def listed(host, namespace, name="one"):
    return any(line.startswith("listed") for line in operators.lines(host, name, namespace))


# What is written ---------------------------------------------------------------------------------


@pytest.mark.parametrize("values, flags", [
    ({"tenants": [INSIDE]}, []),
    ({"tenants": [{"namespace": INSIDE, "serviceAccounts": ["mirror", "copier"]}]}, ["--service-account=mirror", "--service-account=copier"]),
    ({"tenants": [{"namespace": INSIDE, "clusterReach": True}]}, ["--cluster-reach"]),
    ({"tenants": [INSIDE], "features": {"airways": False}}, ["--features=flights,operators,workflows,nodes"]),
    ({"tenants": [INSIDE], "features": {"operators": False}}, ["--features=airways,flights,workflows,nodes"]),
    ({"tenants": [INSIDE], "features": {"workflows": False}}, ["--features=airways,flights,operators,nodes"]),
    ({"tenants": [INSIDE], "features": {"flights": False}}, ["--features=airways,operators,workflows,nodes"]),
    ({"tenants": [INSIDE], "features": {"airways": False, "operators": False, "workflows": False}}, ["--features=flights,nodes"]),
    ({"tenants": [INSIDE], "features": {"flights": False, "operators": False, "workflows": False}}, ["--features=airways,nodes"]),
    ({"tenants": [{"namespace": INSIDE, "serviceAccounts": ["flights"]}], "features": {"flights": False, "operators": False, "workflows": False}},
     ["--features=airways,nodes", "--service-account=flights"]),
], ids=["all", "named", "cluster reach", "no airways", "no operators", "no workflows", "no flights", "flights only", "airways only", "airways with accounts"])
def test_the_command_and_the_chart_give_the_same_rights(values, flags):
    chart = render(values)
    role, binding = yaml.safe_load_all(tenant("allow", INSIDE, "--dry-run=client", "-o", "yaml", *flags))

    rendered = chart[("Role", f"{INSIDE}/hangar-tenant")]
    assert rules_of(role) == rules_of(rendered)
    assert [rule.get("resourceNames") for rule in role["rules"]] == [rule.get("resourceNames") for rule in rendered["rules"]]
    assert binding["subjects"] == chart[("RoleBinding", f"{INSIDE}/hangar-tenant")]["subjects"]
    assert role["metadata"]["labels"]["hangar.dev/tenant"] == rendered["metadata"]["labels"]["hangar.dev/tenant"] == "true"


@pytest.mark.parametrize("arguments, says", [
    ((), "subcommand"), (("allow",), "NAMESPACE"), (("allow", "Team"), "must be a namespace"), (("allow", ""), "must not be empty"),
    (("allow", "team", "--host=hangar"), "--host"), (("allow", "team", "--service-account=A"), "name of a service account"),
    (("allow", SYSTEM, "--dry-run=client"), "the host's own namespace"), (("allow", "team", "--dry-run=perhaps"), "dry-run"),
    (("remove", "team", "--host=:a"), "--host")])
def test_a_wrong_command_line_is_exit_code_2_and_says_why(arguments, says):
    assert says in tenant(*arguments, code=2)


def test_a_dry_run_writes_nothing(installed):
    assert "(server dry run)" in tenant("allow", OUTSIDE, "--dry-run=server", kubeconfig=installed.kubeconfig)
    assert "(dry run)" in tenant("allow", OUTSIDE, "--dry-run=client")

    assert OUTSIDE not in tenant("list", kubeconfig=installed.kubeconfig)


def test_what_is_allowed_is_listed_with_who_gave_it(installed):
    rows = json.loads(tenant("list", "-o", "json", kubeconfig=installed.kubeconfig))["tenants"]

    chart = {row["namespace"]: row for row in rows if row["givenBy"] == "Helm"}
    assert {name: row["reach"] for name, row in chart.items()} == {INSIDE: "namespace", WIDE: "cluster"}
    assert all(row["host"] == f"{SYSTEM}:hangar" for row in chart.values())
    said = tenant("remove", INSIDE, kubeconfig=installed.kubeconfig, code=1)
    assert "Helm" in said and "tenants" in said


def test_who_does_not_have_the_rights_cannot_give_them_and_is_told(installed, tmp_path):
    installed.kubectl("create", "rolebinding", "owner", "--clusterrole=admin", f"--serviceaccount={OUTSIDE}:default", "--namespace", OUTSIDE)
    owner = kubeconfig_of(installed, OUTSIDE, "default", tmp_path / "kubeconfig")

    assert "cluster administrator" in tenant("allow", OUTSIDE, kubeconfig=owner, code=1)
    assert OUTSIDE not in tenant("list", kubeconfig=installed.kubeconfig)


# What they come to -------------------------------------------------------------------------------


def test_in_an_allowed_namespace_all_features_work(installed, chart_host):
    operator_in(installed, INSIDE)
    eventually(lambda: listed(chart_host, INSIDE), "the operator listed", COMPILED)
    workflows.module(installed, INSIDE, "provisioner", workflows.bundle(workflows.PROVISIONER))
    installed.create(workflows.workflow("orders", INSIDE, "provisioner", input={"team": "orders"}))
    workflows.reaches(installed, INSIDE, "orders", "ready", 120)

    for namespace in (INSIDE, OUTSIDE):
        assert not stalled(installed, operators.OPERATOR, "one", namespace) or namespace == OUTSIDE


def test_elsewhere_nothing_runs_and_says_how_it_would(installed, chart_host):
    operator_in(installed, OUTSIDE)
    installed.create(workflows.workflow("orders", OUTSIDE, "provisioner", input={"team": "orders"}))
    for kind, name in ((operators.OPERATOR, "one"), (workflows.WORKFLOW, "orders")):
        one = eventually(lambda kind=kind, name=name: stalled(installed, kind, name, OUTSIDE), f"the {kind[1]} says so", 60)
        assert one["reason"] == "NamespaceNotAllowed" and NOT_ALLOWED.format(OUTSIDE) in one["message"], one
    assert not condition(installed.get(*workflows.WORKFLOW, "orders", OUTSIDE), "Ready").get("status") == "True"

    manifest = airways.airway("aircrafts", "Aircraft", flight("behave"), schema=airways.OPEN_SCHEMA)
    installed.apply(manifest)
    installed.learn("e2e.hangar.dev/v1", "Aircraft", "aircrafts")
    eventually(lambda: is_ready(installed.get("yoke.cd/v1alpha1", "Airway", "aircrafts.e2e.hangar.dev")), "the Airway is ready", COMPILED)
    stdout = json.dumps([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"a": "b"}}])
    for namespace in (INSIDE, OUTSIDE):
        one = instance("Aircraft", "one", {"behaviour": "raw", "stdout": stdout})
        one["metadata"]["namespace"] = namespace
        installed.create(one)
    eventually(lambda: is_ready(installed.get("e2e.hangar.dev/v1", "Aircraft", "one", INSIDE)), "the instance is ready", 60)
    said = eventually(lambda: condition(installed.get("e2e.hangar.dev/v1", "Aircraft", "one", OUTSIDE)).get("message"), "the other one says why", 60)
    assert NOT_ALLOWED.format(OUTSIDE) in said
    assert installed.get("v1", "ConfigMap", "made", OUTSIDE) is None
    assert not operators.lines(chart_host, "one", OUTSIDE)
    assert chart_host.process.poll() is None


def test_a_flight_runs_where_hangar_may_act_and_nowhere_else(installed, chart_host):
    inside, outside = (flights.Flights(installed, namespace) for namespace in (INSIDE, OUTSIDE))
    for one in (inside, outside):
        one.create("web", "basic", does={"data": {"a": "1"}})
    assert inside.ready("web") and inside.data("web") == {"a": "1"}
    outside.says("web", NOT_ALLOWED.format(OUTSIDE), reason="NamespaceNotAllowed")
    assert outside.data("web") is None and not outside.get("web")["metadata"].get("finalizers")
    for one in (inside, outside):
        one.delete("web")
        one.goes("web")
    assert inside.data("web") is None


def test_a_namespace_goes_with_its_flights_although_the_right_to_act_there_has_gone_first(installed, chart_host):
    installed.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brief"}})
    tenant("allow", "brief", kubeconfig=installed.kubeconfig)
    flights.allow(installed, "brief")
    brief = flights.Flights(installed, "brief")
    brief.create("web", "basic", does={"data": {"a": "1"}})
    brief.ready("web")
    tenant("remove", "brief", kubeconfig=installed.kubeconfig)

    brief.delete("web")
    brief.says("web", "cannot remove", reason="Terminating")
    installed.delete("v1", "Namespace", "brief")

    eventually(lambda: installed.get("v1", "Namespace", "brief") is None, "the namespace is gone", 120)


def test_a_namespace_can_be_allowed_and_removed_while_the_host_runs(installed, chart_host):
    operator_in(installed, LATER)
    eventually(lambda: stalled(installed, operators.OPERATOR, "one", LATER), "it is not allowed", 60)

    said = tenant("allow", LATER, "--service-account=default", kubeconfig=installed.kubeconfig)
    assert said.count("serverside-applied") == 2
    eventually(lambda: listed(chart_host, LATER), "the operator listed", 60)
    eventually(lambda: not stalled(installed, operators.OPERATOR, "one", LATER), "it says so", 60)

    assert tenant("remove", LATER, kubeconfig=installed.kubeconfig).count("deleted") == 2
    # The host looks again when it has another reason to.
    eventually(lambda: touch(installed, "one", LATER) and stalled(installed, operators.OPERATOR, "one", LATER), "it is told so", 120)
    assert operators.phase(installed.get(*operators.OPERATOR, "one", LATER)) == "Failed"
    assert "is not allowed" in tenant("remove", LATER, kubeconfig=installed.kubeconfig, code=1)


def touch(cluster, name, namespace):
    """A change of the spec without an effect."""
    limits = cluster.get(*operators.OPERATOR, name, namespace)["spec"].get("limits", {})
    rate = limits.get("requestsPerSecond", 100) + 1
    return cluster.patch(*operators.OPERATOR, name, {"spec": {"limits": {"requestsPerSecond": rate}}}, namespace)


def test_only_named_service_accounts_can_be_acted_as(installed, chart_host):
    tenant("allow", LEFT, "--service-account=mirror", kubeconfig=installed.kubeconfig)
    operator_in(installed, LEFT)

    one = eventually(lambda: stalled(installed, operators.OPERATOR, "one", LEFT), "it is not allowed", 60)
    assert "impersonate:serviceaccount" in one["message"]


def test_service_accounts_reach_beyond_tenants_namespaces_only_where_that_is_allowed(installed, chart_host):
    """Both may read ConfigMaps of the namespace `left` by their own rights; for one of them the host may use those."""
    for namespace in (INSIDE, WIDE):
        installed.kubectl("create", "rolebinding", f"from-{namespace}", "--role=default-configmaps", f"--serviceaccount={namespace}:default",
                          "--namespace", OUTSIDE)
        operator_in(installed, namespace, f"get=/api/v1/namespaces/{OUTSIDE}/configmaps", "get=/api/v1/nodes", "print=done", "wait", name="reach")

    def printed(namespace):
        return eventually(lambda: (lambda seen: seen if "done" in seen else None)(operators.lines(chart_host, "reach", namespace)), "it asked", COMPILED)
    wide, inside = printed(WIDE), printed(INSIDE)
    assert wide[0] == f"GET /api/v1/namespaces/{OUTSIDE}/configmaps: 200"
    assert "403" in wide[1] and f"{WIDE}:default" in wide[1], "a right that the service account does not have"
    assert all("403" in line and "impersonate-on:serviceaccount" in line for line in inside[:2])


def may(cluster, verb, group, resource, namespace, name=""):
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": ACCOUNT, "groups": ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated"],
        "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name}}}
    return cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]


def test_the_hosts_own_rights_end_at_the_tenants_namespaces(installed):
    """The rights of an attacker who has the host's token."""
    reads = [("get", "", "secrets"), ("list", "", "secrets"), ("get", "apps", "controllerrevisions"),
             ("impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts"), ("impersonate-on:serviceaccount:get", "", "secrets")]
    for verb, group, resource in reads:
        assert may(installed, verb, group, resource, INSIDE), f"{verb} {resource} is needed"
        for namespace in (OUTSIDE, SYSTEM, "kube-system", ""):
            # Its own copies of flights.
            is_own = namespace == SYSTEM and resource == "controllerrevisions"
            assert may(installed, verb, group, resource, namespace) is is_own, f"{verb} {resource} in {namespace!r}"
    for namespace in (INSIDE, WIDE, OUTSIDE, SYSTEM, "kube-system", ""):
        for verb in ("create", "update", "patch", "delete", "bind", "escalate"):
            for resource in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"):
                assert not may(installed, verb, "rbac.authorization.k8s.io", resource, namespace), f"{verb} {resource} in {namespace!r}"
        for resource in ("users", "groups"):
            assert not may(installed, "impersonate", "", resource, namespace, "system:masters")
            assert not may(installed, "impersonate:user-info", "authentication.k8s.io", resource, namespace, "system:masters")
        assert may(installed, "impersonate", "", "serviceaccounts", namespace) is (namespace == WIDE)


def test_a_tenants_service_account_cannot_be_used_elsewhere_with_the_hosts_token(installed):
    token = installed.kubectl("create", "token", "hangar", "--namespace", SYSTEM).strip()

    def ask(user, path):
        curl = ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "-H", f"Authorization: Bearer {token}", "-H", f"Impersonate-User: {user}"]
        url = f"https://{installed._address.hostname}:{installed._address.port}{path}"
        return subprocess.run([*curl, url], capture_output=True, text=True, check=True, timeout=30).stdout
    tenants = f"system:serviceaccount:{INSIDE}:default"
    assert ask(tenants, f"/api/v1/namespaces/{INSIDE}/configmaps") == "200"
    assert ask(tenants, f"/api/v1/namespaces/{OUTSIDE}/configmaps") == "403"
    assert ask(f"system:serviceaccount:{OUTSIDE}:default", f"/api/v1/namespaces/{OUTSIDE}/configmaps") == "403"
    assert ask(ACCOUNT, "/api/v1/namespaces") == "403"
    assert ask("admin", "/api/v1/namespaces") == "403"
