"""Operators as manifests, their output, and the ring: a nonce that goes from namespace to namespace."""
import pathlib
import shutil
import subprocess

from airways import flight
from cluster import eventually
from host import BINARY, free_port, wait_until_free

OPERATOR = ("hangar.dev/v1alpha1", "Operator")
TEST_RESOURCES = ("amurant.io/v1", "TestResource")
# The guest's arguments are its steps; its source lists them.
BEHAVE = "operator_behave"
RING = "ring"

# The shared host's own pod by its settings. It does not exist unless a test creates it.
HOST_POD = ("default", "hangar-0")

EVERYTHING = ("get", "list", "watch", "create", "update", "patch", "delete")


def manifest(name, namespace, *steps, wasm=BEHAVE, **spec):
    """An Operator; keyword arguments are its spec."""
    return {"apiVersion": OPERATOR[0], "kind": OPERATOR[1], "metadata": {"name": name, "namespace": namespace},
            "spec": {"module": {"url": flight(wasm)}, "args": list(steps), **spec}}


def phase(one):
    return (one or {}).get("status", {}).get("phase")


def logs(host, name, namespace=None, *flags):
    command = [str(BINARY), "logs", name, f"--module-cache-dir={host.directory / 'cache'}", *flags]
    if namespace:
        command += ["-n", namespace]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    return done.stdout if done.returncode == 0 else ""


def lines(host, name, namespace):
    """The guest's output, without times and streams."""
    return [line.split(" ", 2)[2] for line in logs(host, name, namespace).splitlines()]


def events_of(cluster, name, namespace):
    listed = cluster.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return [event for event in listed if event["involvedObject"].get("name") == name]


def allow(cluster, namespace, *verbs, resources=("configmaps",), account="default"):
    """Gives a ServiceAccount rights in its namespace."""
    prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    name = f"{account}-{'-'.join(resources)}"
    cluster.request("POST", f"{prefix}/roles", {
        "metadata": {"name": name}, "rules": [{"apiGroups": ["", "amurant.io"], "resources": list(resources), "verbs": list(verbs)}]})
    cluster.request("POST", f"{prefix}/rolebindings", {
        "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]})


def create_config_map(cluster, name, namespace, **data):
    return cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
                           "data": data})


def create_ring_object(cluster, namespace, name="run", nonce=0):
    return cluster.create({"apiVersion": TEST_RESOURCES[0], "kind": TEST_RESOURCES[1],
                           "metadata": {"name": name, "namespace": namespace}, "spec": {"nonce": nonce}})


def nonce(cluster, namespace):
    return cluster.get(*TEST_RESOURCES, "run", namespace)["spec"]["nonce"]


def copier(cluster, source, target):
    """An Operator in `source` that may write in `target`."""
    allow(cluster, source, *EVERYTHING, resources=("testresources",))
    cluster.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{target}/roles", {
        "metadata": {"name": "written"}, "rules": [{"apiGroups": ["amurant.io"], "resources": ["testresources"], "verbs": list(EVERYTHING)}]})
    cluster.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{target}/rolebindings", {
        "metadata": {"name": "written"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "written"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": source}]})
    cluster.create(manifest("copier", source, wasm=RING, sleep={"after": "0s"}, env=[
        {"name": "IN_NAMESPACE", "value": source}, {"name": "OUT_NAMESPACE", "value": target}]))


def send_nonce(cluster, namespace, value, name="run"):
    cluster.patch(*TEST_RESOURCES, name, {"spec": {"nonce": value}}, namespace)


def send_round(cluster, namespaces, value, seconds=30):
    send_nonce(cluster, namespaces[0], value)
    for namespace in namespaces:
        eventually(lambda: nonce(cluster, namespace) == value, f"nonce {value} reaches {namespace}", seconds)


class Run:
    """`hangar run DIR` with the published configuration: a ring of operators."""

    def __init__(self, cluster, directory, namespaces, *flags):
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(pathlib.Path(flight(RING).removeprefix("file://")), directory / "ring.wasm")
        documents = []
        for index, namespace in enumerate(namespaces):
            following = namespaces[(index + 1) % len(namespaces)]
            documents.append(f"name: ring{index}\nwasm: ./ring.wasm\nenv:\n- {{name: IN_NAMESPACE, value: {namespace}}}\n"
                             f"- {{name: OUT_NAMESPACE, value: {following}}}\nargs: []\n")
        (directory / "wasm_config.yaml").write_text("---\n".join(documents))
        self.directory = directory
        self.port = free_port()
        self.command = [str(BINARY), "run", str(directory), f"--kubeconfig={cluster.kubeconfig}", *flags,
                        f"--module-cache-dir={directory / 'cache'}", f"--bind-address=127.0.0.1:{self.port}"]
        self.log = directory / "run.log"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()
        wait_until_free(self.port)

    def stop(self):
        self.process.terminate()
        return self.process.wait(15)
