"""`hangar console`: its server against requests of strangers, and its page in Debian's Chromium.

Screenshots are in the directory that HANGAR_SCREENSHOTS names, or in pytest's.
"""
import gzip
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import time

import pytest

import airways
import consoles
import flights
import operators
import test_bodies as bodies
import users
import workflows
from cluster import eventually, is_ready
from conftest import COMPILED, control_plane
from consoles import KEY_HEADER, Console
from host import BINARY, Host, free_port, to_its_end
from operators import EVERYTHING, OPERATOR, allow
from shown import SYSTEM, records_cluster, showing_host

# 4 KiB of markup, a terminal's sequence, marks that turn the direction, and letters that run from right to left.
HOSTILE = ('<script>window.owned = 1</script><img src=x onerror="window.owned = 1">\x1b[31m\u202e' + "\u05d0\u05d1\u05d2 " * 1000)[:4096]


@pytest.fixture
def console(tmp_path):
    """Starts consoles, and ends them."""
    made = []

    def start(kubeconfig, *flags, **options):
        made.append(Console(kubeconfig, tmp_path, *flags, **options))
        return made[-1]
    yield start
    for one in made:
        one.end()


@pytest.fixture(scope="session")
def chromium():
    return consoles.chromium()


@pytest.fixture
def browse(chromium, tmp_path):
    """Runs a scenario of console/browser.mjs, and returns its report, which has no problem."""
    screenshots = pathlib.Path(os.environ.get("HANGAR_SCREENSHOTS", tmp_path / "screenshots"))
    screenshots.mkdir(parents=True, exist_ok=True)

    def run(console, kind, **more):
        report = consoles.browse(chromium, console, kind, screenshots, **more)
        assert not report["problems"], "\n".join(report["problems"])
        return report
    yield run


