"""A control plane on this machine, and a board that runs a host for it."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from airways import GUESTS  # noqa: E402
from board import API_SERVER, PORT, Board  # noqa: E402
from cluster import ROOT, Cluster  # noqa: E402
from host import free_port  # noqa: E402

PROGRAMS = {f"bin/{name}": pathlib.Path(os.environ["HANGAR_BIN_DIR"], name) for name in ("hangar", "hangar-guest", "hangar-compile")}
# In Rust: an emulated processor compiles them in seconds, and a Go program in minutes.
MODULES = ("greeting_rust.wasm", "operator_behave.wasm")


@pytest.fixture(scope="session")
def sysroot():
    made = subprocess.run([ROOT / "dev/sysroot.sh"], env={**os.environ, "HANGAR_ARCH": "aarch64"}, check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(made.stdout.strip())


@pytest.fixture(scope="session")
def cluster():
    made = Cluster("--with-kcm")
    made.apply_crds(ROOT / "deploy/crds")
    yield made
    made.close()


@pytest.fixture(scope="session")
def board(cluster, sysroot, tmp_path_factory):
    kubeconfig = cluster.kubectl("config", "view", "--raw", "--flatten").replace("https://127.0.0.1:", f"https://{API_SERVER}:")
    command = f"hangar host --kubeconfig=/kubeconfig --module-cache-dir=/tmp/cache --bind-address=0.0.0.0:{PORT} --log-level=debug --allow-file-modules"
    made = Board(sysroot / "board", tmp_path_factory.mktemp("board"), command, free_port(), PROGRAMS,
                 files=[("/kubeconfig", kubeconfig.encode()), *(GUESTS / name for name in MODULES)])
    yield made
    made.close()
    print(made.text()[-20000:])
