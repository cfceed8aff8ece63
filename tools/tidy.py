#!/usr/bin/env python3
"""Checks rules that no compiler checks: the layers and their order, one door per dependency, self-describing headers
and folders, and that CI runs what no sanitized build tests.

The layers are read from CMakeLists.txt (hangar_library(NAME DEPS ...)), so there is one list.
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Third-party headers by the beginning of their path, and the folders that may include them.
DOORS = {
    "wasmtime": {"wasm", "compile"},
    "hangar_wasmparser": {"wasm"},
    "curl/": {"http"},
    "ares": {"http"},
    "boost/beast": {"http"},
    "boost/asio": {"io", "http"},
    "boost/json": {"json"},
    "yaml-cpp": {"json"},
    "spdlog": {"ops"},
    "CLI/": {"cli", "compile", "node_install", "node_fetch"},
    "archive": {"node_fetch"},
    "nghttp2": {"node_install"},
    "protozero": {"kube", "tracing"},
    "toml++": {"node_install"},
    "zlib": {"modules", "airways"},
    "zstd.h": {"kube", "wasm"},
    "openssl": {"admission", "base", "http", "schematics", "sigstore"},
    "seccomp.h": {"sandbox"},
    "sys/random.h": {"base"},
}
# How the row of a library in docs/dependencies.md begins. What has no row is not a library.
ROWS = {
    "wasmtime": "wasmtime C API",
    "hangar_wasmparser": "wasmparser",
    "curl/": "libcurl",
    "ares": "c-ares",
    "boost/beast": "Boost.Asio, Boost.Beast",
    "boost/asio": "Boost.Asio, Boost.Beast",
    "boost/json": "Boost.JSON",
    "yaml-cpp": "yaml-cpp",
    "spdlog": "spdlog",
    "CLI/": "CLI11",
    "archive": "libarchive",
    "nghttp2": "nghttp2",
    "protozero": "protozero",
    "toml++": "toml++",
    "zlib": "zlib",
    "zstd.h": "zstd",
    "openssl": "OpenSSL",
    "seccomp.h": "libseccomp",
}

# Readings of a clock or of the kernel's random numbers, which a simulation could not repeat, and the files and folders
# that may have them. The rest of the code asks io::Loop and base/random.h.
UNREPEATABLE = re.compile(r"\b(?:steady|system|high_resolution)_clock::now\(|\bclock_gettime\(|\bgettimeofday\(|"
                          r"(?:::|\bstd::)time\(|\brandom_device\b")
READERS = {
    "io/clock.cc": "the door",
    "guest/process_memory.cc": "processor time of another process",
    "wasm/compiler_process.cc": "processor time of another process",
    "node_install/": "a program of its own, without io/",
    "testing/": "tests of real programs",
}

# Words of the features and of guests, which the lowest folder does not know.
ABOVE_BASE = re.compile(r"\bk\w*(?:Airway|Flight|Guest|Machine|Module|Operator|Workflow)\w*")


def layers() -> dict[str, set[str]]:
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.findall(r"^hangar_library\(([\w/]+)(?:\s+DEPS\s+([\w/\s]+?))?(?:\s+(?:SYSTEM|TEST_DEPS)[^)]*)?\)", text, re.M)
    return {name: set(deps.split()) | {name} for name, deps in found}


def folder_of(include: str, folders) -> str:
    """The longest folder that contains the included path: abi/flight before abi."""
    inside = [folder for folder in folders if include.startswith(folder + "/")]
    return max(inside, key=len, default=include.split("/")[0])


def structure_findings(allowed: dict[str, set[str]]):
    """The list in CMakeLists.txt is the list of layers, lowest first; each folder with code has a README that
    describes it, and a place in that of src."""
    known: set[str] = set()
    for name, may in allowed.items():
        for above in sorted(may - known - {name}):
            yield f"CMakeLists.txt: {name} is listed before {above}, which it may include"
        known.add(name)
    programs = {path.parent.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("main.cc")} - {"."}
    overview = ROOT / "src" / "README.md"
    listed = overview.read_text() if overview.is_file() else None
    for folder in sorted(set(allowed) | programs):
        if listed is not None and f"`{folder.split('/')[0]}/`" not in listed:
            yield f"src/README.md: does not list {folder}"
        if not (ROOT / "src" / folder / "README.md").is_file():
            yield f"src/{folder}: has no README.md that says what it is"


def findings(allowed: dict[str, set[str]]):
    for path in sorted((ROOT / "src").rglob("*.*")):
        if path.suffix not in (".h", ".cc"):
            continue
        inside = path.relative_to(ROOT / "src").as_posix()
        folder = folder_of(inside, allowed)
        lines = path.read_text().splitlines() or [""]
        where = path.relative_to(ROOT)
        is_of_tests = path.stem.endswith("_test") or path.stem.startswith("test_")
        may = allowed.get(folder, set()) | ({"testing", "simulation"} if is_of_tests else set())
        if folder in allowed and path.suffix == ".h":
            if not lines[0].startswith("//"):
                yield f"{where}:1: a header starts with what it is for"
            if "#pragma once" not in lines:
                yield f"{where}:1: missing #pragma once"
        for number, line in enumerate(lines, 1):
            if inside == "base/limits.h" and (bound := ABOVE_BASE.search(line)):
                yield f"{where}:{number}: {bound[0]} belongs into the limits.h of the folder that keeps it"
            code = line.split("//")[0]
            if not path.stem.endswith("_test") and not inside.startswith(tuple(READERS)) and UNREPEATABLE.search(code):
                yield f"{where}:{number}: reads a clock or random numbers that a simulation cannot repeat: see io/clock.h"
            if quoted := re.match(r'#include "([\w/.]+)"', line):
                target = folder_of(quoted[1], allowed)
                if folder in allowed and target not in may:
                    yield f"{where}:{number}: {folder} may not include {target}"
                if "/internal/" in quoted[1] and target != folder:
                    yield f"{where}:{number}: {quoted[1]} is private to {target}"
            if angled := re.match(r"#include <([\w./-]+)>", line):
                for prefix, doors in DOORS.items():
                    if angled[1].startswith(prefix) and folder.split("/")[0] not in doors:
                        yield f"{where}:{number}: only {', '.join(sorted(doors))} may include {prefix}"


def document_findings(text: str):
    """The rows of docs/dependencies.md name the doors that are checked here."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    for begin in sorted(set(ROWS.values())):
        doors = set().union(*(DOORS[prefix] for prefix, row in ROWS.items() if row == begin))
        named = [row for row in rows if row[0].startswith(begin)]
        if not named:
            yield f"docs/dependencies.md: no row begins with {begin}"
        for row in named:
            if (told := set(re.findall(r"`(\w+)/", row[-1]))) != doors:
                yield f"docs/dependencies.md: {row[0]} is included by {', '.join(sorted(doors))}, not by {', '.join(sorted(told))}"


