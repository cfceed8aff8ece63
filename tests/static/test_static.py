"""Programs without shared libraries, from outside. HANGAR_BIN_DIR is the directory with them (tests/static/run.sh)."""
import contextlib
import http.server
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading

import pytest

BIN = pathlib.Path(os.environ["HANGAR_BIN_DIR"])
PROGRAMS = ("hangar", "hangar-guest", "hangar-compile")
BYTES_MAX = 25_000_000
# An address of its own, since the port of a name server is always the same.
NAME_SERVER = "127.53.22.1"


def output(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_needs_no_shared_library_and_no_loader(program):
    assert "statically linked" in output("ldd", BIN / program).stdout
    headers = output("readelf", "--wide", "--program-headers", "--dynamic", BIN / program).stdout
    assert "INTERP" not in headers and "(NEEDED)" not in headers
    # Its addresses are random all the same.
    assert "PIE" in headers and "DYN (" in headers


def test_the_host_is_small_enough():
    assert (BIN / "hangar").stat().st_size <= BYTES_MAX


def test_nothing_in_it_would_load_a_library_for_names():
    """What glibc's name services read, and what they load: text of theirs would be in the program."""
    content = (BIN / "hangar").read_bytes()
    assert b"libnss_" not in content and b"/var/run/nscd" not in content


class NameServer(threading.Thread):
    """Answers each question for an IPv4 address by 127.0.0.1, and all others by nothing."""

    def __init__(self):
        super().__init__(daemon=True)
        self.questions = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((NAME_SERVER, 53))
        self.start()

    def run(self):
        with contextlib.suppress(OSError):  # Closed.
            while True:
                question, sender = self._socket.recvfrom(4096)
                self.questions += 1
                end = question.index(b"\0", 12) + 5
                is_address = question[end - 4:end - 2] == b"\0\1"
                answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton("127.0.0.1") if is_address else b""
                self._socket.sendto(question[:2] + struct.pack(">HHHHH", 0x8180, 1, int(is_address), 0, 0) + question[12:end] + answer, sender)

    def close(self):
        self._socket.close()


@pytest.fixture
def bare(tmp_path):
    """A directory with nothing but the programs and two files: the root of a machine without libraries."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    for program in PROGRAMS:
        shutil.copy(BIN / program, tmp_path / program)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").write_text("127.0.0.1 board.in-hosts\n")
    (tmp_path / "etc/resolv.conf").write_text(f"nameserver {NAME_SERVER}\n")
    return tmp_path


@pytest.fixture
def ready_port():
    """An HTTP server that says it is ready."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/readyz?verbose" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_it_runs_where_there_is_nothing_else(bare):
    done = output("chroot", bare, "/hangar", "--help")
    assert done.returncode == 0 and "SUBCOMMAND" in done.stdout
    assert output("chroot", bare, "/hangar", "version").returncode == 0


def test_it_resolves_names_by_files_and_by_a_name_server(bare, ready_port):
    server = NameServer()
    try:
        by_file = output("chroot", bare, "/hangar", "ready", f"http://board.in-hosts:{ready_port}")
        assert by_file.returncode == 0, by_file.stdout
        assert server.questions == 0

        by_server = output("chroot", bare, "/hangar", "ready", f"http://board.by-dns.test:{ready_port}")
        assert by_server.returncode == 0, by_server.stdout
        assert server.questions > 0
    finally:
        server.close()


def test_a_name_that_is_not_known_is_an_error_and_no_crash(bare):
    done = output("chroot", bare, "/hangar", "ready", "http://nobody.invalid:1")
    assert done.returncode == 1 and "nobody.invalid" in done.stdout
