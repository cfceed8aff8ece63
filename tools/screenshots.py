#!/usr/bin/env python3
"""Pictures of the console, of `hangar top` and of the chart's dashboards for docs/operating.

    tools/screenshots.py [--out=DIRECTORY] [NAME...]

starts a control plane and a host on this machine, with operators, Airways, a Flight and workflows in the namespaces of some teams,
changes objects for a minute, and writes NAME.png for each of PICTURES, top.svg and a dashboard-NAME.svg for each of DASHBOARDS to
DIRECTORY (docs/operating/seeing). top.svg is a recording: it shows one screen after the other. A dashboard is drawn from what a
Prometheus answers to its queries, by dashboard_svg.py and not by Grafana. Times and costs are those of this machine, so no two runs
write the same bytes.

It needs what the end-to-end tests need (make deps build guests).
"""
import argparse
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tools")]

import airways  # noqa: E402
import charts  # noqa: E402
import consoles  # noqa: E402
import dashboard_svg  # noqa: E402
import flights  # noqa: E402
import operators  # noqa: E402
import workflows  # noqa: E402
from cluster import eventually, is_ready, try_to, when_compiled  # noqa: E402
from conftest import COMPILED, control_plane  # noqa: E402
from host import free_port  # noqa: E402
from prometheus import Prometheus  # noqa: E402
from shown import SYSTEM, showing_host  # noqa: E402
from terminals import Screen  # noqa: E402
from webhooks import wait_registered  # noqa: E402

# Pages show a picture up to 900 px wide. A larger file makes a page slow, and stays in the history for ever.
WIDTH, BYTES_MAX = 1000, 120 * 1024

TEAMS = ("billing", "catalog", "checkout", "media", "orders", "search", "shipping", "support")
# Whose operator mirror has its bodies recorded, and is in the picture.
RECORDED = "checkout"
# Operators that watch the ConfigMaps of their namespace.
WATCHERS = ("backups", "banners", "certificates", "dashboards", "domains", "feeds", "invites", "labels", "limits", "queues", "routes", "themes")
SECONDS_BUSY = 75
NODES, INSTALLER = 6, "registry.example.com/hangar-node:v1"

# `until` is a text, and `appears` an element, that a finished page has.
COSTS = "td.number:has-text('µs'), td.number:has-text('ms')"
PICTURES = [
    {"name": "map", "hash": "#/", "until": "Failing and awake first", "appears": COSTS, "height": 860, "points": "canvas"},
    {"name": "map-dark", "hash": "#/", "until": "Failing and awake first", "appears": COSTS, "height": 860, "theme": "dark", "points": "canvas"},
    {"name": "map-360", "hash": "#/", "until": "Failing and awake first", "appears": COSTS, "height": 800, "width": 360},
    {"name": "operator", "hash": f"#/operator/{RECORDED}/mirror", "until": "What it watches", "height": 1360,
     "opens": [".turns li:has-text('wrote') button", ".turn .body summary"]},
    {"name": "airways", "hash": "#/releases", "until": "pipelines.examples.com", "height": 1040, "unfolds": "pipelines.examples.com"},
    {"name": "workflow", "hash": "#/workflow/orders/orders", "until": "Filled: where it is", "height": 900},
    {"name": "nodes", "hash": "#/nodes", "until": "Provisioned", "height": 560},
    {"name": "tenants", "hash": "#/tenants", "until": "(sum)", "appears": COSTS, "height": 1240, "width": 1280},
    {"name": "why", "hash": "#/why/TestResource.amurant.io/run/media", "until": "Records go back to", "height": 800},
]

DASHBOARDS = ("host", "operators", "airways", "workflows", "nodes")
SCRAPES_PER_RATE, STEP_SECONDS = 15, 2

# What there is to see ------------------------------------------------------------------------------------


def create_teams(cluster):
    for team in TEAMS:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team, "labels": {"tier": "team"}}})
        workflows.allow(cluster, team)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "hangar.dev/v1alpha1", "kind": "TenantPolicy", "metadata": {"name": "teams"},
        "spec": {"namespaceSelector": {"matchLabels": {"tier": "team"}},
                 "records": {"bodies": True},
                 "budgets": {"guestMemory": "64Mi", "guestDisk": "256Mi", "moduleDisk": "128Mi", "cpu": "500m", "operators": 16}}}))


