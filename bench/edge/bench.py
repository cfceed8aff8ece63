#!/usr/bin/env python3
"""A host in a cgroup of 128 MiB and half a core: the memory of 20 sleeping operators of five programs, page cache included, and how
long their wakes take, compared with a host without limits in the same run.

The programs are those of tests/soak: ring and answers (Rust), label_mirror (C++), assembly (WebAssembly text), website (Go). A question
is a change of an object that one operator watches, its answer is an object that the operator writes. Both hosts use the same directory,
one after the other: the first one has compiled all modules.

    bench/edge/run.sh [--quick] [--memory=128] [--cores=0.5]
"""
import argparse
import pathlib
import shutil
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent), str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/edge")]

import gardens  # noqa: E402
import harness  # noqa: E402
import programs  # noqa: E402
from gardens import Gardens, forget_cache  # noqa: E402
from harness import MIB, at_most, at_most_of_peer, percentile, progress  # noqa: E402

NAMESPACES = 4
ASLEEP_MIB_MAX = 64
SLOWER_MAX = 5
WRITTEN_MB_AN_HOUR_MAX = 1


def written_bytes(pid):
    """What the process has caused to be written to a disk."""
    for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    return 0


def wakes(all_gardens, rounds):
    """By program, the seconds of each answer; None for one that did not come."""
    taken = {}
    for number in range(rounds):
        progress(f"  round {number + 1} of {rounds}")
        for unit in all_gardens.units:
            taken.setdefault(unit.program.name, []).append(all_gardens.time_of_answer(unit))
    return taken


def came(taken):
    return [one for one in taken if one is not None]


def idle(host, seconds):
    """MB an hour that a host writes whose operators sleep."""
    before, began = written_bytes(host.process.pid), time.monotonic()
    time.sleep(seconds)
    return (written_bytes(host.process.pid) - before) / 1e6 * 3600 / (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", type=int, default=gardens.MEMORY // MIB, help="MiB")
    parser.add_argument("--cores", type=float, default=gardens.CORES)
    options = parser.parse_args()
    rounds, idle_seconds = (1, 20) if options.quick else (10, 300)

    try:
        machine = harness.SmallMachine("hangar-edge", options.memory * MIB, options.cores)
    except OSError as error:
        sys.exit(f"this machine does not allow a cgroup: {error}")
    report = harness.Report("edge.quick" if options.quick else "edge")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-edge-"))
    quiet_host = harness.hangar_host_class()
    gardens_here = Gardens(NAMESPACES, programs.OPERATORS)
    host = None
    try:
        count = len(gardens_here.units)
        progress(f"{count} operators of {len(programs.OPERATORS)} programs, without limits; their modules are compiled")
        host = quiet_host(gardens_here.cluster.kubeconfig, scratch / "host", *gardens_here.flags())
        gardens_here.begin(host)
        unlimited = wakes(gardens_here, rounds)
        host.stop()
        forget_cache(host)

        progress(f"the same in {options.memory} MiB and {options.cores:g} of a core")
        host = quiet_host(gardens_here.cluster.kubeconfig, scratch / "host", *gardens_here.flags(), *gardens.SMALL_FLAGS, inside=machine.inside())
        gardens_here.settle(host)
        written = idle(host, idle_seconds)
        asleep = machine.memory()
        limited = wakes(gardens_here, rounds)

        progress(f"the limit is lowered to {ASLEEP_MIB_MAX} MiB")
        gardens_here.wait_until_asleep(host, 120)
        try:
            machine.limit_memory(ASLEEP_MIB_MAX * MIB)
            fits = True
        except OSError:
            fits = False
        alive = host.process.poll() is None

        report.add(f"{count} operators asleep: memory, page cache included", "MiB", asleep["all"], target=at_most(ASLEEP_MIB_MAX))
        report.add(f"{count} operators asleep: of it, what the kernel cannot drop at once", "MiB", asleep["kept"])
        report.add("peak memory", "MiB", machine.peak_memory(), target=at_most(options.memory))
        for program, taken in limited.items():
            report.add(f"{program}: question to answer, median", "ms", [1000 * one for one in came(taken)],
                       [1000 * one for one in came(unlimited[program])], "without limits", at_most_of_peer(SLOWER_MAX))
        everything = [came(one for taken in runs.values() for one in taken) for runs in (limited, unlimited)]
        report.add("all: question to answer, 95th percentile", "ms", *(1000 * percentile(taken, 95) for taken in everything), "without limits",
                   at_most_of_peer(SLOWER_MAX))
        report.add("answers that did not come", "", sum(taken.count(None) for taken in limited.values()), target=at_most(0))
        report.add("processes that the kernel ended for memory", "", machine.kills(), target=at_most(0))
        report.add("written to disk while all sleep", "MB/h", written, target=at_most(WRITTEN_MB_AN_HOUR_MAX))
        report.add(f"the limit cannot be lowered to {ASLEEP_MIB_MAX} MiB while all sleep", "", 0 if fits and alive else 1, target=at_most(0))
        report.note("question to answer has the API server and a poll of 2 ms in it, for both hosts alike; the API server is outside of the cgroup")
    finally:
        if host:
            host.stop()
        gardens_here.close()
        machine.close()
        shutil.rmtree(scratch, ignore_errors=True)
    report.finish()


if __name__ == "__main__":
    main()
