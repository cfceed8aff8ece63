"""The built `hangar host`, started as an administrator would start it."""
import os
import pathlib
import random
import signal
import socket
import subprocess
import urllib.error
import urllib.request
import weakref

from cluster import ROOT, eventually
from processes import BehindSudo

BINARY = pathlib.Path(os.environ.get("HANGAR_BIN_DIR", ROOT / "build/bin")) / "hangar"


# Below the ports that the kernel gives to outgoing connections and that control planes use: a free port stays free.
PORTS = range(10000, 22900)
_dice = random.SystemRandom()

# Those of this run that still exist, for the report of a failed test.
hosts = weakref.WeakSet()

# The directory in which the hosts of this run share compiled code, if there is one; conftest sets it. A host that is
# started for each test would otherwise spend most of its time compiling.
compiled = None


def free_port():
    while True:
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", _dice.choice(PORTS)))
            except OSError:
                continue
            return listener.getsockname()[1]


def wait_until_free(port):
    """A program that the host was just starting keeps the host's sockets until its own exec."""
    def is_free():
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                return False
            return True
    eventually(is_free, f"port {port} is free again")


def _link_all(source, target):
    for entry in source.glob("*.cwasm"):
        try:
            os.link(entry, target / entry.name)
        except FileExistsError:
            pass
        except FileNotFoundError:
            pass  # Another process removes it.


class Host:
    """One process. Its log is kept at `log` and shown by pytest when a test fails."""

    def __init__(self, kubeconfig, directory, *flags, wait=True, env=None, inside=(), program=BINARY, shares_code=True):
        """`inside`: a command that runs the host's command, in its own process."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.log = directory / "host.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._shares_code = shares_code
        self._command = [
            *inside, str(program), "host", f"--kubeconfig={kubeconfig}", f"--module-cache-dir={directory / 'cache'}",
            f"--bind-address=127.0.0.1:{self.port}", "--log-level=debug", "--allow-file-modules", *flags]
        self._env = {**os.environ, **(env or {})}
        self.process = None
        hosts.add(self)
        self.start(wait)

    def share_compiled(self):
        """Shares compiled code in both directions: this host's with the others, theirs with this one."""
        if compiled is None or not self._shares_code:
            return
        own = self.directory / "cache/code"
        for directory in (own.parent, own, compiled):
            directory.mkdir(mode=0o700, exist_ok=True)
        _link_all(own, compiled)
        _link_all(compiled, own)

    def start(self, wait=True):
        self.share_compiled()
        with open(self.log, "ab") as log:
            process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._env)
        self.process = BehindSudo(process) if "sudo" in self._command else process
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=60):
        def is_ready():
            assert self.process.poll() is None, f"hangar host ended with {self.process.returncode}:\n{self.tail()}"
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=2):
                    return True
            except OSError:
                return False
        try:
            eventually(is_ready, "hangar host is ready", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.tail()}") from None

    def metrics(self):
        """name{labels} -> value."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}

    def get(self, path):
        """Status and text of an endpoint."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        wait_until_free(self.port)

    def stop(self):
        """Ends it as a Deployment would; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        self.share_compiled()
        return self.process.returncode

    def rss_bytes(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def report(self):
        """For a person who looks for the cause of a failure."""
        ended = self.process and self.process.poll()
        return self.tail() if ended is None else f"{self.tail()}\nit ended with {ended}"

    def tail(self, lines=40):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def to_its_end(host):
    """For a fixture's `yield from`: the host, which has to exit cleanly after its tests."""
    yield host
    assert host.stop() == 0, f"the host did not end cleanly:\n{host.tail()}"