def create_operators(cluster, dice):
    cluster.apply_crds(ROOT / "examples/ring/testresources.yaml")
    cluster.learn(*operators.TEST_RESOURCES, "testresources")
    for team in TEAMS:
        eventually(lambda: try_to(operators.create_ring_object, cluster, team), f"the kind is served in {team}")
    asleep = {"sleep": {"after": "1s"}}
    for team, following in zip(TEAMS, TEAMS[1:] + TEAMS[:1]):
        operators.copier(cluster, team, following)
        recorded = {"record": "Bodies"} if team == RECORDED else {}
        cluster.create(operators.manifest("mirror", team, wasm="label_mirror", env=[{"name": "NAMESPACE", "value": team}], **asleep, **recorded))
        for name in sorted(dice.sample(WATCHERS, dice.randrange(2, 7))):
            cluster.create(operators.manifest(name, team, f"watch={team}", **asleep))
        for name, labels in (("prices", {"mirror-to": "prices-copy"}), ("settings", {})):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": team, "labels": labels}, "data": {"number": "0"}})
    for team in ("media", "search", "shipping"):
        cluster.create(operators.manifest("scheduler", team, "tick=2000", sleep={"policy": "Never"}))
    cluster.create(operators.manifest("invoices", "billing", "sleep=2000", "error=there is no rate for EUR", "exit=1", **asleep))


def example_airway(cluster, name):
    text = (ROOT / f"examples/{name}/airway.yaml").read_text()
    manifest = json.loads(cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=text))
    # The console shows the URL: relative to the host's directory, it has no path of this machine.
    manifest["spec"]["wasmUrls"]["flight"] = f"modules/{name}.wasm"
    when_compiled(lambda: cluster.apply(manifest))
    template = manifest["spec"]["template"]
    cluster.learn(f"{template['group']}/v1", template["names"]["kind"], template["names"]["plural"])
    airway = manifest["metadata"]["name"]
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", airway)), f"Airway {airway} is ready", COMPILED)


def rates(rate):
    return {"metadata": {"name": "rates"}, "spec": {"rate": str(rate)}}


def create_airways(cluster):
    cluster.apply_crds(ROOT / "examples/app/cloudsqlinstances.yaml")
    for name in ("app", "pipeline"):
        example_airway(cluster, name)
    create = lambda kind, name, namespace, spec: when_compiled(lambda: cluster.create(airways.instance(kind, name, spec, namespace, "examples.com")))  # noqa: E731
    steps = {step: {"command": ["true"]} for step in ("one", "two", "three")}
    create("Pipeline", "nightly", "orders", steps)
    create("Pipeline", "weekly", "orders", {**steps, "two": {"nodeSelector": {"disk": "large"}, "activeDeadlineSeconds": 2}})
    create("App", "shop", "checkout", {"image": "nginx:stable", "replicas": 2})
    create("App", "wiki", "support", {"image": "nginx:stable"})
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop", "namespace": "checkout"}, "stringData": {"endpoint": "db.example"}})
    when_compiled(lambda: cluster.create(flights.manifest("rates", "search", "basic", inputObject=rates(20))))
    says = lambda kind, name, namespace: cluster.get("examples.com/v1", kind, name, namespace).get("status", {}).get("msg")  # noqa: E731
    for kind, name, namespace, message in (("Pipeline", "nightly", "orders", "all jobs have completed"), ("Pipeline", "weekly", "orders", "job weekly-two failed"),
                                           ("App", "shop", "checkout", "application deployed and ready")):
        eventually(lambda: says(kind, name, namespace) == message, f"{kind} {name} says: {message}", 120)


def create_workflows(cluster):
    workflows.module(cluster, "orders", "database-provisioner", workflows.bundle(workflows.PROVISIONER))
    cluster.create(workflows.workflow("orders", "orders", "database-provisioner", input={"team": "orders"}))
    workflows.module(cluster, "support", "approval", binary=workflows.built("approval.wasm").read_bytes(), key="machine.wasm")
    cluster.create(workflows.workflow("release-notes", "support", "approval", input={"name": "release-notes", "text": "1.2 is out"}))
    workflows.reaches(cluster, "orders", "orders", "ready", 180)
    workflows.reaches(cluster, "support", "release-notes", "waiting")


