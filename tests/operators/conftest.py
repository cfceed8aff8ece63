"""For each operator: a control plane with simulated nodes, a host that serves webhooks, and a namespace for its objects."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

# Seconds within which a module of some 90 MB is surely compiled. memos.py asks its conftest for it.
COMPILED = 900

from cluster import ROOT, Cluster  # noqa: E402
from host import Host, free_port, to_its_end  # noqa: E402
from published import WORK  # noqa: E402
from webhooks import webhook_flags  # noqa: E402

HOST = "hangar"


@pytest.fixture(scope="module")
def cluster():
    made = Cluster("--with-kcm", "--with-scheduler", "--with-kwok=3")
    try:
        made.apply_crds(ROOT / "deploy/crds")
        for name in (HOST, WORK):
            made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def host(cluster, tmp_path_factory):
    flags = webhook_flags(free_port(), HOST, features="operators")
    yield from to_its_end(Host(cluster.kubeconfig, tmp_path_factory.mktemp("host"), *flags))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows the log of its host."""
    report = (yield).get_result()
    if report.failed and (host := item.funcargs.get("host")):
        report.sections.append(("log of the host", host.report()))
