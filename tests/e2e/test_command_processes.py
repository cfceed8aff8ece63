"""Commands whose guests run in guest processes: what such a process has, how it ends, and what the user reads."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from airways import flight
from cluster import eventually
from conftest import COMPILED
from host import BINARY
from operators import Run, nonce, send_round
from test_command_line import hangar, thing
from processes import children

# Counts its steps. A step with the event LOOP never ends, and one with FAIL throws.
MACHINE = """globalThis.handle_event = (state, event) => {
  const type = JSON.parse(event).type
  while (type === 'LOOP') {}
  if (type === 'FAIL') throw new Error('this is why')
  return JSON.stringify({newState: {value: (JSON.parse(state)?.value ?? 0) + 1}})
}
"""

# Tries to open /etc/hostname below each descriptor that it might have. Its exit code is 77 if it can, else 3.
OPENS = r"""(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "../../etc/hostname")
  (func (export "_start") (local $fd i32)
    (loop $more
      (if (i32.eqz (call $open (local.get $fd) (i32.const 0) (i32.const 0) (i32.const 18) (i32.const 0) (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 64)))
        (then (call $exit (i32.const 77))))
      (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $fd) (i32.const 64))))
    (call $exit (i32.const 3))))"""


def processes_of(pid):
    """The guest processes of a command."""
    return [guest for child in children(pid) for guest in children(child)]


def without_place(text):
    """Without the functions in which a guest was stopped."""
    return re.sub(r"; at .*", "", text)


def start(*arguments, tmp_path, **more):
    return subprocess.Popen([str(BINARY), *arguments, f"--module-cache-dir={tmp_path / 'modules'}", "--log-level=error"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def guest_of(session):
    def found():
        assert session.poll() is None, session.stderr.read()
        return processes_of(session.pid)
    return eventually(found, "a guest process runs", COMPILED)[0]


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def has_ended(pid):
    try:
        return status_of(pid)["State"].startswith(("Z", "X"))
    except OSError:
        return True


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "machine.js").write_text(MACHINE)
    return str(tmp_path / "machine.js")


def test_a_flight_runs_where_it_finds_nothing_of_its_user(tmp_path):
    """Neither his environment, nor his files, nor the network."""
    session = start("run-flight", flight("behave"), tmp_path=tmp_path, env={**os.environ, "HANGAR_TEST_SECRET": "secret"})
    session.stdin.write(thing("sleep", milliseconds=1500, data={"a": "b"}))
    session.stdin.close()

    pid = guest_of(session)
    guest = pathlib.Path("/proc") / str(pid)
    # It is seen from the fork on, and puts up its walls one after the other.
    status = eventually(lambda: (now := status_of(pid))["Seccomp"] == "2" and now, "its last wall is up", 60)
    environment = (guest / "environ").read_bytes()
    opened = {os.readlink(path).split(":")[0] for path in (guest / "fd").iterdir()}
    output, errors = session.stdout.read(), session.stderr.read()

    assert session.wait() == 0 and "kind: ConfigMap" in output and errors == "", errors
    assert status["NoNewPrivs"] == "1"
    assert environment == b""
    assert not [path for path in opened if path not in ("socket", "anon_inode", "/dev/null") and not path.endswith((".cwasm", "/pagemap", "/statm"))], opened


def test_a_flight_that_tries_to_open_a_file_gets_an_error(tmp_path):
    (tmp_path / "opens.wat").write_text(OPENS)
    subprocess.run(["wat2wasm", str(tmp_path / "opens.wat"), "-o", str(tmp_path / "opens.wasm")], check=True)

    done = hangar("run-flight", str(tmp_path / "opens.wasm"), tmp_path=tmp_path)

    assert done.returncode == 1 and "the flight exited with code 3" in done.stderr, done.stderr


@pytest.mark.parametrize("spec, flags", [
    ({"behaviour": "endless"}, ["--timeout=1s"]), ({"behaviour": "memory", "mib": 64}, ["--max-memory-mib=32"]), ({"behaviour": "panic"}, []),
    ({"behaviour": "recurse"}, []), ({"behaviour": "basic", "exitCode": 3, "stderr": "this is why"}, [])], ids=lambda one: one["behaviour"] if isinstance(one, dict) else "")
def test_a_flight_fails_with_the_same_words_wherever_it_runs(tmp_path, spec, flags):
    here = hangar("run-flight", flight("behave"), *flags, "--guest-isolation=none", stdin=thing(**spec), tmp_path=tmp_path)
    there = hangar("run-flight", flight("behave"), *flags, stdin=thing(**spec), tmp_path=tmp_path)

    # Go names addresses of its stacks, and an endless guest is stopped at some function.
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout) == (1, "")
    assert without_place(there.stderr.splitlines()[0]) == without_place(here.stderr.splitlines()[0])


def test_a_flight_whose_process_is_killed_is_exit_code_1_and_says_why(tmp_path):
    session = start("run-flight", flight("behave"), tmp_path=tmp_path)
    session.stdin.write(thing("sleep", milliseconds=5000))
    session.stdin.close()

    os.kill(guest_of(session), signal.SIGKILL)
    output, errors = session.stdout.read(), session.stderr.read()

    assert session.wait() == 1 and output == ""
    assert "the guest process of namespace (cluster): killed by signal 9" in errors, errors


def test_guests_end_with_a_command_that_is_killed(tmp_path):
    session = start("run-flight", flight("behave"), "--timeout=-1s", tmp_path=tmp_path)
    session.stdin.write(thing("endless"))
    session.stdin.close()
    guest = guest_of(session)

    session.kill()
    session.wait()

    eventually(lambda: has_ended(guest), "its guest process ends", 10)


def test_a_machine_is_asked_in_a_process_and_again_in_another_when_it_is_killed(machine, tmp_path):
    session = start("machine", "run", machine, "-o", "json", tmp_path=tmp_path)
    assert '"value":1,' in session.stdout.readline()

    os.kill(guest_of(session), signal.SIGKILL)
    session.stdin.write("GO\nGO\n")
    session.stdin.flush()
    lines = [session.stdout.readline() for _ in range(2)]
    session.stdin.close()

    # It may be found dead only when it is asked: then that event failed, and the next one is answered.
    assert '"value":2,' in lines[0] or ("guest process" in lines[0] and '"value":2,' in lines[1]), lines
    assert session.wait() == (1 if "error" in lines[0] else 0)


def test_a_machine_that_loops_or_throws_fails_its_event_alone(machine, tmp_path):
    def told(*flags):
        done = hangar("machine", "run", machine, *flags, stdin="LOOP\nFAIL\nGO\n", tmp_path=tmp_path)
        return done.returncode, without_place(done.stdout), done.stderr
    there = told()

    assert there == told("--guest-isolation=none")
    assert there[0] == 1 and "this is why" in there[1] and there[1].endswith("GO\n  2\n"), there


def test_a_machine_that_is_wrong_is_refused_with_the_same_words(tmp_path):
    (tmp_path / "wrong.js").write_text("const = 1")
    here, there = (hangar("machine", "run", str(tmp_path / "wrong.js"), *flags, tmp_path=tmp_path) for flags in (["--guest-isolation=none"], []))

    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert there.returncode == 1 and "SyntaxError" in there.stderr, there.stderr


@pytest.mark.parametrize("command", [["run-flight"], ["machine", "run"], ["run"]], ids=" ".join)
def test_a_command_without_the_program_says_what_to_do(tmp_path, command, machine):
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("hangar", "hangar-compile"):
        shutil.copy(BINARY.parent / name, place)

    done = subprocess.run([str(place / "hangar"), *command, machine, f"--module-cache-dir={tmp_path / 'modules'}"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)

    assert done.returncode == 1 and done.stdout == ""
    assert f"{place}/hangar-guest is missing: install it beside this program, or say where it is with --guest-program" in done.stderr, done.stderr


def test_operators_of_a_directory_run_in_a_process_and_start_anew_when_it_is_killed(cluster, ring, tmp_path):
    namespaces = ring(3)
    run = Run(cluster, tmp_path / "run", namespaces, "--never-sleep")
    try:
        send_round(cluster, namespaces, 1, COMPILED)
        first = processes_of(run.process.pid)
        assert len(first) == 1, "they belong to one user, and share a process"
        assert pathlib.Path(f"/proc/{first[0]}/environ").read_bytes() == b""

        os.kill(first[0], signal.SIGKILL)

        eventually(lambda: (now := processes_of(run.process.pid)) and now != first, "they start anew in another", 60)
        send_round(cluster, namespaces, 2, 60)
        assert "the guest process of namespace (cluster): killed by signal 9" in run.log.read_text()
    finally:
        code = run.stop()
    assert code == 0, run.log.read_text()
    assert nonce(cluster, namespaces[0]) == 2


def test_operators_of_a_directory_sleep_without_a_process(cluster, ring, tmp_path):
    namespaces = ring(2)
    run = Run(cluster, tmp_path / "run", namespaces, "--sleep-after=100ms")
    try:
        for value in (1, 2):
            send_round(cluster, namespaces, value, COMPILED)
            eventually(lambda: not processes_of(run.process.pid), "nobody is awake: there is no process", 60)
    finally:
        code = run.stop()
    assert code == 0, run.log.read_text()
