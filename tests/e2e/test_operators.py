"""Operators: long-running controllers, seen from outside."""
import base64
import itertools
import json
import pathlib
import re
import subprocess
import time

import pytest
import yaml

import operators
from airways import flight
from cluster import ROOT, ApiError, condition, eventually, never
from host import BINARY, Host, free_port
from kubelet import Kubelet
from operators import (
    EVERYTHING, OPERATOR, Run, allow, create_config_map, events_of, lines, logs, nonce, phase, send_nonce, send_round)


@pytest.fixture
def get(cluster, namespace):
    return lambda name: cluster.get(*OPERATOR, name, namespace)


# Life --------------------------------------------------------------------------------------------


def test_an_operator_runs_sleeps_and_says_so(cluster, host, namespace, operator, get):
    operator("watcher", f"watch={namespace}", sleep={"after": "100ms"})
    allow(cluster, namespace, *EVERYTHING)
    one = eventually(lambda: (lambda o: o if phase(o) == "Asleep" else None)(get("watcher")), "the operator sleeps", 60)
    status = one["status"]
    assert condition(one)["status"] == "True"
    assert condition(one, "Stalled")["status"] == "False"
    assert status["residentBytes"] == 0 and status["onDiskBytes"] > 0
    assert len(status["module"]["sha256"]) == 64 and status["restarts"] == 0


def test_a_sleeping_operator_wakes_for_what_it_watches(cluster, host, namespace, operator, get):
    allow(cluster, namespace, *EVERYTHING)
    operator("watcher", f"watch={namespace}", sleep={"after": "0s"})
    eventually(lambda: any(line.startswith("listed") for line in lines(host, "watcher", namespace)), "it listed", 60)
    eventually(lambda: phase(get("watcher")) == "Asleep", "it sleeps", 30)
    for index in range(5):
        create_config_map(cluster, f"one-{index}", namespace)
        eventually(lambda: f"changed one-{index}" in lines(host, "watcher", namespace), "the guest heard of it")
    cluster.delete("v1", "ConfigMap", "one-0", namespace)
    eventually(lambda: "deleted one-0" in lines(host, "watcher", namespace), "the guest heard of the deletion")
    metrics = host.metrics()
    assert metrics["hangar_operator_suspends_total"] > 0
    assert metrics["hangar_operator_resume_seconds_count"] > 0


def test_a_sleeping_operator_wakes_for_its_own_delays(host, namespace, operator):
    operator("clock", "tick=300,4", "exit=0", sleep={"after": "0s"})
    eventually(lambda: lines(host, "clock", namespace)[-1:] == ["tick 4"], "four ticks")
    assert lines(host, "clock", namespace) == ["tick 1", "tick 2", "tick 3", "tick 4"]


def test_memory_is_what_it_was_after_sleep(host, namespace, operator):
    operator("keeper", "heap=512", "sleep=300", "check", "sleep=300", "check", "exit=0", sleep={"after": "0s"})
    eventually(lambda: lines(host, "keeper", namespace).count("heap of 512 KiB is intact") == 2, "both checks")


def test_an_operator_of_the_cpp_sdk_keeps_a_copy_up_to_date(cluster, namespace, operator, get):
    allow(cluster, namespace, *EVERYTHING)
    operator("mirror", wasm="label_mirror", env=[{"name": "NAMESPACE", "value": namespace}], sleep={"after": "0s"})
    source = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "source", "namespace": namespace, "labels": {"mirror-to": "copy"}}, "data": {"step": "1"}}
    cluster.create(source)

    def is_copied(step):
        copy = cluster.get("v1", "ConfigMap", "copy", namespace)
        return copy is not None and copy["data"] == {"step": step} and copy["metadata"]["annotations"]["mirror-of"] == "source"

    eventually(lambda: is_copied("1"), "there is a copy", 60)
    eventually(lambda: phase(get("mirror")) == "Asleep", "it sleeps", 30)
    cluster.patch("v1", "ConfigMap", "source", {"data": {"step": "2"}}, namespace)
    eventually(lambda: is_copied("2"), "the copy has what is new")


