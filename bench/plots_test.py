"""plots.py: pictures that say what the files say, the same each time, on light and on dark pages."""
import ast
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from harness import Report, at_least, at_most, at_most_of_peer
from plots import CHOICES, PALETTES, ROWS_MAX, Scale, chosen, known, number, plot, ratio_of, runs_of, ticks_between

PLOTS = pathlib.Path(__file__).parent / "plots.py"
DRAWN = pathlib.Path(__file__).parent.parent / "docs/operating/benchmarks"
SVG = "{http://www.w3.org/2000/svg}"


def run(latency=10.0, peer=20.0):
    """The shape of a run of a benchmark, as harness.Report has it. The figures are made up."""
    report = Report("made-up")
    report.add("latency of <a> hop", "ms", latency, peer, "R&D's peer", at_most_of_peer(0.6))
    report.add("memory", "MiB", 80, target=at_most(64))
    report.add("rate", "1/s", 300, target=at_least(150))
    report.add("only a figure", "", 7)
    report.add("not measured", "ms", None, target=at_most(5))
    report.add("less than nothing", "%", -3.0, target=at_most(2))
    return report.figures


def texts(picture):
    return ["".join(one.itertext()) for one in xml.etree.ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_a_picture_is_xml_and_names_figure_values_peer_and_target():
    said = texts(plot("made-up", [run()]))
    assert "latency of <a> hop" in said and "hangar 10 ms; peer 20 ms; target <= 0.6 x peer" in said and "0.5" in said
    assert "Ratio to the target or the peer (R&D's peer); one run" in said and "Figures that have no place on this scale: 3." in said


def test_the_same_files_make_the_same_bytes():
    assert plot("made-up", [run(), run(12)]) == plot("made-up", [run(), run(12)])


def test_runs_are_shown_by_the_newest_and_their_ends():
    assert "0.5 (0.4 to 0.9)" in texts(plot("made-up", [run(8), run(18), run(10)]))


def test_a_peer_is_named_once_or_in_each_row():
    report = Report("made-up")
    report.figures = run()
    report.add("memory of another", "MiB", 1, 2, "another")
    said = texts(plot("made-up", [report.figures]))
    assert "Ratio to the target or the peer; one run" in said and "hangar 1 MiB; peer 2 MiB; peer: another" in said


def test_a_figure_without_a_peer_is_compared_with_its_target():
    memory, rate = run()[1:3]
    assert ratio_of(memory) == (1.25, 1.0) and ratio_of(rate) == (2.0, 1.0)


def test_a_target_of_nothing_is_no_scale():
    report = Report("made-up")
    report.add("kills", "", 1, target=at_most(0))
    assert ratio_of(report.figures[0]) is None and plot("made-up", [report.figures]) is None


def test_a_target_that_is_missed_has_another_form_and_not_only_another_colour():
    root = xml.etree.ElementTree.fromstring(plot("made-up", [run()]))
    assert [one.tag for one in root.iter() if one.get("class") == "missed"] == [f"{SVG}rect"]
    assert [one.tag for one in root.iter() if one.get("class") == "met"] == [f"{SVG}circle"] * 2


def test_every_mark_lies_within_the_picture():
    for latency in (1e-6, 1e6):
        root = xml.etree.ElementTree.fromstring(plot("made-up", [run(), run(latency)]))
        assert all(0 <= float(one.get("cx")) <= 860 for one in root.iter(f"{SVG}circle"))


def test_ticks_are_round_and_few():
    scale = Scale([0.95, 1.05])
    assert ticks_between(scale.low, scale.high) == [0.5, 1, 2]
    assert ticks_between(0.001, 200) == [0.001, 0.01, 0.1, 1, 10, 100]
    assert [number(value) for value in (0, 0.1, 1234.5, 0.00012, 0.333)] == ["0", "0.1", "1,234", "1.2e-04", "0.333"]


def luminance(colour):
    parts = (int(colour[index:index + 2], 16) / 255 for index in (1, 3, 5))
    return sum(weight * (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4) for weight, part in zip((0.2126, 0.7152, 0.0722), parts))


def test_texts_and_marks_can_be_seen_on_the_ground_of_both_palettes():
    for palette in PALETTES.values():
        def contrast(name, palette=palette):
            darker, lighter = sorted(luminance(palette[one]) for one in (name, "ground"))
            return (lighter + 0.05) / (darker + 0.05)
        assert all(contrast(name) >= 4.5 for name in ("text", "muted"))
        assert all(contrast(name) >= 3 for name in ("line", "met", "missed"))


def test_the_dark_palette_is_for_those_who_want_it_dark():
    picture = plot("made-up", [run()])
    assert "@media (prefers-color-scheme: dark)" in picture and picture.index(PALETTES["light"]["ground"]) < picture.index(PALETTES["dark"]["ground"])


def write(path, figures):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures))


