#!/usr/bin/env python3
"""Ordinary operators of controller-runtime, asleep in one hangar host, beside the same programs as native processes.

N operators are of three programs: examples/website, examples/memo and tests/guests/go_features. Each has a namespace with one
object that a client changes (the question) and one that the operator then writes (the answer). The peer is a process for each
operator, built from the same source. Host and peer have a control plane each and take turns: a round asks each operator once,
with a pause after each answer, so that an operator of the host sleeps between two of its questions.

    bench/go_operators/run.sh [--quick] [--operators=N] [--rounds=N]

Compiled modules stay in build/bench/go_operators.code between runs.
"""
import argparse
import contextlib
import http.client
import pathlib
import shutil
import statistics
import sys
import tempfile
import threading
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import OUT, ROOT, at_most, at_most_of_peer, percentile, progress  # noqa: E402
from hangar_run import Processes, apiserver_watches, disk_bytes, total  # noqa: E402
import host as hosts  # noqa: E402
from cluster import KINDS, Cluster, eventually  # noqa: E402
from operators import EVERYTHING, OPERATOR, manifest  # noqa: E402

CONFIG_MAP, DEPLOYMENT = ("v1", "ConfigMap"), ("apps/v1", "Deployment")
WEBSITE, MEMO = ("examples.hangar.dev/v1", "Website"), ("examples.hangar.dev/v1", "Memo")
KINDS[WEBSITE] = ("/apis/examples.hangar.dev/v1", "websites", True)
KINDS[MEMO] = ("/apis/examples.hangar.dev/v1", "memos", True)
PEER = "N Go processes, controller-runtime"

# The host suspends a guest after this time without an event: its default.
SLEEP_AFTER_SECONDS = 1
# Between an answer and the next question: the operator finishes its other writes.
PAUSE_SECONDS = 0.05
# A host returns the free memory of its heap after 5 s without work.
SETTLE_SECONDS = 10
# Compiling takes half a minute of processor time for each module.
COMPILED_SECONDS = 600
PATIENCE_SECONDS = 60
# Of the host's memory while its operators start.
PEAK_INTERVAL_SECONDS = 0.02


class Program(typing.NamedTuple):
    """One of the programs, and how a client asks it something."""

    name: str
    # The variable with the namespace that it watches, and its arguments as a process: what hangar turns off in guests.
    variable: str
    arguments: list
    # The objects that a namespace has before it starts.
    objects: list
    question: tuple
    ask: typing.Callable
    answer: tuple
    read: typing.Callable


def _config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"role": name}}, "data": data}


PROGRAMS = [
    Program("website", "NAMESPACE", ["-leader-elect=false", "-metrics-bind-address=0"],
            [{"apiVersion": WEBSITE[0], "kind": WEBSITE[1], "metadata": {"name": "one"}, "spec": {"image": "0", "replicas": 0}}],
            (*WEBSITE, "one"), lambda text: {"spec": {"image": text}},
            (*DEPLOYMENT, "one"), lambda seen: seen["spec"]["template"]["spec"]["containers"][0]["image"]),
    Program("memo", "WATCH_NAMESPACE", ["-metrics-bind-address=0", "-health-probe-bind-address=0"],
            [{"apiVersion": MEMO[0], "kind": MEMO[1], "metadata": {"name": "one"}, "spec": {"text": "0"}}],
            (*MEMO, "one"), lambda text: {"spec": {"text": text}},
            (*CONFIG_MAP, "one"), lambda seen: seen["data"]["text"]),
    Program("go_features", "WATCH_NAMESPACE", [],
            [_config_map("shelf"), _config_map("book", shelf="shelf", title="0", note="n")],
            (*CONFIG_MAP, "book"), lambda text: {"data": {"title": text}},
            (*CONFIG_MAP, "shelf-catalogue"), lambda seen: seen["data"]["book"].removesuffix(" (n)")),
]
WATCHED = ("websites", "memos", "deployments", "configmaps", "secrets")


class Operator(typing.NamedTuple):
    """One operator of the host or of the peer."""

    program: Program
    namespace: str

    def manifest(self):
        return manifest("one", self.namespace, wasm=self.program.name, limits={"memory": "256Mi"},
                        env=[{"name": self.program.variable, "value": self.namespace}])

    def command(self, programs):
        return ["env", f"{self.program.variable}={self.namespace}", programs / f"go_operators_{self.program.name}", *self.program.arguments]