def test_what_the_cpp_example_may_not_do_yet_it_does_once_it_may(cluster, host, namespace, operator):
    allow(cluster, namespace, "get", "list", "watch")
    operator("mirror", wasm="label_mirror", env=[{"name": "NAMESPACE", "value": namespace}], sleep={"after": "0s"})
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "source", "namespace": namespace, "labels": {"mirror-to": "copy"}}, "data": {"step": "1"}})
    eventually(lambda: lines(host, "mirror", namespace).count("source to copy: 403") >= 2, "it was refused, and tried again", 60)
    assert cluster.get("v1", "ConfigMap", "copy", namespace) is None

    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/default-configmaps"
    cluster.request("PATCH", role, {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": list(EVERYTHING)}]},
                    "application/merge-patch+json")

    eventually(lambda: (cluster.get("v1", "ConfigMap", "copy", namespace) or {}).get("data") == {"step": "1"}, "there is a copy", 60)


def test_an_operator_that_looks_ahead_stays_in_memory_where_it_cannot_be_loaded_ahead(cluster, host, namespace, operator, get):
    # Every resume is too slow, so it stays in memory once its wakes are known to be near.
    allow(cluster, namespace, *EVERYTHING)
    operator("watcher", f"watch={namespace}", sleep={"policy": "Predictive", "after": "100ms", "wakeLatency": "0s"})
    eventually(lambda: any(line.startswith("listed") for line in lines(host, "watcher", namespace)), "it listed", 60)
    eventually(lambda: phase(get("watcher")) == "Asleep", "it sleeps before its wakes are known", 30)

    def sum_of(name):
        return sum(value for series, value in host.metrics().items() if series.startswith(name))
    def wake(times):
        for _ in range(times):
            name = f"one-{next(names)}"
            create_config_map(cluster, name, namespace)
            eventually(lambda: f"changed {name}" in lines(host, "watcher", namespace), "the guest heard of it")
            time.sleep(0.3)  # Longer than `after`.
    names = itertools.count()
    decisions, late = sum_of("hangar_operator_sleep_decisions_total"), sum_of("hangar_operator_late_wakes_total")
    wake(12)
    assert sum_of("hangar_operator_sleep_decisions_total") >= decisions + 6
    late_at_first = sum_of("hangar_operator_late_wakes_total")
    assert late_at_first > late, "it was asleep at its first events"
    wake(12)
    assert sum_of("hangar_operator_late_wakes_total") < late_at_first + 12, "it was in memory at an event"
    assert sum_of("hangar_operator_loads_ahead_total") == 0


def test_an_operator_that_may_not_sleep_stays(cluster, namespace, operator, get):
    allow(cluster, namespace, *EVERYTHING)
    operator("awake", f"watch={namespace}", sleep={"policy": "Never"})
    one = eventually(lambda: (lambda o: o if phase(o) == "Running" else None)(get("awake")), "it runs", 60)
    assert (condition(one, "CanSleep")["status"], condition(one, "CanSleep")["reason"]) == ("False", "Policy")
    never(lambda: phase(get("awake")) == "Asleep", "it sleeps", 3)


def test_a_guest_that_its_timer_wakes_for_nothing_is_named(cluster, host, namespace, operator, get):
    allow(cluster, namespace, *EVERYTHING)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}})
    operator("idle", "tick=500", sleep={"after": "0s"})
    operator("reads", *["sleep=500", f"get={path}/none"] * 500, sleep={"after": "0s"})
    operator("stops", "tick=500,24", "tick=3600000", sleep={"after": "0s"})
    operator("writes", *["sleep=500", f"request=POST,{path},{body}"] * 500, sleep={"after": "0s"})

    def restless(name):
        return condition(get(name), "Restless")

    def periods():
        metrics = host.metrics()
        found = {name: metrics.get(f'hangar_controller_restless_period_seconds{{controller="{namespace}/{name}"}}')
                 for name in ("idle", "reads", "stops", "writes")}
        return metrics["hangar_operator_restless"], {name: period for name, period in found.items() if period}

    eventually(lambda: restless("stops").get("status") == "True", "the timer is noticed before it stops", 90)
    idle = eventually(lambda: (lambda seen: seen if seen.get("status") == "True" else None)(restless("idle")), "it is restless", 60)
    assert idle["reason"] == "IdleTimer" and idle["observedGeneration"] == 1
    told = re.search(r"a timer of the guest wakes it every (\d+)ms, ", idle["message"])
    assert told and 500 <= int(told[1]) < 1000, idle
    eventually(lambda: restless("reads").get("status") == "True", "reads alone are nothing", 60)
    eventually(lambda: restless("stops").get("status") == "False", "a timer that has stopped wakes nobody", 60)
    assert restless("stops")["reason"] == "NoIdleTimer"

    count, named = periods()
    assert set(named) == {"idle", "reads"} and count >= 2
    assert named["idle"] == pytest.approx(int(told[1]) / 1000)
    eventually(lambda: lines(host, "writes", namespace).count(f"POST {path}: 201") > 25, "it has written at each of many wakes", 60)
    assert restless("writes") == {}
    assert restless("idle") == idle, "it is not written again"


def test_a_guest_that_ends_has_completed(host, namespace, operator, get):
    operator("done", "print=hello", "exit=0")
    one = eventually(lambda: (lambda o: o if phase(o) == "Completed" else None)(get("done")), "it completed", 60)
    assert condition(one)["reason"] == "Completed"
    assert lines(host, "done", namespace) == ["hello"]


