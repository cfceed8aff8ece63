"""A Go operator of another project: its program from the module proxy, its manifests from the module, run in hangar and as a process."""
import json
import os
import pathlib
import subprocess

import yaml

from cluster import eventually
from conftest import COMPILED
from memos import build
from operators import OPERATOR
from users import with_token

# The namespace of the objects that the operators work on.
WORK = "work"

# Of the manifests. An Operator takes the place of the Deployment; the Services and the Secret for its certificate are not needed.
LEFT_OUT = ("Deployment", "Service", "Secret")


class Published:
    """A program, built as a guest. The constructor installs what one kustomization of its module consists of."""

    def __init__(self, cluster, module, version, kustomization, directory):
        self.cluster, self.directory = cluster, directory
        program = f"{module}@{version}"
        downloaded = subprocess.run(["go", "mod", "download", "-json", program], cwd=directory, check=True, stdout=subprocess.PIPE)
        self._sources = pathlib.Path(json.loads(downloaded.stdout)["Dir"])

        self.guest = directory / "guest.wasm"
        done = build(program, "-o", self.guest)
        assert done.returncode == 0, done.stderr
        self.said = done.stderr

        objects = [one for one in yaml.safe_load_all(cluster.kubectl("kustomize", str(self._sources / kustomization))) if one]
        deployment, = (one for one in objects if one["kind"] == "Deployment")
        self.namespace = deployment["metadata"]["namespace"]
        pod = deployment["spec"]["template"]["spec"]
        self.account, self.container = pod["serviceAccountName"], pod["containers"][0]
        installed = directory / "installed.json"
        installed.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [one for one in objects if one["kind"] not in LEFT_OUT]}))
        cluster.apply_crds(installed)

    def build_native(self):
        """The program for a container, from the same files."""
        program = self.directory / "native"
        subprocess.run(["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(program), "."], cwd=self._sources, check=True)
        return program


class InHangar:
    """The program as an Operator. Keyword arguments are fields of its spec, instead of the Deployment's."""

    def __init__(self, published, host, **spec):
        self._cluster, self._host, self._namespace, self._name = published.cluster, host, published.namespace, "published"
        self._resumes = None
        self._cluster.create({"apiVersion": OPERATOR[0], "kind": OPERATOR[1], "metadata": {"name": self._name, "namespace": self._namespace}, "spec": {
            "module": {"url": f"file://{published.guest}"}, "args": published.container.get("args", []), "env": published.container.get("env", []),
            "serviceAccountName": published.account, "limits": {"memory": "512Mi"}, "sleep": {"after": "200ms"}, **spec}})

    def __enter__(self):
        self.rest()
        return self

    def __exit__(self, *_):
        self._cluster.delete(*OPERATOR, self._name, self._namespace)
        eventually(lambda: self._cluster.get(*OPERATOR, self._name, self._namespace) is None, "the Operator is gone", 60)

    def status(self):
        return self._cluster.get(*OPERATOR, self._name, self._namespace)["status"]

    def _figure(self, name):
        """From the host's metrics, which are exact; the status is some seconds late."""
        label = f'controller="{self._namespace}/{self._name}"'
        return sum(value for key, value in self._host.metrics().items() if key.startswith(f"{name}{{") and label in key)

    def rest(self):
        """Waits until it sleeps on disk."""
        eventually(lambda: self._figure("hangar_controller_suspends_total") > 0 and self._figure("hangar_controller_resident_bytes") == 0,
                   "it sleeps", COMPILED)
        self._resumes = self._figure("hangar_controller_resumes_total")

    def was_woken(self):
        """Since its last rest."""
        assert self._figure("hangar_controller_resumes_total") > self._resumes

    def interrupt(self, act):
        """Acts while the host is dead."""
        self._host.kill()
        act()
        self._host.start()


class AsProcess:
    """The program as a process beside the cluster, with the token of its ServiceAccount."""

    def __init__(self, published, *arguments):
        kubeconfig = with_token(published.cluster, published.directory, published.account, published.namespace)
        self._command = [str(published.build_native()), *arguments]
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        self.log = published.directory / "process.log"
        self._process = None

    def _start(self):
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._environment)

    def _kill(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        self._start()
        return self

    def __exit__(self, *_):
        self._kill()

    def rest(self):
        """It never sleeps."""

    def was_woken(self):
        pass

    def interrupt(self, act):
        self._kill()
        act()
        self._start()
