"""Traces of turns for an OpenTelemetry collector: `--traces-url`. One collector of these tests is OpenTelemetry's own; the others, which are bad
if a test says so, read protobuf by themselves."""
import http.server
import json
import subprocess
import threading
import time

import pytest

import airways
import operators
import workflows
from cluster import eventually, is_ready
from conftest import COMPILED, control_plane, namespace_in
from front import Front
from host import BINARY, Host, to_its_end
from open_telemetry import OpenTelemetryCollector
from operators import EVERYTHING, OPERATOR, allow, lines

# How an object names the trace in which it was written, and the links of the turn that it woke.
ANNOTATIONS = {"hangar.dev/traceparent": f"00-{'ab' * 16}-{'cd' * 8}-00"}
LINKS = [{"trace": "ab" * 16, "id": "cd" * 8}]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """A protobuf message: the values of each field's number."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "the message is cut off"
        found.setdefault(key >> 3, []).append(value)
    return found


def text(data):
    return data.decode()


def attribute(data):
    pair = fields(data)
    (number, [value]), = fields(pair[2][0]).items()
    return text(pair[1][0]), text(value) if number == 1 else value


def spans_in(body):
    """Numbers of fields as opentelemetry-proto has them: ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Span, Status."""
    for resource in map(fields, fields(body)[1]):
        assert dict(map(attribute, fields(resource[1][0])[1]))["service.name"] == "hangar"
        for scope in map(fields, resource[2]):
            for span in map(fields, scope[2]):
                status = fields(span[15][0]) if 15 in span else {}
                yield {"trace": span[1][0].hex(), "id": span[2][0].hex(), "parent": span[4][0].hex() if 4 in span else None, "name": text(span[5][0]),
                       "start": int.from_bytes(span[7][0], "little"), "end": int.from_bytes(span[8][0], "little"),
                       "links": [{"trace": one[1][0].hex(), "id": one[2][0].hex()} for one in map(fields, span.get(13, []))],
                       "attributes": dict(map(attribute, span.get(9, []))), "error": status.get(3) == [2]}


class Collector(http.server.ThreadingHTTPServer):
    """`behave`: takes, refuses, hangs or is slow."""
    daemon_threads = True

    def __init__(self):
        self.behave, self.spans, self.asked = "takes", [], 0
        self.released = threading.Event()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.asked += 1
                if collector.behave == "hangs":
                    collector.released.wait(60)
                    return
                if collector.behave == "slow":
                    collector.released.wait(3)
                status = 503 if collector.behave == "refuses" else 200
                if status == 200:
                    assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                    collector.spans += spans_in(body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def of(self, namespace):
        return [one for one in list(self.spans) if one["attributes"].get("k8s.namespace.name") == namespace]


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.released.set()
    made.shutdown()


@pytest.fixture
def cluster(own_cluster):
    return own_cluster


def host_with(own_cluster, directory, collector, ratio):
    return Host(own_cluster.kubeconfig, directory, "--features=operators", f"--traces-url={collector.url}", f"--traces-ratio={ratio}")


@pytest.fixture
def traced(own_cluster, collector, tmp_path):
    yield from to_its_end(host_with(own_cluster, tmp_path / "host", collector, 1))


@pytest.fixture(scope="module")
def open_telemetry(tmp_path_factory):
    made = OpenTelemetryCollector(tmp_path_factory.mktemp("collector"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def joining_cluster(open_telemetry):
    """Its API server sends its own spans to the same collector."""
    made = control_plane("--with-kcm", open_telemetry.api_server_joins())
    yield made
    made.close()


@pytest.fixture
def joining_namespace(joining_cluster, unique):
    yield from namespace_in(joining_cluster, f"ns-{unique}")


@pytest.fixture
def collected(joining_cluster, open_telemetry, tmp_path):
    yield from to_its_end(host_with(joining_cluster, tmp_path / "host", open_telemetry, 1))


@pytest.fixture
def sampled_never(own_cluster, collector, tmp_path):
    yield from to_its_end(host_with(own_cluster, tmp_path / "host", collector, 0))


def create(cluster, namespace, *steps):
    allow(cluster, namespace, *EVERYTHING)
    cluster.create(operators.manifest("traced", namespace, *steps))


def delete(cluster, namespace):
    cluster.delete(*OPERATOR, "traced", namespace)
    eventually(lambda: cluster.get(*OPERATOR, "traced", namespace) is None, "it is gone", 60)


def test_a_turn_is_a_trace_and_its_requests_are_children(cluster, traced, collector, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps/missing"
    create(cluster, namespace, f"get={path}", "wait", "--", "tick=3600000")

    def children():
        return [one for one in collector.of(namespace) if one["parent"]]
    got = eventually(lambda: [one for one in children() if one["name"] == "get configmaps"], "the request has a span", COMPILED)[0]
    assert got["attributes"]["http.response.status_code"] == 404 and got["attributes"]["hangar.object.name"] == "missing"
    assert not got["error"], "programs ask for what may not be there"
    turns = eventually(lambda: [one for one in collector.of(namespace) if one["trace"] == got["trace"] and not one["parent"]], "its turn has one", 60)
    assert [one["id"] for one in turns] == [got["parent"]]
    turn = turns[0]
    assert turn["name"] == "turn of operator" and turn["attributes"]["hangar.guest"] == "traced" and turn["attributes"]["hangar.cpu_ns"] > 0
    for one in (turn, got):
        assert abs(one["start"] / 1e9 - time.time()) < 600 and one["end"] >= one["start"]
    delete(cluster, namespace)


def test_requests_to_the_api_server_are_part_of_the_trace(cluster, collector, namespace, tmp_path):
    front = Front(cluster, tmp_path)
    host = Host(front.kubeconfig, tmp_path / "host", "--features=operators", f"--traces-url={collector.url}", "--traces-ratio=1")
    try:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        body = json.dumps({"metadata": {"name": "made"}})
        own = f"00-{'ab' * 16}-{'cd' * 8}-01"
        create(cluster, namespace, f"request=POST,{path},{body}", f"header=traceparent,{own},{path}/other", "wait", "--", "tick=3600000")
        made = eventually(lambda: [one for one in collector.of(namespace) if one["name"] == "create configmaps"], "the write has a span", COMPILED)[0]
        shown = [traceparent for method, asked, traceparent in front.traceparents if method == "POST" and asked.startswith(path)]
        assert shown == [f"00-{made['trace']}-{made['id']}-01"]
        eventually(lambda: [one for one in collector.of(namespace) if one["name"] == "get configmaps"], "the read has one", 60)
        assert own not in [traceparent for _, _, traceparent in front.traceparents], "a guest cannot choose"
        delete(cluster, namespace)
    finally:
        host.stop()
        front.close()


def test_a_turn_is_linked_to_the_trace_of_the_object_that_woke_it(cluster, traced, collector, namespace):
    create(cluster, namespace, f"watch={namespace}")
    eventually(lambda: any(line.startswith("listed") for line in lines(traced, "traced", namespace)), "it watches", COMPILED)
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "made", "namespace": namespace, "annotations": ANNOTATIONS}})
    eventually(lambda: [one for one in collector.of(namespace) if one["links"] == LINKS], "a turn has the link", 60)
    delete(cluster, namespace)


@pytest.fixture
def fronted(cluster, collector, tmp_path):
    front = Front(cluster, tmp_path)
    host = Host(front.kubeconfig, tmp_path / "host", f"--traces-url={collector.url}", "--traces-ratio=1")
    yield front
    host.stop()
    front.close()


def turn_that_made(front, collector, namespace, name):
    """The span of the turn that applied the ConfigMap; the API server was shown that of the request."""
    def applies():
        return [one for one in collector.of(namespace) if one["name"] == "patch configmaps" and one["attributes"].get("hangar.object.name") == name
                and one["attributes"]["http.response.status_code"] == 201]
    made = eventually(applies, "the write has a span", COMPILED)[-1]
    assert made["attributes"]["hangar.request.bytes"] > 0 and made["attributes"]["hangar.response.bytes"] > 0
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}?"
    shown = [traceparent for method, asked, traceparent in front.traceparents if method == "PATCH" and asked.startswith(path)]
    assert f"00-{made['trace']}-{made['id']}-01" in shown
    (turn,) = eventually(lambda: [one for one in collector.of(namespace) if one["id"] == made["parent"]], "its turn has one", 60)
    assert turn["trace"] == made["trace"] and not turn["parent"]
    return turn


def test_a_run_of_a_flight_is_a_trace_with_what_it_applied(cluster, fronted, collector, namespace, unique):
    kind, plural = f"Traced{unique}", f"traced{unique}s"
    manifest = airways.airway(plural, kind, airways.flight("behave"))
    airway = (manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])
    cluster.apply(manifest)
    cluster.learn("e2e.hangar.dev/v1", kind, plural)
    eventually(lambda: is_ready(cluster.get(*airway)), "the Airway is ready", COMPILED)
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
    cluster.create(airways.instance(kind, "one", {"behaviour": "raw", "stdout": json.dumps([made])}, namespace, annotations=ANNOTATIONS))

    turn = turn_that_made(fronted, collector, namespace, "made")
    assert turn["name"] == "turn of airway" and turn["attributes"]["hangar.guest"] == f"{plural}.e2e.hangar.dev/one" and turn["links"] == LINKS
    cluster.delete("e2e.hangar.dev/v1", kind, "one", namespace)
    eventually(lambda: cluster.get("e2e.hangar.dev/v1", kind, "one", namespace) is None, "the instance is gone", 60)
    cluster.delete(*airway)


def test_a_step_of_a_workflow_is_a_trace_with_what_it_applied(cluster, fronted, collector, namespace):
    workflows.allow(cluster, namespace)
    workflows.module(cluster, namespace, "conductor", workflows.bundle(workflows.CONDUCTOR))
    made = {"type": "APPLY", "params": {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}}}
    manifest = workflows.workflow("order", namespace, "conductor", input={"rounds": [[made]]})
    manifest["metadata"]["annotations"] = ANNOTATIONS
    cluster.create(manifest)

    turn = turn_that_made(fronted, collector, namespace, "made")
    assert turn["name"] == "turn of workflow" and turn["attributes"]["hangar.guest"] == "statefulworkflows.workflows.example.com/order"
    # The workflow's creation woke the turn before.
    eventually(lambda: [one for one in collector.of(namespace) if one["links"] == LINKS and one["name"] == "turn of workflow"], "a turn has the link", 60)
    cluster.delete(*workflows.WORKFLOW, "order", namespace)
    eventually(lambda: cluster.get(*workflows.WORKFLOW, "order", namespace) is None, "it is gone", 60)


def test_errors_are_sent_whatever_the_ratio(cluster, sampled_never, collector, namespace):
    create(cluster, namespace, f"get=/api/v1/namespaces/{namespace}/configmaps/missing", "get=/api/v1/namespaces/kube-system/secrets/hidden", "trap")
    eventually(lambda: [one for one in collector.of(namespace) if one["error"] and one["name"] == "get secrets"], "the refused request is sent", COMPILED)
    eventually(lambda: [one for one in collector.of(namespace) if one["error"] and not one["parent"]], "the turn that failed is sent", 60)
    assert all("hidden" not in str(one) for one in collector.of(namespace)), "no Secret is named"
    delete(cluster, namespace)


@pytest.mark.parametrize("behaviour", ["hangs", "refuses", "slow"])
def test_a_collector_that_is_bad_costs_nothing_but_traces(cluster, traced, collector, namespace, behaviour):
    collector.behave = behaviour
    create(cluster, namespace, "tick=50,40", "wait")
    eventually(lambda: "tick 40" in lines(traced, "traced", namespace), "the operator does not wait", COMPILED)
    eventually(lambda: collector.asked > 0, "the collector was asked", 60)
    if behaviour != "slow":
        eventually(lambda: traced.metrics().get("hangar_traces_lost_total", 0) > 0, "traces are lost", 60)
        assert "traces are lost" in traced.log.read_text()
    # It is used again when it is well.
    collector.behave = "takes"
    collector.released.set()
    cluster.patch(*OPERATOR, "traced", {"spec": {"args": ["tick=500"]}}, namespace)
    eventually(lambda: collector.of(namespace), "traces are sent again", COMPILED)
    delete(cluster, namespace)


def test_opentelemetrys_collector_has_the_turn_its_requests_and_what_the_api_server_did(joining_cluster, collected, open_telemetry, joining_namespace):
    path = f"/api/v1/namespaces/{joining_namespace}/configmaps"
    body = json.dumps({"metadata": {"name": "made"}})
    # Both are asked for in the first turn.
    create(joining_cluster, joining_namespace, f"request=POST,{path},{body}", "wait", "--", f"get={path}/missing", "wait", "--", "tick=3600000")
    made = eventually(lambda: [one for one in open_telemetry.of(joining_namespace) if one["name"] == "create configmaps"], "the write has a span", COMPILED)[0]

    def ours():
        return [one for one in open_telemetry.trace(made["trace"]) if one["service"] == "hangar"]
    eventually(lambda: len(ours()) == 3, "the turn and its two requests are there", 60)
    (turn,), requests = [one for one in ours() if not one["parent"]], [one for one in ours() if one["parent"]]
    assert turn["name"] == "turn of operator" and turn["attributes"]["hangar.guest"] == "traced" and turn["attributes"]["hangar.cpu_ns"] > 0
    assert turn["attributes"]["hangar.was_asleep"] is False and not turn["error"]
    assert {one["name"]: (one["parent"], one["attributes"]["http.response.status_code"], one["error"]) for one in requests} == {
        "create configmaps": (turn["id"], 201, False), "get configmaps": (turn["id"], 404, False)}

    # The API server continues a trace for whom it trusts; this host is an administrator.
    def theirs():
        return [one for one in open_telemetry.trace(made["trace"]) if one["service"] != "hangar" and one["parent"] == made["id"]]
    (served,) = eventually(theirs, "the API server has a span below the request's", 60)
    assert served["name"] == "POST /api/v1/namespaces/{:namespace}/configmaps"
    assert collected.metrics().get("hangar_traces_lost_total", 0) == 0
    delete(joining_cluster, joining_namespace)


def test_opentelemetrys_collector_sees_errors_as_errors(joining_cluster, collected, open_telemetry, joining_namespace):
    create(joining_cluster, joining_namespace, "get=/api/v1/namespaces/kube-system/secrets/hidden", "trap")
    refused = eventually(lambda: [one for one in open_telemetry.of(joining_namespace) if one["name"] == "get secrets"], "the request is there", COMPILED)[0]
    assert refused["error"] and refused["attributes"]["http.response.status_code"] == 403
    eventually(lambda: [one for one in open_telemetry.of(joining_namespace) if one["error"] and not one["parent"]], "the turn that failed is there", 60)
    delete(joining_cluster, joining_namespace)


def test_without_a_collector_there_is_nothing_of_them(cluster, tmp_path):
    host = Host(cluster.kubeconfig, tmp_path / "host", "--features=operators")
    try:
        assert not [one for one in host.metrics() if one.startswith("hangar_traces")]
    finally:
        host.stop()


@pytest.mark.parametrize("flags, says", [(["--traces-url=collector:4318"], "traces-url"), (["--traces-url=http://a@b"], "traces-url"),
                                         (["--traces-ratio=2"], "traces-ratio"), (["--traces-url=http://c", "--recorder-bytes=0"], "recorder-bytes")])
def test_a_setting_that_is_wrong_is_named(flags, says):
    done = subprocess.run([str(BINARY), "host", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode != 0 and says in done.stderr
