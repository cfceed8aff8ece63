"""`hangar` at a terminal: exit codes, standard output, standard error."""
import base64
import http.server
import json
import os
import pathlib
import pty
import re
import select
import socket
import subprocess
import threading

import pytest

from airways import flight
from cluster import ROOT
from host import BINARY, Host


def hangar(*arguments, stdin="", tmp_path=None, kubeconfig=None, env=None):
    cache = [f"--module-cache-dir={tmp_path / 'modules'}", "--log-level=error"] if tmp_path else []
    flags = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    return subprocess.run([str(BINARY), *arguments, *cache, *flags], input=stdin, capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(env or {})})


def thing(behaviour="basic", namespace="default", **spec):
    return json.dumps({"apiVersion": "e2e.hangar.dev/v1", "kind": "Thing", "metadata": {"name": "it", "namespace": namespace, "uid": "1"},
                       "spec": {"behaviour": behaviour, **spec}})


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_version_is_printed(asked):
    done = hangar(asked)

    assert done.returncode == 0 and re.fullmatch(r"hangar \d+\.\d+\.\d+\n", done.stdout) and done.stderr == ""


def test_a_command_takes_its_own_flags_and_not_the_programs():
    done = hangar("host", "--version")

    assert done.returncode == 2 and "--version" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", [[], ["host"], ["run-flight"]])
def test_help_is_exit_code_0_and_names_what_there_is(command):
    done = hangar(*command, "--help")

    assert done.returncode == 0 and done.stderr == ""
    assert f"\nUsage: {' '.join(['hangar', *command])} [OPTIONS]" in done.stdout
    expected = ["host", "run-flight", "version"] if not command else ["--config", "--log-level", "HANGAR_LOG_LEVEL", "(default info)"]
    assert all(word in done.stdout for word in expected), done.stdout


def test_every_command_and_every_setting_of_the_host_is_documented():
    commands = re.findall(r"^  ([a-z-]+)", hangar("--help").stdout.split("Subcommands:")[1], re.MULTILINE)
    flags = re.findall(r"^  (?:-\w,)?(--[a-z-]+)", hangar("host", "--help").stdout, re.MULTILINE)
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    listed = (ROOT / "docs/operating/commands.md").read_text()

    assert len(commands) > 20 and len(flags) > 40
    assert not [one for one in commands if not re.search(rf"`(hangar )?{one}\b", listed)]
    assert not [one for one in flags if not re.search(rf"{one}(?![a-z-])", pages)]


# The settings in a command's help besides the common ones, as words.
CLUSTER = {"kubeconfig", "context"}
MODULES = {"module-cache-dir", "module-cache-size", "code-cache-key-file", "module-allow-list", "docker-config", "compiler", "native-code-dir", "builder-keys"}
RECORDER = {"recorder-bytes", "recorder-age", "recorder-directory"}
REQUESTS, PLACE = {"kube-api-qps", "kube-api-burst"}, {"namespace"}
GUESTS = {"guest-threads", "operator-memory-budget", "guest-memory", "namespace-guest-memory"}
WALLS, POLICY = {"guest-isolation", "guest-program"}, {"module-policy"}
USES = {
    "run-flight": CLUSTER | REQUESTS | MODULES | WALLS | POLICY, "run": CLUSTER | REQUESTS | MODULES | GUESTS | WALLS | RECORDER | POLICY | {"bind-address"},
    "logs": CLUSTER | MODULES | {"pod"}, "timeline": CLUSTER | MODULES | {"recorder-directory"}, "why": CLUSTER | MODULES | {"recorder-directory"}, "console": CLUSTER | MODULES | WALLS | {"recorder-directory"}, "nodes": CLUSTER | PLACE, "machine build": MODULES | WALLS, "machine run": MODULES | WALLS,
    **{command: CLUSTER | REQUESTS for command in ("blackbox", "mayday", "turbulence", "unlatch")},
    "descent": CLUSTER | REQUESTS | WALLS,
    "build code": MODULES, "stow": MODULES, "schematics": MODULES | WALLS | POLICY, "sign": set(), "verify": MODULES | POLICY,
    "takeoff": CLUSTER | REQUESTS | MODULES | WALLS | POLICY, "argocd": CLUSTER | REQUESTS | MODULES | WALLS | POLICY,
    "workflow show": CLUSTER | MODULES | WALLS, "workflow signal": CLUSTER, "tenant allow": CLUSTER | {"features"}, "tenant list": CLUSTER | {"features"},
    "tenant remove": CLUSTER | {"features"}, "flight from-chart": None, "ready": None, "completion": None, "version": None}


