"""The ten programs of the soak, and how each is asked and answers.

A question is a number. Each program gets it by a change of an object that it watches, and its answer is an object with the
same number. So an operator that has lost a change is one whose answer stays behind.

    long-running operators   ring (Rust), label_mirror (C++), answers (Rust), assembly (WebAssembly text), website (Go)
    flights of Airways       greeting_cpp (C++), greeting_rust (Rust), backend (Go)
    machines of workflows    responder (JavaScript), approval (C++)

All but `answers`, `assembly` and the two machines' questions are examples of this tree or of its SDKs.
"""
import dataclasses
import pathlib
import subprocess
import typing

import operators
import workflows
from airways import flight
from cluster import KINDS

HERE = pathlib.Path(__file__).resolve().parent
GROUP = "soak.hangar.dev"
CONFIG_MAP = ("v1", "ConfigMap")
DEPLOYMENT = ("apps/v1", "Deployment")
WEBSITE = ("examples.hangar.dev/v1", "Website")
KINDS[operators.TEST_RESOURCES] = ("/apis/amurant.io/v1", "testresources", True)
KINDS[WEBSITE] = ("/apis/examples.hangar.dev/v1", "websites", True)
# The service account of workflows. Rights that are withdrawn are those of `default`, the operators' account: a machine
# whose action is refused decides what to do about it, and these two would retry at once.
WORKFLOWS_ACCOUNT = "workflows"


def image_of(deployment):
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2]


# How an answer is read, by its kind.
READ = {CONFIG_MAP: lambda one: one.get("data", {}).get("number") or one.get("data", {}).get("text"),
        DEPLOYMENT: image_of,
        operators.TEST_RESOURCES: lambda one: str(one["spec"].get("nonce", ""))}


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    # The kind of an object that is one operator of it.
    kind: tuple
    # The module's file, or the function that makes one.
    module: typing.Callable
    # (unit) -> the manifest that defines it.
    define: typing.Callable
    # (cluster, unit, number): changes the object that it watches.
    ask: typing.Callable
    # (unit) -> (kind, namespace, name) of the answer.
    answer: typing.Callable
    # (unit) -> manifests that have to exist before.
    needs: typing.Callable = lambda unit: []
    # Recreates the object that it runs for with each question: nothing else runs it a second time.
    is_asked_once: bool = False


@dataclasses.dataclass
class Unit:
    """One operator: a program that runs for one team."""
    program: Program
    namespace: str
    name: str
    # Where a ring continues.
    partner: str = ""
    number: int = 0
    asked_at: float = 0.0
    # A worker is changing its definition, or has asked and has no answer yet.
    is_busy: bool = False

    def key(self):
        return f"{self.namespace}/{self.name}"


def config_map(unit, name, labels=None, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": unit.namespace, "labels": labels or {}}, "data": data}


def operator(unit, **spec):
    return {"apiVersion": operators.OPERATOR[0], "kind": operators.OPERATOR[1], "metadata": {"name": unit.name, "namespace": unit.namespace},
            "spec": {"module": {"url": None}, **spec}}


def ask_config_map(suffix):
    def ask(cluster, unit, number):
        cluster.patch(*CONFIG_MAP, unit.name + suffix, {"data": {"number": str(number)}}, unit.namespace)
    return ask


def answered_by_config_map(unit):
    return (CONFIG_MAP, unit.namespace, f"{unit.name}-answer")


# Long-running operators ----------------------------------------------------------------------------------


def nonce_of(unit, namespace=None):
    # One object for each ring, so that two adjacent ones do not answer for each other.
    return {"apiVersion": operators.TEST_RESOURCES[0], "kind": operators.TEST_RESOURCES[1],
            "metadata": {"name": f"from-{unit.namespace}", "namespace": namespace or unit.namespace}, "spec": {"nonce": 0}}


RING = Program(
    "ring", operators.OPERATOR, lambda: flight("ring"),
    define=lambda unit: operator(unit, env=[{"name": "IN_NAMESPACE", "value": unit.namespace}, {"name": "OUT_NAMESPACE", "value": unit.partner}]),
    needs=lambda unit: [nonce_of(unit)],
    ask=lambda cluster, unit, number: operators.send_nonce(cluster, unit.namespace, number, f"from-{unit.namespace}"),
    answer=lambda unit: (operators.TEST_RESOURCES, unit.partner, f"from-{unit.namespace}"))

MIRROR = Program(
    "label_mirror", operators.OPERATOR, lambda: flight("label_mirror"),
    define=lambda unit: operator(unit, env=[{"name": "NAMESPACE", "value": unit.namespace}]),
    needs=lambda unit: [config_map(unit, f"{unit.name}-question", {"mirror-to": f"{unit.name}-answer"}, number="0")],
    ask=ask_config_map("-question"), answer=answered_by_config_map)

ANSWERS = Program(
    "answers", operators.OPERATOR, lambda: flight(operators.BEHAVE),
    define=lambda unit: operator(unit, args=[f"answer={unit.namespace},{unit.name}-question,{unit.name}-answer"]),
    needs=lambda unit: [config_map(unit, f"{unit.name}-question", number="0")],
    ask=ask_config_map("-question"), answer=answered_by_config_map)


def assembled():
    out = HERE.parent.parent / "build/soak/answers.wasm"
    out.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["wat2wasm", HERE / "answers.wat", "-o", out], check=True)
    return str(out)