def test_deleting_an_operator_ends_it(cluster, host, namespace, operator, get):
    operator("ticker", "tick=100")
    eventually(lambda: "tick 2" in lines(host, "ticker", namespace), "it ticks", 60)
    cluster.delete(*OPERATOR, "ticker", namespace)
    eventually(lambda: logs(host, "ticker", namespace) == "", "its output is gone")
    never(lambda: logs(host, "ticker", namespace), "it prints again", 1)


def test_a_changed_operator_takes_over(cluster, host, namespace, operator):
    operator("changing", "print=before", "wait")
    eventually(lambda: "before" in lines(host, "changing", namespace), "the first runs", 60)
    cluster.patch(*OPERATOR, "changing", {"spec": {"args": ["print=after", "wait"]}}, namespace)
    eventually(lambda: lines(host, "changing", namespace)[-1:] == ["after"], "the second runs")


def talker(tmp_path, text):
    """A module that prints `text` once and then waits for ever, in base64."""
    source = tmp_path / "talker.wat"
    source.write_text(f"""(module
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
      (memory (export "memory") 1)
      (data (i32.const 64) "{text}\\n")
      (func (export "_start")
        (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const {len(text) + 1}))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (drop (call $delay (i64.const -1))))
      (func (export "allocate") (param i32) (result i32) (i32.const 1024))
      (func (export "wakeup") (param i64 i32 i32 i32)))""")
    subprocess.run(["wat2wasm", str(source), "-o", str(source.with_suffix(".wasm"))], check=True)
    return base64.b64encode(source.with_suffix(".wasm").read_bytes()).decode()


def test_a_module_in_a_config_map_is_replaced_as_soon_as_it_changes(cluster, host, namespace, operator, get, tmp_path):
    def says(name, text):
        eventually(lambda: lines(host, name, namespace)[-1:] == [text], f"{name} says {text}", 60)

    def content(text):
        return {"binaryData": {"module": talker(tmp_path, text)}}

    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code", "namespace": namespace}, **content("one")})
    for name in ("first", "second"):
        operator(name, module={"configMap": {"name": "code"}}, sleep={"after": "0s"})
        says(name, "one")
    cluster.patch("v1", "ConfigMap", "code", content("two"), namespace)
    for name in ("first", "second"):
        says(name, "two")
    # A ConfigMap without a module changes nothing.
    cluster.patch("v1", "ConfigMap", "code", {"binaryData": {"module": base64.b64encode(b"none").decode()}}, namespace)
    eventually(lambda: condition(get("first"), "Stalled").get("status") == "True", "it is stalled")
    assert condition(get("first"))["status"] == "True"
    cluster.patch("v1", "ConfigMap", "code", content("three"), namespace)
    says("first", "three")
    eventually(lambda: condition(get("first"), "Stalled").get("status") == "False", "it is not stalled any more")
    # The host does not watch it any more once no operator runs it.
    for name in ("first", "second"):
        cluster.delete(*OPERATOR, name, namespace)
        eventually(lambda: logs(host, name, namespace) == "", "it is gone")


def test_a_swap_of_the_module_misses_no_event(cluster, host, namespace, operator):
    allow(cluster, namespace, *EVERYTHING)
    module = pathlib.Path(operators.flight("operator_behave").removeprefix("file://")).read_bytes()

    def content(number):
        section = b"\x03was" + bytes([number])  # A custom section: another module that does the same.
        return {"binaryData": {"module": base64.b64encode(module + bytes([0, len(section)]) + section).decode()}}

    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code", "namespace": namespace}, **content(0)})
    operator("watcher", f"watch={namespace}", module={"configMap": {"name": "code"}}, sleep={"after": "0s"})
    eventually(lambda: any(line.startswith("listed") for line in lines(host, "watcher", namespace)), "it has listed", 60)
    made = 0
    for swap in range(1, 6):
        cluster.patch("v1", "ConfigMap", "code", content(swap), namespace)
        began = len([line for line in lines(host, "watcher", namespace) if line.startswith("listed")])
        while len([line for line in lines(host, "watcher", namespace) if line.startswith("listed")]) == began:
            create_config_map(cluster, f"made-{made}", namespace)
            made += 1
            assert made < 2000, "it is never swapped"
    create_config_map(cluster, "last", namespace)
    eventually(lambda: "changed last" in lines(host, "watcher", namespace), "the last is heard of")

    said = lines(host, "watcher", namespace)
    listed = max(at for at, line in enumerate(said) if line.startswith("listed"))
    heard = {line.removeprefix("changed ") for line in said[listed:] if line.startswith("changed ")}
    others = len(cluster.list("v1", "ConfigMap", namespace)) - made - 1
    known = int(said[listed].removeprefix("listed "))
    unheard = [f"made-{number}" for number in range(made) if f"made-{number}" not in heard]
    assert known >= others + len(unheard), f"{known} were there when it listed: {unheard} are neither among them nor heard of"


