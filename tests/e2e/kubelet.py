"""A kubelet that can do one thing: return the log of a pod, which is a file of this machine."""
import http.server
import json
import pathlib
import ssl
import subprocess
import threading
import time
import urllib.parse


class Kubelet:
    """A Node and a pod on it, in the cluster; this class answers the API server's requests for the pod's log."""

    def __init__(self, cluster, directory, namespace, pod, log):
        self.asked = []  # Queries, as dictionaries.
        self._closed = False
        key, certificate = directory / "kubelet.key", directory / "kubelet.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=kubelet", "-keyout", str(key), "-out", str(certificate)], check=True, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                kubelet.asked.append(query)
                assert url.path == f"/containerLogs/{namespace}/{pod}/hangar", url.path
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                kubelet._send(self.wfile, pathlib.Path(log), query)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

        self._cluster, self.node = cluster, f"node-of-{pod}"
        cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": self.node}})
        cluster.request("PATCH", f"/api/v1/nodes/{self.node}/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_port}}}}, "application/merge-patch+json")
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": namespace},
                        "spec": {"nodeName": self.node, "containers": [{"name": "hangar", "image": "hangar"}, {"name": "proxy", "image": "p"}]}})
        self._pod = ("v1", "Pod", pod, namespace)

    def _send(self, stream, log, query):
        since = query.get("sinceTime", "")
        with open(log, encoding="utf-8", errors="replace") as lines:
            while not self._closed:
                line = lines.readline()
                if not line.endswith("\n"):
                    if "follow" not in query:
                        return
                    time.sleep(0.02)
                    continue
                try:
                    written = json.loads(line)["ts"]
                except (ValueError, KeyError):
                    written = ""
                # As a container runtime does: by its own clock, in whole seconds here.
                if written[:19] >= since[:19]:
                    stream.write(line.encode())
                    stream.flush()

    def close(self):
        self._closed = True
        self._server.shutdown()
        self._server.server_close()
        self._cluster.request("DELETE", self._cluster.path(*self._pod[:2], self._pod[3], self._pod[2]), {"gracePeriodSeconds": 0})
        self._cluster.request("DELETE", f"/api/v1/nodes/{self.node}")
