#!/usr/bin/env python3
"""Plots of the benchmarks' files, as SVG: how each figure compares with its peer, or with its target if it has no peer, and how far
the runs of this machine lie apart.

    bench/plots.py [--figures=DIRECTORY] [--out=DIRECTORY] [NAME...]

reads DIRECTORY/runs/NAME/*.json (by default in build/bench), where a run of `make bench` keeps what it has measured, or NAME.json if there
are none, and writes OUT/NAME.svg (docs/operating/benchmarks), and the figures in the picture to OUT/NAME.json: with that file, the picture
of a benchmark that was not measured here can be drawn again. The same files make the same bytes. Runs of --quick are left out, because
their figures mean nothing. CHOICES says which figures are in the picture; all are in the tables of benchmarks.md. A picture has colours for
light and for dark pages, and a ground of its own, so it can be read on both.
"""
import argparse
import json
import math
import pathlib
import re
import sys
import typing
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Texts have a contrast of 4.5 with the ground, marks one of 3 (a test checks it).
PALETTES = {"light": {"ground": "#ffffff", "text": "#1f2328", "muted": "#59636e", "line": "#818b98", "met": "#0550ae", "missed": "#b35900"},
            "dark": {"ground": "#0d1117", "text": "#e6edf3", "muted": "#9198a1", "line": "#6e7681", "met": "#79c0ff", "missed": "#ffa657"}}

WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM = 860, 16, 620, 64, 58, 56
TICKS_MAX = 9
# More rows are no picture.
ROWS_MAX = 14
# Kept of a figure; a picture shows three.
DIGITS = 6

SIZES = {"2 MiB, resumes in 0.8 ms of 20": "small guest", "24 MiB, resumes in 25 ms of 5": "large guest"}
EDGE_PROGRAMS = ("ring", "label_mirror", "answers", "assembly", "website")
PATTERNS = ("periodic", "periodic, with other events", "period that changes", "bursty", "diurnal", "times of the day", "dependent")


def same(*figures):
    return {figure: figure for figure in figures}