SANITIZERS = {"address", "thread"}


def tests_without_sanitizers(text: str):
    """The tests, SUITE.NAME and their lines, that are compiled in no sanitized build."""
    conditions: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#if"):
            conditions.append(line)
        elif line.startswith(("#el", "#endif")):
            conditions[-1] = ""
            if line.startswith("#endif"):
                conditions.pop()
        elif test := re.match(r"TEST\w*\((\w+), (\w+)\)", line):
            without = {found for condition in conditions if "||" not in condition
                       for found in re.findall(r"!__has_feature\((\w+)_sanitizer\)", condition)}
            if without == SANITIZERS:
                yield number, f"{test[1]}.{test[2]}"


def wall_findings():
    """What no sanitized build tests is listed by hangar_walls(), or CI would not run it at all."""
    listed = (ROOT / "CMakeLists.txt").read_text()
    filters = {name.replace("_", "/"): patterns.split(":") for name, patterns in re.findall(r'^hangar_walls\((\w+) "([^"]+)"\)', listed, re.M)}
    for path in sorted((ROOT / "src").rglob("*_test.cc")):
        folder = path.parent.relative_to(ROOT / "src").as_posix()
        patterns = next((filters[name] for name in filters if f"{folder}/".startswith(f"{name}/")), [])
        for number, test in tests_without_sanitizers(path.read_text()):
            if not any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns):
                yield f"{path.relative_to(ROOT)}:{number}: no sanitized build has {test}: list it with hangar_walls()"


def main() -> int:
    document = (ROOT / "docs" / "dependencies.md").read_text()
    found = [*structure_findings(layers()), *findings(layers()), *document_findings(document), *wall_findings()]
    print("\n".join(found) if found else "layers, doors, their document, headers, folders and walls are in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