def assembly_arguments(unit):
    maps = f"/api/v1/namespaces/{unit.namespace}/configmaps"
    return [f"{maps}?watch=true&labelSelector=soak-question%3D{unit.name}", f"{maps}/{unit.name}-answer?fieldManager=soak&force=true",
            f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{unit.name}-answer"}},"data":{{"number":"', '"}}']


ASSEMBLY = Program(
    "assembly", operators.OPERATOR, assembled,
    define=lambda unit: operator(unit, args=assembly_arguments(unit), limits={"memory": "8Mi"}),
    needs=lambda unit: [config_map(unit, f"{unit.name}-question", {"soak-question": unit.name}, number="0")],
    ask=ask_config_map("-question"), answer=answered_by_config_map)

WEBSITES = Program(
    "website", operators.OPERATOR, lambda: flight("website"),
    define=lambda unit: operator(unit, env=[{"name": "NAMESPACE", "value": unit.namespace}], limits={"memory": "256Mi"}),
    needs=lambda unit: [{"apiVersion": WEBSITE[0], "kind": WEBSITE[1], "metadata": {"name": f"{unit.name}-site", "namespace": unit.namespace},
                         "spec": {"image": "example.com/server:0", "replicas": 1}}],
    ask=lambda cluster, unit, number: cluster.patch(*WEBSITE, f"{unit.name}-site", {"spec": {"image": f"example.com/server:{number}"}}, unit.namespace),
    answer=lambda unit: (DEPLOYMENT, unit.namespace, f"{unit.name}-site"))


# Flights of Airways ---------------------------------------------------------------------------------------


def flown(name, kind, spec_of, answer_kind):
    """A flight that creates for each instance `unit` one object of the same name."""
    instances = (f"{GROUP}/v1", kind)
    KINDS[instances] = (f"/apis/{GROUP}/v1", f"{kind.lower()}s", True)
    return Program(
        name, instances, lambda: flight(name),
        define=lambda unit: {"apiVersion": instances[0], "kind": kind, "metadata": {"name": unit.name, "namespace": unit.namespace},
                             "spec": spec_of(unit.number)},
        ask=lambda cluster, unit, number: cluster.patch(*instances, unit.name, {"spec": spec_of(number)}, unit.namespace),
        answer=lambda unit: (answer_kind, unit.namespace, unit.name))


GREETING_CPP = flown("greeting_cpp", "Hello", lambda number: {"text": str(number)}, CONFIG_MAP)
GREETING_RUST = flown("greeting_rust", "Welcome", lambda number: {"text": str(number)}, CONFIG_MAP)
BACKEND = flown("backend", "Backend", lambda number: {"image": f"example.com/backend:{number}", "replicas": 1}, DEPLOYMENT)


# Machines of workflows -------------------------------------------------------------------------------------


RESPONDER = Program(
    "responder", workflows.WORKFLOW, lambda: str(workflows.built("responder.js")),
    define=lambda unit: workflows.workflow(unit.name, unit.namespace, "responder", serviceAccountName=WORKFLOWS_ACCOUNT,
                                           input={"answer": f"{unit.name}-answer"}),
    ask=lambda cluster, unit, number: workflows.signal(cluster, unit.namespace, unit.name, f"ask-{number}", {"type": "ASK", "number": number}),
    answer=answered_by_config_map)


def ask_for_approval(cluster, unit, number):
    """A machine that ends: each question is a workflow of its own, approved when it is created."""
    cluster.delete(*workflows.WORKFLOW, f"{unit.name}-{unit.number}", unit.namespace)
    made = workflows.workflow(f"{unit.name}-{number}", unit.namespace, "approval", serviceAccountName=WORKFLOWS_ACCOUNT,
                              input={"name": f"{unit.name}-{number}-answer", "text": str(number)})
    made["metadata"]["annotations"] = {"signal.workflows.example.com/approve": '{"type": "APPROVE", "by": "the soak"}'}
    cluster.apply(made)


APPROVAL = Program(
    "approval", workflows.WORKFLOW, lambda: str(workflows.built("approval.wasm")), define=lambda unit: None, ask=ask_for_approval,
    answer=lambda unit: (CONFIG_MAP, unit.namespace, f"{unit.name}-{unit.number}-answer"), is_asked_once=True)

OPERATORS = (RING, MIRROR, ANSWERS, ASSEMBLY, WEBSITES)
FLIGHTS = (GREETING_CPP, GREETING_RUST, BACKEND)
MACHINES = (RESPONDER, APPROVAL)
ALL = OPERATORS + FLIGHTS + MACHINES
