#!/usr/bin/env python3
"""Prints what tests need and this machine lacks, with the tests that then fail or are skipped. The first step of tools/ci.sh,
so that nobody learns it an hour later. The exit code is 0 all the same: the tests decide.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import confined  # noqa: E402

CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Need(NamedTuple):
    is_met: Callable[[], bool]
    what: str
    tests: str


def is_root() -> bool:
    return os.geteuid() == 0


def may_install() -> bool:
    sudo = shutil.which("sudo")
    return is_root() or sudo is not None and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0


def has_mounts() -> bool:
    return any(map(confined.is_open, confined.WAYS))


def has_port_53() -> bool:
    """The only port of a name server that /etc/resolv.conf can name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as prober:
        try:
            prober.bind(("127.53.53.53", 53))
        except OSError:
            return False
        return True


def has_cgroups() -> bool:
    """Memory can be limited: in one hierarchy (version 2), or in that of memory (version 1)."""
    made = (CGROUPS if (CGROUPS / "cgroup.controllers").exists() else CGROUPS / "memory") / f"hangar-{os.getpid()}"
    try:
        made.mkdir()
    except OSError:
        return False
    try:
        return any((made / name).exists() for name in ("memory.max", "memory.limit_in_bytes"))
    finally:
        made.rmdir()


def has_landlock() -> bool:
    try:
        return "landlock" in pathlib.Path("/sys/kernel/security/lsm").read_text()
    except OSError:
        return True  # securityfs is not mounted: unknown.


def has_address() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as prober:
        try:
            prober.connect(("192.0.2.1", 9))  # Sends nothing.
        except OSError:
            return False
        return True


def chromium_needed() -> int:
    return int(re.search(r"^playwright-core .* Chromium, (\d+) or newer", (ROOT / "dev/npm-packages.txt").read_text(), re.MULTILINE)[1])


def has_chromium() -> bool:
    program = shutil.which("chromium")
    if program is None:
        return False
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"\bChromium (\d+)\.", said.stdout)
    return version is not None and int(version[1]) >= chromium_needed()


NEEDS = [
    Need(may_install, "root, or sudo without a password", "none if all packages of dev/packages.txt are installed, otherwise all: dev/setup.sh installs them"),
    Need(is_root, "root", "tests/tenants, and single tests of tests/e2e: test_edge, test_operator_faults, test_recorder"),
    Need(has_mounts, "mounts of a process's own (by root, user namespaces, or sudo without a password)",
         "tests/tenants, and of tests/e2e: test_confined, test_name_servers, test_node_installer, test_operator_faults, test_outbound, test_recorder"),
    Need(has_port_53, "port 53 on loopback", "tests/tenants, tests/e2e/test_name_servers.py"),
    Need(has_cgroups, "cgroups that can be made and limit memory", "tests/tenants (run without limits of memory), make test-node, tests/edge of make test-long"),
    Need(has_landlock, "Landlock in the kernel", "unit.sandbox (Landlock.*)"),
    Need(has_address, "an address other than loopback", "tests/e2e/test_operator_failover.py"),
    Need(has_chromium, f"Chromium {chromium_needed()} or newer (dev/setup.sh --tests installs Debian's)", "tests/e2e/test_console.py"),
]


def lacks(needs: list[Need]) -> list[str]:
    return [f"this machine lacks {need.what}\n  for: {need.tests}" for need in needs if not need.is_met()]


def main() -> None:
    print("\n".join(lacks(NEEDS)) or "this machine has all that the tests need")


if __name__ == "__main__":
    main()
