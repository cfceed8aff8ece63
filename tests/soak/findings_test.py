"""The conclusions of a soak."""
import json

from findings import DESCRIPTORS_MOST, BusyDay, Failure, Window, failures_in, growth, is_flat, orphans_among, without_cause


def test_what_happens_in_the_warm_up_does_not_count():
    assert is_flat([10, 50, 100, 100, 100, 104, 104, 104])
    assert round(growth([10, 50, 100, 100, 100, 104, 104, 104]), 3) == 0.04


def test_growth_beyond_a_twentieth_is_a_leak():
    assert is_flat([0, 0, 100, 102, 105])
    assert not is_flat([0, 0, 100, 102, 106])


def test_one_cycle_that_was_unlike_the_others_is_not_what_is_compared():
    assert is_flat([0, 0, 100, 100, 100, 100, 100, 100, 100, 180, 100])


def test_a_run_that_is_too_short_proves_nothing():
    assert growth([1, 1, 1, 1]) is None
    assert not is_flat([1, 1, 1, 1])


def test_what_becomes_less_is_no_leak():
    assert is_flat([0, 0, 100, 90, 50])


def test_a_few_descriptors_more_are_connections():
    assert is_flat([0, 0, 20, 20, 23], least=DESCRIPTORS_MOST)
    assert not is_flat([0, 0, 20, 20, 24], least=DESCRIPTORS_MOST)


def test_failures_are_read_from_the_log_only_where_the_host_says_so():
    lines = [json.dumps({"ts": "2026-01-02T03:04:05.678Z", "msg": "a guest failed", "namespace": "team", "name": "ring", "error": "trap"}, separators=(",", ":")),
             json.dumps({"ts": "2026-01-02T03:04:06.000Z", "msg": "output"}), "half a li"]
    (failure,) = failures_in(lines)
    assert (failure.namespace, failure.name, failure.error, failure.at) == ("team", "ring", "trap", 1767323045.678)


def test_a_failure_has_a_cause_only_where_and_when_that_was():
    failure = Failure(100, "team", "ring", "")
    assert not without_cause([failure], [Window(90, 95, "team")])
    assert not without_cause([failure], [Window(90, 95)])
    assert without_cause([failure], [Window(90, 95, "other")]) == [failure]
    assert without_cause([failure], [Window(10, 20)]) == [failure]
    assert without_cause([failure], [Window(101, 110)]) == [failure]


def test_an_orphan_has_owners_and_all_of_them_are_gone():
    def owned(*uids, **metadata):
        return {"metadata": {"ownerReferences": [{"uid": uid} for uid in uids], **metadata}}
    gone = owned("gone")
    assert orphans_among([gone, owned("here"), owned("gone", "here"), owned(), {"metadata": {}}, owned("gone", deletionTimestamp="now")],
                         {"here"}) == [gone]


def test_a_smaller_soak_has_as_many_releases():
    whole, tenth = BusyDay().per_second(4, 1), BusyDay().per_second(4, 0.1)
    assert whole["definitions"] == 10 * tenth["definitions"] and whole["releases"] == tenth["releases"]