class Changes:
    """Writes objects that operators watch, instances, and workflows that are approved, until stopped. Begins by asking for runtimes on nodes."""

    def __init__(self, cluster, dice):
        self._cluster, self._dice = cluster, dice
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        for node in self._cluster.list("v1", "Node")[1:]:
            self._cluster.patch("v1", "Node", node["metadata"]["name"], {"metadata": {"annotations": {"kwasm.sh/kwasm-node": "true"}}}, None)
        for number in itertools.count(1):
            # Some teams change more than others.
            team = TEAMS[min(self._dice.randrange(len(TEAMS)) for _ in range(2))]
            self._change(team, self._dice.choice(("prices", "settings")), number)
            if number % 3 == 0:
                self._change(RECORDED, "prices", number)
            if number % 10 == 0:
                try_to(operators.send_nonce, self._cluster, TEAMS[0], number)
            if number % 4 == 0:
                try_to(self._cluster.patch, "examples.com/v1", "App", "shop", {"spec": {"replicas": 2 + number // 4 % 2}}, "checkout")
            if number % 7 == 0:
                try_to(self._cluster.patch, *flights.FLIGHT, "rates", {"spec": {"inputObject": rates(number)}}, "search")
            if number % 5 == 0:
                try_to(self._approve, f"notes-{number}")
            if self._end.wait(self._dice.choice((0.02, 0.1, 0.4, 0.8))):
                return

    def _approve(self, name):
        """Creates a workflow, and answers it when it has begun."""
        self._cluster.create(workflows.workflow(name, "support", "approval", input={"name": name, "text": "1.3 is out"}))
        workflows.reaches(self._cluster, "support", name, "waiting")
        workflows.signal(self._cluster, "support", name, "yes", "APPROVE")

    def _change(self, team, name, number):
        # A recorded body is to fit into the picture, and to show that secrets are left out.
        more = {"eur": f"{number}.95", "token": f"token-{number}"} if team == RECORDED else {"list": "x" * self._dice.randrange(4000)}
        try_to(self._cluster.patch, "v1", "ConfigMap", name, {"data": {"number": str(number), **more}}, team)

    def stop(self):
        self._end.set()
        self._thread.join()


def create_all(cluster):
    dice = random.Random(1)
    create_teams(cluster)
    create_operators(cluster, dice)
    create_airways(cluster)
    create_workflows(cluster)
    return Changes(cluster, dice)


# The recording of hangar top -----------------------------------------------------------------------------

LINES, COLUMNS = 24, 112
PALETTES = {"light": {"ground": "#ffffff", "text": "#1f2328", "line": "#d1d9e0", "marked": "#1f2328", "on-marked": "#ffffff"},
            "dark": {"ground": "#0d1117", "text": "#e6edf3", "line": "#3d444d", "marked": "#e6edf3", "on-marked": "#0d1117"}}
CHARACTER, ROW, MARGIN = 7.8, 17, 14


class Recording:
    """Screens of `hangar top`, and for how long each was seen."""

    def __init__(self, kubeconfig):
        self._screen = Screen(f"--kubeconfig={kubeconfig}", f"--host-namespace={SYSTEM}", lines=LINES, columns=COLUMNS)
        self.frames = []

    def look(self, seconds):
        began = time.monotonic()
        before = None
        while time.monotonic() - began < seconds:
            time.sleep(0.05)
            drawn = self._screen.drawn()
            # A screen that is read twice is whole.
            if drawn == before and (not self.frames or self.frames[-1][0] != drawn):
                self.frames.append([drawn, 0.0])
            before = drawn
            if self.frames:
                self.frames[-1][1] += 0.05

    def press(self, keys, shows, seconds):
        self._screen.press(keys)
        self._screen.shows(shows)
        self.look(seconds)

    def make(self):
        try:
            self._screen.shows("operator")
            self.look(5)
            self.press("sss", "sort (written)", 3)
            self.press(f"/{RECORDED}", f"/{RECORDED}", 1.5)
            self.press("\r", f"filter ({RECORDED})", 2.5)
            self.press("\x1b[H", f"filter ({RECORDED})", 1)
            self.press("\r", "esc: back", 4)
            self.press("\x1b", f"filter ({RECORDED})", 1)
        finally:
            self._screen.close()
        return self.frames


def rows_of(drawn):
    """(text, whether it is marked) of each line of a screen."""
    for line in drawn.split("\r\n"):
        yield re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip(), line.startswith("\x1b[7m")


def frame_svg(number, drawn):
    yield f'<g id="f{number}" class="frame">'
    for at, (text, is_marked) in enumerate(rows_of(drawn)):
        y = MARGIN + at * ROW
        if is_marked:
            yield f'<rect class="bar" x="{MARGIN}" y="{y}" width="{COLUMNS * CHARACTER:.0f}" height="{ROW}"/>'
        if text:
            kind = ' class="marked"' if is_marked else ""
            yield f'<text{kind} x="{MARGIN}" y="{y + 13}" textLength="{len(text) * CHARACTER:.1f}">{escape(text)}</text>'
    yield "</g>"


def recording_svg(frames):
    """Frames are (screen, seconds). Browsers that do not move pictures show the first."""
    width, height = round(2 * MARGIN + COLUMNS * CHARACTER), 2 * MARGIN + LINES * ROW
    whole = sum(seconds for _, seconds in frames)
    colours = lambda name: " ".join(f"--{key}: {value};" for key, value in PALETTES[name].items())  # noqa: E731
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="hangar top">'
    yield f"<style>svg {{ {colours('light')} }} @media (prefers-color-scheme: dark) {{ svg {{ {colours('dark')} }} }}"
    yield ".ground { fill: var(--ground); stroke: var(--line); } .bar { fill: var(--marked); }"
    yield "text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: var(--text); white-space: pre; } text.marked { fill: var(--on-marked); }"
    yield ".frame { visibility: hidden; } #f0 { visibility: visible; }"
    yield "@media (prefers-reduced-motion: no-preference) {"
    passed = 0.0
    for number, (_, seconds) in enumerate(frames):
        begin, passed = 100 * passed / whole, passed + seconds
        steps = {0.0: "hidden", begin: "visible", **({100 * passed / whole: "hidden"} if number < len(frames) - 1 else {})}
        yield f"@keyframes k{number} {{ {' '.join(f'{at:.2f}% {{ visibility: {value}; }}' for at, value in steps.items())} }}"
        yield f"#f{number} {{ animation: k{number} {whole:.1f}s step-end infinite; }}"
    yield "}</style>"
    yield f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>'
    for number, (drawn, _) in enumerate(frames):
        yield from frame_svg(number, drawn)
    yield "</svg>"


def start_host(cluster, work):
    (work / "modules").symlink_to(airways.GUESTS.resolve())
    port = free_port()
    host = showing_host(cluster, work / "host", "--leader-elect", f"--webhook-bind-address=127.0.0.1:{port}", f"--webhook-url=https://127.0.0.1:{port}",
                        f"--installer-image={INSTALLER}", "--node-ready-delay=30s", inside=("env", f"--chdir={work}"))
    wait_registered(cluster, SYSTEM)
    return host


# The dashboards ------------------------------------------------------------------------------------------


def dashboard_lines(prometheus, panel, began, ended):
    for target in panel["targets"]:
        expression = target["expr"].replace("$__rate_interval", f"{SCRAPES_PER_RATE}s").replace("$job", ".*")
        for one in prometheus.query_range(expression, began, ended, STEP_SECONDS):
            # A rate without events has no quantile.
            points = [(seconds, float(value)) for seconds, value in one["values"] if value != "NaN"]
            if points:
                yield dashboard_svg.legend(target["legendFormat"], one["metric"]), points


def draw_dashboards(prometheus, began, out, names):
    ended = time.time()
    for name in names:
        dashboard = charts.dashboards()[f"hangar-{name}.json"]
        lines = [list(dashboard_lines(prometheus, panel, began, ended)) for panel in dashboard["panels"]]
        (out / f"dashboard-{name}.svg").write_text("\n".join(dashboard_svg.svg(dashboard, lines, began, ended)) + "\n")


# All of it -----------------------------------------------------------------------------------------------


def show_console(cluster, work, out, names):
    wanted = [{"width": WIDTH, "theme": "light", **one} for one in PICTURES if not names or one["name"] in names]
    if not wanted:
        return
    browser = consoles.chromium()
    console = consoles.Console(cluster.kubeconfig, work)
    try:
        report = consoles.browse(browser, console, "pictures", out, pictures=wanted)
    finally:
        console.end()
    if report["problems"]:
        sys.exit("\n".join(report["problems"]))
    for one in wanted:
        path = out / f"{one['name']}.png"
        size = path.stat().st_size
        print(f"{path}: {size} bytes")
        if size > BYTES_MAX:
            sys.exit(f"{path} has {size} bytes, the most is {BYTES_MAX}: make its window smaller")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/operating/seeing")
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args()
    every = ["top", *(one["name"] for one in PICTURES), *(f"dashboard-{name}" for name in DASHBOARDS)]
    if unknown := set(chosen.names) - set(every):
        parser.error(f"there is no picture {', '.join(sorted(unknown))}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        cluster = control_plane("--with-kcm", "--with-scheduler", f"--with-kwok={NODES}")
        try:
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
            host = start_host(cluster, work)
            prometheus = Prometheus(work / "prometheus", host, {"groups": []})
            try:
                changes = create_all(cluster)
                began = time.time()
                try:
                    time.sleep(SECONDS_BUSY)
                    draw_dashboards(prometheus, began, chosen.out, [name for name in DASHBOARDS if not chosen.names or f"dashboard-{name}" in chosen.names])
                    if not chosen.names or "top" in chosen.names:
                        (chosen.out / "top.svg").write_text("\n".join(recording_svg(Recording(cluster.kubeconfig).make())) + "\n")
                    show_console(cluster, work, chosen.out, chosen.names)
                finally:
                    changes.stop()
            finally:
                prometheus.close()
                host.stop()
        finally:
            cluster.close()


if __name__ == "__main__":
    main()
