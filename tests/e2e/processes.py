"""Processes, and groups of them, as the kernel shows them."""
import os
import pathlib
import signal
import time

from cluster import eventually

MIB = 1 << 20


def children(parent):
    """Live processes that are children of `parent`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, of = pathlib.Path("/proc", name, "stat").read_text().rsplit(") ", 1)[1].split()[:2]
        except (OSError, IndexError):
            continue
        if int(of) == parent and state != "Z":
            found.append(int(name))
    return found


class BehindSudo:
    """A command that sudo runs. Its user may signal it, but not sudo, which ends with the command."""

    def __init__(self, sudo):
        self._sudo = sudo

    def __getattr__(self, name):
        return getattr(self._sudo, name)

    def _find(self):
        """The first process below sudo that runs as this user."""
        assert self._sudo.poll() is None, f"sudo has ended with {self._sudo.returncode}"
        below = process_tree(self._sudo.pid)[1:]
        return next((pid for pid in below if os.stat(f"/proc/{pid}").st_uid == os.getuid()), None)

    @property
    def pid(self):
        return eventually(self._find, "sudo runs the command")

    def send_signal(self, number):
        if self._sudo.poll() is None:
            os.kill(self.pid, number)


def process_tree(pid):
    """The process and its live descendants."""
    return [pid, *(one for child in children(pid) for one in process_tree(child))]


class MemoryCgroup:
    """Figures of a cgroup that counts memory, of version 1 or 2."""

    def __init__(self, memory_directory, is_version_2):
        self.memory_directory, self.is_version_2 = memory_directory, is_version_2

    def _number(self, version_1, version_2):
        file = self.memory_directory / (version_2 if self.is_version_2 else version_1)
        return int(file.read_text()) if file.exists() else None

    def _field(self, file, name):
        for line in (self.memory_directory / file).read_text().splitlines():
            key, value = line.split()
            if key == name:
                return int(value)
        return 0

    def memory(self):
        """MiB: all, with page cache and the kernel's own; and of it what the kernel can not drop at once."""
        used = self._number("memory.usage_in_bytes", "memory.current")
        droppable = self._field("memory.stat", "inactive_file" if self.is_version_2 else "total_inactive_file")
        return {"all": used / MIB, "kept": max(0, used - droppable) / MIB}

    def kernel_memory(self):
        """MiB that the kernel holds for its processes (page tables, sockets); None where the kernel does not count it."""
        if self.is_version_2:
            used = self._field("memory.stat", "kernel") or None  # Since 5.18.
        else:
            used = self._number("memory.kmem.usage_in_bytes", "memory.current")
        return None if used is None else used / MIB

    def peak_memory(self):
        """MiB, or None: kernels before 5.19 do not count it in version 2."""
        peak = self._number("memory.max_usage_in_bytes", "memory.peak")
        return None if peak is None else peak / MIB

    def kills(self):
        """How many processes the kernel has ended for want of memory."""
        return self._field("memory.events" if self.is_version_2 else "memory.oom_control", "oom_kill")


def has_ended(pid):
    """Also if nobody has asked for its exit code yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z"
    except OSError:
        return True


def processor_seconds(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def expect_to_end_with(host, pids):
    """Kills the host, with which the processes have to end within a second. They are stopped before, so that none of them can
    notice by itself that a connection is closed: it is the kernel that ends them."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    killed = time.monotonic()
    os.kill(host.process.pid, signal.SIGKILL)
    eventually(lambda: all(map(has_ended, pids)), f"{pids} end with their host", 1)
    print(f"{len(pids)} processes of guests ended {time.monotonic() - killed:.3f} s after the kill of their host")
    host.kill()
