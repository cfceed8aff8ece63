#!/usr/bin/env python3
"""A ring of N controllers: each watches its namespace and copies a larger nonce to the next one's.

The experiment of the wasm-operator paper, driven and measured by one small client with connections that it keeps. One round
is a nonce that goes once around; a hop is a round divided by N. Every variant runs on the same control plane of this
machine, one after the other; memory is that of all of the variant's processes, measured from outside.

    bench/ring/run.sh [--quick] [--operators=N] [--rounds=N] [--only=VARIANT,...]

N is 10, 50, 100 or 1000 in the published figures. Beyond 200 only variants with one module and one process for all run
unless others are requested: compiling a thousand modules takes ten minutes, and a thousand processes take many GiB.
"""
import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from harness import ROOT, at_most, at_most_of_peer, progress  # noqa: E402
from cluster import Cluster, eventually  # noqa: E402
from hangar_run import Hangar, Processes, apiserver_watches, directory_of_operators  # noqa: E402
from rings import GUEST, WARM_ROUNDS, Ring, ring_directory  # noqa: E402

PEERS = ROOT / "build/bench/bin"
SLEEP_FLAGS = {"asleep": "--sleep-after=0s", "resident": "--never-sleep"}


def apiserver_memory(cluster):
    """MiB, as harness.memory()."""
    pid = (pathlib.Path(cluster.dir) / "run/kube-apiserver.pid").read_text().split()[0]
    return harness.memory(pid)


def restart_apiserver(ring):
    """Restarts it so that its memory is due to this variant alone."""
    ring.cluster.component("stop", "kube-apiserver")
    ring.cluster.component("start", "kube-apiserver")
    eventually(ring._is_served, "the kind is served", 60)


# Measuring --------------------------------------------------------------------------------------------

def measure(ring, processes, rounds, settle_seconds):
    """Figures of one variant whose processes have started."""
    eventually(lambda: processes.alive() or None, "the processes live", 5)
    ring.warm_up()
    before = processes.cpu_seconds()
    times = [ring.round() for _ in range(rounds)]
    cpu = processes.cpu_seconds() - before
    active = processes.memory()
    watches = apiserver_watches(ring.cluster.request("GET", "/metrics"))["testresources"] - 1  # Ours.
    active_group = processes.group_memory()
    idle = processes.settled_memory(settle_seconds)
    return {"hop_ms": 1000 * statistics.median(times) / ring.count, "cpu_ms": 1000 * cpu / rounds / ring.count,
            "active": active, "idle": idle, "watches": watches, "active_group": active_group,
            "idle_group": processes.group_memory(), "apiserver": apiserver_memory(ring.cluster)}


def hangar(cluster, ring, directory, cache, rounds, settle, *flags, distinct):
    ring_directory(ring, directory, ring.count, distinct)
    processes = Hangar(cluster, directory, cache, *flags)
    try:
        seen = measure(ring, processes, rounds, settle)
        seen["disk_kib"] = processes.disk_bytes() / 1024
        seen["page_cache_mib"] = processes.page_cache_bytes() / harness.MIB
        metrics = processes.metrics()
        seen["failures"] = metrics["hangar_operator_failures_total"]
        seen["suspends"] = metrics["hangar_operator_suspends_total"]
        assert seen["failures"] == 0, f"guests failed: {(directory / 'run.log').read_text()[-2000:]}"
        return seen
    finally:
        processes.close()


TURN_ROUNDS = 5


