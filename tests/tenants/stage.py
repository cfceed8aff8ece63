"""The place of the attacks: a control plane, hangar as its chart installs it, and a silent name server.

The host has the identity and the rights that the chart gives to its pods, the chart's flags, and the chart's limit of
memory. The control plane, the host, and all users with this program share the processors as three machines of a cluster
would have their own: otherwise attackers who keep the API server busy would also take the host's. Names cannot be resolved:
every question waits until its asker gives up.
"""
import base64
import contextlib
import os
import pathlib
import re
import secrets
import socket
import subprocess
import threading

import yaml

import charts
from cluster import Cluster, eventually
from confined import mounting
from host import BINARY, Host, free_port
from processes import MIB, MemoryCgroup, process_tree
from webhooks import Authority

NAMESPACE = "hangar-system"
LEASE = ("coordination.k8s.io/v1", "Lease")
CGROUPS = pathlib.Path("/sys/fs/cgroup")

# The TenantPolicy that a platform team gives to its tenants.
RIGHTS = {"rbac": {"airwayGroups": ["tenants.hangar.dev"],
                   "flightResources": [{"apiGroups": [""], "resources": ["configmaps"]}],
                   "operatorResources": [{"apiGroups": [""], "resources": ["configmaps", "namespaces", "secrets"]}],
                   "workflowResources": [{"apiGroups": [""], "resources": ["configmaps"]},
                                         {"apiGroups": ["batch"], "resources": ["jobs"]}]}}
# Controllers that namespaces and owned objects need. The others would only cost processor time.
CONTROLLERS = "namespace-controller,serviceaccount-controller,garbage-collector-controller"


class SilentNameServer(threading.Thread):
    """Receives questions and never answers. `questions` counts them."""

    def __init__(self):
        super().__init__(daemon=True)
        self.questions = 0
        # The port is always the same, so each process of pytest-xdist has an address of its own.
        self.address = f"127.53.{os.getpid() >> 8 & 255}.{os.getpid() & 255 or 1}"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((self.address, 53))
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                self._socket.recv(4096)
                self.questions += 1

    def close(self):
        self._socket.close()


class Peak(threading.Thread):
    """The largest of many samples of a figure. The kernel's own peak counts page cache, which fills any limit without
    harm, and not every kernel can reset it."""

    def __init__(self, figure):
        super().__init__(daemon=True)
        self._figure, self._highest, self._over = figure, 0, threading.Event()
        self.start()

    def run(self):
        while not self._over.wait(0.05):
            self._look()

    def _look(self):
        with contextlib.suppress(OSError):
            self._highest = max(self._highest, self._figure())

    def forget(self):
        self._highest = 0

    def highest(self):
        self._look()
        return self._highest

    def close(self):
        self._over.set()
        self.join()


