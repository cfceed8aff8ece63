#!/usr/bin/env python3
"""How long a tenant waits while another one attacks: alone, beside each way of tests/tenants/ways.py, and beside all
at once.

The victim asks its operator, its workflow and its Airway's instance as fast as they answer. The figure is the 99th
percentile of all answers beside an attack, as a multiple of the one alone in the same run. The same is told of reviews of an
instance by the host's webhook, and of the time until a deleted operator of the victim is gone; there, times below a floor
count as the floor, since nobody notices them. The peer is another build of the
host, such as the last release, in a directory with its programs; it is attacked in the same way in the same run.

    bench/tenants/run.sh [--quick] [--seconds=N] [--together=N] [--ways=NAME,...] [--peer=DIRECTORY]
"""
import argparse
import contextlib
import math
import pathlib
import re
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/tenants")]

import harness  # noqa: E402
from harness import MIB, at_most, progress  # noqa: E402
from host import BINARY  # noqa: E402
from cluster import ApiError, eventually  # noqa: E402
from stage import Stage  # noqa: E402
from together import Together  # noqa: E402
from victim import Victim  # noqa: E402
from ways import WAYS  # noqa: E402

# Seconds after which the victim gives up on an answer.
PATIENCE = 60
# How much slower a victim may become beside an attack, and how long stopping an operator may take.
SLOWER = at_most(2)
# Below this, a longer time is no harm: what an answer may take at the 99th percentile, and a person's patience.
REVIEW_FLOOR_MS = 100
REMOVAL_FLOOR_MS = 1000
# Operators that the victim deletes, one after the other; the slowest counts.
REMOVALS = 3
STOPPED = at_most(5)
# Long work of the main loop is cut into pieces that should take no longer.
TURN_MS = 2
# What the victim is promised: its operator answers a change within so many milliseconds, if nobody attacks.
SERVED = at_most(100)


class Ended(Exception):
    """The host is gone, or has stopped serving the victim."""


def sample(stage, seconds, spares):
    """The figures of all answers and reviews over rounds of that many seconds, and of the removals of `spares` after them."""
    took, operator, reviews, end = [], [], [], time.monotonic() + seconds
    unanswered = len(stage.victim.unanswered_reviews)
    try:
        while time.monotonic() < end:
            seen = stage.victim.round()
            if (review := seen.pop("review", None)) is not None:
                reviews.append(review)
            took += seen.values()
            operator.append(seen["operator"])
        removals = [stage.victim.removes(spare) for spare in spares]
    except (AssertionError, ApiError, OSError) as error:
        raise Ended(str(error).splitlines()[0]) from None
    return {"p99": p99_ms(took), "answers": len(took), "operator": p99_ms(operator), "review": p99_ms(reviews) if reviews else None,
            "unanswered": len(stage.victim.unanswered_reviews) - unanswered, "removal": 1000 * max(removals) if removals else None}


def begin_spares(stage):
    return [stage.victim.begins_spare() for _ in range(REMOVALS)] if stage.victim.sees_removals() else []


def p99_ms(took):
    return 1000 * harness.percentile(took, 99)


def loop_turns(host):
    """How many turns of the main loop took at most so many seconds, by that bound."""
    found = {re.search('le="([^"]+)"', name)[1]: count for name, count in host.metrics().items() if name.startswith("hangar_loop_turn_seconds_bucket")}
    return {float(bound): count for bound, count in found.items()}  # float("+Inf") is infinity.


def long_turns(before, after):
    """Of the turns between: the percentage of those longer than TURN_MS, and milliseconds that none exceeded (None: more than all bounds)."""
    turns = {bound: after[bound] - before[bound] for bound in sorted(after)}
    total = turns.pop(math.inf)
    longest = next((1000 * bound for bound, count in turns.items() if count == total), None)
    return {"long_turns": 100 * (1 - turns[TURN_MS / 1000] / max(total, 1)), "longest_turn": longest}


def time_to_stop(stage, attackers, before):
    """Seconds from the deletion of the attackers' operators until none of them is left in the host."""
    for attacker in attackers:
        attacker.stops()
    began = time.monotonic()
    for attacker in attackers:
        attacker.leaves()
    eventually(lambda: stage.host.metrics()["hangar_operators"] <= before, "the attackers' operators have ended", 300)
    return time.monotonic() - began


