"""A real node of the local control plane, and images for it."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from cluster import KINDS, ROOT
from registry import MANIFEST, Registry

SCRIPT = str(ROOT / "dev/node.sh")
# This machine, as the node and its pods reach it; and the control plane's registry there.
ADDRESS = "10.97.0.1"
REGISTRY = f"{ADDRESS}:5000"
NAME = "hangar-node"

KINDS.setdefault(("v1", "Node"), ("/api/v1", "nodes", False))


class Node:
    """Kubelet and containerd, attached to a Cluster."""

    def __init__(self, cluster, containerd):
        self.cluster, self.containerd = cluster, containerd
        subprocess.run([SCRIPT, "up", "--dir", cluster.dir, f"--containerd={containerd}"], check=True, stdout=sys.stderr)

    def close(self):
        subprocess.run([SCRIPT, "down", "--dir", self.cluster.dir], check=True)

    def run(self, *command):
        """The output of a command in the node's namespaces."""
        return subprocess.run([SCRIPT, "exec", "--dir", self.cluster.dir, "--", *command], check=True, stdout=subprocess.PIPE, text=True).stdout

    def files(self):
        """Everything that an installer could have changed: a line for each file with its mode, owner, link and SHA-256."""
        return self.run("sh", "-c", """
            roots="/etc /opt /usr/bin /usr/sbin /usr/local /var/lib/rancher /var/lib/hangar /lib/systemd"
            find $roots -xdev \\( -type f -o -type l -o -type d \\) -printf '%p %y %m %U:%G %l\\n' 2>/dev/null | LC_ALL=C sort
            find /etc /opt /usr/local -xdev -type f -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 sha256sum""").splitlines()

    def load(self, archive):
        """Imports an image archive into the node's containerd."""
        subprocess.run([SCRIPT, "load", "--dir", self.cluster.dir, str(archive)], check=True, stdout=sys.stderr)

    def read(self, path):
        return self.run("cat", path)


def image(reference, directory, entrypoint, out):
    """An image with one layer: the directory."""
    subprocess.run([SCRIPT, "image", reference, str(directory), json.dumps(entrypoint), str(out)], check=True)


def build_image(what, out, name, *options):
    """An image of deploy/images, as build.py makes it; with HANGAR_IMAGES=buildah as a container engine makes it from
    the Containerfile."""
    build = [str(ROOT / "deploy/images/build.py")]
    options = [f"--bin={os.environ.get('HANGAR_BIN_DIR', ROOT / 'build/bin')}", *options]
    if os.environ.get("HANGAR_IMAGES") != "buildah":
        subprocess.run([*build, what, str(out), f"--name={name}", *options], check=True, stdout=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as directory:
        # With storage of its own, and without a network.
        buildah = ["unshare", "--net", "buildah", f"--root={directory}/storage", f"--runroot={directory}/run", "--storage-driver=vfs"]
        subprocess.run([*build, "root", what, f"{directory}/tree", *options], check=True, stdout=sys.stderr)
        subprocess.run([*buildah, "build", "--isolation=chroot", f"--tag={name}",
                        f"--file={ROOT}/deploy/images/{what}.Containerfile", f"{directory}/tree"], check=True, stdout=sys.stderr)
        subprocess.run([*buildah, "push", name, f"oci-archive:{out}:{name}"], check=True, stdout=sys.stderr)


class NodeRegistry(Registry):
    """The control plane's registry, which accepts image archives too."""

    def push_archive(self, repository, tag, archive):
        """Pushes an OCI archive; returns the reference by which the node pulls it."""
        with tarfile.open(archive) as tar:
            def blob(digest):
                return tar.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}").read()
            index = json.load(tar.extractfile("index.json"))
            text = blob(index["manifests"][0]["digest"])
            manifest = json.loads(text)
            for part in [manifest["config"], *manifest["layers"]]:
                assert self._push_blob(repository, blob(part["digest"]))["digest"] == part["digest"]
        self._request("PUT", f"/v2/{repository}/manifests/{tag}", text, MANIFEST)
        return f"{REGISTRY}/{repository}:{tag}"

    def pull_secret(self, name, namespace):
        """A Secret with the registry's credentials."""
        login = {"auths": {REGISTRY: {"username": self.user, "password": self.password}}}
        return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
                "metadata": {"name": name, "namespace": namespace}, "stringData": {".dockerconfigjson": json.dumps(login)}}
