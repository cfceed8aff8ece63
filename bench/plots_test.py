"""plots.py: pictures that say what the files say, the same each time, on light and on dark pages."""
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

from harness import Report, at_least, at_most, at_most_of_peer
from plots import PALETTES, Scale, number, plot, ratio_of, runs_of, ticks_between

PLOTS = pathlib.Path(__file__).parent / "plots.py"
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
    assert "latency of <a> hop" in said and "10 of 20 ms: R&D's peer; target <= 0.6 x peer" in said and "0.5" in said
    assert "one run" in said and "Figures that have no place on this scale: 3." in said


def test_the_same_files_make_the_same_bytes():
    assert plot("made-up", [run(), run(12)]) == plot("made-up", [run(), run(12)])


def test_runs_are_shown_by_their_median_and_their_ends():
    assert "0.5 (0.4 to 0.9)" in texts(plot("made-up", [run(8), run(18), run(10)]))


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
    assert [number(value) for value in (0, 0.1, 1234.5, 0.00012, 0.333)] == ["0", "0.1", "1234", "1.2e-04", "0.333"]


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


def test_the_script_writes_a_picture_for_each_benchmark(tmp_path):
    write(tmp_path / "figures/ring.json", run())
    done = script(f"--figures={tmp_path / 'figures'}", f"--out={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/ring.svg").read_text() == plot("ring", [run()])


def test_without_figures_the_script_says_how_to_make_them(tmp_path):
    done = script(f"--figures={tmp_path}", f"--out={tmp_path / 'out'}", "ring")
    assert done.returncode != 0 and "no figures of ring: run make bench" in done.stderr and not (tmp_path / "out").exists()


def test_a_run_is_kept_beside_those_before_it(tmp_path):
    report = Report("made-up", out=tmp_path)
    report.figures = run()
    for second in range(Report.RUNS_MAX + 2):
        report.keep(second)
    kept = runs_of(tmp_path)["made-up"]
    assert len(kept) == Report.RUNS_MAX and kept[0].stem == "1970-01-01T00-00-02Z"
    assert json.loads(kept[-1].read_text()) == report.figures