def test_quick_runs_are_left_out_and_kept_runs_come_first(tmp_path):
    write(tmp_path / "ring.json", run())
    write(tmp_path / "ring.quick.json", run())
    write(tmp_path / "edge.json", run())
    write(tmp_path / "runs/edge/2026-01-02T00-00-00Z.json", run())
    write(tmp_path / "runs/edge/2026-01-01T00-00-00Z.json", run())
    found = runs_of(tmp_path)
    assert {name: [path.stem for path in paths] for name, paths in found.items()} == {
        "ring": ["ring"], "edge": ["2026-01-01T00-00-00Z", "2026-01-02T00-00-00Z"]}


def script(*arguments):
    return subprocess.run([sys.executable, str(PLOTS), *arguments], capture_output=True, text=True, check=False)


def test_the_script_writes_a_picture_for_each_benchmark_and_names_the_others(tmp_path):
    write(tmp_path / "figures/made-up.json", run())
    done = script(f"--figures={tmp_path / 'figures'}", f"--out={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/made-up.svg").read_text() == plot("made-up", [run()])
    assert f"not measured yet: {', '.join(known())}. Run make bench NAME=" in done.stderr


def test_a_picture_is_drawn_again_without_the_runs(tmp_path):
    write(tmp_path / "figures/runs/made-up/1.json", run(1 / 3))
    write(tmp_path / "figures/runs/made-up/2.json", run())
    assert script(f"--figures={tmp_path / 'figures'}", f"--out={tmp_path / 'out'}").returncode == 0
    drawn = (tmp_path / "out/made-up.svg").read_text()
    (tmp_path / "out/made-up.svg").unlink()
    done = script(f"--figures={tmp_path / 'nothing'}", f"--out={tmp_path / 'out'}", "made-up")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/made-up.svg").read_text() == drawn


def test_a_choice_leaves_out_renames_and_orders(monkeypatch):
    monkeypatch.setitem(CHOICES, "made-up", ("what it is", {"rate": "speed", "memory": "all memory"}))
    picture = plot("made-up", [run()])
    said = texts(picture)
    assert "made-up: what it is" in said and [one for one in said if one in ("speed", "all memory", "rate", "latency of <a> hop")] == ["speed", "all memory"]
    assert plot("made-up", json.loads(json.dumps(chosen("made-up", [run()])))) == picture


def test_what_a_choice_names_and_a_run_lacks_is_said(tmp_path):
    write(tmp_path / "figures/ring.json", run())
    done = script(f"--figures={tmp_path / 'figures'}", f"--out={tmp_path / 'out'}", "ring")
    assert "ring: no figure 'CPU a hop, asleep', which CHOICES names" in done.stderr


def figures_in(source):
    """What a benchmark can call its figures: a pattern for each first argument of report.add, where it can be read off."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", None)) == "add" and call.args:
            parts = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else [call.args[0]]
            yield "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".*" for part in parts)


@pytest.mark.parametrize("name", CHOICES)
def test_a_benchmark_has_the_figures_that_a_choice_names(name):
    source = (pathlib.Path(__file__).parent / name / "bench.py").read_text()
    patterns = list(figures_in(source))
    assert not [figure for figure in CHOICES[name][1] if not any(re.fullmatch(pattern, figure) for pattern in patterns)]
    assert len(CHOICES[name][1]) <= ROWS_MAX


@pytest.mark.parametrize("path", sorted(DRAWN.glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_in_the_docs_is_that_of_its_figures(path):
    assert path.read_text() == plot(path.stem, json.loads(path.with_suffix(".json").read_text()))


@pytest.mark.parametrize("path", sorted(DRAWN.glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_in_the_docs_is_small_needs_no_other_file_and_is_shown(path):
    picture = path.read_text().replace("http://www.w3.org/2000/svg", "", 1)
    assert len(picture) < 16 * 1024 and not re.search(r"href|url\(|https?:|<script|<image", picture)
    assert len(json.loads(path.with_suffix(".json").read_text())[-1]) <= ROWS_MAX
    assert f"(benchmarks/{path.name})" in (DRAWN.parent / "benchmarks.md").read_text()


def test_without_figures_the_script_says_how_to_make_them(tmp_path):
    done = script(f"--figures={tmp_path}", f"--out={tmp_path / 'out'}", "ring")
    assert done.returncode != 0 and "not measured yet: ring. Run make bench" in done.stderr and not (tmp_path / "out").exists()


def test_a_run_is_kept_beside_those_before_it(tmp_path):
    report = Report("made-up", out=tmp_path)
    report.figures = run()
    for second in range(Report.RUNS_MAX + 2):
        report.keep(second)
    kept = runs_of(tmp_path)["made-up"]
    assert len(kept) == Report.RUNS_MAX and kept[0].stem == "1970-01-01T00-00-02Z"
    assert json.loads(kept[-1].read_text()) == report.figures
