"""The promises of the files of figures to their readers."""
import json

from harness import Report, at_least, at_most, at_most_of_peer, percentile


def only_figure(**arguments):
    report = Report("test")
    report.add("figure", "ms", **arguments)
    return report.figures[0]


def test_a_figure_has_all_keys_whatever_was_measured():
    assert set(only_figure(hangar=None)) == {"figure", "unit", "hangar", "peer", "peer_name", "ratio", "target", "met"}


def test_rounds_count_by_their_median():
    figure = only_figure(hangar=[1, 100, 2], peer=[4], peer_name="it")
    assert (figure["hangar"], figure["peer"], figure["ratio"]) == (2, 4, 0.5)


def test_a_target_on_the_figure_does_not_look_at_the_peer():
    assert only_figure(hangar=64, peer=1, peer_name="it", target=at_most(64))["met"] is True
    assert only_figure(hangar=65, target=at_most(64))["met"] is False
    assert only_figure(hangar=149, target=at_least(150))["met"] is False


def test_a_target_on_the_ratio_needs_a_peer():
    assert only_figure(hangar=1, peer=5, peer_name="it", target=at_most_of_peer(0.2))["met"] is True
    assert only_figure(hangar=1, target=at_most_of_peer(0.2))["met"] is None


def test_a_peer_that_was_not_measured_has_no_name():
    assert only_figure(hangar=1, peer=None, peer_name="it")["peer_name"] is None


def test_nothing_measured_is_no_success():
    assert only_figure(hangar=[], target=at_most(1))["met"] is None


def test_the_file_is_a_list_of_the_figures(tmp_path):
    report = Report("test")
    report.add("one", "s", 1.0)
    assert json.loads(report.write(tmp_path / "test.json").read_text()) == report.figures


def test_a_percentile_is_a_value_that_was_measured():
    assert percentile([3, 1, 2], 50) == 2
    assert percentile(range(1, 101), 99) == 99
    assert percentile([7], 99) == 7
