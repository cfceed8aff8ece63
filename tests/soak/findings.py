"""Conclusions of a soak from its measurements: pure functions, tested beside it."""
import dataclasses
import datetime
import json
import statistics

# Cycles whose figures are not compared: the heap and the caches of a host grow until it has met everything once.
WARM_UP = 2
# By how much a figure may have grown from the first cycles to the last.
GROWTH_MOST = 0.05
# For descriptors, in any case: connections that are being replaced.
DESCRIPTORS_MOST = 3
# Of one module in use: its native code, as it is mapped and as guest processes get it, and two images of its memory.
DESCRIPTORS_OF_A_MODULE = 4
# How long after its cause a failure still counts as due to that cause: the guest was in its back-off, or waited for
# an answer.
AFTERMATH = 60.0


@dataclasses.dataclass(frozen=True)
class Window:
    """A time in which something was wrong through no fault of the host; in one namespace, or everywhere."""
    began: float
    ended: float
    namespace: str | None = None

    def explains(self, failure):
        return self.began <= failure.at <= self.ended + AFTERMATH and self.namespace in (None, failure.namespace)


@dataclasses.dataclass(frozen=True)
class Failure:
    at: float
    namespace: str
    name: str
    error: str


def ends(values, warm_up=WARM_UP):
    """Medians of the first and of the last third of the measurements after the warm-up; None for too few values."""
    steady = values[warm_up:]
    if len(steady) < 3:
        return None
    third = len(steady) // 3
    return statistics.median(steady[:third]), statistics.median(steady[-third:])


def growth(values, warm_up=WARM_UP):
    """By which part the last third is above the first, negative if it is below. None: too few cycles to tell."""
    seen = ends(values, warm_up)
    return None if seen is None else seen[1] / seen[0] - 1


def is_flat(values, warm_up=WARM_UP, least=0):
    """Whether it has grown by no more than GROWTH_MOST, or by `least`. A decrease is not a leak."""
    seen = ends(values, warm_up)
    return seen is not None and seen[1] - seen[0] <= max(GROWTH_MOST * seen[0], least)


def failures_in(lines):
    """The guests that failed, by lines of the host's log."""
    for line in lines:
        if '"a guest failed"' not in line:
            continue
        entry = json.loads(line)
        yield Failure(datetime.datetime.fromisoformat(entry["ts"].replace("Z", "+00:00")).timestamp(),
                      entry["namespace"], entry["name"], entry["error"])


def without_cause(failures, windows):
    return [one for one in failures if not any(window.explains(one) for window in windows)]


def orphans_among(objects, uids):
    """The guests whose controller or other owner no longer exists. `uids`: of all possible owners."""
    return [one for one in objects
            if one["metadata"].get("ownerReferences") and "deletionTimestamp" not in one["metadata"]
            and not any(owner["uid"] in uids for owner in one["metadata"]["ownerReferences"])]


@dataclasses.dataclass(frozen=True)
class BusyDay:
    """Averages per hour, over eight hours, of a busy day of a thousand operators: each definition is changed once, each of
    ten programs has two releases, each of two hundred teams has its rights changed once, eight teams come and eight go, and
    each operator has work six times an hour."""
    definitions: float = 1000 / 8
    releases: float = 10 * 2 / 8
    rights: float = 200 / 8
    teams: float = 8 / 8
    questions: float = 1250 * 6.0

    def per_second(self, times, share):
        """`times` as fast, for `share` of the operators. All rates but the releases of programs follow the share."""
        return {"definitions": times * share * self.definitions / 3600, "releases": times * self.releases / 3600,
                "rights": times * share * self.rights / 3600, "teams": times * share * self.teams / 3600,
                "questions": times * share * self.questions / 3600}
