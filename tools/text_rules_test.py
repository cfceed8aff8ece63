"""text_rules.py: which commits and which lines it finds, in any clone."""
import datetime
import re
import subprocess

import pytest

import text_rules

BEFORE, AFTER = (text_rules.SINCE + datetime.timedelta(days=days) for days in (-1, 1))
GOOD = ("a1", AFTER, "abi/flight: give flights the version of the contract", "Because they ask for it.")


@pytest.mark.parametrize("commit, says", [
    (GOOD, None),
    (("a1", BEFORE, "Whatever was written before. " * 5, ""), None),
    ((*GOOD[:2], "area: " + "x" * 66, GOOD[3]), None), ((*GOOD[:2], "area: " + "x" * 67, GOOD[3]), "73 characters"),
    ((*GOOD[:2], "Fix things", GOOD[3]), "`area: what it does`"), ((*GOOD[:2], "area: end with a stop.", GOOD[3]), "without a full stop"),
    ((*GOOD[:2], "fixup! area: mend it", GOOD[3]), "`area: what it does`"), ((*GOOD[:2], "kube, http: mend it", GOOD[3]), None),
    ((*GOOD[:3], "\n"), "say why"), ((*GOOD[:3], "Signed-off-by: A <a@example.com>\n"), "say why")])
def test_a_commit_is_found_by_its_subject_and_its_body(commit, says):
    found = list(text_rules.commit_findings([commit]))

    assert len(found) == (0 if says is None else 1) and all(says in one for one in found), found


def git(where, *arguments, when=AFTER):
    env = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "HOME": str(where),
           "PATH": "/usr/bin:/bin", "GIT_AUTHOR_DATE": when.isoformat(), "GIT_COMMITTER_DATE": AFTER.isoformat()}
    return subprocess.run(["git", "-C", str(where), *arguments], check=True, env=env, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "--quiet")
    git(origin, "commit", "--quiet", "--allow-empty", "-m", "Long ago", when=BEFORE)
    for number in range(3):
        git(origin, "commit", "--quiet", "--allow-empty", "-m", f"no area in commit {number}", "-m", "Why it is made.")
    return origin


@pytest.mark.parametrize("flags, count", [((), 3), (("--depth=1",), 1), (("--depth=2",), 2)], ids=["whole", "shallow", "two"])
def test_any_clone_is_checked_as_far_as_it_goes(repository, tmp_path, flags, count):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", *flags, f"file://{repository}", str(clone))

    assert len(list(text_rules.commit_findings(text_rules.commits_of(clone)))) == count


def test_a_tree_without_git_has_no_commits(tmp_path):
    assert list(text_rules.commits_of(tmp_path)) == []


LONG = "word " * 40
URL = "https://example.com/" + "x" * 200


@pytest.mark.parametrize("text, lines", [
    ("word " * 31 + "ending", [1]), ("word " * 31 + "ends\n", []), ("short\n" + LONG, [2]), (f"| {LONG} |", []), (f"```\n{LONG}\n```\n{LONG}", [4]),
    (f"see {URL}", []), (f"see [this]({URL}) {LONG}", [1])])
def test_long_lines_are_found_where_they_can_be_broken(text, lines):
    assert [int(one.split(":")[1]) for one in text_rules.line_findings(text, "a.md")] == lines


@pytest.mark.parametrize("text", [
    LONG, f"- {LONG}\n- two", f"  1. {LONG}\n     more of it\n\nanother", f"{LONG}\nmore\n- item", f"before\n\n{LONG}\n\nafter",
    ("word " * 31) + "- no list\n", ("word " * 31) + "12. no list\n", f"# {LONG}", f"| {LONG} |"])
def test_breaking_lines_changes_no_word_and_makes_nothing_else_of_them(text):
    broken = text_rules.broken(text)

    assert re.sub(r"\s+", " ", broken).strip() == re.sub(r"\s+", " ", text).strip()
    starts = [line.split()[0] for line in broken.splitlines() if line.strip()]
    assert sum(one in "-#|" or one.endswith(".") for one in starts) == sum(
        bool(re.match(r"\s*(-|#|\||\d+\.)(\s|$)", line)) for line in text.splitlines())
    assert text_rules.broken(broken) == broken
    if not text.startswith(("#", "|")):
        assert not list(text_rules.line_findings(broken, "a.md"))


def test_an_item_goes_on_below_its_text():
    first, second = text_rules.broken(f"- {LONG}").splitlines()

    assert first.startswith("- word") and second.startswith("  word")


@pytest.mark.parametrize("link, says", [
    ("other.md", None), ("other.md#the-first-one", None), ("other.md#the-first-one-1", None), ("#a-bc-d", None), ("https://example.com/x#y", None),
    ("missing.md", "does not exist"), ("other.md#missing", "no heading"), ("#missing", "no heading"), ("other.md#the-first-one-2", "no heading")])
def test_a_link_leads_to_a_file_and_a_heading(tmp_path, link, says):
    (tmp_path / "other.md").write_text("# The first one\n## The first one\n```\n# missing\n```\n")
    text = f"# A `bc`: [D](other.md)\n[text]({link}) and `[code](missing.md)`\n"
    (tmp_path / "one.md").write_text(text)

    found = list(text_rules.link_findings(tmp_path / "one.md", text, "one.md"))

    assert len(found) == (0 if says is None else 1) and all(says in one for one in found), found
