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


# (alert, the series that trigger it, the labels that it fires with)
FIRING = [
    ("HangarDoesNotLead", {'leader_election_master_status{job="h", name="hangar", instance="a"}': "0x60"}, {}),
    ("HangarMainLoopSlow", {'hangar_loop_turn_seconds_bucket{job="h", instance="a", le="0.5"}': "0x60",
                            'hangar_loop_turn_seconds_bucket{job="h", instance="a", le="1"}': "0+60x60",
                            'hangar_loop_turn_seconds_bucket{job="h", instance="a", le="+Inf"}': "0+60x60"}, {"job": "h", "instance": "a"}),
    ("HangarGuestMemoryShort", {'hangar_guest_memory_reserved_bytes{job="h", instance="a", namespace="x"}': "60x60",
                                'hangar_guest_memory_reserved_bytes{job="h", instance="a", namespace="y"}': "36x60",
                                'hangar_guest_memory_limit_bytes{job="h", instance="a"}': "100x60"}, {"job": "h", "instance": "a"}),
    ("HangarOperatorFails", {'controller_runtime_reconcile_errors_total{job="h", controller="team/one"}': "0+1x60",
                             'controller_runtime_reconcile_errors_total{job="other", controller="deployment"}': "0+1x60"},
     {"job": "h", "controller": "team/one"}),
    ("HangarReconcilesFail", {'controller_runtime_reconcile_errors_total{job="h", controller="airway"}': "0+6x60",
                              'controller_runtime_reconcile_total{job="h", controller="airway", result="error"}': "0+6x60",
                              'controller_runtime_reconcile_total{job="h", controller="airway", result="success"}': "0+2x60",
                              'hangar_operators{job="h", instance="a"}': "1x60",
                              'controller_runtime_reconcile_errors_total{job="other", controller="deployment"}': "0+6x60",
                              'controller_runtime_reconcile_total{job="other", controller="deployment", result="error"}': "0+6x60"},
     {"job": "h", "controller": "airway"}),
    ("HangarReconcileStuck", {'workqueue_longest_running_processor_seconds{job="h", instance="a", name="airway"}': "400x60",
                              'workqueue_longest_running_processor_seconds{job="other", instance="b", name="job"}': "400x60",
                              'hangar_operators{job="h", instance="a"}': "1x60"}, {"job": "h", "instance": "a", "name": "airway"}),
    ("HangarWorkflowActionsFail", {'hangar_workflow_actions_total{job="h", action="RUN_JOB", outcome="failed"}': "0+3x60",
                                   'hangar_workflow_actions_total{job="h", action="RUN_JOB", outcome="done"}': "0+1x60"},
     {"job": "h", "action": "RUN_JOB"}),
    ("HangarFileDescriptorsShort", {'process_open_fds{job="h", instance="a"}': "90x60", 'process_max_fds{job="h", instance="a"}': "100x60",
                                    'process_open_fds{job="other", instance="b"}': "90x60", 'process_max_fds{job="other", instance="b"}': "100x60",
                                    'hangar_operators{job="h", instance="a"}': "1x60"}, {"job": "h", "instance": "a"}),
]


@pytest.mark.parametrize("alert, series, labels", FIRING, ids=[alert for alert, _, _ in FIRING])
def test_an_alert_fires_for_what_it_is_about_and_nothing_else(tmp_path, alert, series, labels):
    # Without their texts, which promtool would compare, too.
    bare = {"groups": [{**group, "rules": [{key: value for key, value in rule.items() if key != "annotations"} for rule in group["rules"]]}
                       for group in RULES["groups"]]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(bare))
    (rule,) = [one for group in RULES["groups"] for one in group["rules"] if one["alert"] == alert]
    unit = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [
        {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
         "alert_rule_test": [{"eval_time": "50m", "alertname": alert, "exp_alerts": [{"exp_labels": {**rule["labels"], **labels}}]}]}]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(unit))
    code, said = promtool("test", "rules", tmp_path / "test.yaml")
    assert code == 0, said


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
    """(where, selector) of all series in such expressions, without those that may exist only after an error."""
    pairs = {(where, selector) for where, expression in found for selector in selectors(expression)}
    return {(where, selector) for where, selector in pairs if 'outcome="failed"' not in selector}


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
