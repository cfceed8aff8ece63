"""The common part of all benchmarks: figures with their peers and targets, and measurements of processes from outside.

A benchmark is bench/NAME/bench.py: it fills a Report, which prints a table and writes build/bench/NAME.json, a list of
{figure, unit, hangar, peer, peer_name, ratio, target, met}. Only the standard library, and of hangar only what its tests know of processes.
"""
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench"
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

sys.path.insert(0, str(ROOT / "tests/e2e"))

from processes import MIB, MemoryCgroup, process_tree  # noqa: E402


def progress(text):
    """One line for the person who waits."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def percentile(values, percent):
    """The nearest-rank percentile: a value that was measured, never one between two."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def machine():
    """One line: how large, how fast and how busy this machine is, for a comparison with figures of another hour or place."""
    began = time.thread_time()
    for _ in range(10**7):
        pass
    loop_ms = (time.thread_time() - began) * 1000
    models = [line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return (f"the machine: {os.cpu_count()} cores ({models[0] if models else 'of an unknown model'}), a load of {os.getloadavg()[0]:.1f}, "
            f"{loop_ms:.0f} ms for a Python loop of ten million")


# Figures ----------------------------------------------------------------------------------------


class Target:
    """A bound that was set before the measurement: on the figure itself, or on its ratio to the peer's."""

    def __init__(self, relation, bound, of_peer=False):
        self.relation, self.bound, self.of_peer = relation, bound, of_peer

    def __str__(self):
        return f"{self.relation} {self.bound:g}" + (" x peer" if self.of_peer else "")

    def is_met(self, hangar, ratio):
        """None if it is not known."""
        value = ratio if self.of_peer else hangar
        if value is None:
            return None
        return value <= self.bound if self.relation == "<=" else value >= self.bound


def at_most(bound):
    return Target("<=", bound)


def at_least(bound):
    return Target(">=", bound)


def at_most_of_peer(bound):
    return Target("<=", bound, of_peer=True)


def at_least_of_peer(bound):
    return Target(">=", bound, of_peer=True)


def _middle(value):
    if isinstance(value, (list, tuple)):
        return statistics.median(value) if value else None
    return value


class Report:
    """The figures of one benchmark, in the order in which they are added."""

    # As many runs of a benchmark are kept, for plots.py.
    RUNS_MAX = 20

    def __init__(self, name, out=OUT):
        self.name, self.out = name, out
        self.figures = []
        self.notes = []
        self.machine = machine()  # Before the benchmark makes it busy.

    def add(self, figure, unit, hangar, peer=None, peer_name=None, target=None):
        """Values that are lists are rounds: their median counts. None is "not measured"."""
        hangar, peer = _middle(hangar), _middle(peer)
        ratio = hangar / peer if hangar is not None and peer else None
        self.figures.append({
            "figure": figure, "unit": unit, "hangar": hangar, "peer": peer,
            "peer_name": peer_name if peer is not None else None, "ratio": ratio,
            "target": str(target) if target else None,
            "met": target.is_met(hangar, ratio) if target else None})

    def note(self, text):
        """A line below the table: what a reader must know to understand the figures."""
        self.notes.append(text)

    def write(self, path=None):
        path = path or self.out / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.figures, indent=1) + "\n")
        return path

    def keep(self, seconds):
        """Writes the report a second time, beside those of earlier runs, under the time of this one."""
        directory = self.out / "runs" / self.name
        self.write(directory / f"{time.strftime('%Y-%m-%dT%H-%M-%SZ', time.gmtime(seconds))}.json")
        for oldest in sorted(directory.glob("*.json"))[:-self.RUNS_MAX]:
            oldest.unlink()

    def table(self):
        def number(value):
            if value is None:
                return "-"
            return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"

        heads = ["figure", "unit", "hangar", "peer", "ratio", "target", "met", "peer is"]
        rows = [[one["figure"], one["unit"], number(one["hangar"]), number(one["peer"]), number(one["ratio"]),
                 one["target"] or "", {True: "yes", False: "NO", None: ""}[one["met"]], one["peer_name"] or ""]
                for one in self.figures]
        widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
        right = {2, 3, 4}

        def line(row):
            return "  ".join(cell.rjust(width) if column in right else cell.ljust(width)
                             for column, (cell, width) in enumerate(zip(row, widths))).rstrip()

        return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, rows),
                          *(f"  {note}" for note in [*self.notes, self.machine])])

    def finish(self):
        """Prints and writes the report, and says where."""
        print(self.table(), flush=True)
        progress(f"written to {self.write().relative_to(ROOT)}")
        if not self.name.endswith(".quick"):
            self.keep(time.time())


