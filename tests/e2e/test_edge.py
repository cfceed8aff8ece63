"""deploy/edge: manifests without Helm, and a host outside of the cluster as its systemd unit confines it."""
import os
import pathlib
import subprocess
import sys
import time

import pytest
import yaml

import confined
from charts import REPOSITORY, ROOT, render
from cluster import eventually
from edge import GARDEN, NAMESPACE, grows, kubeconfig_outside, landlock_version, plant
from host import BINARY, Host, to_its_end
from processes import process_tree

EDGE = ROOT / "deploy/edge"
UNIT = EDGE / "hangar.service"
# Longer than the times after which a host does something by itself: renewing its Lease, trimming its heap.
QUIET_SECONDS = 15
HELMS = ("helm.sh/chart", "app.kubernetes.io/managed-by")


def documents(name):
    return [one for one in yaml.safe_load_all((EDGE / name).read_text()) if one]


def identity(manifest):
    return manifest["kind"], manifest["metadata"].get("namespace"), manifest["metadata"]["name"]


def without_helm(part):
    """Without the labels that only Helm has a use for."""
    if isinstance(part, dict):
        return {key: without_helm(value) for key, value in part.items() if key not in HELMS}
    return [without_helm(one) for one in part] if isinstance(part, list) else part


# The manifests -----------------------------------------------------------------------------------


def test_the_manifests_are_up_to_date():
    subprocess.run([sys.executable, str(EDGE / "generate.py"), "--check"], check=True, timeout=60)


def test_the_single_manifest_is_what_the_chart_renders():
    values = yaml.safe_load((EDGE / "values.yaml").read_text())
    chart = {identity(one): without_helm(one) for (kind, name), one in render(values).items() if not name.endswith("-test-ready")}
    definitions = {identity(one): one for path in (ROOT / "deploy/crds").iterdir() for one in yaml.safe_load_all(path.read_text())}
    made = {identity(one): one for one in documents("hangar.yaml")}
    added = {identity(one) for one in documents("hangar.yaml") if one["kind"] in ("Namespace", "FlowSchema")}

    assert {key: one for key, one in made.items() if key not in added} == {key: one for key, one in {**chart, **definitions}.items() if key not in added}
    assert added == {("Namespace", None, NAMESPACE), ("FlowSchema", None, "hangar-leader-election")}
    assert values["image"]["repository"] != REPOSITORY and f"image: {values['image']['repository']}:" in (EDGE / "hangar.yaml").read_text()


def test_k0s_can_delete_the_host_without_the_kinds_and_a_host_outside_gets_no_pod():
    everything, k0s, outside = ({identity(one): one for one in documents(name)} for name in ("hangar.yaml", "k0s.yaml", "outside.yaml"))

    assert k0s == {key: one for key, one in everything.items() if key[0] != "CustomResourceDefinition"}
    token = ("Secret", NAMESPACE, "hangar-outside")
    assert outside == {**{key: one for key, one in k0s.items() if key[0] not in ("ConfigMap", "Deployment", "Service")}, token: outside[token]}


