"""All ways of harm together, for five minutes, beside a served victim. It takes longer than `make test` may: make test-long.

How long the victim waits is for the benchmark (make bench NAME=tenants): here the victim asks all the time, and each
question is answered.
"""
import os
import time

import pytest

from cluster import eventually
from together import Together
from ways import WAYS

SECONDS = float(os.environ.get("HANGAR_TOGETHER_SECONDS", "300"))
# A loss would affect one answer in a few hundred.
ROUNDS_LEAST = 20


@pytest.mark.long
def test_the_victim_is_served_beside_all_ways_together(stage, victim):
    lease, restarts = stage.lease(), victim.restarts()
    spare = victim.begins_spare()
    operators_before = stage.host.metrics()["hangar_operators"]
    kills = stage.memory_kills()
    stage.forget_peak()
    together = Together(stage, WAYS, "all")
    try:
        beginning = together.begin_meanwhile(patience=300)
        rounds = 0
        while beginning.is_alive():
            victim.round()
            rounds += 1
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends or rounds < ROUNDS_LEAST:
            victim.round()
            rounds += 1
        victim.begins_something_new()
        victim.removes(spare)

        idle = {attack.way.name: attack.trouble for attack in together.attacks if not attack.is_going_on()}
        assert not idle, f"not all attacks went on: {idle}"
        assert stage.is_alive() and stage.host.process.pid == stage.pid
        assert stage.lease() == lease, "the Lease changed hands"
        assert stage.peak_bytes() < stage.limit_bytes, f"{stage.peak_bytes() >> 20} MiB"
        assert stage.memory_kills() == kills, "the kernel has ended processes of the host for want of memory"
        assert victim.restarts() == restarts and victim.trouble() == {}
        for attacker in together.attackers():
            leaked = [text for text in attacker.everything_he_can_read() if victim.mark in text]
            assert not leaked, f"{attacker.name} can read what is the victim's: {leaked[0][:1000]}"
    finally:
        together.leave()
        together.close()
    eventually(lambda: stage.host.metrics()["hangar_operators"] <= operators_before, "the attackers' operators have ended", 120)
    victim.round()
