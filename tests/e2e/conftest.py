"""One control plane for the whole run; a host and a namespace for each test that asks for them.

Under pytest-xdist (-n 3 --dist loadgroup) each process has its own of all that.
"""
import itertools
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

import host as host_module  # noqa: E402
import operators  # noqa: E402
from cluster import ROOT, ApiError, Cluster, eventually, is_ready, when_compiled  # noqa: E402
from host import Host, to_its_end  # noqa: E402
from webhooks import Authority  # noqa: E402

_names = itertools.count(1)

# Seconds within which a module of up to 70 MB is surely compiled, also while builds have both cores.
COMPILED = 600


# Those that need the programs of an older version (tests/downgrade/run.sh), programs with another engine (tests/engine/run.sh),
# or eleven minutes (tests/quiet/run.sh).
collect_ignore = [test for variable, test in (("HANGAR_OLDER_BIN_DIR", "test_downgrade.py"), ("HANGAR_OTHER_BIN_DIR", "test_other_engine.py"),
                                              ("HANGAR_QUIET_MINUTES", "test_go_quiet.py"))
                  if variable not in os.environ]

# The slowest ones begin first.
LONGEST = ("test_operator_faults", "test_faults", "killed", "test_airway_answers", "test_workflow_faults", "test_examples")
# Expensive to set up, though all tests may use the fixture: modules of 16 MB are compiled.
TOGETHER = ("test_examples",)


def group_of(item):
    """One process of pytest-xdist runs all tests that share an expensive setup."""
    marked = item.get_closest_marker("xdist_group")
    if marked:
        return marked.args[0]
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    is_sharing = any(fixture.scope == "module" for definitions in fixtures for fixture in definitions)
    return item.path.stem if is_sharing or item.path.stem in TOGETHER else None


@pytest.hookimpl(tryfirst=True)  # Before pytest-xdist reads the marks.
def pytest_collection_modifyitems(items):
    for item in items:
        if group := group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))

    def rank(item):
        group = group_of(item)
        return (LONGEST.index(group) if group in LONGEST else len(LONGEST), group is None)
    items.sort(key=rank)


def control_plane(*options):
    # Retried: another process may take a port between the check and its use.
    for attempt in (1, 2):
        try:
            cluster = Cluster(*options)
            break
        except subprocess.CalledProcessError as error:
            if error.returncode != 77 and attempt == 1:
                continue
            if error.returncode != 77 or os.environ.get("CI") == "true":
                raise
            pytest.skip("the control plane's programs are not built: run make deps")
    cluster.apply_crds(ROOT / "deploy/crds")
    eventually(lambda: serves(cluster, "/apis/yoke.cd/v1alpha1/airways"), "the API server serves Airways")
    return cluster


