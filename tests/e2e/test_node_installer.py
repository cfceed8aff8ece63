"""`hangar-node` and `hangar-node-fetch` as programs: full and read-only disks, a containerd that answers or does not."""
import concurrent.futures
import hashlib
import http.server
import io
import json
import os
import pathlib
import ssl
import subprocess
import tarfile
import threading
import types

import grpc
import pytest

from confined import mounting
from host import BINARY

NODE = BINARY.parent / "hangar-node"
FETCH = BINARY.parent / "hangar-node-fetch"
CONFIG = "etc/containerd/config.toml"
BEFORE = 'version = 2\n# mine\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n  SystemdCgroup = true'


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=False, **more)


def tree(root):
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))}


def put_runtimes(directory, **bytes_of):
    directory.mkdir(exist_ok=True)
    lines = []
    for name, data in bytes_of.items():
        file = {"shim": "containerd-shim-wasmtime-v1", "crun": "crun-wasmedge"}[name]
        (directory / file).write_bytes(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {file}\n")
    (directory / "SHA256SUMS").write_text("".join(lines))
    return directory


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root" / "etc/containerd").mkdir(parents=True)
    (tmp_path / "root" / CONFIG).write_text(BEFORE)
    return tmp_path / "root"


@pytest.fixture
def runtimes(tmp_path):
    return put_runtimes(tmp_path / "runtimes", shim=b"#!/bin/sh\n", crun=b"#!/bin/sh\nexit\n")


@pytest.fixture
def containerd(root, monkeypatch):
    """A gRPC server on the node's socket: a container runtime, or a containerd without its CRI plugin."""
    state = types.SimpleNamespace(has_cri=True, asked=[])

    class Runtime(grpc.GenericRpcHandler):
        def service(self, call):
            state.asked.append(call.method)
            # None is answered with UNIMPLEMENTED, as containerd answers for a service that is not registered.
            return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x0a\x00") if state.has_cri else None

    (root / "run/containerd").mkdir(parents=True)
    monkeypatch.chdir(root / "run/containerd")  # A socket's path is short.
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), handlers=[Runtime()])
    server.add_insecure_port("unix:containerd.sock")
    server.start()
    yield state
    server.stop(None).wait()


def install(root, runtimes, *flags):
    return run(NODE, "install", "--root", root, "--runtimes-dir", runtimes, "--json", *flags)


def last(done):
    return json.loads(done.stdout.splitlines()[-1])


def test_it_is_one_static_program():
    # The file's program headers name no interpreter: PT_INTERP is 3.
    data = NODE.read_bytes()
    offset, size, count = (int.from_bytes(data[at:at + width], "little") for at, width in ((32, 8), (54, 2), (56, 2)))
    kinds = {int.from_bytes(data[offset + i * size:offset + i * size + 4], "little") for i in range(count)}

    assert data[:4] == b"\x7fELF" and 3 not in kinds


def test_installs_restarts_once_and_uninstalls_to_the_byte(root, runtimes, containerd, tmp_path):
    before = {name: data for name, data in tree(root).items() if not name.endswith(".sock")}
    restarts = tmp_path / "restarts"
    restart = ["--restart-command", f"echo restart >> {restarts}"]

    first, second = install(root, runtimes, *restart), install(root, runtimes, *restart)
    status = run(NODE, "status", "--root", root, "--json")

    assert (first.returncode, second.returncode, status.returncode) == (0, 0, 0), first.stdout + first.stderr
    assert restarts.read_text() == "restart\n" and containerd.asked[0] == "/runtime.v1.RuntimeService/Version"
    assert last(status)["message"] == "Installed" and last(status)["handlers"] == "wasmtime,wasmedge"
    assert (root / "opt/hangar-node/bin/crun-wasmedge").stat().st_mode & 0o7777 == 0o755

    undone = run(NODE, "uninstall", "--root", root, *restart)

    assert undone.returncode == 0, undone.stderr
    assert {name: data for name, data in tree(root).items() if not name.endswith(".sock")} == before
    assert run(NODE, "status", "--root", root).returncode == 10


def test_a_containerd_without_its_cri_plugin_is_not_back(root, runtimes, containerd):
    containerd.has_cri = False

    done = install(root, runtimes, "--restart-command", "true", "--restart-timeout", "1")

    assert done.returncode == 8 and last(done)["reason"] == "RestoreFailed"
    assert "CRI plugin is not loaded" in last(done)["message"]
    assert (root / CONFIG).read_text() == BEFORE


