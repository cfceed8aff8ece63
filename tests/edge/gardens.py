"""Operators of a small machine: namespaces in pairs, each with some of the soak's programs, and modules that are compiled beforehand.

A small machine has no memory for a compiler of Go operators, so a host without limits compiles first, and the host in the small machine
starts in the same directory. `machine` is harness.SmallMachine.
"""
import hashlib
import itertools
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/soak"), str(ROOT / "tests/tenants"), str(ROOT / "tests/e2e"), str(ROOT / "bench")]

import harness  # noqa: E402
import operators  # noqa: E402
import programs  # noqa: E402
from cluster import Cluster, eventually, try_to  # noqa: E402
from module_server import Modules  # noqa: E402
from teams import RULES  # noqa: E402

MEMORY = 128 * harness.MIB
CORES = 0.5
# More than the default of half of that memory: a guest of controller-runtime takes tens of MiB while it is awake. The host would keep
# 64 MiB for itself, and takes less with so few objects.
GUEST_MEMORY = "80Mi"
# A module of 65 MiB is compiled once.
COMPILED = 900
# As tests/soak: more than the longest back-off of an operator.
PATIENCE = 420

SMALL_FLAGS = (f"--guest-memory={GUEST_MEMORY}", f"--namespace-guest-memory={GUEST_MEMORY}")


class Gardens:
    """A control plane, `count` namespaces, and in each of them one operator for each of `each`, a list of programs."""

    def __init__(self, count, each):
        assert count % 2 == 0, "a ring needs two namespaces"
        self.cluster = Cluster("--with-kcm")
        self.modules = Modules()
        self._numbers = itertools.count(1)
        self._paths = {}
        names = [f"garden-{index}" for index in range(count)]
        for crd in ("deploy/crds", "examples/ring/testresources.yaml", "examples/website/crd.yaml"):
            self.cluster.apply_crds(ROOT / crd)
        for name, partner in ((name, names[index ^ 1]) for index, name in enumerate(names)):
            self._prepare(name, partner)
        self.units = [programs.Unit(program, name, f"{program.name.replace('_', '-')}-{number}", partner=names[index ^ 1])
                      for index, name in enumerate(names) for number, program in enumerate(each)]

    def _prepare(self, name, partner):
        rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "operators", "namespace": name}}
        self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.cluster.create({**rights, "kind": "Role", "rules": RULES})
        self.cluster.create({**rights, "kind": "RoleBinding", "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operators"},
                             "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": one} for one in (name, partner)]})

    def _module(self, program):
        """Where it is served. Its digest is pinned, so that a host that has compiled it does not fetch it."""
        if program.name not in self._paths:
            content = pathlib.Path(program.module()).read_bytes()
            self._paths[program.name] = {"url": self.modules.url(f"/{program.name}.wasm"), "sha256": hashlib.sha256(content).hexdigest()}
            self.modules.files[f"/{program.name}.wasm"] = content
        return self._paths[program.name]

    def flags(self):
        return ("--module-address-allow-list=127.0.0.0/8", "--module-recheck-interval=24h")

    def define(self, unit):
        for needed in unit.program.needs(unit):
            self._insist(needed)
        self._define_operator(unit)

    def replace(self, unit):
        """The operator goes, and one of the same name comes. What it was asked stays."""
        self.cluster.delete(*operators.OPERATOR, unit.name, unit.namespace)
        eventually(lambda: self.cluster.get(*operators.OPERATOR, unit.name, unit.namespace) is None, f"{unit.key()} is gone", 60)
        self._define_operator(unit)

    def _define_operator(self, unit):
        manifest = unit.program.define(unit)
        self._insist({**manifest, "spec": {**manifest["spec"], "module": self._module(unit.program), "sleep": {"after": "0s"}}})

    def _insist(self, manifest):
        """A kind is served a moment after its definition is accepted, and a namespace has its account a moment after it is created."""
        eventually(lambda: try_to(self.cluster.apply, manifest), f"{manifest['kind']} {manifest['metadata']['name']} is accepted", 60)

    def ask(self, unit):
        unit.number, unit.asked_at = next(self._numbers), time.monotonic()
        unit.program.ask(self.cluster, unit, unit.number)

    def has_answered(self, unit):
        """A later number is an answer, too: a ring's object keeps the largest."""
        kind, namespace, name = unit.program.answer(unit)
        seen = self.cluster.get(*kind, name, namespace)
        read = programs.READ[kind](seen) if seen else None
        return bool(read) and int(read) >= unit.number

    def wait_for_answers(self, units, seconds):
        """Returns the units without an answer."""
        deadline = time.monotonic() + seconds
        waiting = list(units)
        while waiting and time.monotonic() < deadline:
            waiting = [unit for unit in waiting if not self.has_answered(unit)]
            if waiting:
                time.sleep(0.5)
        return waiting

    def time_of_answer(self, unit, seconds=120):
        """Seconds from the question to the answer, or None if it did not come."""
        self.ask(unit)
        while (took := time.monotonic() - unit.asked_at) < seconds:
            if self.has_answered(unit):
                return took
            time.sleep(0.002)
        return None

    def wait_until_asleep(self, host, seconds):
        def is_asleep():
            seen = host.metrics()
            return seen["hangar_operators"] == len(self.units) and seen["hangar_operators_resident"] == 0
        eventually(is_asleep, "all operators sleep", seconds)

    def begin(self, host):
        """Defines all operators, and waits until their modules are compiled."""
        for unit in self.units:
            self.define(unit)
        self.settle(host, COMPILED)

    def settle(self, host, seconds=PATIENCE):
        """Waits until all operators have answered a question of now, and sleep. That all of a host that has just started are out of memory
        says nothing: they may not have begun."""
        for unit in self.units:
            self.ask(unit)
        lost = self.wait_for_answers(self.units, seconds)
        assert not lost, f"without an answer: {[unit.key() for unit in lost]}\n{host.tail()}"
        self.wait_until_asleep(host, 120)

    def close(self):
        self.modules.close()
        self.cluster.close()


def forget_cache(host):
    """The pages of the host's files, so that the next host pays for those that it needs."""
    harness.forget_pages(path for path in (host.directory / "cache").rglob("*") if path.is_file())
