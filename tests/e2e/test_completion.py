"""Completion of command lines, as bash, zsh and fish do it with the scripts that the program prints."""
import os
import shlex
import subprocess

import pytest

from host import BINARY
from yoke_releases import config_map, record

BASH = r"""
source <("$program" completion bash)
COMP_LINE=$line COMP_POINT=${#line}
COMP_WORDS=(%s) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_hangar_complete 2>/dev/null
printf '%%s\n' "${COMPREPLY[@]}"
"""

# A zsh at a terminal: it gets the line and a tabulator. A widget of its own then writes what has become of the line to a file.
ZSH = r"""
zmodload zsh/zpty
result=$HOME/line
rm -f $result
zpty shell zsh -f -i
zpty -w shell "autoload -Uz compinit; compinit -u -D; source <(hangar completion zsh)"
zpty -w shell 'tell() { print -rn -- "$BUFFER" > '$result.new'; mv '$result.new' '$result' }; zle -N tell; bindkey "^I" complete-word "^X" tell'
zpty -w -n shell "$1"$'\t\x18'
while [[ ! -e $result ]]; do zpty -r -t shell ignored || sleep 0.05; done
print -rn -- "$(<$result)"
zpty -d shell
"""


def completed(*words, program=BINARY, cluster=None, cwd=None):
    """What bash offers for the last word. The words are as readline takes them apart: at = and :, too."""
    quoted = " ".join(shlex.quote(word) for word in (str(program), *words))
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "program": str(program), "line": " ".join(words)}
    if cluster is not None:
        environment["KUBECONFIG"] = cluster.kubeconfig
    done = subprocess.run(["bash", "--norc", "-c", BASH % quoted], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("words, offers", [
    (["takeo"], ["takeoff"]),
    (["workflow", ""], ["show", "signal"]),
    (["workflow", "si"], ["signal"]),
    (["takeoff", "--diff"], ["--diff-only"]),
    (["takeoff", "-diff"], ["-diff-only"]),
    (["host", "--log-for"], ["--log-format"]),
    (["top", "-o", ""], ["csv", "json"]),
    (["console", "--allow"], ["--allow-actions"]),
    (["top", "--output", "=", "j"], ["json"]),
    (["completion", ""], ["bash", "fish", "zsh"]),
    (["nothing", "--"], ["--help", "--version"]),
], ids=" ".join)
def test_bash_offers_commands_flags_and_their_words(words, offers):
    assert sorted(completed(*words)) == sorted(offers)


def test_bash_offers_files_and_directories_where_they_stand(tmp_path):
    (tmp_path / "main.wasm").touch()
    (tmp_path / "made").mkdir()

    assert sorted(completed("takeoff", "web", "ma", cwd=tmp_path)) == ["made", "main.wasm"]
    assert completed("takeoff", "--out", "ma", cwd=tmp_path) == ["made"]
    assert completed("takeoff", "--out", "=", "ma", cwd=tmp_path) == ["made"]


def test_bash_offers_releases_and_revisions_of_the_cluster(cluster, namespace):
    for second, number in enumerate("123"):
        record(cluster, namespace, "web", [[config_map("a", namespace, n=number)]], created=second)
    record(cluster, namespace, "worker", [[config_map("b", namespace)]], created=0)
    record(cluster, namespace, "$(touch /tmp/never)", [[config_map("c", namespace)]], created=0)

    for command in ("takeoff", "up", "mayday", "blackbox", "turbulence"):
        assert sorted(completed(command, "-namespace", namespace, "", cluster=cluster)) == ["web", "worker"], command
    assert completed("mayday", "--namespace", "=", namespace, "wo", cluster=cluster) == ["worker"]
    assert sorted(completed("descent", "-namespace", namespace, "web", "", cluster=cluster)) == ["1", "2", "3"]
    assert completed("descent", "--namespace", namespace[:-1], cluster=cluster).count(namespace) == 1
    assert namespace in completed("mayday", "--namespace", "=", namespace, cluster=cluster)


def test_bash_offers_operators_and_nothing_without_a_cluster(cluster, operator, namespace):
    operator("one", "wait")

    assert completed("logs", "-n", namespace, "", cluster=cluster) == ["one"]
    assert completed("timeline", "-n", namespace, "o", cluster=cluster) == ["one"]
    assert completed("rights", "-n", namespace, "o", cluster=cluster) == ["one"]
    assert completed("logs", "-n", namespace, "") == []


def test_the_program_under_the_name_yoke_completes_as_yoke(tmp_path):
    link = tmp_path / "yoke"
    link.symlink_to(BINARY)
    script = subprocess.run([link, "completion", "bash"], stdout=subprocess.PIPE, text=True, check=True).stdout

    assert "complete -F _yoke_complete yoke" in script
    offered = subprocess.run([link, "__complete", ""], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "takeoff\t" in offered and "host\t" not in offered


@pytest.fixture(scope="module")
def fish(tmp_path_factory):
    """What fish offers for a line: words, without their descriptions."""
    home = tmp_path_factory.mktemp("fish")
    complete = 'source (hangar completion fish | psub); complete --do-complete "$argv"'

    def offers(line, cwd=None, kubeconfig="/nonexistent"):
        environment = {"PATH": f"{BINARY.parent}:{os.environ['PATH']}", "HOME": str(home), "KUBECONFIG": kubeconfig}
        done = subprocess.run(["fish", "--no-config", "-c", complete, line], stdout=subprocess.PIPE, text=True, env=environment, cwd=cwd, check=True)
        return [row.split("\t")[0] for row in done.stdout.splitlines()]
    return offers


@pytest.fixture(scope="module")
def zsh(tmp_path_factory):
    """What zsh makes of a line when somebody presses the tabulator, in a terminal of its own."""
    home = tmp_path_factory.mktemp("zsh")
    script = home / "complete.zsh"
    script.write_text(ZSH)

    def completes(line, cwd=None, kubeconfig="/nonexistent"):
        environment = {"PATH": f"{BINARY.parent}:{os.environ['PATH']}", "HOME": str(home), "TERM": "dumb", "KUBECONFIG": kubeconfig}
        done = subprocess.run(["zsh", "-f", script, line], stdout=subprocess.PIPE, text=True, env=environment, cwd=cwd, check=True, timeout=300)
        return done.stdout
    return completes


@pytest.mark.parametrize("line, offers", [
    ("hangar takeo", ["takeoff"]),
    ("hangar workflow ", ["show", "signal"]),
    ("hangar takeoff --diff", ["--diff-only"]),
    ("hangar takeoff -diff", ["-diff-only"]),
    ("hangar top -o ", ["csv", "json"]),
    ("hangar top --output=j", ["--output=json"]),
    ("hangar completion ", ["bash", "fish", "zsh"]),
])
def test_fish_offers_commands_flags_and_their_words(fish, line, offers):
    assert sorted(fish(line)) == sorted(offers)


def test_fish_offers_files(fish, tmp_path):
    (tmp_path / "main.wasm").touch()

    assert fish("hangar takeoff web ma", cwd=tmp_path) == ["main.wasm"]


def test_fish_and_zsh_complete_releases_and_revisions_of_the_cluster(cluster, namespace, fish, zsh):
    for second, number in enumerate("123"):
        record(cluster, namespace, "web", [[config_map("a", namespace, n=number)]], created=second)
    record(cluster, namespace, "worker", [[config_map("b", namespace)]], created=0)

    assert sorted(fish(f"hangar mayday -namespace {namespace} ", kubeconfig=cluster.kubeconfig)) == ["web", "worker"]
    assert sorted(fish(f"hangar descent --namespace={namespace} web ", kubeconfig=cluster.kubeconfig)) == ["1", "2", "3"]
    assert zsh(f"hangar mayday -namespace {namespace} wo", kubeconfig=cluster.kubeconfig) == f"hangar mayday -namespace {namespace} worker "
    assert zsh(f"hangar blackbox --namespace={namespace} we", kubeconfig=cluster.kubeconfig) == f"hangar blackbox --namespace={namespace} web "


@pytest.mark.parametrize("line, completed", [
    ("hangar takeo", "hangar takeoff "),
    ("hangar workflow si", "hangar workflow signal "),
    ("hangar takeoff --diff", "hangar takeoff --diff-only "),
    ("hangar top -o j", "hangar top -o json "),
    ("hangar top --output=j", "hangar top --output=json "),
])
def test_zsh_completes_commands_flags_and_their_words(zsh, line, completed):
    assert zsh(line) == completed


def test_zsh_completes_files(zsh, tmp_path):
    (tmp_path / "main.wasm").touch()

    assert zsh("hangar takeoff web ma", cwd=tmp_path) == "hangar takeoff web main.wasm "


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_such_of_their_shells(shell, tmp_path):
    script = tmp_path / "script"
    script.write_text(subprocess.run([BINARY, "completion", shell], stdout=subprocess.PIPE, text=True, check=True).stdout)

    subprocess.run([shell, "-n", script], check=True)


def test_other_shells_are_refused():
    done = subprocess.run([BINARY, "completion", "csh"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stdout == ""
