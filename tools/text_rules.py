#!/usr/bin/env python3
"""Checks the rules of CONTRIBUTING.md for texts: subjects and bodies of commits, the length of lines in documents, and
that their links lead to files of the tree and headings in them.

It checks commits from SINCE on, by the date on which they were written, which a rebase and a cherry-pick keep. Any clone
will do: of a shallow one it checks the commits that it has, of a tree without Git none. With --fix it breaks the lines
of documents.
"""
import datetime
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

SINCE = datetime.datetime.fromisoformat("2026-11-23T12:00:00+00:00")
SUBJECT_MAX = 72
LINE_MAX = 160
SUBJECT = re.compile(r"[\w/.+-]+(, [\w/.+-]+)*: \S.*[^.\s]")
TRAILER = re.compile(r"[A-Z][\w-]+: \S")


def commit_findings(commits):
    """Of (name, when, subject, body) each."""
    for name, when, subject, body in commits:
        if when < SINCE:
            continue
        if len(subject) > SUBJECT_MAX:
            yield f"{name}: the subject has {len(subject)} characters, the most is {SUBJECT_MAX}: {subject}"
        if not SUBJECT.fullmatch(subject):
            yield f"{name}: the subject is to be `area: what it does`, without a full stop: {subject}"
        if not any(line.strip() and not TRAILER.match(line) for line in body.splitlines()):
            yield f"{name}: the body is to say why: {subject}"


def commits_of(root):
    """The commits that this clone has, without merges; none where there is no Git."""
    done = subprocess.run(["git", "-C", str(root), "log", "--no-merges", "--format=%h%x1f%aI%x1f%s%x1f%b%x1e"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode != 0:
        return
    for record in done.stdout.split("\x1e"):
        if record.strip():
            name, when, subject, body = record.strip("\n").split("\x1f")
            yield name, datetime.datetime.fromisoformat(when), subject, body


def length_of(line):
    """Without its URLs, which cannot be broken."""
    return len(re.sub(r"\bhttps?://\S+", "", line))


def prose_of(lines):
    """Whether each line may be broken: rows of tables and lines of code have to stay on one line."""
    is_code = False
    for line in lines:
        is_fence = line.lstrip().startswith(("```", "~~~"))
        is_code ^= is_fence
        yield not (is_code or is_fence or line.lstrip().startswith("|"))


def line_findings(text, where):
    lines = text.splitlines()
    for number, (line, is_prose) in enumerate(zip(lines, prose_of(lines)), 1):
        if is_prose and length_of(line) > LINE_MAX:
            yield f"{where}:{number}: the line has {length_of(line)} characters, the most is {LINE_MAX}"


LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`[^`]*`")


def anchors_of(text):
    """What GitHub calls the headings of a document, and those that it names itself."""
    seen = {}
    for line, is_prose in zip(text.splitlines(), prose_of(text.splitlines())):
        yield from re.findall(r'<a (?:id|name)="([^"]+)"', line)
        if is_prose and (heading := re.fullmatch(r"#+ +(.*?)[ #]*", line)):
            name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
            number = seen[name] = seen.get(name, -1) + 1
            yield f"{name}-{number}" if number else name


def link_findings(path, text, where):
    """Links to other sites are not followed."""
    lines = text.splitlines()
    for number, (line, is_prose) in enumerate(zip(lines, prose_of(lines)), 1):
        if not is_prose and not line.lstrip().startswith("|"):
            continue
        for link in LINK.findall(CODE.sub("", line)):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = path.parent / file if file else path
            if not target.exists():
                yield f"{where}:{number}: {link} does not exist"
            elif anchor and target.suffix == ".md" and anchor not in anchors_of(target.read_text(encoding="utf-8")):
                yield f"{where}:{number}: {link}: no heading has that name"


# Text that would mean something else at the beginning of a line, and lines that start a new paragraph anyway.
BEGINS = re.compile(r"\s*([-+*#>]|\d+[.)])(\s|$)|\s*$|\s*[|`~]{3}|\s*\||\s*<")


def broken(text):
    """With long lines broken; the rest of a line goes to the front of the paragraph's next line."""
    lines, done = text.splitlines(), []
    prose = list(prose_of(lines))
    index = 0
    while index < len(lines):
        line = lines[index]
        if not prose[index] or length_of(line) <= LINE_MAX:
            done.append(line)
            index += 1
            continue
        item = re.match(r"\s*([-+*]|\d+[.)])\s+", line)
        indent = " " * (len(item[0]) if item else len(line) - len(line.lstrip()))
        places = [at.start() for at in re.finditer(" ", line) if at.start() > len(indent)
                  and length_of(line[:at.start()]) <= LINE_MAX and not BEGINS.match(line[at.end():])]
        if not places or line.startswith(("#", ">")):
            done.append(line)
            index += 1
            continue
        done.append(line[:places[-1]].rstrip())
        rest = indent + line[places[-1] + 1:].lstrip()
        follows = index + 1 < len(lines) and prose[index + 1] and not BEGINS.match(lines[index + 1]) and not line.endswith(("  ", "\\"))
        if follows:
            rest += " " + lines[index + 1].lstrip()
            index += 1
        lines[index] = rest
    return "\n".join(done) + "\n"


def documents_of(root):
    for path in sorted(root.rglob("*.md")):
        inside = path.relative_to(root)
        if inside.parts[0] not in ("build", "node_modules") and not any(part.startswith(".") or part == "node_modules" for part in inside.parts):
            yield path, inside.as_posix()


def main() -> int:
    found = list(commit_findings(commits_of(ROOT)))
    if "--fix" in sys.argv[1:]:
        for path, _ in documents_of(ROOT):
            text = path.read_text(encoding="utf-8")
            if broken(text) != text:
                path.write_text(broken(text), encoding="utf-8")
    for path, where in documents_of(ROOT):
        text = path.read_text(encoding="utf-8")
        found += [*line_findings(text, where), *link_findings(path, text, where)]
    print("\n".join(found) if found else "commits and documents follow the rules for texts")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
