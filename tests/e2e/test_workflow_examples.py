"""The tutorial and the examples of workflows, followed step by step."""
import os
import re
import subprocess

import pytest

import workflows
from cluster import ROOT, eventually
from host import BINARY
from operators import events_of
from workflows import WORKFLOW, hangar, reaches

TUTORIAL = ROOT / "docs/tutorials/workflow.md"


def npm_package(package):
    """The place where `npm install` would put it, for a machine without npm."""
    return subprocess.run([ROOT / "dev/npm-package.sh", package], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def environment(package, **more):
    cache = os.environ.get("HANGAR_CACHE_DIR", os.path.expanduser("~/.cache/hangar"))
    return {**os.environ, "PATH": f"{cache}/toolchain/bin:{os.environ['PATH']}", "NODE_PATH": npm_package(package), **more}


def files_of(page):
    """Each block that follows its file's name: name -> text."""
    return dict(re.findall(r"^`([\w./]+)`:\n```\w+\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path):
    """The tutorial's folder, as a reader has it."""
    for name, text in files_of(TUTORIAL).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def command_line(host, folder, *arguments, package="xstate@5.33.3"):
    """Shares its compiled code with the host."""
    return subprocess.run([str(BINARY), *arguments, f"--module-cache-dir={host.directory / 'cache'}"], cwd=folder, env=environment(package), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)


def test_the_tutorials_machine_runs_without_a_cluster(host, folder):
    done = command_line(host, folder, "machine", "run", ".", '--input={"database": "orders"}', "--events=events")

    assert done.returncode == 0, done.stderr
    told = [word for line in done.stdout.splitlines() for word in re.findall(r"idle|dumping|failing|done|RUN_JOB", line)]
    assert told[:3] == ["idle", "dumping", "RUN_JOB"] and "failing" in told and told[-1] == "done", done.stdout


def test_a_config_map_is_named_after_its_directory_as_far_as_a_name_goes(host, tmp_path):
    folder = tmp_path / ("My_" + "b" * 249 + "-cd")
    folder.mkdir()
    (folder / "index.js").write_text("export const handle_event = (state, event) => '{\"newState\": \"on\"}';")

    built = command_line(host, folder, "machine", "build", ".")

    assert built.returncode == 0, built.stderr
    assert f"name: my-{'b' * 249}\n" in built.stdout, built.stdout


def test_the_tutorials_workflow_runs_in_a_cluster(cluster, host, namespace, folder):
    built = command_line(host, folder, "machine", "build", ".", "--name=backup")
    assert built.returncode == 0, built.stderr
    cluster.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", stdin=built.stdout)
    for name in ("rights.yaml", "workflow.yaml"):
        text = (folder / name).read_text().replace("namespace: default", f"namespace: {namespace}")
        cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=text)

    one = reaches(cluster, namespace, "orders", "done")

    assert one["output"] == {"database": "orders", "failures": 0}
    jobs = cluster.list("batch/v1", "Job", namespace)
    assert [job["spec"]["template"]["spec"]["containers"][0]["command"] for job in jobs] == [["pg_dump", "orders"]]
    shown = hangar(cluster, host, "workflow", "show", "orders", "-n", namespace)
    assert shown.returncode == 0 and "dumping" in shown.stdout, shown.stderr


def test_the_tutorials_workflow_gets_stuck_without_rights_and_goes_on(cluster, host, namespace, folder):
    """Its delays are shortened, and its account may not create Jobs at first."""
    machine = folder / "src/machine.ts"
    machine.write_text(machine.read_text().replace("5000", "100").replace("timeout: '30m'", "timeout: '30m', retry: { attempts: 1 }"))
    built = command_line(host, folder, "machine", "build", ".", "--name=backup")
    cluster.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", stdin=built.stdout)
    workflows.allow(cluster, namespace, ("", "events"))
    cluster.create(workflows.workflow("orders", namespace, "backup"))

    reaches(cluster, namespace, "orders", "stuck")
    eventually(lambda: {"BackupStuck", "ActionFailed"} <= {event["reason"] for event in events_of(cluster, "orders", namespace)}, "people are told")
    shown = hangar(cluster, host, "workflow", "show", "orders", "-n", namespace)
    assert re.search("ActionFailed: RUN_JOB#.*forbidden", shown.stdout), shown.stdout + shown.stderr
    workflows.allow(cluster, namespace)
    assert hangar(cluster, host, "workflow", "signal", "orders", "RETRY", "-n", namespace).returncode == 0

    assert reaches(cluster, namespace, "orders", "done")["output"]["failures"] == 0


def test_the_provisioner_builds_from_its_folder(cluster, host, namespace):
    """The same steps as examples/database-provisioner/run.sh, on the control plane of these tests."""
    example = ROOT / "examples/database-provisioner"
    built = command_line(host, ROOT, "machine", "build", str(example), "--name=database-provisioner", package="xstate@4.38.3")
    assert built.returncode == 0, built.stderr
    cluster.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", stdin=built.stdout)
    for name in ("rights.yaml", "workflow.yaml", "failing.yaml"):
        text = (example / name).read_text().replace("namespace: default", f"namespace: {namespace}")
        cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=text)

    reaches(cluster, namespace, "orders", "ready")
    reaches(cluster, namespace, "refused", "failed", 90)
    assert cluster.get(*WORKFLOW, "refused", namespace)["status"]["failed"] is True
