"""Commands that compile for long tell a person at a terminal, and nobody else."""
import re
import shutil
import subprocess

import pytest

import terminals
from airways import flight
from host import BINARY
from workflows import built

# The text is replaced by what follows; in the end by nothing, so that the line is free.
SHOWN = r"\r\x1b\[K{}( \(\d+ s\))?\r\x1b\[K"


def project(directory, bundling="true"):
    """A project whose esbuild copies the bundle that is there, after the command `bundling`."""
    esbuild = directory / "project/node_modules/.bin/esbuild"
    esbuild.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(built("responder.js"), directory / "project/machine.js")
    esbuild.write_text(f'#!/bin/sh\n{bundling}\nfor one; do case $one in --outfile=*) exec cp machine.js "${{one#*=}}"; esac; done\n')
    esbuild.chmod(0o755)
    return directory / "project"


COMMANDS = {"flight": lambda _: ["run-flight", flight("app")], "machine": lambda _: ["machine", "run", built("responder.js"), "--events=/dev/null"],
            "build": lambda directory: ["machine", "build", project(directory)]}


def command(kind, directory):
    return [BINARY, *COMMANDS[kind](directory), f"--module-cache-dir={directory / 'cache'}", "--log-level=error"]


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_terminal_shows_that_something_is_compiled_once(kind, tmp_path):
    _, _, first = terminals.run(command(kind, tmp_path))
    _, _, second = terminals.run(command(kind, tmp_path))

    assert re.search(SHOWN.format("compiling"), first), first
    # On a busy machine even the code that is there takes a moment.
    assert second.count("compiling") < first.count("compiling"), second


def test_a_terminal_shows_that_a_project_is_bundled(tmp_path):
    directory = project(tmp_path, bundling="sleep 3")
    for before in (["machine", "build"], ["machine", "run", "--events=/dev/null"]):
        status, out, shown = terminals.run([BINARY, *before, directory, f"--module-cache-dir={tmp_path / 'cache'}", "--log-level=error"])

        assert status == 0 and out, shown
        assert re.search(SHOWN.format("bundling"), shown), shown


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_file_gets_no_progress(kind, tmp_path):
    done = subprocess.run(list(map(str, command(kind, tmp_path))), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)

    assert "\x1b" not in done.stderr and "compiling" not in done.stderr and "bundling" not in done.stderr, done.stderr
