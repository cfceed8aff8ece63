#!/usr/bin/env python3
"""Makes the man pages of hangar from its --help: hangar.1, and hangar-COMMAND.1 for each command.

    man_pages.py PROGRAM OUT   PROGRAM: the built hangar; OUT: a directory

help2man does not know the shape of these texts: commands below commands, each with options of its own.
SOURCE_DATE_EPOCH is the pages' date, if it is set.
"""
import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import typing

# Of all commands.
EXIT_STATUS = (("0", "success"), ("1", "failure; standard error says why"), ("2", "the command line or a setting is invalid"))
FILES = (("/etc/hangar/hangar.yaml", "settings of the host that the systemd unit runs"),
         ("/etc/hangar/kubeconfig", "how that host reaches the cluster; you put it there"),
         ("~/.cache/hangar/modules", "modules, compiled code, and the memory of sleeping operators, unless --module-cache-dir names another directory"))


class Entry(typing.NamedTuple):
    """An option, an argument or a command, and what it is for."""
    term: str
    text: str


class Help(typing.NamedTuple):
    """What a command says of itself."""
    summary: str
    usage: str
    sections: dict  # title -> [Entry]


class NotUnderstood(Exception):
    """A line of a help text that has another shape than all so far."""


def parsed(text):
    """The parts of a help text as CLI11 lays it out: sections of entries, their terms two columns in. A long term has a line
    to itself."""
    lines = text.strip("\n").splitlines()
    usage = next((index for index, line in enumerate(lines) if line.startswith("Usage: ")), None)
    if usage is None:
        raise NotUnderstood("no line begins with `Usage: `")
    sections, current = {}, None
    for line in lines[usage + 1:]:
        if not line.strip():
            continue
        if title := re.fullmatch(r"(\S.*):", line):
            current = sections.setdefault(title.group(1), [])
        elif current is not None and (entry := re.fullmatch(r"  (\S(?:.*?\S)?)(?:\s{2,}(.*))?", line)):
            current.append(Entry(entry.group(1), entry.group(2) or ""))
        elif current and line.startswith(" " * 4):
            current[-1] = current[-1]._replace(text=f"{current[-1].text} {line.strip()}".strip())
        else:
            raise NotUnderstood(line)
    return Help(" ".join(lines[:usage]), lines[usage].removeprefix("Usage: "), sections)


# roff --------------------------------------------------------------------------------------------


