"""clang_tidy.py: what is checked again, what is checked together, and what a run's findings say of its files."""
import pytest

import clang_tidy
from clang_tidy import Command, Work


@pytest.fixture
def tree(tmp_path):
    """Writes files, and returns the tree of them as it is then."""
    def write(**files):
        for name, text in files.items():
            path = tmp_path / "src" / name.replace("__", "/").replace("_cc", ".cc").replace("_h", ".h")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return clang_tidy.Tree(tmp_path)
    return write


def key(tree, arguments=("clang++-19", "-O1"), outside="clang-tidy 19", paths=()):
    return clang_tidy.key_of("src/io/a.cc", Command("/build", tuple(arguments), "hangar_io"), tree, outside, paths)


def test_a_file_is_current_while_nothing_that_it_consists_of_changes(tree):
    files = {"io__a_cc": '#include "io/a.h"\n#include <vector>\n', "io__a_h": '#include "base/b.h"\n', "base__b_h": "int b();\n",
             "base__other_h": "int other();\n"}
    first = key(tree(**files))
    assert key(tree(**files)) == first
    assert key(tree(base__other_h="long other();\n")) == first
    assert key(tree(base__b_h="long b();\n")) != first


@pytest.mark.parametrize("changed", [{"arguments": ["clang++-19", "-O2"]}, {"outside": "clang-tidy 20"}])
def test_a_file_is_not_current_with_another_command_or_tool(tree, changed):
    written = tree(io__a_cc="int a();\n")
    assert key(written, **changed) != key(written)


def test_a_file_is_current_in_another_clone(tree):
    written = tree(io__a_cc="int a();\n")
    mine = key(written, ["clang++-19", "-I/mine/src"], paths=[("/mine", "ROOT")])
    assert key(written, ["clang++-19", "-I/yours/src"], paths=[("/yours", "ROOT")]) == mine


def test_headers_that_include_each_other_end(tree):
    written = tree(io__a_cc='#include "io/a.h"\n', io__a_h='#include "io/b.h"\n', io__b_h='#include "io/a.h"\n')
    assert [name for name, _ in written.consists_of("src/io/a.cc")] == ["src/io/a.cc", "src/io/a.h", "src/io/b.h"]


def test_the_command_of_a_file_of_two_targets_is_that_of_its_library(tmp_path):
    def entry(target, flag):
        return {"directory": "/build", "file": f"{tmp_path}/src/base/digest.cc",
                "command": f"clang++-19 {flag} -o CMakeFiles/{target}.dir/src/base/digest.cc.o -c {tmp_path}/src/base/digest.cc"}
    bench = {"directory": "/build", "file": f"{tmp_path}/bench/a.cc", "command": f"clang++-19 -o CMakeFiles/a.dir/a.o -c {tmp_path}/bench/a.cc"}
    for database in ([entry("hangar_base", "-g"), entry("hangar-node", "-O2")], [entry("hangar-node", "-O2"), entry("hangar_base", "-g"), bench]):
        assert clang_tidy.commands_of(database, tmp_path) == {"src/base/digest.cc": Command("/build", ("clang++-19", "-g"), "hangar_base")}


def planned(files):
    commands = {name: Command("/build", ("clang++-19",), "hangar_" + name.split("/")[1]) for name in files}
    return clang_tidy.plan(files, commands)


def test_the_files_of_a_folder_are_checked_together_and_its_tests_one_by_one_after_them():
    assert planned(["src/io/c.cc", "src/io/a_test.cc", "src/kube/a.cc", "src/io/a.cc", "src/io/b_test.cc"]) == [
        Work("together", ("src/io/a.cc", "src/io/c.cc")), Work("alone", ("src/kube/a.cc",)),
        Work("alone", ("src/io/a_test.cc",)), Work("alone", ("src/io/b_test.cc",))]


def test_no_more_files_are_together_than_in_a_unity_build():
    works = planned([f"src/io/{number:02}.cc" for number in range(clang_tidy.TOGETHER_MAX + 1)])
    assert [len(work.files) for work in works if work.kind == "together"] == [9, 8]


TOGETHER = Work("together", ("src/io/a.cc", "src/io/b.cc"))


def clean(output, status=1):
    return clang_tidy.clean_files(TOGETHER, output, status, "/tree")


def test_a_run_without_findings_clears_all_its_files():
    assert clean("", status=0) == ["src/io/a.cc", "src/io/b.cc"]


def test_a_finding_in_one_file_clears_the_others():
    assert clean("/tree/src/io/a.cc:3:1: error: no [bugprone-x,-warnings-as-errors]\n") == ["src/io/b.cc"]


@pytest.mark.parametrize("output", ["/tree/src/io/a.h:3:1: error: no [bugprone-x,-warnings-as-errors]\n", "Segmentation fault\n"])
def test_a_finding_in_a_header_and_a_crash_clear_none(output):
    assert clean(output) == []


def check(monkeypatch, tmp_path, run, works, deadline=float("inf")):
    monkeypatch.setattr(clang_tidy, "ROOT", tmp_path)
    kept = []
    return (*clang_tidy.check(works, run, 1, deadline, kept.extend), kept)


def test_files_that_do_not_compile_together_are_checked_alone(monkeypatch, tmp_path):
    def run(work):
        return (1, f"{tmp_path}/src/io/b.cc:1:1: error: redefinition of 'x' [clang-diagnostic-error]\n") if work.kind == "together" else (0, "")
    bad, late, kept = check(monkeypatch, tmp_path, run, [TOGETHER])
    assert (bad, late, kept) == ([], [], ["src/io/a.cc", "src/io/b.cc"])


def test_after_the_deadline_nothing_is_begun(monkeypatch, tmp_path):
    bad, late, kept = check(monkeypatch, tmp_path, None, [TOGETHER], deadline=0)
    assert (bad, late, kept) == ([], [TOGETHER], [])


def test_the_last_line_tells_what_was_checked_what_was_known_and_what_is_left():
    wanted = [f"src/io/{name}.cc" for name in "abcdef"]
    due = ["src/io/a.cc", "src/io/b.cc", "src/io/c.cc", "src/io/d.cc"]
    assert clang_tidy.summary(wanted, due, ["src/io/c.cc"], [TOGETHER]) == (
        "clang-tidy: 2 files checked, 2 known to be in order, 1 with findings, 2 left for another run")


def test_stamps_are_kept_by_part_and_forgotten_when_old(tmp_path):
    stamps = clang_tidy.Stamps(tmp_path / "tidy")
    stamps.add("key", "checks")
    assert stamps.has("key", "checks") and not stamps.has("key", "includes")
    written = (tmp_path / "tidy" / "key-checks").stat().st_mtime
    stamps.forget_old(written + 86400)
    assert stamps.has("key", "checks")
    stamps.forget_old((tmp_path / "tidy" / "key-checks").stat().st_mtime + (clang_tidy.KEPT_DAYS + 1) * 86400)
    assert not stamps.has("key", "checks")
