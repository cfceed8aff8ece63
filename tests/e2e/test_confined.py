"""confined.py: mounts of a command's own, in each way that a machine may allow."""
import signal
import subprocess

import pytest

import confined
from processes import BehindSudo

# As sudo without a password, which is not on every machine: the command is its child.
SUDO = """#!/bin/sh
[ "$1 $2" = "-n -E" ] && shift 2 && "$@"
exit $?
"""


@pytest.fixture
def sudo(tmp_path, monkeypatch):
    (tmp_path / "sudo").write_text(SUDO)
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")


def test_a_command_has_mounts_of_its_own(tmp_path, sudo, monkeypatch):
    place = tmp_path / "place with a space"
    place.mkdir()
    open_ways = list(filter(confined.is_open, confined.WAYS))
    assert open_ways
    for way in open_ways:
        monkeypatch.setattr(confined, "way_to_mount", lambda way=way: way)
        prefix = confined.mounting(f'mount -t tmpfs -o "size=64k,mode=0700,$owner" own "{place}"')
        done = subprocess.run([*prefix, "sh", "-c", f'cd "{place}" && echo "$0 $1" >file && cat file && echo "$PATH"', "first", "second third"],
                              capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, f"first second third\n{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin\n"), (way, done.stderr)
        assert not any(place.iterdir()), way


def test_what_cannot_be_mounted_ends_the_command(tmp_path):
    done = subprocess.run([*confined.mounting(f'mount --bind "{tmp_path}/absent" /mnt'), "echo", "runs"], capture_output=True, text=True, check=False)

    assert done.returncode != 0 and done.stdout == ""


def test_signals_reach_the_command_behind_sudo(sudo):
    process = BehindSudo(subprocess.Popen(["sudo", "-n", "-E", "sh", "-c", "trap 'exit 7' TERM; echo set; while :; do sleep 0.1; done"],
                                          stdout=subprocess.PIPE, text=True))
    assert process.stdout.readline() == "set\n"
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) == 7
    process.send_signal(signal.SIGTERM)  # To nobody.