def settings_in(help_text):
    """The flags that can also be set by an environment variable: [HANGAR_LOG_LEVEL] is log-level."""
    return {one.lower().replace("_", "-") for one in re.findall(r"\[HANGAR_([A-Z_]+)\]", help_text)}


@pytest.mark.parametrize("command", USES)
def test_a_command_has_the_settings_that_it_uses_and_no_others(command):
    shown = hangar(*command.split(), "--help").stdout

    assert settings_in(shown) == (USES[command] | {"log-level", "log-format"} if USES[command] is not None else set())


@pytest.mark.parametrize("command", ["host", *USES])
def test_help_says_of_which_type_a_value_is(command):
    shown = hangar(*command.split(), "--help").stdout

    assert not [line for line in shown.splitlines() if re.search(r"\b(TEXT|UINT|INT|FLOAT)\b", line) and "ARGS" not in line], shown
    if command == "host":
        for flag, value in (("--node-job-timeout", "DURATION"), ("--guest-memory", "BYTES"), ("--node-fetch-proxy", "URL"), ("--leader-elect-lease-duration", "DURATION")):
            assert re.search(rf"{flag} {value}\b", shown), flag


def test_a_setting_of_another_command_is_refused_as_a_flag_and_taken_from_a_file(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("leaderElect: true\nnodeMaxUnavailable: 10%\n")

    refused = hangar("run-flight", flight("behave"), "--leader-elect", stdin=thing(data={"a": "b"}), tmp_path=tmp_path)
    taken = hangar("run-flight", flight("behave"), f"--config={config}", stdin=thing(data={"a": "b"}), tmp_path=tmp_path)

    assert refused.returncode == 2 and "--leader-elect" in refused.stderr
    assert taken.returncode == 0, taken.stderr


@pytest.mark.parametrize("arguments, says", [
    ([], "subcommand"), (["fly"], "subcommand"), (["host", "--no-such-flag"], "no-such-flag"), (["host", "--log-level=loud"], "debug, info, warning, error"),
    (["host", "--config=/no/such/file"], "/no/such/file"), (["run-flight"], "MODULE"),
    *((["machine", "build", ".", f"--name={name}"], "--name: must be a name") for name in ("Bad_Name", "-a", "a..b", "a" * 254)),
    *((["machine", "build", ".", "-n", name], "-n: must be a namespace") for name in ("Bad", "a.b", "a" * 64)),
    (["run-flight", "module", "--release-namespace=Bad"], "--release-namespace: must be a namespace")])
def test_a_wrong_command_line_is_exit_code_2_and_says_why(arguments, says):
    done = hangar(*arguments)

    assert done.returncode == 2 and says in done.stderr and done.stdout == ""


def test_a_host_without_a_cluster_says_what_it_looked_for(tmp_path):
    done = hangar("host", f"--kubeconfig={tmp_path / 'none'}", tmp_path=tmp_path)

    assert done.returncode == 1 and str(tmp_path / "none") in done.stderr


@pytest.mark.parametrize("file, variable, flag, wins", [
    ("file", "variable", "flag", "flag"), ("file", "variable", None, "variable"), ("file", None, None, "file")])
def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path, file, variable, flag, wins):
    """The error names the missing kubeconfig, and so the setting that won."""
    config = tmp_path / "config.yaml"
    config.write_text(f"kubeconfig: {tmp_path / file}\nlogLevel: error\n")

    done = hangar("host", f"--config={config}", tmp_path=tmp_path, kubeconfig=flag and tmp_path / flag,
                  env={"HANGAR_KUBECONFIG": str(tmp_path / variable)} if variable else None)

    assert done.returncode == 1 and str(tmp_path / wins) in done.stderr, done.stderr


def test_a_key_for_compiled_code_that_is_short_or_lies_beside_that_code_is_refused(tmp_path):
    short, beside = tmp_path / "short", tmp_path / "modules/key"
    short.write_bytes(b"a" * 31)
    beside.parent.mkdir(mode=0o700)
    beside.write_bytes(b"a" * 32)

    for key, says in ((short, "has 31 bytes"), (beside, "Keep it elsewhere"), (tmp_path / "none", "none")):
        done = hangar("run-flight", flight("behave"), f"--code-cache-key-file={key}", stdin=thing(), tmp_path=tmp_path)

        assert done.returncode == 1 and says in done.stderr, done.stderr


