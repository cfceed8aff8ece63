"""A host that is replaced in place by one with another engine (SIGUSR2): what sleeps does not depend on the engine.

`tests/engine/run.sh` runs this; HANGAR_OTHER_BIN_DIR names programs whose engine has other settings: native code of one is refused by the
other.
"""
import os
import pathlib
import shutil

import pytest

from cluster import eventually
from host import BINARY, Host, to_its_end
from operators import create_config_map
from test_go_operators import make, replicas_of, website  # noqa: F401 (a fixture)
from test_reexec import asleep, cluster, heard, lists, operator, replace, results, watchers  # noqa: F401 (fixtures)

OTHER = pathlib.Path(os.environ["HANGAR_OTHER_BIN_DIR"])
PROGRAMS = ("hangar", "hangar-compile", "hangar-guest")


def install(source, target):
    """As a package manager does it: programs that run keep their files."""
    target.mkdir(exist_ok=True)
    for program in PROGRAMS:
        new = shutil.copy2(source / program, target / f"{program}.new")
        os.replace(new, target / program)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("installed")
    install(BINARY.parent, directory)
    return directory


@pytest.fixture(scope="module")
def host(own_cluster, tmp_path_factory, installed):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path_factory.mktemp("host"), "--features=operators", "--leader-elect",
                               program=installed / "hangar", shares_code=False))


def engines(host):
    """Those that code in the cache was made for."""
    return {entry.name.split("-")[1] for entry in (host.directory / "cache/code").glob("*.cwasm")}


def test_sleepers_outlive_their_engine(cluster, host, installed, namespace, watchers, website):  # noqa: F811
    watchers("watcher")
    make(cluster, namespace, "shop")
    eventually(lambda: replicas_of(cluster, namespace, "shop") == 2, "the deployment is there", 300)
    asleep(cluster, "website", namespace)
    assert len(engines(host)) == 1

    for turn, programs in enumerate((OTHER, BINARY.parent)):
        install(programs, installed)

        def change(turn=turn):
            create_config_map(cluster, f"made-{turn}", namespace)
            make(cluster, namespace, f"blog-{turn}", replicas=3)
        replace(host, change)

        eventually(lambda turn=turn: heard(host, "watcher", namespace, f"changed made-{turn}") == 1, "the watcher goes on", 300)
        eventually(lambda turn=turn: replicas_of(cluster, namespace, f"blog-{turn}") == 3, "the controller goes on", 600)
        assert results(host) == {"taken_over": 2, "started_anew": 0}
        assert len(engines(host)) == 2
        assert lists(host, "watcher", namespace) == 1
        for name in ("watcher", "website"):
            asleep(cluster, name, namespace)
