"""The work of people and pipelines on a cluster, faster: a seeded schedule, carried out by a few workers at once."""
import concurrent.futures
import contextlib
import random
import threading
import time

import operators
import programs
from cluster import eventually
from findings import Window
from teams import HANDS

# Bound of waiting actions. Beyond it the schedule waits: the machine is too slow for the rate, and the table shows the
# actual one.
WAITING_MOST = 4 * HANDS
# The longest time in seconds for which a team is without its rights.
WITHOUT_RIGHTS = 15


class Churn:
    """Runs from `go_on()` to `pause()`, which returns when nothing is under way."""

    def __init__(self, teams, rates, seed):
        self.teams, self.rates = teams, {kind: rate for kind, rate in rates.items() if rate > 0}
        self.done = dict.fromkeys(self.rates, 0)
        self.trouble = []  # Actions that failed.
        self.windows = []  # When rights were withdrawn.
        self._dice = random.Random(seed)
        self._going, self._over = threading.Event(), threading.Event()
        self._under_way, self._changed = 0, threading.Condition()
        self._lock = threading.Lock()
        self._without_rights = set()
        self._new_teams = 0
        self._hands = concurrent.futures.ThreadPoolExecutor(HANDS)
        self._thread = threading.Thread(target=self._schedule, daemon=True)
        self._thread.start()

    def go_on(self):
        self._going.set()

    def pause(self):
        self._going.clear()
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0)

    def close(self):
        self._over.set()
        self._going.set()
        self._thread.join()
        self._hands.shutdown(cancel_futures=True)

    def _schedule(self):
        acts = {"questions": self._ask, "definitions": self._redefine, "releases": self._release, "rights": self._change_rights, "teams": self._new_team}
        total = sum(self.rates.values())
        due = time.monotonic()
        while not self._over.is_set():
            if not self._going.is_set():
                self._going.wait()
                due = time.monotonic()
            due += self._dice.expovariate(total)
            time.sleep(max(0, due - time.monotonic()))
            with self._changed:
                self._changed.wait_for(lambda: self._under_way < WAITING_MOST)
                self._under_way += 1
            due = max(due, time.monotonic() - 1)  # Time lost to a slow machine is not made up for.
            kind = self._dice.choices(list(self.rates), list(self.rates.values()))[0]
            # Drawn here, so that a seed gives the same schedule however fast the workers are.
            self._hands.submit(self._carry_out, kind, acts[kind], random.Random(self._dice.random()))

    def _carry_out(self, kind, act, dice):
        try:
            if act(dice) is not False:
                with self._lock:
                    self.done[kind] += 1
        except Exception as error:  # pylint: disable=broad-except  # It is reported at the end, and fails the run.
            self.trouble.append(f"{kind}: {type(error).__name__}: {error}")
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def _one_at_rest(self, dice, among=lambda unit: True):
        """A unit that has answered and that no worker is about to ask, or None: the next change must not hide one that is
        not answered yet."""
        chosen = None
        for unit in (dice.choice(self.teams.units) for _ in range(50)):
            with self._lock:
                if among(unit) and not unit.is_busy and self.teams.has_answered(unit):
                    unit.is_busy, chosen = True, unit
                    break
        try:
            yield chosen
        finally:
            if chosen:
                chosen.is_busy = False

    def _ask(self, dice):
        with self._one_at_rest(dice) as unit:
            if unit is None:
                return False
            self.teams.ask(unit)
        return True

    def _redefine(self, dice):
        """Changes a definition, or deletes and recreates it. Its next effect has to be the answer to a new question."""
        with self._one_at_rest(dice, lambda unit: not unit.program.is_asked_once) as unit:
            if unit is None:
                return False
            if unit.program.kind == operators.OPERATOR and dice.random() < 0.5:
                env = [*(unit.program.define(unit)["spec"].get("env", [])), {"name": "CHANGED", "value": str(dice.random())}]
                self.teams.gate.insist(self.teams.cluster.patch, *operators.OPERATOR, unit.name, {"spec": {"env": env}}, unit.namespace)
            else:
                self.teams.take_away(unit)
                self.teams.define(unit)
            self.teams.ask(unit)
        return True

    def _release(self, dice):
        self.teams.release(dice.choice([program for program in programs.ALL if program is not programs.WEBSITES]))

    def _change_rights(self, dice):
        """Withdraws a team's rights, asks an operator that needs them, and gives them back."""
        with self._one_at_rest(dice, lambda unit: unit.program.kind == operators.OPERATOR and unit.namespace not in self._without_rights) as unit:
            if unit is None:
                return False
            self._without_rights.add(unit.namespace)
            began = time.time()
            try:
                self.teams.gate.insist(self.teams.take_rights, unit.namespace)
                time.sleep(dice.uniform(1, WITHOUT_RIGHTS))
                self.teams.ask(unit)
                time.sleep(dice.uniform(0, 3))
            finally:
                self.teams.gate.insist(self.teams.give_rights, unit.namespace, unit.partner or self._partner(unit.namespace))
                self._without_rights.discard(unit.namespace)
                # Rings of the partner copy into this namespace.
                self.windows += [Window(began, time.time(), namespace) for namespace in (unit.namespace, self._partner(unit.namespace))]
        return True

    def _partner(self, namespace):
        return next(unit.partner for unit in self.teams.units if unit.namespace == namespace and unit.partner)

    def _new_team(self, _dice):
        """Creates a team, lets its operators answer, and deletes it with all that it has."""
        name = self.teams.gate.insist(self._come)
        units = [unit for unit in self.teams.units_of(1, name, name) if unit.program is not programs.RING]
        for unit in units:
            self.teams.define(unit)
            self.teams.ask(unit)
        for unit in units:
            eventually(lambda: self.teams.has_answered(unit), f"{unit.key()} answers", 300)
        began = time.time()
        self.teams.gate.insist(self.teams.cluster.delete, "v1", "Namespace", name)
        eventually(lambda: self.teams.gate.insist(self.teams.cluster.get, "v1", "Namespace", name) is None, f"namespace {name} goes", 300)
        self.windows.append(Window(began, time.time(), name))  # Its rights went before its operators did.

    def _come(self):
        """A new team each time: one that was created only in part may have left something."""
        with self._lock:
            self._new_teams += 1
            name = f"guests-{self._new_teams}"
        self.teams.add_team(name)
        return name
