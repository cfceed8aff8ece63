"""Flights in guest processes: `hangar host --guest-isolation=namespace`, also when one of its processes dies."""
import errno
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest
import yaml

import airways
import host as host_module
from airways import flight
from charts import CHART
from cluster import condition, eventually, is_ready
from conftest import COMPILED
from host import BINARY, Host, to_its_end
from processes import children, expect_to_end_with
from test_command_line import hangar, thing

GROUP = "isolation.hangar.dev"


@pytest.fixture
def cluster(own_cluster):
    """Of its own, because another host on the same cluster would evaluate the same Airways."""
    return own_cluster


@pytest.fixture(scope="module")
def host(own_cluster, tmp_path_factory):
    yield from to_its_end(Host(own_cluster.kubeconfig, tmp_path_factory.mktemp("host"), "--features=airways", "--guest-isolation=namespace"))


def zygote(host):
    found = [pid for pid in children(host.process.pid) if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "hangar-guest"]
    assert len(found) == 1, found
    return found[0]


def walled_off(pid):
    """The process's status once its last wall is up: it is seen from the fork on."""
    path = pathlib.Path(f"/proc/{pid}/status")
    return eventually(lambda: "Seccomp:\t2" in (now := path.read_text()) and now, "its last wall is up", 60)


class Kind:
    def __init__(self, cluster, airway, unique, **spec):
        self.cluster, self.kind = cluster, unique.capitalize()
        airway(airways.airway(f"{unique}s", self.kind, flight("behave"), group=GROUP, **spec))

    def create(self, name, namespace, behaviour="basic", **spec):
        self.cluster.create(airways.instance(self.kind, name, {"behaviour": behaviour, "data": {"a": "b"}, **spec}, namespace, group=GROUP))

    def get(self, name, namespace):
        return self.cluster.get(f"{GROUP}/v1", self.kind, name, namespace)

    def ready(self, name, namespace, seconds=COMPILED):
        eventually(lambda: is_ready(self.get(name, namespace)), f"{name} is Ready: {condition(self.get(name, namespace))}", seconds)


@pytest.fixture
def other_namespace(cluster, unique):
    name = f"other-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.delete("v1", "Namespace", name)


@pytest.fixture
def idle(host):
    """No guest process is left of an earlier test: one that has nothing to do lives a little longer than its namespace."""
    eventually(lambda: not children(zygote(host)), "no guest process is left of before", COMPILED)


def test_readiness_rules_in_lua_run_there_too(cluster, host, airway, namespace, unique):
    rules = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules", "namespace": "default", "labels": {"resource.yoke.cd/readiness": "lua"}},
             "data": {"ConfigMap": "return function(it)\n  if it.data.a ~= 'b' then error('no b') end\n  return true\nend"}}
    cluster.apply(rules)
    kind = Kind(cluster, airway, unique)

    kind.create("yes", namespace)
    kind.create("no", namespace, data={"a": "c"})
    kind.ready("yes", namespace)
    error = eventually(lambda: (ready := condition(kind.get("no", namespace))).get("reason") == "Error" and ready["message"], "the rule fails", COMPILED)

    assert error.endswith("readiness rule ConfigMap of ConfigMap default/rules: failed to invoke lua readiness function: ConfigMap:2: no b")
    cluster.delete("v1", "ConfigMap", "rules", "default")


