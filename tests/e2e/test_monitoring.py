"""The chart's dashboards and alerts: their queries match a host's metrics, in a real Prometheus."""
import re

import pytest
import yaml

import airways
import operators
import workflows
from airways import flight, instance
from charts import CHART, dashboards, render
from cluster import eventually, is_ready
from conftest import COMPILED, control_plane
from host import Host, free_port, to_its_end
from prometheus import Prometheus, promtool
from webhooks import remove_configurations, wait_registered, webhook_flags

NAMESPACE, TEAM = "monitored", "team"
GROUP = "monitored.hangar.dev"
RULES = yaml.safe_load((CHART / "alerts.yaml").read_text())
# Grafana's replacements for its variables.
VARIABLES = {"$__rate_interval": "1m", "$job": ".*"}


def panels():
    return [(f"{name}: {panel['title']}", panel) for name, one in dashboards().items() for panel in one["panels"]]


def expressions():
    """(where, expression) of all panels and alerts."""
    found = [(where, target["expr"]) for where, panel in panels() for target in panel["targets"]]
    for variable, value in VARIABLES.items():
        found = [(where, expression.replace(variable, value)) for where, expression in found]
    return found + [(rule["alert"], rule["expr"]) for group in RULES["groups"] for rule in group["rules"]]


def selectors(expression):
    """The series that it names, with their matchers; including those of a histogram's buckets."""
    return re.findall(r"\b(?:hangar|controller_runtime|workqueue|rest_client|process|leader_election)_[a-z_]+(?:\{[^}]*\})?", expression)


# What is rendered --------------------------------------------------------------------------------


def test_there_is_nothing_of_them_unless_they_are_asked_for():
    kinds = {kind for kind, _ in render()}
    assert "PrometheusRule" not in kinds and not any("dashboard" in name for _, name in render())


def test_panels_stand_beside_each_other_and_say_what_they_show():
    assert set(dashboards()) == {f"hangar-{name}.json" for name in ("host", "operators", "airways", "workflows", "nodes")}
    assert len({one["uid"] for one in dashboards().values()}) == 5
    for name, one in dashboards().items():
        taken = [(panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y) for panel in one["panels"]
                 for x in range(panel["gridPos"]["w"]) for y in range(panel["gridPos"]["h"])]
        assert len(taken) == len(set(taken)), f"panels of {name} overlap"
        assert max(x for x, _ in taken) < 24
    for where, panel in panels():
        assert panel["title"] and panel["targets"] and panel["fieldConfig"]["defaults"]["unit"], where
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]), where


def test_every_series_of_a_dashboard_can_be_narrowed_to_a_job():
    for where, panel in panels():
        for target in panel["targets"]:
            for selector in selectors(target["expr"]):
                assert 'job=~"$job"' in selector, f"{where}: {selector}"


def test_the_rules_are_those_of_the_release(tmp_path):
    manifests = render({"alerts": {"enabled": True, "labels": {"release": "monitoring"}}})
    (rule,) = [one for (kind, _), one in manifests.items() if kind == "PrometheusRule"]
    assert rule["spec"] == RULES and rule["metadata"]["labels"]["release"] == "monitoring"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]))
    code, said = promtool("check", "rules", tmp_path / "rules.yaml")
    assert code == 0 and f"{len(RULES['groups'][0]['rules'])} rules found" in said, said
    for one in RULES["groups"][0]["rules"]:
        assert one["labels"]["severity"] in ("critical", "warning") and set(one["annotations"]) == {"summary", "description"}, one["alert"]


def histogram(name, labels, seconds):
    """One observation a second, each of half of `seconds` at least and `seconds` at most."""
    return {f'{name}_bucket{{{labels}, le="{bound}"}}': values
            for bound, values in ((seconds / 2, "0x60"), (seconds, "0+60x60"), ("+Inf", "0+60x60"))}


