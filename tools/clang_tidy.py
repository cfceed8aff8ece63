#!/usr/bin/env python3
"""Runs clang-tidy over src/, files together where that is faster, and remembers which files it found nothing in.

A file is checked again if what it consists of has changed: itself, the headers of src/ that it includes, its command,
.clang-tidy, clang-tidy, or a library's headers. Most of the time goes into headers, so the files of a folder are
checked together, like those of a unity build. misc-include-cleaner sees main files only, so that it takes as long as
all other checks: it runs when it is asked for.

Expects build/dev/compile_commands.json (tools/tidy.sh makes it). Exit status 0: nothing was found. With --within that
includes that time was too short for all files; the last line says so.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLANG_TIDY = "clang-tidy-19"
TOGETHER_MAX = 16
KEPT_DAYS = 30

QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FINDING = re.compile(r"^(.+?):\d+:\d+: (?:error|warning): .*\[(.*)\]$", re.MULTILINE)
INCLUDES = "misc-include-cleaner"
# What finds fault with a file of files.
NOT_TOGETHER = "-bugprone-suspicious-include"


@dataclasses.dataclass(frozen=True)
class Command:
    directory: str
    arguments: tuple[str, ...]  # without the file and the output
    target: str


@dataclasses.dataclass(frozen=True)
class Work:
    kind: str  # "together"; of one file: "alone", or "includes"
    files: tuple[str, ...]


def commands_of(database, root):
    """The command of each file of src/, by its path in the tree. Of several, the one of the folder's library."""
    found = {}
    for entry in database:
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(root / "src"):
            continue
        arguments = shlex.split(entry["command"])
        output = arguments[arguments.index("-o") + 1]
        target = output.split("CMakeFiles/")[-1].split(".dir/")[0]
        kept, skip = [], False
        for argument in arguments:
            if not skip and argument not in ("-o", "-c", entry["file"]):
                kept.append(argument)
            skip = argument == "-o"
        name = path.relative_to(root).as_posix()
        if name not in found or target.startswith("hangar_"):
            found[name] = Command(entry["directory"], tuple(kept), target)
    return found


class Tree:
    """Which headers each file of src/ includes, directly and not."""

    def __init__(self, root):
        self._root = root
        self._read = {}

    def _file(self, name):
        """The digest of a file, and what it includes; None if it is not in the tree."""
        if name not in self._read:
            path = self._root / name
            if path.is_file():
                text = path.read_bytes()
                included = QUOTED.findall(text.decode(errors="replace"))
                self._read[name] = hashlib.sha256(text).hexdigest(), included
            else:
                self._read[name] = None
        return self._read[name]

    def consists_of(self, name):
        """(path, digest) of each file that a file consists of, sorted."""
        seen, open_names = {}, [name]
        while open_names:
            one = open_names.pop()
            if one in seen or self._file(one) is None:
                continue
            seen[one], included = self._file(one)
            beside = pathlib.PurePosixPath(one).parent
            for header in included:
                open_names += [f"src/{header}", (beside / header).as_posix()]
        return sorted(seen.items())