def serves(cluster, path):
    """A CRD is established a moment before it is served."""
    try:
        return cluster.request("GET", path)
    except ApiError:
        return None


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory):
    run = tmp_path_factory.getbasetemp()
    host_module.compiled = (run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "compiled"


@pytest.fixture(scope="session")
def cluster():
    made = control_plane("--with-kcm", "--with-scheduler", "--with-kwok=1", "--with-proxy", "--with-registry")
    yield made
    made.close()


@pytest.fixture(scope="module")
def own_cluster():
    """A control plane for the tests of one file only: no other host is on it."""
    made = control_plane("--with-kcm")
    yield made
    made.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Signs certificates of clients that call webhooks."""
    return Authority(tmp_path_factory.mktemp("clients"), "clients")


@pytest.fixture(scope="module")
def showing_cluster(authority):
    """As own_cluster; its API server shows webhooks a certificate of the authority, so that a host evaluates a flight before it is accepted."""
    made = control_plane("--with-kcm", authority.api_server_shows("kube-apiserver"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_host(cluster, tmp_path_factory):
    """One host for all tests that do it no harm."""
    yield from to_its_end(Host(cluster.kubeconfig, tmp_path_factory.mktemp("host"), env={"HANGAR_POD": "/".join(operators.HOST_POD)}))


@pytest.fixture
def host(shared_host):
    """The shared host, alive before and after."""
    assert shared_host.process.poll() is None, f"the host is gone:\n{shared_host.tail()}"
    shared_host.share_compiled()
    yield shared_host
    shared_host.share_compiled()
    assert shared_host.process.poll() is None, f"this test ended the host:\n{shared_host.tail()}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows its hosts' logs."""
    report = (yield).get_result()
    if report.failed:
        own = item.funcargs.get("tmp_path")
        for host in (one for one in host_module.hosts if one in list(item.funcargs.values()) or own in one.directory.parents):
            report.sections.append((f"log of {host.directory.name}", host.report()))


@pytest.fixture
def unique():
    """A word that no other test of this run uses: for kinds, groups and names."""
    return f"t{next(_names)}"


def namespace_in(cluster, name):
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.delete("v1", "Namespace", name)


@pytest.fixture
def namespace(cluster, unique):
    yield from namespace_in(cluster, f"ns-{unique}")


@pytest.fixture
def own_namespace(own_cluster, unique):
    yield from namespace_in(own_cluster, f"ns-{unique}")


def end_instances(cluster, template):
    """Deletes all instances of a kind and waits a while: when a CRD is deleted with instances, the API server looks at them
    again only after five seconds."""
    path = f"/apis/{template['group']}/{next((one['name'] for one in template.get('versions', [])), None)}/{template['names']['plural']}"

    def are_gone():
        try:
            listed = cluster.request("GET", path)["items"]
        except ApiError:
            return True
        for one in listed:
            if "deletionTimestamp" not in one["metadata"]:
                cluster.delete(one["apiVersion"], one["kind"], one["metadata"]["name"], one["metadata"].get("namespace"))
        return not listed

    try:
        eventually(are_gone, "the instances are gone", 5)
    except AssertionError:
        pass  # They go with the Airway then, and the next lines assert that.


@pytest.fixture
def airway(cluster):
    """Applies an Airway, waits for its kind, and removes it at the end of the test."""
    made = []
    templates = []

    def apply(manifest, ready=True):
        when_compiled(lambda: cluster.apply(manifest))
        made.append(manifest["metadata"]["name"])
        template = manifest["spec"]["template"]
        templates.append(template)
        names = template.get("names", {})
        for version in template.get("versions", []):
            cluster.learn(f"{template['group']}/{version['name']}", names.get("kind"), names.get("plural"),
                          template.get("scope") == "Namespaced")
        if ready:
            eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", made[-1])),
                       f"airway {made[-1]} becomes ready", COMPILED)
        return manifest

    yield apply
    for template in templates:
        end_instances(cluster, template)
    for name in made:
        cluster.delete("yoke.cd/v1alpha1", "Airway", name)
    for name in made:
        eventually(lambda name=name: cluster.get("yoke.cd/v1alpha1", "Airway", name) is None,
                   f"airway {name} is deleted", 60)


@pytest.fixture
def operator(cluster, host, namespace):
    """Creates an Operator and removes it at the end; keyword arguments are its spec."""
    made = []

    def make(name, *steps, **spec):
        made.append(name)
        return cluster.create(operators.manifest(name, namespace, *steps, **spec))

    yield make
    for name in made:
        cluster.delete(*operators.OPERATOR, name, namespace)


@pytest.fixture
def ring(cluster, unique):
    """N namespaces, each with a TestResource of nonce 0."""
    crd = ROOT / "examples/ring/testresources.yaml"
    cluster.apply_crds(crd)
    cluster.learn(*operators.TEST_RESOURCES, "testresources")
    made = []

    def make(count, *names):
        for index in range(count):
            namespace = f"{unique}-{index}"
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            made.append(namespace)
            eventually(lambda: serves(cluster, cluster.path(*operators.TEST_RESOURCES, namespace)), "the kind is served")
            for name in names or ("run",):
                operators.create_ring_object(cluster, namespace, name)
        return list(made)

    yield make
    for namespace in made:
        cluster.delete("v1", "Namespace", namespace)


@pytest.fixture
def wat(tmp_path):
    """Builds one of tests/guests/*.wat: guests with one fault each."""
    def build(name):
        out = tmp_path / f"{name}.wasm"
        subprocess.run(["wat2wasm", str(ROOT / f"tests/guests/{name}.wat"), "-o", str(out)], check=True)
        return str(out)
    return build
