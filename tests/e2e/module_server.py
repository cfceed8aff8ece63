"""A server of modules over HTTP, on loopback."""
import base64
import http.server
import threading


class Modules:
    """A module server. While it is silent, requests wait; it answers them afterwards."""

    def __init__(self):
        self.files = {}  # By path.
        self.password = {}  # By path.
        self.talking = threading.Event()
        self.talking.set()
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                outer.talking.wait()
                wanted = outer.password.get(self.path)
                if wanted and self.headers.get("Authorization") != "Basic " + base64.b64encode(wanted.encode()).decode():
                    return self.answer(401, b"")
                body = outer.files.get(self.path)
                self.answer(200 if body is not None else 404, body or b"")

            def answer(self, code, body):
                try:
                    self.send_response(code)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # The client is gone.

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path, user=""):
        return f"http://{user}127.0.0.1:{self.server.server_address[1]}{path}"

    def close(self):
        self.talking.set()
        self.server.shutdown()
        self.server.server_close()