def escaped(text):
    """Text as roff shows it unchanged: a hyphen stays one that can be copied, and no line is taken as a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{text}" if text.startswith(".") else text


def term_of(entry, is_option):
    """Bold: what is typed as it stands. Italic: what stands for something else."""
    flags, _, value = entry.term.partition(" ") if is_option else (entry.term, "", "")
    flags = re.sub(r"\{true\}$", "", flags)
    bold = ", ".join(f"\\fB{escaped(one.strip())}\\fR" for one in flags.split(","))
    value = re.sub(r":\{.*\}", "", value).removesuffix(" ...").strip()
    return f"{bold} \\fI{escaped(value)}\\fR" if value else bold


def argument_of(entry):
    """`NAME KIND REQUIRED` of an argument: its name is enough, the usage line has the rest."""
    return f"\\fI{escaped(entry.term.split()[0])}\\fR"


def entries(title, section, level):
    yield f".{level} {title}"
    for entry in section:
        yield ".TP"
        yield argument_of(entry) if title.lower() == "arguments" else term_of(entry, title.lower() != "commands")
        yield escaped(entry.text) or "\\&"


def body(path, help_text, level):
    """The description and sections of one command; `level` is the request of its headings."""
    titles = {"Positionals": "Arguments", "Subcommands": "Commands"}
    for title, section in help_text.sections.items():
        # It says the same everywhere.
        kept = [one for one in section if one.term != "-h,--help"]
        if kept:
            title = titles.get(title, title)
            yield from entries(title.upper() if level == "SH" else title, kept, level)


def usage_of(path, help_text):
    rest = help_text.usage.removeprefix(" ".join(path)).strip()
    return f"\\fB{escaped(' '.join(path))}\\fR {escaped(rest)}".rstrip()


def head(name, version, date):
    return [f'.TH {name.upper()} 1 "{date}" "hangar {version}" "User Commands"']


def names_of(entry):
    return [one.strip() for one in entry.term.split(",")]


def page_of_command(path, helps, version, date):
    """A command, and those below it as sections."""
    top = helps[path]
    name = "-".join(path)
    lines = [*head(name, version, date), ".SH NAME", f"{escaped(name)} \\- {escaped(top.summary)}", ".SH SYNOPSIS", usage_of(path, top)]
    below = [one for one in helps if one[:len(path)] == path and one != path]
    for one in below:
        lines += [".br", usage_of(one, helps[one])]
    lines += body(path, top, "SH")
    for one in below:
        lines += [f'.SH "{escaped(" ".join(one).upper())}"', escaped(helps[one].summary), *body(one, helps[one], "SS")]
    lines += ['.SH "EXIT STATUS"']
    for code, meaning in EXIT_STATUS:
        lines += [".TP", f"\\fB{code}\\fR", escaped(meaning)]
    return "\n".join([*lines, '.SH "SEE ALSO"', "\\fBhangar\\fR(1)"]) + "\n"


def page_of_program(helps, version, date):
    top = helps[("hangar",)]
    commands = top.sections["Subcommands"]
    lines = [*head("hangar", version, date), ".SH NAME", f"hangar \\- {escaped(top.summary.removeprefix('hangar '))}",
             ".SH SYNOPSIS", "\\fBhangar\\fR \\fICOMMAND\\fR [OPTIONS] [ARGUMENTS]", ".SH COMMANDS",
             "Each has a page of its own, \\fBhangar\\-COMMAND\\fR(1), and says the same with \\fB\\-\\-help\\fR."]
    for entry in commands:
        lines += [".TP", ", ".join(f"\\fB{escaped(one)}\\fR" for one in names_of(entry)), escaped(entry.text)]
    lines += body(("hangar",), top._replace(sections={"Options": top.sections.get("Options", [])}), "SH")
    lines += [".SH ENVIRONMENT", "A setting that an option shows with a name in brackets can be given as that variable, too; the option wins.", ".SH FILES"]
    for path, text in FILES:
        lines += [".TP", f"\\fI{escaped(path)}\\fR", escaped(text)]
    lines += ['.SH "SEE ALSO"', ",\n".join(f"\\fBhangar\\-{escaped(names_of(one)[0])}\\fR(1)" for one in commands)]
    return "\n".join(lines) + "\n"


# The program -------------------------------------------------------------------------------------


def said_by(program, *words):
    done = subprocess.run([str(program), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    if done.returncode != 0:
        sys.exit(f"error: {program} {' '.join(words)}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def helps_of(program, path=("hangar",)):
    """The help of a command and of all below it, by their words."""
    found = {path: parsed(said_by(program, *path[1:], "--help"))}
    for entry in found[path].sections.get("Subcommands", []):
        found |= helps_of(program, (*path, names_of(entry)[0]))
    return found


def pages(program):
    """The text of each page by its file's name."""
    helps = helps_of(program)
    version = said_by(program, "version").split()[-1]
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    date = (datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now(datetime.timezone.utc)).strftime("%Y-%m-%d")
    made = {"hangar.1": page_of_program(helps, version, date)}
    for path in helps:
        if len(path) == 2:
            made[f"{'-'.join(path)}.1"] = page_of_command(path, helps, version, date)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the built hangar")
    parser.add_argument("out", type=pathlib.Path, help="directory of the pages")
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in pages(arguments.program).items():
        (arguments.out / name).write_text(text)


if __name__ == "__main__":
    main()