def in_turns(cluster, ring, directory, cache, rounds, distinct):
    """Hops of operators that sleep, of operators that do not, and of a bare client, in turns, again and again.

    The machine's speed changes from minute to minute by more than the differences between them.
    """
    ring_directory(ring, directory, ring.count, distinct)
    times, cpu = {"asleep": [], "resident": [], "bare": []}, {"asleep": 0.0, "resident": 0.0}
    for _ in range(-(-rounds // TURN_ROUNDS)):
        for name in cpu:
            host = Hangar(cluster, directory, cache, SLEEP_FLAGS[name])
            try:
                ring.warm_up()
                before = host.cpu_seconds()
                times[name] += [ring.round() for _ in range(TURN_ROUNDS)]
                cpu[name] += host.cpu_seconds() - before
            finally:
                host.close()
        times["bare"] += [ring.bare_round() for _ in range(TURN_ROUNDS)]
    return {"hop_ms": {name: 1000 * statistics.median(seen) / ring.count for name, seen in times.items()},
            "cpu_ms": {name: 1000 * seen / len(times[name]) / ring.count for name, seen in cpu.items()}}


def one_operator(cluster, ring, directory, cache, hops, settle):
    """Memory of a host with one sleeping operator that took as many hops as all of a ring did: the memory that a host keeps
    after work does not belong to an operator."""
    directory_of_operators(directory, GUEST, 1, True, environment=lambda _: {
        "IN_NAMESPACE": ring.namespaces[0], "OUT_NAMESPACE": ring.namespaces[-1]})
    processes = Hangar(cluster, directory, cache, "--sleep-after=0s")
    try:
        ring.round(300)
        for _ in range(hops):
            ring.round()
        return processes.settled_memory(settle)
    finally:
        processes.close()


def memory_without_operators(cluster, directory, settle):
    """Memory of `hangar host` without any Operator or Airway."""
    host = harness.hangar_host_class()(cluster.kubeconfig, directory)
    try:
        return harness.settled_memory(host.process.pid, settle)
    finally:
        host.stop()


def peer(ring, commands, rounds, settle, log, env):
    processes = Processes(commands, log, env)
    try:
        return measure(ring, processes, rounds, settle)
    finally:
        processes.close()


# Beyond this many controllers, variants with a module or a process for each do not run unless requested.
MANY = 200
VARIANTS = ("asleep", "resident", "asleep-shared", "resident-shared", "go", "rust", "go-one", "rust-one")
SHARED = ("asleep-shared", "resident-shared", "go-one", "rust-one")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--operators", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only")
    options = parser.parse_args()
    count = options.operators or (10 if options.quick else 100)
    rounds = options.rounds or (3 if options.quick else 30)
    settle = 1 if options.quick else 15  # Code of sleeping guests leaves memory after some seconds, too.
    only = options.only.split(",") if options.only else SHARED if count > MANY else VARIANTS
    unknown = set(only) - set(VARIANTS)
    if unknown:
        parser.error(f"no variant {', '.join(sorted(unknown))}: there are {', '.join(VARIANTS)}")

    report = harness.Report("ring.quick" if options.quick else "ring")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-ring-"))
    cluster = Cluster()
    try:
        ring = Ring(cluster, count)
        cache = scratch / "cache"
        env = {"KUBECONFIG": str(cluster.kubeconfig)}
        seen = {}
        for variant in only:
            progress(f"{variant}: {count} controllers, {rounds} rounds")
            restart_apiserver(ring)
            if variant.startswith(("asleep", "resident")):
                seen[variant] = hangar(cluster, ring, scratch / variant, cache, rounds, settle, SLEEP_FLAGS[variant.split("-")[0]],
                                       distinct="shared" not in variant)
            else:
                program = PEERS / f"ring_{variant.split('-')[0]}"
                if variant.endswith("-one"):
                    commands = [[program, f"--count={count}"]]
                else:
                    commands = [[program, f"--in=ring{index}", f"--out=ring{(index + 1) % count}"] for index in range(count)]
                seen[variant] = peer(ring, commands, rounds, settle, scratch / f"{variant}.log", env)
            progress(f"  hop {seen[variant]['hop_ms']:.2f} ms, CPU {seen[variant]['cpu_ms']:.2f} ms, idle anonymous "
                     f"{seen[variant]['idle']['anonymous']:.1f} MiB, the API server {seen[variant]['apiserver']['rss']:.0f} MiB")
        nobody = memory_without_operators(cluster, scratch / "nobody", settle)
        single = None
        if {"asleep", "asleep-shared"} & set(only):
            single = one_operator(cluster, ring, scratch / "single", cache, (rounds + WARM_ROUNDS) * count, settle)
        turns = {}
        for asleep, resident in (("asleep", "resident"), ("asleep-shared", "resident-shared")):
            if {asleep, resident} <= set(only):
                progress(f"{asleep}, {resident} and a bare client in turns")
                restart_apiserver(ring)
                turns[asleep] = in_turns(cluster, ring, scratch / f"turns-{asleep}", cache, rounds, distinct=asleep == "asleep")
        ring.close()
        fill(report, seen, turns, nobody, single, count)
    finally:
        cluster.close()
        shutil.rmtree(scratch, ignore_errors=True)
    report.finish()


def fill(report, seen, turns, nobody, single, count):
    def of(variant, *path):
        value = seen.get(variant)
        for key in path:
            value = None if value is None else value[key]
        return value

    natives = [("go", "N Go processes, client-go"), ("rust", "N Rust processes, kube"),
               ("go-one", "one Go process"), ("rust-one", "one Rust process")]

    def add_hangar(asleep, resident, many, label):
        """`many`: the peers with a process for each, or with one for all."""
        rust, go = f"rust{many}", f"go{many}"
        if asleep in seen:
            report.add(f"{label}asleep: anonymous memory, idle", "MiB", of(asleep, "idle", "anonymous"), of(rust, "idle", "anonymous"),
                       dict(natives)[rust], at_most(12))
            if single and count > 1:
                beyond = (of(asleep, "idle", "anonymous") - single["anonymous"]) * 1024 / (count - 1)
                report.add(f"{label}asleep: anonymous memory an operator, beyond the first", "KiB", beyond, target=at_most(4))
            report.add(f"{label}asleep: disk an operator, beyond the code", "KiB", of(asleep, "disk_kib") / count, target=at_most(64))
            report.add(f"{label}asleep: page cache of code, images, snapshots", "MiB", of(asleep, "page_cache_mib"),
                       target=at_most(329 / 4) if count == 100 else None)
            report.add(f"{label}asleep: cgroup, idle", "MiB", of(asleep, "idle_group"), of(rust, "idle_group"), dict(natives)[rust])
            report.add(f"{label}asleep: watches at the API server", "", of(asleep, "watches"), of(go, "watches"), dict(natives)[go], at_most(1))
            report.add(f"{label}asleep: RSS of the API server", "MiB", of(asleep, "apiserver", "rss"), of(go, "apiserver", "rss"), dict(natives)[go])
        if beside := turns.get(asleep):
            hop, cpu = beside["hop_ms"], beside["cpu_ms"]
            report.add(f"{label}latency a hop, asleep", "ms", hop["asleep"], hop["resident"], "hangar, resident", at_most_of_peer(1.3))
            report.add(f"{label}CPU a hop, asleep", "ms", cpu["asleep"], cpu["resident"], "hangar, resident", at_most_of_peer(2))
            report.add(f"{label}latency a hop, resident", "ms", hop["resident"], hop["bare"], "a bare client's GET and PUT", at_most_of_peer(1.2))
        if resident in seen:
            report.add(f"{label}resident: anonymous memory, idle", "MiB", of(resident, "idle", "anonymous"))
            report.add(f"{label}resident: cgroup, idle", "MiB", of(resident, "idle_group"), of(rust, "idle_group"), dict(natives)[rust])

    add_hangar("asleep", "resident", "", "")
    add_hangar("asleep-shared", "resident-shared", "-one", "one module: ")
    # The row with which the peers are compared.
    asleep, resident = (name if name in seen else f"{name}-shared" for name in ("asleep", "resident"))
    for variant, name in natives:
        if variant not in seen:
            continue
        for figure, unit, path in (("latency a hop", "ms", ["hop_ms"]), ("CPU a hop", "ms", ["cpu_ms"]), ("PSS active", "MiB", ["active", "pss"]),
                                   ("PSS idle", "MiB", ["idle", "pss"]), ("RSS of the API server", "MiB", ["apiserver", "rss"])):
            report.add(f"{figure}, resident, against {variant}", unit, of(resident, *path), of(variant, *path), name)
        report.add(f"PSS idle, asleep, against {variant}", "MiB", of(asleep, "idle", "pss"), of(variant, "idle", "pss"), name)
    if nobody:
        report.add("host without operators", "MiB RSS", nobody["rss"], target=at_most(20))
    report.note(f"{count} controllers; distinct modules unless shared; memory of all processes of a variant")


if __name__ == "__main__":
    main()
