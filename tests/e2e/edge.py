"""What the tests of small machines have in a cluster: a host's token, and a namespace `garden` with an operator and a Flight."""
import base64
import gzip
import pathlib
import subprocess
import sys

import users
from airways import flight
from cluster import eventually, is_ready
from host import BINARY

NAMESPACE = "hangar-system"
GARDEN = "garden"


def kubeconfig_outside(cluster, path):
    """Writes a kubeconfig with the token that deploy/edge/outside.yaml asks for."""
    def secret():
        found = cluster.get("v1", "Secret", "hangar-outside", NAMESPACE)
        return found if "token" in found.get("data", {}) else None
    token = eventually(secret, "the Secret has a token")["data"]["token"]
    return users.kubeconfig_for(cluster, path, {"token": base64.b64decode(token).decode()})


def plant(cluster):
    """Creates the garden and allows hangar to act there, as docs/operating/edge.md says."""
    cluster.kubectl("create", "namespace", GARDEN)
    cluster.kubectl("create", "role", "makers", "--namespace", GARDEN, "--verb=get,list,watch,create,patch", "--resource=configmaps")
    cluster.kubectl("create", "rolebinding", "makers", "--namespace", GARDEN, "--role=makers", f"--serviceaccount={GARDEN}:default")
    # For the host: one watch for all operators.
    cluster.kubectl("create", "clusterrole", "hangar-watches", "--verb=list,watch", "--resource=configmaps")
    cluster.kubectl("create", "clusterrolebinding", "hangar-watches", "--clusterrole=hangar-watches", f"--serviceaccount={NAMESPACE}:hangar")
    subprocess.run([str(BINARY), "tenant", "allow", GARDEN, f"--kubeconfig={cluster.kubeconfig}"], check=True, stdout=subprocess.DEVNULL)
    for name, module in (("mirror", "label_mirror"), ("hello", "greeting_rust")):
        packed = gzip.compress(pathlib.Path(flight(module)).read_bytes())
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-module", "namespace": GARDEN},
                        "binaryData": {"module": base64.b64encode(packed).decode()}})
    cluster.create({"apiVersion": "hangar.dev/v1alpha1", "kind": "Operator", "metadata": {"name": "mirror", "namespace": GARDEN}, "spec": {
        "module": {"configMap": {"name": "mirror-module", "key": "module"}}, "env": [{"name": "NAMESPACE", "value": GARDEN}], "sleep": {"after": "0s"}}})
    about = {"apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "metadata": {"name": "hello", "namespace": GARDEN}}
    cluster.create({**about, "spec": {"wasmUrl": f"configmap://{GARDEN}/hello-module/module", "inputObject": {**about, "spec": {"text": "hi"}}}})


def grows(cluster):
    """Waits until the operator and the Flight have worked, and the operator sleeps."""
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source", "namespace": GARDEN, "labels": {"mirror-to": "copy"}},
                    "data": {"a": "b"}})
    eventually(lambda: cluster.get("v1", "ConfigMap", "copy", GARDEN), "the operator made the copy", 60)
    eventually(lambda: cluster.get("v1", "ConfigMap", "hello", GARDEN), "the Flight made its ConfigMap", 60)
    eventually(lambda: cluster.get("hangar.dev/v1alpha1", "Operator", "mirror", GARDEN)["status"].get("phase") == "Asleep", "the operator sleeps")
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Flight", "hello", GARDEN)), "the Flight is ready")


def landlock_version():
    """What the kernel answers a process without restrictions; 0: it has no Landlock."""
    asked = "import ctypes; print(max(0, ctypes.CDLL(None).syscall(444, 0, 0, 1)))"
    return int(subprocess.run([sys.executable, "-c", asked], stdout=subprocess.PIPE, text=True, check=True).stdout)
