"""A stage and a victim for the whole run, an attacker for each test. Needs root: the host gets a name server of its own, on port 53."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from stage import Stage  # noqa: E402
from tenant import Tenant  # noqa: E402
from victim import Victim  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="only what takes longer than make test may")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes longer than make test may; for make test-long")


def pytest_collection_modifyitems(config, items):
    wanted = config.getoption("--long")
    left_out = [item for item in items if (item.get_closest_marker("long") is not None) != wanted]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def whole_stage(tmp_path_factory):
    try:
        made = Stage(tmp_path_factory.mktemp("stage"))
    except subprocess.CalledProcessError as error:
        if error.returncode != 77 or os.environ.get("CI") == "true":
            raise
        pytest.skip("the control plane's programs are not built: run make deps")
    except PermissionError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("port 53 is for root: run sudo make test-tenants")
    try:
        made.victim = Victim(made)
        yield made
        assert not made.is_alive() or made.stop() == 0, f"the host did not end cleanly:\n{made.host.tail()}"
    finally:
        made.close()


@pytest.fixture
def stage(whole_stage, request):
    """The stage with a healthy host: one that an earlier attack has harmed is replaced."""
    if getattr(whole_stage, "is_harmed", False) or not whole_stage.is_alive():
        whole_stage.renew()
        whole_stage.victim.settle()
    whole_stage.is_harmed = True
    yield whole_stage
    whole_stage.is_harmed = getattr(request.node, "has_failed", True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.when == "call":
        item.has_failed = report.failed
    if report.failed and (stage := item.funcargs.get("stage")):
        report.sections.append(("log of the host", stage.host.tail()))


@pytest.fixture
def victim(stage):
    return stage.victim


@pytest.fixture
def attacker(stage, victim, request):
    name = "attacker-" + request.node.callspec.params["way"].name.replace("_", "-")[:40]
    made = Tenant(stage, victim, name)
    yield made
    made.leaves()