def test_a_module_that_cannot_be_had_leaves_what_runs_alone(cluster, host, namespace, operator, get):
    operator("steady", "tick=100")
    eventually(lambda: "tick 2" in lines(host, "steady", namespace), "it ticks", 60)
    cluster.patch(*OPERATOR, "steady", {"spec": {"module": {"url": "file:///no/such/module.wasm"}}}, namespace)
    eventually(lambda: condition(get("steady"), "Stalled").get("status") == "True", "it is stalled")
    seen = len(lines(host, "steady", namespace))
    eventually(lambda: len(lines(host, "steady", namespace)) > seen, "the old guest goes on")


# What it prints, from afar ------------------------------------------------------------------------


def from_afar(kubeconfig, tmp_path, *arguments):
    """`hangar logs` on a machine without any files of the host."""
    return [str(BINARY), "logs", *arguments, f"--kubeconfig={kubeconfig}", f"--module-cache-dir={tmp_path / 'elsewhere'}"]


def run_from_afar(*arguments):
    return subprocess.run(from_afar(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)


def texts(printed):
    return [line.split(" ", 2)[2] for line in printed.splitlines()]


def test_logs_finds_an_operator_and_knows_a_silent_one(cluster, host, namespace, operator, get, tmp_path):
    config = yaml.safe_load(pathlib.Path(cluster.kubeconfig).read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    kubeconfig = tmp_path / "kubeconfig.yaml"
    kubeconfig.write_text(yaml.safe_dump(config))
    # As in the host's own pod.
    here = [f"--kubeconfig={kubeconfig}", f"--module-cache-dir={host.directory / 'cache'}", f"--pod={'/'.join(operators.HOST_POD)}"]

    def run(*arguments):
        return subprocess.run([str(BINARY), "logs", *arguments, *here], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)

    operator("talks", "print=one", "print=two", "wait")
    operator("silent", "wait")
    eventually(lambda: lines(host, "talks", namespace) == ["one", "two"], "it has printed", 60)
    eventually(lambda: get("silent").get("status", {}).get("pod"), "its status says where the host is", 60)
    for arguments in (["-n", namespace], ["--namespace", namespace], []):
        done = run("talks", *arguments)
        assert done.returncode == 0 and texts(done.stdout) == ["one", "two"], (arguments, done.stderr)
    done = run("talks", "--tail=0")
    assert done.returncode == 0 and done.stdout == ""
    done = run("silent")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    done = run("nobody")
    assert done.returncode == 1 and "nobody" in done.stderr
    assert "leader-elect" not in subprocess.run([str(BINARY), "logs", "--help"], stdout=subprocess.PIPE, text=True).stdout

    follower = subprocess.Popen([str(BINARY), "logs", "silent", "-f", *here], stdout=subprocess.PIPE, text=True)
    try:
        cluster.patch(*OPERATOR, "silent", {"spec": {"args": ["print=at last", "wait"]}}, namespace)
        assert texts(follower.stdout.readline()) == ["at last"]
    finally:
        follower.terminate()
        follower.wait()


def test_what_an_operator_prints_can_be_read_from_anywhere(cluster, host, namespace, operator, get, tmp_path):
    operator("talks", "print=one", "print=two", "tick=200", sleep={"after": "0s"})
    operator("other", "print=mine", "wait")
    eventually(lambda: "tick 3" in lines(host, "talks", namespace), "it ticks", 60)
    eventually(lambda: get("talks").get("status", {}).get("pod") == "/".join(operators.HOST_POD), "its status says where the host is")
    kubelet = Kubelet(cluster, tmp_path, *operators.HOST_POD, host.log)
    try:
        done = run_from_afar(cluster.kubeconfig, tmp_path, "talks", "-n", namespace)
        assert done.returncode == 0, done.stderr
        here = lines(host, "talks", namespace)
        said = texts(done.stdout)
        assert said[:4] == ["one", "two", "tick 1", "tick 2"] and said == here[:len(said)], "all of it, and of nobody else"
        tail = run_from_afar(cluster.kubeconfig, tmp_path, "talks", "-n", namespace, "--tail=2")
        assert len(texts(tail.stdout)) == 2

        follower = subprocess.Popen(from_afar(cluster.kubeconfig, tmp_path, "talks", "-n", namespace, "--tail=1", "-f"),
                                    stdout=subprocess.PIPE, text=True)
        heard = texts("".join(follower.stdout.readline() for _ in range(6)))
        follower.terminate()
        follower.wait()
        first = int(heard[0].split()[1])
        assert heard == [f"tick {first + index}" for index in range(6)], "each line once, in order"
        assert any("sinceTime" in query and "follow" in query for query in kubelet.asked)

        # A user who may not read the host's log may not read this.
        stranger = tmp_path / "stranger.yaml"
        cluster.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "stranger"}})
        config = yaml.safe_load(pathlib.Path(cluster.kubeconfig).read_text())
        token = cluster.kubectl("create", "token", "stranger", "--namespace", namespace).strip()
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        stranger.write_text(yaml.safe_dump(config))
        refused = run_from_afar(stranger, tmp_path, "talks", "-n", namespace)
        assert refused.returncode == 1 and not refused.stdout
        assert "forbidden" in refused.stderr and "operators" in refused.stderr
        cluster.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles", {
            "metadata": {"name": "looks"}, "rules": [{"apiGroups": ["hangar.dev"], "resources": ["operators"], "verbs": ["get"]}]})
        cluster.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {
            "metadata": {"name": "looks"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looks"},
            "subjects": [{"kind": "ServiceAccount", "name": "stranger", "namespace": namespace}]})

        def refusal():
            done = run_from_afar(stranger, tmp_path, "talks", "-n", namespace)
            assert done.returncode == 1 and not done.stdout
            return "pods/log" in done.stderr and done.stderr
        assert "forbidden" in eventually(refusal, "it is the log that it may not read")
    finally:
        kubelet.close()

    nobody = run_from_afar(cluster.kubeconfig, tmp_path, "talks", "-n", namespace)
    assert nobody.returncode == 1 and operators.HOST_POD[1] in nobody.stderr, "the pod that is not there is named"
    absent = run_from_afar(cluster.kubeconfig, tmp_path, "nobody", "-n", namespace)
    assert absent.returncode == 1 and "nobody" in absent.stderr


