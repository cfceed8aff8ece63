"""man_pages.py: the pages that it makes of help texts."""
import pathlib
import subprocess
import sys

import pytest

from man_pages import Entry, NotUnderstood, escaped, page_of_command, page_of_program, parsed

WORKFLOW = """\
look at a workflow
Usage: hangar workflow [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help message and exit

Subcommands:
  signal, tell                send it an event
"""
SIGNAL = """\
send it an event
Usage: hangar workflow signal [OPTIONS] NAME

Positionals:
  NAME NAME REQUIRED          the workflow

Options:
  -h,--help                   Print this help message and exit
  -o,--output FORMAT:{yaml,json}
                              yaml or json
  --leader-elect{true}        act only while holding the Lease
"""
PROGRAM = """\
hangar runs operators
Usage: hangar [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this help message and exit
  --version                   print the version

Subcommands:
  workflow                    look at a workflow
"""
HELPS = {("hangar",): parsed(PROGRAM), ("hangar", "workflow"): parsed(WORKFLOW), ("hangar", "workflow", "signal"): parsed(SIGNAL)}


def shown(page):
    """The page as man shows it, without pictures of letters, its spaces as one. It fails on what groff warns of."""
    done = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-ww"], input=page, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    assert done.stderr == ""
    return " ".join(done.stdout.split())


def test_a_help_text_has_sections_of_entries():
    read = parsed(SIGNAL)

    assert (read.summary, read.usage) == ("send it an event", "hangar workflow signal [OPTIONS] NAME")
    assert read.sections["Positionals"] == [Entry("NAME NAME REQUIRED", "the workflow")]
    assert read.sections["Options"][1] == Entry("-o,--output FORMAT:{yaml,json}", "yaml or json")


@pytest.mark.parametrize("text", ["no usage", "one\nUsage: x\nwithout a section\n"])
def test_a_text_of_another_shape_is_refused(text):
    with pytest.raises(NotUnderstood):
        parsed(text)


def test_a_command_has_those_below_it_on_its_page():
    page = shown(page_of_command(("hangar", "workflow"), HELPS, "1.2", "2026-01-02"))

    assert "HANGAR-WORKFLOW(1)" in page and "2026-01-02" in page and "hangar 1.2" in page
    assert "hangar-workflow - look at a workflow" in page
    assert "hangar workflow [OPTIONS] SUBCOMMAND hangar workflow signal [OPTIONS] NAME" in page
    assert "signal, tell send it an event" in page
    assert "-o, --output FORMAT yaml or json" in page and "--leader-elect act only" in page
    assert "Print this help message" not in page


def test_the_program_names_the_pages_of_its_commands():
    page = shown(page_of_program(HELPS, "1.2", "2026-01-02"))

    assert "hangar - runs operators" in page and "workflow look at a workflow" in page and page.count("hangar-workflow(1)") == 1
    assert "OPTIONS --version print the version ENVIRONMENT" in page and "Print this help message" not in page


@pytest.mark.parametrize("text", [".so /etc/passwd", "'quoted' `so`", r"back\slash", "~/x^2 --all -n"])
def test_no_text_is_a_request_of_roff(text):
    assert shown(f".TH A 1\n.SH NAME\n{escaped(text)}\n").count(text) == 1


def test_the_pages_are_dated_as_the_build_says(tmp_path):
    program = tmp_path / "hangar"
    program.write_text("#!/bin/sh\n[ \"$1\" = version ] && echo hangar 1.2 || printf 'a program\\nUsage: [OPTIONS]\\n\\nSubcommands:\\n'\n")
    program.chmod(0o755)
    script = str(pathlib.Path(__file__).parent / "man_pages.py")

    subprocess.run([sys.executable, script, str(program), str(tmp_path / "out")], check=True, env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": "86400"})

    assert '1970-01-02" "hangar 1.2"' in (tmp_path / "out/hangar.1").read_text()
