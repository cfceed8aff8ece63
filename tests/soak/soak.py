#!/usr/bin/env python3
"""A host for an hour: a thousand operators of ten programs, definitions, modules and rights that change four times as often as on
a busy day (findings.BusyDay says what that is), and an API server that is restarted every five minutes.

    tests/soak/run.sh [--minutes=60] [--operators=1000] [--cycle=300] [--times=4] [--seed=N]

Each cycle is churn, with a restart of the API server in it (ended gently and killed in turns), and then rest: everybody must have
answered the last question, nothing may be left of what is gone, all run what was released last and are asleep, and then the host's memory and
descriptors are looked at. `operators` are those of the kind Operator; a quarter as many instances and workflows come on top.

It fails if resting RSS or descriptors have grown by more than a twentieth from the first cycles to the last (the first two do not
count; descriptors of modules are compared with the modules in use, which become more while workflows go on with what they began with),
an answer did not come, something is left of what is gone, a guest failed without a cause of ours, a module that was
released is not what runs, or the Lease was lost.
"""
import argparse
import collections
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests/tenants"), str(ROOT / "tests/e2e"), str(ROOT / "bench")]

import harness  # noqa: E402
import host  # noqa: E402
import operators  # noqa: E402
import programs  # noqa: E402
import workflows  # noqa: E402
from churn import Churn  # noqa: E402
from cluster import eventually  # noqa: E402
from findings import DESCRIPTORS_MOST, DESCRIPTORS_OF_A_MODULE, WARM_UP, BusyDay, Window, failures_in, growth, is_flat, orphans_among, without_cause  # noqa: E402
from harness import progress  # noqa: E402
from registry import Registry  # noqa: E402
from stage import Stage  # noqa: E402
from teams import OPERATORS_A_TEAM, VALUES, Gate, Teams  # noqa: E402

# A question without an answer for this long is lost. It is more than the longest back-off of an operator, five minutes:
# a guest that failed for a reason may be at the end of one.
PATIENCE = 420
# A figure at rest is the least one in this many seconds.
REST_SECONDS = 20
# The only API server of this cluster is away for longer than the default renew deadline while it starts on a busy
# machine. If the Lease is lost all the same, it is the host's fault.
LEASE = ("--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s", "--leader-elect-retry-period=2s")
RENEW_DEADLINE = 50
# The directories of the host's cache that have files of modules: native code, and images of memory.
CACHES_OF_MODULES = ("code", "machines", "snapshots")
RECHECK = 60
OWNERS = (operators.OPERATOR, workflows.WORKFLOW, programs.CONFIG_MAP, programs.WEBSITE, *(program.kind for program in programs.FLIGHTS))
OWNED = (programs.CONFIG_MAP, programs.DEPLOYMENT, ("v1", "Secret"), ("v1", "Service"), workflows.REVISION)


def host_flags(cluster, directory):
    registry = Registry(cluster)
    return (f"--docker-config={registry.docker_config(directory, registry.password)}", "--module-address-allow-list=127.0.0.0/8",
            f"--module-recheck-interval={RECHECK}s", *LEASE)


