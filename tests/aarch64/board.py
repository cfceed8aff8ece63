"""A board with an ARM processor, emulated: Debian's kernel, programs of this project, and nothing else.

Its root is a file system in memory. Its network is the one that qemu makes for a user: this machine is 10.0.2.2.
"""
import gzip
import pathlib
import subprocess
import tempfile

# In the order in which they need each other.
MODULES = ("failover", "net_failover", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_net")
# A name in the certificate of the control plane.
API_SERVER = "kubernetes.default.svc"
PORT = 8080

INIT = """#!/bin/busybox sh
export PATH=/bin HOME=/tmp HANGAR_POD=default/board
busybox mount -t proc proc /proc; busybox mount -t sysfs sys /sys; busybox mount -t devtmpfs dev /dev; busybox mount -t tmpfs tmp /tmp
for module in %(modules)s; do busybox insmod "/modules/$module.ko"; done
busybox ip link set lo up; busybox ip link set eth0 up
busybox ip addr add 10.0.2.15/24 dev eth0; busybox ip route add default via 10.0.2.2
%(command)s
echo "the command ended with $?"
busybox sync; busybox poweroff -f
"""


def unpacked(packages, directory):
    """Debian's kernel and its shell for this processor, from their packages: kernel, modules, busybox."""
    root = pathlib.Path(tempfile.mkdtemp(dir=directory))
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    modules = {path.name.removesuffix(".ko"): path for path in (root / "lib/modules").rglob("*.ko")}
    return next((root / "boot").glob("vmlinuz-*")), [modules[name] for name in MODULES], root / "bin/busybox"


def archive(files):
    """An initramfs: a gzipped cpio archive, as the kernel's documentation describes it ("newc"). `files`: path -> (mode, bytes)."""
    out = bytearray()

    def add(name, mode, data):
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        out.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0")
        out.extend(b"\0" * (-len(out) % 4) + data)
        out.extend(b"\0" * (-len(out) % 4))
    directories = {str(parent) for name in files for parent in pathlib.PurePosixPath(name).parents} | {"proc", "sys", "dev", "tmp"}
    for name in sorted(directories - {"."}):
        add(name, 0o040755, b"")
    for name, (mode, data) in files.items():
        add(name, 0o100000 | mode, data)
    add("TRAILER!!!", 0, b"")
    return gzip.compress(bytes(out), 1)


class Board:
    """Runs one command from its start to its end; what it prints is in `log`."""

    def __init__(self, packages, directory, command, port, programs=None, files=(), memory_mib=1024):
        """`programs`: path on the board -> file. `files`: files of this machine, which have the same paths there; or pairs of a path and bytes."""
        kernel, modules, busybox = unpacked(packages, directory)
        content = {path.lstrip("/"): (0o755, file.read_bytes()) for path, file in {**(programs or {}), "bin/busybox": busybox}.items()}
        content["init"] = (0o755, (INIT % {"modules": " ".join(MODULES), "command": command}).encode())
        content["etc/hosts"] = (0o644, f"127.0.0.1 localhost\n10.0.2.2 {API_SERVER}\n".encode())
        for path in modules:
            content[f"modules/{path.name}"] = (0o644, path.read_bytes())
        for one in files:
            path, data = one if isinstance(one, tuple) else (one, pathlib.Path(one).read_bytes())
            content[str(path).lstrip("/")] = (0o644, data)
        initramfs = directory / "initramfs"
        initramfs.write_bytes(archive(content))
        self.log = directory / "console.log"
        self.url = f"http://127.0.0.1:{port}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72", "-smp", "2", "-m", str(memory_mib), "-nographic", "-nodefaults",
                 "-serial", "stdio", "-kernel", kernel, "-initrd", initramfs, "-append", "console=ttyAMA0 quiet panic=-1", "-no-reboot",
                 "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:{PORT}", "-device", "virtio-net-pci,netdev=net,romfile="],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def text(self):
        return self.log.read_text(errors="replace")

    def close(self):
        self.process.kill()
        self.process.wait()
