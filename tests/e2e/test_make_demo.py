"""`make demo` shows on a terminal how far its builds are. What it builds is replaced by scripts, and the demonstration by one line."""
import os
import shutil
import subprocess

import pytest

import terminals
from cluster import ROOT, eventually

# The scripts of the steps. `program` has built 3 of 10 files until the test lets it end.
SCRIPTS = {
    "dev/setup.sh": "",
    "dev/build-tools.sh": """case ${1:-} in
  --print-dir) echo "$root/control-plane" ;;
  --missing) [ -d "$root/control-plane" ] || echo etcd ;;
  *) echo "==> etcd (1 of 6)" >&2; mkdir -p "$root/control-plane" ;;
esac""",
    "tools/build.sh": """echo "[3/10] a file"
until [ -e "$root/go" ]; do sleep 0.1; done
install -D -m 755 /dev/null "$root/build/release/bin/hangar\"""",
    "examples/build.sh": """mkdir -p "$1" && echo wasm >"$1/ring.wasm\"""",
    "deploy/demo/install.sh": """mkdir -p "$1/demo" && printf '#!/bin/sh\\necho "the show begins"\\n' >"$1/demo/show.sh" && chmod +x "$1/demo/show.sh\"""",
    **{f"third_party/{name}/build.sh": f"""if [ "${{1:-}}" = --print-dir ]; then echo "$root/{name}"; else mkdir -p "$root/{name}"; fi"""
       for name in ("wasmtime", "wasmparser", "quickjs", "lua")},
}


@pytest.fixture
def tree(tmp_path):
    """A source tree with the scripts."""
    root = tmp_path / "tree"
    for name in ("dev/demo.sh", "dev/env.sh", "deploy/demo/words.sh"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name, text in SCRIPTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"#!/bin/bash\nset -euo pipefail\nroot={root}\n{text}\n")
        (root / name).chmod(0o755)
    (root / "build").mkdir()
    return root


@pytest.fixture
def make_demo(tree, tmp_path):
    """Runs it; `meanwhile` is called with what shows the terminal. Returns all that was shown."""
    def run(meanwhile):
        terminal = terminals.Terminal()
        environment = {**os.environ, "HANGAR_CACHE_DIR": str(tmp_path / "cache"), "KUBECONFIG": "/dev/null"}
        process = subprocess.Popen([tree / "dev/demo.sh"], stdin=subprocess.DEVNULL, stdout=terminal.side, stderr=terminal.side, env=environment)
        try:
            meanwhile(terminal.shown)
            assert process.wait(120) == 0, terminal.shown()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)
            terminal.close()
        return terminal.shown()
    return run


def test_a_terminal_shows_which_step_is_built_how_far_it_is_and_how_long_it_takes(tree, tmp_path, make_demo):
    def build(words):
        def meanwhile(shown):
            eventually(lambda: f"minutes left{words}: hangar, 3 of 10" in shown(), "the step is shown", 60)
            (tree / "go").touch()
        return make_demo(meanwhile)
    first = build(" on two cores")
    assert "1 of 5: packages and toolchains; about " in first and "2 of 5: the WebAssembly engine; about " in first, first
    for step in ("the control plane", "hangar", "the modules"):
        assert f" of 5: {step}; about " in first, first
    # The line of the progress is free again.
    assert first.rpartition("\r\x1b[K")[2].endswith("the show begins\r\n"), first

    (tree / "go").unlink()
    shutil.rmtree(tree / "build/release")
    # As if it had taken less than a second: the next build takes longer than the last one.
    last_run = tmp_path / "cache/demo-seconds"
    remembered = dict(line.split() for line in last_run.read_text().splitlines())
    assert {"engine", "control_plane", "program", "guests"} <= remembered.keys(), remembered
    last_run.write_text("".join(f"{step} 0\n" for step in remembered))
    again = build(", as last time")
    assert " of 5: hangar; about 1 minutes left, as last time" in again and " of 5: the WebAssembly engine\r\n" in again, again


def test_a_file_has_lines_and_no_progress(tree, tmp_path):
    (tree / "go").touch()
    done = subprocess.run([tree / "dev/demo.sh"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "HANGAR_CACHE_DIR": str(tmp_path / "cache"), "KUBECONFIG": "/dev/null"})
    assert done.returncode == 0 and "the show begins" in done.stdout, done.stdout + done.stderr
    assert "2 of 5: the WebAssembly engine" in done.stdout and "\x1b" not in done.stdout