class Place:
    """A control plane with the namespaces of all operators, and the client that asks them."""

    def __init__(self, count):
        self.cluster = Cluster()
        for crds in ("deploy/crds", "examples/website/crd.yaml", "examples/memo/config/crd/memos.yaml"):
            self.cluster.apply_crds(ROOT / crds)
        self.operators = [Operator(PROGRAMS[index % len(PROGRAMS)], f"go-{index:03}") for index in range(count)]
        # One more of each program, to be started again and again.
        self.spare = [Operator(program, f"start-{index}") for index, program in enumerate(PROGRAMS)]
        self._number = 0
        self._seen, self._changed = {}, threading.Condition()
        for one in (*self.operators, *self.spare):
            self._fill(one)
        for kind in (DEPLOYMENT, CONFIG_MAP):
            threading.Thread(target=self._watch, args=(kind,), daemon=True).start()

    def _fill(self, operator):
        namespace = operator.namespace
        self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        self.cluster.request("POST", f"{prefix}/roles", {"metadata": {"name": "operator"}, "rules": [
            {"apiGroups": ["", "apps", "examples.hangar.dev"], "resources": ["*"], "verbs": list(EVERYTHING)}]})
        self.cluster.request("POST", f"{prefix}/rolebindings", {
            "metadata": {"name": "operator"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]})
        for one in operator.program.objects:
            self.cluster.create({**one, "metadata": {**one["metadata"], "namespace": namespace}})

    def _watch(self, kind):
        readers = {one.program.answer: one.program.read for one in self.operators}
        # The API server is gone at the end.
        with contextlib.suppress(OSError, http.client.HTTPException):
            for event in self.cluster.watch(self.cluster.path(*kind), 0):
                name, namespace = event["object"]["metadata"]["name"], event["object"]["metadata"]["namespace"]
                if read := readers.get((*kind, name)):
                    with self._changed:
                        self._seen[namespace] = None if event["type"] == "DELETED" else read(event["object"])
                        self._changed.notify_all()

    def wait(self, operator, is_answer, what, seconds=PATIENCE_SECONDS):
        with self._changed:
            if not self._changed.wait_for(lambda: is_answer(self._seen.get(operator.namespace)), seconds):
                raise AssertionError(f"the operator in {operator.namespace} ({operator.program.name}) {what} within {seconds:.0f} s")

    def wait_until_started(self, operators, seconds=PATIENCE_SECONDS):
        for one in operators:
            self.wait(one, lambda text: text is not None, "has not written its object", seconds)

    def ask(self, operator):
        """Milliseconds until the operator has answered."""
        self._number += 1
        text, program, began = str(self._number), operator.program, time.monotonic()
        self.cluster.patch(*program.question, program.ask(text), operator.namespace)
        self.wait(operator, lambda seen: seen == text, f"has not written {text}")
        return 1000 * (time.monotonic() - began)

    def round(self, pause_seconds=PAUSE_SECONDS):
        took = []
        for one in self.operators:
            took.append(self.ask(one))
            time.sleep(pause_seconds)
        return took

    def forget_answer(self, operator):
        """For an operator that does not run."""
        self.cluster.delete(*operator.program.answer, operator.namespace)
        self.wait(operator, lambda text: text is None, "still has its object")

    def watches(self):
        return apiserver_watches(self.cluster.request("GET", "/metrics"))

    def close(self):
        self.cluster.close()


# The host, and the native processes: what they do, and what it costs ------------------------------------


