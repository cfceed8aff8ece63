#!/usr/bin/env python3
"""A picture of a day of one operator, for docs/operating/sleep.md: when it has events, and when its guest is in memory, by policy.

    bench/sleep/run.sh --day          builds the simulation, and writes docs/operating/sleep/day.svg

The times are those of the simulation (sleep_simulation --day): Predictive is hangar's own code. The same build makes the same bytes.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/sleep")]

from bench import GUESTS  # noqa: E402
from plots import PALETTES  # noqa: E402

DAY, BIN = 24 * 3600, 600
WIDTH, LEFT, RIGHT, ROW, BAR = 860, 150, 826, 34, 24
# (title, from, to, seconds between ticks): what is too short for the whole day. The first is a resync at night, the second has a burst.
DETAILS = (("a resync at night", 3 * 3600 + 75, 3 * 3600 + 85, 1), ("a burst of events in the afternoon", 14 * 3600 + 662, 14 * 3600 + 687, 5))


def simulated(program, flags):
    """(the times of the wakes, the stays in memory by policy)."""
    done = subprocess.run([program, "--day", *flags], check=True, capture_output=True, text=True)
    first, *others = map(json.loads, done.stdout.splitlines())
    return first["wakes"], {one["policy"]: one["stays"] for one in others}


def per_bin(stays):
    """Seconds in memory in each ten minutes."""
    seconds = [0.0] * (DAY // BIN)
    for begin, end in stays:
        for index in range(int(begin // BIN), min(int(end // BIN), len(seconds) - 1) + 1):
            seconds[index] += max(0.0, min(end, (index + 1) * BIN) - max(begin, index * BIN))
    return seconds


def clock(seconds):
    hours, rest = divmod(seconds, 3600)
    return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"


def share(value, most):
    """Of a bar's height: logarithmic, because a stay of a second is nothing beside ten minutes. 0.1 and less have no height."""
    return 0 if value <= 0.1 else math.log10(value / 0.1) / math.log10(most / 0.1)


def label(y, name):
    return f'<text x="16" y="{y + BAR - 7}">{escape(name)}</text><line class="grid" x1="{LEFT}" y1="{y + BAR}" x2="{RIGHT}" y2="{y + BAR}"/>'


def bars(y, name, kind, values, most):
    yield label(y, name)
    step = (RIGHT - LEFT) / len(values)
    path = "".join(f"M{LEFT + index * step:.1f} {y + BAR}v{-BAR * min(1, share(value, most)):.1f}h{step - 0.6:.1f}V{y + BAR}z"
                   for index, value in enumerate(values) if share(value, most) > 0)
    yield f'<path class="{kind}" d="{path}"/>'


def ticks(y, name, times, begin, end):
    yield label(y, name)
    path = "".join(f"M{LEFT + (at - begin) / (end - begin) * (RIGHT - LEFT):.1f} {y + 6}V{y + BAR}" for at in times if begin <= at < end)
    yield f'<path class="event" d="{path}"/>'


def spans(y, name, kind, stays, begin, end):
    """A stay that is too short to be seen has a line."""
    yield label(y, name)
    scale = (RIGHT - LEFT) / (end - begin)
    for since, until in stays:
        if until >= begin and since < end:
            since, until = max(since, begin), min(until, end)
            yield f'<rect class="{kind}" x="{LEFT + (since - begin) * scale:.1f}" y="{y + 6}" width="{max(1.0, (until - since) * scale):.1f}" height="{BAR - 6}"/>'


def axis(y, marks):
    for part, text in marks:
        x = f"{LEFT + part * (RIGHT - LEFT):.1f}"
        yield f'<line class="grid" x1="{x}" y1="{y - 4}" x2="{x}" y2="{y}"/><text class="muted" text-anchor="middle" x="{x}" y="{y + 13}">{text}</text>'


def style():
    def variables(palette):
        return "".join(f"--{name}:{palette[name]};" for name in ("ground", "text", "muted", "line", "met", "missed"))
    return (f":root{{{variables(PALETTES['light'])}}}@media (prefers-color-scheme: dark){{:root{{{variables(PALETTES['dark'])}}}}}"
            "text{font-family:system-ui,sans-serif;font-size:13px;fill:var(--text)}.title{font-size:14px;font-weight:600}"
            ".muted{font-size:11px;fill:var(--muted)}.ground{fill:var(--ground)}.grid{stroke:var(--line);stroke-width:.5}"
            ".event{fill:var(--text);stroke:var(--text)}path.event{stroke-width:1}.idle{fill:var(--missed)}.predictive{fill:var(--met)}.never{fill:var(--line)}")


def picture(small, large):
    """`small` and `large`: (wakes, stays by policy) of a guest that resumes in time, and of one that does not."""
    wakes, stays = small
    lines, y = [], 16

    def title(words, more):
        nonlocal y
        lines.append(f'<text class="title" x="16" y="{y + 14}">{escape(words)}</text><text class="muted" x="16" y="{y + 31}">{escape(more)}</text>')
        y += 40

    def row(drawn):
        nonlocal y
        lines.extend(drawn)
        y += ROW

    title("The whole day, a small guest", "Events, and seconds in memory, of each ten minutes, on a logarithmic scale")
    counts = [sum(1 for at in wakes if index * BIN <= at < (index + 1) * BIN) for index in range(DAY // BIN)]
    row(bars(y, "events", "event", counts, max(counts)))
    for policy, kind, seconds in (("Never", "never", [float(BIN)] * (DAY // BIN)), ("Idle", "idle", per_bin(stays["Idle"])),
                                  ("Predictive", "predictive", per_bin(stays["Predictive"]))):
        row(bars(y, policy, kind, seconds, BIN))
    lines += axis(y, [(hour / 24, f"{hour:02}:00") for hour in range(0, 25, 2)])
    y += 30
    for name, begin, end, step in DETAILS:
        title(f"{clock(begin)} to {clock(end)}: {name}", "A bar: in memory. The large guest is loaded ahead only with guests in the host's process")
        row(ticks(y, "events", wakes, begin, end))
        for words, (_, of), policy in (("small, Idle", small, "Idle"), ("small, Predictive", small, "Predictive"),
                                       ("large, Idle", large, "Idle"), ("large, Predictive", large, "Predictive")):
            row(spans(y, words, policy.lower(), of[policy], begin, end))
        lines += axis(y, [((at - begin) / (end - begin), f"{at - begin} s") for at in range(begin, end + 1, step)])
        y += 30

    def total(of):
        return ", ".join(f"{policy} {sum(end - begin for begin, end in one):.0f} s in memory and {len(one)} resumes" for policy, one in of.items())
    words = [f"{len(wakes)} events. Small guest: {total(stays)}.", f"Large guest: {total(large[1])}."]
    lines += [f'<text class="muted" x="16" y="{y + 8 + 16 * index}">{escape(one)}</text>' for index, one in enumerate(words)]
    height = y + 36
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title text" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        '<title id="title">A day of an operator, by policy of sleep (simulation)</title>', f'<desc id="text">{escape(" ".join(words))}</desc>',
        f"<style>{style()}</style>", f'<rect class="ground" width="{WIDTH}" height="{height}"/>', *lines, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulation", required=True)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/operating/sleep/day.svg")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(picture(*(simulated(options.simulation, flags) for flags in GUESTS.values())))
    print(options.out)


if __name__ == "__main__":
    main()
