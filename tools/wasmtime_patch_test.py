"""wasmtime_patch.py: its findings about the pin, with a registry that is a script."""
import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parent / "wasmtime_patch.py"
LOCK = '[[package]]\nname = "wasmtime-c-api-impl"\nversion = "{}"\n'


@pytest.fixture
def look(tmp_path):
    """Runs it on a tree that pins 48.0.8, with a cargo that chooses `newest`, or fails."""
    root, programs = tmp_path / "root", tmp_path / "bin"
    (root / "third_party/wasmtime").mkdir(parents=True)
    (root / "third_party/wasmtime/Cargo.lock").write_text(LOCK.format("48.0.8"))
    (root / "docs").mkdir()
    programs.mkdir()

    def run(newest, line="| 48 (LTS) | 2028-08-20 |", today="2026-11-23"):
        (root / "docs/dependencies.md").write_text(f"# Dependencies\n{line} more |\n")
        lock = LOCK.format(newest).replace("\n", "\\n")
        answer = f"printf '{lock}' > Cargo.lock" if newest else "echo 'error: failed to fetch index' >&2; exit 101"
        cargo = programs / "cargo"
        cargo.write_text(f"#!/bin/sh\ngrep -q 'wasmtime-c-api-impl = \"48\"' Cargo.toml || exit 2\n{answer}\n")
        cargo.chmod(0o755)
        return subprocess.run([sys.executable, str(TOOL), f"--root={root}", f"--today={today}"], capture_output=True, text=True,
                              env={"PATH": f"{programs}:/usr/bin:/bin"}, timeout=60, check=False)
    return run


def test_the_newest_patch_is_well(look):
    done = look("48.0.8")

    assert done.returncode == 0 and "newest patch" in done.stdout and "2028-08-20" in done.stdout


@pytest.mark.parametrize("newest", ["48.0.9", "48.0.10", "48.1.0"])
def test_a_newer_patch_is_a_failure_that_names_it(look, newest):
    done = look(newest)

    assert done.returncode == 1 and newest in done.stderr and "48.0.8" in done.stderr


def test_a_registry_that_does_not_answer_is_said_and_no_failure(look):
    done = look("")

    assert done.returncode == 0 and "NOT CHECKED" in done.stdout and "failed to fetch index" in done.stdout


def test_a_line_that_has_ended_is_a_failure_whatever_the_registry_says(look):
    done = look("", today="2028-08-21")

    assert done.returncode == 1 and "2028-08-20" in done.stderr


def test_the_documents_have_to_say_until_when(look):
    assert look("48.0.8", line="| 36 (LTS) | 2027-08-20 |").returncode == 1
    assert look("48.0.8", line="").returncode == 1