class Hosted:
    """Operators in one host. Its figures are those of all of its processes."""

    def __init__(self, place, directory, isolation="none"):
        self.place = place
        self._host = harness.hangar_host_class()(place.cluster.kubeconfig, directory, "--features=operators",
                                                 f"--guest-isolation={isolation}", wait=False)
        self.pid, self._code = self._host.process.pid, directory / "cache/code"

    def wait_until_ready(self):
        self._host.wait_ready()

    def wait_until_asleep(self, count, seconds=PATIENCE_SECONDS):
        def all_sleep():
            seen = self._host.metrics()
            return seen.get("hangar_operators") == count and seen["hangar_operators_resident"] == 0
        eventually(all_sleep, f"{count} operators sleep", seconds)

    def wait_until_none(self, operator):
        def is_gone():
            status, text = self._host.get(f"/metrics/operators/{operator.namespace}/one")
            return status == 404 and "no such operator" in text
        eventually(is_gone, "the operator is gone", PATIENCE_SECONDS)

    def cpu_seconds(self):
        return harness.cpu_seconds_of_tree(self.pid)

    def total(self, name):
        return total(self._host.metrics(), name)

    def disks(self):
        """KiB of each sleeping operator's snapshot."""
        return [value / 1024 for key, value in self._host.metrics().items() if key.startswith("hangar_controller_disk_bytes{")]

    def memory(self):
        seen = [harness.memory(pid) for pid in harness.process_tree(self.pid)]
        return {key: sum(one[key] for one in seen) for key in seen[0]}

    def code(self):
        """MiB of compiled code that the host's processes map, and that is resident."""
        seen = [harness.file_pages(pathlib.Path(f"/proc/{pid}/smaps").read_text(), self._code) for pid in harness.process_tree(self.pid)]
        return {key: sum(one[key] for one in seen) for key in seen[0]}

    def peak_memory(self):
        return harness.peak_memory(self.pid, PEAK_INTERVAL_SECONDS)

    def stop(self):
        assert self._host.stop() == 0, self._host.tail()


class Turns:
    """Rounds of one side: the milliseconds of all answers, and the CPU of each change, also of what follows it, in ms."""

    def __init__(self, side, rest):
        self.side, self._rest = side, rest
        self.took, self.cpu_seconds = [], 0.0

    def take(self):
        before = self.side.cpu_seconds()
        took = self.side.place.round()
        time.sleep(1.5 * SLEEP_AFTER_SECONDS)
        self._rest()
        self.took += took
        self.cpu_seconds += self.side.cpu_seconds() - before

    def cpu_ms(self):
        """Not of a single round: the kernel counts the time of each process in steps of 10 ms."""
        return 1000 * self.cpu_seconds / len(self.took)


def idle(host, natives, seconds):
    """What both cost while nothing happens: memory, and CPU in ms for each second."""
    time.sleep(SETTLE_SECONDS)
    sides, samples = (host, natives), {host: [], natives: []}
    cpu, began = [one.cpu_seconds() for one in sides], time.monotonic()
    while time.monotonic() - began < seconds:
        for side in sides:
            samples[side].append(side.memory())
        time.sleep(seconds / 5)
    wall = time.monotonic() - began
    return [{"cpu_ms": 1000 * (side.cpu_seconds() - before) / wall,
             **{key: statistics.median(one[key] for one in samples[side]) for key in samples[side][0]}} for side, before in zip(sides, cpu)]


def starts_of_guests(host, times):
    """Seconds from the creation of an Operator to the first write of its program, whose code is compiled."""
    place, took = host.place, []
    for one in place.spare * times:
        began = time.monotonic()
        place.cluster.create(one.manifest())
        place.wait_until_started([one])
        took.append(time.monotonic() - began)
        place.cluster.delete(*OPERATOR, "one", one.namespace)
        host.wait_until_none(one)
        place.forget_answer(one)
        time.sleep(PAUSE_SECONDS)
    return took


def starts_of_processes(place, programs, log, times):
    """The same from the start of a process."""
    took = []
    for one in place.spare * times:
        began = time.monotonic()
        process = NativeProcesses(place, [one], programs, log)
        try:
            place.wait_until_started([one])
            took.append(time.monotonic() - began)
        finally:
            process.close()
        place.forget_answer(one)
        time.sleep(PAUSE_SECONDS)
    return took


class NativeProcesses(Processes):
    """Operators as processes of their own."""

    def __init__(self, place, operators, programs, log):
        self.place = place
        super().__init__([one.command(programs) for one in operators], log, {"KUBECONFIG": str(place.cluster.kubeconfig)})

    def peak_memory(self):
        """MiB: the sum of the peaks of all processes, as the kernel counted them."""
        return sum(int(pathlib.Path(f"/proc/{one.pid}/status").read_text().split("VmHWM:")[1].split()[0]) for one in self.processes) / 1024


