"""day_picture.py: what the simulation says, small and readable on light and dark pages."""
import pathlib
import re
import xml.etree.ElementTree

import pytest

from day_picture import BIN, DAY, DETAILS, per_bin, picture, share

DRAWN = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/operating/sleep/day.svg"
SVG = "{http://www.w3.org/2000/svg}"
BEGIN = DETAILS[0][1]


def made_up():
    wakes = [BEGIN + 1.0, BEGIN + 2.0, BEGIN + 8.0]
    return ((wakes, {"Idle": [(BEGIN + 1.0, BEGIN + 3.0), (BEGIN + 8.0, BEGIN + 9.0)], "Predictive": [(at, at + 0.002) for at in wakes]}),
            (wakes, {"Idle": [(BEGIN + 1.0, BEGIN + 3.0)], "Predictive": [(BEGIN + 0.5, BEGIN + 2.5)]}))


def test_stays_are_counted_in_the_ten_minutes_in_which_they_are():
    seconds = per_bin([(BIN - 1, BIN + 3), (DAY - 2, DAY)])
    assert (seconds[0], seconds[1], seconds[-1], sum(seconds)) == (1, 3, 2, 6)


def test_a_bar_is_logarithmic():
    assert share(0, 600) == 0 and share(0.05, 600) == 0 and share(600, 600) == 1
    assert share(6, 600) - share(0.6, 600) == pytest.approx(share(60, 600) - share(6, 600))


def test_the_picture_has_the_policies_their_stays_and_the_sums():
    drawn = picture(*made_up())
    root = xml.etree.ElementTree.fromstring(drawn)
    said = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert {"events", "Never", "Idle", "Predictive", "small, Idle", "large, Predictive"} <= set(said)
    assert "3 events. Small guest: Idle 3 s in memory and 2 resumes, Predictive 0 s in memory and 3 resumes." in said
    bars = [one for one in root.iter(f"{SVG}rect") if one.get("class") in ("idle", "predictive")]
    assert len(bars) == 2 + 3 + 1 + 1, "all stays are in the first of the details"
    assert picture(*made_up()) == drawn


def test_the_picture_in_the_docs_needs_no_other_file_and_has_both_palettes():
    drawn = DRAWN.read_text()
    xml.etree.ElementTree.fromstring(drawn)
    assert len(drawn) < 32 * 1024 and "prefers-color-scheme: dark" in drawn
    assert not re.search(r"href|url\(|https?:|<script|<image", drawn.replace("http://www.w3.org/2000/svg", "", 1))
    assert "(sleep/day.svg)" in (DRAWN.parent.parent / "sleep.md").read_text()
