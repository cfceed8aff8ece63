"""The operator of examples/memo, its main unchanged: a module of `hangar build go` that keeps each Memo's text in a ConfigMap."""
import contextlib
import os
import subprocess

import pytest

from airways import GUESTS
from cluster import ROOT, eventually
from conftest import COMPILED
from host import BINARY
from operators import EVERYTHING, OPERATOR, manifest, phase

MEMO = ("examples.hangar.dev/v1", "Memo")
CONFIG_MAP = ("v1", "ConfigMap")
SOURCE = ROOT / "examples/memo"

SPEC = {"wasm": "memo", "env": [{"name": "WATCH_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "limits": {"memory": "256Mi"}}


def build(*arguments, directory=ROOT, env=None):
    """Runs `hangar build go`."""
    return subprocess.run([str(BINARY), "build", "go", *map(str, arguments)], cwd=directory, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})


def build_guest(source, name):
    """Builds a program as one of the guests; returns the build's output. Tests of other processes may use the guest."""
    directory = GUESTS / f".building-{os.getpid()}"
    directory.mkdir(exist_ok=True)
    module = directory / f"{name}.wasm"
    done = build(source, "-o", module)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"file://{module}\n"
    os.replace(module, GUESTS / module.name)
    directory.rmdir()
    return done.stderr


def build_native(directory, package, program):
    """The same source as a program for a container."""
    subprocess.run(["go", "build", "-o", str(program), package], cwd=directory, check=True)
    return program


@contextlib.contextmanager
def as_process(program, *arguments, cluster, namespace, log):
    """The program runs beside the cluster, and watches the namespace."""
    with open(log, "wb") as output:
        process = subprocess.Popen([str(program), *arguments], stdout=output, stderr=output,
                                   env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "WATCH_NAMESPACE": namespace})
    try:
        yield
    finally:
        process.kill()
        process.wait()


def tree(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def built():
    """The build's output; the module is then among the other guests."""
    before = tree(SOURCE)
    said = build_guest(SOURCE / "cmd", "memo")
    assert tree(SOURCE) == before, "the build wrote into the project"
    return said


def give_rights(cluster, namespace):
    cluster.apply_crds(SOURCE / "config/crd/memos.yaml")
    cluster.learn(*MEMO, "memos")
    prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    cluster.request("POST", f"{prefix}/roles", {"metadata": {"name": "memo"}, "rules": [
        {"apiGroups": ["examples.hangar.dev"], "resources": ["memos", "memos/status", "memos/finalizers"], "verbs": list(EVERYTHING)},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(EVERYTHING)},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]})
    cluster.request("POST", f"{prefix}/rolebindings", {
        "metadata": {"name": "memo"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "memo"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]})


def run(cluster, namespace, **sleep):
    """Starts the operator."""
    give_rights(cluster, namespace)
    cluster.create(manifest("memo", namespace, sleep=sleep, **SPEC))


def make(cluster, namespace, name, text, **spec):
    return cluster.create({"apiVersion": MEMO[0], "kind": MEMO[1], "metadata": {"name": name, "namespace": namespace},
                           "spec": {"text": text, **spec}})


def text_of(cluster, namespace, name):
    kept = cluster.get(*CONFIG_MAP, name, namespace)
    return kept and kept["data"]["text"]


def asleep(cluster, namespace, seconds=60):
    return eventually(lambda: (lambda o: o if phase(o) == "Asleep" else None)(cluster.get(*OPERATOR, "memo", namespace)),
                      "the operator sleeps", seconds)


def resumes(host, namespace, name="memo"):
    """How many turns have begun with a resume."""
    return sum(value for key, value in host.metrics().items()
               if key.startswith("hangar_controller_resumes_total") and f'controller="{namespace}/{name}"' in key)
