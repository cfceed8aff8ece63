"""One control plane for the whole run; a host and a namespace where a test asks for them."""
import itertools
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from cluster import ROOT, ApiError, Cluster, eventually, is_ready  # noqa: E402
from host import Host  # noqa: E402

_names = itertools.count(1)

# Seconds until a module of 16 MB is surely compiled, on two busy cores.
COMPILED = 120


def control_plane(*options):
    try:
        cluster = Cluster(*options)
    except subprocess.CalledProcessError as error:
        if error.returncode != 77 or os.environ.get("CI") == "true":
            raise
        pytest.skip("the control plane's programs are not built: run make deps")
    for manifest in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        cluster.kubectl("apply", "--server-side", "-f", str(manifest))
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(manifest))
    eventually(lambda: serves(cluster, "/apis/yoke.cd/v1alpha1/airways"), "the API server serves Airways")
    return cluster


def serves(cluster, path):
    """A CRD is established a moment before it is served."""
    try:
        return cluster.request("GET", path)
    except ApiError:
        return None


@pytest.fixture(scope="session")
def cluster():
    made = control_plane("--with-kcm", "--with-scheduler", "--with-kwok=1", "--with-proxy", "--with-registry")
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_host(cluster, tmp_path_factory):
    """One host for the tests that do it no harm."""
    host = Host(cluster.kubeconfig, tmp_path_factory.mktemp("host"))
    yield host
    assert host.stop() == 0, f"the host did not end cleanly:\n{host.tail()}"


@pytest.fixture
def host(shared_host):
    """The shared host, alive before and after."""
    assert shared_host.process.poll() is None, f"the host is gone:\n{shared_host.tail()}"
    yield shared_host
    assert shared_host.process.poll() is None, f"this test ended the host:\n{shared_host.tail()}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows what its hosts had to say."""
    report = (yield).get_result()
    if report.failed:
        for host in (one for one in item.funcargs.values() if isinstance(one, Host)):
            report.sections.append((f"log of {host.directory.name}", host.tail()))


@pytest.fixture
def unique():
    """A word that no other test of this run uses: for kinds, groups and names."""
    return f"t{next(_names)}"


@pytest.fixture
def namespace(cluster, unique):
    name = f"ns-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.delete("v1", "Namespace", name)


@pytest.fixture
def airway(cluster):
    """Applies an Airway, waits for its kind, and removes it at the end of the test."""
    made = []

    def apply(manifest, ready=True):
        cluster.apply(manifest)
        made.append(manifest["metadata"]["name"])
        template = manifest["spec"]["template"]
        names = template.get("names", {})
        for version in template.get("versions", []):
            cluster.learn(f"{template['group']}/{version['name']}", names.get("kind"), names.get("plural"),
                          template.get("scope") == "Namespaced")
        if ready:
            eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", made[-1])),
                       f"airway {made[-1]} becomes ready", COMPILED)
        return manifest

    yield apply
    for name in made:
        cluster.delete("yoke.cd/v1alpha1", "Airway", name)
    for name in made:
        eventually(lambda name=name: cluster.get("yoke.cd/v1alpha1", "Airway", name) is None,
                   f"airway {name} is deleted", 60)
