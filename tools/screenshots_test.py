"""screenshots.py: the recording of a terminal as a moving picture."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from screenshots import DASHBOARDS, LINES, PICTURES, recording_svg, rows_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
SVG = "{http://www.w3.org/2000/svg}"


def screen(marked):
    lines = ["KIND  NAME", "operator  <a>&b", "operator  c"]
    lines[marked] = f"\x1b[7m{lines[marked]}\x1b[0m"
    return "\r\n".join(f"{line}\x1b[K" for line in lines)


def drawn(*frames):
    return ElementTree.fromstring("\n".join(recording_svg(frames)))


def test_sequences_of_the_terminal_are_not_text():
    assert list(rows_of(screen(1))) == [("KIND  NAME", False), ("operator  <a>&b", True), ("operator  c", False)]


def test_each_screen_has_its_share_of_the_time():
    svg = drawn([screen(1), 1.0], [screen(2), 3.0])
    style = "".join(svg.find(f"{SVG}style").itertext())

    assert [group.get("id") for group in svg.iter(f"{SVG}g")] == ["f0", "f1"]
    assert "@keyframes k0 { 0.00% { visibility: visible; } 25.00% { visibility: hidden; } }" in style
    assert "@keyframes k1 { 0.00% { visibility: hidden; } 25.00% { visibility: visible; } }" in style
    assert "#f1 { animation: k1 4.0s" in style


def test_the_marked_line_has_a_bar():
    first, second = drawn([screen(1), 1.0], [screen(2), 1.0]).iter(f"{SVG}g")

    assert first.find(f"{SVG}text[@class='marked']").text == "operator  <a>&b"
    assert second.find(f"{SVG}text[@class='marked']").text == "operator  c"
    assert float(first.find(f"{SVG}rect").get("y")) < float(second.find(f"{SVG}rect").get("y"))


def test_all_lines_are_inside():
    svg = drawn(["\r\n".join(["x"] * LINES), 1.0])

    assert max(float(text.get("y")) for text in svg.iter(f"{SVG}text")) < float(svg.get("height"))


def test_the_document_shows_every_picture():
    text = (ROOT / "docs/operating/seeing.md").read_text()
    shown = set(re.findall(r"seeing/([\w-]+\.\w+)", text))

    assert shown == {"top.svg", *(f"{one['name']}.png" for one in PICTURES)}
    for name in shown:
        assert (ROOT / "docs/operating/seeing" / name).exists(), name


def test_every_dashboard_of_the_chart_is_shown():
    text = (ROOT / "docs/operating/host.md").read_text()

    assert set(DASHBOARDS) == {path.stem for path in (ROOT / "deploy/chart/dashboards").iterdir()}
    for name in DASHBOARDS:
        assert f"(seeing/dashboard-{name}.svg)" in text and (ROOT / f"docs/operating/seeing/dashboard-{name}.svg").exists(), name
