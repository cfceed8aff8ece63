"""StatefulWorkflows as manifests: their modules, signals, and statuses."""
import base64
import gzip
import json
import subprocess

from airways import GUESTS
from cluster import KINDS, condition, eventually
from host import BINARY

WORKFLOW = ("workflows.example.com/v1", "StatefulWorkflow")
CONFIG_MAP = ("v1", "ConfigMap")
REVISION = ("apps/v1", "ControllerRevision")
PROVISIONER = "database_provisioner"
CONDUCTOR = "conductor"
ROLLOUT = "rollout"
# A machine with child machines, as users of both major versions of XState write it.
FAMILIES = ("family_v4", "family_v5")

KINDS.update({
    REVISION: ("/apis/apps/v1", "controllerrevisions", True),
    WORKFLOW: ("/apis/workflows.example.com/v1", "statefulworkflows", True),
    ("v1", "PersistentVolumeClaim"): ("/api/v1", "persistentvolumeclaims", True),
    ("v1", "PersistentVolume"): ("/api/v1", "persistentvolumes", False),
    ("rbac.authorization.k8s.io/v1", "Role"): ("/apis/rbac.authorization.k8s.io/v1", "roles", True),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
})

# The kinds that the machines of these tests create and change, as groups and resources.
MADE = (("", "configmaps"), ("", "persistentvolumeclaims"), ("apps", "deployments"), ("batch", "jobs"), ("", "events"),
        ("workflows.example.com", "statefulworkflows"))


def built(name):
    """A file that examples/build.sh made."""
    path = GUESTS / name
    assert path.exists(), f"{path} is missing: run make guests"
    return path


def bundle(name):
    return built(f"{name}.js").read_text()


def module(cluster, namespace, name, text=None, binary=None, key="machine.js", compress=False):
    """The ConfigMap with a module: a bundle's text, or bytes."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
    if compress:
        binary = gzip.compress(binary if binary is not None else text.encode())
    if binary is not None:
        manifest["binaryData"] = {key: base64.b64encode(binary).decode()}
    else:
        manifest["data"] = {key: text}
    return cluster.apply(manifest)


def workflow(name, namespace, config_map=None, **spec):
    """Keyword arguments are its spec."""
    if config_map:
        spec["moduleConfigMap"] = config_map
    return {"apiVersion": WORKFLOW[0], "kind": WORKFLOW[1], "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def allow(cluster, namespace, *made, account="default", verbs=("get", "list", "watch", "create", "patch", "update", "delete")):
    """Gives a ServiceAccount the rights for its machine's actions."""
    name = f"{account}-makes"
    cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": namespace},
                   "rules": [{"apiGroups": [group], "resources": [resource], "verbs": list(verbs)} for group, resource in made or MADE]})
    cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                   "metadata": {"name": name, "namespace": namespace},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                   "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]})


def signal(cluster, namespace, name, identity, event):
    """Sends one as people do: an annotation."""
    text = event if isinstance(event, str) else json.dumps(event)
    cluster.patch(*WORKFLOW, name, {"metadata": {"annotations": {f"signal.workflows.example.com/{identity}": text}}}, namespace)


def copies(cluster, namespace):
    """The names of the copies of modules that hangar keeps."""
    return [one["metadata"]["name"] for one in cluster.list(*REVISION, namespace) if one["metadata"].get("labels", {}).get("workflows.example.com/machine")]


def status(cluster, namespace, name):
    return (cluster.get(*WORKFLOW, name, namespace) or {}).get("status", {})


def state(one):
    """The machine's own state in a status."""
    return json.loads(one["state"]) if one.get("state") else {}


def actors(one):
    """The child machines of a workflow's machine, and their states."""
    return {actor["id"]: actor["value"] for actor in one.get("actors", [])}


def reaches(cluster, namespace, name, value, seconds=60):
    """The status, as soon as the machine is in that state and no action is under way."""
    def there():
        one = status(cluster, namespace, name)
        return one if one.get("value") == value and not one.get("outbox") and not one.get("inbox") else None
    return eventually(there, f"workflow {name} is {value}; it is {status(cluster, namespace, name)}", seconds)


def stalls(cluster, namespace, name, words="", seconds=60, reason=None):
    """The message of the condition Stalled, once it is True and contains that text, for that reason if one is given."""
    def there():
        seen = condition(cluster.get(*WORKFLOW, name, namespace), "Stalled")
        is_it = seen.get("status") == "True" and words.lower() in seen.get("message", "").lower() and reason in (None, seen["reason"])
        return seen.get("message") if is_it else None
    try:
        return eventually(there, f"workflow {name} is stalled and says {words!r}, reason {reason or 'any'}", seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}; its status: {json.dumps(status(cluster, namespace, name))[:2000]}") from None


def hangar(cluster, host, *arguments, **options):
    """The command line, as the cluster's admin; it shares its compiled code with the host."""
    cache = [] if arguments[:2] == ("workflow", "signal") else [f"--module-cache-dir={host.directory / 'cache'}"]
    return subprocess.run([str(BINARY), *arguments, f"--kubeconfig={cluster.kubeconfig}", *cache],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, **options)
