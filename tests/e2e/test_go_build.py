"""`hangar build go`: an operator as kubebuilder lays one out (examples/memo), its main unchanged, as a module and as a program."""
import datetime
import json
import os
import shutil
import struct
import subprocess
import time
import zipfile

import pytest

import memos
from airways import GUESTS
from cluster import condition, eventually
from host import Host
from memos import COMPILED, CONFIG_MAP, MEMO, SOURCE, SPEC, asleep, build, built, give_rights, make, resumes, text_of
from operators import OPERATOR, events_of, lines, logs, manifest
from registry import Registry

# Tests of one file that share a build run in one process.
pytestmark = pytest.mark.xdist_group("go_build")


def refusal(*arguments, **options):
    """The message with which it refuses to build."""
    done = build(*arguments, **options)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    return done.stderr


def file_name(keyword):
    return keyword.replace("_", ".", 1)


def write(directory, **files):
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / file_name(name)).write_text(text)
    return directory


def publish(proxy, module, version, **files):
    """Puts a module into a directory that the go command takes for a module proxy."""
    at = proxy / module / "@v"
    write(at, **{f"{version}.info": json.dumps({"Version": version}), f"{version}.mod": files["go_mod"]})
    with zipfile.ZipFile(at / f"{version}.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{module}@{version}/{file_name(name)}", text)


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return memos.build_native(SOURCE, "./cmd", tmp_path_factory.mktemp("native") / "memo")


@pytest.fixture
def rights(cluster, namespace):
    give_rights(cluster, namespace)


def scenario(cluster, namespace):
    """An operator's work on one memo from creation to deletion; returns its output for comparison."""
    make(cluster, namespace, "note", "buy some milk")
    eventually(lambda: text_of(cluster, namespace, "note") == "buy some milk", "the text is kept", 60)
    cluster.patch(*MEMO, "note", {"spec": {"text": "buy bread"}}, namespace)
    eventually(lambda: text_of(cluster, namespace, "note") == "buy bread", "the ConfigMap follows", 60)
    # The operator corrects another client's change of the child.
    cluster.patch(*CONFIG_MAP, "note", {"data": {"text": "buy nothing"}}, namespace)
    eventually(lambda: text_of(cluster, namespace, "note") == "buy bread", "the change is undone", 60)
    memo = eventually(lambda: (lambda m: m if m.get("status", {}).get("observedGeneration") == 2 else None)(
        cluster.get(*MEMO, "note", namespace)), "the status follows", 60)
    kept = cluster.get(*CONFIG_MAP, "note", namespace)
    owner = kept["metadata"]["ownerReferences"][0]
    assert owner["uid"] == memo["metadata"]["uid"]
    eventually(lambda: any(event["reason"] == "Kept" for event in events_of(cluster, "note", namespace)), "there is an Event", 60)
    cluster.delete(*MEMO, "note", namespace)
    eventually(lambda: cluster.get(*MEMO, "note", namespace) is None, "the finalizer lets go", 60)
    return {"memo": {"spec": memo["spec"], "status": memo["status"], "finalizers": memo["metadata"]["finalizers"]},
            "configMap": {"data": kept["data"], "owner": {key: owner[key] for key in ("kind", "name", "controller", "blockOwnerDeletion")}}}


@pytest.fixture
def memo(cluster, namespace, operator, rights, built):
    operator("memo", "--leader-elect", sleep={"after": "200ms"}, **SPEC)
    asleep(cluster, namespace, COMPILED)


def test_an_unchanged_main_does_the_same_as_a_module_and_as_a_program(cluster, host, namespace, memo, native):
    as_module = scenario(cluster, namespace)

    status = asleep(cluster, namespace)["status"]
    assert (status["residentBytes"], status["restarts"]) == (0, 0)
    assert condition(cluster.get(*OPERATOR, "memo", namespace), "CanSleep")["status"] == "True"
    cluster.delete(*OPERATOR, "memo", namespace)
    eventually(lambda: cluster.get(*OPERATOR, "memo", namespace) is None, "the module is gone")

    log = host.directory / "native.log"
    with memos.as_process(native, "--metrics-bind-address=0", "--health-probe-bind-address=0", cluster=cluster, namespace=namespace, log=log):
        as_program = scenario(cluster, namespace)
    assert as_module == as_program, log.read_text()