def attacked(stage, ways, label, seconds):
    """The victim's answer times beside these ways at once."""
    if not stage.is_alive() or stage.is_harmed:
        stage.renew()
        stage.victim.settle()
    stage.is_harmed = True
    lease = stage.lease()
    before = stage.host.metrics()["hangar_operators"]
    spares = begin_spares(stage)
    kills = stage.memory_kills()
    stage.forget_peak()
    turns = loop_turns(stage.host)
    seen = {"ended": None}
    together = Together(stage, ways, label)
    try:
        together.begin()
        seen |= sample(stage, seconds, spares)
        seen["peak"] = stage.peak_bytes() / MIB
        seen |= long_turns(turns, loop_turns(stage.host))
        seen["killed"] = stage.memory_kills() - kills
        seen["going"] = sum(attack.is_going_on() for attack in together.attacks)
        seen["stop"] = time_to_stop(stage, together.attackers(), before)
        if stage.lease() != lease:
            raise Ended("the Lease changed hands")
        stage.is_harmed = False
    except (Ended, AssertionError, OSError) as error:
        seen["ended"] = str(error).splitlines()[0]
    finally:
        for attacker in together.attackers():
            with contextlib.suppress(ApiError, OSError):
                attacker.leaves()
        together.close()
    return seen


def measure(name, binary, scratch, ways, options):
    """Figures by label, of one build of the host."""
    stage = Stage(scratch / name, binary=binary)
    figures = {}
    try:
        stage.is_harmed = False
        stage.victim = Victim(stage, PATIENCE)
        sample(stage, 3, begin_spares(stage))
        alone = sample(stage, options.alone, begin_spares(stage))
        figures["alone"] = {**alone, "peak": stage.peak_bytes() / MIB, "ended": None}
        for way in ways:
            progress(f"{name}: {way.name}")
            figures[way.name] = attacked(stage, [way], f"a-{way.name.replace('_', '-')[:40]}", options.seconds)
            progress(f"{name}: {way.name}: {figures[way.name]}")
        if options.together:
            progress(f"{name}: all at once")
            figures["all at once"] = attacked(stage, ways, "all", options.together)
    finally:
        stage.close()
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--together", type=float)
    parser.add_argument("--ways", default="")
    parser.add_argument("--peer", type=pathlib.Path)
    options = parser.parse_args()
    options.alone = 10 if options.quick else 30
    options.seconds = options.seconds or (3 if options.quick else 10)
    options.together = options.together if options.together is not None else (20 if options.quick else 300)
    ways = [way for way in WAYS if not options.ways or way.name in options.ways.split(",")]

    report = harness.Report("tenants.quick" if options.quick else "tenants")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hangar-bench-tenants-"))
    try:
        ours = measure("hangar", BINARY, scratch, ways, options)
        peers = measure("peer", options.peer / "hangar", scratch, ways, options) if options.peer else {}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

    peer_name = str(options.peer) if options.peer else None
    for figure, what, target in (("p99", "99th percentile of an answer", None), ("operator", "99th percentile of the operator", SERVED),
                                 ("review", "99th percentile of a review", None), ("removal", "until a deleted operator is gone", None)):
        report.add(f"alone: {what}", "ms", ours["alone"][figure], peers.get("alone", {}).get(figure), peer_name, target)
    for label, seen in ours.items():
        if label == "alone":
            continue
        peer = peers.get(label, {})

        def slower(figures, of, figure, floor):
            if not figures.get(figure) or figures["ended"]:
                return None
            return max(figures[figure], floor) / max(of["alone"][figure], floor)
        for figure, what, floor in (("p99", "99th percentile", 0), ("review", "99th percentile of a review", REVIEW_FLOOR_MS),
                                    ("removal", "until a deleted operator of the victim is gone", REMOVAL_FLOOR_MS)):
            report.add(f"{label}: {what}, of the one alone", "x", slower(seen, ours, figure, floor),
                       slower(peer, peers, figure, floor) if peer else None, peer_name, SLOWER)
        report.add(f"{label}: peak memory of the host", "MiB", seen.get("peak"), peer.get("peak"), peer_name, at_most(1024))
        report.add(f"{label}: until the attacker's operators are stopped", "s", seen.get("stop"), peer.get("stop"), peer_name, STOPPED)
        report.add(f"{label}: turns of the main loop longer than {TURN_MS} ms", "%", seen.get("long_turns"), peer.get("long_turns"), peer_name)
        report.add(f"{label}: no turn of the main loop was longer than", "ms", seen.get("longest_turn"), peer.get("longest_turn"), peer_name)
        for who, figures in (("hangar", seen), ("peer", peer)):
            if figures.get("ended"):
                report.note(f"{label}: {who} did not serve the victim: {figures['ended']}")
            if figures.get("killed"):
                report.note(f"{label}: the kernel ended {figures['killed']} processes of {who} for want of memory")
            if figures.get("unanswered"):
                report.note(f"{label}: {who} left {figures['unanswered']} reviews of the victim without an answer in time")
    report.finish()


if __name__ == "__main__":
    main()