class Soak:
    def __init__(self, stage, teams, churn, options):
        self.stage, self.teams, self.churn, self.options = stage, teams, churn, options
        self.cluster, self.gate = stage.cluster, teams.gate
        self.cycles = []  # Measurements at rest.
        self.lost, self.orphans, self.outages, self.trouble = [], [], [], []
        self.lease = stage.lease()
        self._over = threading.Event()

    # One cycle ----------------------------------------------------------------------------------

    def run(self):
        began = time.monotonic()
        threading.Thread(target=self._tell, daemon=True).start()
        count = max(1, round(self.options.minutes * 60 / self.options.cycle))
        for cycle in range(count):
            ends = began + (cycle + 1) * self.options.cycle
            self.churn.go_on()
            time.sleep(self.options.cycle / 5)
            self._restart_api_server("stop" if cycle % 2 else "kill")
            # A third of the remaining time is for coming to rest, which takes longer the slower the machine is.
            time.sleep(max(1, (ends - time.monotonic()) * 2 / 3))
            self.churn.pause()
            self._come_to_rest()
            self._measure()
            if not self.stage.is_alive():
                break
            time.sleep(max(0, ends - time.monotonic()))
        self._over.set()

    def _restart_api_server(self, how):
        began, wall = time.monotonic(), time.time()
        self.gate.close()
        self.cluster.component(how, "kube-apiserver")
        self.cluster.component("start", "kube-apiserver")
        self.gate.open()
        self.outages.append(Window(wall, time.time()))
        progress(f"the API server was away for {time.monotonic() - began:.0f} s ({how})")

    def _come_to_rest(self):
        """Waits for the last answers, and for deletions to finish."""
        while waiting := self._waiting():
            if not self.stage.is_alive():
                return
            late = [unit for unit in waiting if time.monotonic() - unit.asked_at > PATIENCE]
            for unit in late:
                self.lost.append(f"question {unit.number} to {unit.program.name} {unit.key()}")
                progress(f"lost: {self.lost[-1]}")
                self.teams.ask(unit)
            time.sleep(1)
        try:
            eventually(lambda: not (seen := self._left_over()) or (setattr(self, "_seen", seen) or False), "nothing is left of what is gone", 180)
        except AssertionError:
            self.orphans += self._seen
            progress(f"left over: {self._seen[:10]}")
        # Until the last operator has taken over what was released last, the host has the code of both modules.
        try:
            eventually(lambda: not self._behind(), "all run what was released last", RECHECK + 120)
        except AssertionError:
            self.trouble += [f"{key} does not run what was released last" for key in self._behind()[:20]]

    def _waiting(self):
        return [unit for unit in self.teams.units if not self.teams.has_answered(unit)]

    def _behind(self):
        """The operators that do not run the newest module of their program."""
        wanted = {program.name: self.teams.digest(program) for program in programs.OPERATORS}
        running = {(one["metadata"]["namespace"], one["metadata"]["name"]): one.get("status", {}).get("module", {}).get("sha256")
                   for one in self.cluster.list(*operators.OPERATOR)}
        return [unit.key() for unit in self.teams.units
                if unit.program.kind == operators.OPERATOR and running.get((unit.namespace, unit.name)) != wanted[unit.program.name]]

    def _modules_in_use(self):
        """Digests. A workflow keeps the module that it began with, so there may be several of one program."""
        status = [one.get("status", {}) for kind in (operators.OPERATOR, workflows.WORKFLOW) for one in self.cluster.list(*kind)]
        return {one[field]["sha256"] for one in status for field in ("module", "revision") if field in one} | {program.name for program in programs.FLIGHTS}

    def _left_over(self):
        """Names of objects that are no longer needed."""
        kinds = {kind: self.cluster.list(*kind) for kind in {*OWNERS, *OWNED}}
        uids = {one["metadata"]["uid"] for kind in OWNERS for one in kinds[kind]}
        left = [f"{kind[1]} {one['metadata']['namespace']}/{one['metadata']['name']}" for kind in OWNED for one in orphans_among(kinds[kind], uids)]
        # Copies of machines stay as long as a workflow of the namespace began with them.
        needed = {(one["metadata"]["namespace"], one.get("status", {}).get("revision", {}).get("sha256", "")) for one in kinds[workflows.WORKFLOW]}
        left += [f"copy {one['metadata']['namespace']}/{one['metadata']['name']}" for one in kinds[workflows.REVISION]
                 if (one["metadata"]["namespace"], one["metadata"]["name"].removeprefix("machine-")) not in needed and one["metadata"]["name"].startswith("machine-")]
        held, exist = int(self.stage.host.metrics()["hangar_operators"]), len(kinds[operators.OPERATOR])
        return left + ([f"{held} operators in the host, {exist} in the cluster"] if held != exist else [])

    def _measure(self):
        if not self.stage.is_alive():
            return
        try:
            eventually(lambda: self.stage.host.metrics()["hangar_operators_resident"] == 0, "all operators are asleep", 60)
        except AssertionError as error:
            self.trouble.append(str(error))
        # The host returns the heap some seconds after the last work.
        samples = []
        for _ in range(REST_SECONDS):
            samples.append({**harness.memory(self.stage.pid), "descriptors": descriptors(self.stage.pid)})
            time.sleep(1)
        seen = {key: min(one[key] for one in samples) for key in ("rss", "anonymous", "descriptors")}
        seen["held"] = descriptors_by_kind(self.stage.pid)
        seen["of_modules"] = sum(count for kind, count in seen["held"].items() if pathlib.Path(kind).name in CACHES_OF_MODULES)
        seen["modules"] = len(self._modules_in_use())
        seen["mapped"] = memory_by_mapping(self.stage.pid)
        seen["disk"] = self.stage.host.metrics()["hangar_operator_disk_bytes"] / harness.MIB
        self.cycles.append(seen)
        progress(f"cycle {len(self.cycles)} at rest: RSS {seen['rss']:.1f} MiB, {seen['anonymous']:.1f} anonymous; "
                 f"{seen['descriptors']:.0f} descriptors, {seen['of_modules']} of them of {seen['modules']} modules; {seen['disk']:.1f} MiB of sleepers")
        if self.stage.lease() != self.lease:
            self.trouble.append(f"the Lease changed hands: {self.lease} before, {self.stage.lease()} now")
            self.lease = self.stage.lease()

    # What is told ---------------------------------------------------------------------------------

    def _tell(self):
        """A line each minute."""
        before = time.monotonic()
        asked = 0
        while not self._over.wait(60 - (time.monotonic() - before) % 60):
            try:
                metrics = self.stage.host.metrics()
                waiting = self._waiting()
                oldest = max((time.monotonic() - unit.asked_at for unit in waiting), default=0)
                done = self.churn.done
                progress(f"{metrics['hangar_operators']:.0f} operators, {metrics['hangar_operators_resident']:.0f} in memory; "
                         f"{done['questions'] - asked} questions this minute, {len(waiting)} not answered (longest {oldest:.0f} s); "
                         + ", ".join(f"{count} {kind}" for kind, count in done.items() if kind != "questions")
                         + f"; RSS {self.stage.host.rss_bytes() / harness.MIB:.0f} MiB, {descriptors(self.stage.pid)} descriptors, "
                         f"{metrics['hangar_operator_failures_total']:.0f} failures, CPU {harness.cpu_seconds(self.stage.pid):.0f} s")
                asked = done["questions"]
            except OSError as error:
                progress(f"the host does not say how it is: {error}")

    def table(self, minutes):
        """(figure, value, required value, whether it is met) of each claim."""
        rss, held = [one["rss"] for one in self.cycles], [one["descriptors"] - one["of_modules"] for one in self.cycles]
        log = self.stage.host.log.read_text(errors="replace").splitlines()
        failures = list(failures_in(log))
        unexplained = without_cause(failures, [*self.outages, *self.churn.windows])
        exceptions = self.stage.host.metrics().get("hangar_loop_exceptions_total", 0) if self.stage.is_alive() else None
        longest = max((one.ended - one.began for one in self.outages), default=0)
        rates = ", ".join(f"{count} {kind}" for kind, count in self.churn.done.items())

        def grew(values):
            seen = growth(values)
            return "too few cycles" if seen is None else f"{100 * seen:+.1f} %"
        yield "operators, programs", f"{len(self.teams.units)}, {len(programs.ALL)}", "", True
        yield f"in {minutes:.0f} minutes", rates, "", True
        yield "resting RSS of each cycle, MiB", " ".join(f"{value:.0f}" for value in rss), "", True
        yield "of it anonymous, MiB", " ".join(f"{one['anonymous']:.0f}" for one in self.cycles), "", True
        yield "growth of resting RSS", grew(rss), "<= 5 %", is_flat(rss)
        yield "descriptors at rest, without modules'", " ".join(f"{value:.0f}" for value in held), f"<= 5 % or {DESCRIPTORS_MOST} more", \
            is_flat(held, least=DESCRIPTORS_MOST)
        yield "descriptors of modules, modules in use", " ".join(f"{one['of_modules']}/{one['modules']}" for one in self.cycles), \
            f"<= {DESCRIPTORS_OF_A_MODULE} each", all(one["of_modules"] <= DESCRIPTORS_OF_A_MODULE * one["modules"] for one in self.cycles)
        yield "peak memory of all processes, MiB", f"{self.stage.peak_bytes() / harness.MIB:.0f}" if self.stage.is_alive() else "-", f"< {self.stage.limit_bytes / harness.MIB:.0f}", \
            self.stage.is_alive() and self.stage.peak_bytes() < self.stage.limit_bytes
        yield "processes ended for want of memory", str(self.stage.memory_kills()), "0", self.stage.memory_kills() == 0
        yield "restarts of the API server, longest", f"{len(self.outages)}, {longest:.0f} s", f"< {RENEW_DEADLINE} s, or this run proves nothing", longest < RENEW_DEADLINE
        yield "changes without a reaction", str(len(self.lost)), "0", not self.lost
        yield "left of what is gone", str(len(self.orphans)), "0", not self.orphans
        yield "guests failed, without a cause", f"{len(failures)}, {len(unexplained)}", "0 without", not unexplained
        yield "unexpected exceptions", str(exceptions), "0", exceptions == 0
        yield "host alive, Lease never lost", str(self.stage.is_alive()), "True", self.stage.is_alive() and not self.trouble
        if self.cycles:
            first, last = self.cycles[min(WARM_UP, len(self.cycles) - 1)], self.cycles[-1]
            for what, key in (("descriptors", "held"), ("MiB of mappings", "mapped")):
                grown = {kind: f"{first[key].get(kind, 0):.3g} -> {count:.3g}" for kind, count in last[key].items() if count > first[key].get(kind, 0)}
                progress(f"  {what} that became more: {grown or 'none'}")
        for text in (*self.lost, *self.orphans, *self.trouble, *self.churn.trouble, *(f"{one.namespace}/{one.name}: {one.error}" for one in unexplained)):
            progress(f"  {text}")
        yield "what went wrong besides", str(len(self.trouble) + len(self.churn.trouble)), "0", not self.trouble and not self.churn.trouble