def test_sleep_after_every_turn_makes_no_difference(cluster, host, namespace, operator, rights, built):
    results, slept = [], []
    for sleep in ({"after": "0s"}, {"policy": "Never"}):
        operator("memo", sleep=sleep, **SPEC)
        eventually(lambda: condition(cluster.get(*OPERATOR, "memo", namespace)).get("status") == "True", "it runs", COMPILED)
        results.append(scenario(cluster, namespace))
        assert cluster.get(*OPERATOR, "memo", namespace)["status"].get("restarts", 0) == 0
        slept.append(resumes(host, namespace))
        cluster.delete(*OPERATOR, "memo", namespace)
        eventually(lambda: cluster.get(*OPERATOR, "memo", namespace) is None, "it is gone")

    assert results[0] == results[1]
    assert slept[0] > slept[1] == 0


def test_on_the_host_after_a_killed_one_it_misses_nothing(own_cluster, own_namespace, built, tmp_path):
    give_rights(own_cluster, own_namespace)
    host = Host(own_cluster.kubeconfig, tmp_path / "host", "--features=operators")
    own_cluster.create(manifest("memo", own_namespace, sleep={"after": "200ms"}, **SPEC))
    for name in ("changed", "deleted", "untouched"):
        make(own_cluster, own_namespace, name, "before")
    for name in ("changed", "deleted", "untouched"):
        eventually(lambda: text_of(own_cluster, own_namespace, name) == "before", f"{name} is kept", COMPILED)
    asleep(own_cluster, own_namespace)

    host.kill()
    own_cluster.patch(*MEMO, "changed", {"spec": {"text": "after"}}, own_namespace)
    own_cluster.delete(*MEMO, "deleted", own_namespace)  # Its finalizer keeps it.
    own_cluster.delete(*CONFIG_MAP, "untouched", own_namespace)
    make(own_cluster, own_namespace, "new", "after")
    host.start()

    eventually(lambda: text_of(own_cluster, own_namespace, "changed") == "after", "the change is seen", 60)
    eventually(lambda: own_cluster.get(*MEMO, "deleted", own_namespace) is None, "the finalizer lets go", 60)
    eventually(lambda: text_of(own_cluster, own_namespace, "untouched") == "before", "the child is there again", 60)
    eventually(lambda: text_of(own_cluster, own_namespace, "new") == "after", "the new one is kept", 60)
    assert asleep(own_cluster, own_namespace)["status"]["restarts"] == 0
    own_cluster.delete(*OPERATOR, "memo", own_namespace)
    assert host.stop() == 0


def test_its_own_timers_and_events_wake_it(cluster, host, namespace, memo):
    make(cluster, namespace, "often", "look again", revisitSeconds=1)
    visits = lambda: cluster.get(*MEMO, "often", namespace).get("status", {}).get("visits", 0)
    eventually(lambda: visits() >= 2, "it looks again by itself", 60)

    cluster.patch(*MEMO, "often", {"spec": {"revisitSeconds": 0}}, namespace)
    eventually(lambda: cluster.get(*MEMO, "often", namespace)["status"]["observedGeneration"] == 2, "it is told to stop", 60)
    asleep(cluster, namespace)
    make(cluster, namespace, "last", "one more")
    eventually(lambda: text_of(cluster, namespace, "last") == "one more", "it wakes for an event", 60)
    assert asleep(cluster, namespace)["status"]["restarts"] == 0


CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_seconds;

