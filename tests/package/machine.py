"""A bare Debian 12 in a container, with systemd as its first process and the network of this machine."""
import pathlib
import subprocess
import time


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options).stdout


def archives():
    """The sources that this machine has its packages from, as lines for apt."""
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages")
    return [f"deb {line} main" for line in sorted(set(listed.splitlines())) if "bookworm" in line]


class Machine:
    """Made by debootstrap: what Debian calls essential, and apt."""

    def __init__(self, directory):
        self.root = directory / "root"
        self.log = directory / "console.log"
        self.container = None
        lines = archives()
        mirror = next(line.split()[1] for line in lines if line.split()[2] == "bookworm")
        run("debootstrap", "--variant=minbase", "bookworm", self.root, mirror)
        (self.root / "etc/apt/sources.list").write_text("\n".join(lines) + "\n")
        (self.root / "etc/resolv.conf").write_text(pathlib.Path("/etc/resolv.conf").read_text())
        # Like this machine: which proxy, which timeouts.
        for path in pathlib.Path("/etc/apt/apt.conf.d").glob("99*"):
            (self.root / "etc/apt/apt.conf.d" / path.name).write_bytes(path.read_bytes())
        self.call("apt-get", "update", "-qq")

    def call(self, *command):
        """The output of a command: inside of the running system, or in its files before it is booted."""
        inside = ["nsenter", "--target", str(self.first_process()), "--all"] if self.container else ["chroot", str(self.root)]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        return run(*inside, *command, env=environment, timeout=600)

    def status_of(self, *command):
        try:
            self.call(*command)
        except subprocess.CalledProcessError as error:
            return error.returncode
        return 0

    def first_process(self):
        """Of the container, seen from here; None before there is one."""
        children = pathlib.Path(f"/proc/{self.container.pid}/task/{self.container.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def boot(self):
        """systemd-nspawn's own filter hides Landlock unless it is told not to."""
        with open(self.log, "wb") as log:
            self.container = subprocess.Popen(
                ["systemd-nspawn", "--quiet", f"--directory={self.root}", "--boot", "--register=no", "--keep-unit", "--console=pipe",
                 "--system-call-filter=landlock_create_ruleset landlock_restrict_self landlock_add_rule"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not self.first_process() or self.status_of("systemctl", "is-system-running", "--quiet") != 0:
            assert self.container.poll() is None and time.monotonic() < deadline, f"it does not boot:\n{self.log.read_text()}"
            time.sleep(0.2)

    def close(self):
        if not self.container:
            return
        # systemd-nspawn passes it on to systemd as the request to halt.
        self.container.terminate()
        try:
            self.container.wait(60)
        except subprocess.TimeoutExpired:
            self.container.kill()
            self.container.wait()
