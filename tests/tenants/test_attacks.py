"""Each way of harm beside a served victim: `ways.py` lists them, what each attacks, and what holds.

Claims that do not depend on the machine's speed: all of the victim's questions are answered, its instances reviewed and its
operators removed while the attack is shown to go on, the host is the same process with the same Lease, within its pod's memory, and nothing of the victim can be read in the
attacker's namespaces. How long the victim waits is for the benchmark: make bench NAME=tenants.
"""
import pytest

from cluster import eventually
from ways import WAYS

# Rounds of the victim during an attack: at least, and at most until the attack has got as far as it has to.
ROUNDS = range(5, 60)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_victim_is_served_beside(way, stage, victim, attacker):
    lease, restarts = stage.lease(), victim.restarts()
    spare = victim.begins_spare()
    operators_before = stage.host.metrics()["hangar_operators"]
    kills = stage.memory_kills()
    stage.forget_peak()
    attack = way.begin(attacker)
    pressure = next(attack)
    eventually(lambda: pressure() > 0 or not stage.is_alive(), f"the attack {way.name} goes on", 120)
    assert stage.is_alive(), f"the attack ended the host:\n{stage.host.tail()}"
    begun = pressure()

    for done in range(ROUNDS.stop):
        if done >= ROUNDS.start and pressure() >= way.enough:
            break
        victim.round()
    if way.stops_newcomers:
        victim.begins_something_new()
    victim.removes(spare)

    assert pressure() >= begun, "the attack was over before the victim had its answers"
    with_conclusion(attack)
    assert stage.is_alive() and stage.host.process.pid == stage.pid
    assert stage.lease() == lease, "the Lease changed hands"
    assert stage.peak_bytes() < stage.limit_bytes, f"{stage.peak_bytes() >> 20} MiB"
    assert stage.memory_kills() == kills, "the kernel has ended processes of the host for want of memory"
    assert victim.restarts() == restarts and victim.trouble() == {}
    leaked = [text for text in attacker.everything_he_can_read() if victim.mark in text]
    assert not leaked, f"the attacker can read what is the victim's: {leaked[0][:1000]}"
    # A tenant who leaves is gone, whatever his operators are doing.
    attacker.leaves()
    eventually(lambda: stage.host.metrics()["hangar_operators"] <= operators_before, "the attacker's operators have ended", 60)
    victim.round()


def with_conclusion(attack):
    """What this way in particular must not have achieved."""
    with pytest.raises(StopIteration):
        next(attack)


def test_ways_are_told_apart():
    names = [way.name for way in WAYS]
    assert len(names) == len(set(names))
    assert len({(way.attacks, way.how) for way in WAYS}) == len(WAYS)
    # As many resources and boundaries are attacked, however many ways there are to one of them.
    assert len({way.attacks for way in WAYS}) >= 40