# What a guest is given ---------------------------------------------------------------------------


def test_environment_and_files_come_from_the_namespace(cluster, host, namespace, operator):
    create_config_map(cluster, "settings", namespace, level="debug")
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": namespace},
                    "stringData": {"key": "hunter2"}})
    operator("given", "env=PLAIN", "env=LEVEL", "env=TOKEN", "env=ABSENT", "file=/etc/app/level", "file=/etc/token/key", "wait",
             env=[{"name": "PLAIN", "value": "a b"},
                  {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
                  {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "key"}}},
                  {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "none", "key": "key", "optional": True}}}],
             files=[{"path": "/etc/app", "configMap": {"name": "settings"}}, {"path": "/etc/token", "secret": {"name": "token"}}])
    eventually(lambda: len(lines(host, "given", namespace)) == 6, "all was printed", 60)
    assert lines(host, "given", namespace) == [
        "PLAIN=a b", "LEVEL=debug", "TOKEN=hunter2", "ABSENT is not set",
        "/etc/app/level: debug", "/etc/token/key: hunter2"]


def test_a_missing_secret_is_named_and_waited_for(cluster, host, namespace, operator, get):
    operator("waiting", "env=TOKEN", "wait",
             env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "late", "key": "key"}}}])
    eventually(lambda: "Secret late" in get("waiting").get("status", {}).get("lastError", ""), "the Secret is named", 60)
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late", "namespace": namespace},
                    "stringData": {"key": "here"}})
    eventually(lambda: lines(host, "waiting", namespace) == ["TOKEN=here"], "it started")


# Rights ------------------------------------------------------------------------------------------


def test_a_guest_has_the_rights_of_its_service_account_and_no_more(cluster, host, namespace, operator):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    operator("weak", f"get={path}", f"request=POST,{path},{{}}", "get=/api/v1/namespaces/kube-system/secrets",
             f"get={path}?resourceVersion=0", f"get={path}?watch=true", "wait")
    eventually(lambda: len(lines(host, "weak", namespace)) == 5, "all was refused", 60)
    for line in lines(host, "weak", namespace):
        assert ": 403" in line, line
        assert f"system:serviceaccount:{namespace}:default" in line, line


def test_operators_of_one_kind_share_one_watch(cluster, host, namespace, operator):
    allow(cluster, namespace, *EVERYTHING)
    count = 20
    for index in range(count):
        operator(f"sharing-{index}", f"watch={namespace}", sleep={"after": "0s"})
    for index in range(count):
        eventually(lambda: any(line.startswith("listed") for line in lines(host, f"sharing-{index}", namespace)),
                   f"operator {index} listed", 60)

    def watches():
        with_labels = cluster.request("GET", "/metrics").splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in with_labels
                   if line.startswith("apiserver_longrunning_requests{") and 'resource="configmaps"' in line
                   and 'verb="WATCH"' in line and 'group=""' in line)
    before = watches()
    create_config_map(cluster, "shared", namespace)
    for index in range(count):
        eventually(lambda: "changed shared" in lines(host, f"sharing-{index}", namespace), f"operator {index} heard of it")
    # The control plane's own components watch ConfigMaps too; twenty more watches would show.
    assert before < count


# Faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps, message", [
    (["panic=on purpose"], "on purpose"),
    (["trap"], "unreachable"),
    (["exit=7"], "exited with code 7"),
    (["loop"], "execution timeout"),
    (["sleep=10", "loop"], "execution timeout"),
    (["recurse"], "out of bounds memory access"),
    (["sleep=10", "trap"], "unreachable"),
], ids=lambda value: "_".join(value).replace("=", "-").replace(" ", "-") if isinstance(value, list) else None)
def test_a_guest_that_fails_is_started_again_and_named(cluster, host, namespace, operator, get, steps, message):
    operator("failing", *steps, limits={"cpuTimePerWake": "500ms"})
    one = eventually(lambda: (lambda o: o if o.get("status", {}).get("restarts", 0) > 0 else None)(get("failing")),
                     "it was started again", 90)
    if message != "on purpose":
        assert message in one["status"]["lastError"]
    warnings = [event for event in events_of(cluster, "failing", namespace) if event["reason"] == "GuestFailed"]
    assert warnings and warnings[0]["type"] == "Warning"


def test_a_guest_gets_no_more_memory_than_its_limit(host, namespace, operator, get):
    operator("modest", "heap=8192", "print=got it", "wait", limits={"memory": "16Mi"})
    operator("allowed", "heap=32768", "print=got it", "wait", limits={"memory": "64Mi"})
    operator("greedy", "heap=32768", "print=got it", "wait", limits={"memory": "16Mi"})
    for name in ("modest", "allowed"):
        eventually(lambda: "got it" in lines(host, name, namespace), f"{name} gets what it asks for", 60)
    eventually(lambda: get("greedy").get("status", {}).get("lastError"), "it failed", 60)
    assert "got it" not in lines(host, "greedy", namespace)


def test_a_module_that_cannot_sleep_stays_and_its_status_says_why(namespace, operator, get, tmp_path):
    source = tmp_path / "drops_elements.wat"
    source.write_text("""(module
      (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
      (memory (export "memory") 1)
      (table 2 funcref)
      (func $f)
      (elem $e func $f)
      (func (export "_start") (elem.drop $e) (drop (call $delay (i64.const -1))))
      (func (export "allocate") (param i32) (result i32) (i32.const 1024))
      (func (export "wakeup") (param i64 i32 i32 i32)))""")
    module = tmp_path / "drops_elements.wasm"
    subprocess.run(["wat2wasm", str(source), "-o", str(module)], check=True)
    operator("stays", module={"url": str(module)}, sleep={"after": "0s"})
    eventually(lambda: condition(get("stays"), "Ready").get("status") == "True", "it is at work", 60)
    one = get("stays")
    assert phase(one) == "Running"
    assert "elem.drop" in one["status"]["module"]["staysResidentBecause"]
    assert condition(one, "CanSleep")["status"] == "False" and condition(one, "CanSleep")["reason"] == "Module"
    assert "elem.drop" in condition(one, "CanSleep")["message"]


def test_a_flood_of_output_is_cut(host, namespace, operator):
    operator("chatty", "log=100000", "wait", limits={"logBytes": "8Ki"})
    eventually(lambda: any("more bytes were dropped" in line for line in lines(host, "chatty", namespace)),
               "it was cut", 60)
    assert len(logs(host, "chatty", namespace)) < 64 * 1024


def test_a_flood_over_many_wakes_is_cut(host, namespace, operator, get, tmp_path):
    module = tmp_path / "flood.wasm"
    subprocess.run(["wat2wasm", str(ROOT / "tests/guests/kube_runtime_log_flood.wat"), "-o", str(module)], check=True)
    began = time.monotonic()
    operator("flood", module={"url": str(module)}, limits={"logBytes": "1Ki"})
    eventually(lambda: get("flood").get("status", {}).get("wakes", 0) >= 100, "it has had many turns", 90)
    told = [json.loads(line) for line in host.log.read_text().splitlines() if '"output"' in line and namespace in line]
    kept = [line["text"] for line in told if "more bytes were dropped" not in line["text"]]
    # A burst, the output since then, and the last line.
    assert sum(map(len, kept)) <= 1024 * (4 + time.monotonic() - began + 1)
    assert kept and len(told) > len(kept), "it says that it was cut"


def test_requests_are_limited(cluster, host, namespace, operator):
    operator("hasty", "requests=30,/version", "wait", limits={"requestsPerSecond": 10})
    began = time.monotonic()
    eventually(lambda: lines(host, "hasty", namespace), "all were answered", 60)
    assert lines(host, "hasty", namespace) == ["requests: 30 of 200"]
    assert time.monotonic() - began > 0.5, "thirty requests at ten a second, with a burst of twenty"