# By benchmark: what the picture is of, and which figures it has, each with the words for it. A benchmark without a choice shows all figures.
CHOICES = {
    "admission": ("webhooks of a host, beside an API server without hangar", {
        "review of an App, 20 Airways in turn: p99": "a review, 20 Airways in turn, p99",
        **{f"1000 creations of a kind, 4 writers: {figure}": f"1000 creations by four writers while the host reconciles them, {figure}"
           for figure in ("in all", "p50", "p99")},
        **{f"change of a ConfigMap of others, the host hangs: {figure}": f"a change that has nothing to do with hangar while the host hangs, {figure}"
           for figure in ("p50", "p99")}}),
    "client": ("20,000 objects in a cache, beside client-go's typed informers", {
        "bytes per object of 20000, heap in use, against typed": "bytes per object, heap in use",
        "bytes per object of 20000, RSS after returning what is free, against typed": "bytes per object, RSS after returning free memory",
        "start of the process to synced, against typed": "from the start of the process until synced",
        "CPU for the sync, against typed": "CPU for the sync",
        "CPU per change through the watch, against typed": "CPU of a change through the watch",
        "peak RSS of the sync, against typed": "peak RSS of the sync"}),
    "conversion": ("a review of a converter in Go", {
        f"{count} objects of 2 KB in a review: {figure}": f"{words} of 2 KB, {figure}"
        for count, words in ((1, "1 object"), (100, "100 objects")) for figure in ("p50", "p99", "CPU")}),
    "density": ("RSS of a host with 10,000 and with 200 operators", same(
        "10000 operators, one module: RSS, all asleep", "10000 operators, one module: peak RSS while all wake",
        "200 operators, a module each: RSS, all asleep", "200 operators, a module each: peak RSS while all wake")),
    "edge": ("operators in a cgroup of 128 MiB and half a core, beside a host without limits", {
        "20 operators asleep: memory, page cache included": "memory, all asleep, page cache included",
        "peak memory": "peak memory",
        **{f"{program}: question to answer, median": f"from a change to the answer, {program}, median" for program in EDGE_PROGRAMS},
        "all: question to answer, 95th percentile": "from a change to the answer, all programs, 95th percentile",
        "written to disk while all sleep": "written to disk while all sleep"}),
    "failover": ("from the kill of the leader to the other host's work", {
        "defaults: the same, p99": "defaults, p99",
        "3s, 2s, 500ms: the same, p99": "settings of 3 s, 2 s and 500 ms, p99"}),
    "fairness": ("an operator beside one that never pauses", {
        **{f"question to answer, {figure}, beside one {old} ({where})": f"question to answer, {figure}, beside one {new} ({where})"
           for where in ("one process", "guest processes") for figure in ("median", "99th percentile")
           for old, new in (("that is braked by default", "that is throttled by default"), ("that a policy brakes", "that a policy limits"),
                            ("without the brake", "that nothing limits"))},
        "from its first turn until the looping one is braked by default, longest (guest processes)": "from its first turn until it is throttled, longest",
        "processor time of the looping one, braked by default (guest processes)": "processor time of the throttled one, beside one that nothing limits"}),
    "flights": ("20 Airways, each with a Go flight of 16 MB", {
        "memory, 20 Airways idle: RSS": "RSS, all idle",
        "memory, 20 Airways under load, peak: RSS": "peak RSS under load",
        "evaluations per second, 20 hot flights, by changes of a looked-up Secret": "evaluations a second (more is better)",
        "CPU per evaluation, 20 hot flights, by changes of a looked-up Secret": "CPU of an evaluation",
        "create an instance to resources exist, one at a time: p50": "from an instance to its resources, p50",
        "create an Airway, module not compiled before": "from an Airway until it is Ready, module not compiled before"}),
    "go_operators": ("50 operators of controller-runtime, beside 50 Go processes", {
        "anonymous memory, 50 operators asleep, the host included": "anonymous memory of all processes, all asleep",
        "the same, PSS": "PSS of all processes, all asleep",
        "watches at the API server": "watches at the API server",
        "CPU of a second in which nothing happens": "CPU of a second in which nothing happens",
        "CPU of a change, the host's own included": "CPU of a change, the operator was asleep",
        "change to write, asleep, p50": "from a change to the write, asleep, p50",
        "never asleep: CPU of a change, the host's own included": "CPU of a change, the operator never sleeps",
        "never asleep: change to write, in memory, p50": "from a change to the write, never asleep, p50",
        "a process for each namespace: CPU of a change, the host's own included": "CPU of a change, asleep, a process for each namespace",
        "a process for each namespace: change to write, asleep, p50": "from a change to the write, asleep, a process for each namespace, p50",
        "start of the host until all 50 have written": "from the start of the host until all 50 have written"}),
    "isolation": ("a process for each namespace, beside guests in the host's process", {
        f"a process per namespace: {figure}": words for figure, words in (
            ("latency a hop, warm", "latency of a hop, warm"), ("CPU a hop, warm", "CPU of a hop, warm"), ("latency a hop, cold", "latency of a hop, cold"),
            ("evaluations a second", "evaluations of flights a second (more is better)"), ("CPU of evaluations, each", "CPU of an evaluation"),
            ("transitions a second", "transitions of workflows a second (more is better)"), ("CPU of transitions, each", "CPU of a transition"),
            ("private dirty memory and page tables of a process", "private dirty memory and page tables of a process"))}),
    "large_cluster": ("100 operators that watch 1 % of 130,000 objects, beside one client-go process", same(
        "100 operators, all asleep: RSS", "anonymous memory", "peak RSS from the start until all sleep",
        "start until all have seen what they watch, and sleep", "CPU until then")),
    "recorder": ("a host with and without the flight recorder", same(
        "resident: CPU that recording adds", "resident: CPU a hop, recorded", "10000 operators asleep: anonymous memory that recording adds")),
    "ring": ("100 operators, a module each", {
        "asleep: anonymous memory, idle": "anonymous memory of all processes, asleep",
        "PSS idle, asleep, against rust": "PSS of all processes, asleep, beside Rust",
        "PSS idle, asleep, against go": "PSS of all processes, asleep, beside Go",
        "asleep: watches at the API server": "watches at the API server",
        "latency a hop, asleep": "latency of a hop, asleep",
        "CPU a hop, asleep": "CPU of a hop, asleep",
        "CPU a hop, resident, against rust": "CPU of a hop, in memory, beside Rust",
        "CPU a hop, resident, against go": "CPU of a hop, in memory, beside Go"}),
    "sleep": ("cost of Predictive, beside a policy that knows the future (simulation)", {
        f"{size}: {pattern}: cost against the oracle": f"{words}: {pattern}" for size, words in SIZES.items() for pattern in PATTERNS}),
    "takeover": ("10,000 sleeping operators when their host is replaced, beside a host that starts anew", {
        "10000 operators: until all are taken over": "until all are taken over",
        "10000 operators: until all have seen what has changed meanwhile": "until all have seen what has changed meanwhile"}),
    "tenants": ("a tenant while others attack, all attacks at once", {
        "alone: 99th percentile of the operator": "an answer of the operator without attacks, 99th percentile",
        "all at once: 99th percentile, of the one alone": "an answer, 99th percentile, relative to the one without attacks",
        "all at once: 99th percentile of a review, of the one alone": "a review, 99th percentile, relative to the one without attacks",
        "all at once: until a deleted operator of the victim is gone, of the one alone": "until a deleted operator is gone, relative to without attacks",
        "all at once: peak memory of the host": "peak memory of the host",
        "all at once: until the attacker's operators are stopped": "until the attacker's operators are stopped"}),
    "workflows": ("machines of workflows, beside wazero", {
        "the step alone: CPU": "CPU of a step",
        "the step alone: time, median": "time of a step, median",
        "the step alone: time, p99": "time of a step, p99",
        "the step alone, all cores busy: time a step": "time of a step while all cores are busy",
        "memory a waiting workflow": "memory of a waiting workflow, beside its entry in the cache",
        "first step of a machine from its bytes, compiled before": "first step of a machine from its bytes, compiled before",
        "first step of a machine from its ConfigMap, compiled before": "first step of a machine from its ConfigMap, compiled before"}),
}