__attribute__((constructor)) static void map_file(void) {
  const int file = open(getenv("HANGAR_TEST_CLOCK"), O_RDONLY | O_CLOEXEC);
  void *const at = mmap(NULL, sizeof *ahead_seconds, PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) ahead_seconds = at;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  const int failed = (int)syscall(SYS_clock_gettime, clock, time);
  if (!failed && clock == CLOCK_REALTIME && ahead_seconds) time->tv_sec += *ahead_seconds;
  return failed;
}
"""


class Clock:
    """Sets the clock of the programs that have `env`."""

    def __init__(self, directory):
        source, library, self._file = directory / "clock.c", directory / "clock.so", directory / "clock"
        source.write_text(CLOCK)
        subprocess.run(["clang-19", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        self.set_ahead(datetime.timedelta())
        self.env = {"LD_PRELOAD": str(library), "HANGAR_TEST_CLOCK": str(self._file)}

    def set_ahead(self, by):
        """The time is that of this machine and `by`."""
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", int(by.total_seconds())))
        self.ahead = by

    def shows(self, text):
        """Whether that time is now, by this clock."""
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) + self.ahead
        return abs(now - datetime.datetime.fromisoformat(text[:19])) < datetime.timedelta(hours=1)


def test_a_clock_that_jumps_by_a_day_wakes_nobody_and_holds_up_nothing(own_cluster, own_namespace, built, tmp_path):
    clock = Clock(tmp_path)
    host = Host(own_cluster.kubeconfig, tmp_path / "host", "--features=operators", "--guest-isolation=none", env=clock.env)
    memos.run(own_cluster, own_namespace, after="200ms")
    asleep(own_cluster, own_namespace, COMPILED)
    make(own_cluster, own_namespace, "note", "text 0", revisitSeconds=3600)
    eventually(lambda: text_of(own_cluster, own_namespace, "note") == "text 0", "the text is kept", 60)

    def settled():
        before = resumes(host, own_namespace)
        time.sleep(2)
        return before if resumes(host, own_namespace) == before else None
    visits = lambda: own_cluster.get(*MEMO, "note", own_namespace)["status"].get("visits", 0)
    for number, days in enumerate((1, -1), 1):
        before = eventually(settled, "late events have been handled", 60), visits()
        asleep(own_cluster, own_namespace)

        clock.set_ahead(datetime.timedelta(days=days))

        now = eventually(settled, "nothing wakes it again and again", 60), visits()
        assert now == before, "the new time has woken it, or its timer of an hour has rung"
        own_cluster.patch(*MEMO, "note", {"spec": {"text": f"text {number}"}}, own_namespace)
        eventually(lambda: text_of(own_cluster, own_namespace, "note") == f"text {number}", "it wakes for an event", 60)
        # The change, the answers to its requests, and its own writes.
        assert before[0] < eventually(settled, "it sleeps again", 60) < before[0] + 20
        # Of the host, and of the guest.
        assert clock.shows(logs(host, "memo", own_namespace).splitlines()[-1])
        assert clock.shows(lines(host, "memo", own_namespace)[-1])

    own_cluster.patch(*MEMO, "note", {"spec": {"revisitSeconds": 1}}, own_namespace)
    began = visits()
    eventually(lambda: visits() >= began + 3, "its timers ring", 60)
    assert own_cluster.get(*OPERATOR, "memo", own_namespace)["status"]["restarts"] == 0
    own_cluster.delete(*OPERATOR, "memo", own_namespace)
    eventually(lambda: own_cluster.get(*OPERATOR, "memo", own_namespace) is None, "it is gone")
    assert host.stop() == 0


def own_metrics(host, namespace, name="memo"):
    """What the operator itself has registered, by name and labels; None: the host has refused."""
    status, text = host.get(f"/metrics/operators/{namespace}/{name}")
    if status != 200:
        return None
    return {key: float(value) for key, value in (line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#")}


def test_its_own_metrics_are_scraped_without_waking_it(cluster, host, namespace, memo):
    counted = lambda: (own_metrics(host, namespace) or {}).get("memo_kept_total")
    own_metrics(host, namespace)  # From now on it is asked before it sleeps.
    make(cluster, namespace, "counted", "count me")
    eventually(lambda: text_of(cluster, namespace, "counted") == "count me", "the text is kept", 60)
    before = asleep(cluster, namespace)
    eventually(lambda: counted() == 1, "the counter has been scraped", 60)
    wakes = lambda: {name: value for name, value in host.metrics().items() if f'controller="{namespace}/memo"' in name
                     and name.startswith(("hangar_controller_resumes_total", "controller_runtime_reconcile_total"))}

    def sleeps_on():
        woken = wakes()
        answers = [counted() for _ in range(20)]
        return answers == [1] * 20 and woken and wakes() == woken
    # The status may be older than the last event.
    eventually(sleeps_on, "twenty scrapes wake nobody", 60)
    assert cluster.get(*OPERATOR, "memo", namespace)["status"]["restarts"] == before["status"]["restarts"]
    assert host.get(f"/metrics/operators/{namespace}/nobody")[0] == 404


def test_the_log_says_what_was_turned_off(host, namespace, memo):
    told = [line for line in lines(host, "memo", namespace) if "options are changed" in line]
    assert len(told) == 1
    for name in ("leader election", "metrics endpoint", "health endpoint", "priority queue", "resync of caches"):
        assert name in told[0]


def test_the_build_prints_each_line_that_it_changes(built):
    said = built.splitlines()
    assert "main is unchanged. What it is built with differs in these lines:" in said
    for line in ("  - \t\tt.wg.Go(t.updateUnfinishedWorkLoop)", "  + \tret.heartbeat.Stop() // hangar: it wakes the program.",
                 "  + \toptions = hangarOptions(options)", "  - \twatchSignalLoop = loop", "  + \tif hangarRoundTrip != nil {"):
        assert line in said
    for file in ("k8s.io/client-go v0.37.0 util/workqueue/queue.go:178: ", "k8s.io/client-go v0.37.0 util/workqueue/delaying_queue.go:157: ",
                 "sigs.k8s.io/controller-runtime v0.25.2 pkg/manager/manager.go:345: "):
        assert any(line.startswith(file) for line in said), file
    for file in (" os/signal/signal_unix.go:", " net/http/roundtrip.go:"):
        assert any(file in line for line in said), file
    assert any(line.startswith("memo.wasm: ") and line.endswith(" MiB") for line in said)


def test_a_module_is_pushed_where_a_host_fetches_it(cluster, namespace, operator, rights, built, tmp_path):
    registry = Registry(cluster)
    write(tmp_path, **{"go_mod": "module example.com/tiny\n\ngo 1.24\n",
                       "main_go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"here\"); select {} }\n"})
    assert "401" in refusal(".", "--push", registry.url("tiny", "v1"), directory=tmp_path,
                            env={"HANGAR_DOCKER_CONFIG": registry.docker_config(tmp_path, None)})

    config = registry.docker_config(tmp_path, registry.password)
    done = build(".", "--push", registry.url("tiny", "v1"), directory=tmp_path, env={"HANGAR_DOCKER_CONFIG": config})

    assert done.returncode == 0, done.stderr
    reference = done.stdout.strip()
    assert reference.startswith(f"oci://{registry.address}/tiny@sha256:")
    assert not list(tmp_path.glob("*.wasm"))
    # The second time nothing has to be sent, and the artifact is the same.
    again = build(".", "--push", registry.url("tiny", "v2"), directory=tmp_path, env={"HANGAR_DOCKER_CONFIG": config})
    assert again.stdout == done.stdout
    layer = registry.layer("tiny", "v1")
    assert layer[:4] == b"\0asm"


def test_a_module_of_the_proxy_is_built_with_its_own_go_mod(tmp_path):
    main = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"here\"); select {} }\n"
    module = "module example.com/team/tiny\n\ngo 1.24\n"
    proxy = tmp_path / "proxy"
    publish(proxy, "example.com/team/tiny", "v1.0.0", go_mod=module, main_go=main)
    publish(proxy, "example.com/team/tiny", "v1.1.0", main_go=main,
            go_mod=f"{module}\nrequire example.com/team/part v1.0.0\n\nreplace example.com/team/part => ./part\n")
    env = {"GOPROXY": f"file://{proxy}", "GONOSUMDB": "*", "GOMODCACHE": str(tmp_path / "modules")}

    done = build("example.com/team/tiny@v1.0.0", directory=tmp_path, env=env)

    assert done.returncode == 0, done.stderr
    assert done.stdout == f"file://{tmp_path}/tiny.wasm\n"
    assert "example.com/team/tiny v1.0.0 from the module proxy" in done.stderr.splitlines()
    assert (tmp_path / "tiny.wasm").read_bytes()[:4] == b"\0asm"
    why = refusal("example.com/team/tiny@v1.1.0", directory=tmp_path, env=env)
    assert "replaces modules by directories that are not in it (./part)" in why
    assert "has no directory cmd" in refusal("example.com/team/tiny/cmd@v1.0.0", directory=tmp_path, env=env)
    assert "example.com/team/tiny@v9.0.0" in refusal("example.com/team/tiny@v9.0.0", directory=tmp_path, env=env)


def test_what_cannot_be_a_guest_is_refused_with_the_reason(tmp_path):
    module = "module example.com/x\n\ngo 1.24\n"
    cgo = write(tmp_path / "cgo", go_mod=module, main_go="package main\n\n// int one() { return 1; }\nimport \"C\"\n\nfunc main() { C.one() }\n")
    assert "package example.com/x needs cgo (main.go)" in refusal(cgo)
    plugin = write(tmp_path / "plugin", go_mod=module, main_go="package main\n\nimport \"plugin\"\n\nfunc main() { plugin.Open(\"x\") }\n")
    assert "example.com/x imports plugin" in refusal(plugin)
    library = write(tmp_path / "library", go_mod=module, x_go="package x\n")
    assert "is package x and not a program" in refusal(library)
    broken = write(tmp_path / "broken", go_mod=module, main_go="package main\n\nfunc main() { undefined() }\n")
    assert "undefined: undefined" in refusal(broken)
    assert "is not in a Go module" in refusal(write(tmp_path / "alone", main_go="package main\n"))
    assert "./nowhere is not a directory" in refusal("./nowhere")
    assert "is not a directory, and not a package" in refusal("example.com/elsewhere", directory=cgo)
    assert "go not found on PATH" in refusal(broken, env={"PATH": "/nowhere"})
    assert "names a digest" in refusal(broken, "--push", f"oci://127.0.0.1:1/x@sha256:{'a' * 64}")
    assert "not a registry" in refusal(broken, "--push", "https://127.0.0.1:1/x")


def test_another_version_of_go_than_was_tested_is_named_in_a_warning(tmp_path):
    project = write(tmp_path / "tiny", go_mod="module example.com/tiny\n\ngo 1.24\n", main_go="package main\n\nfunc main() { select {} }\n")
    go = write(tmp_path / "bin", go=f"""#!/bin/sh
