"""Long-running operators under measurement: `hangar run` on a directory made for it, and any set of processes."""
import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

import harness
from cluster import eventually
from host import BINARY, free_port


def apiserver_watches(metrics):
    """How many watches the API server has open, by resource, from the text of its /metrics."""
    found = collections.Counter()
    for line in metrics.splitlines():
        if line.startswith("apiserver_longrunning_requests{") and 'verb="WATCH"' in line:
            found[re.search('resource="([^"]*)"', line)[1]] += round(float(line.rsplit(" ", 1)[1]))
    return found


def total(metrics, name):
    """The sum of a metric of the host over all of its labels."""
    return sum(value for key, value in metrics.items() if key.split("{")[0] == name)


def _snapshots(pid):
    """The files of snapshots and images that a host has open. They have no names."""
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if "/snapshots/" in os.readlink(descriptor):
                yield descriptor


def disk_bytes(pid):
    """Snapshots and images: the disk space of an operator beyond its compiled code."""
    taken = 0
    for descriptor in _snapshots(pid):
        with contextlib.suppress(OSError):
            taken += os.stat(descriptor).st_blocks * 512
    return taken


class Processes:
    """All processes of one variant, and their cost together."""

    def __init__(self, commands, log, env=None):
        self._log = open(log, "ab")
        self._group = harness.MemoryGroup("hangar-bench")
        self.processes = [subprocess.Popen([str(word) for word in command], stdout=self._log, stderr=self._log,
                                           stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
                                           preexec_fn=self._group.join) for command in commands]

    def memory(self):
        seen = [harness.memory(process.pid) for process in self.processes]
        return {key: sum(one[key] for one in seen) for key in seen[0]}

    def settled_memory(self, seconds, samples=5):
        time.sleep(seconds)
        seen = []
        for _ in range(samples):
            seen.append(self.memory())
            time.sleep(0.2)
        return {key: statistics.median(one[key] for one in seen) for key in seen[0]}

    def group_memory(self):
        """MiB of all of them, page cache included; None where they have no cgroup of their own."""
        return self._group.memory()

    def cpu_seconds(self):
        return sum(harness.cpu_seconds(process.pid) for process in self.processes)

    def alive(self):
        return all(process.poll() is None for process in self.processes)

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()
            process.wait()
        self._log.close()
        self._group.close()


def directory_of_operators(directory, guest, count, distinct, environment=None, arguments=None):
    """The input of `hangar run`: the published configuration, and the modules."""
    directory.mkdir(parents=True)
    module = guest.read_bytes()
    documents = []
    for index in range(count):
        name = f"guest-{index if distinct else 0:05}"
        path = directory / f"{name}.wasm"
        if not path.exists():
            # One more custom section, which no code reads: the same cost, another digest.
            section = bytes([len(name)]) + name.encode()
            path.write_bytes(module + bytes([0, len(section)]) + section)
        # JSON is YAML.
        documents.append(json.dumps({
            "name": f"operator{index}", "wasm": f"./{path.name}", "args": arguments(index) if arguments else [],
            "env": [{"name": key, "value": value} for key, value in (environment(index) if environment else {}).items()]}))
    (directory / "wasm_config.yaml").write_text("\n---\n".join(documents))


class Hangar(Processes):
    """`hangar run` on a directory of operators."""

    def __init__(self, cluster, directory, cache, *flags):
        self.directory, self.cache, self.port = directory, cache, free_port()
        harness.forget_pages(self._code())
        # The programs that it is compared with have their guests in their own process, too.
        super().__init__([[BINARY, "run", directory, f"--kubeconfig={cluster.kubeconfig}", f"--module-cache-dir={cache}",
                           f"--bind-address=127.0.0.1:{self.port}", "--log-level=warning", "--guest-isolation=none", *flags]], directory / "run.log")

    def _code(self):
        return [path for path in (self.cache / "code").rglob("*") if path.is_file()]

    def metrics_or_none(self):
        """None before the host answers."""
        try:
            return self.metrics()
        except OSError:
            return None

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}

    def wait_until_asleep(self, count):
        """For operators that list and watch one kind each."""
        eventually(lambda: self.metrics_or_none(), "the host answers", 60)

        def all_sleep():
            seen = self.metrics()
            return seen["hangar_operators"] == count and seen["hangar_operators_resident"] == 0 and \
                seen["hangar_operator_wakes_total"] >= 2 * count
        eventually(all_sleep, "all operators have listed, watch, and sleep", 1200)

    def disk_bytes(self):
        return disk_bytes(self.processes[0].pid)

    def page_cache_bytes(self):
        """Compiled code, snapshots and images as far as the kernel caches them; it can evict them."""
        files = [str(path) for path in (*self._code(), *_snapshots(self.processes[0].pid))]
        seen = subprocess.run(["fincore", "-b", "-n", "-o", "RES", *files], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True).stdout.split()
        return sum(map(int, seen))
