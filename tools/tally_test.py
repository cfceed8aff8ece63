"""tally.py: the result that it reports for a run of every check."""
import json
import pathlib
import subprocess
import sys

TALLY = pathlib.Path(__file__).parent / "tally.py"


def tally(reports, **environment):
    """(the line on stdout, what stderr names, the exit status)"""
    done = subprocess.run([sys.executable, str(TALLY), str(reports)], env={"PATH": "/usr/bin:/bin", **environment},
                          capture_output=True, text=True, check=False)
    return done.stdout, done.stderr, done.returncode


def step(reports, name, status=0, **files):
    folder = reports / name
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"{status}\n")
    for file, text in files.items():
        path = folder / file.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def ctest(*cases):
    """Names and statuses -> what ctest.json and ctest.xml say; unit.x runs the program x_tests."""
    tests = [{"name": name, "command": [f"/b/bin/{name.split('.')[1]}_tests"]} for name, _ in cases]
    xml = "".join(f'<testcase name="{name}" status="{status}"/>' for name, status in cases)
    return {"ctest_json": json.dumps({"tests": tests}), "ctest_xml": f"<testsuite>{xml}</testsuite>"}


def gtest(*bodies):
    cases = "".join(f'<testcase name="t{i}" classname="S" status="run">{body}</testcase>' for i, body in enumerate(bodies))
    return f"<testsuites><testsuite>{cases}</testsuite></testsuites>"


def test_a_googletest_program_counts_by_its_tests(tmp_path):
    step(tmp_path, "unit", 8, **ctest(("unit.x", "fail"), ("unit.y", "run")))
    (tmp_path / "unit/gtest").mkdir()
    (tmp_path / "unit/gtest/x_tests.xml").write_text(gtest("", '<failure message="no"/>', "<skipped/>"))

    line, named, status = tally(tmp_path)

    assert line == "2 passed, 1 failed, 1 skipped\n"  # unit.y has no report of its own and counts as one
    assert "failed: unit: S.t1" in named
    assert status == 1


def test_a_program_that_crashes_after_its_tests_has_failed(tmp_path):
    step(tmp_path, "asan", 8, **ctest(("unit.x", "fail")))
    (tmp_path / "asan/gtest").mkdir()
    (tmp_path / "asan/gtest/x_tests.xml").write_text(gtest("", ""))

    assert tally(tmp_path)[0] == "2 passed, 1 failed, 0 skipped\n"


def test_a_step_that_fails_without_a_failed_test_counts_as_one(tmp_path):
    step(tmp_path, "build", 1)
    step(tmp_path, "unit", 0, **ctest(("unit.x", "run")))

    line, named, status = tally(tmp_path)

    assert (line, status) == ("1 passed, 1 failed, 0 skipped\n", 1)
    assert "failed: build: (the step itself)" in named


def test_go_packages_that_do_not_build_have_failed(tmp_path):
    events = [{"ImportPath": "a", "Action": "build-output", "Output": "a.go:1: no\n"}, {"ImportPath": "a", "Action": "build-fail"},
              {"Package": "a", "Action": "fail"}, {"Package": "b", "Test": "TestB", "Action": "pass"}, {"Package": "b", "Action": "pass"}]
    step(tmp_path, "go", 1)
    (tmp_path / "go/sdk.go.json").write_text("\n".join(map(json.dumps, events)))

    line, named, _ = tally(tmp_path)

    assert line == "1 passed, 1 failed, 0 skipped\n"
    assert "a.go:1: no" in named


def test_what_cargo_prints_is_counted(tmp_path):
    step(tmp_path, "rust", 101)
    (tmp_path / "rust/sdk.cargo.txt").write_text(
        "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest d ... ignored\n\ntest result: FAILED. 1 passed; 1 failed\n")

    assert tally(tmp_path)[0] == "1 passed, 1 failed, 1 skipped\n"


def test_a_skip_is_a_failure_only_in_ci(tmp_path):
    step(tmp_path, "e2e", 0, pytest_xml='<testsuite><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>')

    assert tally(tmp_path)[0::2] == ("1 passed, 0 failed, 1 skipped\n", 0)
    assert tally(tmp_path, CI="true")[0::2] == ("1 passed, 0 failed, 1 skipped\n", 1)


def test_a_run_in_which_nothing_ran_has_failed(tmp_path):
    step(tmp_path, "setup", 0)

    assert tally(tmp_path)[0::2] == ("0 passed, 0 failed, 0 skipped\n", 1)
