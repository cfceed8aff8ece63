#!/usr/bin/env python3
"""Plots of the benchmarks' files, as SVG: how each figure compares with its peer, or with its target if it has no peer, and how far
the runs of this machine lie apart.

    bench/plots.py [--figures=DIRECTORY] [--out=DIRECTORY] [NAME...]

reads DIRECTORY/runs/NAME/*.json (by default in build/bench), where a run of `make bench` keeps what it has measured, or NAME.json if there
are none, and writes OUT/NAME.svg (docs/operating/benchmarks). The same files make the same bytes. Runs of --quick are left out, because
their figures mean nothing. A picture has colours for light and for dark pages, and a ground of its own, so it can be read on both.
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import sys
import typing
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Texts have a contrast of 4.5 with the ground, marks one of 3 (a test checks it).
PALETTES = {"light": {"ground": "#ffffff", "text": "#1f2328", "muted": "#59636e", "line": "#818b98", "met": "#0550ae", "missed": "#b35900"},
            "dark": {"ground": "#0d1117", "text": "#e6edf3", "muted": "#9198a1", "line": "#6e7681", "met": "#79c0ff", "missed": "#ffa657"}}

WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 860, 16, 620, 64, 58, 56
TICKS_MAX = 9


class Row(typing.NamedTuple):
    """One figure over all runs."""
    figure: str
    detail: str
    ratios: list  # One for each run that has it, the newest last.
    bound: float | None  # The target, on the same scale.
    is_met: bool | None  # In the newest run.

    def middle(self):
        return statistics.median(self.ratios)


def number(value):
    """Three digits, in the way of harness.Report's table."""
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1e}"


def ratio_of(figure):
    """(the ratio, the target on its scale): to the peer, else to the target of the figure itself; None if there is neither."""
    target = re.fullmatch(r"(<=|>=) (\S+)( x peer)?", figure["target"] or "")
    bound, of_peer = (float(target[2]), bool(target[3])) if target else (None, False)
    value, ratio = figure["hangar"], figure["ratio"]
    if ratio is not None:
        return ratio, (bound if of_peer else None)
    if value is None or of_peer or not bound:
        return None
    return value / bound, 1.0


def detail_of(figure):
    unit = f" {figure['unit']}" if figure["unit"] else ""
    parts = [f"{number(figure['hangar'])}{unit}"]
    if figure["ratio"] is not None:
        parts = [f"{number(figure['hangar'])} of {number(figure['peer'])}{unit}: {figure['peer_name']}"]
    if figure["target"]:
        parts.append(f"target {figure['target']}")
    return "; ".join(parts)


def rows_of(runs):
    """(rows in the order of the newest run, how many of its figures have no place on a scale of ratios)."""
    rows, left_out = [], 0
    for newest in runs[-1]:
        same = [figure for run in runs for figure in run if (figure["figure"], figure["unit"]) == (newest["figure"], newest["unit"])]
        of_newest = ratio_of(newest)
        if not of_newest or of_newest[0] <= 0:
            left_out += 1
            continue
        ratios = [seen[0] for seen in map(ratio_of, same) if seen and seen[0] > 0]
        rows.append(Row(newest["figure"], detail_of(newest), ratios, of_newest[1], newest["met"]))
    return rows, left_out


def ticks_between(low, high):
    steps = [digit * 10.0 ** power for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1) for digit in (1, 2, 5)]
    # Rounded: 0.1 as a power is not 0.1 as a number.
    inside = [tick for tick in (float(f"{step:.1e}") for step in steps) if low <= tick <= high]
    decades = [tick for tick in inside if math.log10(tick).is_integer()]
    return inside if len(inside) <= TICKS_MAX else decades


class Scale:
    """Logarithmic: half and double are equally far from 1."""

    def __init__(self, values):
        margin = 1.25
        self.low, self.high = min([0.5, *values]) / margin, max([2.0, *values]) * margin

    def x(self, value):
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return f"{LEFT + part * (RIGHT - LEFT):.1f}"


def style():
    def variables(palette):
        return "".join(f"--{name}:{colour};" for name, colour in palette.items())
    return (f":root{{{variables(PALETTES['light'])}}}"
            f"@media (prefers-color-scheme: dark){{:root{{{variables(PALETTES['dark'])}}}}}"
            "text{font-family:system-ui,sans-serif;font-size:13px;fill:var(--text);paint-order:stroke;stroke:var(--ground);stroke-width:3px}"
            ".title{font-size:16px;font-weight:600}.muted{font-size:11px;fill:var(--muted)}.ground{fill:var(--ground)}"
            ".grid{stroke:var(--line);stroke-width:.5}.one{stroke:var(--text);stroke-width:1}.bound{stroke:var(--text);stroke-width:1.5;stroke-dasharray:3 2}"
            ".met{fill:var(--met);stroke:var(--met)}.missed{fill:var(--missed);stroke:var(--missed)}.spread{stroke-width:3;stroke-opacity:.6}")