class Row(typing.NamedTuple):
    """One figure over all runs."""
    words: str
    detail: str
    peer: str | None
    ratios: list  # One for each run that has it, the newest last.
    bound: float | None  # The target, on the same scale.
    is_met: bool | None  # In the newest run.

    def newest(self):
        return self.ratios[-1]


def number(value):
    """Three digits; all that are before the point."""
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1e}"


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
    beside = f"; peer {number(figure['peer'])}{unit}" if figure["ratio"] is not None else ""
    target = f"; target {figure['target']}" if figure["target"] else ""
    return f"hangar {number(figure['hangar'])}{unit}{beside}{target}"


def rows_of(runs, words):
    """(rows in the order of the newest run, how many of its figures have no place on a scale of ratios). `words`: by figure."""
    rows, left_out = [], 0
    for newest in runs[-1]:
        alike = [figure for run in runs for figure in run if (figure["figure"], figure["unit"]) == (newest["figure"], newest["unit"])]
        of_newest = ratio_of(newest)
        if not of_newest or of_newest[0] <= 0:
            left_out += 1
            continue
        ratios = [seen[0] for seen in map(ratio_of, alike) if seen and seen[0] > 0]
        peer = newest["peer_name"] if newest["ratio"] is not None else None
        rows.append(Row(words.get(newest["figure"], newest["figure"]), detail_of(newest), peer, ratios, of_newest[1], newest["met"]))
    return rows, left_out


def chosen(name, runs):
    """The figures that are to be in the picture, in its order, each as precise as it is there."""
    def rounded(figure):
        return {key: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for key, value in figure.items()}
    if name not in CHOICES:
        return [[rounded(figure) for figure in run] for run in runs]
    by_name = [{figure["figure"]: figure for figure in run} for run in runs]
    return [[rounded(run[figure]) for figure in CHOICES[name][1] if figure in run] for run in by_name]


def not_there(name, runs):
    """What the choice names and the newest run does not have."""
    return sorted(set(CHOICES.get(name, ("", {}))[1]) - {figure["figure"] for figure in runs[-1]})


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
    kind, x = ("missed" if row.is_met is False else "met"), scale.x(row.newest())
    if kind == "met":
        return f'<circle class="met" cx="{x}" cy="{y}" r="5"/>'
    return f'<rect class="missed" x="-5" y="-5" width="10" height="10" transform="translate({x} {y}) rotate(45)"/>'


def spread_text(row):
    if len(row.ratios) == 1 or min(row.ratios) == max(row.ratios):
        return number(row.newest())
    return f"{number(row.newest())} ({number(min(row.ratios))} to {number(max(row.ratios))})"


