"""`hangar` as a person at a terminal meets it: exit codes, standard output, standard error."""
import json
import subprocess

import pytest

from airways import flight
from host import BINARY


def hangar(*arguments, stdin="", tmp_path=None, kubeconfig=None):
    cache = [f"--module-cache-dir={tmp_path / 'modules'}", "--log-level=error"] if tmp_path else []
    flags = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    return subprocess.run([str(BINARY), *arguments, *cache, *flags], input=stdin, capture_output=True, text=True, timeout=120)


def thing(behaviour="basic", namespace="default", **spec):
    return json.dumps({"apiVersion": "e2e.hangar.dev/v1", "kind": "Thing", "metadata": {"name": "it", "namespace": namespace, "uid": "1"},
                       "spec": {"behaviour": behaviour, **spec}})


def test_version_is_printed():
    done = hangar("version")

    assert done.returncode == 0 and done.stdout.startswith("hangar ")


@pytest.mark.parametrize("arguments, says", [
    ([], "subcommand"), (["fly"], "subcommand"), (["host", "--no-such-flag"], "no-such-flag"), (["host", "--log-level=loud"], "debug, info, warning, error"),
    (["host", "--config=/no/such/file"], "/no/such/file"), (["run-flight"], "MODULE")])
def test_a_wrong_command_line_is_exit_code_2_and_says_why(arguments, says):
    done = hangar(*arguments)

    assert done.returncode == 2 and says in done.stderr and done.stdout == ""


def test_a_host_without_a_cluster_says_what_it_looked_for(tmp_path):
    done = hangar("host", f"--kubeconfig={tmp_path / 'none'}", tmp_path=tmp_path)

    assert done.returncode == 1 and str(tmp_path / "none") in done.stderr


def test_a_flight_runs_offline_and_prints_what_it_would_apply(tmp_path):
    done = hangar("run-flight", flight("behave"), stdin=thing(data={"a": "b"}), tmp_path=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "---\napiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: it\n"


@pytest.mark.parametrize("spec, says", [
    ({"behaviour": "basic", "exitCode": 3, "stderr": "this is why"}, "this is why"),
    ({"behaviour": "raw", "stdout": "hello"}, "input must be resource"),
    ({"behaviour": "lookup", "lookup": {"apiVersion": "v1", "kind": "Secret", "name": "x"}}, "access to the cluster has not been granted")])
def test_a_flight_that_fails_is_exit_code_1_and_says_why(tmp_path, spec, says):
    done = hangar("run-flight", flight("behave"), stdin=thing(**spec), tmp_path=tmp_path)

    assert done.returncode == 1 and says in done.stderr and done.stdout == ""


def test_a_flight_may_look_up_what_the_matchers_allow(cluster, namespace, tmp_path):
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": namespace}, "stringData": {"key": "first"}})
    resource = thing("lookup", namespace, lookup={"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": namespace})

    refused = hangar("run-flight", flight("behave"), "--cluster-access", stdin=resource, tmp_path=tmp_path, kubeconfig=cluster.kubeconfig)
    allowed = hangar("run-flight", flight("behave"), "--cluster-access", "--resource-access=Secret", stdin=resource, tmp_path=tmp_path,
                     kubeconfig=cluster.kubeconfig)

    assert refused.returncode == 1 and "cannot access resource outside of target release ownership" in refused.stderr
    assert allowed.returncode == 0 and "key: Zmlyc3Q=" in allowed.stdout, allowed.stderr


def test_diff_shows_what_would_change_and_changes_nothing(cluster, namespace, tmp_path):
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": namespace}, "data": {"a": "old", "c": "d"}})

    done = hangar("run-flight", flight("behave"), "--diff", stdin=thing("basic", namespace, data={"a": "new"}), tmp_path=tmp_path,
                  kubeconfig=cluster.kubeconfig)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "-  a: old" in lines and "+  a: new" in lines and "   c: d" in lines
    assert cluster.get("v1", "ConfigMap", "it", namespace)["data"] == {"a": "old", "c": "d"}
