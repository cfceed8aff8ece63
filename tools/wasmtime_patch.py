#!/usr/bin/env python3
"""Whether the pinned wasmtime is the newest patch of its release line, and that line is still supported.

Escapes from the sandbox are mended in patch releases: the pin of third_party/wasmtime has to follow them. Asks the
crates registry by cargo, so that mirrors and proxies are those of every build.

Exit status 0: it is; or the registry does not answer, which is said and is no failure. 1: it is not.
"""
import argparse
import datetime
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATE = "wasmtime-c-api-impl"
# `| 48 (LTS) | 2028-08-20 |` in docs/dependencies.md: the line, and the end of its security fixes.
LINE = re.compile(r"^\| (\d+)(?: \(LTS\))? \| (\d{4}-\d\d-\d\d) \|", re.MULTILINE)


class Unreachable(Exception):
    """The registry did not answer."""


def version_in(lock):
    (version,) = {one["version"] for one in tomllib.loads(lock.read_text())["package"] if one["name"] == CRATE}
    return version


def newest_of(major):
    """The newest version of that line that is not yanked, as cargo would choose it for a new project."""
    with tempfile.TemporaryDirectory() as directory:
        project = pathlib.Path(directory)
        (project / "src").mkdir()
        (project / "src/lib.rs").touch()
        (project / "Cargo.toml").write_text(
            f'[package]\nname = "look"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n{CRATE} = "{major}"\n')
        done = subprocess.run(["cargo", "generate-lockfile"], cwd=project, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise Unreachable(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"cargo ended with {done.returncode}")
        return version_in(project / "Cargo.lock")


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def look(root, today):
    """(exit status, message)"""
    pinned = version_in(root / "third_party/wasmtime/Cargo.lock")
    line = LINE.search((root / "docs/dependencies.md").read_text())
    major = pinned.split(".")[0]
    if not line or line[1] != major:
        return 1, f"docs/dependencies.md does not say until when wasmtime {major} is supported"
    if today > datetime.date.fromisoformat(line[2]):
        return 1, f"wasmtime {major} gets no security fixes since {line[2]}: move to a supported line"
    try:
        newest = newest_of(major)
    except (Unreachable, OSError, subprocess.TimeoutExpired) as error:
        return 0, f"NOT CHECKED: the crates registry does not answer ({error}); pinned is wasmtime {pinned}, supported until {line[2]}"
    if numbers(newest) > numbers(pinned):
        return 1, f"wasmtime {newest} is out, pinned is {pinned}: read its release notes, and update third_party/wasmtime"
    return 0, f"wasmtime {pinned} is the newest patch of its line, which is supported until {line[2]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--today", type=datetime.date.fromisoformat, default=datetime.date.today())
    arguments = parser.parse_args()
    status, text = look(arguments.root, arguments.today)
    print(text, file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
