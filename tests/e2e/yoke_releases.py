"""Releases as yoke's own program writes them into a cluster, and reads them."""
import base64
import datetime
import gzip
import hashlib
import json
import os
import subprocess

from host import BINARY

KIND, RELEASE = "internal.yoke/kind", "internal.yoke/release"
NEVER = "0001-01-01T00:00:00Z"


def hangar(cluster, *arguments, stdin=None, kubeconfig=None, cwd=None):
    """The command with the cluster's kubeconfig. Without `stdin` it has no input."""
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run([str(BINARY), "-kubeconfig", str(kubeconfig or cluster.kubeconfig), *arguments], capture_output=True,
                          text=True, timeout=120, cwd=cwd, **given)


def go_json(value):
    """As Go's encoding/json marshals it."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def sha1(text):
    return hashlib.sha1(text.encode()).hexdigest()


def config_map(name, namespace=None, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "data": data}


def marked(resource, release, namespace, scope="Namespaced"):
    """yoke's form of a resource that a flight has printed."""
    resource = json.loads(json.dumps(resource))
    metadata = resource["metadata"]
    metadata.setdefault("labels", {})["app.kubernetes.io/managed-by"] = "yoke"
    metadata.setdefault("annotations", {}).update({"instance.atc.yoke.cd/release": release, "instance.atc.yoke.cd/namespace": namespace})
    if scope == "Namespaced":
        metadata.setdefault("namespace", namespace)
    return resource


def record(cluster, namespace, release, stages, created, active=None, url="file://main.wasm", sha="abc"):
    """One revision: times are seconds; None for active means the time of its creation."""
    def time(second):
        return (datetime.datetime(2026, 4, 8, 12, 0, 0) + datetime.timedelta(seconds=second)).isoformat() + "Z"
    data = gzip.compress(go_json(stages).encode())
    return cluster.create({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": f"yoke.{os.urandom(6).hex()}", "namespace": namespace, "labels": {KIND: "revision", RELEASE: sha1(release)},
                     "annotations": {"internal.yoke/created-at": time(created), "internal.yoke/active-at": NEVER if active == 0 else time(created if active is None else active),
                                     "internal.yoke/resources": str(sum(map(len, stages))), "internal.yoke/source-url": url,
                                     "internal.yoke/source-checksum": sha, "internal.yoke/release-name": release}},
        "data": {"resources": base64.b64encode(data).decode()}})


class Made:
    """A release of a namespace, made by yoke."""

    def __init__(self, cluster, namespace, name="web"):
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.count = 0

    def revision(self, *resources, apply=True, **options):
        """The next revision, of one stage; its resources are in the cluster."""
        self.count += 1
        stage = [marked(one, self.name, self.namespace, scope="Cluster" if one["kind"] in ("Namespace", "CustomResourceDefinition") else "Namespaced") for one in resources]
        for one in stage if apply else ():
            self.cluster.apply(one, "yoke")
        return record(self.cluster, self.namespace, self.name, [stage] if stage else [], self.count, **options)


def history(cluster, namespace, release):
    """Its revisions, oldest first: name, text of the resources, whether it is the active one."""
    secrets = sorted(cluster.list("v1", "Secret", namespace, f"{KIND}=revision,{RELEASE}={sha1(release)}"),
                     key=lambda one: one["metadata"]["annotations"]["internal.yoke/created-at"])
    actives = [one["metadata"]["annotations"]["internal.yoke/active-at"] for one in secrets]
    return [{"name": one["metadata"]["name"], "text": gzip.decompress(base64.b64decode(one["data"]["resources"])).decode(),
             "active": at == max(actives) and not at.startswith("0001"), "annotations": one["metadata"]["annotations"], "labels": one["metadata"]["labels"]}
            for one, at in zip(secrets, actives)]


def names(cluster, namespace):
    """The names of the ConfigMaps there, without the cluster's own."""
    return sorted(one["metadata"]["name"] for one in cluster.list("v1", "ConfigMap", namespace) if one["metadata"]["name"] != "kube-root-ca.crt")


def lock(cluster, namespace, release):
    """As `yoke takeoff -lock` does."""
    return cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": f"yoke.{sha1(release)}", "namespace": namespace, "labels": {KIND: "lock", RELEASE: release}}})