def first_ones(place, directory, changes):
    """Anonymous memory of a host with one sleeping operator of each program, after as many changes as of all operators: the
    memory that a host has for its programs and keeps after work does not belong to an operator."""
    few = place.operators[:len(PROGRAMS)]
    for one in few:
        place.cluster.create(one.manifest())
    host = Hosted(place, directory)
    try:
        host.wait_until_ready()
        place.wait_until_started(few, COMPILED_SECONDS)
        host.wait_until_asleep(len(few))
    finally:
        host.stop()
    host = Hosted(place, directory)  # One that has compiled nothing.
    try:
        host.wait_until_ready()
        host.wait_until_asleep(len(few))
        for number in range(changes):
            place.ask(few[number % len(few)])
        host.wait_until_asleep(len(few))
        return harness.settled_memory(host.pid, SETTLE_SECONDS)["anonymous"]
    finally:
        host.stop()


SERIES = ("wakes", "resumes", "resume_seconds", "suspends", "suspend_seconds", "cpu_seconds")


def measure(host, natives, rounds, never_sleep=False):
    """Rounds of both in turns, and for each change of the host what the series of its operators say."""
    count = len(host.place.operators)
    ours, theirs = Turns(host, lambda: never_sleep or host.wait_until_asleep(count)), Turns(natives, lambda: None)
    before = {name: host.total(f"hangar_controller_{name}_total") for name in SERIES}
    for number in range(rounds):
        for turns in (ours, theirs) if number % 2 else (theirs, ours):
            turns.take()
        progress(f"round {number + 1} of {rounds}: CPU {ours.cpu_ms():.1f} ms, {theirs.cpu_ms():.1f} ms natively; "
                 f"p50 {percentile(ours.took, 50):.1f} ms, {percentile(theirs.took, 50):.1f} ms natively")
    series = {name: (host.total(f"hangar_controller_{name}_total") - value) / rounds / count for name, value in before.items()}
    assert never_sleep or series["resumes"] >= 1, f"operators were in memory when they were asked: {series['resumes']:.2f} resumes a change"
    return ours, theirs, series