# Processes, seen from outside -------------------------------------------------------------------


def memory(pid):
    """MiB: rss; pss, where a page shared by n processes counts as 1/n; private, which only this process has;
    anonymous, which is not backed by a file (the rest can be evicted)."""
    fields = {}
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        key, value = line.split(":")
        fields[key] = int(value.split()[0]) / 1024
    return {"rss": fields["Rss"], "pss": fields["Pss"], "anonymous": fields["Anonymous"],
            "private": fields["Private_Clean"] + fields["Private_Dirty"]}


def settled_memory(pid, quiet_seconds, samples=5):
    """Medians over some samples after `quiet_seconds` without requests to the process."""
    time.sleep(quiet_seconds)
    seen = []
    for _ in range(samples):
        seen.append(memory(pid))
        time.sleep(0.2)
    return {key: statistics.median(one[key] for one in seen) for key in seen[0]}


class MemoryGroup:
    """A cgroup of its own for some processes, where the machine allows one. Its figure includes what measurements
    of single processes cannot show: the page cache of files that they read or wrote first, and the kernel's memory
    for them."""

    def __init__(self, name):
        self._directory = self._figure = None
        for parent, figure in self._places():
            directory = parent / f"{name}-{os.getpid()}"
            try:
                directory.mkdir()
            except OSError:
                continue
            if (directory / figure).exists():
                self._directory, self._figure = directory, directory / figure
                return
            directory.rmdir()  # Memory is not counted there.

    @staticmethod
    def _places():
        """Our own group, and the root, which may have groups beside processes; of cgroup v2, and of v1."""
        root = pathlib.Path("/sys/fs/cgroup")
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                yield from ((parent, "memory.current") for parent in (root / path[1:], root))
            elif "memory" in controllers.split(","):
                yield root / "memory" / path[1:], "memory.usage_in_bytes"

    def join(self):
        """Puts the calling process into the group, between fork and exec."""
        if self._directory:
            (self._directory / "cgroup.procs").write_text(str(os.getpid()))

    def memory(self):
        """MiB, or None."""
        return int(self._figure.read_text()) / MIB if self._figure else None

    def close(self):
        """Call it after the processes have ended."""
        if self._directory:
            with contextlib.suppress(OSError):
                self._directory.rmdir()


def distinct_copies(wasm, count, directory):
    """Modules of the same cost and different digests: each has one more custom section, which no code reads."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(count):
        name = f"bench-{number:02}".encode()
        paths.append(directory / f"{wasm.stem}-{number:02}.wasm")
        paths[-1].write_bytes(wasm.read_bytes() + bytes([0, len(name) + 2, len(name)]) + name + b"\0")
    return paths


class SmallMachine(MemoryCgroup):
    """Cgroups in which some processes have the memory and the processor time of a small machine: of version 1, where memory and
    processor time are in two hierarchies, or of version 2. OSError where this machine does not allow it."""

    def __init__(self, name, memory_bytes, cores=None, root=pathlib.Path("/sys/fs/cgroup")):
        name = f"{name}-{os.getpid()}"
        self.is_version_2 = (root / "cgroup.controllers").exists()
        self._directories = []
        try:
            if self.is_version_2:
                wanted = "+memory" if cores is None else "+memory +cpu"
                (root / "cgroup.subtree_control").write_text(wanted)
                self.memory_directory = self._make(root / name)
            else:
                self.memory_directory = self._make(root / "memory" / name)
            self.limit_memory(memory_bytes)
            if cores is not None:
                self._limit_cores(cores, self.memory_directory if self.is_version_2 else self._make(root / "cpu" / name))
        except OSError:
            self.close()
            raise

    def _make(self, directory):
        directory.mkdir()
        self._directories.append(directory)
        return directory

    def _limit_cores(self, cores, directory, period_us=100_000):
        quota = round(cores * period_us)
        if self.is_version_2:
            (directory / "cpu.max").write_text(f"{quota} {period_us}")
        else:
            (directory / "cpu.cfs_period_us").write_text(str(period_us))
            (directory / "cpu.cfs_quota_us").write_text(str(quota))

    def limit_memory(self, memory_bytes):
        """The kernel takes pages back at once if there are more; OSError (version 1) if it finds too few."""
        (self.memory_directory / ("memory.max" if self.is_version_2 else "memory.limit_in_bytes")).write_text(str(memory_bytes))

    def inside(self):
        """The prefix of a command whose process, and its children, should be in it."""
        joins = "; ".join(f'echo $$ > "{directory}/cgroup.procs"' for directory in self._directories)
        return ("sh", "-ec", f'{joins}; exec "$@"', "sh")

    def close(self):
        """Call it after the processes have ended."""
        for directory in self._directories:
            with contextlib.suppress(OSError):
                directory.rmdir()


def forget_pages(paths):
    """Evicts the pages of unmapped files: the next process that reads them is charged for them."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _ticks(pid, first, last):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[first:last])) / _TICKS_PER_SECOND


