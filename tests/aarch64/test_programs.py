"""The programs themselves, on this machine under qemu-user."""
import subprocess

import pytest

from conftest import PROGRAMS


@pytest.mark.parametrize("file", PROGRAMS.values(), ids=lambda file: file.name)
def test_it_is_for_aarch64_and_needs_no_shared_library(file):
    command = ["readelf", "--wide", "--file-header", "--program-headers", "--dynamic", file]
    headers = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "AArch64" in headers
    assert "INTERP" not in headers and "(NEEDED)" not in headers
    # Its addresses are random all the same.
    assert "PIE" in headers and "DYN (" in headers


def test_it_runs():
    done = subprocess.run(["qemu-aarch64-static", PROGRAMS["bin/hangar"], "--version"], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.startswith("hangar ")
