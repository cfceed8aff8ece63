"""A cluster of teams: each has a namespace, rights, and operators of its own; and one board with all answers."""
import concurrent.futures
import contextlib
import gzip
import hashlib
import http.client
import itertools
import json
import pathlib
import subprocess
import threading
import time

import operators
import programs
import workflows
from airways import OPEN_SCHEMA
from cluster import ROOT, ApiError, eventually, is_ready
from hostile import salted
from programs import ANSWERS, APPROVAL, ASSEMBLY, FLIGHTS, MIRROR, RESPONDER, RING, WEBSITES, WORKFLOWS_ACCOUNT, Unit
from registry import Registry
from stage import config_map

# The TenantPolicy that the platform team gives to teams.
# Compiling an operator of 65 MiB takes more than the chart's limit.
VALUES = {"resources": {"limits": {"memory": "3Gi"}}, "rbac": {
    "airwayGroups": [programs.GROUP],
    "flightResources": [{"apiGroups": [""], "resources": ["configmaps", "services"]}, {"apiGroups": ["apps"], "resources": ["deployments"]}],
    "operatorResources": [{"apiGroups": [""], "resources": ["configmaps"]}, {"apiGroups": ["apps"], "resources": ["deployments"]},
                          {"apiGroups": ["amurant.io"], "resources": ["testresources"]},
                          {"apiGroups": ["examples.hangar.dev"], "resources": ["websites"]}],
    "workflowResources": [{"apiGroups": [""], "resources": ["configmaps"]}]}}
RULES = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}, {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
         {"apiGroups": ["amurant.io", "examples.hangar.dev"], "resources": ["*"], "verbs": ["*"]}]
OPERATORS_A_TEAM = 5
# One team in this many has instances and workflows, and one in this many an operator of controller-runtime.
WITH_OTHERS, WITH_WEBSITE = 4, 10
# Requests of ours under way.
HANDS = 8
# Seconds for which a request of ours is retried.
INSISTS = 120


class Gate:
    """Open while the API server is up. All actions of people and pipelines wait for it."""

    def __init__(self):
        self._open = threading.Event()
        self._open.set()

    def close(self):
        self._open.clear()

    def open(self):
        self._open.set()

    def insist(self, act, *arguments, **options):
        """The function's result; retried while the API server was just going or coming."""
        deadline = time.monotonic() + INSISTS
        while True:
            self._open.wait()
            try:
                return act(*arguments, **options)
            except (ApiError, OSError, http.client.HTTPException, subprocess.SubprocessError) as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"not within {INSISTS} s: {error}") from error
                time.sleep(0.2)


class Board(threading.Thread):
    """The newest answers of one kind in all namespaces, by a watch of its own."""

    def __init__(self, cluster, kind, gate):
        super().__init__(daemon=True)
        self._cluster, self._kind, self._gate, self._read = cluster, kind, gate, programs.READ[kind]
        self.answers = {}
        self.start()

    def run(self):
        path = self._cluster.path(*self._kind)
        while True:
            listed = self._gate.insist(self._cluster.request, "GET", path)
            self.answers = {self._key(one): self._read(one) for one in listed["items"]}
            with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
                for event in self._cluster.watch(path, listed["metadata"]["resourceVersion"]):
                    if event["type"] == "ERROR":
                        break
                    if event["type"] == "DELETED":
                        self.answers.pop(self._key(event["object"]), None)
                    else:
                        self.answers[self._key(event["object"])] = self._read(event["object"])
            time.sleep(0.5)

    @staticmethod
    def _key(one):
        return one["metadata"]["namespace"], one["metadata"]["name"]