def cpu_seconds(pid):
    """User and system time of the process, without its children."""
    return _ticks(pid, 11, 13)


def cpu_seconds_with_ended(pid):
    """User and system time of the process, and of its descendants that have ended and were waited for."""
    return _ticks(pid, 11, 15)


def cpu_seconds_of_tree(pid):
    """The same of the process and all of its descendants, of which some may end meanwhile."""
    while True:
        try:
            return sum(map(cpu_seconds_with_ended, process_tree(pid)))
        except (FileNotFoundError, ProcessLookupError):
            continue  # It counts for its parent now, which was read before.


def private_dirty(pid):
    """MiB that only this process has and that the kernel cannot drop, and its page tables."""
    kib = 0
    for file, key in (("smaps_rollup", "Private_Dirty:"), ("status", "VmPTE:")):
        for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(key):
                kib += int(line.split()[1])
    return kib / 1024


def file_pages(smaps, directory):
    """What a process maps of the files in a directory, from the text of its /proc/PID/smaps: MiB mapped, and resident."""
    found, is_counted = {"mapped": 0.0, "resident": 0.0}, False
    for line in smaps.splitlines():
        words = line.split(maxsplit=5)
        if not words[0].endswith(":"):  # The head of a mapping: addresses, rights, offset, device, inode, path.
            is_counted = len(words) == 6 and words[5].startswith(f"{directory}/")
        elif is_counted and words[0] in ("Size:", "Rss:"):
            found["mapped" if words[0] == "Size:" else "resident"] += int(words[1]) / 1024
    return found


@contextlib.contextmanager
def peak_memory(pid, interval_seconds=0.5):
    """Yields a dict that afterwards has the peaks within the block: rss as the kernel counted it, pss and anonymous as sampled
    (reading them walks all page tables, which costs time)."""
    peaks = {"rss": 0.0, "pss": 0.0, "anonymous": 0.0}
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    done = threading.Event()

    def sample():
        while not done.is_set():
            with contextlib.suppress(OSError):
                seen = memory(pid)
                peaks.update({key: max(peaks[key], seen[key]) for key in ("pss", "anonymous")})
            done.wait(interval_seconds)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield peaks
    finally:
        done.set()
        sampler.join()
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            peaks["rss"] = int(status.split("VmHWM:")[1].split()[0]) / 1024


class Conversation:
    """A child process that answers each line on its stdin by one line of JSON: the peers, and hangar's own parts."""

    def __init__(self, command, env=None):
        self.started = time.monotonic()
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, **(env or {})})
        self.pid = self.process.pid

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self):
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args[0]} ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def hangar_host_class():
    """tests/e2e's Host without its debug log: a host in production has none, and writing it takes time.

    Guests run in the host's process unless a flag says otherwise, as in the published figures; bench/isolation has the difference.
    """
    from host import Host

    class QuietHost(Host):
        def __init__(self, kubeconfig, directory, *flags, **options):
            if not any(flag.startswith("--guest-isolation") for flag in flags):
                flags = (*flags, "--guest-isolation=none")
            super().__init__(kubeconfig, directory, *flags, **options)

        def start(self, wait=True):
            self._command = ["--log-level=info" if word == "--log-level=debug" else word for word in self._command]
            super().start(wait)

    return QuietHost
