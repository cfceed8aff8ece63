"""The OpenTelemetry Collector of dev/tools/collector: it takes traces by OTLP, and gives them on to the test as JSON."""
import http.server
import json
import pathlib
import socket
import subprocess
import threading

import pytest

from cluster import ROOT, eventually
from host import free_port

SCRIPT = ROOT / "dev/build-collector.sh"


def value(of):
    """An AnyValue in OTLP's JSON, which has integers as strings."""
    (kind, seen), = of.items()
    return int(seen) if kind == "intValue" else seen


def attributes(of):
    return {one["key"]: value(one["value"]) for one in of.get("attributes", [])}


def spans_in(request):
    for resource in request["resourceSpans"]:
        service = attributes(resource["resource"])["service.name"]
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                yield {"service": service, "trace": span["traceId"], "id": span["spanId"], "parent": span.get("parentSpanId") or None,
                       "name": span["name"], "attributes": attributes(span), "start": int(span["startTimeUnixNano"]), "end": int(span["endTimeUnixNano"]),
                       "error": span.get("status", {}).get("code") == 2}


class OpenTelemetryCollector:
    """One process. `url` is for a host, `spans` are all that it has taken, by OTLP over HTTP and over gRPC."""

    def __init__(self, directory):
        program = pathlib.Path(subprocess.run([SCRIPT, "--print-path"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
        if not program.exists():
            pytest.skip("the collector is not built: run dev/build-collector.sh")
        self.spans = []
        self._directory = directory
        self._receiver = self._receive()
        port, self._grpc_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}"
        # Without a queue, what the collector has taken is here when it answers. JSON is YAML.
        config = {"receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}, "grpc": {"endpoint": f"127.0.0.1:{self._grpc_port}"}}}},
                  "exporters": {"otlp_http": {"endpoint": f"http://127.0.0.1:{self._receiver.server_port}", "encoding": "json", "compression": "none",
                                              "sending_queue": {"enabled": False}}},
                  "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"level": "warn"}},
                              "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["otlp_http"]}}}}
        (directory / "collector.yaml").write_text(json.dumps(config))
        self.log = directory / "collector.log"
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen([program, f"--config={directory / 'collector.yaml'}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        eventually(lambda: self._listens(port) and self._listens(self._grpc_port), "the collector listens", 60)

    def _listens(self, port):
        assert self._process.poll() is None, f"the collector ended with {self._process.returncode}:\n{self.log.read_text()}"
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    def _receive(self):
        spans = self.spans

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                spans.extend(spans_in(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def api_server_joins(self):
        """The control plane's option by which its API server sends here what it does for requests of sampled traces, and nothing else."""
        configuration = self._directory / "tracing.json"
        configuration.write_text(json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration",
                                             "endpoint": f"127.0.0.1:{self._grpc_port}", "samplingRatePerMillion": 0}))
        return f"--apiserver-arg=--tracing-config-file={configuration}"

    def of(self, namespace):
        """The host's spans of that namespace."""
        return [one for one in list(self.spans) if one["attributes"].get("k8s.namespace.name") == namespace]

    def trace(self, number):
        return [one for one in list(self.spans) if one["trace"] == number]

    def close(self):
        self._process.terminate()
        self._process.wait(60)
        self._receiver.shutdown()
        self._receiver.server_close()