class Teams:
    def __init__(self, stage, count, gate):
        self.stage, self.cluster, self.gate = stage, stage.cluster, gate
        self.registry = Registry(stage.cluster)
        self.units = []
        # Of each program: the bytes that were released last, and how often there was a release.
        self.released = {program.name: [pathlib.Path(program.module()).read_bytes(), 0] for program in programs.ALL}
        self._numbers = itertools.count(1)
        self.boards = None
        self._count = count

    # Setting up ---------------------------------------------------------------------------------

    def found(self, said=print):
        """Creates the shared objects of all teams, then the teams, then their operators."""
        for crd in ("examples/ring/testresources.yaml", "examples/website/crd.yaml"):
            self.cluster.apply_crds(ROOT / crd)
        for program in programs.ALL:
            if program not in (RESPONDER, APPROVAL):
                self.publish(program)
        said(f"{self._count} teams get their namespaces and rights")
        names = [f"team-{index:03}" for index in range(self._count)]
        with concurrent.futures.ThreadPoolExecutor(HANDS) as hands:
            list(hands.map(self.add_team, names, [names[index ^ 1] for index in range(self._count)]))
            said("Airways are made ready")
            for program in FLIGHTS:
                self._make_airway(program)
            made = [unit for index, name in enumerate(names) for unit in self.units_of(index, name, names[index ^ 1])]
            said(f"{len(made)} operators are defined")
            list(hands.map(self.define, made))
        self.units = made
        self.boards = {kind: Board(self.cluster, kind, self.gate) for kind in programs.READ}

    def add_team(self, name, partner=None):
        """A namespace that hangar may act in, and the accounts of the team's operators and workflows."""
        self.stage.add_tenant(name)
        self.cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": WORKFLOWS_ACCOUNT, "namespace": name}})
        workflows.allow(self.cluster, name, account=WORKFLOWS_ACCOUNT)
        self.cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "operators", "namespace": name},
                            "rules": RULES})
        self.give_rights(name, partner)

    def give_rights(self, name, partner=None):
        """Gives rights to the team's own operators, and to those that copy into its namespace."""
        self.cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "operators", "namespace": name},
                            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operators"},
                            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}
                                         for namespace in (name, partner) if namespace]})

    def take_rights(self, name):
        self.cluster.delete("rbac.authorization.k8s.io/v1", "RoleBinding", "operators", name)

    def units_of(self, index, name, partner):
        mine = [Unit(RING, name, "ring", partner), Unit(MIRROR, name, "mirror"), Unit(ANSWERS, name, "answers"), Unit(ASSEMBLY, name, "assembly"),
                Unit(WEBSITES, name, "website") if index % WITH_WEBSITE == 0 else Unit(ANSWERS, name, "answers-too")]
        if index % WITH_OTHERS == 0:
            mine += [Unit(program, name, program.name.replace("_", "-")) for program in (*FLIGHTS, RESPONDER, APPROVAL)]
        return mine

    def _make_airway(self, program):
        kind = program.kind[1]
        self.cluster.apply({
            "apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": f"{kind.lower()}s.{programs.GROUP}"},
            "spec": {"wasmUrls": {"flight": self.url(program)}, "insecure": True, "template": {
                "group": programs.GROUP, "scope": "Namespaced", "names": {"plural": f"{kind.lower()}s", "singular": kind.lower(), "kind": kind},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN_SCHEMA}}]}}})
        eventually(lambda: is_ready(self.cluster.get("yoke.cd/v1alpha1", "Airway", f"{kind.lower()}s.{programs.GROUP}")),
                   f"the Airway of {program.name} is ready", 300)

    def define(self, unit):
        """Also again, for an operator whose definition was deleted."""
        for manifest in unit.program.needs(unit):
            self.gate.insist(self.cluster.apply, manifest)
        if unit.program in (RESPONDER, APPROVAL):
            self._apply_machine(unit.program, unit.namespace)
        manifest = unit.program.define(unit)
        if manifest and manifest["kind"] == "Operator":
            manifest["spec"]["module"] = {"url": self.url(unit.program), "insecure": True}
        if manifest:
            self.gate.insist(self.cluster.apply, manifest)

    # Modules ------------------------------------------------------------------------------------

    def url(self, program):
        """Operators follow a tag; Airways get the URL of each release."""
        release = self.released[program.name][1]
        return self.registry.url(f"soak/{program.name.replace('_', '-')}", f"v{release}" if program in FLIGHTS else "stable")

    def publish(self, program):
        """Pushes the latest release."""
        path = ROOT / f"build/soak/{program.name}.wasm"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.released[program.name][0])
        self.registry.push(f"soak/{program.name.replace('_', '-')}", self.url(program).rpartition(":")[2], path)

    def release(self, program):
        """The next version of a program: other bytes with the same behaviour."""
        entry = self.released[program.name]
        entry[1] += 1
        original = pathlib.Path(program.module()).read_bytes()
        entry[0] = original + (f"\n// release {entry[1]}\n".encode() if program is RESPONDER else salted(entry[1]))
        if program in (RESPONDER, APPROVAL):
            for namespace in {unit.namespace for unit in self.units if unit.program is program}:
                self._apply_machine(program, namespace)
            return
        self.publish(program)
        if program in FLIGHTS:
            name = f"{program.kind[1].lower()}s.{programs.GROUP}"
            self.gate.insist(self.cluster.patch, "yoke.cd/v1alpha1", "Airway", name, {"spec": {"wasmUrls": {"flight": self.url(program)}}})

    def digest(self, program):
        return hashlib.sha256(self.released[program.name][0]).hexdigest()

    def _apply_machine(self, program, namespace):
        module = self.released[program.name][0]
        self.gate.insist(self.cluster.apply, config_map(program.name, namespace, {"machine.wasm.gz": gzip.compress(module)})
                         if program is APPROVAL else config_map(program.name, namespace, **{"machine.js": module.decode()}))

    # Questions ----------------------------------------------------------------------------------

    def ask(self, unit):
        number = next(self._numbers)
        self.gate.insist(unit.program.ask, self.cluster, unit, number)
        unit.number, unit.asked_at = number, time.monotonic()

    def has_answered(self, unit):
        kind, namespace, name = unit.program.answer(unit)
        return self.boards[kind].answers.get((namespace, name)) == str(unit.number)

    def take_away(self, unit):
        """Deletes the definition of an operator and its results: a later result must come from another operator."""
        self.gate.insist(self._gone, unit.program.kind, unit.name, unit.namespace)
        if unit.program.kind != operators.OPERATOR:
            kind, *place = unit.program.answer(unit)
            eventually(lambda: tuple(place) not in self.boards[kind].answers, f"what {unit.key()} has made goes with it", 300)

    def _gone(self, kind, name, namespace):
        """Deletes an object, and fails while it is there."""
        self.cluster.delete(*kind, name, namespace)
        if self.cluster.get(*kind, name, namespace):
            raise OSError(f"{kind[1]} {namespace}/{name} is still there")
