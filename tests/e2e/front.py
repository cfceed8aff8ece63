"""A server in front of the API server that answers in its place if a test says so.

The proxy of the control plane moves bytes; this one reads requests, so it can answer 429 and 410.
"""
import http.client
import http.server
import json
import pathlib
import socketserver
import ssl
import threading
import time


class Front:
    """HTTP/1.1 over TLS on a port of its own. `kubeconfig` is that of a client that goes through it.

    `fault(method, path)` is called for every request, on many threads: None, or (status, headers, body) to answer with.
    `requests` are (seconds, method, path, status) of all of them, in the order of their answers; `traceparents` are (method,
    path, header) of those that are part of a trace.
    """

    def __init__(self, cluster, directory):
        self.fault = lambda method, path: None
        self.requests = []
        self.traceparents = []
        self._streams = set()
        self._lock = threading.Lock()
        upstream = ssl.create_default_context(cafile=cluster.env["HANGAR_CP_CA"])
        upstream.load_cert_chain(cluster.env["HANGAR_CP_CERT"], cluster.env["HANGAR_CP_KEY"])
        address = cluster.env["HANGAR_CP_URL"].removeprefix("https://")
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                began = time.monotonic()
                if traceparent := self.headers.get("traceparent"):
                    front.traceparents.append((self.command, self.path, traceparent))
                answer = front.fault(self.command, self.path)
                if answer is not None:
                    front._note(began, self, answer[0])
                    self._answer(*answer)
                    return
                connection = http.client.HTTPSConnection(address, context=upstream, timeout=600)
                headers = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection", "accept-encoding")}
                try:
                    connection.request(self.command, self.path, body, headers)
                    answered = connection.getresponse()
                    front._note(began, self, answered.status)
                    if "watch=" in self.path:
                        self._pipe(connection, answered)
                    else:
                        self._answer(answered.status, dict(answered.getheaders()), answered.read())
                finally:
                    connection.close()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

            def _answer(self, status, headers, body):
                self.send_response_only(status)
                for key, value in headers.items():
                    if key.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _pipe(self, connection, answered):
                self.send_response_only(answered.status)
                self.send_header("Content-Type", answered.headers["Content-Type"])
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                with front._lock:
                    front._streams.add(self.connection)
                try:
                    while data := answered.read1(1 << 16):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    self.close_connection = True
                finally:
                    with front._lock:
                        front._streams.discard(self.connection)

            def log_message(self, *_):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_):
                pass  # These tests let clients and the API server go away.

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        pki = pathlib.Path(cluster.env["HANGAR_CP_CA"]).parent
        context.load_cert_chain(pki / "loopback.crt", pki / "loopback.key")
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

        config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._server.server_address[1]}"
        self.kubeconfig = directory / "front.kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))

    def _note(self, began, request, status):
        with self._lock:
            self.requests.append((began, request.command, request.path, status))

    def cut(self):
        """Ends every watch."""
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            try:
                stream.shutdown(2)
            except OSError:
                pass

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def status(code, reason, message):
    """The form of the API server's errors."""
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
                       "message": message}).encode()
