"""An operator to which nothing happens is never woken. It takes longer than client-go's watches last in a pod: tests/quiet/run.sh runs this."""
import os
import time

import pytest

import memos
from cluster import eventually
from host import Host, to_its_end
from memos import COMPILED, asleep, built, resumes, text_of
from operators import OPERATOR

MINUTES = float(os.environ["HANGAR_QUIET_MINUTES"])


@pytest.fixture
def host(own_cluster, tmp_path):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path / "host", "--features=operators"))


def watches(host):
    """How many watches of guests have begun."""
    return sum(value for name, value in host.metrics().items() if name.startswith("hangar_gateway_requests_total") and 'verb="watch"' in name)


def test_nothing_wakes_an_operator_for_eleven_minutes_and_its_watch_still_works(own_cluster, host, own_namespace, built):
    memos.run(own_cluster, own_namespace, after="200ms")
    asleep(own_cluster, own_namespace, COMPILED)
    memos.make(own_cluster, own_namespace, "note", "before")
    eventually(lambda: text_of(own_cluster, own_namespace, "note") == "before", "the text is kept", 60)

    def figures():
        return resumes(host, own_namespace), watches(host)

    def settled():
        before = figures()
        time.sleep(5)
        return before if figures() == before else None
    before = eventually(settled, "late events have been handled", 60)
    assert before[0] > 0 and before[1] >= 2, f"resumes and watches: {before}"
    end = time.monotonic() + MINUTES * 60
    while time.monotonic() < end:
        assert figures() == before, f"woken {end - time.monotonic():.0f} s before the end"
        time.sleep(5)

    own_cluster.patch(*memos.MEMO, "note", {"spec": {"text": "after"}}, own_namespace)
    eventually(lambda: text_of(own_cluster, own_namespace, "note") == "after", "the change is seen", 60)

    assert watches(host) == before[1], "by the watches of the beginning"
    assert resumes(host, own_namespace) > before[0]
    assert asleep(own_cluster, own_namespace)["status"]["restarts"] == 0
    own_cluster.delete(*OPERATOR, "memo", own_namespace)