def row_lines(scale, row, top, names_peer):
    y = top + 42
    spread = "met" if row.is_met is not False else "missed"
    yield f'<text x="{LEFT}" y="{top + 14}">{escape(row.words)}</text>'
    peer = f"; peer: {row.peer}" if names_peer and row.peer else ""
    yield f'<text class="muted" x="{LEFT}" y="{top + 29}">{escape(row.detail + peer)}</text>'
    if row.bound:
        x = scale.x(row.bound)
        yield f'<line class="bound" x1="{x}" y1="{y - 8}" x2="{x}" y2="{y + 8}"/>'
    yield f'<line class="{spread} spread" x1="{scale.x(min(row.ratios))}" y1="{y}" x2="{scale.x(max(row.ratios))}" y2="{y}"/>'
    yield mark(scale, row, y)
    yield f'<text x="{RIGHT + 16}" y="{y + 4}">{escape(spread_text(row))}</text>'


def plot(name, runs):
    """The picture, or None if no figure has a place in it. `runs`: lists of figures, the oldest first."""
    subject, words = CHOICES.get(name, (None, {}))
    rows, left_out = rows_of(chosen(name, runs), words)
    if not rows:
        return None
    scale = Scale([value for row in rows for value in (*row.ratios, *([row.bound] if row.bound else []))])
    end = TOP + ROW * len(rows)
    peers = {row.peer for row in rows}
    of = "the target" if peers == {None} else "the target or the peer" if None in peers else "the peer"
    title = f"{name}: {subject or f'ratio to {of}'}"
    names_peer = len(peers - {None}) > 1
    about = "".join(f" ({peer})" for peer in peers if peer and not names_peer)
    count = "one run" if len(runs) == 1 else f"{len(runs)} runs: the newest; in brackets and as a bar, the smallest and the largest"
    one = {"the target": "1 is the target: less is better", "the peer": "1 is the peer: left of it, hangar needs less"}.get(
        of, "1 is the peer (left of it, hangar needs less), or the target of a figure without a peer")
    legend = [f"{one}. Dashed: the target. A diamond misses it.",
              f"Figures that have no place on this scale: {left_out}." if left_out else ""]
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title text" viewBox="0 0 {WIDTH} {end + BOTTOM}" '
             f'width="{WIDTH}" height="{end + BOTTOM}">',
             f'<title id="title">Benchmark {escape(title)}</title>',
             f'<desc id="text">Ratio to {of}. {escape("; ".join(f"{row.words}: {spread_text(row)}" for row in rows))}</desc>',
             f"<style>{style()}</style>", f'<rect class="ground" width="{WIDTH}" height="{end + BOTTOM}"/>',
             f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>',
             f'<text class="muted" x="{LEFT}" y="44">Ratio to {of}{escape(about)}; {count}</text>']
    for tick in ticks_between(scale.low, scale.high):
        x = scale.x(tick)
        lines += [f'<line class="{"one" if tick == 1 else "grid"}" x1="{x}" y1="{TOP}" x2="{x}" y2="{end}"/>',
                  f'<text class="muted" text-anchor="middle" x="{x}" y="{end + 14}">{number(tick)}</text>']
    for index, row in enumerate(rows):
        lines += row_lines(scale, row, TOP + ROW * index, names_peer)
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


def known():
    return sorted(path.parent.name for path in (ROOT / "bench").glob("*/run.sh"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/operating/benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    measured = runs_of(options.figures)
    missing = []
    for name in options.names or sorted({*known(), *measured}):
        drawn = options.out / f"{name}.json"
        if name not in measured and not drawn.exists():
            missing.append(name)
            continue
        runs = [json.loads(path.read_text()) for path in measured[name]] if name in measured else json.loads(drawn.read_text())
        for figure in not_there(name, runs):
            print(f"{name}: no figure {figure!r}, which CHOICES names", file=sys.stderr)
        picture = plot(name, runs)
        if picture is None:
            print(f"{name}: no figure has a peer or a target", file=sys.stderr)
            continue
        options.out.mkdir(parents=True, exist_ok=True)
        drawn.write_text(json.dumps(chosen(name, runs), indent=1) + "\n")
        (options.out / f"{name}.svg").write_text(picture)
        print(options.out / f"{name}.svg")
    if missing:
        print(f"not measured yet: {', '.join(missing)}. Run make bench NAME=... for each, on a machine that does nothing else", file=sys.stderr)
    if options.names and missing:
        sys.exit(1)


if __name__ == "__main__":
    main()