def test_flights_of_two_namespaces_run_in_two_processes_that_have_nothing(cluster, host, idle, airway, namespace, other_namespace, unique):
    kind = Kind(cluster, airway, unique)
    for number in range(3):
        kind.create(f"slow-{number}", namespace, "sleep", milliseconds=1500)
        kind.create(f"slow-{number}", other_namespace, "sleep", milliseconds=1500)

    processes = eventually(lambda: len(found := children(zygote(host))) >= 2 and found, "two processes work", COMPILED)

    assert len(processes) == 2 and host.metrics()["hangar_guest_processes"] == 2
    for pid in [zygote(host), *processes]:
        assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b""
    assert "Threads:\t1\n" in pathlib.Path(f"/proc/{zygote(host)}/status").read_text(), "a fork would copy the locks of other threads"
    for pid in processes:
        status = walled_off(pid)
        assert "NoNewPrivs:\t1" in status
        opened = {os.readlink(path).split(":")[0] for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        assert not [path for path in opened if path not in ("socket", "anon_inode", "/dev/null")
                    and not path.endswith((".cwasm", "/pagemap", "/statm"))], opened
    for number in range(3):
        kind.ready(f"slow-{number}", namespace)
        kind.ready(f"slow-{number}", other_namespace)
    eventually(lambda: not children(zygote(host)), "idle processes end", COMPILED)


def test_lookups_and_failures_are_what_they_are_in_the_host(cluster, host, airway, namespace, unique):
    kind = Kind(cluster, airway, unique, clusterAccess=True, resourceAccessMatchers=["ConfigMap"])
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wanted", "namespace": namespace}, "data": {"k": "v"}})
    kind.create("asks", namespace, "lookup", lookup={"name": "wanted", "namespace": namespace, "kind": "ConfigMap", "apiVersion": "v1"})
    kind.create("panics", namespace, "panic")
    kind.create("fails", namespace, stderr="this is why", exitCode=3)

    kind.ready("asks", namespace)
    eventually(lambda: "exceeded" not in (message := condition(kind.get("panics", namespace)).get("message", "")) and "panic" in message, "it says that it panicked")
    eventually(lambda: "this is why" in condition(kind.get("fails", namespace)).get("message", ""), "it says what the flight said")


def test_a_guest_process_that_is_killed_costs_its_namespace_an_evaluation(cluster, host, idle, airway, namespace, other_namespace, unique):
    kind = Kind(cluster, airway, unique)
    kind.create("first", namespace)
    kind.ready("first", namespace)
    eventually(lambda: not children(zygote(host)), "no process is left of the first", COMPILED)
    kind.create("slow", namespace, "sleep", milliseconds=3000)
    victim = eventually(lambda: children(zygote(host)), "it runs")[0]

    os.kill(victim, signal.SIGKILL)

    def failed():
        return [event for event in cluster.list("v1", "Event", namespace) if event["involvedObject"]["name"] == "slow"
                and f"the guest process of namespace {namespace}: killed by signal 9" in event["message"]]
    eventually(failed, "an Event says why", 30)
    kind.create("beside", other_namespace)
    kind.ready("beside", other_namespace)
    kind.ready("slow", namespace)  # It was evaluated again.


def test_guests_end_with_a_host_that_is_killed(own_cluster, host, idle, airway, namespace, unique):
    kind = Kind(own_cluster, airway, unique)
    kind.create("endless", namespace, "endless")
    first = zygote(host)
    processes = eventually(lambda: children(first), "it runs", COMPILED)

    expect_to_end_with(host, [first, *processes])

    host.start()
    eventually(lambda: "timeout" in condition(kind.get("endless", namespace)).get("message", ""), "a new host goes on", 60)


@pytest.mark.parametrize("flags", [[], ["--guest-isolation=shared"], ["--guest-isolation=namespace"]], ids=str)
def test_run_flight_prints_the_same_from_a_process_of_its_own(flags, tmp_path):
    here = hangar("run-flight", flight("behave"), "--guest-isolation=none", stdin=thing(data={"a": "b"}), tmp_path=tmp_path)
    there = hangar("run-flight", flight("behave"), *flags, stdin=thing(data={"a": "b"}), tmp_path=tmp_path)

    assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr


@pytest.fixture
def place_for_all():
    """A directory that every user of the machine may enter, unlike pytest's."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="hangar-pod-"))
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


USER_OF_THE_POD = yaml.safe_load((CHART / "values.yaml").read_text())["podSecurityContext"]["runAsUser"]


def as_in_the_pod():
    """A command that runs another one with the rights that the chart's container has."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    pod, container = values["podSecurityContext"], values["securityContext"]
    assert pod["runAsNonRoot"] and container["capabilities"] == {"drop": ["ALL"]} and not container["allowPrivilegeEscalation"]
    command = ["setpriv", "--no-new-privs"]
    if os.geteuid() == 0:
        command += [f"--reuid={USER_OF_THE_POD}", f"--regid={pod['runAsGroup']}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    return command


def test_the_walls_need_no_more_than_the_charts_pod_has(place_for_all):
    for name in ("hangar", "hangar-compile", "hangar-guest"):
        shutil.copy(BINARY.parent / name, place_for_all)
    module = shutil.copy(flight("behave"), place_for_all)
    session = subprocess.Popen(
        [*as_in_the_pod(), str(place_for_all / "hangar"), "run-flight", module,
         f"--module-cache-dir={place_for_all / 'cache'}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(place_for_all)})
    session.stdin.write(thing(behaviour="sleep", milliseconds=1500, data={"a": "b"}))
    session.stdin.close()

    def guest():
        assert session.poll() is None, session.stderr.read()
        forks = [fork for child in children(session.pid) for fork in children(child)]
        return forks and forks[0]
    status = walled_off(eventually(guest, "a guest process runs", COMPILED))
    output, errors = session.stdout.read(), session.stderr.read()

    assert session.wait() == 0, errors
    assert "kind: ConfigMap" in output
    walls = dict(line.split(":\t", 1) for line in status.splitlines())
    assert (walls["Seccomp"], walls["NoNewPrivs"], walls["CapEff"]) == ("2", "1", "0" * 16), status


def test_the_host_hides_its_memory_from_processes_of_its_own_user(own_cluster, place_for_all, monkeypatch):
    """Then root owns its files in /proc, although it runs as another user."""
    monkeypatch.setattr(host_module, "compiled", None)  # Only the tests' own user may write there.
    for name in ("hangar", "hangar-compile", "hangar-guest"):
        shutil.copy(BINARY.parent / name, place_for_all)
    kubeconfig = place_for_all / "kubeconfig"
    kubeconfig.write_text(own_cluster.kubectl("config", "view", "--raw", "--flatten"))
    kubeconfig.chmod(0o644)
    directory = place_for_all / "host"
    directory.mkdir()
    directory.chmod(0o777)
    there = ["sh", "-c", f'shift; exec "{place_for_all}/hangar" "$@"', "sh"]
    host = Host(kubeconfig, directory, "--features=airways", "--guest-isolation=namespace", env={"HOME": str(place_for_all)}, inside=[*as_in_the_pod(), *there])
    try:
        of_host = pathlib.Path(f"/proc/{host.process.pid}")

        assert "NoNewPrivs:\t1" in (of_host / "status").read_text(), "it is the host itself"
        assert (of_host / "environ").stat().st_uid == 0
        assert os.geteuid() != 0 or f"Uid:\t{USER_OF_THE_POD}\t" in (of_host / "status").read_text()
    finally:
        assert host.stop() == 0, host.tail()


def test_guest_processes_come_from_one_that_is_there_before_a_credential_is_read(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    os.mkfifo(kubeconfig)
    host = Host(kubeconfig, tmp_path / "host", "--features=airways", "--guest-isolation=namespace", wait=False)

    def begins_to_read():
        assert host.process.poll() is None, host.tail()
        try:
            return os.open(kubeconfig, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO
            return None
    try:
        writer = eventually(begins_to_read, "the host reads its kubeconfig", 60)
        # It waits for the first byte until the pipe is closed.
        assert "Threads:\t1\n" in pathlib.Path(f"/proc/{zygote(host)}/status").read_text()
        os.close(writer)
    finally:
        host.kill()


def test_a_host_without_the_program_says_where_it_looked(tmp_path):
    refused = subprocess.run([str(BINARY), "run-flight", flight("behave"), "--guest-isolation=namespace", "--guest-program=/no/such/program",
                              f"--module-cache-dir={tmp_path / 'modules'}"], input=thing(), capture_output=True, text=True, timeout=120)

    assert refused.returncode != 0 and "/no/such/program: No such file" in refused.stderr