def wait_for_all(stage, teams):
    """Waits until all have answered; fails when no further answer came for as long as one may take."""
    told = progressed = time.monotonic()
    fewest = len(teams.units) + 1
    while waiting := [unit for unit in teams.units if not teams.has_answered(unit)]:
        now = time.monotonic()
        if not stage.is_alive():
            return
        if len(waiting) < fewest:
            fewest, progressed = len(waiting), now
        names = ", ".join(f"{count} {name}" for name, count in collections.Counter(unit.program.name for unit in waiting).items())
        assert now - progressed < PATIENCE, f"nobody more has answered for {PATIENCE} s; waited for: {names}, such as {waiting[0].key()}"
        if now - told > 30:
            told = now
            progress(f"not answered yet: {names}")
        time.sleep(1)


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def descriptors_by_kind(pid):
    """How many of each kind of file; connections by the port at the other end, which says whose they are."""
    ports = {}
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ports[fields[9]] = int(fields[2].rpartition(":")[2], 16)
    kinds = collections.Counter()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue  # It was closed meanwhile.
        inode = target.removeprefix("socket:[").removesuffix("]")
        if inode in ports:
            kinds[f"connection to port {ports[inode]}"] += 1
        else:
            kinds[str(pathlib.Path(target).parent) if target.startswith("/") else target.partition("[")[0]] += 1
    return dict(kinds)