def failing(errors, successes):
    """A controller's reconciles each minute."""
    return {'controller_runtime_reconcile_errors_total{job="h", controller="airway"}': f"0+{errors}x60",
            'controller_runtime_reconcile_total{job="h", controller="airway", result="error"}': f"0+{errors}x60",
            'controller_runtime_reconcile_total{job="h", controller="airway", result="success"}': f"0+{successes}x60",
            'hangar_operators{job="h", instance="a"}': "1x60"}


def ended(failed, done):
    """A workflow's actions each minute."""
    return {'hangar_workflow_actions_total{job="h", action="RUN_JOB", outcome="failed"}': f"0+{failed}x60",
            'hangar_workflow_actions_total{job="h", action="RUN_JOB", outcome="done"}': f"0+{done}x60"}


def reserved(x, y):
    """Guest memory of two namespaces, in percent."""
    return {'hangar_guest_memory_reserved_bytes{job="h", instance="a", namespace="x"}': f"{x}x60",
            'hangar_guest_memory_reserved_bytes{job="h", instance="a", namespace="y"}': f"{y}x60",
            'hangar_guest_memory_limit_bytes{job="h", instance="a"}': "100x60"}


def descriptors(count):
    return {'process_open_fds{job="h", instance="a"}': f"{count}x60", 'process_max_fds{job="h", instance="a"}': "100x60",
            'hangar_operators{job="h", instance="a"}': "1x60"}


# Of other programs, which nothing here is about.
OTHERS = {
    'controller_runtime_reconcile_errors_total{job="other", controller="deployment"}': "0+6x60",
    'controller_runtime_reconcile_total{job="other", controller="deployment", result="error"}': "0+6x60",
    'workqueue_longest_running_processor_seconds{job="other", instance="b", name="job"}': "400x60",
    'process_open_fds{job="other", instance="b"}': "90x60", 'process_max_fds{job="other", instance="b"}': "100x60",
    'leader_election_master_status{job="other", name="kube-scheduler", instance="b"}': "0x60"}
LEADS = {'leader_election_master_status{job="h", name="hangar", instance="a"}': "1x60"}

# (alert, the series of its situation, the labels that it fires with, series that are near to it and none)
ALERTS = [
    ("HangarDoesNotLead", {'leader_election_master_status{job="h", name="hangar", instance="a"}': "0x60",
                           'leader_election_master_status{job="h", name="hangar", instance="b"}': "0x60"}, {},
     # One of two leads; the other has led until a minute before.
     {'leader_election_master_status{job="h", name="hangar", instance="a"}': "1x49 0x10",
      'leader_election_master_status{job="h", name="hangar", instance="b"}': "0x49 1x10"}),
    # None is scraped: the name is all that the alert knows.
    ("HangarDoesNotLead", {}, {"name": "hangar"}, LEADS),
    ("HangarMainLoopSlow", histogram("hangar_loop_turn_seconds", 'job="h", instance="a"', 1), {"job": "h", "instance": "a"},
     histogram("hangar_loop_turn_seconds", 'job="h", instance="a"', 0.05)),
    ("HangarUnexpectedExceptions", {'hangar_loop_exceptions_total{job="h", instance="a"}': "0x30 1x30"}, {"job": "h", "instance": "a"},
     # Those before it was scraped first.
     {'hangar_loop_exceptions_total{job="h", instance="a"}': "3x60"}),
    ("HangarGuestMemoryShort", reserved(60, 36), {"job": "h", "instance": "a"}, reserved(60, 34)),
    ("HangarOperatorFails", {'controller_runtime_reconcile_errors_total{job="h", controller="team/one"}': "0+1x60"},
     {"job": "h", "controller": "team/one"},
     # Once in ten minutes.
     {'controller_runtime_reconcile_errors_total{job="h", controller="team/one"}': "0x9 1x9 2x9 3x9 4x9 5x9"}),
    ("HangarReconcilesFail", failing(6, 2), {"job": "h", "controller": "airway"}, failing(6, 18)),
    ("HangarReconcileStuck", {'workqueue_longest_running_processor_seconds{job="h", instance="a", name="airway"}': "400x60",
                              'hangar_operators{job="h", instance="a"}': "1x60"}, {"job": "h", "instance": "a", "name": "airway"},
     {'workqueue_longest_running_processor_seconds{job="h", instance="a", name="airway"}': "290x60",
      'hangar_operators{job="h", instance="a"}': "1x60"}),
    ("HangarOperatorsStayInMemory", {'hangar_operator_suspend_failures_total{job="h", instance="a"}': "0+1x60"}, {"job": "h", "instance": "a"},
     # A single failure half an hour before.
     {'hangar_operator_suspend_failures_total{job="h", instance="a"}': "0x19 1x40"}),
    ("HangarWorkflowActionsFail", ended(3, 1), {"job": "h", "action": "RUN_JOB"}, ended(1, 3)),
    ("HangarNodesFailed", {'hangar_nodes{job="h", instance="a", phase="Failed"}': "2x60"}, {"job": "h"},
     {'hangar_nodes{job="h", instance="a", phase="Failed"}': "0x60", 'hangar_nodes{job="h", instance="a", phase="Done"}': "2x60"}),
    ("HangarReviewsSlow", histogram("hangar_admission_review_seconds", 'job="h", instance="a"', 10), {"job": "h"},
     histogram("hangar_admission_review_seconds", 'job="h", instance="a"', 2.5)),
    ("HangarRecordsLost", {'hangar_recorder_stopped{job="h", instance="a"}': "1x60"}, {"job": "h", "instance": "a"},
     # It goes on for three minutes only.
     {'hangar_recorder_stopped{job="h", instance="a"}': "0x47 1x3 0x10"}),
    ("HangarFileDescriptorsShort", descriptors(90), {"job": "h", "instance": "a"}, descriptors(70)),
]


