"""The life of the package on a bare Debian 12. The tests are its steps, one after the other."""
import pathlib
import shutil
import subprocess

from cluster import eventually
from edge import grows, kubeconfig_outside, landlock_version, plant
from host import free_port

# The machine has the network of this one, where the package's port may be taken.
URL = f"http://127.0.0.1:{free_port()}"
READY = ("hangar", "ready", URL)


def property_of(machine, name):
    return machine.call("systemctl", "show", "hangar", "--property", name, "--value").strip()


def test_lintian_finds_no_error_and_no_warning(package):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning", str(package)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def test_it_installs_with_debians_libraries_and_nothing_else(machine, package):
    machine.call("apt-get", "install", "-y", "-qq", "--no-install-recommends", "/root/hangar.deb")

    version = subprocess.run(["dpkg-deb", "--field", str(package), "Version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    assert machine.call("hangar", "version") == f"hangar {version}\n"
    assert "takeoff" in machine.call("hangar", "--help")


def test_the_service_waits_for_a_kubeconfig(machine):
    machine.call("apt-get", "install", "-y", "-qq", "--no-install-recommends", "systemd", "systemd-sysv", "dbus", "curl")
    machine.boot()

    assert machine.status_of("systemctl", "is-enabled", "--quiet", "hangar") != 0
    machine.call("systemctl", "enable", "--now", "hangar")
    assert (property_of(machine, "ActiveState"), property_of(machine, "ConditionResult")) == ("inactive", "no")


def test_the_demonstration_runs_on_a_given_cluster_and_leaves_nothing(machine, cluster):
    missing = machine.status_of("hangar", "demo", "--kubeconfig=/root/kubeconfig")
    assert missing == 1, "it needs kubectl, which Debian's packages do not install with it"
    shutil.copy(cluster.env["HANGAR_CP_KUBECTL"], machine.root / "usr/local/bin/kubectl")
    (machine.root / "root/kubeconfig").write_text(pathlib.Path(cluster.kubeconfig).read_text())
    before = cluster.kubectl("get", "namespaces,customresourcedefinitions,clusterroles", "-o", "name")

    said = machine.call("hangar", "demo", "--kubeconfig=/root/kubeconfig")
    assert "100 operators, an Airway and a workflow run in one host" in said
    assert cluster.kubectl("get", "namespaces,customresourcedefinitions,clusterroles", "-o", "name") == before
    for name in ("root/kubeconfig", "usr/local/bin/kubectl"):
        (machine.root / name).unlink()


def test_it_runs_an_operator_with_its_own_walls_inside_of_systemds(machine, cluster):
    for what in ("crds/", "outside.yaml"):
        cluster.kubectl("apply", "--server-side", "-f", str(machine.root / "usr/share/hangar" / what))
    kubeconfig = machine.root / "etc/hangar/kubeconfig"
    kubeconfig.touch(0o600)
    kubeconfig_outside(cluster, kubeconfig)
    settings = machine.root / "etc/hangar/hangar.yaml"
    assert "bindAddress: 127.0.0.1:8080\n" in settings.read_text()
    settings.write_text(settings.read_text().replace("127.0.0.1:8080", URL.removeprefix("http://")))

    machine.call("systemctl", "start", "hangar")
    eventually(lambda: machine.status_of(*READY) == 0, "the host is ready", 30)
    plant(cluster)
    grows(cluster)
    metrics = machine.call("curl", "--silent", f"{URL}/metrics")
    assert "\nhangar_guest_system_call_filter 1\n" in metrics
    assert f"\nhangar_guest_landlock_version {landlock_version()}\n" in metrics


def test_it_is_started_again_unless_a_setting_is_wrong(machine):
    before = property_of(machine, "MainPID")
    machine.call("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "hangar")
    eventually(lambda: property_of(machine, "MainPID") not in ("0", before) and machine.status_of(*READY) == 0, "systemd started it again", 30)

    settings = machine.root / "etc/hangar/hangar.yaml"
    right = settings.read_text()
    settings.write_text(right + "logLevel: loud\n")
    machine.call("systemctl", "restart", "hangar")
    eventually(lambda: property_of(machine, "ActiveState") == "failed", "it gives up", 30)
    assert property_of(machine, "ExecMainStatus") == "2"
    assert 'logLevel: "loud" is not one of' in machine.call("journalctl", "--unit=hangar", "--output=cat", "--no-pager")
    settings.write_text(right)
    machine.call("systemctl", "restart", "hangar")
    eventually(lambda: machine.status_of(*READY) == 0, "it runs", 30)


def test_an_upgrade_restarts_it_and_keeps_the_settings(machine):
    before = property_of(machine, "MainPID")
    settings = (machine.root / "etc/hangar/hangar.yaml").read_text()
    machine.call("dpkg", "--force-confold", "--install", "/root/hangar.deb")

    eventually(lambda: property_of(machine, "MainPID") not in ("0", before) and machine.status_of(*READY) == 0, "it was restarted", 30)
    assert (machine.root / "etc/hangar/hangar.yaml").read_text() == settings


def test_removing_keeps_settings_and_cache_and_purging_nothing(machine):
    machine.call("apt-get", "remove", "-y", "-qq", "hangar")
    assert machine.status_of("systemctl", "is-active", "--quiet", "hangar") != 0
    assert (machine.root / "etc/hangar/kubeconfig").exists() and (machine.root / "var/cache/private/hangar").exists()

    machine.call("apt-get", "purge", "-y", "-qq", "hangar")
    left = machine.call("find", "/etc", "/usr", "/var/cache", "/var/lib", "/lib", "-xdev", "-name", "*hangar*")
    assert left == ""
