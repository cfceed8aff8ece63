"""SECURITY.md: every test that it names as proof exists."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = re.compile(r"`(?:(test_\w+)|([A-Z]\w+)\.([A-Z]\w+))`")


def names_in(*folders):
    """The names of all tests: `test_x`, `Suite.Name`."""
    found = set()
    for folder in folders:
        for path in folder.rglob("*.py"):
            found |= set(re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE))
        for path in folder.rglob("*.cc"):
            found |= {".".join(pair) for pair in re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE)}
    return found


def test_the_walls_were_tried_by_tests_that_exist():
    text = (ROOT / "SECURITY.md").read_text()
    named = {one or f"{suite}.{name}" for one, suite, name in NAMED.findall(text)}

    assert len(named) > 40, "the table could not be read"
    missing = named - names_in(ROOT / "src", ROOT / "tests")
    assert not missing, f"SECURITY.md names tests that are not there: {sorted(missing)}"


def test_each_wall_names_a_test():
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ") and not line.startswith(("| from", "|---"))]

    assert rows and not [row for row in rows if not NAMED.search(row)]