class Machine:
    """What some processes of the stage would have on a machine of their own: processors, and memory up to a limit. The
    machines share this one's processors by their weights, with cgroups; what this machine does not allow is left out."""

    def __init__(self, name, weight, limit_bytes=None):
        name = f"hangar-tenants-{os.getpid()}-{name}-{secrets.token_hex(3)}"
        self._directories, self._moved = [], []
        self._memory = self._peak = None
        if (CGROUPS / "cgroup.controllers").exists():
            with contextlib.suppress(OSError):
                (CGROUPS / "cgroup.subtree_control").write_text("+memory +cpu")
            made = self._make(CGROUPS / name, **({"memory.max": limit_bytes} if limit_bytes else {}))
            with contextlib.suppress(OSError):  # Where groups have no processor controller.
                (CGROUPS / name / "cpu.weight").write_text(str(100 * weight))
        else:
            self._make(CGROUPS / "cpu" / name, **{"cpu.shares": 1024 * weight})
            made = limit_bytes and self._make(CGROUPS / "memory" / name, **{"memory.limit_in_bytes": limit_bytes})
        if made and limit_bytes:
            self._memory = MemoryCgroup(made, (CGROUPS / "cgroup.controllers").exists())

    def _make(self, directory, **settings):
        """The directory, or None."""
        try:
            directory.mkdir()
            for file, value in settings.items():
                (directory / file).write_text(str(value))
            self._directories.append(directory)
            return directory
        except OSError:
            with contextlib.suppress(OSError):
                directory.rmdir()
            return None

    def move(self, *pids):
        """Moves running processes to it until close()."""
        for directory in self._directories:
            for pid in pids:
                (directory / "cgroup.procs").write_text(str(pid))
        self._moved += pids

    def inside(self):
        """The prefix of a command whose process should be in it."""
        moves = "".join(f'echo $$ > "{directory}/cgroup.procs" && ' for directory in self._directories)
        return ("sh", "-c", f'{moves}exec "$@"', "sh")

    def watch_memory(self, pid):
        """From now on the memory of the machine's processes is sampled; where nothing counts it, that of `pid` and its
        descendants."""
        self._peak = Peak(lambda: self._memory.memory()["kept"] * MIB if self._memory else tree_bytes(pid))

    def forget_peak(self):
        self._peak.forget()

    def peak(self):
        """Bytes: the most that its processes had together since the last forget_peak()."""
        return round(self._peak.highest())

    def kills(self):
        """How many of its processes the kernel has ended for want of memory."""
        return self._memory.kills() if self._memory else 0

    def close(self):
        if self._peak:
            self._peak.close()
        for directory in self._directories:
            with contextlib.suppress(OSError):
                for pid in self._moved:
                    (directory.parent / "cgroup.procs").write_text(str(pid))
            with contextlib.suppress(OSError):
                directory.rmdir()


def tree_bytes(pid):
    """Memory of the process and its descendants; a page that several of them share counts once."""
    total = 0
    for one in process_tree(pid):
        with contextlib.suppress(OSError, AttributeError):  # It has ended meanwhile.
            total += int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{one}/smaps_rollup").read_text(), re.MULTILINE).group(1)) * 1024
    return total


def bytes_of(quantity):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()
    return int(number) * {"Mi": MIB, "Gi": 1024 * MIB}[unit]


class ChartHost(Host):
    """A host as a pod of the chart runs it."""

    def __init__(self, binary, *arguments, **options):
        self._binary = str(binary)
        super().__init__(*arguments, **options)

    def start(self, wait=True):
        changed = {"--log-level=debug": "--log-level=info", str(BINARY): self._binary}
        self._command = [changed.get(word, word) for word in self._command if word != "--allow-file-modules"]
        super().start(wait)