@pytest.mark.parametrize("content, message", [
    (b"not wasm at all", "wasm"),
    (b"", ""),
], ids=["no-wasm", "empty"])
def test_what_is_no_module_is_named(tmp_path, namespace, operator, get, cluster, content, message):
    bad = tmp_path / "bad.wasm"
    bad.write_bytes(content)
    operator("wrong", module={"url": f"file://{bad}"})
    one = eventually(lambda: (lambda o: o if condition(o, "Stalled").get("status") == "True" else None)(get("wrong")),
                     "it is stalled", 30)
    assert phase(one) == "Failed"
    assert message in condition(one, "Stalled")["message"].lower()
    eventually(lambda: [e for e in events_of(cluster, "wrong", namespace) if e["reason"] == "OperatorStalled"], "an Event")


def test_a_flight_is_no_operator(namespace, operator, get):
    operator("flight", wasm="behave")
    one = eventually(lambda: (lambda o: o if condition(o, "Stalled").get("status") == "True" else None)(get("flight")),
                     "it is stalled", 120)
    assert "it seems to be a flight: name it in an Airway" in condition(one, "Stalled")["message"]


@pytest.mark.parametrize("guest, says", [
    ("sleep_for_ever", "it seems to be an ordinary WASI program"), ("machine_packed", "it seems to be a state machine"),
    ("missing_start", "it seems to be a library")])
def test_what_could_never_be_answered_is_refused_before_it_runs(cluster, namespace, operator, get, wat, guest, says):
    operator("other", module={"url": wat(guest)})

    one = eventually(lambda: (lambda o: o if condition(o, "Stalled").get("status") == "True" else None)(get("other")), "it is stalled", 120)

    assert phase(one) == "Failed" and says in condition(one, "Stalled")["message"], one["status"]
    assert "lastError" not in one["status"] and condition(one, "CanSleep").get("status") != "True", "it never ran"
    eventually(lambda: [e for e in events_of(cluster, "other", namespace) if e["reason"] == "OperatorStalled" and says in e["message"]], "an Event")


def test_hostile_guests_end_in_a_status_and_the_host_goes_on(cluster, host, namespace, operator, get, tmp_path):
    names = {}
    for path in sorted((ROOT / "tests/guests").glob("kube_runtime_*.wat")):
        module = tmp_path / f"{path.stem}.wasm"
        subprocess.run(["wat2wasm", str(path), "-o", str(module)], check=True)
        names[path.stem] = path.stem.replace("_", "-")
        operator(names[path.stem], module={"url": str(module)}, limits={"cpuTimePerWake": "300ms", "memory": "16Mi"})

    def verdict(one):
        status = (one or {}).get("status", {})
        if condition(one, "Stalled").get("status") == "True":
            return "refused"
        if status.get("lastError"):
            return "fails"
        return {"Running": "works", "Asleep": "works", "Completed": "completes"}.get(status.get("phase"))

    # All others fail. Those that break the contract in `allocate` never allocate here: they wait for a delay only.
    expected = dict.fromkeys(("allocate_missing", "bad_pointers", "files", "idle_not_run", "memory_missing", "run_not_idle",
                              "wakeup_missing", "wakeup_type"), "refused")
    expected |= dict.fromkeys(("allocate_exits", "allocate_garbage", "allocate_loops", "allocate_null", "allocate_traps", "journal", "large_requests",
                               "many_requests", "process", "reactor", "reactor_alone", "waits_for_nothing"), "completes")
    expected |= dict.fromkeys(("idle", "log_flood", "long_line", "serves", "webhooks"), "works")
    for stem, name in names.items():
        outcome = expected.get(stem.removeprefix("kube_runtime_"), "fails")
        eventually(lambda: verdict(get(name)) == outcome, f"{stem}: {outcome}", 60)

    def said(stem):
        one = get(names[f"kube_runtime_{stem}"])
        return (condition(one, "Stalled").get("message", "") + " " + one["status"].get("lastError", "")).lower()
    for stem, words in (("wakeup_traps", "unreachable"), ("wakeup_loops", "timeout"), ("start_loops", "timeout"), ("wakeup_sleeps", "and sleep"),
                        ("bad_request", "do not lie in the guest's"), ("request_flood", "more than"),
                        ("wakeup_missing", "wakeup"), ("wakeup_type", "wakeup"), ("memory_missing", "memory")):
        eventually(lambda: words in said(stem), f"{stem} is named by {words}")

    operator("fine", "print=here", "exit=0")
    eventually(lambda: lines(host, "fine", namespace) == ["here"], "an ordinary one works")
    assert host.rss_bytes() < 512 << 20


