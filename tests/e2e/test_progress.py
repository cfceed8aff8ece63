"""Commands that compile for long tell a person at a terminal, and nobody else."""
import re
import subprocess

import pytest

import terminals
from airways import flight
from host import BINARY
from workflows import built

# The text is replaced by what follows; in the end by nothing, so that the line is free.
SHOWN = re.compile(r"\r\x1b\[Kcompiling( \(\d+ s\))?\r\x1b\[K")

COMMANDS = {"flight": lambda: ["run-flight", flight("app")], "machine": lambda: ["machine", "run", built("responder.js"), "--events=/dev/null"]}


def command(kind, cache):
    return [BINARY, *COMMANDS[kind](), f"--module-cache-dir={cache}", "--log-level=error"]


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_terminal_shows_that_something_is_compiled_once(kind, tmp_path):
    _, _, first = terminals.run(command(kind, tmp_path / "cache"))
    _, _, second = terminals.run(command(kind, tmp_path / "cache"))

    assert SHOWN.search(first), first
    # On a busy machine even the code that is there takes a moment.
    assert second.count("compiling") < first.count("compiling"), second


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_file_gets_no_progress(kind, tmp_path):
    done = subprocess.run(list(map(str, command(kind, tmp_path / "cache"))), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)

    assert "\x1b" not in done.stderr and "compiling" not in done.stderr, done.stderr