class Stage:
    """One control plane and one host that leads. `renew()` ends the host, whatever its state, and starts another. `flags`: a
    function from the cluster to the host's flags besides the chart's."""

    def __init__(self, directory, values=None, binary=BINARY, flags=lambda cluster: ()):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self._binary = directory, binary
        self.values = {**RIGHTS, **(values or {}), "replicaCount": 0}
        # An older peer has no tenants: it acts everywhere.
        commands = subprocess.run([str(binary), "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self._knows_tenants = re.search(r"^ +tenant ", commands, re.MULTILINE) is not None
        chart_values = yaml.safe_load((charts.CHART / "values.yaml").read_text())
        if not self._knows_tenants and "tenants" in chart_values:
            self.values["tenants"] = "*"
        # The port at which users see recorded turns; an older peer shows them to nobody.
        self.records_port = free_port() if re.search(r"^ +top ", commands, re.MULTILINE) and "records" in chart_values else None
        if self.records_port:
            self.values["records"] = {"enabled": True}
        # The port of the webhooks, which know the API server by its certificate; an older peer has none.
        host_help = subprocess.run([str(binary), "host", "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.webhook_port = free_port() if "--webhook-client-ca-file" in host_help and "webhooks" in chart_values else None
        shown = []
        if self.webhook_port:
            self.values["webhooks"] = {"enabled": True}
            authority = Authority(directory, "api-servers")
            shown = [authority.api_server_shows("kube-apiserver")]
        self._users = Machine("users", weight=1)
        self._users.move(os.getpid())
        self.cluster = Cluster(f"--with-kcm={CONTROLLERS}", "--with-registry", *shown)
        self._control_plane = Machine("control-plane", weight=3)
        self._control_plane.move(*self.cluster.pids())
        charts.helm("install", "hangar", str(charts.CHART), "--namespace", NAMESPACE, "--create-namespace", "--values", "-",
                    stdin=yaml.safe_dump(charts.with_repository(self.values)), env={"KUBECONFIG": self.cluster.kubeconfig})
        self.kubeconfig = charts.kubeconfig_of(self.cluster, NAMESPACE, "hangar", directory / "kubeconfig")
        self.name_server = SilentNameServer()
        deployment = charts.render(self.values, namespace=NAMESPACE)[("Deployment", "hangar")]
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        self.limit_bytes = bytes_of(container["resources"]["limits"]["memory"])
        known = ("--features=", "--leader-elect", *(["--module-cache-size="] if "--module-cache-size" in host_help else []))
        self._flags = [word for word in container["args"] if word.startswith(known)]
        self._flags += flags(self.cluster)
        if self.records_port:
            address = f"127.0.0.1:{self.records_port}"
            self._flags += [f"--records-bind-address={address}", f"--records-url=https://{address}"]
        if self.webhook_port:
            address = f"127.0.0.1:{self.webhook_port}"
            self._flags += [f"--webhook-bind-address={address}", f"--webhook-url=https://{address}", "--webhook-secret=hangar-webhooks",
                            "--webhook-owner=hangar-webhooks", f"--webhook-client-ca-file={authority.certificate}", "--webhook-drain=0s"]
        self._hosts = 0
        self.host = self._machine = None
        self.renew()

    def renew(self):
        if self.host:
            self._end()
        self._machine = Machine("host", weight=2, limit_bytes=self.limit_bytes)
        resolver = self.directory / "resolv.conf"
        # As in a pod: each name is looked up in four domains, and each question waits for its answer.
        resolver.write_text(f"nameserver {self.name_server.address}\nsearch {NAMESPACE}.svc.cluster.local svc.cluster.local cluster.local\n"
                            "options ndots:5\n")
        self._hosts += 1
        mounts = mounting(f'mount --bind "{resolver}" "$(readlink -f /etc/resolv.conf)"')
        self.host = ChartHost(self._binary, self.kubeconfig, self.directory / f"host-{self._hosts}", *self._flags, f"--namespace={NAMESPACE}",
                              f"--pod={NAMESPACE}/hangar-{self._hosts}", env={"POD_NAME": f"hangar-{self._hosts}"},
                              inside=(*self._machine.inside(), *mounts))
        self.pid = self.host.process.pid
        self._machine.watch_memory(self.pid)

    def _end(self):
        code = self.host.process.poll()
        if code is None:
            self.host.kill()
        # Otherwise the next host would wait for its Lease.
        self.cluster.delete(*LEASE, "hangar", NAMESPACE)
        self._machine.close()

    def add_tenant(self, name):
        """Makes a namespace that hangar may act in."""
        make_namespace(self.cluster, name)
        if self._knows_tenants:
            subprocess.run([str(self._binary), "tenant", "allow", name, f"--kubeconfig={self.cluster.kubeconfig}"], check=True,
                           stdout=subprocess.DEVNULL)

    def lease(self):
        """The leader, and how often it has changed."""
        spec = (self.cluster.get(*LEASE, "hangar", NAMESPACE) or {}).get("spec", {})
        return spec.get("holderIdentity"), spec.get("leaseTransitions")

    def forget_peak(self):
        """From here on `peak_bytes` starts again."""
        self._machine.forget_peak()

    def peak_bytes(self):
        """The most memory of the host, its guest processes and its compilers together."""
        return self._machine.peak()

    def memory_kills(self):
        """How many of these processes the kernel has ended for want of memory."""
        return self._machine.kills()

    def is_alive(self):
        return self.host.process.poll() is None

    def stop(self):
        """The host's exit status when it is told to stop."""
        return self.host.stop()

    def close(self):
        self._end()
        self.name_server.close()
        self.cluster.close()
        self._control_plane.close()
        self._users.close()


def config_map(name, namespace, binary=None, **data):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}
    if binary:
        manifest["binaryData"] = {key: base64.b64encode(value).decode() for key, value in binary.items()}
    return manifest


def make_namespace(cluster, name):
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    eventually(lambda: cluster.get("v1", "ServiceAccount", "default", name), f"{name} has its service account")