def test_the_schema_refuses_what_cannot_work(cluster, namespace):
    for spec in ({}, {"module": {}}, {"module": {"url": "file:///a", "configMap": {"name": "b"}}},
                 {"module": {"url": "file:///a"}, "sleep": {"policy": "Sometimes"}}, {"module": {"url": "file:///a"}, "isolation": "Pod"}):
        with pytest.raises(ApiError) as error:
            cluster.create({"apiVersion": OPERATOR[0], "kind": OPERATOR[1],
                            "metadata": {"name": "refused", "namespace": namespace}, "spec": spec})
        assert error.value.status == 422


# Hosts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [["--sleep-after=0s"], ["--never-sleep"]], ids=["asleep", "resident"])
def test_the_published_ring_runs_from_a_directory(cluster, ring, tmp_path, flags):
    namespaces = ring(10)
    run = Run(cluster, tmp_path / "run", namespaces, *flags)
    try:
        for value in (1, 2, 3):
            send_round(cluster, namespaces, value, 60)
    finally:
        code = run.stop()
    assert code == 0, run.log.read_text()


def test_a_killed_host_begins_again_and_misses_nothing(cluster, ring, tmp_path):
    namespaces = ring(5)
    run = Run(cluster, tmp_path / "run", namespaces, "--sleep-after=0s")
    try:
        send_round(cluster, namespaces, 1, 60)
        for value in range(2, 6):
            run.kill()
            send_nonce(cluster, namespaces[0], value)
            run.start()
            for namespace in namespaces:
                eventually(lambda: nonce(cluster, namespace) == value, f"nonce {value} reaches {namespace}", 60)
    finally:
        run.stop()


def test_a_directory_that_is_wrong_is_named(cluster, tmp_path):
    def attempt(text):
        if text is not None:
            (tmp_path / "wasm_config.yaml").write_text(text)
        done = subprocess.run([str(BINARY), "run", str(tmp_path), f"--kubeconfig={cluster.kubeconfig}",
                               f"--module-cache-dir={tmp_path / 'cache'}", f"--bind-address=127.0.0.1:{free_port()}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1
        return done.stderr
    assert "wasm_config.yaml" in attempt(None)
    assert "document 1: name: is required" in attempt("wasm: ./a.wasm\n")
    assert "document 2: name: there is another" in attempt("{name: a, wasm: b}\n---\n{name: a, wasm: b}\n")
    assert "document 1: env[0].valueFrom: A " in attempt("{name: a, wasm: b, env: [{name: A, valueFrom: {}}]}\n")
    assert "a: " in attempt("{name: a, wasm: ./none.wasm}\n")


def test_only_modules_that_the_list_allows_are_run(own_cluster, tmp_path, own_namespace):
    url = flight(operators.BEHAVE)
    host = Host(own_cluster.kubeconfig, tmp_path / "host", f"--module-allow-list=https://example.com/*,{url}")
    try:
        own_cluster.create(operators.manifest("allowed", own_namespace, "print=up", "wait", "--", "tick=3600000"))
        own_cluster.create(operators.manifest("refused", own_namespace, wasm=operators.RING))
        eventually(lambda: "up" in lines(host, "allowed", own_namespace), "what is allowed runs", 60)
        eventually(lambda: condition(own_cluster.get(*OPERATOR, "refused", own_namespace), "Stalled").get("status") == "True",
                   "what is not allowed does not run", 60)
        told = condition(own_cluster.get(*OPERATOR, "refused", own_namespace), "Stalled")
        assert told["message"] == f'module "{flight(operators.RING)}" not allowed'
    finally:
        for name in ("allowed", "refused"):
            own_cluster.delete(*OPERATOR, name, own_namespace)
        host.stop()


def test_a_memory_budget_puts_the_idle_to_sleep(own_cluster, tmp_path, own_namespace):
    allow(own_cluster, own_namespace, *EVERYTHING)
    host = Host(own_cluster.kubeconfig, tmp_path / "host", "--operator-memory-budget=4Mi")
    try:
        for index in range(8):
            own_cluster.create(operators.manifest(f"big-{index}", own_namespace, "heap=1024", "print=up", "wait", "--", "tick=3600000",
                                                  sleep={"after": "1h"}))
        for index in range(8):
            eventually(lambda: "up" in lines(host, f"big-{index}", own_namespace), "it started", 60)
        eventually(lambda: host.metrics()["hangar_operator_resident_bytes"] <= 4 * 1024 * 1024, "the budget holds")
        assert host.metrics()["hangar_operators_resident"] < 8
    finally:
        for index in range(8):
            own_cluster.delete(*OPERATOR, f"big-{index}", own_namespace)
        host.stop()