def test_a_restart_that_fails_puts_the_configuration_back_and_is_owed(root, runtimes, containerd, tmp_path):
    fails_once = f"test -e {tmp_path}/failed || {{ touch {tmp_path}/failed; echo no such unit >&2; exit 5; }}"

    done = install(root, runtimes, "--restart-command", fails_once)

    assert done.returncode == 7 and last(done)["reason"] == "RestartFailed" and "no such unit" in last(done)["message"]
    assert (root / CONFIG).read_text() == BEFORE
    assert install(root, runtimes, "--restart-command", f"touch {tmp_path}/again").returncode == 0
    assert (tmp_path / "again").exists()


@pytest.mark.parametrize("config, status, reason", [
    ("version = 2\nx = \n", 4, "ConfigInvalid"), (None, 3, "UnknownDistribution"), ('version = 2\nplugins = { }\n', 4, "ConfigConflict")])
def test_refuses_and_leaves_the_node_alone(root, runtimes, config, status, reason):
    (root / CONFIG).unlink()
    if config is not None:
        (root / CONFIG).write_text(config)
    before = tree(root)

    done = install(root, runtimes, "--no-restart")

    assert (done.returncode, last(done)["reason"]) == (status, reason)
    assert tree(root) == before


def test_a_configuration_that_cannot_be_read_is_left_alone(root, runtimes):
    (root / CONFIG).unlink()
    (root / CONFIG).mkdir()  # root can read everything else.
    before = tree(root)

    done = install(root, runtimes, "--no-restart")

    assert done.returncode == 1 and CONFIG in last(done)["message"] and tree(root) == before


def test_refuses_a_runtime_that_is_not_the_promised_one(root, runtimes):
    before = tree(root)
    (runtimes / "crun-wasmedge").write_bytes(b"another")

    done = install(root, runtimes, "--no-restart")

    assert (done.returncode, last(done)["reason"]) == (5, "ChecksumMismatch") and tree(root) == before


def test_refuses_to_restart_a_containerd_that_is_not_below_its_root(root, runtimes):
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/systemctl").touch()
    before = tree(root)

    done = install(root, runtimes)

    assert done.returncode == 2 and "process 1" in last(done)["message"] and tree(root) == before


def test_a_full_disk_leaves_a_whole_configuration(root, tmp_path):
    large = put_runtimes(tmp_path / "large", shim=b"#" * 200_000)
    (root / "opt").mkdir()

    done = run(*mounting(f"mount -t tmpfs -o size=64k,$owner tmpfs {root}/opt"), "sh", "-c", f"""
        cp {root}/{CONFIG} {root}/opt/before
        {NODE} install --root {root} --runtimes-dir {large} --json --no-restart; echo status=$?
        cmp {root}/{CONFIG} {root}/opt/before && echo same; ls -A {root}/opt/hangar-node/bin
        {NODE} uninstall --root {root} --no-restart >/dev/null && ls -A {root}/opt""")

    assert "status=6" in done.stdout and '"NoSpace"' in done.stdout, done.stdout + done.stderr
    assert done.stdout.endswith("same\nbefore\n"), done.stdout


def test_a_read_only_root_is_said_to_be_one(root, runtimes):
    done = run(*mounting(f"mount --bind {root} {root} && mount -o remount,bind,ro {root}"), "sh", "-c", f"""
        {NODE} install --root {root} --runtimes-dir {runtimes} --json --no-restart; echo status=$?""")

    assert "status=6" in done.stdout and '"ReadOnly"' in done.stdout, done.stdout + done.stderr


def serve(directory):
    handler = lambda *arguments: http.server.SimpleHTTPRequestHandler(*arguments, directory=str(directory))
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


@pytest.fixture
def shop(tmp_path):
    """A server for the files in a directory; (directory, address)."""
    directory = tmp_path / "shop"
    directory.mkdir()
    server = serve(directory)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield directory, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def secure_shop(tmp_path):
    """The same by https, and the file of its certificate: (directory, address, certificate)."""
    directory = tmp_path / "secure"
    directory.mkdir()
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=shop",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    server = serve(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield directory, f"https://127.0.0.1:{server.server_port}", certificate
    server.shutdown()


