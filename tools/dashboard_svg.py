"""A Grafana dashboard as one SVG: its panels in their places, with the lines that Prometheus answers for them.

It is a drawing for the documents. Grafana draws the same panels in its own way.
"""
import math
import re
from xml.sax.saxutils import escape

# Texts have a contrast of 4.5 with the ground, lines one of 3 (a test checks it).
PALETTES = {"light": {"ground": "#ffffff", "text": "#1f2328", "muted": "#59636e", "grid": "#d1d9e0",
                      "line0": "#0550ae", "line1": "#b35900", "line2": "#116329", "line3": "#8250df", "line4": "#bf3989", "line5": "#57606a"},
            "dark": {"ground": "#0d1117", "text": "#e6edf3", "muted": "#9198a1", "grid": "#3d444d",
                     "line0": "#79c0ff", "line1": "#ffa657", "line2": "#7ee787", "line3": "#d2a8ff", "line4": "#ff9bce", "line5": "#b1bac4"}}
LINES_MAX = 6

COLUMN, ROW, MARGIN, HEAD = 40, 27, 10, 44  # Of the grid of 24 columns, in pixels.
LEFT, TOP, LEGEND = 56, 30, 16  # In a panel.
LEGEND_ROWS, CHARACTER = 2, 6.8


def number(value, unit):
    """As on Grafana's axes: "1.5 MiB", "20 ms", "0.3"."""
    steps = {"bytes": [(2 ** 30, " GiB"), (2 ** 20, " MiB"), (2 ** 10, " KiB"), (1, " B")],
             "s": [(1, " s"), (1e-3, " ms"), (1e-6, " µs")],
             "ops": [(1, "/s")], "reqps": [(1, "/s")]}.get(unit, [(1e6, "M"), (1e3, "k"), (1, "")])
    for size, name in steps:
        if abs(value) >= size or size == steps[-1][0]:
            return f"{value / size:.3g}{name}"
    raise AssertionError(unit)


def legend(template, labels):
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), template).strip()


def ceiling(value, unit):
    """The next of 1, 2, 5, 10, ... above it; of bytes the next power of 2."""
    if value <= 0:
        return 1.0
    if unit == "bytes":
        return 2.0 ** math.ceil(math.log2(value))
    power = 10.0 ** (len(f"{value:.0f}") - 1) if value >= 1 else 10.0 ** -next(digits for digits in range(1, 30) if value * 10 ** digits >= 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def runs(points):
    """The points without the gaps between them: where nothing was measured, there is no line."""
    step = min((later[0] - one[0] for one, later in zip(points, points[1:])), default=0)
    begin = 0
    for at in range(1, len(points) + 1):
        if at == len(points) or points[at][0] - points[at - 1][0] > 1.5 * step:
            yield points[begin:at]
            begin = at


class Panel:
    """`series`: (legend, [(seconds, value)]) of each line; `began` and `ended` are the same for all panels."""

    def __init__(self, panel, series, began, ended):
        place = panel["gridPos"]
        self._x, self._y = MARGIN + place["x"] * COLUMN, HEAD + place["y"] * ROW
        self._width, self._height = place["w"] * COLUMN - MARGIN, place["h"] * ROW - MARGIN
        self._title, self._unit = panel["title"], panel["fieldConfig"]["defaults"]["unit"]
        # The largest lines are those that one looks for.
        self._series = sorted(series, key=lambda one: -max((value for _, value in one[1]), default=0))[:LINES_MAX]
        self._left_out = len(series) - len(self._series)
        self._began, self._span = began, max(ended - began, 1)
        self._most = ceiling(max((value for _, points in self._series for _, value in points), default=0), self._unit)
        self._bottom = self._height - LEGEND * LEGEND_ROWS - 14

    def _at(self, seconds, value):
        x = LEFT + (seconds - self._began) / self._span * (self._width - LEFT - 8)
        return f"{x:.1f},{self._bottom - value / self._most * (self._bottom - TOP):.1f}"

    def _legends(self):
        x, row = LEFT, 0
        names = [(f"line{at}", name) for at, (name, _) in enumerate(self._series)]
        if self._left_out:
            names.append(("muted", f"and {self._left_out} more"))
        for kind, name in names:
            name = name if len(name) <= 40 else name[:39] + "…"
            needed = 24 + len(name) * CHARACTER
            if x + needed > self._width and x > LEFT:
                x, row = LEFT, row + 1
            if row == LEGEND_ROWS:
                return
            y = self._bottom + 20 + row * LEGEND
            if kind != "muted":
                yield f'<rect class="{kind} key" x="{x:.0f}" y="{y - 4}" width="10" height="3"/>'
            yield f'<text class="muted" x="{x + 14:.0f}" y="{y}">{escape(name)}</text>'
            x += needed

    def drawn(self):
        yield f'<g transform="translate({self._x} {self._y})">'
        yield f'<rect class="frame" x="0.5" y="0.5" width="{self._width - 1}" height="{self._height - 1}" rx="4"/>'
        yield f'<text class="title" x="12" y="19">{escape(self._title)}</text>'
        for part in (0, 0.5, 1):
            y = self._bottom - part * (self._bottom - TOP)
            yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{self._width - 8}" y2="{y:.1f}"/>'
            yield f'<text class="muted axis" x="{LEFT - 6}" y="{y + 4:.1f}">{number(self._most * part, self._unit)}</text>'
        for at, (_, points) in enumerate(self._series):
            for run in runs(points):
                yield f'<polyline class="line{at} line" points="{" ".join(self._at(*point) for point in run)}"/>'
        if not self._series:
            yield f'<text class="muted" x="{LEFT + 8}" y="{(TOP + self._bottom) / 2:.0f}">No data</text>'
        yield from self._legends()
        yield "</g>"


def style():
    variables = lambda palette: "".join(f"--{name}:{colour};" for name, colour in palette.items())  # noqa: E731
    lines = "".join(f".line{at}{{stroke:var(--line{at})}}.line{at}.key{{fill:var(--line{at});stroke:none}}" for at in range(LINES_MAX))
    return (f":root{{{variables(PALETTES['light'])}}}@media (prefers-color-scheme: dark){{:root{{{variables(PALETTES['dark'])}}}}}"
            "text{font-family:system-ui,sans-serif;font-size:12px;fill:var(--text)}.name{font-size:16px;font-weight:600}.title{font-size:13px;font-weight:600}"
            ".muted{font-size:11px;fill:var(--muted)}.axis{text-anchor:end}.ground{fill:var(--ground)}.frame{fill:none;stroke:var(--grid)}"
            f".grid{{stroke:var(--grid);stroke-width:.5}}.line{{fill:none;stroke-width:1.5;stroke-linejoin:round}}{lines}")


def svg(dashboard, series, began, ended):
    """`series[i]`: the lines of panel i, as Panel takes them. Yields lines of text."""
    panels = dashboard["panels"]
    width = 24 * COLUMN + MARGIN
    height = HEAD + max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * ROW
    title = escape(dashboard["title"], {'"': "&quot;"})
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
    yield f"<style>{style()}</style>"
    yield f'<rect class="ground" width="{width}" height="{height}"/>'
    yield f'<text class="name" x="{MARGIN}" y="28">{title}</text>'
    yield f'<text class="muted axis" x="{width - MARGIN}" y="28">{ended - began:.0f} s</text>'
    for panel, lines in zip(panels, series, strict=True):
        yield from Panel(panel, lines, began, ended).drawn()
    yield "</svg>"