def test_nothing_but_the_cache_and_tmp_can_be_written():
    (pod,) = [one["spec"]["template"]["spec"] for one in documents("hangar.yaml") if one["kind"] == "Deployment"]
    (container,) = pod["containers"]

    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert [one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")] == ["/var/cache/hangar", "/tmp"]
    in_memory = render({"cache": {"medium": "Memory", "sizeLimit": "128Mi"}})[("Deployment", "hangar")]["spec"]["template"]["spec"]
    assert {"name": "cache", "emptyDir": {"sizeLimit": "128Mi", "medium": "Memory"}} in in_memory["volumes"]


@pytest.fixture(scope="module")
def edge(own_cluster):
    """A cluster to which the single manifest was applied, as its first line says."""
    command = ["apply", "--server-side", "--validate=strict", "-f", str(EDGE / "hangar.yaml")]
    # Over CRDs that another command has applied.
    own_cluster.kubectl(*command, "--force-conflicts")
    return own_cluster


def test_an_api_server_takes_it_strictly_and_admits_its_pod(edge):
    for name in ("k0s.yaml", "outside.yaml"):
        assert "unchanged" not in edge.kubectl("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", str(EDGE / name))

    # Into a namespace that admits only what Kubernetes calls restricted.
    (pod,) = eventually(lambda: edge.list("v1", "Pod", NAMESPACE, "app.kubernetes.io/name=hangar"), "the Deployment has a pod", 60)
    assert edge.get("v1", "Namespace", NAMESPACE)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert pod["spec"]["containers"][0]["image"].startswith("localhost/hangar:")


# The unit ----------------------------------------------------------------------------------------


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    unit = tmp_path / "hangar.service"
    text = UNIT.read_text()
    assert text.count("ExecStart=/usr/bin/hangar host ") == 1
    # It looks whether the program is there.
    unit.write_text(text.replace("ExecStart=/usr/bin/hangar ", f"ExecStart={BINARY} "))

    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ours = [line for line in done.stdout.splitlines() if "hangar" in line]
    assert (done.returncode, ours) == (0, [])
    # Its own measure of what a service could do, from 0 to 10: 1.5 here, most services have 9.
    subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", str(unit)], check=True, stdout=subprocess.DEVNULL)


def test_the_unit_allows_the_calls_of_hangars_own_sandboxes_and_not_those_of_root():
    allowed = confined.allowed_calls(UNIT)

    assert {"seccomp", "landlock_create_ruleset", "landlock_restrict_self", "setrlimit", "prlimit64", "pidfd_open", "setpriority"} <= allowed
    assert not allowed & {"mount", "ptrace", "bpf", "setuid", "chroot", "sched_setscheduler", "init_module", "reboot"}


@pytest.fixture(scope="module")
def outside(edge, tmp_path_factory):
    """A host with the token, the settings and the system calls that a host outside of the cluster has."""
    edge.kubectl("apply", "--server-side", "-f", str(EDGE / "outside.yaml"))
    directory = tmp_path_factory.mktemp("outside")
    kubeconfig = kubeconfig_outside(edge, directory / "kubeconfig")
    # Without capabilities, as the unit says: only root has any.
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    inside = [*without, sys.executable, str(pathlib.Path(confined.__file__)), str(UNIT)]
    yield from to_its_end(Host(kubeconfig, directory / "host", f"--config={EDGE / 'host.yaml'}", inside=inside))


def test_a_host_outside_of_the_cluster_runs_an_operator_and_a_flight(edge, outside):
    plant(edge)

    grows(edge)


def written_bytes(host):
    """What the host and its processes have given to the disk, their logs included."""
    fields = [line.split(": ") for pid in process_tree(host.process.pid) for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()]
    return sum(int(value) for key, value in fields if key == "write_bytes")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what a process that hides its memory has written")
def test_a_host_whose_operators_sleep_writes_nothing(edge, outside):
    """After test_a_host_outside_of_the_cluster_runs_an_operator_and_a_flight."""
    assert outside.metrics()["hangar_disk_syncs_total"] == 0, "it made the cache without waiting for the disk"
    os.sync()  # A page that still waits for the disk is not counted when it is written again.
    before = written_bytes(outside)
    edge.patch("v1", "ConfigMap", "source", {"data": {"a": "c"}}, GARDEN)
    eventually(lambda: edge.get("v1", "ConfigMap", "copy", GARDEN)["data"]["a"] == "c", "the operator wakes", 60)
    eventually(lambda: written_bytes(outside) > before, "its sleep is a write: this test can see one", 60)

    # Writes of its last turn come to their end.
    def is_quiet():
        begun = written_bytes(outside)
        time.sleep(QUIET_SECONDS)
        return written_bytes(outside) == begun
    eventually(is_quiet, f"{QUIET_SECONDS} s without a byte", 60)


def test_the_units_restrictions_leave_guest_processes_their_own(outside):
    metrics = outside.metrics()

    assert metrics["hangar_guest_system_call_filter"] == 1
    assert metrics["hangar_guest_landlock_version"] == landlock_version()
    status = pathlib.Path(f"/proc/{outside.process.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