class Probe(http.server.BaseHTTPRequestHandler):
    """Answers /readyz as a host that is ready, or not."""
    status = 200

    def do_GET(self):
        assert self.path == "/readyz?verbose"
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"[+]leader ok" if self.status == 200 else b"[-]cache failed")

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("status, code, says", [(200, 0, "ready\n"), (503, 1, "[-]cache failed"), (404, 1, "answers 404")])
def test_ready_says_whether_a_host_is_and_why_not(status, code, says):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Answers", (Probe,), {"status": status}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = hangar("ready", f"http://127.0.0.1:{server.server_port}/")
        assert done.returncode == code and says in (done.stdout if code == 0 else done.stderr)
    finally:
        server.shutdown()
        server.server_close()
    done = hangar("ready", f"http://127.0.0.1:{server.server_port}")
    assert done.returncode == 1 and "127.0.0.1" in done.stderr


def test_a_flight_runs_offline_and_prints_what_it_would_apply(tmp_path):
    done = hangar("run-flight", flight("behave"), stdin=thing(data={"a": "b"}), tmp_path=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "---\napiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: it\n"


CONSTANT = r"""(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "{\22apiVersion\22:\22v1\22,\22kind\22:\22ConfigMap\22,\22metadata\22:{\22name\22:\22it\22}}")
  (func (export "_start")  ;; Reads stdin, traps unless it is empty, and prints a ConfigMap.
    (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 100))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (if (i32.load (i32.const 8)) (then unreachable))
    (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 63))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"""


@pytest.fixture
def constant(tmp_path):
    """A flight that needs no input."""
    (tmp_path / "constant.wat").write_text(CONSTANT)
    subprocess.run(["wat2wasm", str(tmp_path / "constant.wat"), "-o", str(tmp_path / "constant.wasm")], check=True)
    return str(tmp_path / "constant.wasm")


def nothing():
    return subprocess.DEVNULL, None


def closed():
    return None, lambda: os.close(0)


def terminal():
    return pty.openpty()[1], None


def blank_pipe():
    reader, writer = os.pipe()
    os.write(writer, b" \n")
    os.close(writer)
    return reader, None


@pytest.mark.parametrize("stdin", [nothing, closed, terminal, blank_pipe], ids=lambda one: one.__name__)
def test_a_flight_that_needs_no_input_runs_without(constant, tmp_path, stdin):
    source, preexec = stdin()

    done = subprocess.run([str(BINARY), "run-flight", constant, f"--module-cache-dir={tmp_path / 'modules'}", "--log-level=error"],
                          stdin=source, preexec_fn=preexec, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: it\n"


def test_what_a_flight_without_input_would_change_is_shown(cluster, constant, namespace, tmp_path):
    done = hangar("run-flight", constant, "--diff", f"--release-namespace={namespace}", tmp_path=tmp_path, kubeconfig=cluster.kubeconfig)

    assert done.returncode == 0, done.stderr
    assert "+  name: it" in done.stdout and f"+  namespace: {namespace}" in done.stdout and "ownerReferences" not in done.stdout


@pytest.mark.parametrize("globs, is_allowed", [
    ("https://example.com/*", False), ("{folder}*", False), ("{folder}/*.wasm", True), ("https://example.com/*,{folder}/*", True)])
def test_only_modules_that_the_list_allows_are_run(tmp_path, globs, is_allowed):
    module = flight("behave")
    folder = module.rpartition("/")[0]

    done = hangar("run-flight", module, f"--module-allow-list={globs.format(folder=folder)}", stdin=thing(data={"a": "b"}), tmp_path=tmp_path)

    assert done.returncode == (0 if is_allowed else 1)
    assert is_allowed or f'module "{module}" not allowed' in done.stderr, done.stderr


@pytest.mark.parametrize("spec, says", [
    ({"behaviour": "basic", "exitCode": 3, "stderr": "this is why"}, "this is why"),
    ({"behaviour": "raw", "stdout": "hello"}, "input must be resource"),
    ({"behaviour": "lookup", "lookup": {"apiVersion": "v1", "kind": "Secret", "name": "x"}}, "access to the cluster has not been granted")])
def test_a_flight_that_fails_is_exit_code_1_and_says_why(tmp_path, spec, says):
    done = hangar("run-flight", flight("behave"), stdin=thing(**spec), tmp_path=tmp_path)

    assert done.returncode == 1 and says in done.stderr and done.stdout == ""


def test_a_flight_has_the_memory_that_its_flag_says(tmp_path):
    few = hangar("run-flight", flight("behave"), "--max-memory-mib=32", stdin=thing("memory", mib=64), tmp_path=tmp_path)
    enough = hangar("run-flight", flight("behave"), "--max-memory-mib=256", stdin=thing("memory", mib=64), tmp_path=tmp_path)

    assert few.returncode == 1 and few.stdout == "", few.stdout
    assert enough.returncode == 0 and "kind: ConfigMap" in enough.stdout, enough.stderr


def test_a_flight_may_look_up_what_the_matchers_allow(cluster, namespace, tmp_path):
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": namespace}, "stringData": {"key": "first"}})
    resource = thing("lookup", namespace, lookup={"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": namespace})

    refused = hangar("run-flight", flight("behave"), "--cluster-access", stdin=resource, tmp_path=tmp_path, kubeconfig=cluster.kubeconfig)
    allowed = hangar("run-flight", flight("behave"), "--cluster-access", "--resource-access=Secret", stdin=resource, tmp_path=tmp_path,
                     kubeconfig=cluster.kubeconfig)

    assert refused.returncode == 1 and "cannot access resource outside of target release ownership" in refused.stderr
    assert allowed.returncode == 0 and "key: Zmlyc3Q=" in allowed.stdout, allowed.stderr


def test_diff_shows_what_would_change_and_changes_nothing(cluster, namespace, tmp_path):
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": namespace}, "data": {"a": "old", "c": "d"}})

    done = hangar("run-flight", flight("behave"), "--diff", stdin=thing("basic", namespace, data={"a": "new"}), tmp_path=tmp_path,
                  kubeconfig=cluster.kubeconfig)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "-  a: old" in lines and "+  a: new" in lines and "   c: d" in lines
    assert cluster.get("v1", "ConfigMap", "it", namespace)["data"] == {"a": "old", "c": "d"}
    brief = hangar("run-flight", flight("behave"), "--diff", "--diff-context=0", stdin=thing("basic", namespace, data={"a": "new"}), tmp_path=tmp_path,
                   kubeconfig=cluster.kubeconfig).stdout.splitlines()
    assert "-  a: old" in brief and "+  a: new" in brief and "   c: d" not in brief


class Proxy(http.server.BaseHTTPRequestHandler):
    """Forwards CONNECT, and records the targets."""
    asked = []

    def do_CONNECT(self):
        self.asked.append(self.path)
        host, port = self.path.split(":")
        with socket.create_connection((host, int(port))) as server:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: server, server: self.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)

    def log_message(self, *_):
        pass


def test_a_kubeconfig_may_name_a_program_for_its_login_and_a_proxy(cluster, namespace, tmp_path):
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": {"clientCertificateData": decoded(config, "client-certificate-data"), "clientKeyData": decoded(config, "client-key-data")}}
    (tmp_path / "credential.json").write_text(json.dumps(credential))
    config["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [str(tmp_path / "credential.json")],
                                           "interactiveMode": "Never"}}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        config["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{proxy.server_port}"
        (tmp_path / "kubeconfig").write_text(json.dumps(config))

        done = hangar("run-flight", flight("behave"), "--diff", stdin=thing("basic", namespace, data={"a": "new"}), tmp_path=tmp_path,
                      kubeconfig=tmp_path / "kubeconfig")
        proxy.shutdown()

    assert done.returncode == 0 and "+  a: new" in done.stdout.splitlines(), done.stderr
    assert set(Proxy.asked) == {config["clusters"][0]["cluster"]["server"].removeprefix("https://")}


def decoded(config, key):
    return base64.b64decode(config["users"][0]["user"][key]).decode()


def test_a_host_keeps_no_freed_memory_for_each_thread(cluster, tmp_path):
    host = Host(cluster.kubeconfig, tmp_path / "host", env={"GLIBC_TUNABLES": "glibc.malloc.mxfast=64"})
    try:
        environment = pathlib.Path(f"/proc/{host.process.pid}/environ").read_bytes()
        assert b"GLIBC_TUNABLES=glibc.malloc.tcache_count=0" in environment, "it began anew"
        assert b"glibc.malloc.mxfast=64" in environment, "with what was set already"
    finally:
        host.stop()