def add_turns(report, label, ours, theirs, state="asleep"):
    report.add(f"{label}CPU of a change, the host's own included", "ms", ours.cpu_ms(), theirs.cpu_ms(), PEER, at_most_of_peer(2.5))
    for percent in (50, 99):
        report.add(f"{label}change to write, {state}, p{percent}", "ms", percentile(ours.took, percent), percentile(theirs.took, percent), PEER)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few operators: shows that it works, not what it costs")
    parser.add_argument("--operators", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="directory of the native programs")
    options = parser.parse_args()
    count = options.operators or (9 if options.quick else 50)
    rounds = options.rounds or (1 if options.quick else 10)
    starts, idle_seconds = (1, 1) if options.quick else (7, 20)
    if count <= len(PROGRAMS):
        parser.error(f"more than {len(PROGRAMS)} operators are needed")

    report = harness.Report("go_operators.quick" if options.quick else "go_operators")
    OUT.mkdir(parents=True, exist_ok=True)
    hosts.compiled = OUT / "go_operators.code"
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="go_operators.", dir=OUT))  # Code is shared by links.
    with contextlib.ExitStack() as ending:
        ending.callback(shutil.rmtree, scratch, ignore_errors=True)
        progress(f"{count} namespaces on two control planes")
        places = [Place(count) for _ in range(2)]
        for one in places:
            ending.callback(one.close)
        ours, theirs = places
        without = [one.watches() for one in places]

        progress("a host with one operator of each program")
        first = first_ones(ours, scratch / "host", rounds * count)

        progress(f"{count} operators start")
        for one in ours.operators[len(PROGRAMS):]:
            ours.cluster.create(one.manifest())
        began = time.monotonic()
        hosted = Hosted(ours, scratch / "host")
        ending.callback(lambda: hosted.stop())
        with hosted.peak_memory() as peak:
            hosted.wait_until_ready()
            ours.wait_until_started(ours.operators)
            started = time.monotonic() - began
            hosted.wait_until_asleep(count)
        progress(f"{count} processes start")
        began = time.monotonic()
        natives = NativeProcesses(theirs, theirs.operators, options.programs, scratch / "native.log")
        ending.callback(natives.close)
        theirs.wait_until_started(theirs.operators)
        started_natively, peak_natively = time.monotonic() - began, natives.peak_memory()

        for one in places:
            one.round(0)
        turns = measure(hosted, natives, rounds)
        ours.round(0)
        code_awake = hosted.code()
        progress("nothing happens")
        asleep, resident = idle(hosted, natives, idle_seconds)
        code, disks, disk = hosted.code(), hosted.disks(), disk_bytes(hosted.pid) / 1024
        watches = [{kind: (one.watches() - before)[kind] for kind in WATCHED} for one, before in zip(places, without)]
        progress("starts, one at a time")
        guests = starts_of_guests(hosted, starts)
        processes = starts_of_processes(theirs, options.programs, scratch / "native.log", starts)

        progress("a process for each namespace")
        hosted.stop()
        hosted = Hosted(ours, scratch / "host", "namespace")
        hosted.wait_until_ready()
        hosted.wait_until_asleep(count)
        ours.round(0)
        walled = measure(hosted, natives, max(1, rounds // 3))
        walled_asleep, _ = idle(hosted, natives, 1)

        progress("operators that never sleep")
        hosted.stop()
        for one in ours.operators:
            ours.cluster.patch(*OPERATOR, "one", {"spec": {"sleep": {"policy": "Never"}}}, one.namespace)
        hosted = Hosted(ours, scratch / "host")
        hosted.wait_until_ready()
        ours.round(0)
        ours.round(0)
        awake = measure(hosted, natives, max(1, rounds // 3), never_sleep=True)

    report.add("anonymous memory of a sleeping operator, beyond the first of each program", "KiB",
               (asleep["anonymous"] - first) * 1024 / (count - len(PROGRAMS)), resident["anonymous"] * 1024 / count, PEER, at_most(8))
    report.add(f"anonymous memory, {count} operators asleep, the host included", "MiB", asleep["anonymous"], resident["anonymous"], PEER)
    report.add("the same, RSS", "MiB", asleep["rss"], resident["rss"], PEER)
    report.add("the same, PSS", "MiB", asleep["pss"], resident["pss"], PEER)
    report.add("compiled code right after work, resident", "MiB", code_awake["resident"])
    report.add("compiled code of sleeping operators: mapped", "MiB", code["mapped"], target=at_most(0))
    report.add("compiled code of sleeping operators: resident", "MiB", code["resident"], target=at_most(0))
    report.add("disk of a sleeping operator: its snapshot, median", "KiB", disks)
    report.add("the same, largest", "KiB", max(disks))
    report.add("disk of a sleeping operator, shared images included, mean", "KiB", disk / count)
    add_turns(report, "", *turns[:2])
    report.add("start of an operator to its first write, code compiled", "s", guests, processes, PEER, at_most(0.3))
    report.add(f"start of the host until all {count} have written", "s", started, started_natively, PEER)
    report.add("peak RSS while they start", "MiB", peak["rss"], peak_natively, f"{PEER}: sum of their peaks", at_most(200))
    report.add("peak PSS while they start", "MiB", peak["pss"])
    report.add("peak anonymous memory while they start", "MiB", peak["anonymous"], target=at_most(200))
    report.add("watches at the API server", "", sum(watches[0].values()), sum(watches[1].values()), PEER, at_most(len(WATCHED)))
    report.add("CPU of a second in which nothing happens", "ms", asleep["cpu_ms"], resident["cpu_ms"], PEER)
    add_turns(report, "never asleep: ", *awake[:2], state="in memory")
    add_turns(report, "a process for each namespace: ", *walled[:2])
    report.add("a process for each namespace: anonymous memory, all asleep", "MiB", walled_asleep["anonymous"], resident["anonymous"], PEER)
    for label, (_, _, seen) in (("", turns), ("never asleep: ", awake), ("a process for each namespace: ", walled)):
        report.note(f"{label}in a change {seen['wakes']:.2f} turns; {seen['resumes']:.2f} resumes, {1000 * seen['resume_seconds']:.1f} ms; {seen['suspends']:.2f} suspends, "
                    f"{1000 * seen['suspend_seconds']:.1f} ms; {1000 * seen['cpu_seconds']:.1f} ms of CPU in the guest")
    report.note("watches: " + ", ".join(f"{kind} {watches[0][kind]} (natively {watches[1][kind]})" for kind in WATCHED))
    report.note(f"{count} operators of {len(PROGRAMS)} programs; starts: {', '.join(f'{one:.2f}' for one in guests)} s, "
                f"natively {', '.join(f'{one:.2f}' for one in processes)} s")
    report.finish()


if __name__ == "__main__":
    main()