def mark(scale, row, y):
    """A circle; a diamond where the target is missed, so that the colour is not needed to see it."""
    kind, x = ("missed" if row.is_met is False else "met"), scale.x(row.middle())
    if kind == "met":
        return f'<circle class="met" cx="{x}" cy="{y}" r="5"/>'
    return f'<rect class="missed" x="-5" y="-5" width="10" height="10" transform="translate({x} {y}) rotate(45)"/>'


def spread_text(row):
    if len(row.ratios) == 1 or min(row.ratios) == max(row.ratios):
        return number(row.middle())
    return f"{number(row.middle())} ({number(min(row.ratios))} to {number(max(row.ratios))})"


def row_lines(scale, row, top):
    y = top + 42
    spread = "met" if row.is_met is not False else "missed"
    yield f'<text x="{LEFT}" y="{top + 14}">{escape(row.figure)}</text>'
    yield f'<text class="muted" x="{LEFT}" y="{top + 29}">{escape(row.detail)}</text>'
    if row.bound:
        x = scale.x(row.bound)
        yield f'<line class="bound" x1="{x}" y1="{y - 8}" x2="{x}" y2="{y + 8}"/>'
    yield f'<line class="{spread} spread" x1="{scale.x(min(row.ratios))}" y1="{y}" x2="{scale.x(max(row.ratios))}" y2="{y}"/>'
    yield mark(scale, row, y)
    yield f'<text x="{RIGHT + 16}" y="{y + 4}">{escape(spread_text(row))}</text>'


def plot(name, runs):
    """The picture, or None if no figure has a place in it. `runs`: the contents of files of figures, the oldest first."""
    rows, left_out = rows_of(runs)
    if not rows:
        return None
    scale = Scale([value for row in rows for value in (*row.ratios, *([row.bound] if row.bound else []))])
    end = TOP + ROW * len(rows)
    count = "one run" if len(runs) == 1 else f"{len(runs)} runs: median, smallest and largest"
    legend = ["1 is as the peer, or the target where a figure has no peer. Dashed: the target. A diamond misses it.",
              f"Figures that have no place on this scale: {left_out}." if left_out else ""]
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title text" viewBox="0 0 {WIDTH} {end + BOTTOM}" '
             f'width="{WIDTH}" height="{end + BOTTOM}">',
             f'<title id="title">Benchmark {escape(name)}: ratio to the peer</title>',
             f'<desc id="text">{escape("; ".join(f"{row.figure}: {spread_text(row)}" for row in rows))}</desc>',
             f"<style>{style()}</style>", f'<rect class="ground" width="{WIDTH}" height="{end + BOTTOM}"/>',
             f'<text class="title" x="{LEFT}" y="26">{escape(name)}: ratio to the peer</text>', f'<text class="muted" x="{LEFT}" y="44">{count}</text>']
    for tick in ticks_between(scale.low, scale.high):
        x = scale.x(tick)
        lines += [f'<line class="{"one" if tick == 1 else "grid"}" x1="{x}" y1="{TOP}" x2="{x}" y2="{end}"/>',
                  f'<text class="muted" text-anchor="middle" x="{x}" y="{end + 14}">{number(tick)}</text>']
    for index, row in enumerate(rows):
        lines += row_lines(scale, row, TOP + ROW * index)
    lines += [f'<text class="muted" x="{LEFT}" y="{end + 32 + 14 * index}">{text}</text>' for index, text in enumerate(legend) if text]
    return "\n".join([*lines, "</svg>"]) + "\n"


def runs_of(figures):
    """By benchmark, the files of its runs, the oldest first: their names are times."""
    found = {}
    for path in sorted(figures.glob("*.json")):
        if not path.stem.endswith(".quick"):
            found[path.stem] = [path]
    for directory in sorted((figures / "runs").glob("*")):
        if kept := sorted(directory.glob("*.json")):
            found[directory.name] = kept
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/operating/benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    found = runs_of(options.figures)
    if missing := [name for name in options.names if name not in found] or (not found and ["any benchmark"]):
        sys.exit(f"error: {options.figures} has no figures of {', '.join(missing)}: run make bench NAME=... on a machine that does nothing else")
    for name in options.names or found:
        picture = plot(name, [json.loads(path.read_text()) for path in found[name]])
        if picture is None:
            print(f"{name}: no figure has a peer or a target", file=sys.stderr)
            continue
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"{name}.svg").write_text(picture)
        print(options.out / f"{name}.svg")


if __name__ == "__main__":
    main()
