"""Dashboards as pictures: each line is in its panel, and everything can be read."""
import pathlib
import sys
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import dashboard_svg  # noqa: E402

NAME = "{http://www.w3.org/2000/svg}"


def panel(title, x=0, y=0, unit="none"):
    return {"title": title, "gridPos": {"x": x, "y": y, "w": 12, "h": 8}, "fieldConfig": {"defaults": {"unit": unit}}}


def drawn(panels, series):
    return xml.fromstring("\n".join(dashboard_svg.svg({"title": 'a "board" & more', "panels": panels}, series, 100, 160)))


def texts(tree):
    return [one.text for one in tree.iter(f"{NAME}text")]


def contrast(one, other):
    def light(colour):
        parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_line_begins_and_ends_at_the_edges_of_its_panel():
    tree = drawn([panel("one")], [[("a <b>", [(100, 0.0), (160, 4.0)])]])
    (line,) = tree.iter(f"{NAME}polyline")
    begin, end = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert (begin[0], end[0]) == (dashboard_svg.LEFT, 12 * dashboard_svg.COLUMN - dashboard_svg.MARGIN - 8)
    # 4 of 5 is below the top.
    assert begin[1] > end[1] > dashboard_svg.TOP
    assert "a <b>" in texts(tree)


def test_panels_have_places_of_their_own():
    tree = drawn([panel("one"), panel("two", x=12), panel("three", y=8)], [[], [], []])
    places = [one.get("transform") for one in tree.iter(f"{NAME}g")]
    assert len(set(places)) == 3
    assert texts(tree).count("No data") == 3


def test_the_largest_lines_are_shown_and_the_others_counted():
    tree = drawn([panel("many")], [[(f"s{value}", [(100, float(value)), (160, float(value))]) for value in range(9)]])
    assert len(list(tree.iter(f"{NAME}polyline"))) == dashboard_svg.LINES_MAX
    assert "s8" in texts(tree) and "s0" not in texts(tree)
    assert "and 3 more" in texts(tree)


def test_there_is_no_line_where_nothing_was_measured():
    tree = drawn([panel("gap")], [[("a", [(100, 1.0), (102, 1.0), (140, 1.0), (142, 1.0), (144, 1.0)])]])
    assert [len(one.get("points").split()) for one in tree.iter(f"{NAME}polyline")] == [2, 3]


def test_legends_are_made_of_labels():
    assert dashboard_svg.legend("{{resource}} {{group}}", {"resource": "pods"}) == "pods"


def test_axes_end_at_round_numbers():
    for value, end in ((0, 1), (0.0007, 0.001), (0.3, 0.5), (1, 1), (7, 10), (130, 200), (5000, 5000)):
        assert abs(dashboard_svg.ceiling(value, "s") - end) < end / 1000, value
    assert dashboard_svg.ceiling(3 * 2 ** 20, "bytes") == 4 * 2 ** 20


def test_numbers_have_units():
    for value, unit, text in ((1.5 * 2 ** 20, "bytes", "1.5 MiB"), (0.02, "s", "20 ms"), (0, "s", "0 µs"), (3, "ops", "3/s"), (1200, "none", "1.2k"), (0.5, "none", "0.5")):
        assert dashboard_svg.number(value, unit) == text


def test_it_can_be_read_on_light_and_dark_pages():
    for name, palette in dashboard_svg.PALETTES.items():
        for part, colour in palette.items():
            least = 4.5 if part in ("text", "muted") else 3 if part.startswith("line") else 0
            assert contrast(colour, palette["ground"]) >= least, f"{name}: {part}"
