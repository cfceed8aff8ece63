"""A host on a board with an ARM processor: an Airway, an operator that sleeps and wakes, a workflow, and the walls of guests.

Everything takes twenty times as long as on a real one: waits are for progress.
"""
import json
import urllib.request

import pytest

import airways
import operators
import workflows
from airways import flight, instance
from cluster import condition, eventually, is_ready

NAMESPACE, SLOW = "board", 900


@pytest.fixture(scope="module", autouse=True)
def ready(cluster, board):
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    operators.allow(cluster, NAMESPACE, *operators.EVERYTHING)
    workflows.allow(cluster, NAMESPACE)

    def answers():
        assert board.process.poll() is None, board.text()[-5000:]
        try:
            with urllib.request.urlopen(f"{board.url}/readyz", timeout=20) as answer:
                return answer.status == 200
        except OSError:
            return False
    eventually(answers, "the host on the board is ready", SLOW)


def metrics(board):
    with urllib.request.urlopen(f"{board.url}/metrics", timeout=60) as answer:
        return answer.read().decode()


def test_guests_have_the_walls_that_debians_kernel_offers(board):
    walls = dict(line.rsplit(" ", 1) for line in metrics(board).splitlines() if line.startswith(("hangar_guest_landlock", "hangar_guest_system_call_filter")))
    # Linux 6.1 has the second version of Landlock.
    assert sorted(walls.values()) == ["1", "2"], walls


def test_an_airway_makes_what_its_flight_prints(cluster, board):
    cluster.create(airways.airway("greetings", "Greeting", flight("greeting_rust")))
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", "greetings.e2e.hangar.dev")), "the Airway is Ready", SLOW)
    cluster.learn("e2e.hangar.dev/v1", "Greeting", "greetings")
    cluster.create(instance("Greeting", "hello", {"text": "from a board"}, NAMESPACE))

    made = eventually(lambda: cluster.get("v1", "ConfigMap", "hello", NAMESPACE), "the flight's ConfigMap", SLOW)
    assert "from a board" in json.dumps(made["data"])


def test_an_operator_sleeps_and_wakes_with_what_it_remembers(cluster, board):
    cluster.create(operators.manifest("watcher", NAMESPACE, f"watch={NAMESPACE}", sleep={"after": "2s"}))
    get = lambda: cluster.get(*operators.OPERATOR, "watcher", NAMESPACE)  # noqa: E731
    eventually(lambda: operators.phase(get()) == "Asleep", f"it sleeps: {get()}", SLOW)
    before = get()["status"]
    operators.create_config_map(cluster, "wakes", NAMESPACE, a="b")

    eventually(lambda: get()["status"].get("wakes", 0) > before.get("wakes", 0), f"it wakes: {get()['status']}", SLOW)
    eventually(lambda: operators.phase(get()) == "Asleep", "it sleeps again", SLOW)
    assert get()["status"].get("restarts", 0) == 0


def test_a_workflow_in_javascript_takes_signals(cluster, board):
    workflows.module(cluster, NAMESPACE, "patient", workflows.bundle("patient"))
    cluster.create(workflows.workflow("patient", NAMESPACE, "patient"))
    workflows.reaches(cluster, NAMESPACE, "patient", "left", SLOW)

    for identity, value in enumerate(("right", "left")):
        workflows.signal(cluster, NAMESPACE, "patient", f"s{identity}", "TURN")
        workflows.reaches(cluster, NAMESPACE, "patient", value, SLOW)
    assert condition(cluster.get(*workflows.WORKFLOW, "patient", NAMESPACE), "Stalled").get("status") != "True"