def fired(directory, series, alert, expected):
    """promtool's verdict: these alerts of that name fire, 50 minutes after the beginning of the series, and no others."""
    # Without their texts, which promtool would compare, too.
    bare = {"groups": [{**group, "rules": [{key: value for key, value in rule.items() if key != "annotations"} for rule in group["rules"]]}
                       for group in RULES["groups"]]}
    (directory / "rules.yaml").write_text(yaml.safe_dump(bare))
    names = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]
    unit = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [
        {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
         "alert_rule_test": [{"eval_time": "50m", "alertname": name, "exp_alerts": expected if name == alert else []} for name in names]}]}
    (directory / "test.yaml").write_text(yaml.safe_dump(unit))
    return promtool("test", "rules", directory / "test.yaml")


@pytest.mark.parametrize("alert, series, labels, near", ALERTS, ids=[f"{alert}-{len(series)}" for alert, series, _, _ in ALERTS])
def test_an_alert_fires_for_what_it_is_about_and_nothing_else(tmp_path, alert, series, labels, near):
    (rule,) = [one for group in RULES["groups"] for one in group["rules"] if one["alert"] == alert]
    whole = {**OTHERS, **({} if alert == "HangarDoesNotLead" else LEADS)}
    code, said = fired(tmp_path, {**whole, **series}, alert, [{"exp_labels": {**rule["labels"], **labels}}])
    assert code == 0, said
    code, said = fired(tmp_path, {**whole, **near}, alert, [])
    assert code == 0, said


def test_each_alert_has_its_series():
    assert {alert for alert, *_ in ALERTS} == {rule["alert"] for group in RULES["groups"] for rule in group["rules"]}


# What a host says --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    made = control_plane("--with-kcm", "--with-kwok=1")
    yield made
    made.close()


@pytest.fixture(scope="module")
def host(cluster, tmp_path_factory):
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    flags = [flag for flag in webhook_flags(free_port(), NAMESPACE) if not flag.startswith("--features")]
    made = Host(cluster.kubeconfig, tmp_path_factory.mktemp("host"), *flags, "--features=airways,operators,workflows,nodes", "--leader-elect",
                "--installer-image=registry.example.com/hangar-node:v1", "--node-ready-delay=0s")
    wait_registered(cluster, NAMESPACE)
    yield from to_its_end(made)
    remove_configurations(cluster, NAMESPACE)


