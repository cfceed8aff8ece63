"""machine.py: what it prints, and that the tests that it names exist."""
import re

import machine
from machine import Need


def test_what_the_machine_lacks_is_printed_with_the_tests_that_need_it():
    needs = [Need(lambda: True, "a kernel", "all"), Need(lambda: False, "root", "tests/tenants")]

    assert machine.lacks(needs) == ["this machine lacks root\n  for: tests/tenants"]


def test_the_named_tests_exist():
    named = {name for need in machine.NEEDS for name in re.findall(r"\btest_\w+", need.tests)}
    named |= {name.removesuffix(".py") for name in named}
    assert {name for name in named if not (machine.ROOT / f"tests/e2e/{name}.py").is_file()} == set()
    assert all((machine.ROOT / name).exists() for need in machine.NEEDS for name in re.findall(r"\btests/[\w/]+\b(?!\.)", need.tests))


def test_whatever_uses_mounts_of_its_own_is_named():
    (need,) = [need for need in machine.NEEDS if need.is_met is machine.has_mounts]
    users = {path.stem for path in (machine.ROOT / "tests/e2e").glob("test_*.py") if "mounting(" in path.read_text()}
    assert users and users == set(re.findall(r"\btest_\w+", need.tests))


def test_the_checks_of_this_machine_end():
    for need in machine.NEEDS:
        assert need.is_met() in (True, False)