if [ "$1" = env ]; then "{shutil.which("go")}" "$@" | sed "s/\\"GOVERSION\\": .*/\\"GOVERSION\\": \\"$VERSION\\",/"; else exec "{shutil.which("go")}" "$@"; fi
""")
    (go / "go").chmod(0o755)
    path = f"{go}:{os.environ['PATH']}"

    done = build(project, directory=tmp_path, env={"PATH": path, "VERSION": "go1.25.3"})

    assert done.returncode == 0, done.stderr
    assert "warning: guests were not tested with go1.25.3; the tested version is Go 1.26" in done.stderr.splitlines()
    assert "warning" not in build(project, directory=tmp_path, env={"PATH": path, "VERSION": "go1.26.99"}).stderr
    assert "go1.23.9 cannot build guests" in refusal(project, directory=tmp_path, env={"PATH": path, "VERSION": "go1.23.9"})


def test_a_version_that_is_not_known_is_refused_with_those_that_are(tmp_path):
    project = tmp_path / "memo"
    shutil.copytree(SOURCE, project)
    where = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"], cwd=project, check=True,
                           stdout=subprocess.PIPE, text=True).stdout.strip()
    fork = tmp_path / "fork"
    shutil.copytree(where, fork, copy_function=shutil.copyfile)
    for directory, _, _ in os.walk(fork):
        os.chmod(directory, 0o755)
    manager = fork / "pkg/manager/manager.go"
    manager.write_text(manager.read_text() + "\n// Somebody's own.\n")
    with open(project / "go.mod", "a") as go_mod:
        go_mod.write("\nreplace sigs.k8s.io/controller-runtime => ../fork\n")

    why = refusal(project / "cmd")

    assert "sigs.k8s.io/controller-runtime => ../fork pkg/manager/manager.go is of a version that is not known here" in why
    assert "client-go 0.32 to 0.37 and controller-runtime 0.20 to 0.25" in why
    assert "hangar.GetConfigOrDie()" in why


def test_a_module_of_go_build_alone_is_refused_with_what_to_do(cluster, host, namespace, operator, tmp_path):
    write(tmp_path, go_mod="module example.com/plain\n\ngo 1.24\n", main_go="package main\n\nfunc main() { select {} }\n")
    platform = {**os.environ, "GOOS": "wasip1", "GOARCH": "wasm"}
    for mode in ("exe", "c-shared"):
        module = GUESTS / f"plain-{mode}.wasm"
        subprocess.run(["go", "build", f"-buildmode={mode}", "-o", str(module), "."], cwd=tmp_path, check=True, env=platform)
        operator(f"plain-{mode}", wasm=f"plain-{mode}")

        stalled = eventually(lambda: (lambda c: c if c.get("status") == "True" else None)(
            condition(cluster.get(*OPERATOR, f"plain-{mode}", namespace), "Stalled")), "the module is refused", COMPILED)
        assert "`hangar build go`" in stalled["message"]