def memory_by_mapping(pid):
    """Resident MiB: of anonymous memory, and of mapped files by their directory."""
    sizes = collections.Counter()
    kind = ""
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first, *fields = line.split(maxsplit=5)
        if not first.endswith(":"):
            path = fields[4] if len(fields) > 4 else ""
            kind = str(pathlib.Path(path).parent) if path.startswith("/") else "anonymous"
        elif first == "Rss:":
            sizes[kind] += int(fields[0]) / 1024
    return dict(sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--operators", type=int, default=1000)
    parser.add_argument("--cycle", type=float, default=300, help="seconds from one restart of the API server to the next")
    parser.add_argument("--times", type=float, default=4, help="of a busy day's churn")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    progress(f"seed {options.seed}")

    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-soak-"))
    # The first run compiles 68 MiB for a minute or two; the next ones reuse the code.
    host.compiled = ROOT / "build/soak/compiled"
    host.compiled.parent.mkdir(parents=True, exist_ok=True)
    stage = Stage(scratch, VALUES, flags=lambda cluster: host_flags(cluster, scratch))
    churn = None
    try:
        teams = Teams(stage, max(2, options.operators // OPERATORS_A_TEAM // 2 * 2), Gate())
        teams.found(progress)
        for unit in teams.units:
            teams.ask(unit)
        wait_for_all(stage, teams)
        assert stage.is_alive(), f"the host has ended:\n{stage.host.tail()}"
        stage.host.share_compiled()
        progress(f"all {len(teams.units)} have answered once; now {options.minutes:g} minutes of churn")
        churn = Churn(teams, BusyDay().per_second(options.times, options.operators / 1000), options.seed)
        soak = Soak(stage, teams, churn, options)
        began = time.monotonic()
        soak.run()
        rows = list(soak.table((time.monotonic() - began) / 60))
        width = max(len(row[0]) for row in rows)
        for figure, value, wanted, holds in rows:
            print(f"{figure:{width}}  {value}" + (f"  ({wanted}: {'yes' if holds else 'NO'})" if wanted else ""), flush=True)
        is_good = all(row[3] for row in rows)
        out = ROOT / "build/soak/soak.json"
        out.write_text(json.dumps({"seed": options.seed, "holds": is_good, "cycles": soak.cycles,
                                   "figures": [{"figure": row[0], "value": row[1], "target": row[2], "holds": row[3]} for row in rows]}, indent=1) + "\n")
        print(f"{'passed' if is_good else 'FAILED'}, seed {options.seed}; {out.relative_to(ROOT)}", flush=True)
        return 0 if is_good else 1
    finally:
        # To help find the reason.
        shutil.copy(stage.host.log, ROOT / "build/soak/host.log")
        if churn:
            churn.close()
        stage.close()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