def test_what_was_fetched_can_be_installed(shop, root, tmp_path):
    directory, address = shop
    (directory / "crun").write_bytes(b"#!/bin/sh\n")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("README.md", "dist/containerd-shim-spin-v2"):
            entry = tarfile.TarInfo(name)
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"#!spi"))
    (directory / "spin.tar.gz").write_bytes(packed.getvalue())
    sums = {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in ("crun", "spin.tar.gz")}

    program = hashlib.sha256(b"#!spi").hexdigest()
    spin = f"{address}/spin.tar.gz#sha256:{sums['spin.tar.gz']}#program-sha256:{program}"
    fetched = run(FETCH, "--to", tmp_path / "here", f"crun-wasmedge={address}/crun#sha256:{sums['crun']}",
                  f"containerd-shim-spin-v2@amd64={spin}", f"containerd-shim-spin-v2@arm64={spin}")
    installed = install(root, tmp_path / "here", "--no-restart", "--checksum", f"crun-wasmedge=sha256:{sums['crun']}",
                        "--checksum", f"containerd-shim-spin-v2=sha256:{program}")

    assert fetched.returncode == 0, fetched.stderr
    assert installed.returncode == 0, installed.stdout
    assert (root / "opt/hangar-node/bin/containerd-shim-spin-v2").read_bytes() == b"#!spi"


def test_a_list_made_by_who_unpacked_is_not_believed(root, tmp_path):
    """An attacker has the unpacking container: it leaves another program, and a list that matches it."""
    promised = hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    runtimes = put_runtimes(tmp_path / "runtimes", crun=b"#!/bin/sh\nevil\n")
    before = tree(root)

    refused = install(root, runtimes, "--no-restart", "--checksum", f"crun-wasmedge=sha256:{promised}")

    assert refused.returncode == 5 and last(refused)["reason"] == "ChecksumMismatch" and promised in last(refused)["message"]
    assert tree(root) == before


def test_an_archive_with_another_program_than_promised_is_not_kept(shop, tmp_path):
    directory, address = shop
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("crun")
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"evil"))
    (directory / "crun.tar.gz").write_bytes(packed.getvalue())
    source = f"crun={address}/crun.tar.gz#sha256:{hashlib.sha256(packed.getvalue()).hexdigest()}"

    done = run(FETCH, "--to", tmp_path / "here", f"{source}#program-sha256:{hashlib.sha256(b'good').hexdigest()}")

    assert done.returncode == 1 and "program in the archive" in done.stderr
    assert list(pathlib.Path(tmp_path / "here").iterdir()) == []
    assert "the checksum of the program" in run(FETCH, "--to", tmp_path / "here", source).stderr


def test_what_has_another_checksum_is_not_kept(shop, tmp_path):
    directory, address = shop
    (directory / "crun").write_bytes(b"delivered")

    for path, says in (("crun", "expected"), ("absent", "404")):
        done = run(FETCH, "--to", tmp_path / "here", f"crun={address}/{path}#sha256:{hashlib.sha256(b'promised').hexdigest()}")

        assert done.returncode == 1 and says in done.stderr
        assert list(pathlib.Path(tmp_path / "here").iterdir()) == []


def test_https_needs_a_certificate_that_is_trusted(secure_shop, tmp_path):
    directory, address, certificate = secure_shop
    (directory / "crun").write_bytes(b"#!/bin/sh\n")
    source = f"crun={address}/crun#sha256:{hashlib.sha256(b'#!/bin/sh' + bytes([10])).hexdigest()}"

    refused = run(FETCH, "--to", tmp_path / "here", source)
    trusted = run(FETCH, "--to", tmp_path / "here", f"--ca-file={certificate}", source)

    assert refused.returncode == 1 and "certificate" in refused.stderr
    assert trusted.returncode == 0, trusted.stderr
    assert (tmp_path / "here/crun").read_bytes() == b"#!/bin/sh\n"


def test_an_archive_is_not_unpacked_before_its_checksum_is_right(shop, tmp_path):
    directory, address = shop
    (directory / "crun.tar.gz").write_bytes(b"\x1f\x8bthis would not unpack")

    done = run(FETCH, "--to", tmp_path / "here", f"crun={address}/crun.tar.gz#sha256:{'0' * 64}#program-sha256:{'0' * 64}")

    assert done.returncode == 1 and "its sha256 is" in done.stderr and "unpack" not in done.stderr
