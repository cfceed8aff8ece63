"""The package, a control plane, and one bare Debian 12 for the whole run. Needs root."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from airways import GUESTS  # noqa: E402
from cluster import ROOT, Cluster  # noqa: E402
from host import BINARY  # noqa: E402
from machine import Machine, run  # noqa: E402


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """As `make deb` builds it."""
    command = [ROOT / "deploy/deb/build.py", tmp_path_factory.mktemp("deb"), "--bin", BINARY.parent, "--guests", GUESTS]
    return pathlib.Path(subprocess.run([sys.executable, *map(str, command)], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


@pytest.fixture(scope="session")
def machine(package, tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("debootstrap and systemd-nspawn need root")
    made = Machine(tmp_path_factory.mktemp("machine"))
    (made.root / "root/hangar.deb").write_bytes(package.read_bytes())
    yield made
    made.close()
    run("rm", "-rf", "--one-file-system", made.root)


@pytest.fixture(scope="session")
def cluster():
    made = Cluster("--with-kcm", "--with-scheduler", "--with-kwok=1")
    yield made
    made.close()