@pytest.fixture(scope="module")
def load(cluster, host):
    """One of each: an operator that is woken and sleeps, one that stays in memory, an instance that was reviewed, a workflow
    with an action, a node."""
    operators.allow(cluster, TEAM, *operators.EVERYTHING)
    cluster.create(operators.manifest("watcher", TEAM, f"watch={TEAM}", sleep={"after": "0s"}))
    cluster.create(operators.manifest("stays", TEAM, f"watch={TEAM}", sleep={"policy": "Never"}))
    workflows.allow(cluster, TEAM)
    workflows.module(cluster, TEAM, "responder", workflows.bundle("responder"))
    cluster.create(workflows.workflow("answers", TEAM, "responder", input={"answer": "answer"}))
    cluster.apply(airways.airway("watchedones", "Watchedone", flight("behave"), group=GROUP))
    cluster.learn(f"{GROUP}/v1", "Watchedone", "watchedones")
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", f"watchedones.{GROUP}")), "the Airway is ready", COMPILED)
    wait_registered(cluster, NAMESPACE, f"watchedones.{GROUP}")
    cluster.create(instance("Watchedone", "it", {"behaviour": "basic"}, TEAM, group=GROUP))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", "Watchedone", "it", TEAM)), "the instance is ready", 60)
    node = cluster.list("v1", "Node")[0]["metadata"]["name"]
    cluster.patch("v1", "Node", node, {"metadata": {"annotations": {"kwasm.sh/kwasm-node": "true"}}}, None)
    eventually(lambda: operators.phase(cluster.get(*operators.OPERATOR, "watcher", TEAM)) == "Asleep", "the operator sleeps", COMPILED)
    operators.create_config_map(cluster, "one", TEAM)
    eventually(lambda: workflows.status(cluster, TEAM, "answers").get("state"), "the workflow has begun", COMPILED)
    workflows.signal(cluster, TEAM, "answers", "first", {"type": "ASK", "number": 1})
    eventually(lambda: cluster.get("v1", "ConfigMap", "answer", TEAM), "the workflow has answered", 60)


@pytest.fixture(scope="module")
def prometheus(host, load, tmp_path_factory):
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), host, RULES)
    yield made
    made.close()


def wanted(found):
    """(where, selector) of all series in such expressions."""
    return {(where, selector) for where, expression in found for selector in selectors(expression)}


def missing(prometheus, found):
    """The series in such expressions that Prometheus does not have."""
    return sorted(f"{where}: {selector}" for where, selector in wanted(found) if not prometheus.query(f"count({selector})"))


def test_each_series_that_is_named_is_there(prometheus):
    assert len(wanted(expressions())) > 60

    left = []

    def are_there():
        left[:] = missing(prometheus, expressions())
        return not left
    try:
        eventually(are_there, "all are there", 120)
    except AssertionError:
        raise AssertionError(f"there is nothing of {left}") from None

    invented = 'sum(rate(hangar_no_such_total{job=~".*"}[1m])) / sum(hangar_operators{job=~".*"})'
    assert missing(prometheus, [*expressions(), ("a panel", invented)]) == ['a panel: hangar_no_such_total{job=~".*"}']


def test_each_expression_is_understood(prometheus):
    for where, expression in expressions():
        prometheus.query(expression)
        assert where


def test_a_host_that_is_well_alerts_nobody(prometheus):
    rules = eventually(lambda: (lambda all_of_them: all_of_them if all(one["lastEvaluation"][:4] != "0001" for one in all_of_them) else None)(prometheus.rules()),
                       "the rules were looked at", 60)
    assert {one["name"] for one in rules} == {one["alert"] for one in RULES["groups"][0]["rules"]}
    assert all(one["health"] == "ok" for one in rules), rules
    assert [one["name"] for one in rules if one["state"] == "firing"] == []