@pytest.fixture
def nowhere(tmp_path):
    """The kubeconfig of a cluster that does not answer."""
    path = tmp_path / "nowhere.json"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "none", "clusters": [{"name": "none", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
        "users": [{"name": "none", "user": {"token": "none"}}], "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}]}))
    return path


@pytest.fixture(scope="module")
def seen():
    made = records_cluster()
    yield made
    made.close()


@pytest.fixture(scope="module")
def showing(seen, tmp_path_factory):
    """A host that shows its records."""
    yield from to_its_end(showing_host(seen, tmp_path_factory.mktemp("host")))


# The server ----------------------------------------------------------------------------------------------


def test_only_this_machine_the_own_origin_and_the_key_get_an_answer(console, nowhere):
    one = console(nowhere)

    assert one.json("/api/state")["allowsActions"] is False
    assert one.status("/api/state", key=False) == 401 and one.status("/api/state", key="0" * 64) == 401
    for host in ("evil.example", f"evil.example:{one.port}", "127.0.0.1", f"127.0.0.1.evil.example:{one.port}"):
        assert one.status("/api/state", Host=host) == 421 and one.status("/", key=False, Host=host) == 421, host
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{one.port}", f"http://localhost:{one.port}"):
        assert one.status("/api/state", Origin=origin) == 403, origin
    assert one.status("/api/state", Sec_Fetch_Site="cross-site") == 403
    assert one.status("/api/state", method="OPTIONS", Origin="http://evil.example", Access_Control_Request_Headers=KEY_HEADER) == 403
    # It listens on no other address of the machine.
    with socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(OSError):
            other.connect(("127.0.0.2", one.port))


def test_each_answer_forbids_the_browser_what_the_page_does_not_need(console, nowhere):
    one = console(nowhere)

    for path, key in (("/", False), ("/console.js", False), ("/nothing", False), ("/api/state", True), ("/api/state", False)):
        _, headers, _ = one.ask(path, key=key)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy, path
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"], headers["Cache-Control"]) == ("nosniff", "no-referrer", "no-store"), path
        assert not [name for name in headers if name.lower().startswith("access-control")], path


def test_the_page_is_small_and_refers_to_nothing_elsewhere(console, nowhere):
    one = console(nowhere)
    sizes = 0
    for path in ("/", "/console.js", "/console.css", "/icon.svg"):
        status, headers, body = one.ask(path, key=False)
        text = gzip.decompress(body).decode()
        sizes += len(body)
        assert status == 200 and headers["Content-Encoding"] == "gzip"
        assert not re.search(r"(?:src|href)=[\"']?https?:|url\(https?:|@import", text), path
        if path == "/":
            assert "<style" not in text and not re.search(r"<script(?![^>]*src=)", text)

    assert sizes <= 300 * 1024


def test_it_passes_on_what_the_page_shows_and_nothing_else(console, seen):
    one = console(seen.kubeconfig, "--allow-actions")

    assert one.json("/api/cluster/apis/hangar.dev/v1alpha1/operators")["kind"] == "OperatorList"
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets", "/api/v1/namespaces/default/serviceaccounts", "/version", "/metrics",
                 "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/hangar.dev/v1alpha1/operators?watch=true", "/api/v1/namespaces/default/pods/x/log",
                 "/apis/hangar.dev/v1alpha1/namespaces/a%2F..%2Fb/operators"):
        status, _, body = one.ask(f"/api/cluster{path}")
        assert status in (400, 403), (path, status)
        assert b"error" in body and b"items" not in body
    # Instances of an Airway that does not exist.
    status, _, body = one.ask("/api/cluster/apis/examples.com/v1/backends")
    assert status == 403 and b"backends.examples.com" in body
    assert one.status("/api/cluster/apis/hangar.dev/v1alpha1/operators", method="DELETE") == 405


def test_content_of_config_maps_stays_out_of_the_browser(console, seen, unique):
    seen.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": unique, "namespace": "default"}, "data": {"word": "hidden-word"}})
    try:
        _, _, body = console(seen.kubeconfig).ask("/api/cluster/api/v1/namespaces/default/configmaps")
    finally:
        seen.delete("v1", "ConfigMap", unique)

    assert unique.encode() in body and b"hidden-word" not in body and b"managedFields" not in body


def test_it_ends_when_idle_and_by_a_signal(console, nowhere):
    began = time.monotonic()
    idle = console(nowhere, "--idle-timeout=10s")
    assert idle.process.wait(120) == 0 and time.monotonic() - began >= 10
    assert "idle" in idle.process.stdout.read()

    one = console(nowhere, "--idle-timeout=0")
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(30) == 0


@pytest.mark.parametrize("flags, code, says", [
    (["--idle-timeout=1s"], 2, "10s"), (["--idle-timeout=soon"], 2, "soon"), (["--port=70000"], 2, "--port"), (["--kubeconfig=/no/such/file"], 1, "/no/such/file")])
def test_wrong_settings_are_errors_with_words(nowhere, flags, code, says):
    login = [] if flags[0].startswith("--kubeconfig") else [f"--kubeconfig={nowhere}"]
    done = subprocess.run([str(BINARY), "console", "--no-open", *login, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)

    assert done.returncode == code and says in done.stderr and not done.stdout


def test_a_port_in_use_is_an_error_that_names_it(console, nowhere):
    one = console(nowhere)
    done = subprocess.run([str(BINARY), "console", "--no-open", f"--kubeconfig={nowhere}", f"--port={one.port}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)

    assert done.returncode == 1 and str(one.port) in done.stderr


def test_the_browser_gets_an_address_that_works_once(console, nowhere, tmp_path):
    """Other users of the machine can read the command line of the browser."""
    programs = tmp_path / "programs"
    programs.mkdir()
    opener = programs / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" >{tmp_path}/opened.new && mv {tmp_path}/opened.new {tmp_path}/opened\n')
    opener.chmod(0o755)
    one = console(nowhere, env={"PATH": f"{programs}:{os.environ['PATH']}"}, opens=True)
    eventually((tmp_path / "opened").exists, "the browser is opened")
    opened = re.fullmatch(rf"http://127\.0\.0\.1:{one.port}/#open=([0-9a-f]{{64}})", (tmp_path / "opened").read_text().strip())

    assert opened and opened[1] != one.key and one.status("/api/state", key=opened[1]) == 401
    assert one.json("/api/open", method="POST", key=opened[1])["key"] == one.key
    assert one.status("/api/open", method="POST", key=opened[1]) == 401


def test_a_cluster_that_does_not_answer_is_an_error_with_words(console, nowhere):
    one = console(nowhere)

    for path in ("/api/cluster/apis/hangar.dev/v1alpha1/operators", "/api/top", "/api/cost", "/api/nodes"):
        status, _, body = one.ask(path)
        assert status == 502 and json.loads(body)["error"], path
    assert one.status("/api/turns") == 400 and one.status("/api/no-such-question") == 404


# The page ------------------------------------------------------------------------------------------------


def test_a_browser_that_is_too_old_is_named(chromium, tmp_path, monkeypatch):
    """The oldest version is the one that the pinned playwright-core was made for."""
    packages = pathlib.Path(chromium[1]["NODE_PATH"].split(":")[0])
    browsers = json.loads((packages / "playwright-core/browsers.json").read_text())["browsers"]
    (made_for,) = [one["browserVersion"] for one in browsers if one["name"] == "chromium"]
    oldest = int(made_for.partition(".")[0])
    assert consoles.oldest_chromium() == oldest

    old = tmp_path / "chromium"
    old.write_text(f"#!/bin/sh\necho Chromium {oldest - 1}.0.4430.212 built on Debian GNU/Linux\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(AssertionError, match=f"is Chromium {oldest - 1}, but the tests need {oldest} or newer"):
        consoles.chromium()


def test_every_page_is_readable_in_both_themes_and_at_360_px(console, nowhere, browse):
    """With 10,000 operators and hostile names, from canned answers: the page, its policy and its key are the program's."""
    report = browse(console(nowhere, "--allow-actions"), "canned")

    assert re.match(r"team-\d+/\S+: \w+", report["texts"]["selected"])
    seen = report["map"]
    times, frames = ([one["milliseconds"] for one in seen["draws"]], seen["frames"])
    print(f"the map: {len(times)} drawings, median {statistics.median(times):.1f} ms, most {max(times):.1f} ms; "
          f"between frames: median {statistics.median(frames):.1f} ms, most {max(frames):.1f} ms")
    # One path for each of the four states, not one for each operator.
    assert {(one["cells"], one["paths"] <= 4) for one in seen["draws"]} == {(10_000, True)}
    assert seen["elements"] < 10_000, "the page has an element for each operator"
    # Each key and each answer draws once at most; two questions may have been under way.
    assert len(times) <= seen["keys"] + seen["asked"] + 2, seen


def test_another_page_of_the_same_browser_reaches_nothing(console, nowhere, browse):
    one = console(nowhere, "--allow-actions")
    report = browse(one, "stranger")
    tries = report["tries"]

    assert tries == {"read": "failed: TypeError", "read the page": "failed: TypeError", "read with a key": "failed: TypeError", "without cors": tries["without cors"],
                     "signal": tries["signal"], "storage": "0", "script": "refused", "window": "not readable"}
    # What a page may send without being shown the answer is refused: it has no key, and the wrong origin.
    for name in ("without cors", "signal"):
        assert tries[name].startswith(("failed", "opaque")), tries
    assert report["framed"] == [False], "no other page contains the console"


def test_what_the_cluster_says_is_text(console, browse):
    """Nobody but the test writes these statuses: no host runs."""
    cluster = control_plane()
    try:
        cluster.create(operators.manifest("loud", "default"))
        cluster.patch(*OPERATOR, "loud", {"status": {"phase": "BackOff", "lastError": HOSTILE, "conditions": [
            {"type": "Ready", "status": "False", "reason": "Trapped", "message": HOSTILE, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}, subresource="status")
        cluster.create(workflows.workflow("loud", "default", "none"))
        cluster.patch(*workflows.WORKFLOW, "loud", {"status": {"value": HOSTILE, "transitions": 1, "failure": HOSTILE}}, subresource="status")
        cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "loud"}})
        report = browse(console(cluster.kubeconfig), "visit", pages=[
            ("hostile-map", "#/", "default/loud"), ("hostile-operator", "#/operator/default/loud", "BackOff"), ("hostile-workflows", "#/workflows", "default/loud"),
            ("hostile-workflow", "#/workflow/default/loud", "It failed"), ("hostile-nodes", "#/nodes", "loud"), ("hostile-address", "#/operator/default/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "cannot be read")])
    finally:
        cluster.close()

    for name in ("hostile-map", "hostile-operator", "hostile-workflows", "hostile-workflow"):
        assert "<script>window.owned = 1</script>" in report["texts"][name], name
        assert "\\u001b" in report["texts"][name] and "\\u202e" in report["texts"][name] and "\u202e" not in report["texts"][name], name
    assert "#key" not in report["left"]


@pytest.fixture
def reader(seen, showing, unique):
    """A namespace with an operator that has read and written."""
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    allow(seen, unique, *EVERYTHING, resources=("configmaps",))
    seen.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": unique}})
    seen.create(operators.manifest("reader", unique, f"get=/api/v1/namespaces/{unique}/configmaps/settings", "wait", "--", "tick=3600000"))
    yield unique
    seen.delete(*OPERATOR, "reader", unique)
    seen.delete("v1", "Namespace", unique)


def test_an_operator_its_turns_and_its_output_are_shown(console, browse, seen, reader):
    one = console(seen.kubeconfig)
    eventually(lambda: one.status(f"/api/turns?namespace={reader}&name=reader") == 200, "its turns are recorded", 180)

    report = browse(one, "visit", pages=[("map", "#/", f"{reader}/reader"), ("operator", f"#/operator/{reader}/reader", "What it watches"), ("tenants", "#/tenants", reader)])

    assert "Failing and awake first" in report["texts"]["map"] and "There is no cost" not in report["texts"]["map"]
    assert re.search(r"\d requests?", report["texts"]["operator"]) and "Turns" in report["texts"]["operator"]


def test_an_operators_open_watches_are_shown(console, browse, seen, reader):
    one = console(seen.kubeconfig)

    def is_open():
        status, _, body = one.ask(f"/api/uses?namespace={reader}&name=watcher")
        return status == 200 and any(use.get("isOpen") for use in json.loads(body)["uses"])
    try:
        seen.create(operators.manifest("watcher", reader, f"watch={reader}"))
        eventually(is_open, "its watch is open", 180)
        report = browse(one, "visit", pages=[("watches", f"#/operator/{reader}/watcher", "What it watches")], click={"watches": ["Show the open watches"]})
    finally:
        seen.delete(*OPERATOR, "watcher", reader)
    assert re.search(rf"Open watch\s+Namespace\s+configmaps\s+{reader}", report["texts"]["watches"])


def test_recorded_bodies_are_text_for_who_may_get_what_the_operator_read(console, browse, seen, reader, tmp_path):
    allow(seen, reader, *EVERYTHING, resources=("secrets",))
    policy = {"apiVersion": bodies.POLICY[0], "kind": bodies.POLICY[1], "metadata": {"name": f"{reader}-bodies"},
              "spec": {"namespaceSelector": {"matchLabels": {bodies.LABEL: reader}}, "records": {"bodies": True}}}
    seen.apply(policy)
    seen.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": reader}})
    kubeconfig = users.with_token(seen, tmp_path, "viewer", reader)
    users.let(seen, f"{reader}:viewer", SYSTEM, ["get"], ["configmaps"], names=["hangar-records"])
    users.let(seen, f"{reader}:viewer", reader, ["get"], ["operators"])
    page = f"#/operator/{reader}/writer"
    try:
        seen.create(operators.manifest("writer", reader, f"get=/api/v1/namespaces/{reader}/secrets/login", bodies.writing(reader, "made", note=HOSTILE[:200]), "wait",
                                       "--", "tick=3600000", record="Bodies"))
        bodies.written(seen, "made", reader)
        assert bodies.write_of(seen.kubeconfig, "writer", reader, "made")["bodyState"] == "whole"
        shown, withheld = (browse(console(config), "visit", pages=[(name, page, "What it watches")], click={name: ["wrote"]})["texts"][name]
                           for name, config in (("bodies", seen.kubeconfig), ("bodies-withheld", kubeconfig)))
    finally:
        seen.delete(*OPERATOR, "writer", reader)
        seen.delete(*bodies.POLICY, f"{reader}-bodies")

    assert '\n    "plain": "seen"' in shown and "hmac:" in shown and bodies.SECRET not in shown, shown
    assert "<script>window.owned = 1</script>" in shown and "\u202e" not in shown
    assert "The body is withheld" in withheld and '"plain"' not in withheld, withheld


def test_a_user_of_one_namespace_sees_that_one(console, browse, seen, reader, tmp_path):
    kubeconfig = users.with_token(seen, tmp_path, "viewer", reader)
    config = json.loads(kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = reader
    kubeconfig.write_text(json.dumps(config))
    users.let(seen, f"{reader}:viewer", reader, ["get", "list"], ["operators"])
    seen.create(operators.manifest("elsewhere", "default"))
    try:
        report = browse(console(kubeconfig), "visit", pages=[("viewer-map", "#/", f"{reader}/reader"), ("viewer-elsewhere", "#/operator/default/elsewhere", "cannot be read")])
    finally:
        seen.delete(*OPERATOR, "elsewhere", "default")

    assert "default/elsewhere" not in report["texts"]["viewer-map"] and "You may not list them in all namespaces" in report["texts"]["viewer-map"]
    assert "forbidden" in report["texts"]["viewer-elsewhere"]


def test_the_cost_of_namespaces_is_a_table_with_the_rows_of_the_user(console, browse, seen, reader, tmp_path):
    one = console(seen.kubeconfig)

    def cost_of(console):
        status, _, body = console.ask("/api/cost")
        rows = json.loads(body)["rows"] if status == 200 else []
        return [row for row in rows if row["namespace"] == reader and row.get("module") and row["requests"]]
    module = eventually(lambda: cost_of(one), "it has a cost", 180)[0]["module"]
    kubeconfig = users.with_token(seen, tmp_path, "viewer", reader)
    users.let(seen, f"{reader}:viewer", SYSTEM, ["get"], ["configmaps"], names=["hangar-records"])
    users.let(seen, f"{reader}:viewer", reader, ["list"], ["operators"])
    other = console(kubeconfig)
    eventually(lambda: cost_of(other), "the viewer is shown it", 60)

    whole = browse(one, "visit", pages=[("cost", "#/tenants", "(host)")])["texts"]["cost"]
    part = browse(other, "visit", pages=[("viewer-cost", "#/tenants", "(sum)")])["texts"]["viewer-cost"]

    for text in (whole, part):
        assert re.search(rf"^{reader}\s+{module[:12]}\s+\d+\.\d\d\s", text, re.MULTILINE) and re.search(r"^\(sum\)\s", text, re.MULTILINE), text
    assert "(host)" in whole and "(host)" not in part and "The cost cannot be shown" not in part


AIRWAY = ("yoke.cd/v1alpha1", "Airway")
CONFIG_MAP, SECRET, DEPLOYMENT = ("v1", "ConfigMap"), ("v1", "Secret"), ("apps/v1", "Deployment")


def printed():
    """What a flight prints: everything is ready at once, without nodes."""
    labels = {"app": "web"}
    container = {"name": "web", "image": "registry.example.com/web:1"}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}},
        *({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"word": "as-printed"}} for name in ("edited", "kept", "gone")),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"user": "dXNlcg==", "password": "cHJpbnRlZA=="}}]


@pytest.fixture
def instance(seen, showing, unique):
    """A ready instance of an Airway in mode standard, in a namespace of its own; its reference."""
    namespace, kind = unique, unique.capitalize()
    airway = airways.airway(f"{unique}s", kind, airways.flight("behave"))
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    seen.create(airway)
    seen.learn("e2e.hangar.dev/v1", kind, f"{unique}s")
    eventually(lambda: is_ready(seen.get(*AIRWAY, airway["metadata"]["name"])), "the Airway is ready", COMPILED)
    seen.create(airways.instance(kind, "shop", {"behaviour": "raw", "stdout": json.dumps(printed())}, namespace))
    eventually(lambda: is_ready(seen.get("e2e.hangar.dev/v1", kind, "shop", namespace)), "the instance is ready", COMPILED)
    yield f"{namespace}/{kind}.e2e.hangar.dev:shop"
    seen.delete("e2e.hangar.dev/v1", kind, "shop", namespace)
    eventually(lambda: seen.get("e2e.hangar.dev/v1", kind, "shop", namespace) is None, "the instance is gone", 60)
    seen.delete(*AIRWAY, airway["metadata"]["name"])
    seen.delete("v1", "Namespace", namespace)


def drift_of(console, instance):
    found = console.json(f"/api/drift?instance={instance}")
    return found, {one["resource"].partition("/")[2]: one for one in found["resources"]}


def test_the_page_shows_how_the_cluster_differs_from_the_flights_output(console, browse, seen, instance):
    one = console(seen.kubeconfig)
    namespace = instance.partition("/")[0]
    none = browse(one, "visit", pages=[("drift-none", "#/releases", instance.split("/")[1].partition(".")[0].lower())], compares=["drift-none"])

    seen.kubectl("scale", "deployment", "web", "--replicas=3", f"--namespace={namespace}")
    seen.patch(*CONFIG_MAP, "edited", {"data": {"word": HOSTILE, "added": "by somebody"}}, namespace)
    seen.patch(*SECRET, "login", {"data": {"password": "ZWRpdGVk"}}, namespace)
    seen.delete(*CONFIG_MAP, "gone", namespace)
    eventually(lambda: seen.get(*CONFIG_MAP, "gone", namespace) is None, "it is gone", 30)
    found, resources = drift_of(one, instance)
    report = browse(one, "visit", pages=[("drift", "#/releases", instance.split("/")[1].partition(".")[0].lower())], compares=["drift"])

    assert "No difference: the cluster has what the flight printed (5 resources, revision 1)." in none["texts"]["drift-none"]
    assert {name: one["drift"] for name, one in resources.items()} == {
        "Deployment.apps:web": "differs", "ConfigMap:edited": "differs", "ConfigMap:kept": "none", "ConfigMap:gone": "missing", "Secret:login": "differs"}
    assert found["revision"] == 1 and found["leftOut"] == 0
    assert "-  replicas: 0\n+  replicas: 3\n" in resources["Deployment.apps:web"]["difference"]
    assert "by somebody" not in resources["ConfigMap:edited"]["difference"]
    # Of a Secret the keys, and no value.
    login = resources["Secret:login"]["difference"]
    assert "\n-  password: " in login and "\n   user: (withheld)\n" in login
    text = report["texts"]["drift"]
    assert "Of 5 resources (revision 1): 3 differ from the flight's output; 1 is missing in the cluster." in text
    assert "-  replicas: 0\n+  replicas: 3\n" in text
    assert "-  word: as-printed\n" in text and "<script>window.owned = 1</script>" in text and "\\u202e" in text and "\u202e" not in text
    for value in ("ZWRpdGVk", "cHJpbnRlZA", "dXNlcg"):
        assert value not in text and value not in json.dumps(found)


def test_a_comparison_needs_the_rights_of_the_user_and_names_those_that_are_missing(console, browse, seen, showing, unique, tmp_path):
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    flights.allow(seen, unique)
    made = flights.Flights(seen, unique)
    try:
        made.create("web", "basic", does={"data": {"word": "as-printed"}})
        made.ready("web")
        seen.patch(*CONFIG_MAP, "web", {"data": {"word": "edited"}}, unique)
        kubeconfig = users.with_token(seen, tmp_path, "viewer", unique)
        config = json.loads(kubeconfig.read_text())
        for context in config["contexts"]:
            context["context"]["namespace"] = unique
        kubeconfig.write_text(json.dumps(config))
        users.let(seen, f"{unique}:viewer", unique, ["get", "list"], ["flights"], groups=("yoke.cd",))
        one = console(kubeconfig)
        status, _, body = one.ask(f"/api/drift?instance={unique}/Flight.yoke.cd:web")
        texts = [browse(one, "visit", pages=[("no-secrets", "#/releases", f"{unique}/web")], compares=["no-secrets"])["texts"]["no-secrets"]]
        for name, verbs, resources in (("no-config-maps", ["list"], ["secrets"]), ("all-rights", ["get"], ["configmaps"])):
            users.let(seen, f"{unique}:viewer", unique, verbs, resources, groups=("",))
            texts.append(browse(one, "visit", pages=[(name, "#/releases", f"{unique}/web")], compares=[name])["texts"][name])
    finally:
        made.delete("web")
        made.goes("web")
        seen.delete("v1", "Namespace", unique)

    assert status == 403 and b'cannot list resource \\"secrets\\"' in body, body
    assert "A right is missing." in texts[0] and f"in Secrets of the namespace {unique}, which you may not list" in texts[0]
    assert "1 could not be read" in texts[1] and 'cannot get resource "configmaps"' in texts[1] and "as-printed" not in texts[1]
    assert "-  word: as-printed\n+  word: edited\n" in texts[2]


def test_a_release_without_a_history_is_an_error_with_words(console, seen):
    one = console(seen.kubeconfig)

    status, _, body = one.ask("/api/drift?instance=default/Flight.yoke.cd:nobody")
    assert status == 404 and b"has no history" in body
    assert one.status("/api/drift") == 400 and one.status("/api/drift?instance=nonsense") == 400


def test_a_rollout_is_shown_until_its_node_is_provisioned(console, browse, tmp_path):
    installer = "registry.example.com/hangar-node:v1"
    cluster = control_plane("--with-kcm", "--with-kwok=2")
    try:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
        host = Host(cluster.kubeconfig, tmp_path / "host", f"--namespace={SYSTEM}", "--features=nodes", f"--installer-image={installer}", "--node-ready-delay=0s")
        try:
            one = console(cluster.kubeconfig)
            eventually(lambda: one.json("/api/nodes")["rollout"]["version"], "the rollout has a record", 60)
            before = browse(one, "visit", pages=[("nodes-untouched", "#/nodes", "not asked for")])["texts"]["nodes-untouched"]
            cluster.patch("v1", "Node", "node-0", {"metadata": {"annotations": {"kwasm.sh/kwasm-node": "true"}}}, None)
            # The page asks again until it sees it.
            after = browse(one, "visit", pages=[("nodes-rollout", "#/nodes", "1 of 1"), ("nodes", "#/nodes", "Provisioned")])["texts"]["nodes"]
        finally:
            host.stop()
    finally:
        cluster.close()

    assert installer in before and "0 of 0" in before and "Provisioned" not in before
    assert "1 of 1" in after and re.search(rf"^node-0\s+Provisioned\s+{re.escape(installer)}\s", after, re.MULTILINE), after
    assert re.search(r"^node-1\s+not asked for\s", after, re.MULTILINE), after


@pytest.fixture
def waiting(seen, showing, unique):
    """A workflow whose action waits for a ConfigMap that nobody makes."""
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}})
    workflows.allow(seen, unique)
    workflows.module(seen, unique, "conductor", workflows.bundle(workflows.CONDUCTOR))
    wait = {"type": "WAIT_FOR", "params": {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody-makes-this", "jsonPath": "{.data.ready}"}}
    seen.create(workflows.workflow("told", unique, "conductor", input={"rounds": [[wait]]}))
    eventually(lambda: workflows.status(seen, unique, "told").get("value") == "acting", "it acts", 120)
    yield unique
    seen.delete(*workflows.WORKFLOW, "told", unique)
    seen.delete("v1", "Namespace", unique)


def heard(cluster, namespace):
    return workflows.state(workflows.status(cluster, namespace, "told")).get("context", {}).get("seen", [])


def test_a_signal_is_sent_after_a_question_and_only_if_actions_are_allowed(console, browse, seen, waiting):
    page = f"#/workflow/{waiting}/told"
    allowed = browse(console(seen.kubeconfig, "--allow-actions"), "signal", hash=page, event="BY_HAND")
    refused = browse(console(seen.kubeconfig), "signal", hash=page, event="NOT_SENT")

    assert allowed["sentWithoutConsent"] == 0 and "BY_HAND" in allowed["texts"]["question"] and waiting in allowed["texts"]["question"]
    assert "Sent BY_HAND" in allowed["texts"]["main"]
    eventually(lambda: "BY_HAND" in heard(seen, waiting), "the workflow has heard it", 60)
    assert "read-only" in refused["texts"]["main"] and "NOT_SENT" not in heard(seen, waiting)


def test_a_workflow_is_drawn(console, browse, seen, waiting):
    report = browse(console(seen.kubeconfig), "visit", pages=[("workflows", "#/workflows", f"{waiting}/told"), ("workflow", f"#/workflow/{waiting}/told", "Filled: where it is")])

    assert "WAIT_FOR" in report["texts"]["workflow"] and "The machine cannot be drawn" not in report["texts"]["workflow"]


def test_a_diagram_reads_no_file_of_this_machine(console, seen, unique):
    """Whoever writes a workflow chooses its module; whoever looks at it does not."""
    seen.create(workflows.workflow(unique, "default", module={"url": f"file://{workflows.__file__}"}))
    try:
        status, _, body = console(seen.kubeconfig).ask(f"/api/machine?namespace=default&name={unique}")
    finally:
        seen.delete(*workflows.WORKFLOW, unique, "default")

    assert status != 200 and b"not for modules" in body, body


def test_a_signal_needs_the_rights_of_the_user(console, seen, waiting, tmp_path):
    kubeconfig = users.with_token(seen, tmp_path, "viewer", waiting)
    users.let(seen, f"{waiting}:viewer", waiting, ["get"], ["statefulworkflows"], groups=("workflows.example.com",))
    one = console(kubeconfig, "--allow-actions")
    body = json.dumps({"namespace": waiting, "name": "told", "event": "NO"})
    origin = f"http://127.0.0.1:{one.port}"

    status, _, answer = one.ask("/api/signal", method="POST", body=body, Origin=origin)
    assert status == 403 and b"forbidden" in answer
    assert one.status("/api/signal", method="POST", body=body) == 403  # Without an Origin.
    assert one.status("/api/signal", method="POST", body="{}", Origin=origin) == 400
    assert one.status("/api/signal", method="POST", body="x" * 100_000, Origin=origin) == 413
    assert "NO" not in heard(seen, waiting)
