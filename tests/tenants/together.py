"""Several ways of harm at once, each by a tenant of its own."""
import concurrent.futures
import dataclasses
import threading
import typing

from cluster import eventually
from tenant import Tenant

# How many attacks begin at the same time: each waits for the host more than it computes.
BEGUN_AT_ONCE = 6


@dataclasses.dataclass
class Attack:
    way: typing.Any
    attacker: Tenant
    # The generator from `way.begin`; resumed, it concludes.
    generator: typing.Any
    # The function that says how far it has got, once it has begun.
    pressure: typing.Callable | None = None
    # Why it could not begin.
    trouble: str = ""

    def is_going_on(self):
        return self.pressure is not None and self.pressure() > 0

    def begin(self, patience):
        try:
            self.pressure = next(self.generator)
            eventually(lambda: self.pressure() > 0 or not self.attacker.stage.is_alive(), f"{self.way.name} goes on", patience)
        except Exception as error:  # Whatever the error, this attack does not take part.
            self.trouble = (str(error) or repr(error)).splitlines()[0]


class Together:
    """The attacks of these ways, each by a tenant of its own. `begin()` returns when each goes on, or cannot."""

    def __init__(self, stage, ways, label):
        self.attacks = [Attack(way, attacker, way.begin(attacker))
                        for way, attacker in ((way, Tenant(stage, stage.victim, f"{label}-{index}")) for index, way in enumerate(ways))]
        self._beginning = None

    def begin(self, patience=60):
        with concurrent.futures.ThreadPoolExecutor(BEGUN_AT_ONCE) as hands:
            list(hands.map(lambda attack: attack.begin(patience), self.attacks))

    def begin_meanwhile(self, patience=60):
        """Returns the thread that does it."""
        self._beginning = threading.Thread(target=self.begin, args=(patience,), daemon=True)
        self._beginning.start()
        return self._beginning

    def attackers(self):
        return [attack.attacker for attack in self.attacks]

    def leave(self):
        if self._beginning:
            self._beginning.join()
        for attack in self.attacks:
            attack.attacker.leaves()

    def close(self):
        """Call it after they have left, or could not."""
        if self._beginning:
            self._beginning.join()
        for attack in self.attacks:
            attack.attacker.stops()
            attack.generator.close()