def fingerprint_of_tools():
    """What is outside of the tree: clang-tidy, and the libraries' headers."""
    version = subprocess.run([CLANG_TIDY, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    try:
        packages = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", "*-dev*"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True).stdout
    except FileNotFoundError:
        packages = ""
    return version + packages


def key_of(name, command, tree, outside, paths):
    """A digest of all that can change what clang-tidy says. PATHS: those of this machine, with what stands for each."""
    arguments = "\n".join(command.arguments)
    for path, instead in paths:
        arguments = arguments.replace(path, instead)
    return hashlib.sha256(json.dumps([outside, arguments, tree.consists_of(name)]).encode()).hexdigest()


class Stamps:
    """What was found to be in order, each an empty file named by its key."""

    def __init__(self, folder):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, key, part):
        path = self._folder / f"{key}-{part}"
        if not path.exists():
            return False
        path.touch()
        return True

    def add(self, key, part):
        (self._folder / f"{key}-{part}").touch()

    def forget_old(self, now):
        for path in self._folder.iterdir():
            if now - path.stat().st_mtime > KEPT_DAYS * 86400:
                path.unlink(missing_ok=True)


def is_test(name):
    return name.endswith("_test.cc")


def plan(files, commands):
    """How to check these files, in their order, sources before tests: the helpers of tests have names that mean
    something in one file only, so tests are not checked together."""
    by_target, tests = collections.defaultdict(list), []
    for name in files:
        if is_test(name):
            tests.append(name)
        else:
            by_target[commands[name].target].append(name)
    works = []
    for names in by_target.values():
        # Neighbours in the folder are together in unity builds: these are known to compile.
        pieces = sorted(names)
        size = math.ceil(len(pieces) / math.ceil(len(pieces) / TOGETHER_MAX))
        works += [Work("together" if size > 1 else "alone", tuple(pieces[begin:begin + size])) for begin in range(0, len(pieces), size)]
    return works + [Work("alone", (name,)) for name in tests]


def clean_files(work, output, status, root):
    """The files of a run that nothing was said about; none if something was said about a header, which may be anyone's."""
    if status == 0:
        return list(work.files)
    named = {path.removeprefix(f"{root}/") for path, _ in FINDING.findall(output)}
    if not named or not named <= set(work.files):
        return []
    return [name for name in work.files if name not in named]


def compiles(output):
    return "[clang-diagnostic-error" not in output


class Runner:
    """Runs clang-tidy; its files are in a folder of the build."""

    def __init__(self, root, commands, fix):
        self._root = root
        self._commands = commands
        self._folder = root / "build" / "tidy"
        self._fix = ["--fix", "--format-style=file"] if fix else []

    def prepare(self, works):
        """Writes the files of files, and the compile commands of all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        entries = [self._entry(name, self._root / name) for name in self._commands]
        for work in works:
            if work.kind == "together":
                path = self._unit(work)
                path.write_text("".join(f'#include "{self._root / name}"\n' for name in work.files))
                entries.append(self._entry(work.files[0], path))
        (self._folder / "compile_commands.json").write_text(json.dumps(entries))

    def _unit(self, work):
        # The analyzer takes the files in a file of this name for main files.
        return self._folder / f"UnifiedSource-{hashlib.sha256(repr(work.files).encode()).hexdigest()[:16]}.cc"

    def _entry(self, name, path):
        command = self._commands[name]
        return {"directory": command.directory, "file": str(path), "arguments": [*command.arguments, "-c", str(path)]}

    def run(self, work):
        """(exit status, what clang-tidy said)"""
        path = self._unit(work) if work.kind == "together" else self._root / work.files[0]
        checks = {"alone": [], "together": [f"--checks={NOT_TOGETHER}"], "includes": [f"--checks=-*,{INCLUDES}"]}[work.kind]
        done = subprocess.run([CLANG_TIDY, "--quiet", *checks, *self._fix, "-p", str(self._folder), str(path)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode, re.sub(r"^\d+ (warnings?|errors?).* (generated|treated as errors?)\.?\n", "", done.stdout, flags=re.MULTILINE)


def newest_first(files, root):
    """Files that differ from the last commit, then those of the last commits, then the others."""
    rank = {}
    for arguments in (["diff", "--name-only", "HEAD"], ["log", "-n", "200", "--format=", "--name-only"]):
        done = subprocess.run(["git", "-C", str(root), *arguments, "--", "src"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for name in done.stdout.splitlines():
            rank.setdefault(name, len(rank))
    return sorted(files, key=lambda name: (rank.get(name, len(rank)), name))


class Progress:
    """One line whenever ten seconds have passed."""

    def __init__(self, total, clock=time.monotonic):
        self._total, self._clock, self._said = total, clock, clock()
        self.done = 0

    def step(self):
        self.done += 1
        if self._clock() - self._said >= 10:
            self._said = self._clock()
            print(f"    clang-tidy: {self.done} of {self._total} runs", file=sys.stderr, flush=True)


def check(works, run, jobs, deadline, on_clean):
    """Runs WORKS; (files with findings, works that were not begun by the deadline). ON_CLEAN gets a work's files that
    are in order."""
    lock, bad, late = threading.Lock(), set(), []
    progress = Progress(len(works))

    def one(work):
        if time.monotonic() >= deadline:
            with lock:
                late.append(work)
            return
        status, output = run(work)
        if status != 0 and work.kind == "together" and not compiles(output):
            for name in work.files:
                one(Work("alone", (name,)))
            return
        with lock:
            clean = clean_files(work, output, status, ROOT)
            on_clean(clean)
            if status != 0:
                bad.update(set(work.files) - set(clean))
                sys.stdout.write(output.replace(f"{ROOT}/", ""))
                sys.stdout.flush()
            progress.step()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(one, work) for work in works]:
            done.result()
    return sorted(bad), late


def summary(wanted, due, bad, late):
    """The last line of a run over WANTED, of which DUE were not known to be in order."""
    left = {name for work in late for name in work.files}
    return (f"clang-tidy: {len(set(due) - left)} files checked, {len(set(wanted) - set(due))} known to be in order, "
            f"{len(bad)} with findings, {len(left)} left for another run")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="such as src/io/loop.cc; all of src/ if none is named")
    parser.add_argument("--within", type=float, default=float("inf"), metavar="SECONDS", help="begin no other run after that")
    parser.add_argument("--sources", action="store_true", help="leave out the tests, if no file is named")
    parser.add_argument("--again", action="store_true", help="check files that are known to be in order, too")
    parser.add_argument("--includes", action="store_true", help=f"check {INCLUDES} and nothing else")
    parser.add_argument("--fix-includes", action="store_true", help="the same, and write what it asks for")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("HANGAR_JOBS", os.cpu_count())))
    given = parser.parse_args()

    began, deadline = time.time(), time.monotonic() + given.within
    commands = commands_of(json.loads((ROOT / "build/dev/compile_commands.json").read_text()), ROOT)
    wanted = [pathlib.Path(name).resolve().relative_to(ROOT).as_posix() for name in given.files]
    wanted = wanted or [name for name in commands if not (given.sources and is_test(name))]
    if unknown := [name for name in wanted if name not in commands]:
        print(f"no part of the build: {' '.join(unknown)}")
        return 1

    cache = os.environ["HANGAR_CACHE_DIR"]
    stamps = Stamps(pathlib.Path(cache) / "tidy")
    stamps.forget_old(time.time())
    tree = Tree(ROOT)
    outside = fingerprint_of_tools() + (ROOT / ".clang-tidy").read_text()
    paths = [(cache, "CACHE"), (str(ROOT), "ROOT")]
    keys = {name: key_of(name, commands[name], tree, outside, paths) for name in wanted}

    part = "includes" if given.includes or given.fix_includes else "checks"
    due = [name for name in newest_first(wanted, ROOT) if given.again or not stamps.has(keys[name], part)]

    def keep(names):
        for name in names:
            if any((ROOT / one).stat().st_mtime > began for one, _ in tree.consists_of(name)):
                continue  # edited meanwhile: nobody knows which text was checked
            stamps.add(keys[name], part)

    works = plan(due, commands) if part == "checks" else [Work("includes", (name,)) for name in due]
    runner = Runner(ROOT, commands, given.fix_includes)
    runner.prepare(works)
    bad, late = check(works, runner.run, given.jobs, deadline, keep)
    print(summary(wanted, due, bad, late))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
