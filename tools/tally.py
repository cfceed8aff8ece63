#!/usr/bin/env python3
"""Sums what the test runners of one `tools/ci.sh` run reported: tally.py REPORTS

REPORTS has a folder for each step, with the step's exit status and the reports of its runners: CTest's and
pytest's JUnit files, GoogleTest's own, `go test -json`, and what `cargo test` prints. Prints one line on stdout,
"N passed, N failed, N skipped", and what failed on stderr. A step that failed without a failed test counts
as one. Exits 1 if anything failed, if nothing ran, or, with CI=true, if anything was skipped.
"""
import collections
import json
import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

Outcome = collections.namedtuple("Outcome", "name verdict")  # verdict: passed, failed or skipped


def junit(path):
    """JUnit as CTest, pytest and GoogleTest write it."""
    for case in ElementTree.parse(path).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        if case.find("failure") is not None or case.find("error") is not None:
            yield Outcome(name, "failed")
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            yield Outcome(name, "skipped")
        else:
            yield Outcome(name, "passed")


def ctest(step):
    """Test programs; those of GoogleTest count by their tests, and once more only if the program itself failed
    although none of its tests did (a crash, a sanitizer's report, a timeout)."""
    program_of = {}
    for test in json.loads((step / "ctest.json").read_text())["tests"]:
        program_of[test["name"]] = pathlib.Path(test.get("command", ["?"])[0]).name
    inner = {path.stem: list(junit(path)) for path in (step / "gtest").glob("*.xml")}
    for outcomes in inner.values():
        yield from outcomes
    for case in ElementTree.parse(step / "ctest.xml").iter("testcase"):
        name = case.get("name")
        verdict = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
        outcomes = inner.get(program_of.get(name))
        if outcomes is None or (verdict == "failed" and all(o.verdict != "failed" for o in outcomes)):
            yield Outcome(name, verdict)


def go_test(path):
    verdicts = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    output, failed_in = collections.defaultdict(list), set()
    for line in path.read_text().splitlines():
        event = json.loads(line)
        action, package, test = event.get("Action"), event.get("Package") or event.get("ImportPath"), event.get("Test")
        if action in ("output", "build-output"):
            output[package].append(event["Output"])
        elif test and action in verdicts:
            if action == "fail":
                failed_in.add(package)
            yield Outcome(f"{package}.{test}", verdicts[action])
        elif action in ("fail", "build-fail") and package not in failed_in:
            failed_in.add(package)
            yield Outcome(package, "failed")
    for package in sorted(failed_in):
        sys.stderr.write("".join(output[package]))


def cargo_test(path):
    """`test path::name ... ok`, as libtest writes it for people; there is no stable format for programs."""
    verdicts = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
    for line in path.read_text().splitlines():
        name, found, verdict = line.removeprefix("test ").rpartition(" ... ")
        if line.startswith("test ") and found and verdict in verdicts:
            yield Outcome(name, verdicts[verdict])


def outcomes_of(step):
    if (step / "ctest.xml").exists():
        yield from ctest(step)
    for path in sorted(step.glob("pytest.xml")):
        yield from junit(path)
    for path in sorted(step.glob("*.go.json")):
        yield from go_test(path)
    for path in sorted(step.glob("*.cargo.txt")):
        yield from cargo_test(path)


def main():
    total = collections.Counter()
    for status in sorted(pathlib.Path(sys.argv[1]).glob("*/status"), key=lambda path: path.stat().st_mtime):
        step = status.parent
        outcomes = list(outcomes_of(step))
        if int(status.read_text()) != 0 and all(outcome.verdict != "failed" for outcome in outcomes):
            outcomes.append(Outcome("(the step itself)", "failed"))
        for outcome in outcomes:
            total[outcome.verdict] += 1
            if outcome.verdict != "passed":
                print(f"{outcome.verdict}: {step.name}: {outcome.name}", file=sys.stderr)
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    nothing_ran = total["passed"] == 0
    skipped_in_ci = os.environ.get("CI") == "true" and total["skipped"] > 0
    return 1 if total["failed"] or nothing_ran or skipped_in_ci else 0


if __name__ == "__main__":
    sys.exit(main())
